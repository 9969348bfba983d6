//! A loom model of a lookup that finds an inode by its node, against the end of that inode and the next life of its slot.
//!
//! `crates/vfs/tests/loom/tree.rs` runs the source itself, with one preemption, and `crates/vfs/tests/loom/inode.rs` the end of
//! an inode, with three; here a copy of the few steps of a lookup and a next life has three.
//!
//! Mirrors of `crates/vfs/src`: `cache/inode_table.rs: get, add, remove`, `slots/inode.rs: begin, is_alive`, `slots/inode/reference.rs: take,
//! put`, `cache/end.rs: bury, put_inode, leave_slot, evict`. The orderings here are those of `slots/inode.rs` and
//! `cache/end.rs`. The file system's data lies in a tracked cell: used during or after its end it is a data race for
//! loom.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{RcuDomain, ReadGuard};
use lightfoot_sync::{HashNode, HashTable};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use loom::thread;

/// The slot of one inode.
struct Inode {
    next: AtomicUsize,
    node: AtomicU32,
    refs: AtomicU32,
    slot_users: AtomicU32,
    /// The node that the data is of; 0: evicted.
    data: UnsafeCell<u32>,
    evicted: AtomicU32,
    freed: AtomicU32,
}

// SAFETY: only the thread that begins or ends a life writes the data; loom checks that.
unsafe impl Sync for Inode {}

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Inode {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, (): &(), _guard: &ReadGuard<'_>) -> u64 {
        self.node.load(Relaxed).into()
    }
}

impl Inode {
    fn data(&self) -> u32 {
        // SAFETY: see `Sync` above.
        self.data.with(|data| unsafe { *data })
    }

    fn set_data(&self, node: u32) {
        // SAFETY: see `Sync` above.
        self.data.with_mut(|data| unsafe { *data = node });
    }

    /// `inode.rs: try_get`
    fn try_get(&self) -> bool {
        // ORDERING: Acquire, pairs with the AcqRel in `put` and the Release in `Cache::begin`.
        self.refs.fetch_update(Acquire, Relaxed, |refs| (refs != 0).then_some(refs + 1)).is_ok()
    }

    /// `inode.rs: put`
    fn put(&self) -> bool {
        // ORDERING: AcqRel, with itself in other threads.
        self.refs.fetch_sub(1, AcqRel) == 1
    }
}

/// Fields drop in order, the slot after the table.
struct Cache {
    table: HashTable<Inode>,
    slot: Inode,
    domain: RcuDomain,
}

impl Cache {
    /// One inode, of node 1, and the dentry that it lies beside.
    fn new() -> Arc<Self> {
        let (zero, data) = (|| AtomicU32::new(0), UnsafeCell::new(0));
        let (node, refs, slot_users, evicted, freed) = (zero(), zero(), zero(), zero(), zero());
        let slot = Inode { next: AtomicUsize::new(0), node, refs, slot_users, data, evicted, freed };
        let domain = RcuDomain::without_reclaimer();
        let cache = Arc::new(Self { table: HashTable::new(&domain, 4, ()), slot, domain });
        cache.begin(1);
        cache
    }

    /// `inode.rs: begin`, `inode_table.rs: add`
    fn begin(&self, node: u32) {
        let inode = &self.slot;
        inode.set_data(node);
        inode.node.store(node, Relaxed);
        // ORDERING: Release, pairs with the Acquire in `try_get`: a thread that is still on the slot's former life and
        // gets a reference sees which node it is now.
        inode.refs.store(1, Release);
        inode.slot_users.store(2, Relaxed);
        // SAFETY: the slot outlives the table and is on no chain; the hash is its node.
        unsafe { self.table.insert(&self.domain, &self.domain.read(), inode, node.into()) };
    }

    /// `inode_table.rs: get`
    fn get(&self, node: u32) -> Option<&Inode> {
        let guard = self.domain.read();
        let is = |inode: &Inode| inode.node.load(Relaxed) == node && inode.refs.load(Relaxed) != 0;
        self.table.find_slow(&guard, node.into(), is)?;
        let found = &self.slot;
        if !found.try_get() {
            return None;
        }
        if found.node.load(Relaxed) != node {
            self.put_inode();
            return None;
        }
        Some(found)
    }

    /// `cache/end.rs: bury`, of a dentry beside its inode
    fn bury(&self) -> bool {
        let freed = self.put_inode();
        self.leave_slot() || freed
    }

    /// `cache/end.rs: put_inode`; whether that freed the slot.
    fn put_inode(&self) -> bool {
        if !self.slot.put() {
            return false;
        }
        self.evict();
        self.leave_slot()
    }

    /// `cache/end.rs: evict`; there the table comes first; here its fences would hide that the count alone orders.
    fn evict(&self) {
        let node = self.slot.node.load(Relaxed);
        assert_eq!(self.slot.data(), node);
        self.slot.set_data(0);
        assert!(self.table.remove(&self.domain, &self.domain.read(), &self.slot, node.into()), "evicted twice");
        // The last that the inode's user does to the slot.
        self.slot.set_data(0);
        self.slot.evicted.fetch_add(1, Relaxed);
    }

    fn leave_slot(&self) -> bool {
        // ORDERING: AcqRel, with itself by the slot's other user.
        let last = self.slot.slot_users.fetch_sub(1, AcqRel) == 1;
        if last {
            assert_eq!(self.slot.data(), 0);
            self.slot.freed.fetch_add(1, Relaxed);
        }
        last
    }
}

fn check(preemptions: usize, model: impl Fn(Arc<Cache>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || model(Cache::new()));
}

/// A lookup that is answered with node 1 and gives it back.
fn look(cache: &Cache) {
    if let Some(inode) = cache.get(1) {
        assert_eq!(inode.data(), 1);
        cache.put_inode();
    }
}

#[test]
fn a_lookup_gets_the_node_it_wants_even_if_the_slot_is_reused() {
    check(3, |cache| {
        let other = {
            let cache = cache.clone();
            thread::spawn(move || look(&cache))
        };
        // The thread that frees the slot uses it again.
        if cache.bury() {
            cache.begin(2);
        }
        other.join().unwrap();
        if let Some(second) = cache.get(2) {
            assert_eq!((second.data(), second.refs.load(Relaxed)), (2, 2));
        }
    });
}
