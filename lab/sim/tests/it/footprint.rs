//! Footprints: which lines an operation touches, and on which two of them conflict.

use super::small::{config, machine};
use lightfoot_sim::Kind;
use lightfoot_sim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lightfoot_sim::footprint::{Footprint, record};
use std::cell::RefCell;
use std::rc::Rc;

#[repr(align(64))]
#[derive(Default)]
struct Lines {
    first: [AtomicU64; 8],
    second: [AtomicU64; 8],
}

/// The footprints of two operations.
fn footprints(ours: fn(&Lines), theirs: fn(&Lines)) -> (Footprint, Footprint) {
    let both = Rc::new(RefCell::new((Footprint::default(), Footprint::default())));
    let result = Rc::clone(&both);
    lightfoot_sim::run(config(machine()), Lines::default, move |lines, thread| {
        // Recorded on one thread and on another: lines are the same.
        match thread {
            0 => result.borrow_mut().0 = record(|| ours(lines)).1,
            1 => result.borrow_mut().1 = record(|| theirs(lines)).1,
            _ => lines.first[0].store(1, Relaxed),
        }
    });
    both.take()
}

#[test]
fn a_footprint_holds_each_line_with_what_was_done_to_it_and_where() {
    let (footprint, _) = footprints(
        |lines| {
            lines.first[0].load(Relaxed);
            lines.first[3].fetch_add(1, Relaxed);
            lines.second[1].load(Relaxed);
            lightfoot_sim::uncharged(|| lines.second[2].store(1, Relaxed));
        },
        |_| {},
    );
    assert_eq!((footprint.lines(), footprint.written()), (2, 1));
    let touches: Vec<_> = footprint.iter().flat_map(|(_, touches)| touches.iter().copied()).collect();
    let kinds: Vec<Kind> = touches.iter().map(|touch| touch.kind).collect();
    assert_eq!(kinds, [Kind::Load, Kind::Rmw, Kind::Load]);
    assert!(touches.iter().all(|touch| touch.file.ends_with("footprint.rs")), "{touches:?}");
    assert_eq!(touches[1].line, touches[0].line + 1, "each has its own place in the source");
}

#[test]
fn operations_conflict_on_lines_that_one_writes_and_the_other_touches() {
    type Operation = fn(&Lines);
    let load: Operation = |lines| {
        lines.first[0].load(Relaxed);
    };
    let load_beside: Operation = |lines| {
        lines.first[1].load(Relaxed);
    };
    let store: Operation = |lines| lines.first[0].store(1, Relaxed);
    let store_far: Operation = |lines| lines.second[0].store(1, Relaxed);
    for (what, ours, theirs, conflicts, is_false) in [
        ("two loads", load, load, 0, false),
        ("load and store", load, store, 1, false),
        ("store and load", store, load, 1, false),
        ("two stores", store, store, 1, false),
        ("store and a load of another word", store, load_beside, 1, true),
        ("stores to two lines", store, store_far, 0, false),
    ] {
        let (ours, theirs) = footprints(ours, theirs);
        let found = ours.conflicts(&theirs);
        assert_eq!(found.len(), conflicts, "{what}: {found:?}");
        assert_eq!(found.iter().any(|conflict| conflict.is_false_sharing()), is_false, "{what}: {found:?}");
    }
}

#[test]
fn a_spinlock_writes_its_line_and_a_read_section_of_rcu_only_lines_of_its_own() {
    let both = Rc::new(RefCell::new(vec![Footprint::default(); 2]));
    let result = Rc::clone(&both);
    lightfoot_sim::run(
        config(machine()),
        || {
            let domain = sync_sim::rcu::RcuDomain::new();
            (sync_sim::rcu::RcuOption::some(&domain, AtomicU32::new(3)), domain)
        },
        move |(cell, domain), thread| {
            let read = || {
                let guard = domain.read();
                cell.load(&guard).map(|value| value.load(Relaxed))
            };
            if thread < 2 {
                read();
                let (value, footprint) = record(read);
                assert_eq!(value, Some(3));
                result.borrow_mut()[thread] = footprint;
            }
        },
    );
    let both = both.take();
    assert_eq!(both[0].conflicts(&both[1]), []);
    assert!(both[0].written() > 0 && both[0].lines() > both[0].written(), "{both:?}");
}
