//! What is known of one file of the host.
//!
//! # What it is
//! A record for each inode that the VFS may have: where it was found last (parent and name), and the descriptors of it
//! that are open. Most have none: a file is found again by its parent's descriptor and its name. What has no name any
//! more is *pinned*: its descriptor is all that is left of it.
//!
//! # Size
//! A record takes 104 bytes with its counts, its name's bytes, and 17 bytes in the table (more before the table grows).
//!
//! # How it is locked
//! One mutex, held for no call to the host. It is inside of the table's and outside of none; the budget's is taken
//! before it.
//!
//! # Where it comes from
//! `lo_inode` of libfuse's `passthrough_ll`, which holds a descriptor for each; own code.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use parking_lot::{Mutex, MutexGuard};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What a descriptor may be used for.
pub(crate) const READ: u8 = 1;
/// The same.
pub(crate) const WRITE: u8 = 2;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Node {
    /// What the VFS knows it by.
    pub(crate) id: u64,
    /// The host's inode number.
    pub(crate) ino: u64,
    /// Whether it is on another device than the source.
    pub(crate) is_elsewhere: bool,
    state: Mutex<State>,
    /// Whether a descriptor was used since the budget's clock came by.
    used: AtomicBool,
    /// Whether the VFS will ask for its attributes before it shows them.
    is_doubted: AtomicBool,
    /// Whether its attributes are being asked for.
    is_asked: AtomicBool,
    /// A hash of the attributes that the VFS was told last.
    told: AtomicU32,
}

/// What changes of a record.
#[derive(Debug)]
pub(crate) struct State {
    /// The directory that it was found in last.
    pub(crate) parent: u64,
    /// Its name there.
    pub(crate) name: Box<[u8]>,
    /// An `O_PATH` descriptor.
    pub(crate) path: Option<Arc<OwnedFd>>,
    /// A descriptor for its contents.
    pub(crate) data: Option<Arc<OwnedFd>>,
    /// How often it is open.
    pub(crate) opens: u32,
    /// The watch on it; 0: none.
    pub(crate) watch: i32,
    /// What `data` may be used for.
    pub(crate) access: u8,
    /// Its descriptors stay: it has no name that is known.
    pub(crate) is_pinned: bool,
    /// The budget's clock comes by.
    pub(crate) is_queued: bool,
    /// The VFS let its inode go.
    pub(crate) is_cold: bool,
    /// No watch is to be tried (again).
    pub(crate) is_unwatched: bool,
    /// A descriptor was closed for want of room.
    pub(crate) was_closed: bool,
}

impl Node {
    pub(crate) fn new(id: u64, ino: u64, is_elsewhere: bool, (parent, name): (u64, &[u8])) -> Self {
        let state = State {
            parent,
            name: name.into(),
            path: None,
            data: None,
            opens: 0,
            watch: 0,
            access: 0,
            is_pinned: false,
            is_queued: false,
            is_cold: false,
            is_unwatched: false,
            was_closed: false,
        };
        Self {
            id,
            ino,
            is_elsewhere,
            state: Mutex::new(state),
            used: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
            told: AtomicU32::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Says to the budget's clock that a descriptor was used.
    pub(crate) fn note_use(&self) {
        // Relaxed: a hint. Written only if it changes, so that readers share the line.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    /// Says that the VFS was told attributes with this hash.
    pub(crate) fn note_told(&self, hash: u32) {
        // Relaxed, here and below: a change that is not seen for what it is, is told once more.
        self.told.store(hash, Relaxed);
    }

    /// Says that the VFS will ask for attributes, or that it is being told them: before the host is asked.
    pub(crate) fn set_doubted(&self, is_doubted: bool) {
        self.is_doubted.store(is_doubted, Relaxed);
    }

    /// Notes that its attributes are asked for. `true`: they are already, and nobody knows whose answer comes first.
    pub(crate) fn begin_asking(&self) -> bool {
        self.is_asked.swap(true, Relaxed)
    }

    /// Ends what [`Node::begin_asking`] began.
    pub(crate) fn end_asking(&self) {
        self.is_asked.store(false, Relaxed);
    }

    /// Whether the VFS knows attributes with this hash, or will ask for them.
    pub(crate) fn knows(&self, hash: u32) -> bool {
        self.is_doubted.load(Relaxed) || self.told.load(Relaxed) == hash
    }

    /// Whether a descriptor was used since the last call.
    pub(crate) fn take_use(&self) -> bool {
        // Relaxed: a hint.
        self.used.load(Relaxed) && self.used.swap(false, Relaxed)
    }
}

impl State {
    /// How many descriptors it has.
    pub(crate) fn fds(&self) -> usize {
        usize::from(self.path.is_some()) + usize::from(self.data.is_some())
    }

    /// Whether its descriptors may not be closed now.
    pub(crate) fn is_held(&self) -> bool {
        self.is_pinned || self.opens != 0
    }

    /// Whether it is where it is said to be.
    pub(crate) fn is_at(&self, parent: u64, name: &[u8]) -> bool {
        self.parent == parent && *self.name == *name
    }

    /// Says where it is.
    pub(crate) fn place(&mut self, parent: u64, name: &[u8]) {
        self.parent = parent;
        if *self.name != *name {
            self.name = name.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Node>() <= 88, "{}", size_of::<Node>());
    }
}
