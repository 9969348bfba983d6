//! The gate of a fork, which each change passes and a new fork or a commit closes; and the end of nodes without names.
//!
//! # How it is locked
//! A lock that holds off an image of the store, then the gate. The end of a node waits for neither: see [`State::evict`].

use crate::state::{State, give_back};
use parking_lot::{Mutex, RwLockReadGuard, RwLockWriteGuard};
use prim::atomic::{AtomicBool, Ordering::Relaxed};

/// Nodes whose inodes were evicted while the gate was closed.
#[derive(Default)]
pub(crate) struct LateEnds {
    nodes: Mutex<Vec<u64>>,
    /// Whether there are any. Written under the lock.
    is_used: AtomicBool,
}

/// The closed gate of a fork, and the lock that holds off an image.
pub(crate) type Closed<'s> = (Option<RwLockReadGuard<'s, ()>>, RwLockWriteGuard<'s, ()>);

impl State {
    /// Holds off an image of the store, during a change.
    fn pause(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.shared.upper.as_ref().map(|upper| upper.pause.read())
    }

    /// Closes the gate: no change runs until the result is dropped.
    pub(crate) fn close(&self) -> Closed<'_> {
        let closed = (self.pause(), self.gate.write());
        self.end_late();
        closed
    }

    /// Notes that the inode of a node was evicted: ends a node without names. It does not wait at the gate. The caller may have closed
    /// it, or may evict for another fork whose directory it has locked. So if the gate is closed, the next change or eviction ends the node.
    pub(crate) fn evict(&self, node: u64) {
        // A new fork begins with the use of this one: before or after the end.
        let pause = self.shared.upper.as_ref().map(|upper| upper.pause.try_read());
        let inside = if matches!(pause, Some(None)) { None } else { self.gate.try_read() };
        if inside.is_some() {
            self.end_late();
            self.end(node);
        } else {
            let mut late = self.late_ends.nodes.lock();
            late.push(node);
            // Relaxed: the lock orders the nodes; a change that does not see the flag leaves them to the next one.
            self.late_ends.is_used.store(true, Relaxed);
        }
        self.held.lock().evicted(node);
    }

    /// Ends the nodes whose inodes were evicted while the gate was closed. The caller has passed or closed it.
    fn end_late(&self) {
        // Relaxed: as above.
        if self.late_ends.is_used.load(Relaxed) {
            let mut late = self.late_ends.nodes.lock();
            self.late_ends.is_used.store(false, Relaxed);
            core::mem::take(&mut *late).into_iter().for_each(|node| self.end(node));
        }
    }

    /// Ends a node, if it has no names.
    fn end(&self, node: u64) {
        let ended = {
            let mut tree = self.tree.lock();
            let before = tree.bytes;
            let ended = tree.end(node);
            self.usage.settle(before, tree.bytes);
            ended
        };
        if let Some(ended) = ended {
            give_back(&self.usage, &ended);
        }
    }

    /// Passes the gate for one change.
    pub(crate) fn enter(&self) -> (Option<RwLockReadGuard<'_, ()>>, RwLockReadGuard<'_, ()>) {
        let passed = (self.pause(), self.gate.read());
        self.end_late();
        passed
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fork, ForkLimits};
    use vfs::{Base, OpenFlags, Vfs};

    #[test]
    fn the_last_close_of_a_removed_file_does_not_wait_at_the_gate() {
        let base = Vfs::new(ramfs::RamFs::new());
        let trunk = Fork::over(base.context(), true).unwrap();
        let fork = trunk.fork(ForkLimits::default()).unwrap();
        let tree = Vfs::new(fork.file_system());
        let context = tree.context();
        let before = fork.0.usage.now();
        for ends_by_change in [true, false] {
            let file = context.open(Base::CWD, b"/a", OpenFlags::RDWR.union(OpenFlags::CREAT), 0o600).unwrap();
            file.write_at(0, b"text").unwrap();
            context.unlink(Base::CWD, b"/a").unwrap();
            let closed = fork.0.close();
            drop(file);
            assert_ne!(fork.0.usage.now(), before, "it ends inside of the closed gate");
            drop(closed);
            if ends_by_change {
                context.mkdir(Base::CWD, b"/d", 0o700).unwrap();
                context.rmdir(Base::CWD, b"/d").unwrap();
            } else {
                drop(fork.0.close());
            }
            assert_eq!(fork.0.usage.now().1, before.1);
        }
    }
}
