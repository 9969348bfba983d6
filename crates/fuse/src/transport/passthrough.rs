//! Passthrough: files of the host that the kernel reads and writes without requests.
//!
//! # What it is
//! The kernel takes one registration of a backing file for each node. All open handles of the node
//! share the registration, which ends when the last handle is released. For all users, the kernel
//! writes to the backing file with the capabilities of the thread that registers it. So the thread
//! registers it without `CAP_FSETID`, and each write clears set-id bits.
//!
//! # How it is locked
//! Two tables with a lock each. A thread holds the lock of the registrations while the kernel makes
//! one: of two registrations for one node at once, the kernel refuses the second.
//!
//! # Where it comes from
//! `FUSE_PASSTHROUGH` and `FUSE_DEV_IOC_BACKING_OPEN` in `linux/fuse.h`.

use super::reply::Channel;
use crate::session::{Opened, Session, without_fsetid};
use fusedev::wire::abi::{OpenOut, fopen};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(super) struct Backings {
    /// Registrations, by node.
    by_node: Mutex<HashMap<u64, Weak<Backing>>>,
    /// Registrations, by the handles that keep them.
    by_handle: Mutex<HashMap<u64, Arc<Backing>>>,
    /// The kernel refused a registration for good, so no other is tried.
    is_refused: AtomicBool,
}

/// The registration of a file; it ends on drop.
#[derive(Debug)]
struct Backing {
    channel: Arc<dyn Channel>,
    id: i32,
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Err(error) = self.channel.close_backing(self.id) {
            tracing::debug!(%error, "the kernel did not take a backing file back");
        }
    }
}

impl Backings {
    /// Returns the registration of the file behind `node` for `handle`; `register` makes it if
    /// there is none. `None`: the kernel refused.
    fn get(&self, node: u64, handle: u64, register: impl FnOnce() -> io::Result<Backing>) -> Option<Arc<Backing>> {
        // Relaxed, here and below: at worst one more registration is tried.
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

/// Returns whether the kernel refuses all backing files of this mount: it does not support them,
/// this process has no right to register them, or the host's file system is itself stacked too
/// deep.
fn is_permanent(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let reasons = [Errno::PERM, Errno::INVAL, Errno::NOTTY, Errno::NOSYS, Errno::OPNOTSUPP, Errno::LOOP];
    errno.is_some_and(|errno| reasons.contains(&errno))
}

/// Returns the reply to an open, with passthrough if the file has a backing file and the kernel
/// takes it.
pub(super) fn opened(
    backings: &Backings,
    session: &Session,
    channel: &Arc<dyn Channel>,
    node: u64,
    opened: &Opened,
) -> OpenOut {
    let (fh, open_flags) = (opened.handle, open_flags(session, opened));
    let register = |file: &Arc<_>| {
        let open = || Ok(Backing { id: channel.open_backing(AsFd::as_fd(file))?, channel: channel.clone() });
        backings.get(node, fh, || without_fsetid(open))
    };
    match opened.backing.as_ref().and_then(register) {
        // Such a file has no page cache in the mount.
        Some(backing) => {
            let open_flags = open_flags & !(fopen::KEEP_CACHE | fopen::DIRECT_IO) | fopen::PASSTHROUGH;
            OpenOut { fh, open_flags, backing_id: backing.id }
        }
        None => OpenOut { fh, open_flags, backing_id: 0 },
    }
}

fn open_flags(session: &Session, opened: &Opened) -> u32 {
    let kept = if opened.keep_cache { fopen::KEEP_CACHE } else { 0 };
    let without_flush = if session.wants_flush(opened.handle) { 0 } else { fopen::NOFLUSH };
    let direct = if opened.is_direct { fopen::DIRECT_IO } else { 0 };
    kept | without_flush | direct
}
