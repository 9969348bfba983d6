//! loom models of the read side, of grace periods and of the cells. Freeing is a mutable access to a tracked cell, so
//! a use after free is a data race for loom.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{Rcu, RcuDomain, RcuOption};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use loom::thread;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Two objects of which one is current, and what guards them.
struct World {
    domain: RcuDomain,
    current: AtomicUsize,
    objects: [UnsafeCell<u32>; 2],
}

// SAFETY: object 0 is written when no reader has it, and object 1 before any reader has it; loom checks that.
unsafe impl Sync for World {}

impl World {
    fn new() -> Arc<Self> {
        let objects = [UnsafeCell::new(1), UnsafeCell::new(0)];
        Arc::new(Self { domain: RcuDomain::without_reclaimer(), current: AtomicUsize::new(0), objects })
    }

    /// Reads the current object; the caller is in a section.
    fn look(&self) -> u32 {
        // SAFETY: see `Sync` above.
        self.objects[self.current.load(Acquire)].with(|object| unsafe { *object })
    }

    /// Makes object 1 current; object 0 is then out of reach of later readers.
    fn replace(&self) {
        // SAFETY: see `Sync` above.
        self.objects[1].with_mut(|object| unsafe { *object = 2 });
        self.current.store(1, Release);
    }

    fn free_first(&self) {
        // SAFETY: see `Sync` above.
        self.objects[0].with_mut(|object| unsafe { *object = 0 });
    }
}

#[test]
fn an_object_is_not_freed_under_a_reader() {
    check(|| {
        let world = World::new();
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let _guard = world.domain.read();
                assert_ne!(world.look(), 0);
            })
        };
        world.replace();
        world.domain.synchronize();
        world.free_first();
        reader.join().unwrap();
    });
}

#[test]
fn a_reader_that_comes_back_has_finished_its_first_section() {
    check(|| {
        let world = World::new();
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let _guard = world.domain.read();
                    assert_ne!(world.look(), 0);
                }
            })
        };
        world.replace();
        world.domain.synchronize();
        world.free_first();
        reader.join().unwrap();
    });
}

#[test]
fn sections_nest_and_may_end_in_any_order() {
    check(|| {
        let world = World::new();
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let outer = world.domain.read();
                let inner = world.domain.read();
                drop(outer);
                assert_ne!(world.look(), 0);
                drop(inner);
            })
        };
        world.replace();
        world.domain.synchronize();
        world.free_first();
        reader.join().unwrap();
    });
}

/// Counts its drops, and is written by them.
struct Canary {
    alive: UnsafeCell<bool>,
    drops: Arc<AtomicUsize>,
}

// SAFETY: the cell is written when the canary is dropped only.
unsafe impl Sync for Canary {}

impl Canary {
    fn new(drops: &Arc<AtomicUsize>) -> Self {
        Self { alive: UnsafeCell::new(true), drops: drops.clone() }
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

#[test]
fn a_replaced_value_is_dropped_after_its_readers() {
    check(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = RcuDomain::without_reclaimer();
        let world = Arc::new((Rcu::new(&domain, Canary::new(&drops)), domain));
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                let guard = world.1.read();
                world.0.load(&guard).look();
            })
        };
        world.0.replace(&world.1, Canary::new(&drops));
        world.1.barrier();
        assert_eq!(drops.load(Relaxed), 1);
        reader.join().unwrap();
        drop(world);
        assert_eq!(drops.load(Relaxed), 2);
    });
}

#[test]
fn a_value_that_another_thread_put_in_is_dropped_whole() {
    check(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = RcuDomain::without_reclaimer();
        let world = Arc::new((RcuOption::none(&domain), domain));
        let writer = {
            let (world, drops) = (world.clone(), drops.clone());
            thread::spawn(move || world.0.set(&world.1, Some(Canary::new(&drops))))
        };
        world.0.set_sized(&world.1, None, |canary| {
            canary.look();
            0
        });
        world.1.barrier();
        writer.join().unwrap();
        drop(world);
        assert_eq!(drops.load(Relaxed), 1);
    });
}
