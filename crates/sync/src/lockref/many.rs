//! Several references at a time.
//!
//! # How it is locked
//! As [`lockref`](super).
//!
//! # Where it comes from
//! As [`lockref`](super).

use super::{ALIVE, LIMIT, LockRef, ONE, OVERFLOW, UNDERFLOW, references};
use prim::atomic::Ordering::{Relaxed, Release};

impl LockRef {
    /// Adds `count` references. The caller holds one already, so the object stays alive. Panics at 2^31 references.
    pub fn get_more(&self, count: u32) {
        let more = references(count);
        // Relaxed: the caller's own reference orders everything before these.
        let old = self.0.fetch_add(more, Relaxed);
        if old >= LIMIT - more {
            self.refuse(more.wrapping_neg(), OVERFLOW);
        }
        debug_assert!(old & ALIVE != 0, "get of a dead object");
    }

    /// Puts `count` references of the caller, which keeps another one. Panics if there are not so many.
    pub fn put_more(&self, count: u32) {
        let more = references(count);
        // ORDERING: Release pairs with the Acquire in `try_kill` and `mark_dead`: a thread that has the object alone sees what these
        // holders did.
        let old = self.0.fetch_sub(more, Release);
        if old < more + ONE {
            self.refuse(more, UNDERFLOW);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn many_references_come_and_go_as_one_does() {
        let d = LockRef::new(1);
        d.get_more(5);
        d.get_more(0);
        assert_eq!(d.count(), 6);
        d.put_more(3);
        assert!(!d.try_kill(2) && d.try_kill(3));
    }

    #[test]
    fn more_than_there_may_be_or_are_is_refused() {
        let d = LockRef::new(1);
        assert!(catch_unwind(|| d.get_more((1 << 31) - 1)).is_err());
        assert_eq!(d.count(), 1);
        assert!(catch_unwind(|| d.put_more(1)).is_err(), "the caller keeps one");
        assert_eq!(d.count(), 1);
        d.get_more((1 << 31) - 3);
        assert_eq!(d.count(), (1 << 31) - 2);
    }
}
