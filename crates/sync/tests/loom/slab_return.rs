//! loom models of the return of a slab's memory: a reader that found an item, against the thread that frees it and the
//! grace period after which the item's words become zeros; and the counts of items that are used again.
//!
//! The word that a reader reads is a tracked cell, which the return writes: to loom, a return without a grace period,
//! and a later user that does not see the return, are data races.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::RcuDomain;
use lightfoot_sync::{Item, Slab};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicPtr, AtomicU32};
use loom::thread;

/// Large, so that a chunk has few batches, and so few flags.
struct Thing {
    /// What a reader compares: never goes back.
    count: AtomicU32,
    /// The life of the item: its user writes it; zero while the item is vacant.
    life: UnsafeCell<u32>,
    _room: [u32; 1 << 11],
}

// SAFETY: the only user of an item, and the return of its memory, write `life`; loom checks it.
unsafe impl Sync for Thing {}

// SAFETY: the link is a word of the side, which nothing else uses. Nothing here owns anything.
unsafe impl Item for Thing {
    type Side = AtomicPtr<Thing>;
    const RETURNS: bool = true;

    fn vacant() -> (Self, Self::Side) {
        (Self { count: AtomicU32::new(0), life: UnsafeCell::new(0), _room: [0; 1 << 11] }, AtomicPtr::default())
    }

    fn free_link(side: &Self::Side) -> &AtomicPtr<Self> {
        side
    }

    fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    fn raise_above(&self, count: u32) {
        if self.count.load(Relaxed) <= count {
            self.count.store(count + 1, Relaxed);
        }
    }

    fn clear(&self, _side: &Self::Side) {
        self.count.store(0, Relaxed);
        self.set_life(0);
    }
}

impl Thing {
    fn life(&self) -> u32 {
        // SAFETY: see `Sync` above.
        self.life.with(|life| unsafe { *life })
    }

    fn set_life(&self, to: u32) {
        // SAFETY: see `Sync` above.
        self.life.with_mut(|life| unsafe { *life = to });
    }
}

/// Items that make a slab return a group under loom: four are a group, and a magazine keeps two.
const ITEMS: usize = 6;

struct Case {
    slab: Slab<Thing>,
    domain: RcuDomain,
    /// Where a reader finds an item.
    place: AtomicPtr<Thing>,
}

impl Case {
    /// A slab with items in use, one of them in its place.
    fn new() -> (Arc<Self>, Vec<*mut Thing>) {
        let (slab, domain) = (Slab::new(), RcuDomain::without_reclaimer());
        let items: Vec<*mut Thing> = (0..ITEMS).map(|_| begin(slab.alloc())).collect();
        let place = AtomicPtr::new(items[0]);
        (Arc::new(Self { slab, domain, place }), items)
    }

    /// Takes the item out of its place and frees all; then, if nobody reads it, its memory returns.
    fn end(&self, items: &[*mut Thing]) {
        self.place.store(core::ptr::null_mut(), Relaxed);
        for &item in items {
            // SAFETY: taken from this slab, and freed once; readers are in sections of the domain.
            unsafe { self.slab.free(&self.domain, &*item) };
        }
    }
}

/// Begins a life of an item that was just allocated.
fn begin(item: &Thing) -> *mut Thing {
    let count = item.count.load(Relaxed) + 1;
    item.count.store(count, Relaxed);
    item.set_life(count);
    core::ptr::from_ref(item).cast_mut()
}

fn check(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 50_000;
    builder.check(body);
}

#[test]
fn a_reader_that_found_an_item_reads_it_until_its_section_ends() {
    check(|| {
        let (case, items) = Case::new();
        let reader = {
            let case = case.clone();
            thread::spawn(move || {
                let _guard = case.domain.read();
                let item = case.place.load(Acquire);
                if !item.is_null() {
                    // SAFETY: items stay for as long as the slab.
                    assert_ne!(unsafe { &*item }.life(), 0, "its memory was returned under the reader");
                }
            })
        };
        case.end(&items);
        case.domain.barrier();
        // SAFETY: as above.
        assert_eq!(unsafe { &*items[0] }.count.load(Relaxed), 0, "the memory was returned");
        reader.join().unwrap();
    });
}

#[test]
fn an_item_whose_memory_was_returned_gets_a_count_above_all_former_ones() {
    check(|| {
        let (case, items) = Case::new();
        let user = {
            let case = case.clone();
            thread::spawn(move || {
                // From fresh memory, from a group that another thread freed, or from one that was returned.
                let item = case.slab.alloc();
                let life = item.life();
                let now = item.count.load(Relaxed);
                assert!(now >= life, "the count {now} of life {life} goes back");
                begin(item);
                case.place.store(core::ptr::from_ref(item).cast_mut(), Release);
            })
        };
        case.end(&items);
        case.domain.barrier();
        user.join().unwrap();
        for _ in 0..ITEMS {
            let item = case.slab.alloc();
            let was_used = items.contains(&core::ptr::from_ref(item).cast_mut());
            assert!(!was_used || item.count.load(Relaxed) != 0, "the count of an item goes back");
            begin(item);
        }
    });
}
