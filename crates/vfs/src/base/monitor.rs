//! A value that threads wait for.
//!
//! # How it is locked
//! One mutex guards the value; it is a leaf. A waiter reads `changes` under the mutex, and parks
//! while `changes` is unchanged. A thread that changes the value also changes `changes` under the
//! mutex, and then wakes the waiters, if it saw any there. So no wake is lost, and relaxed accesses
//! suffice: the mutex orders them.
//!
//! # Where it comes from
//! C. A. R. Hoare, "Monitors: an operating system structuring concept" (1974).

use crate::base::deadline::Deadline;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use sync::Mutex;

/// See the [module documentation](self).
pub(crate) struct Monitor<T> {
    guarded: Mutex<Guarded<T>>,
    /// Counts the changes. A waiter misses one only if exactly 2^32 come between its look under the mutex and its park.
    changes: AtomicU32,
}

struct Guarded<T> {
    value: T,
    /// Threads that are parked, or about to park.
    sleepers: usize,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { guarded: Mutex::new(Guarded { value, sleepers: 0 }), changes: AtomicU32::new(0) }
    }

    /// Changes the value, or looks at it, and wakes all waiting threads.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.change_and(change, park::unpark_all)
    }

    /// As `change`, but wakes one waiting thread.
    pub(crate) fn change_for_one<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.change_and(change, park::unpark_one)
    }

    /// As `change`, where no thread waits for this change.
    pub(crate) fn change_silently<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.change_and(change, |_| ())
    }

    fn change_and<R>(&self, change: impl FnOnce(&mut T) -> R, wake: impl FnOnce(&AtomicU32)) -> R {
        let mut guarded = self.guarded.lock();
        let result = change(&mut guarded.value);
        self.changes.fetch_add(1, Relaxed);
        let has_sleepers = guarded.sleepers > 0;
        drop(guarded);
        if has_sleepers {
            wake(&self.changes);
        }
        result
    }

    /// Waits until `look` returns something, at most until the deadline: then returns `None`, after a last look.
    pub(crate) fn wait<R>(&self, deadline: Deadline, mut look: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let mut has_time = true;
        let mut guarded = self.guarded.lock();
        loop {
            let found = look(&mut guarded.value);
            if found.is_some() || !has_time {
                return found;
            }
            guarded.sleepers += 1;
            let before = self.changes.load(Relaxed);
            drop(guarded);
            has_time = deadline.park(&self.changes, before);
            guarded = self.guarded.lock();
            guarded.sleepers -= 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> usize {
        self.guarded.lock().sleepers
    }
}
