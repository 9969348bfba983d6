//! An intrusive hash table with lock-free readers that grows and shrinks by steps.
//!
//! # What it is
//! An array of chains. Readers walk a chain under an RCU read section and store nothing. Writers
//! hold the lock bit of one bucket. Nodes may be freed and reused while readers are on them (see
//! [`crate::slab`]), so a reader can be carried from its chain into another one. The last link of a
//! chain therefore names its bucket, and a reader that ends in a foreign bucket detects that it may
//! have missed a node (Linux's "nulls" lists).
//!
//! # What it is not
//! It does not have keys: the caller passes a hash and a predicate. The caller ensures that a key
//! is inserted only once, by its own lock, or by [`HashTable::insert_unique`], which decides by the
//! lock of the bucket.
//!
//! # State of a word
//! A chain is a bucket word and the `next` words of its nodes:
//!
//! | word | bits | meaning |
//! |---|---|---|
//! | bucket or next | `address + 1` | the next node (`PTR` is bit 0; nodes are aligned) |
//! | bucket | `0` | empty chain |
//! | next | address of the bucket | end of that bucket's chain |
//! | bucket | `4` (`MOVED`) | every node was moved to the next table; final |
//! | bucket | any but the last, `+ 2` (`LOCK`) | a writer holds the bucket; readers ignore the bit |
//!
//! # Growing
//! The current table links to a table of another size. Inserts and removes move the buckets to it,
//! a run at a time (the rules are in `crates/sync/src/hashtable/resize.rs`). A bucket is moved
//! under its lock, last node first. The node is first linked into the new chain, then cut off the
//! old chain, so at every moment it is on one of the two. A reader that searches the old chain,
//! then the new chain, and so on while there is a next table, cannot miss the node.
//!
//! # Order on a chain
//! A node may request the front of its chain ([`HashNode::is_first`]): the table links this node at
//! the head, and other nodes behind such *first* nodes. (A VFS puts directories first, since each
//! path passes several of them.) So a node can be removed and inserted again *behind* the node that
//! a reader searches, on the same chain. The reader is on the reused node, reaches the end of the
//! right chain, and has missed the other node. The slow search detects this by the nodes' sequence
//! counts, hand over hand. It moves to the next node only if the current node still leads there,
//! and no writer has begun to take the current node off the chain since the search reached it. It
//! waits only for a writer that is taking a node off the chain. A table whose nodes are all first
//! needs no counts, and its lookups never wait.
//!
//! # How it is locked
//! One bucket lock at a time, except for a move: old bucket, then new bucket. The resize mutex is only ever tried.
//!
//! # Invariants
//! 1. A node on a chain is valid memory of type `N` for the whole of any read section that could reach it: the contract
//!    of [`HashTable::insert`].
//! 2. A node's `next` word and the words of a bucket's chain are written only under that bucket's lock (before the node
//!    is inserted: by the inserter).
//! 3. A node is linked at the head, so a reader that is carried from a chain back into the same
//!    chain sees the whole chain; or the node's sequence count shows each removal.
//! 4. A table is freed a grace period after `current` left it, and `current` leaves it only when all buckets are moved.
//! 5. All guards and domains that meet a table are of the one domain that it was made for. Safe functions compare
//!    addresses, as [`Rcu`](crate::rcu::Rcu) does; for [`HashTable::view_unchecked`] the caller guarantees it.
//!
//! # Where it comes from
//! `Documentation/RCU/rculist_nulls.rst` (Eric Dumazet); hlist_bl and dcache's bucket bit lock (Nick Piggin, 2011);
//! J. Triplett, P. McKenney, J. Walpole, "Resizable, Scalable, Concurrent Hash Tables via Relativistic Programming"
//! (USENIX ATC 2011) for moving one node without losing it to readers.

mod resize;
mod table;

use crate::mutex::Mutex;
use crate::rcu::{RcuDomain, ReadGuard, wrong_domain};
use crate::seqcount::SeqCount;
use core::marker::PhantomData;
use core::ptr::NonNull;
use prim::PerCpu;
use prim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};
use resize::{Sums, Uncounted};
use table::{End, LOCK, PTR, Table, link, lock_bucket, scan, set, word_of};

/// The requirements on a type whose nodes are on a chain.
///
/// # Safety
/// For one node [`HashNode::next`] always returns the same word, which lives as long as the node.
/// Only the table writes the word from the insertion of the node until its next insertion, or until
/// a grace period after its removal.
pub unsafe trait HashNode: Send + Sync + Sized {
    /// The second input of a hash, besides the node: a secret of the instance.
    type Key: Send + Sync;

    /// Returns the link word. The table owns it while the node is inserted; a removed node keeps
    /// its last value.
    fn next(&self) -> &AtomicUsize;

    /// Returns again the hash under which the node was inserted. Called under the bucket's lock when buckets are moved.
    fn hash(&self, key: &Self::Key, guard: &ReadGuard<'_>) -> u64;

    /// Returns whether the node belongs before those that are not first. The answer must not change
    /// while the node is inserted.
    fn is_first(&self) -> bool {
        true
    }

    /// Returns the sequence count in whose write section the owner removes the node, each time. A
    /// type needs one if some of its nodes are not first; else the slow search could miss a node.
    fn removals(&self) -> Option<&SeqCount> {
        None
    }
}

/// See the [module documentation](self).
pub struct HashTable<N: HashNode> {
    current: AtomicPtr<Table>,
    /// The address of the domain (invariant 5).
    domain: usize,
    key: N::Key,
    min_buckets: usize,
    /// A thread that starts a change of size takes it with `try_lock`.
    resize: Mutex<()>,
    sums: Sums,
    uncounted: PerCpu<Uncounted>,
    _nodes: PhantomData<*const N>,
}

/// The table as one read section sees it; lookups work on it.
pub struct View<'g, N> {
    buckets: NonNull<AtomicUsize>,
    mask: usize,
    _table: PhantomData<(&'g Table, &'g N)>,
}

// SAFETY: nodes are `Send + Sync`; all shared words are atomics.
unsafe impl<N: HashNode> Send for HashTable<N> {}
// SAFETY: as above.
unsafe impl<N: HashNode> Sync for HashTable<N> {}

impl<N> Clone for View<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<N> Copy for View<'_, N> {}

impl<'g, N: HashNode> View<'g, N> {
    /// Returns the first node on the chain of `hash` for which `matches` holds. `None`: there is none, *or* a writer disturbed
    /// the search; [`HashTable::find_slow`] decides which. `at_head` gets the address of the chain's first node, for a
    /// prefetch; it need not be the address of a node.
    #[inline(always)]
    pub fn find(&self, hash: u64, at_head: impl FnOnce(*const N), matches: impl FnMut(&'g N) -> bool) -> Option<&'g N> {
        let bucket = self.bucket(hash);
        // ORDERING: Acquire, pairs with the Release stores of `set` in `link` and `remove`: this sees
        // what the node held when it was linked.
        let head = bucket.load(Acquire) & !LOCK;
        at_head(head.wrapping_sub(PTR) as *const N);
        scan(head, matches).ok()
    }

    /// Prefetches the cache line of the bucket of `hash`.
    #[inline(always)]
    pub fn ask_for_bucket(&self, hash: u64) {
        prim::hint::prefetch(core::ptr::from_ref(self.bucket(hash)).cast::<u8>());
    }

    /// Prefetches the first node on the chain of `hash`, once its bucket is in the cache; `at_head` gets its address,
    /// as in [`View::find`].
    #[inline(always)]
    pub fn ask_for_head(&self, hash: u64, at_head: impl FnOnce(*const N)) {
        // Relaxed: only for prefetches; nothing is read through it.
        let head = (self.bucket(hash).load(Relaxed) & !LOCK).wrapping_sub(PTR) as *const N;
        prim::hint::prefetch(head.cast::<u8>());
        at_head(head);
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &'g AtomicUsize {
        let bucket = self.buckets.as_ptr().wrapping_add(hash as usize & self.mask);
        // SAFETY: the index is masked to the number of buckets, which live as long as the read section ('g).
        unsafe { &*bucket }
    }
}

impl<N: HashNode> HashTable<N> {
    /// Returns an empty table of at least `min_buckets` buckets, read and written under guards of
    /// `domain`; it never shrinks below that. A table that starts with few buckets has few counters, too.
    #[must_use]
    pub fn new(domain: &RcuDomain, min_buckets: usize, key: N::Key) -> Self {
        let min_buckets = min_buckets.next_power_of_two();
        Self {
            current: AtomicPtr::new(Table::new(min_buckets)),
            domain: domain.address(),
            key,
            min_buckets,
            resize: Mutex::new(()),
            sums: Sums::default(),
            uncounted: PerCpu::sized(Uncounted::default, min_buckets < 256),
            _nodes: PhantomData,
        }
    }

    /// Returns the table for the lookups of one read section.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[inline(always)]
    pub fn view<'g>(&'g self, guard: &'g ReadGuard<'_>) -> View<'g, N> {
        self.check(guard);
        // SAFETY: just checked.
        unsafe { self.view_unchecked(guard) }
    }

    /// As [`HashTable::view`], without the comparison of the domains.
    ///
    /// # Safety
    /// The guard is of the table's domain. (Debug builds panic if it is not.)
    #[inline(always)]
    pub unsafe fn view_unchecked<'g>(&'g self, guard: &'g ReadGuard<'_>) -> View<'g, N> {
        debug_assert!(guard.address() == self.domain, "the guard of another domain");
        let table = self.table();
        View { buckets: table.buckets, mask: table.mask, _table: PhantomData }
    }

    /// Shows that references to the table's memory, and to its nodes, may live as long as the guard (invariant 5).
    #[inline(always)]
    fn check(&self, guard: &ReadGuard<'_>) {
        if guard.address() != self.domain {
            wrong_domain();
        }
    }

    /// As [`HashTable::check`], for a writer, which frees old tables through `domain`.
    #[inline(always)]
    fn check_writer(&self, domain: &RcuDomain, guard: &ReadGuard<'_>) {
        self.check(guard);
        if domain.address() != self.domain {
            wrong_domain();
        }
    }

    #[inline(always)]
    fn table(&self) -> &Table {
        // ORDERING: Acquire, pairs with the Release store of `current` in `finish`: this sees the buckets of a new
        // table.
        let table = self.current.load(Acquire);
        // SAFETY: invariants 4 and 5: all callers have checked that they are in a read section of the table's domain.
        unsafe { &*table }
    }

    /// Finds a node whatever writers do meanwhile: a node that is on its chain throughout is found, and `None` means
    /// that at some moment during the call no node matched.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[cold]
    pub fn find_slow<'g>(
        &'g self,
        guard: &'g ReadGuard<'_>,
        hash: u64,
        mut matches: impl FnMut(&'g N) -> bool,
    ) -> Option<&'g N> {
        self.check(guard);
        let mut table = self.table();
        loop {
            let end = match table.search(hash, &mut matches) {
                Ok(node) => return Some(node),
                Err(end) => end,
            };
            // A node leaves a table only for the next table. The tables up to here were searched in
            // order, so a node that is on none of their chains is in a later table. There may be
            // several later tables: `table` can have been moved completely while the next table is
            // being moved.
            table = match (end, table.successor()) {
                (End::Own, None) => return None,
                (End::Own | End::Moved, Some(next)) => next,
                _ => {
                    prim::hint::spin_loop();
                    self.table()
                }
            };
        }
    }

    /// As [`find_slow`](Self::find_slow), but inlined: for callers that seldom meet a writer, or a
    /// table on the move.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[inline(always)]
    pub fn find_sure<'g>(
        &'g self,
        guard: &'g ReadGuard<'_>,
        hash: u64,
        mut matches: impl FnMut(&'g N) -> bool,
    ) -> Option<&'g N> {
        self.check(guard);
        let table = self.table();
        match table.search(hash, &mut matches) {
            Ok(node) => Some(node),
            Err(End::Own) if table.successor().is_none() => None,
            Err(_) => self.find_slow(guard, hash, matches),
        }
    }

    /// Links `node` at the head of the chain of `hash` or, if `node` does not request the front,
    /// behind the nodes that do.
    ///
    /// # Safety
    /// - `node` is on no chain.
    /// - `node` stays valid memory of type `N` until the table is dropped, or until a grace period
    ///   of the table's domain after the removal of `node`.
    /// - `node.hash(key)` returns `hash` while `node` is inserted.
    ///
    /// # Panics
    /// If `domain` or the guard's is not the table's.
    #[inline(always)]
    pub unsafe fn insert(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, node: &N, hash: u64) {
        self.check_writer(domain, guard);
        let (bucket, head) = self.lock(hash);
        link(bucket, head, node);
        self.account(domain, guard, 1);
    }

    /// Inserts `node` as [`insert`](Self::insert) does, unless `is_same` holds for a node on the
    /// chain: then returns that node. Of several threads that insert nodes of one key, one
    /// succeeds. `is_same` is called under the bucket's lock.
    ///
    /// # Safety
    /// As for [`HashTable::insert`].
    ///
    /// # Panics
    /// If `domain` or the guard's is not the table's.
    pub unsafe fn insert_unique<'g>(
        &'g self,
        domain: &RcuDomain,
        guard: &'g ReadGuard<'_>,
        node: &N,
        hash: u64,
        is_same: impl FnMut(&'g N) -> bool,
    ) -> Option<&'g N> {
        self.check_writer(domain, guard);
        // All nodes of this hash are on the chain of this bucket. A bucket that is not moved yet
        // still has all of them. A mover holds its lock until the last node is in the next table,
        // where this thread follows.
        let (bucket, head) = self.lock(hash);
        if let Ok(there) = scan(head, is_same) {
            set(bucket, head);
            return Some(there);
        }
        link(bucket, head, node);
        self.account(domain, guard, 1);
        None
    }

    /// Unlinks `node` from the chain of `hash`. Readers that are on it go on along its old link. `false`: it was not
    /// there.
    ///
    /// # Panics
    /// If `domain` or the guard's is not the table's.
    #[inline(always)]
    pub fn remove(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, node: &N, hash: u64) -> bool {
        self.check_writer(domain, guard);
        let (bucket, head) = self.lock(hash);
        let target = word_of(node);
        // Relaxed, here and below: under the bucket's lock (invariant 2).
        let next = node.next().load(Relaxed);
        let found = if head == target {
            set(bucket, if next & PTR == 0 { 0 } else { next });
            true
        } else {
            let before = scan(head, |before: &N| before.next().load(Relaxed) == target);
            if let Ok(before) = before {
                set(before.next(), next);
            }
            set(bucket, head);
            before.is_ok()
        };
        if found {
            self.account(domain, guard, -1);
        }
        found
    }

    /// Nodes in the table; exact unless threads insert or remove meanwhile. Reads a counter of each CPU index.
    #[must_use]
    pub fn count(&self) -> usize {
        let uncounted: i64 = self.uncounted.iter().map(Uncounted::nodes).sum();
        self.sums.nodes().saturating_add(uncounted as isize).max(0) as usize
    }

    /// Bytes of all bucket arrays, and the number of buckets of the current one.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[must_use]
    pub fn reserved(&self, guard: &ReadGuard<'_>) -> (usize, usize) {
        self.check(guard);
        let table = self.table();
        let bytes = |t: &Table| (t.mask + 1) * size_of::<AtomicUsize>();
        (bytes(table) + table.successor().map_or(0, bytes), table.mask + 1)
    }

    /// Locks the bucket that holds the nodes of `hash`, in whichever table that is. Returns its word without the lock
    /// bit.
    #[inline(always)]
    fn lock(&self, hash: u64) -> (&AtomicUsize, usize) {
        let mut table = self.table();
        loop {
            let bucket = table.bucket(hash);
            match lock_bucket(bucket) {
                Some(word) => return (bucket, word),
                None => table = table.successor().expect("a moved bucket has a next table"),
            }
        }
    }
}

impl<N: HashNode> Drop for HashTable<N> {
    fn drop(&mut self) {
        let mut table = self.current.load(Relaxed);
        while !table.is_null() {
            // SAFETY: made by `Table::new`; `&mut self` excludes readers.
            let owned = unsafe { Box::from_raw(table) };
            table = owned.next.load(Relaxed);
        }
    }
}

impl<N: HashNode> core::fmt::Debug for HashTable<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HashTable").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
