//! loom models of `Slab`: visits of all items while a thread makes some. To loom, reading an item before it was written
//! is a data race.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::slab::SlabCursor;
use lightfoot_sync::{Item, Slab};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicPtr;
use loom::thread;

/// Large, so that a chunk has few batches, and so few flags.
struct Thing {
    made: UnsafeCell<u32>,
    _room: [u32; 1 << 11],
}

// SAFETY: the cell is written when the item is made only.
unsafe impl Sync for Thing {}

// SAFETY: the link is a word of the side, which nothing else uses.
unsafe impl Item for Thing {
    type Side = AtomicPtr<Thing>;

    fn vacant() -> (Self, Self::Side) {
        let made = UnsafeCell::new(0);
        // SAFETY: no other thread has it yet.
        made.with_mut(|made| unsafe { *made = 7 });
        (Self { made, _room: [0; 1 << 11] }, AtomicPtr::default())
    }

    fn free_link(side: &Self::Side) -> &AtomicPtr<Self> {
        side
    }
}

fn look(thing: &Thing) {
    // SAFETY: see `Sync` above.
    assert_eq!(thing.made.with(|made| unsafe { *made }), 7);
}

fn check(visit: fn(&Slab<Thing>) -> usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(move || {
        let slab = Arc::new(Slab::new());
        let maker = {
            let slab = slab.clone();
            thread::spawn(move || look(slab.alloc()))
        };
        let visited = visit(&slab);
        assert!(visited == 0 || visited == 1);
        maker.join().unwrap();
        assert_eq!(visit(&slab), 1);
    });
}

#[test]
fn a_visitor_of_every_item_sees_it_as_it_was_made() {
    check(|slab| {
        let mut visited = 0;
        slab.for_each(|thing| {
            look(thing);
            visited += 1;
        });
        visited
    });
}

#[test]
fn a_scan_sees_items_as_they_were_made() {
    check(|slab| slab.scan(&SlabCursor::default(), 100, look));
}
