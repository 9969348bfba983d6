//! Requests on open directories: open, list, end.

use super::Transport;
use super::contents::longest;
use super::convert::{self, caller};
use super::trace::{Replied, escaped, line};
use crate::session::{Caller, Listed, Session, Unlisted};
use fusedev::wire::abi::{Attr, Dirent, EntryOut, FSYNC_DATA, OpenOut, ReadIn, fopen};
use fusedev::wire::{Body, Operation, Request};
use std::sync::atomic::Ordering::Relaxed;
use vfs::{Errno, Want};

impl Transport {
    pub(super) fn answer_directory(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(request), request.header.nodeid);
        match request.operation {
            Operation::Opendir(_) if self.refuses_opendir.load(Relaxed) => Err(Errno::ENOSYS),
            Operation::Opendir(_) => {
                let opened = session.opendir(&caller, node);
                line!("OPENDIR\t{node}\t->\t{}", Replied(opened));
                let fh = opened?;
                let cached = if session.options().ttls.entry.is_zero() { 0 } else { fopen::CACHE_DIR };
                let kept = if session.keeps_listing(fh) { fopen::KEEP_CACHE } else { 0 };
                body.put_struct(&OpenOut { fh, open_flags: cached | kept, backing_id: 0 });
                Ok(())
            }
            Operation::Readdir(read) => {
                let directory = self.directory(&caller, node, read.fh)?;
                session.readdir(directory.handle, read.offset, Want::NAMES, &mut |listed| {
                    body.put_dirent(longest(read.size), dirent(listed, listed.ino), listed.name)
                })
            }
            Operation::Readdirplus(read) => {
                let directory = self.directory(&caller, node, read.fh)?;
                self.list_entries(&caller, &ReadIn { fh: directory.handle, ..read }, body)
            }
            Operation::Releasedir(release) => {
                line!("RELEASEDIR\t{}", release.fh);
                session.releasedir(release.fh);
                Ok(())
            }
            Operation::Fsyncdir(fsync) => {
                let directory = self.directory(&caller, node, fsync.fh)?;
                session.fsyncdir(directory.handle, fsync.fsync_flags & FSYNC_DATA != 0)
            }
            _ => self.answer_lock(request, body),
        }
    }

    /// Returns the open directory of a request. Without opens of directories, one that is opened
    /// for this request.
    fn directory(&self, caller: &Caller, node: u64, handle: u64) -> Result<Directory<'_>, Errno> {
        let is_opened_here = handle == 0 && self.refuses_opendir.load(Relaxed);
        let handle = if is_opened_here { self.session.opendir(caller, node)? } else { handle };
        Ok(Directory { session: &self.session, handle, is_opened_here })
    }

    /// Fills a reply to READDIRPLUS with names and their entries.
    fn list_entries(&self, caller: &Caller, read: &ReadIn, body: &mut Body) -> Result<(), Errno> {
        let (fh, limit) = (read.fh, longest(read.size));
        line!("READDIRPLUS\t{fh}\t{}", read.offset);
        self.session.readdir(fh, read.offset, Want::ATTRIBUTES, &mut |listed| {
            let is_dots = listed.name == b"." || listed.name == b"..";
            if is_dots {
                // The kernel reads nothing else of them.
                return put_unusable(body, limit, listed, listed.ino);
            }
            let found = match self.session.listed_entry(caller, fh, listed) {
                Ok(found) => found,
                Err(Unlisted::Gone) => return true,
                Err(Unlisted::NameOnly(node)) => {
                    let has_room = put_unusable(body, limit, listed, node);
                    if has_room {
                        line!("LISTED_NAME\t{}\t{}\t->\t{node}", escaped(listed.name), listed.cookie);
                    } else {
                        self.session.forget(node, 1);
                    }
                    return has_room;
                }
            };
            let entry = convert::entry(&found);
            // The kernel takes the type from here; the listing may have another.
            let dirent = Dirent { kind: found.attr.mode >> 12, ..dirent(listed, found.node) };
            let has_room = body.put_dirent_plus(limit, entry, dirent, listed.name);
            if has_room {
                line!("LISTED\t{}\t{}\t->\t{}", escaped(listed.name), listed.cookie, found.node);
            } else {
                // The kernel does not get the entry, so it does not count the lookup.
                self.session.forget(found.node, 1);
            }
            has_room
        })
    }
}

/// See [`Transport::directory`].
struct Directory<'s> {
    session: &'s Session,
    handle: u64,
    is_opened_here: bool,
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        if self.is_opened_here {
            self.session.releasedir(self.handle);
        }
    }
}

fn dirent(listed: &Listed<'_>, ino: u64) -> Dirent {
    Dirent { ino, off: listed.cookie, namelen: 0, kind: listed.kind >> 12 }
}

/// Adds an entry of which the kernel takes only the name, the type, and the node as inode number. It refuses the rest for a
/// length that no file has (since Linux 5.5), and sends one FORGET for the node. Returns whether it had room.
fn put_unusable(body: &mut Body, limit: usize, listed: &Listed<'_>, node: u64) -> bool {
    let attr = Attr { ino: node, mode: listed.kind, size: u64::MAX, ..Attr::default() };
    let entry = EntryOut { nodeid: node, attr, ..EntryOut::default() };
    body.put_dirent_plus(limit, entry, dirent(listed, node), listed.name)
}
