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
mod sender;
mod trace;

use crate::options::MountOptions;
use crate::session::Session;
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
            let name = OsStr::from_bytes(listed.name);
            let is_dots = listed.name == b"." || listed.name == b"..";
            let found = if is_dots { None } else { self.session.listed_entry(&caller, fh.0, listed) };
            let Some(found) = found else {
                // Node 0: the kernel takes the name, and looks it up when it needs more.
                let attr = Attr { ino: listed.ino, mode: listed.kind, ..Attr::default() };
                let attr = file_attr(&attr, listed.ino);
                return !reply.add(INodeNo(0), listed.cookie, name, &Duration::ZERO, &attr, Generation(0));
            };
            let (attr, generation) = shown(&found);
            let is_full = reply.add(INodeNo(found.node), listed.cookie, name, &found.common_ttl(), &attr, generation);
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
