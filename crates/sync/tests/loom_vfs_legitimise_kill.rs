//! loom models of taking a count on a dentry that a walk found, against its end and its slot's next life.
//!
//! `crates/vfs/tests/loom_tree.rs` runs the source itself, with one preemption; here a copy of the few steps that matter has
//! more of them.
//!
//! Mirrors of `crates/vfs/src`: `dcache/insert.rs: pin_rcu, pin, unpin, unhash, take_slot, publish`,
//! `dcache/end.rs: release, last_put, bury`. A dentry's identity lies in a tracked cell: to loom, reading it
//! while it changes is a data race.
#![cfg(loom)]
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::{GetNotDead, LockRef, SeqCount};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use loom::thread;

struct Dentry {
    seq: SeqCount,
    count: LockRef,
    /// Which life it is.
    identity: UnsafeCell<u32>,
    buried: AtomicU32,
    /// 1 while the slot is on the free list.
    free: AtomicU32,
}

// SAFETY: the thread that took the slot off the free list writes `identity`, before the slot is alive; loom checks
// that.
unsafe impl Sync for Dentry {}

impl Dentry {
    /// A dentry of the first life, with the count of its name.
    fn new() -> Arc<Self> {
        let zero = || AtomicU32::new(0);
        let (seq, count, identity) = (SeqCount::new(), LockRef::new(1), UnsafeCell::new(1));
        Arc::new(Self { seq, count, identity, buried: zero(), free: zero() })
    }

    fn identity(&self) -> u32 {
        // SAFETY: see `Sync` above.
        self.identity.with(|identity| unsafe { *identity })
    }

    /// `dcache/insert.rs: pin_rcu`: the count first, then the sequence.
    fn pin_rcu(&self, seq: u32) -> bool {
        if !self.pin() {
            return false;
        }
        if self.seq.retry(seq) {
            self.unpin();
            return false;
        }
        true
    }

    fn pin(&self) -> bool {
        match self.count.get_not_dead() {
            GetNotDead::Got => true,
            GetNotDead::Dead => false,
            GetNotDead::DeadLast => {
                self.last_put();
                false
            }
        }
    }

    fn unpin(&self) {
        if self.count.put() {
            self.last_put();
        }
    }

    /// `dcache/end.rs: last_put`
    fn last_put(&self) {
        if self.count.try_kill(0) {
            self.bury();
        }
    }

    fn bury(&self) {
        // No other thread has it: its killer may change it.
        self.identity();
        self.buried.fetch_add(1, Relaxed);
        // ORDERING: AcqRel, with the Acquire in `take_slot` (the slab's free list hands the slot over).
        assert_eq!(self.free.fetch_add(1, AcqRel), 0, "freed twice");
    }

    /// `dcache/insert.rs: unhash`, then `dcache/end.rs: release`
    fn delete(&self) {
        drop(self.seq.write());
        if self.count.try_kill(1) {
            self.bury();
        } else {
            self.unpin();
        }
    }

    /// `dcache/insert.rs: take_slot, publish`, if the slot is free.
    fn take_slot(&self, identity: u32) -> bool {
        // ORDERING: Acquire, pairs with the AcqRel in `bury`.
        if self.free.compare_exchange(1, 0, Acquire, Relaxed).is_err() {
            return false;
        }
        self.seq.write_begin();
        // SAFETY: see `Sync` above.
        self.identity.with_mut(|own| unsafe { *own = identity });
        self.count.revive(1);
        self.seq.write_end();
        true
    }
}

fn check(walkers: usize, remove: fn(&Dentry) -> u32) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if walkers == 1 { 4 } else { 2 });
    builder.max_branches = 20_000;
    builder.check(move || {
        let dentry = Dentry::new();
        let spawn = |_| {
            let dentry = dentry.clone();
            thread::spawn(move || {
                // The walk found it in its first life.
                if dentry.pin_rcu(0) {
                    assert_eq!(dentry.identity(), 1);
                    dentry.unpin();
                }
            })
        };
        let walkers: Vec<_> = (0..walkers).map(spawn).collect();
        let lives = remove(&dentry);
        walkers.into_iter().for_each(|walker| walker.join().unwrap());
        assert_eq!((dentry.count.is_dead(), dentry.count.count()), (true, 0));
        assert_eq!(dentry.buried.load(Relaxed), lives);
    });
}

#[test]
fn a_dentry_that_is_removed_while_walks_take_it_is_buried_once() {
    for walkers in [1, 2] {
        check(walkers, |dentry| {
            dentry.delete();
            1
        });
    }
}

#[test]
fn a_pinned_entry_is_never_another_life_and_each_life_ends_once() {
    check(1, |dentry| {
        dentry.delete();
        let lives = if dentry.take_slot(2) { 2 } else { 1 };
        if lives == 2 {
            dentry.delete();
        }
        lives
    });
}

#[test]
fn a_life_that_goes_on_keeps_its_name_s_count_whoever_strays_in() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let dentry = Dentry::new();
        let walker = {
            let dentry = dentry.clone();
            thread::spawn(move || dentry.pin_rcu(0).then(|| dentry.unpin()))
        };
        dentry.delete();
        let revived = dentry.take_slot(2);
        walker.join().unwrap();
        assert_eq!(dentry.count.is_dead(), !revived);
        assert_eq!(dentry.count.count(), u32::from(revived));
    });
}
