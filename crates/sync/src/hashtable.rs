//! An intrusive hash table with lock-free readers that grows and shrinks by steps.
//!
//! # What it is
//! An array of chains. Readers walk a chain under an RCU read section and store nothing. Writers hold the lock bit of one
//! bucket. Nodes may be freed and reused while readers stand on them (see [`crate::slab`]), so a reader can be carried from
//! its chain into another one; the last link of a chain therefore names its bucket, and a reader that ends in a foreign
//! bucket knows that it has missed something (Linux's "nulls" lists).
//!
//! # What it is not
//! It does not keep equal keys apart and knows no keys at all: the caller hands in a hash and a predicate, and makes
//! sure by its own lock that one key is inserted once.
//!
//! # State of a word
//! A chain is a bucket word and the `next` words of its nodes:
//!
//! | word | bits | meaning |
//! |---|---|---|
//! | bucket or next | `address + 1` | the next node ([`PTR`] is bit 0; nodes are aligned) |
//! | bucket | `0` | empty chain |
//! | next | address of the bucket | end of that bucket's chain |
//! | bucket | `4` ([`MOVED`]) | every node went to the next table; final |
//! | bucket | any but the last, `+ 2` ([`LOCK`]) | a writer is at work; readers ignore the bit |
//!
//! # Growing
//! A table of twice (or half) the buckets hangs off the current one; each insert and remove then moves [`STEP`] buckets.
//! A bucket is moved under its lock from the tail on: the last node is first linked into its new chain, then cut off the
//! old one, so a node is at every moment on its old chain or its new one, and a reader that searches the old chain first
//! and the new one second cannot miss it. No lookup ever waits.
//!
//! # How it is locked
//! One bucket lock at a time, but for a move: old bucket, then new bucket. The resize mutex is only ever tried.
//!
//! # Invariants
//! 1. A node on a chain is valid memory of type `N` for the whole of any read section that could reach it: the contract
//!    of [`HashTable::insert`].
//! 2. A node's `next` word and the words of a bucket's chain are written only under that bucket's lock (before the node
//!    is inserted: by the inserter).
//! 3. Nodes are linked at the head only, so whoever is carried from one chain back into it sees all of it.
//! 4. A table is freed a grace period after `current` left it, and `current` leaves it only when all buckets are moved.
//!
//! # Where it comes from
//! `Documentation/RCU/rculist_nulls.rst` (Eric Dumazet); hlist_bl and dcache's bucket bit lock (Nick Piggin, 2011);
//! J. Triplett, P. McKenney, J. Walpole, "Resizable, Scalable, Concurrent Hash Tables via Relativistic Programming"
//! (USENIX ATC 2011) for moving one node without losing it to readers.

use crate::mutex::RawMutex;
use crate::rcu::{RcuDomain, ReadGuard};
use core::marker::PhantomData;
use core::ptr::NonNull;
use prim::PerCpu;
use prim::atomic::{
    AtomicIsize, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The word holds a node's address plus one.
const PTR: usize = 1;
/// A writer holds the bucket.
const LOCK: usize = 2;
/// The bucket's nodes are in the next table.
const MOVED: usize = 4;
/// Buckets that each insert or remove moves while the table changes size.
const STEP: usize = 32;
/// A table up to this many buckets is moved whole by the thread that starts the change.
const MOVED_AT_ONCE: usize = 4096;
/// Inserts (net) on one CPU index before it adds them to the shared count.
const COUNT_BATCH: isize = 64;

/// What a type needs to be on a chain.
pub trait HashNode: Send + Sync + Sized {
    /// What a hash depends on besides the node: a secret of the instance.
    type Key: Send + Sync;

    /// The link word. It is the table's while the node is inserted; a removed node keeps its last value.
    fn next(&self) -> &AtomicUsize;

    /// The hash under which the node is inserted, again; called when buckets are moved, under the bucket's lock.
    fn hash(&self, key: &Self::Key, guard: &ReadGuard<'_>) -> u64;
}

/// See the [module documentation](self).
pub struct HashTable<N: HashNode> {
    current: AtomicPtr<Table>,
    key: N::Key,
    min_buckets: usize,
    /// Taken with `try_lock` by whoever starts a change of size.
    resize: RawMutex,
    count: AtomicIsize,
    uncounted: PerCpu<Uncounted>,
    _nodes: PhantomData<*const N>,
}

#[repr(align(64))]
struct Uncounted(AtomicIsize);

struct Table {
    buckets: NonNull<AtomicUsize>,
    mask: usize,
    /// The memory behind `buckets`, over-long so that a large array can start on a huge page.
    memory: Box<[AtomicUsize]>,
    next: AtomicPtr<Table>,
    /// The next bucket to move, and how many are not moved yet.
    cursor: AtomicUsize,
    left: AtomicUsize,
}

/// The table as one read section sees it; what a lookup works on.
pub struct View<'g, N> {
    buckets: NonNull<AtomicUsize>,
    mask: usize,
    _table: PhantomData<(&'g Table, &'g N)>,
}

/// How a search of one chain ended.
enum End {
    /// At the end of this very chain.
    Own,
    /// The bucket was moved to the next table.
    Moved,
    /// In another chain: a node was moved or reused under the reader.
    Foreign,
}

// SAFETY: nodes are `Send + Sync`; all shared words are atomics.
unsafe impl<N: HashNode> Send for HashTable<N> {}
// SAFETY: as above.
unsafe impl<N: HashNode> Sync for HashTable<N> {}

// SAFETY: `buckets` points into `memory`, which the table owns.
unsafe impl Send for Table {}
// SAFETY: as above; the buckets are atomics.
unsafe impl Sync for Table {}

impl<N> Clone for View<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<N> Copy for View<'_, N> {}

impl<'g, N: HashNode> View<'g, N> {
    /// The first node for which `matches` holds on the chain of `hash`, or `None`: not found *or* disturbed by a writer;
    /// [`HashTable::find_slow`] tells which. `at_head` gets the address of the chain's first node, for a prefetch; it may
    /// be no node at all.
    #[inline(always)]
    pub fn find(&self, hash: u64, at_head: impl FnOnce(*const N), matches: impl FnMut(&'g N) -> bool) -> Option<&'g N> {
        let bucket = self.bucket(hash);
        // ORDERING: Acquire, pairs with the Release stores of `set` in `insert`, `remove` and `move_bucket`: what the node
        // held when it was linked is seen.
        let head = bucket.load(Acquire) & !LOCK;
        at_head(head.wrapping_sub(PTR) as *const N);
        scan(head, matches).ok()
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &'g AtomicUsize {
        let bucket = self.buckets.as_ptr().wrapping_add(hash as usize & self.mask);
        // SAFETY: the index is masked to the number of buckets, which live as long as the read section ('g).
        unsafe { &*bucket }
    }
}

/// Walks a chain from `word` on. `Err` is the word at which it ended.
#[inline(always)]
fn scan<'g, N: HashNode>(mut word: usize, mut matches: impl FnMut(&'g N) -> bool) -> Result<&'g N, usize> {
    while word & PTR != 0 {
        // SAFETY: invariant 1, the caller is in a read section; `word` is a node's address plus PTR.
        let node = unsafe { &*((word - PTR) as *const N) };
        if matches(node) {
            return Ok(node);
        }
        // ORDERING: Acquire, pairs with the Release stores of `set` in `insert`, `remove` and `move_bucket`.
        word = node.next().load(Acquire);
    }
    Err(word)
}

impl<N: HashNode> HashTable<N> {
    /// An empty table of at least `min_buckets` buckets, below which it never shrinks.
    #[must_use]
    pub fn new(min_buckets: usize, key: N::Key) -> Self {
        let min_buckets = min_buckets.next_power_of_two();
        Self {
            current: AtomicPtr::new(Table::new(min_buckets)),
            key,
            min_buckets,
            resize: RawMutex::new(),
            count: AtomicIsize::new(0),
            uncounted: PerCpu::new(|| Uncounted(AtomicIsize::new(0))),
            _nodes: PhantomData,
        }
    }

    /// The table for the lookups of one read section. The guard must be of the domain that writers pass in.
    #[inline(always)]
    pub fn view<'g>(&'g self, _guard: &'g ReadGuard<'_>) -> View<'g, N> {
        let table = self.table();
        View { buckets: table.buckets, mask: table.mask, _table: PhantomData }
    }

    #[inline(always)]
    fn table(&self) -> &Table {
        // ORDERING: Acquire, pairs with the Release store of `current` in `finish`: the buckets of a new table are seen.
        let table = self.current.load(Acquire);
        // SAFETY: invariant 4, all callers are in a read section (or have `&mut self`).
        unsafe { &*table }
    }

    /// Finds a node for certain: whatever writers do meanwhile, a node that is on its chain throughout is found, and
    /// `None` means that at some moment during the call no node matched.
    #[cold]
    pub fn find_slow<'g>(
        &'g self,
        _guard: &'g ReadGuard<'_>,
        hash: u64,
        mut matches: impl FnMut(&'g N) -> bool,
    ) -> Option<&'g N> {
        loop {
            let table = self.table();
            let end = match table.search(hash, &mut matches) {
                Ok(node) => return Some(node),
                Err(end) => end,
            };
            // The old chain was searched before the new one: a node that left the first is in the second.
            let end = match (end, table.successor()) {
                (End::Own, None) => return None,
                (End::Own | End::Moved, Some(next)) => match next.search(hash, &mut matches) {
                    Ok(node) => return Some(node),
                    Err(end) => end,
                },
                (end, _) => end,
            };
            if matches!(end, End::Own) {
                return None;
            }
            prim::hint::spin_loop();
        }
    }

    /// Links `node` at the head of the chain of `hash`.
    ///
    /// # Safety
    /// `node` is on no chain; it stays valid memory of type `N` until the table is dropped, or until it is removed and
    /// a grace period of the domain of `guard` has passed; `node.hash(key)` gives `hash` while it is inserted.
    pub unsafe fn insert(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, node: &N, hash: u64) {
        let (bucket, word) = self.lock(hash);
        let next = if word == 0 { end_of(bucket) } else { word };
        // Release although the node is not linked yet: a reader may still stand on its former life (see `set`).
        set(node.next(), next);
        set(bucket, word_of(node));
        self.account(domain, guard, 1);
    }

    /// Unlinks `node` from the chain of `hash`. Readers that stand on it go on along its old link. `false`: it was not there.
    pub fn remove(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, node: &N, hash: u64) -> bool {
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

    /// Nodes in the table, to within [`COUNT_BATCH`] a CPU index.
    #[must_use]
    pub fn len_hint(&self) -> usize {
        self.count.load(Relaxed).max(0) as usize
    }

    /// Bytes of all bucket arrays, and the number of buckets of the current one.
    #[must_use]
    pub fn reserved(&self, _guard: &ReadGuard<'_>) -> (usize, usize) {
        let table = self.table();
        let bytes = |t: &Table| size_of_val(&*t.memory);
        (bytes(table) + table.successor().map_or(0, bytes), table.mask + 1)
    }

    /// Locks the bucket that holds the nodes of `hash`, in whichever table that is; gives its word without the lock.
    #[inline]
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

    /// Adds to the count and does this operation's share of a change of size.
    #[inline]
    fn account(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, by: isize) {
        let own = &self.uncounted.this().0;
        // Relaxed: the slot is this thread's own; the count is a hint.
        let net = own.load(Relaxed) + by;
        if net.abs() < COUNT_BATCH {
            own.store(net, Relaxed);
        } else {
            own.store(0, Relaxed);
            let count = self.count.fetch_add(net, Relaxed) + net;
            self.start_resize(domain, guard, count.max(0) as usize);
        }
        let table = self.table();
        if let Some(next) = table.successor() {
            self.move_buckets(domain, guard, table, next, STEP);
        }
    }

    #[cold]
    fn start_resize(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, count: usize) {
        let table = self.table();
        let buckets = table.mask + 1;
        let wanted = match count {
            n if n > buckets => buckets * 2,
            n if n < buckets / 8 && buckets > self.min_buckets => buckets / 2,
            _ => return,
        };
        let Some(_held) = self.resize.try_guard() else { return };
        if !core::ptr::eq(table, self.table()) || table.successor().is_some() {
            return;
        }
        // ORDERING: Release, pairs with the Acquire load in `successor`: the empty buckets of the new table are seen.
        table.next.store(Table::new(wanted), Release);
        let next = table.successor().expect("just stored");
        if buckets <= MOVED_AT_ONCE {
            self.move_buckets(domain, guard, table, next, buckets);
        }
    }

    /// Moves up to `limit` buckets; whoever moves the last one makes `next` the current table.
    #[cold]
    fn move_buckets(&self, domain: &RcuDomain, guard: &ReadGuard<'_>, table: &Table, next: &Table, limit: usize) {
        for _ in 0..limit {
            // Relaxed: a ticket; the bucket's lock orders the rest.
            let index = table.cursor.fetch_add(1, Relaxed);
            if index > table.mask {
                table.cursor.store(table.mask + 1, Relaxed);
                return;
            }
            self.move_bucket(table.at(index), next, guard);
            // ORDERING: AcqRel, with the same by the other movers: who takes it to zero has seen all their moves, and
            // publishes them by `finish`.
            if table.left.fetch_sub(1, AcqRel) == 1 {
                self.finish(domain, table, next);
                return;
            }
        }
    }

    fn move_bucket(&self, bucket: &AtomicUsize, next: &Table, guard: &ReadGuard<'_>) {
        let Some(mut head) = lock_bucket(bucket) else { unreachable!("each bucket is moved by one ticket") };
        while head != 0 {
            // From the tail on: see "Growing" in the module documentation.
            let mut before: Option<&N> = None;
            let mut last: &N = node_of(head);
            while last.next().load(Relaxed) & PTR != 0 {
                before = Some(last);
                last = node_of(last.next().load(Relaxed));
            }
            let target = next.bucket(last.hash(&self.key, guard));
            let Some(word) = lock_bucket(target) else {
                unreachable!("the next table is not moved before this one is")
            };
            // ORDERING: Release, pairs with the Acquire loads of `scan`: a reader carried along this link sees the nodes there.
            last.next().store(if word == 0 { end_of(target) } else { word }, Release);
            set(target, word_of(last));
            match before {
                Some(before) => set(before.next(), end_of(bucket)),
                None => head = 0,
            }
        }
        set(bucket, MOVED);
    }

    #[cold]
    fn finish(&self, domain: &RcuDomain, table: &Table, next: &Table) {
        // ORDERING: Release, pairs with the Acquire load in `table`.
        self.current.store(core::ptr::from_ref(next).cast_mut(), Release);
        let bytes = size_of_val(&*table.memory);
        // SAFETY: made by `Table::new`; `current` has just left it, and only this thread moved the last bucket.
        let old = unsafe { Box::from_raw(core::ptr::from_ref(table).cast_mut()) };
        domain.defer(bytes, move || drop(old));
    }
}

impl<N: HashNode> Drop for HashTable<N> {
    fn drop(&mut self) {
        let mut table = self.current.load(Relaxed);
        while !table.is_null() {
            // SAFETY: made by `Table::new`, and nobody reads the table any more.
            let owned = unsafe { Box::from_raw(table) };
            table = owned.next.load(Relaxed);
        }
    }
}

impl<N: HashNode> core::fmt::Debug for HashTable<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HashTable").field("len_hint", &self.len_hint()).finish_non_exhaustive()
    }
}

impl Table {
    fn new(buckets: usize) -> *mut Table {
        const HUGE: usize = 2 << 20;
        let large = buckets * size_of::<usize>() >= HUGE;
        let memory = zeroed(buckets + if large { HUGE / size_of::<usize>() } else { 0 });
        let start = memory.as_ptr();
        let skip = if large { start.align_offset(HUGE) } else { 0 };
        let first = NonNull::from(&memory[skip]);
        if large {
            prim::mem::advise_huge(first.as_ptr().cast(), buckets * size_of::<usize>());
        }
        Box::into_raw(Box::new(Table {
            buckets: first,
            mask: buckets - 1,
            memory,
            next: AtomicPtr::new(core::ptr::null_mut()),
            cursor: AtomicUsize::new(0),
            left: AtomicUsize::new(buckets),
        }))
    }

    #[inline]
    fn at(&self, index: usize) -> &AtomicUsize {
        debug_assert!(index <= self.mask);
        let bucket = self.buckets.as_ptr().wrapping_add(index);
        // SAFETY: `index` is at most `mask`, and `memory` holds `mask + 1` buckets from `buckets` on.
        unsafe { &*bucket }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &AtomicUsize {
        self.at(hash as usize & self.mask)
    }

    #[inline]
    fn successor(&self) -> Option<&Table> {
        // ORDERING: Acquire, pairs with the Release store of `next` in `start_resize`.
        let next = self.next.load(Acquire);
        // SAFETY: invariant 4: the next table is freed after this one.
        unsafe { next.as_ref() }
    }

    fn search<'g, N: HashNode>(&'g self, hash: u64, matches: &mut impl FnMut(&'g N) -> bool) -> Result<&'g N, End> {
        let bucket = self.bucket(hash);
        // ORDERING: Acquire, pairs with the Release stores of `set`, as in `View::find`.
        match scan(bucket.load(Acquire) & !LOCK, matches) {
            Ok(node) => Ok(node),
            Err(0) => Err(End::Own),
            Err(MOVED) => Err(End::Moved),
            Err(word) if word == end_of(bucket) => Err(End::Own),
            Err(_) => Err(End::Foreign),
        }
    }
}

/// Takes a bucket's lock bit; gives its word without the bit. `None`: the bucket was moved, there is nothing to lock.
#[inline]
fn lock_bucket(bucket: &AtomicUsize) -> Option<usize> {
    loop {
        // Relaxed: a guess; the exchange decides.
        let word = bucket.load(Relaxed);
        if word == MOVED {
            // ORDERING: Acquire, pairs with the Release store of MOVED by `set` in `move_bucket`: the nodes are in the next
            // table.
            bucket.load(Acquire);
            return None;
        }
        if word & LOCK != 0 {
            prim::hint::spin_until(|| bucket.load(Relaxed) & LOCK == 0);
            continue;
        }
        // ORDERING: Acquire, pairs with the Release store of `set` by the last holder.
        if bucket.compare_exchange(word, word | LOCK, Acquire, Relaxed).is_ok() {
            return Some(word);
        }
    }
}

/// Stores a word of a chain; to a bucket it also gives the lock back, since `word` has no [`LOCK`] bit.
#[inline]
fn set(place: &AtomicUsize, word: usize) {
    // ORDERING: Release, pairs with the Acquire loads of `View::find`, `scan` and `search` (readers see what the nodes held)
    // and of `lock_bucket` (the next writer sees this one's work).
    place.store(word, Release);
}

#[inline]
fn word_of<N>(node: &N) -> usize {
    core::ptr::from_ref(node) as usize + PTR
}

fn node_of<'g, N>(word: usize) -> &'g N {
    debug_assert!(word & PTR != 0);
    // SAFETY: invariants 1 and 2: the word was read from a chain under its bucket's lock.
    unsafe { &*((word - PTR) as *const N) }
}

/// The word that ends a bucket's chain.
#[inline]
fn end_of(bucket: &AtomicUsize) -> usize {
    core::ptr::from_ref(bucket) as usize
}

#[cfg(not(loom))]
fn zeroed(len: usize) -> Box<[AtomicUsize]> {
    // SAFETY: all-zero bytes are a valid AtomicUsize.
    unsafe { Box::<[AtomicUsize]>::new_zeroed_slice(len).assume_init() }
}

#[cfg(loom)]
fn zeroed(len: usize) -> Box<[AtomicUsize]> {
    (0..len).map(|_| AtomicUsize::new(0)).collect()
}
