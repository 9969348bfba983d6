//! A pool of pages that go back to the system when they are free.
//!
//! # What it is
//! An allocator of one size, [`PAGE`] bytes, for bulk data. A program's allocator keeps freed
//! memory for the next allocation; after a gigabyte of contents was deleted it may keep a gigabyte.
//! This one keeps some free pages, so that a program that deletes and writes does not enter the
//! kernel for each, and returns the others.
//!
//! # Layout
//! A chunk is 64 adjacent pages, with one word of flags for the free ones. Chunks with free pages
//! are on the list `open` of their part of the pool. Chunks whose free pages hold memory, because
//! they were in use before (*used* pages), are on the list `kept`. A thread works on the part of
//! its CPU index; a page is returned to the part that it came from.
//!
//! # Returned memory
//! A part keeps one used page for each sixteen in use, and at least `KEPT`. Beyond that, to free a page makes the
//! chunks of `kept` return their used pages, at most `CHUNKS_A_CALL` of them: all of a chunk if no page of it is in
//! use, which ends the chunk, the runs of used pages otherwise. So a call does a bounded amount of work, and a pool
//! without pages in use has at most a megabyte.
//!
//! # How it is locked
//! A [`Mutex`] for each part. The contents of a page belong to the owner of the [`Page`].
//!
//! # Invariants
//! 1. A page is free or has one [`Page`]. Its chunk lives at least for as long as it has a page that is not free.
//! 2. The words of a chunk, and the lists, are read and written under the lock of the chunk's part.
//! 3. A chunk was made by `Box`, is on `open` at `open_at` if it has a free page, on `kept` at `kept_at` if it has a
//!    used one, and in no list otherwise. A chunk without pages in use ends when its part returns its pages.
//! 4. A free page that is not used holds zeros.

use crate::mutex::Mutex;
use core::ops::{Deref, DerefMut, Range};
use core::ptr::NonNull;
use prim::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use prim::mem::Mapping;
use prim::shared::Arc;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Pages of a chunk: the bits of a word.
const PAGES: usize = 64;

/// Bytes of a chunk: a multiple of every system's page size.
const CHUNK: usize = PAGES * PAGE;

/// Parts of a pool. Four threads that work at once seldom wait for each other.
const PARTS: usize = 4;

/// Used pages that a part may always keep.
const KEPT: usize = 64;

/// Chunks that one call makes return their used pages.
const CHUNKS_A_CALL: usize = 8;

/// No place in a list.
const NOWHERE: usize = usize::MAX;

/// See the [module documentation](self).
///
/// ```
/// use lightfoot_sync::pages::PagePool;
/// let pool = PagePool::new();
/// let mut page = pool.page().expect("memory");
/// assert!(page.iter().all(|&byte| byte == 0));
/// page[0] = 1;
/// ```
pub struct PagePool {
    parts: [Arc<Part>; PARTS],
    /// The most pages in use.
    limit: AtomicUsize,
}

/// One part of a pool, on cache lines that it shares with no other.
#[repr(align(128))]
struct Part {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Chunks with free pages.
    open: Vec<NonNull<Chunk>>,
    /// Chunks with used pages.
    kept: Vec<NonNull<Chunk>>,
    /// Used pages.
    used: usize,
    /// Pages that are not free.
    live: usize,
    /// Pages of all chunks.
    pages: usize,
    /// Whether the pool was dropped: nothing will be taken any more.
    is_closed: bool,
}

/// Some adjacent pages. The words belong to the part's lock; they are Relaxed atomics because
/// chunks are shared.
struct Chunk {
    memory: Mapping,
    part: Arc<Part>,
    /// One bit for each free page.
    free: AtomicU64,
    /// One bit for each free page that may hold memory.
    used: AtomicU64,
    open_at: AtomicUsize,
    kept_at: AtomicUsize,
}

/// A page of memory; its drop returns it to its pool.
pub struct Page {
    bytes: NonNull<[u8; PAGE]>,
    chunk: NonNull<Chunk>,
}

// SAFETY: the lists hold chunks that the part owns, which may be reached from any thread under the lock (invariant 2).
unsafe impl Send for State {}
// SAFETY: invariant 1: the bytes belong to the page, and its chunk may be reached from any thread.
unsafe impl Send for Page {}
// SAFETY: as above; a shared page is only read.
unsafe impl Sync for Page {}

/// How much memory a pool has, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageStats {
    /// Pages in use.
    pub live: usize,
    /// Free pages that hold memory.
    pub used: usize,
    /// Addresses taken from the system, for pages in use or not.
    pub mapped: usize,
}

impl PagePool {
    /// Returns a pool without memory, and without a limit.
    #[must_use]
    pub fn new() -> Self {
        let parts = core::array::from_fn(|_| Arc::new(Part { state: Mutex::new(State::default()) }));
        Self { parts, limit: AtomicUsize::new(usize::MAX) }
    }

    /// Sets the most pages that may be in use. Pages beyond it stay.
    pub fn set_limit(&self, pages: usize) {
        // Relaxed, here and below: a number by itself.
        self.limit.store(pages, Relaxed);
    }

    /// Returns how many more pages may be taken.
    #[must_use]
    pub fn left(&self) -> usize {
        self.limit.load(Relaxed).saturating_sub(self.stats().live)
    }

    /// Returns a page of zeros. `None` if the system has no memory, or the pool is at its limit.
    #[must_use]
    pub fn page(&self) -> Option<Page> {
        let first = prim::cpu::id();
        // A part that is at its share of the limit leaves the page to the next.
        let (mut page, was_used) = (0..PARTS).find_map(|next| self.take((first + next) % PARTS))?;
        if was_used {
            page.fill(0);
        }
        Some(page)
    }

    /// Takes a page of one part.
    fn take(&self, index: usize) -> Option<(Page, bool)> {
        let (part, limit) = (&self.parts[index], self.limit.load(Relaxed));
        let mut state = part.state.lock();
        if state.live >= limit / PARTS + usize::from(index < limit % PARTS) {
            return None;
        }
        if state.open.is_empty() {
            let memory = Mapping::new(CHUNK, PAGE)?;
            state.add(Chunk::new(memory, part.clone()));
        }
        state.take()
    }

    /// Counts everything. Exact while no other thread uses the pool.
    #[must_use]
    pub fn stats(&self) -> PageStats {
        self.parts.iter().fold(PageStats::default(), |sum, part| {
            let state = part.state.lock();
            PageStats { live: sum.live + state.live, used: sum.used + state.used, mapped: sum.mapped + state.pages }
        })
    }
}

impl Default for PagePool {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        for part in &self.parts {
            let mut ended = Vec::new();
            let mut state = part.state.lock();
            state.is_closed = true;
            for chunk in core::mem::take(&mut state.kept) {
                // SAFETY: invariant 3.
                unsafe { chunk.as_ref() }.kept_at.store(NOWHERE, Relaxed);
                ended.extend(state.give_back(chunk));
            }
            drop(state);
        }
    }
}

impl core::fmt::Debug for PagePool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PagePool").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Chunk {
    fn new(memory: Mapping, part: Arc<Part>) -> Box<Self> {
        Box::new(Self {
            memory,
            part,
            free: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(0),
            open_at: AtomicUsize::new(NOWHERE),
            kept_at: AtomicUsize::new(NOWHERE),
        })
    }

    /// Returns the place of page `index`.
    fn page(&self, index: usize) -> NonNull<[u8; PAGE]> {
        // SAFETY: a chunk has so many pages, so the address is inside its memory.
        unsafe { self.memory.start().add(index * PAGE) }.cast()
    }
}

/// Puts `chunk` on `list`, with its place in `at`.
fn enlist(list: &mut Vec<NonNull<Chunk>>, chunk: NonNull<Chunk>, at: fn(&Chunk) -> &AtomicUsize) {
    // SAFETY: invariant 3.
    at(unsafe { chunk.as_ref() }).store(list.len(), Relaxed);
    list.push(chunk);
}

/// Takes `chunk` off `list`.
fn delist(list: &mut Vec<NonNull<Chunk>>, chunk: &Chunk, at: fn(&Chunk) -> &AtomicUsize) {
    let place = at(chunk).swap(NOWHERE, Relaxed);
    list.swap_remove(place);
    if let Some(moved) = list.get(place) {
        // SAFETY: invariant 3.
        at(unsafe { moved.as_ref() }).store(place, Relaxed);
    }
}

impl State {
    fn add(&mut self, chunk: Box<Chunk>) {
        self.pages += PAGES;
        enlist(&mut self.open, NonNull::from(Box::leak(chunk)), |chunk| &chunk.open_at);
    }

    /// Takes a free page, and reports whether it is a used one. `None` if there is no free page.
    fn take(&mut self) -> Option<(Page, bool)> {
        // Used pages first: the others would take memory.
        let at = *self.kept.last().or(self.open.last())?;
        // SAFETY: invariant 3.
        let chunk = unsafe { at.as_ref() };
        let (free, used) = (chunk.free.load(Relaxed), chunk.used.load(Relaxed));
        let index = if used != 0 { used } else { free }.trailing_zeros() as usize;
        let (free, still) = (free & !(1 << index), used & !(1 << index));
        chunk.free.store(free, Relaxed);
        chunk.used.store(still, Relaxed);
        self.live += 1;
        if used != 0 {
            self.used -= 1;
            if still == 0 {
                delist(&mut self.kept, chunk, |chunk| &chunk.kept_at);
            }
        }
        if free == 0 {
            delist(&mut self.open, chunk, |chunk| &chunk.open_at);
        }
        Some((Page { bytes: chunk.page(index), chunk: at }, used != 0))
    }

    /// Takes a page back. Returns chunks that have ended, to be dropped without the lock.
    fn put(&mut self, at: NonNull<Chunk>, index: usize) -> Vec<Chunk> {
        // SAFETY: invariant 1: the page was free before this take.
        let chunk = unsafe { at.as_ref() };
        let (free, used) = (chunk.free.load(Relaxed), chunk.used.load(Relaxed));
        chunk.free.store(free | 1 << index, Relaxed);
        chunk.used.store(used | 1 << index, Relaxed);
        self.live -= 1;
        self.used += 1;
        if free == 0 {
            enlist(&mut self.open, at, |chunk| &chunk.open_at);
        }
        if used == 0 {
            enlist(&mut self.kept, at, |chunk| &chunk.kept_at);
        }
        let mut ended = Vec::new();
        let most = if self.is_closed { 0 } else { KEPT.max(self.live / 16) };
        if self.used > most {
            for _ in 0..CHUNKS_A_CALL {
                let Some(&next) = self.kept.first() else { break };
                // SAFETY: invariant 3.
                delist(&mut self.kept, unsafe { next.as_ref() }, |chunk| &chunk.kept_at);
                ended.extend(self.give_back(next));
                if self.used <= most - most / 4 {
                    break;
                }
            }
        }
        ended
    }

    /// Returns the used pages of a chunk, which is off `kept`. `Some`: no page of it is in use, so that it has ended.
    fn give_back(&mut self, at: NonNull<Chunk>) -> Option<Chunk> {
        // SAFETY: invariant 3.
        let chunk = unsafe { at.as_ref() };
        let mut used = chunk.used.load(Relaxed);
        self.used -= used.count_ones() as usize;
        if chunk.free.load(Relaxed) == u64::MAX {
            delist(&mut self.open, chunk, |chunk| &chunk.open_at);
            self.pages -= PAGES;
            // SAFETY: invariant 3: it came from a box, it is on no list, and no page refers to it.
            return Some(*unsafe { Box::from_raw(at.as_ptr()) });
        }
        let mut refused = 0;
        while used != 0 {
            let first = used.trailing_zeros();
            let run = (used >> first).trailing_ones();
            let bits = u64::MAX >> (PAGES as u32 - run) << first;
            let (start, len) = (first as usize * PAGE, run as usize * PAGE);
            // SAFETY: invariant 1: the pages are free, and `used` pages are not taken without this lock.
            if !unsafe { chunk.memory.discard(start..start + len) } {
                refused |= bits;
            }
            used &= !bits;
        }
        // Memory that the system refused to take is still used; it is returned with the chunk.
        chunk.used.store(refused, Relaxed);
        if refused != 0 {
            self.used += refused.count_ones() as usize;
            enlist(&mut self.kept, at, |chunk| &chunk.kept_at);
        }
        None
    }
}

/// Returns the pages that `len` bytes from `offset` on touch: number, place in the page, range of the bytes.
pub fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE as u64) as usize;
        let part = (PAGE - within).min(len - done);
        done += part;
        (part > 0).then_some((at / PAGE as u64, within, done - part..done))
    })
}

impl Deref for Page {
    type Target = [u8; PAGE];

    #[inline]
    fn deref(&self) -> &[u8; PAGE] {
        // SAFETY: invariant 1: the bytes are mapped, and belong to this value.
        unsafe { self.bytes.as_ref() }
    }
}

impl DerefMut for Page {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; PAGE] {
        // SAFETY: invariant 1: the bytes are mapped, and belong to this value.
        unsafe { self.bytes.as_mut() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        let chunk = unsafe { self.chunk.as_ref() };
        let index = (self.bytes.addr().get() - chunk.memory.start().addr().get()) / PAGE;
        // The clone keeps the lock where it is if the chunk ends.
        let part = chunk.part.clone();
        let ended = part.state.lock().put(self.chunk, index);
        drop(ended);
    }
}

impl core::fmt::Debug for Page {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
