//! The transport over `/dev/fuse`, by the crate `fuser`, none of whose types is seen outside.
//!
//! # What it is
//! Translation: each request becomes one call of the [`Session`], its answer a reply. Time is taken here, from the request's
//! arrival to its reply.
//!
//! # How it is locked
//! Backing files of the kernel's own reading and writing are in a table with a lock, under which the kernel is told of one.
//!
//! # Where it comes from
//! `linux/fuse.h`; which capabilities are asked for, and why, is in `flags`.

mod convert;
mod flags;
mod operations;
mod sender;
mod trace;

use crate::options::MountOptions;
use crate::session::Session;
use fuser::BackingId;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

pub(crate) use flags::mount_config;
pub(crate) use sender::KernelSender;

/// What `fuser` calls.
pub(crate) struct Transport {
    session: Arc<Session>,
    options: MountOptions,
    /// Files that the kernel reads and writes by itself: one registration for all that have a file open.
    backings: Mutex<HashMap<u64, Weak<BackingId>>>,
    /// The kernel refused one: it is not asked again.
    is_refused: AtomicBool,
    /// Which handle uses which.
    used: Mutex<HashMap<u64, Arc<BackingId>>>,
}

impl Transport {
    pub(crate) fn new(session: Arc<Session>, options: MountOptions) -> Self {
        Self {
            session,
            options,
            backings: Mutex::default(),
            is_refused: AtomicBool::new(false),
            used: Mutex::default(),
        }
    }

    /// The registration of the file behind `node`, made by `open` if there is none; `None` if the kernel will have none.
    fn backing(
        &self,
        node: u64,
        handle: u64,
        open: impl FnOnce() -> std::io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        // Relaxed, here and below: at worst it is asked once more.
        if self.is_refused.load(Relaxed) {
            return None;
        }
        // Held while the kernel is asked: of two that open a file at once, the kernel refuses the second registration.
        let mut backings = self.backings.lock();
        let known = backings.get(&node).and_then(Weak::upgrade);
        let backing = match known.map_or_else(|| open().map(Arc::new), Ok) {
            Ok(id) => id,
            Err(error) => {
                tracing::debug!(%error, "the kernel takes no backing file");
                self.is_refused.store(is_for_good(&error), Relaxed);
                return None;
            }
        };
        backings.insert(node, Arc::downgrade(&backing));
        self.used.lock().insert(handle, backing.clone());
        Some(backing)
    }

    /// The handle was released.
    fn release_backing(&self, node: u64, handle: u64) {
        let Some(used) = self.used.lock().remove(&handle) else { return };
        drop(used);
        let mut backings = self.backings.lock();
        if backings.get(&node).is_some_and(|id| id.strong_count() == 0) {
            backings.remove(&node);
        }
    }
}

/// Whether the kernel will take no backing file of this mount: it cannot, we may not, or what is behind is stacked too high itself.
fn is_for_good(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let reasons = [Errno::PERM, Errno::INVAL, Errno::NOTTY, Errno::NOSYS, Errno::OPNOTSUPP, Errno::LOOP];
    errno.is_some_and(|errno| reasons.contains(&errno))
}
