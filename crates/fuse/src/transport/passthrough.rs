//! Passthrough: files of the host that the kernel reads and writes without requests.
//!
//! # What it is
//! The kernel takes one registration of a backing file for each node. All open handles of the node share it; it ends with
//! the last of them. The kernel writes to it with the capabilities of the thread that registers it, for all users. So the
//! thread has no `CAP_FSETID` then, and each write clears set-id bits.
//!
//! # How it is locked
//! Two tables with a lock each. The lock of the registrations is held while the kernel makes one: the kernel refuses the
//! second of two at once for one node.
//!
//! # Where it comes from
//! `FUSE_PASSTHROUGH` and `FUSE_DEV_IOC_BACKING_OPEN` in `linux/fuse.h`.

use super::Transport;
use super::reply::shown;
use crate::session::{Entry, Opened, without_fsetid};
use fuser::{BackingId, FileHandle, FopenFlags, ReplyCreate, ReplyOpen};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// See the [module documentation](self).
#[derive(Default)]
pub(super) struct Backings {
    /// Registrations, by node.
    by_node: Mutex<HashMap<u64, Weak<BackingId>>>,
    /// The same, by the handles that keep them.
    by_handle: Mutex<HashMap<u64, Arc<BackingId>>>,
    /// The kernel refused one for good, so no other is tried.
    is_refused: AtomicBool,
}

impl Backings {
    /// The registration of the file behind `node` for `handle`; `register` makes it if there is none. `None`: the kernel
    /// refused.
    fn get(&self, node: u64, handle: u64, register: impl FnOnce() -> io::Result<BackingId>) -> Option<Arc<BackingId>> {
        // Relaxed, here and below: at worst one more is tried.
        if self.is_refused.load(Relaxed) {
            return None;
        }
        let mut by_node = self.by_node.lock();
        let known = by_node.get(&node).and_then(Weak::upgrade);
        let backing = match known.map_or_else(|| register().map(Arc::new), Ok) {
            Ok(id) => id,
            Err(error) => {
                tracing::debug!(%error, "the kernel refused a backing file");
                self.is_refused.store(is_permanent(&error), Relaxed);
                return None;
            }
        };
        by_node.insert(node, Arc::downgrade(&backing));
        self.by_handle.lock().insert(handle, backing.clone());
        Some(backing)
    }

    /// `handle` of `node` was released.
    pub(super) fn release(&self, node: u64, handle: u64) {
        let Some(backing) = self.by_handle.lock().remove(&handle) else { return };
        drop(backing);
        let mut by_node = self.by_node.lock();
        if by_node.get(&node).is_some_and(|id| id.strong_count() == 0) {
            by_node.remove(&node);
        }
    }
}

/// Whether the kernel will refuse all backing files of this mount: it does not support them, this process has no right to
/// register them, or the host's file system is itself stacked too deep.
fn is_permanent(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let reasons = [Errno::PERM, Errno::INVAL, Errno::NOTTY, Errno::NOSYS, Errno::OPNOTSUPP, Errno::LOOP];
    errno.is_some_and(|errno| reasons.contains(&errno))
}

/// Flags for a file with passthrough: it has no page cache in the mount.
fn without_cache(flags: FopenFlags) -> FopenFlags {
    flags & !FopenFlags::FOPEN_KEEP_CACHE
}

impl Transport {
    /// Replies to OPEN, with passthrough if the file has a backing file and the kernel takes it.
    pub(super) fn send_opened(&self, reply: ReplyOpen, node: u64, opened: &Opened) {
        let (handle, flags) = (FileHandle(opened.handle), self.open_flags(opened));
        let register = |fd| self.backings.get(node, opened.handle, || without_fsetid(|| reply.open_backing(fd)));
        match opened.backing.as_ref().and_then(register) {
            Some(id) => reply.opened_passthrough(handle, without_cache(flags), &id),
            None => reply.opened(handle, flags),
        }
    }

    /// Replies to CREATE, as [`send_opened`](Self::send_opened).
    pub(super) fn send_created(&self, reply: ReplyCreate, entry: &Entry, opened: &Opened) {
        let (handle, flags) = (FileHandle(opened.handle), self.open_flags(opened));
        let (attr, generation) = shown(entry);
        let register = |fd| self.backings.get(entry.node, opened.handle, || without_fsetid(|| reply.open_backing(fd)));
        match opened.backing.as_ref().and_then(register) {
            Some(id) => {
                let flags = without_cache(flags);
                reply.created_passthrough(&entry.common_ttl(), &attr, generation, handle, flags, &id);
            }
            None => reply.created(&entry.common_ttl(), &attr, generation, handle, flags),
        }
    }

    fn open_flags(&self, opened: &Opened) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if opened.keep_cache {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if !self.session.wants_flush(opened.handle) {
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }
}
