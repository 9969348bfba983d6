//! loom models of a lookup in rcu-walk against a rename, an exchange, and the reuse of a slot.
//!
//! `crates/vfs/tests/loom_tree.rs` runs the source itself, with one preemption; here a copy of the few steps that matter has
//! more of them.
//!
//! Mirrors of `crates/vfs/src`, step by step, on the same primitives:
//! `walk/rcu_walk.rs: find, run, miss`, `dcache/moving.rs: move_entry, exchange_entries, in_motion`,
//! `dcache/insert.rs: unhash, take_slot, publish`, `dcache/dentry.rs: set_entry, retire_name, is_short`.
#![cfg(loom)]
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{RcuDomain, ReadGuard};
use lightfoot_sync::{HashNode, HashTable, SeqCount, SeqLock};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

/// Directories and names are numbers; no name is 0.
type Name = (u32, u32);

struct Entry {
    next: AtomicUsize,
    seq: SeqCount,
    parent: AtomicU32,
    name: AtomicU32,
    object: AtomicU32,
}

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Entry {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, (): &(), _guard: &ReadGuard<'_>) -> u64 {
        chain((self.parent.load(Relaxed), self.name.load(Relaxed)))
    }
}

/// Which chain an entry is filed on: names 1 and 2 of directory 0 on two.
fn chain((parent, name): Name) -> u64 {
    u64::from(if parent == 0 { name } else { parent + 1 })
}

impl Entry {
    fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self { next: AtomicUsize::new(0), seq: SeqCount::new(), parent: zero(), name: zero(), object: zero() }
    }

    /// `dcache/dentry.rs: set_entry`; the name first, as there.
    fn set_entry(&self, (parent, name): Name) {
        self.name.store(name, Relaxed);
        self.parent.store(parent, Relaxed);
    }

    /// `dcache/dentry.rs: is_short`
    fn is(&self, (parent, name): Name) -> bool {
        self.name.load(Relaxed) == name && self.parent.load(Relaxed) == parent
    }
}

/// A walk's result.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    Found { entry: usize, seq: u32, object: u32 },
    NoEntry,
    Trouble,
}

/// One tree; fields drop in order, the entries after the table.
struct Tree {
    table: HashTable<Entry>,
    entries: [Entry; 2],
    /// The sequence of the directory 0.
    dir_seq: SeqCount,
    renames: SeqLock,
    domain: RcuDomain,
}

impl Tree {
    /// Entry `n` has the `n`th name and object `n + 1`.
    fn new(names: &[Name]) -> Arc<Self> {
        // Where they stay: entries are linked by address.
        let domain = RcuDomain::without_reclaimer();
        let tree = Arc::new(Self {
            table: HashTable::new(&domain, 4, ()),
            entries: [Entry::new(), Entry::new()],
            dir_seq: SeqCount::new(),
            renames: SeqLock::new(),
            domain,
        });
        for (entry, (name, object)) in tree.entries.iter().zip(names.iter().zip(1..)) {
            tree.publish(entry, *name, object);
        }
        tree
    }

    fn link(&self, entry: &Entry, at: Name) {
        // SAFETY: entries outlive the table; the models link what is on no chain, under the hash of its name.
        unsafe { self.table.insert(&self.domain, &self.domain.read(), entry, chain(at)) };
    }

    fn unlink(&self, entry: &Entry, at: Name) {
        assert!(self.table.remove(&self.domain, &self.domain.read(), entry, chain(at)));
    }

    /// `dcache/insert.rs: take_slot, publish`
    fn publish(&self, entry: &Entry, name: Name, object: u32) {
        entry.seq.write_begin();
        entry.set_entry(name);
        // ORDERING: Release, pairs with the Acquire in `find` and `miss` (`dcache/dentry.rs: set_object`).
        entry.object.store(object, Release);
        entry.seq.write_end();
        self.link(entry, name);
    }

    /// `dcache/insert.rs: unhash`, with `dcache/dentry.rs: retire_name`
    fn unhash(&self, entry: &Entry, name: Name) {
        entry.seq.write_begin();
        entry.name.store(0, Relaxed);
        self.unlink(entry, name);
        entry.seq.write_end();
    }

    /// `dcache/moving.rs: move_entry`
    fn rename(&self, entry: &Entry, old: Name, new: Name) {
        let _motion = self.renames.write_lock();
        entry.seq.write_begin();
        self.unlink(entry, old);
        entry.set_entry(new);
        self.link(entry, new);
        entry.seq.write_end();
    }

    /// `dcache/moving.rs: exchange_entries`
    fn exchange(&self, at_a: Name, at_b: Name) {
        let [a, b] = &self.entries;
        let _motion = self.renames.write_lock();
        a.seq.write_begin();
        b.seq.write_begin();
        self.unlink(a, at_a);
        self.unlink(b, at_b);
        a.set_entry(at_b);
        b.set_entry(at_a);
        self.link(a, at_b);
        self.link(b, at_a);
        b.seq.write_end();
        a.seq.write_end();
    }

    fn index(&self, entry: &Entry) -> usize {
        self.entries.iter().position(|own| core::ptr::eq(own, entry)).unwrap()
    }

    /// `walk/rcu_walk.rs: find` and the rest of a step in `run`
    fn find(&self, name: Name, dir_seq: u32) -> Step {
        let guard = self.domain.read();
        let mut seq = 0;
        let found = self.table.view(&guard).find(
            chain(name),
            |_| (),
            |entry| {
                seq = entry.seq.raw_begin();
                entry.is(name)
            },
        );
        let Some(entry) = found else { return Step::NoEntry };
        // ORDERING: Acquire, pairs with the Release in `publish`.
        let object = entry.object.load(Acquire);
        if self.dir_seq.retry(dir_seq) {
            return Step::Trouble;
        }
        Step::Found { entry: self.index(entry), seq, object }
    }

    /// `walk/rcu_walk.rs: miss`, in a directory that is complete
    fn miss(&self, name: Name, dir_seq: u32) -> Step {
        let started = self.renames.raw_begin();
        let guard = self.domain.read();
        let mut seq = 0;
        let found = self.table.find_slow(&guard, chain(name), |entry| {
            seq = entry.seq.raw_begin();
            entry.is(name)
        });
        // ORDERING: Acquire, pairs with the Release in `publish`.
        let object = found.map_or(0, |entry| entry.object.load(Acquire));
        if self.dir_seq.retry(dir_seq) {
            return Step::Trouble;
        }
        if let Some(entry) = found {
            return Step::Found { entry: self.index(entry), seq, object };
        }
        if self.renames.read_retry(started) { Step::Trouble } else { Step::NoEntry }
    }

    /// A walk to `name` from the directory as it was at `dir_seq`, and the last check of what it ended on.
    fn walk(&self, name: Name, dir_seq: u32) -> Step {
        let step = match self.find(name, dir_seq) {
            Step::NoEntry => self.miss(name, dir_seq),
            step => step,
        };
        match step {
            Step::Found { entry, seq, .. } if self.entries[entry].seq.retry(seq) => Step::Trouble,
            step => step,
        }
    }
}

fn check(names: &'static [Name], write: fn(&Tree), walk: impl Fn(&Tree) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(move || {
        let tree = Tree::new(names);
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || write(&tree))
        };
        walk(&tree);
        writer.join().unwrap();
    });
}

#[test]
fn no_entry_is_taken_under_a_name_and_parent_that_it_had_at_no_one_moment() {
    for wanted in [(0, 2), (1, 1)] {
        check(
            &[(0, 1)],
            |tree| tree.rename(&tree.entries[0], (0, 1), (1, 2)),
            move |tree| assert!(!matches!(tree.walk(wanted, 0), Step::Found { .. }), "{wanted:?}"),
        );
    }
}

#[test]
fn an_entry_is_not_taken_half_renamed_within_its_chain() {
    // Both names are on one chain, so that a walk stands on the entry while name and parent change.
    check(
        &[(1, 1)],
        |tree| tree.rename(&tree.entries[0], (1, 1), (2, 2)),
        |tree| {
            for wanted in [(1, 2), (2, 1)] {
                assert!(!matches!(tree.walk(wanted, 0), Step::Found { .. }), "{wanted:?}");
            }
        },
    );
}

#[test]
fn a_slot_in_its_next_life_is_not_taken_for_the_name_that_it_had() {
    for (wanted, its) in [((0, 1), 1), ((0, 2), 9)] {
        check(
            &[(0, 1)],
            |tree| {
                tree.unhash(&tree.entries[0], (0, 1));
                tree.publish(&tree.entries[0], (0, 2), 9);
            },
            move |tree| {
                if let Step::Found { object, .. } = tree.walk(wanted, 0) {
                    assert_eq!(object, its);
                }
            },
        );
    }
}

#[test]
fn a_name_that_is_there_before_and_after_an_exchange_is_never_missed() {
    check(
        &[(0, 1), (0, 2)],
        |tree| tree.exchange((0, 1), (0, 2)),
        |tree| match tree.walk((0, 1), 0) {
            Step::Found { entry, object, .. } => assert_eq!(object as usize, entry + 1),
            step => assert_eq!(step, Step::Trouble),
        },
    );
}

#[test]
fn a_child_of_the_next_life_of_a_directory_is_not_taken() {
    check(
        &[(0, 1)],
        |tree| {
            // The name is removed, then its directory; both slots are reused for other entries.
            tree.unhash(&tree.entries[0], (0, 1));
            drop(tree.dir_seq.write());
            tree.publish(&tree.entries[1], (0, 1), 2);
        },
        |tree| {
            if let Step::Found { object, .. } = tree.walk((0, 1), 0) {
                assert_eq!(object, 1);
            }
        },
    );
}
