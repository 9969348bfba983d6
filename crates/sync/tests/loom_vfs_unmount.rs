//! loom models of a walk that crosses a mount point and takes a reference, against an unmount.
//!
//! `crates/vfs/tests/loom_tree.rs` runs the source itself, with one preemption; here a copy of the few steps that matter has
//! more of them.
//!
//! Mirrors of `crates/vfs/src`: `mount.rs: child_rcu`, `walk.rs: pin` (`to_arc`), `ops/mounting.rs: unmount,
//! unmount_unused`, `mount/attach.rs: detach`. To loom, using a mount after its drop is a data race.
#![cfg(loom)]
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{RcuDomain, RcuOption};
use lightfoot_sync::{PerCpuArc, PerCpuOwner};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

struct Mount {
    alive: UnsafeCell<bool>,
    drops: Arc<AtomicUsize>,
}

// SAFETY: only the drop of the mount writes the cell; loom checks that.
unsafe impl Sync for Mount {}

impl Mount {
    fn look(&self) {
        // SAFETY: see `Sync` above.
        assert!(self.alive.with(|alive| unsafe { *alive }));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // SAFETY: see `Sync` above.
        self.alive.with_mut(|alive| unsafe { *alive = false });
        self.drops.fetch_add(1, Relaxed);
    }
}

type Owned = Arc<PerCpuOwner<Mount>>;

/// The parent mount: one mount point. `children` before `domain`, whose drop waits for its deferred callbacks.
struct Parent {
    children: RcuOption<Owned>,
    domain: RcuDomain,
}

#[derive(PartialEq, Debug)]
struct Busy;

impl Parent {
    fn new() -> (Arc<Self>, Owned, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = RcuDomain::without_reclaimer();
        let mount = Arc::new(PerCpuOwner::new(Mount { alive: UnsafeCell::new(true), drops: drops.clone() }));
        let children = RcuOption::some(&domain, mount.clone());
        (Arc::new(Self { children, domain }), mount, drops)
    }

    /// A walk that crosses the mount point, and holds what it comes to.
    fn cross(&self) -> Option<PerCpuArc<Mount>> {
        let guard = self.domain.read();
        let child = self.children.load(&guard)?.borrow();
        child.get().look();
        let held = child.to_arc();
        child.get().look();
        held
    }

    /// `ops/mounting.rs: unmount_unused`, and what `unmount` does after
    fn unmount(&self, mount: Owned) -> Result<(), Busy> {
        if mount.seal() != 0 {
            mount.unseal();
            self.domain.barrier();
            if mount.seal() != 0 {
                mount.unseal();
                return Err(Busy);
            }
        }
        self.children.set(&self.domain, None);
        drop(mount);
        self.domain.barrier();
        Ok(())
    }
}

fn check(preemptions: usize, model: impl Fn(Arc<Parent>, Owned, Arc<AtomicUsize>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let (parent, mount, drops) = Parent::new();
        model(parent, mount, drops);
    });
}

#[test]
fn a_mount_is_busy_if_a_walk_holds_it_and_gone_if_none_does() {
    check(2, |parent, mount, drops| {
        let walker = {
            let parent = parent.clone();
            thread::spawn(move || parent.cross())
        };
        let unmounted = parent.unmount(mount);
        let held = walker.join().unwrap();
        assert_eq!(unmounted.is_err(), held.is_some());
        assert_eq!(drops.load(Relaxed), usize::from(unmounted.is_ok()));
        if let Some(held) = held {
            held.look();
            drop(held);
            let guard = parent.domain.read();
            let mount = parent.children.load(&guard).unwrap().clone();
            drop(guard);
            assert_eq!(parent.unmount(mount), Ok(()));
            assert_eq!(drops.load(Relaxed), 1);
        }
    });
}

#[test]
fn a_walk_that_comes_and_goes_leaves_nothing_behind() {
    check(2, |parent, mount, drops| {
        let walker = {
            let parent = parent.clone();
            thread::spawn(move || drop(parent.cross()))
        };
        let unmounted = parent.unmount(mount);
        walker.join().unwrap();
        assert!(parent.cross().is_none() == unmounted.is_ok());
        assert_eq!(drops.load(Relaxed), usize::from(unmounted.is_ok()));
    });
}
