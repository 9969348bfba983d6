//! The transport over `/dev/fuse`, by the crate `fuser`, whose types stay inside this module.
//!
//! # What it is
//! Translation: each request becomes one call of the [`Session`], whose result becomes a reply. Requests are timed here, from
//! before the call until the reply is sent.
//!
//! # Where it comes from
//! `linux/fuse.h`. The capabilities that are requested, and why, are in `flags`.

mod convert;
mod flags;
mod operations;
mod passthrough;
mod reply;
mod seek;
mod sender;
mod trace;

use crate::options::MountOptions;
use crate::session::{Listed, Session, Unlisted};
use convert::{caller, file_attr};
use fuser::{FileHandle, Generation, INodeNo, ReplyDirectoryPlus, Request};
use passthrough::Backings;
use reply::shown;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;
use trace::{escaped, line};
use vfs::{Attr, Errno};

pub(crate) use flags::{mount_config, threads};
pub(crate) use sender::KernelSender;

/// The handlers that `fuser` calls.
pub(crate) struct Transport {
    session: Arc<Session>,
    options: MountOptions,
    backings: Backings,
}

impl Transport {
    pub(crate) fn new(session: Arc<Session>, options: MountOptions) -> Self {
        Self { session, options, backings: Backings::default() }
    }

    /// Fills a reply to READDIRPLUS with names and their entries.
    fn list_entries(
        &self,
        req: &Request,
        fh: FileHandle,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<(), Errno> {
        let caller = caller(req);
        line!("READDIRPLUS\t{fh}\t{offset}");
        self.session.readdir(fh.0, offset, &mut |listed| {
            let is_dots = listed.name == b"." || listed.name == b"..";
            if is_dots {
                // The kernel reads nothing else of them.
                return !add_unusable(reply, listed, listed.ino);
            }
            let found = match self.session.listed_entry(&caller, fh.0, listed) {
                Ok(found) => found,
                Err(Unlisted::Gone) => return true,
                Err(Unlisted::NameOnly(node)) => {
                    let is_full = add_unusable(reply, listed, node);
                    if is_full {
                        self.session.forget(node, 1);
                    }
                    return !is_full;
                }
            };
            let (attr, generation) = shown(&found);
            let (node, ttl) = (INodeNo(found.node), found.common_ttl());
            let is_full = reply.add(node, listed.cookie, OsStr::from_bytes(listed.name), &ttl, &attr, generation);
            if is_full {
                // The kernel does not get the entry, so it does not count the lookup.
                self.session.forget(found.node, 1);
            } else {
                line!("LISTED\t{}\t{}\t->\t{}", escaped(listed.name), listed.cookie, found.node);
            }
            !is_full
        })
    }
}

/// Adds an entry of which the kernel takes only the name, the type, and the node as inode number. It refuses the rest for a
/// length that no file has (since Linux 5.5), and sends one FORGET for the node. (An entry with node 0 would have the inode number
/// 0, and programs skip that: `fuser` has one field for both.) Returns whether the buffer is full.
fn add_unusable(reply: &mut ReplyDirectoryPlus, listed: &Listed<'_>, node: u64) -> bool {
    let attr = file_attr(&Attr { mode: listed.kind, size: u64::MAX, ..Attr::default() }, node);
    let name = OsStr::from_bytes(listed.name);
    reply.add(INodeNo(node), listed.cookie, name, &Duration::ZERO, &attr, Generation(0))
}
