//! When a hash table changes its size, and which thread moves its buckets.
//!
//! # What it is
//! Each CPU index counts its operations and the nodes that they added. One operation in [`TURN`] is the index's *turn*:
//! it adds the counts to the shared sums when they are large enough, may start a change of size, and moves a run of
//! [`RUN`] buckets if a change is under way. So the others read one word of the table and write none but the index's.
//!
//! A table grows when it has more nodes than buckets. If it was filled within twice as many
//! operations as it has buckets (a burst that will continue), it gets four times the buckets,
//! otherwise twice. A table shrinks when it has been sparse for as many operations as it has
//! buckets, to the size that its nodes need. So threads that remove and make again the same nodes
//! neither shrink nor grow it.
//!
//! # What it is not
//! Exact: the sums lack counts that indexes have not added, up to 63 nodes and [`OPERATIONS_BATCH`]
//! operations each.
//!
//! # How it is locked
//! A thread that starts a change of size has the resize mutex, which threads only try to lock.
//! Threads that move buckets claim runs of them by an add to `cursor`. They lock one old bucket,
//! and under its lock one new bucket. The [table](super) has the invariants.
//!
//! # Where it comes from
//! J. Triplett, P. McKenney, J. Walpole, "Resizable, Scalable, Concurrent Hash Tables via Relativistic Programming"
//! (USENIX ATC 2011), for the move of one node.

use super::table::{MOVED, PTR, Table, end_of, link, lock_bucket, node_of, set};
use super::{HashNode, HashTable};
use crate::rcu::{RcuDomain, ReadGuard};
use prim::atomic::{
    AtomicIsize, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Relaxed, Release},
};

/// One operation in so many of an index is its turn. (Constants are small under loom, so that a model of few nodes sees a
/// table grow.)
const TURN: u64 = if cfg!(loom) { 1 } else { 16 };
/// Buckets that one turn moves.
const RUN: usize = if cfg!(loom) { 1 } else { 256 };
/// A table up to this many buckets is moved whole by the thread that starts the change.
const MOVED_AT_ONCE: usize = RUN;
/// A table with more than this many buckets for each node is sparse.
const SPARSE: usize = if cfg!(loom) { 2 } else { 8 };
/// Operations for each bucket during which a table must be sparse before it shrinks.
const PATIENCE: usize = if cfg!(loom) { 0 } else { 1 };
/// A table of at most so many buckets may grow to four times as many. A larger one only doubles: four buckets for each
/// name are 32 bytes of a name's 272.
const QUADRUPLED: usize = if cfg!(loom) { 0 } else { 1 << 15 };
/// Nodes (net) of one CPU index at which a turn adds them to the sum: with the nodes of one more
/// turn less than 64.
const NODES_BATCH: i64 = if cfg!(loom) { 1 } else { 48 };
/// Operations of one CPU index from which on a turn adds them to the sum.
const OPERATIONS_BATCH: u16 = 4096;

/// Where the nodes begin in the counts of an index.
const NODES: u32 = 16;

/// Counts of one CPU index that are not in the sums yet: operations in the lowest 16 bits, and
/// nodes (net) above.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Uncounted(AtomicU64);

/// Apart from the data that every operation reads, since each index writes them at times.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Sums {
    nodes: AtomicIsize,
    /// Operations; wraps.
    operations: AtomicUsize,
    /// `operations` when the last change of size began.
    resized_at: AtomicUsize,
    /// `operations` when the table was seen not to be sparse.
    dense_at: AtomicUsize,
}

impl Uncounted {
    /// Nodes (net).
    pub(super) fn nodes(&self) -> i64 {
        // Relaxed: a statistic.
        split(self.0.load(Relaxed)).0
    }
}

impl Sums {
    pub(super) fn nodes(&self) -> isize {
        self.nodes.load(Relaxed)
    }

    /// Returns the number of buckets that a table of `buckets` should have after these nodes and
    /// operations, if another.
    fn wanted(&self, nodes: i64, operations: u16, buckets: usize, min_buckets: usize) -> Option<usize> {
        // Relaxed, here and below: sums and marks of time, for guesses.
        let nodes = self.nodes.fetch_add(nodes as isize, Relaxed) + nodes as isize;
        let now = self.operations.fetch_add(operations as usize, Relaxed).wrapping_add(operations as usize);
        let (nodes, since) = (nodes.max(0) as usize, |then: &AtomicUsize| now.wrapping_sub(then.load(Relaxed)));
        let is_sparse = nodes < buckets / SPARSE && buckets > min_buckets;
        if !is_sparse {
            self.dense_at.store(now, Relaxed);
        }
        if nodes > buckets {
            let is_burst = buckets <= QUADRUPLED && since(&self.resized_at) <= 2 * buckets;
            return Some(buckets * if is_burst { 4 } else { 2 });
        }
        (is_sparse && since(&self.dense_at) >= PATIENCE * buckets)
            .then(|| (2 * nodes).next_power_of_two().max(min_buckets))
    }

    fn note_resize(&self) {
        let now = self.operations.load(Relaxed);
        self.resized_at.store(now, Relaxed);
        self.dense_at.store(now, Relaxed);
    }
}

/// Nodes and operations of an index.
#[inline]
fn split(counts: u64) -> (i64, u16) {
    ((counts as i64) >> NODES, counts as u16)
}

/// Returns whether a turn must add these counts of an index to the sums.
#[inline]
fn must_add(counts: u64) -> bool {
    let (nodes, operations) = split(counts);
    nodes.abs() >= NODES_BATCH || operations >= OPERATIONS_BATCH
}

impl<N: HashNode> HashTable<N> {
    /// Counts an operation, which added so many nodes.
    #[inline(always)]
    pub(super) fn account(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, nodes: i64) {
        let own = &self.uncounted.this().0;
        // Relaxed: only this thread writes the slot.
        let counts = own.load(Relaxed).wrapping_add(((nodes << NODES) + 1) as u64);
        own.store(counts, Relaxed);
        if counts.is_multiple_of(TURN) {
            // Relaxed: a hint; `take_turn` looks again.
            let is_resizing = !self.table().next.load(Relaxed).is_null();
            if is_resizing || must_add(counts) {
                self.take_turn(domain, guard);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn take_turn(&self, domain: &RcuDomain, guard: &ReadGuard<'_>) {
        let counts = self.uncounted.this().0.load(Relaxed);
        if must_add(counts) {
            self.add_counts(domain, guard, counts);
        }
        let table = self.table();
        if let Some(next) = table.successor() {
            self.move_buckets(domain, guard, table, next, RUN);
        }
    }

    #[cold]
    fn add_counts(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, counts: u64) {
        let (nodes, operations) = split(counts);
        self.uncounted.this().0.store(0, Relaxed);
        let table = self.table();
        if let Some(wanted) = self.sums.wanted(nodes, operations, table.mask + 1, self.min_buckets) {
            self.start_resize(domain, guard, wanted, table);
        }
    }

    #[cold]
    fn start_resize(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, wanted: usize, table: &Table) {
        if table.successor().is_some() {
            return;
        }
        let Some(_held) = self.resize.try_lock() else { return };
        if !core::ptr::eq(table, self.table()) || table.successor().is_some() {
            return;
        }
        self.sums.note_resize();
        // ORDERING: Release, pairs with the Acquire load in `successor`, which sees the empty buckets of the new table.
        table.next.store(Table::new(wanted), Release);
        let next = table.successor().expect("just stored");
        if table.mask < MOVED_AT_ONCE {
            self.move_buckets(domain, guard, table, next, table.mask + 1);
        }
    }

    /// Moves up to `limit` buckets, with one write to each of the two words that all movers share. The thread that
    /// moves the last bucket makes `next` the current table.
    #[cold]
    #[inline(never)]
    fn move_buckets(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, table: &Table, next: &Table, limit: usize) {
        // Relaxed, both: they only claim a run of buckets; the lock of each bucket orders its
        // contents. The load comes first, so that threads write nothing once all buckets are
        // claimed.
        if table.cursor.0.load(Relaxed) > table.mask {
            return;
        }
        let first = table.cursor.0.fetch_add(limit, Relaxed);
        if first > table.mask {
            return;
        }
        let end = (first + limit).min(table.mask + 1);
        for index in first..end {
            self.move_bucket(table.at(index), next, guard);
        }
        // ORDERING: AcqRel, with the same by the other movers: the thread that takes it to zero has seen all their
        // moves, and publishes them by `finish`.
        if table.left.0.fetch_sub(end - first, AcqRel) == end - first {
            self.finish(domain, table);
        }
    }

    fn move_bucket(&self, bucket: &AtomicUsize, next: &Table, guard: &ReadGuard<'_>) {
        let Some(mut head) = lock_bucket(bucket) else { unreachable!("each bucket is moved by one ticket") };
        while head != 0 {
            // From the tail on: see "Growing" in the module documentation.
            let mut before: Option<&N> = None;
            let mut last: &N = node_of(head);
            loop {
                // Each node of the chain is linked anew.
                prim::hint::prefetch_to_write(last.next());
                let word = last.next().load(Relaxed);
                if word & PTR == 0 {
                    break;
                }
                (before, last) = (Some(last), node_of(word));
            }
            let target = next.bucket(last.hash(&self.key, guard));
            let Some(word) = lock_bucket(target) else {
                unreachable!("the next table is not moved before this one is")
            };
            link(target, word, last);
            match before {
                Some(before) => set(before.next(), end_of(bucket)),
                None => head = 0,
            }
        }
        set(bucket, MOVED);
    }

    /// Makes the next table the current one. Readers may still use the old table: until their grace
    /// period ends it stays a raw pointer, as `Table::new` made it, because a box or a unique
    /// reference would claim to be the only user.
    #[cold]
    fn finish(&self, domain: &RcuDomain, table: &Table) {
        // Relaxed, both: `current` is `table`, and only this thread, which moved the last bucket of
        // `table`, changes `current`. The next table was seen through `successor`.
        let (old, next) = (self.current.load(Relaxed), table.next.load(Relaxed));
        debug_assert!(core::ptr::eq(old, table));
        let bytes = table.bytes();
        // ORDERING: Release, pairs with the Acquire load in `table`.
        self.current.store(next, Release);
        // SAFETY: made by `Table::new`, on no path from `current` any more, and deferred once (invariant 4).
        unsafe { domain.defer_raw(bytes, Table::free, old.cast()) };
    }
}
