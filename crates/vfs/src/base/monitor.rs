//! A value that threads wait for.
//!
//! # How it is locked
//! One mutex guards the value; it is a leaf. A waiter reads `changes` under the mutex, and parks
//! while `changes` is unchanged. A thread that changes the value also changes `changes` under the
//! mutex, and then wakes the waiters. So no wake is lost, and relaxed accesses suffice: the mutex
//! orders them.
//!
//! # Where it comes from
//! C. A. R. Hoare, "Monitors: an operating system structuring concept" (1974).

use crate::base::deadline::Deadline;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use sync::Mutex;

/// See the [module documentation](self).
pub(crate) struct Monitor<T> {
    value: Mutex<T>,
    /// Counts the changes. A waiter misses one only if exactly 2^32 come between its look under the mutex and its park.
    changes: AtomicU32,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changes: AtomicU32::new(0) }
    }

    /// Changes the value, or looks at it, and wakes all waiting threads.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = self.change_silently(change);
        park::unpark_all(&self.changes);
        result
    }

    /// As `change`, but wakes one waiting thread.
    pub(crate) fn change_for_one<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = self.change_silently(change);
        park::unpark_one(&self.changes);
        result
    }

    /// As `change`, where no thread waits for this change.
    pub(crate) fn change_silently<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.value.lock();
        let result = change(&mut value);
        self.changes.fetch_add(1, Relaxed);
        result
    }

    /// Waits until `look` returns something, at most until the deadline: then returns `None`, after a last look.
    pub(crate) fn wait<R>(&self, deadline: Deadline, mut look: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let mut has_time = true;
        loop {
            let mut value = self.value.lock();
            let found = look(&mut value);
            if found.is_some() || !has_time {
                return found;
            }
            let before = self.changes.load(Relaxed);
            drop(value);
            has_time = deadline.park(&self.changes, before);
        }
    }
}
