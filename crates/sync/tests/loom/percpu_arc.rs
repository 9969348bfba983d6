//! loom models of `PerCpuArc`. The drop of the value is a mutable access to a tracked cell, so a reference that
//! outlives it is a data race for loom, and a reference that is lost is a leak.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::{PerCpuArc, PerCpuOwner};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(model);
}

struct Canary {
    alive: UnsafeCell<bool>,
    drops: Arc<AtomicUsize>,
}

// SAFETY: the cell is written when the canary is dropped only.
unsafe impl Sync for Canary {}

impl Canary {
    fn new() -> (PerCpuOwner<Self>, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        (PerCpuOwner::new(Self { alive: UnsafeCell::new(true), drops: drops.clone() }, false), drops)
    }

    fn look(&self) {
        // SAFETY: see `Sync` above.
        assert!(self.alive.with(|alive| unsafe { *alive }));
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        // SAFETY: see `Sync` above.
        self.alive.with_mut(|alive| unsafe { *alive = false });
        self.drops.fetch_add(1, Relaxed);
    }
}

fn spawn_user(share: PerCpuArc<Canary>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        share.look();
        drop(share);
    })
}

#[test]
fn the_value_is_dropped_once_after_the_last_use() {
    check(|| {
        let (owner, drops) = Canary::new();
        let user = spawn_user(owner.share());
        drop(owner);
        user.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_reference_may_be_cloned_while_the_owner_goes() {
    check(|| {
        let (owner, drops) = Canary::new();
        let share = owner.share();
        let user = thread::spawn(move || {
            let other = share.clone();
            drop(share);
            other.look();
        });
        drop(owner);
        user.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn the_last_of_two_users_drops_the_value() {
    check(|| {
        let (owner, drops) = Canary::new();
        let shares = [owner.share(), owner.share()];
        drop(owner);
        assert_eq!(drops.load(Relaxed), 0);
        let users = shares.map(spawn_user);
        for user in users {
            user.join().unwrap();
        }
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn two_users_race_with_the_owner() {
    check(|| {
        let (owner, drops) = Canary::new();
        let users = [spawn_user(owner.share()), spawn_user(owner.share())];
        drop(owner);
        for user in users {
            user.join().unwrap();
        }
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// Takes a reference through a borrow of the owner, if it gets one, and uses it.
fn spawn_asker(owner: &Arc<PerCpuOwner<Canary>>) -> thread::JoinHandle<Option<PerCpuArc<Canary>>> {
    let owner = owner.clone();
    thread::spawn(move || {
        let taken = owner.borrow().to_arc();
        if let Some(share) = &taken {
            share.look();
        }
        taken
    })
}

#[test]
fn a_seal_counts_what_was_asked_for_before_and_refuses_the_rest() {
    check(|| {
        let (owner, drops) = Canary::new();
        let owner = Arc::new(owner);
        let asker = spawn_asker(&owner);
        let counted = owner.seal();
        let taken = asker.join().unwrap();
        assert_eq!(counted, i64::from(taken.is_some()));
        assert!(owner.borrow().to_arc().is_none());
        drop(taken);
        assert_eq!(owner.seal(), 0);
        owner.unseal();
        assert!(owner.borrow().to_arc().is_some());
        drop(owner);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_sealer_that_finds_no_reference_sees_what_the_holders_did() {
    check(|| {
        let (owner, drops) = Canary::new();
        let user = spawn_user(owner.share());
        if owner.seal() == 0 {
            // SAFETY: no reference is left, and none can be made but from `owner`. (loom checks it.)
            owner.alive.with_mut(|alive| unsafe { *alive = true });
        }
        user.join().unwrap();
        drop(owner);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn references_are_counted_right_across_a_seal_and_its_end() {
    check(|| {
        let (owner, drops) = Canary::new();
        let share = owner.share();
        let user = thread::spawn(move || {
            let other = share.clone();
            drop(share);
            other
        });
        assert!(owner.seal() >= 1);
        owner.unseal();
        let other = user.join().unwrap();
        assert_eq!(owner.seal(), 1);
        drop(owner);
        assert_eq!(drops.load(Relaxed), 0);
        drop(other);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_sealed_owner_may_go_before_a_user() {
    check(|| {
        let (owner, drops) = Canary::new();
        let user = spawn_user(owner.share());
        let _ = owner.seal();
        drop(owner);
        user.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}
