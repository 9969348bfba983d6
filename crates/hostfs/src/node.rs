//! The record of one file of the host.
//!
//! # What it is
//! A record for each inode that the VFS may have: where the file was found last (directory and
//! name), and its open descriptors. Most records have none: a file is found again by its
//! directory's descriptor and its name. A file whose name is removed is *pinned*: only its
//! descriptor still leads to it.
//!
//! # Size
//! A record takes 112 bytes with its reference counts, the bytes of its name, and 17 bytes in the table (more before
//! the table grows).
//!
//! # How it is locked
//! One mutex, never held during a call to the host. It nests inside the table's and the budget's locks; only the lock
//! of [`crate::opens`] nests inside it.
//!
//! # Where it comes from
//! `lo_inode` of libfuse's `passthrough_ll`, which keeps a descriptor for each file.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::Relaxed};
use parking_lot::{Mutex, MutexGuard};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Access of a descriptor: it can read.
pub(crate) const READ: u8 = 1;
/// Access of a descriptor: it can write.
pub(crate) const WRITE: u8 = 2;
/// Beside the access of a record's descriptor: the descriptor belongs to an open file, which counts
/// it.
pub(crate) const LENT: u8 = 4;
/// Beside the access of a record's descriptor: the descriptor has further flags, such as
/// `O_APPEND`. No other open may use it.
pub(crate) const SPECIAL: u8 = 8;

/// Descriptors that were taken out of a record.
pub(crate) type Fds = [Option<Arc<OwnedFd>>; 2];

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameAt<'a> {
    /// The directory's node.
    pub(crate) dir: u64,
    pub(crate) name: &'a [u8],
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Node {
    /// The node by which the VFS identifies the file.
    pub(crate) id: u64,
    /// The host's inode number.
    pub(crate) ino: u64,
    /// Whether the file is on another device than the source.
    pub(crate) is_elsewhere: bool,
    state: Mutex<State>,
    /// Whether a descriptor was used since the budget's hand passed.
    used: AtomicBool,
    /// The round of events in which this file system changed the file last; 0: never.
    own_round: AtomicU32,
    /// The host's time of the last change, as it was seen last; 0: never, or this file system has changed the file since.
    changed: AtomicI64,
    /// The file had several names at some time: a program may still have it open by a name that it lost. Or another program moved
    /// the directory: the VFS may have several inodes of it, each with its own entries.
    had_other_names: AtomicBool,
}

/// Whether the table has a record, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    /// The VFS may have an inode of the file.
    #[default]
    Used,
    /// The VFS evicted the inode: the table keeps the record for a while.
    Cold,
    /// The table does not have the record any more. A descriptor that another thread opens through
    /// such a record is not kept in it.
    Dropped,
}

/// The part of a record that changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The directory where the file was found last.
    pub(crate) parent: u64,
    /// The file's name in `parent`.
    pub(crate) name: Box<[u8]>,
    /// An `O_PATH` descriptor.
    pub(crate) path: Option<Arc<OwnedFd>>,
    /// A descriptor for the contents: for calls that do not come from an open file.
    pub(crate) data: Option<Arc<OwnedFd>>,
    /// How many times the VFS has the file open.
    pub(crate) opens: u32,
    /// The inotify watch on the directory; 0: none.
    pub(crate) watch: i32,
    /// The access of `data`: [`READ`], [`WRITE`] or both; and [`LENT`], [`SPECIAL`].
    pub(crate) access: u8,
    /// The descriptors must stay open: the file has no known name.
    pub(crate) is_pinned: bool,
    /// The record is in the budget's ring.
    pub(crate) is_queued: bool,
    /// Whether the table has the record.
    pub(crate) life: Life,
    /// Inodes of the VFS that have the record as their data ([`Attached`]): more than one if a
    /// directory moved without the cache.
    inodes: u16,
    /// The directory could not be watched; do not try again.
    pub(crate) is_unwatched: bool,
    /// The budget closed a descriptor.
    pub(crate) was_closed: bool,
}

impl Node {
    pub(crate) fn new(id: u64, ino: u64, is_elsewhere: bool, at: NameAt<'_>) -> Self {
        let state = Mutex::new(State { parent: at.dir, name: at.name.into(), ..State::default() });
        Self {
            id,
            ino,
            is_elsewhere,
            state,
            used: AtomicBool::new(false),
            own_round: AtomicU32::new(0),
            changed: AtomicI64::new(0),
            had_other_names: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Notes for the budget's hand that a descriptor was used.
    pub(crate) fn note_use(&self) {
        // Relaxed: a hint. Stored only if it changes, so that readers share the line.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    /// Notes that the file has several names, or that another program moved the directory. Returns whether this is the first note.
    pub(crate) fn note_other_names(&self) -> bool {
        // Relaxed, here and below: the invalidation that follows orders it.
        !self.had_other_names() && !self.had_other_names.swap(true, Relaxed)
    }

    /// Returns whether there was such a note.
    pub(crate) fn had_other_names(&self) -> bool {
        self.had_other_names.load(Relaxed)
    }

    /// Notes that this file system changes the file, or has changed it, in this round of events.
    pub(crate) fn note_own_change(&self, round: u32) {
        // Relaxed, here and below: if a change is missed, one invalidation too many follows.
        self.own_round.store(round, Relaxed);
    }

    /// Forgets the time of the last change, which this file system changes.
    pub(crate) fn forget_change(&self) {
        // Relaxed, here and below: a time by itself.
        self.changed.store(0, Relaxed);
    }

    /// Notes the host's time of the last change. Returns whether another program has changed the file since the time before.
    pub(crate) fn note_change(&self, time: i64) -> bool {
        let before = self.changed.load(Relaxed);
        if before != time {
            self.changed.store(time, Relaxed);
        }
        before != 0 && before != time
    }

    /// Returns whether an event that is processed in `round` may be of a change by this file
    /// system: the thread reads the event of a change at the latest in the round after the one in
    /// which the change ended.
    pub(crate) fn may_be_own_change(&self, round: u32) -> bool {
        let own = self.own_round.load(Relaxed);
        own != 0 && round.wrapping_sub(own) <= 1
    }

    /// Returns whether a descriptor was used since the last call.
    pub(crate) fn take_use(&self) -> bool {
        // Relaxed: a hint.
        self.used.load(Relaxed) && self.used.swap(false, Relaxed)
    }
}

impl State {
    /// Returns the number of open descriptors.
    pub(crate) fn fds(&self) -> usize {
        usize::from(self.path.is_some()) + usize::from(self.data.is_some())
    }

    /// Takes the descriptors out. The caller counts them, and drops them outside of the record's lock.
    pub(crate) fn take_fds(&mut self) -> Fds {
        [self.path.take(), self.take_data()]
    }

    /// Takes the descriptor for the contents out, as [`State::take_fds`]; `None` if an open file counts it.
    pub(crate) fn take_data(&mut self) -> Option<Arc<OwnedFd>> {
        let access = core::mem::take(&mut self.access);
        self.data.take().filter(|_| access & LENT == 0)
    }

    /// Returns whether inodes of the VFS have the record.
    pub(crate) fn is_attached(&self) -> bool {
        self.inodes != 0
    }

    /// Returns whether the descriptors must stay open now.
    pub(crate) fn is_held(&self) -> bool {
        self.is_pinned || self.opens != 0
    }

    /// Returns whether the file was found at this name last.
    pub(crate) fn is_at(&self, at: NameAt<'_>) -> bool {
        self.parent == at.dir && *self.name == *at.name
    }

    /// Notes the name at which the file is.
    pub(crate) fn set_place(&mut self, at: NameAt<'_>) {
        self.parent = at.dir;
        if *self.name != *at.name {
            self.name = at.name.into();
        }
    }
}

/// The record of an inode, as the inode's own data ([`vfs::Inode::data`]).
///
/// The number of `Attached` values decides when the record ends, not the number of references to
/// the record: threads that do not have the inode take references for a moment.
#[derive(Debug)]
pub(crate) struct Attached {
    node: Arc<Node>,
    is_ended: AtomicBool,
}

impl Attached {
    /// `state` is the record's.
    pub(crate) fn new(node: Arc<Node>, state: &mut State) -> Self {
        state.inodes += 1;
        state.life = Life::Used;
        Self { node, is_ended: AtomicBool::new(false) }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Ends the inode's use of the record, whose state is `state`. The data end later.
    pub(crate) fn end(&self, state: &mut State) {
        // Relaxed: under the record's lock.
        if !self.is_ended.swap(true, Relaxed) {
            state.inodes -= 1;
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end(&mut self.node.state());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Node>() <= 96, "{}", size_of::<Node>());
    }
}
