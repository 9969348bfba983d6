//! Read-copy update: readers that store only to their own cache line, writers that free after a grace period.
//!
//! # What it is
//! An instance ([`RcuDomain`]) with nestable read sections ([`RcuDomain::read`]), a synchronous grace period
//! ([`RcuDomain::synchronize`]), deferred callbacks counted by bytes ([`RcuDomain::defer`]) run by one background
//! thread, and a barrier for them ([`RcuDomain::barrier`]). [`Rcu`] and [`RcuOption`] are cells on top.
//!
//! A reader enters by a plain store of the domain's epoch into its CPU's slot and leaves by a plain
//! store of 0: well under a nanosecond and no locked instruction, so the cache misses of
//! neighbouring sections still overlap. The writer pays: `membarrier(2)` makes all running threads
//! execute a fence (0.3 to 11 us). If the kernel lacks `membarrier(2)`, or refuses it now or later
//! (seccomp), readers execute a full fence themselves (5 ns). [`RcuStats::reader_mode`] is the mode
//! in use.
//!
//! # What it is not
//! A garbage collector with bounded memory: a reader that stays in its section keeps everything
//! deferred since its entry. [`RcuDomain::stats`] counts that while it lasts. Slow callbacks delay
//! the others: they run one after the other.
//!
//! # Where the words and orderings are
//! `readers.rs` (slots, epoch, grace period), `reclaim.rs` (a callback from `defer` to its call), `batch.rs` (batches
//! and their stack), `cell.rs` (pointers); each with its invariants.
//!
//! # Source
//! Mathieu Desnoyers, Paul E. McKenney, Alan S. Stern, Michel R. Dagenais, Jonathan Walpole:
//! "User-Level Implementations of Read-Copy Update", IEEE Transactions on Parallel and Distributed
//! Systems 23(2), 2012; `membarrier(2)`. This RCU differs from both sources: the epoch is a 64-bit
//! number that never wraps, so one scan for each grace period is enough, and the slots belong to an
//! instance.
//!
//! # Limitations
//! A domain does not survive `fork(2)`: in the child, until an `exec`, the domain frees nothing,
//! its drop leaks it, and [`RcuDomain::try_barrier`] fails. A lock of the domain that a thread of
//! the parent held at the fork stays held. Domains that the child makes work.
//!
//! A callback that panics is counted ([`RcuStats::panics`]). A panic inside the drop of a value that a panic is just
//! unwinding over aborts the process, as everywhere in Rust.
//!
//! Callbacks of a batch that is not full (at most 1023 callbacks and 64 KiB for each CPU index) stay until more come,
//! or until [`RcuDomain::flush`] or [`RcuDomain::barrier`].

mod batch;
mod cell;
pub(crate) mod readers;
mod reclaim;

pub(crate) use cell::wrong_domain;
pub use cell::{RawRcu, Rcu, RcuOption};
pub use readers::Refused;

use batch::{Callback, Pending, TryLock};
use prim::atomic::Ordering::Relaxed;
use prim::shared::Arc;
use readers::Section;
use reclaim::Inner;

/// Readers, grace periods and deferred callbacks that belong together.
///
/// ```
/// let domain = lightfoot_sync::rcu::RcuDomain::new();
/// let guard = domain.read();
/// domain.defer_drop(Box::new([0u8; 100]));
/// assert_eq!(domain.stats().deferred_bytes, 100);
/// drop(guard);
/// domain.barrier();
/// assert_eq!(domain.stats().deferred_bytes, 0);
/// ```
///
/// A guard cannot leave its thread:
///
/// ```compile_fail
/// let domain = lightfoot_sync::rcu::RcuDomain::new();
/// let guard = domain.read();
/// std::thread::scope(|s| drop(s.spawn(move || drop(guard))));
/// ```
///
/// A loaded value cannot outlive the guard:
///
/// ```compile_fail
/// let domain = lightfoot_sync::rcu::RcuDomain::new();
/// let cell = lightfoot_sync::rcu::Rcu::new(&domain, 1);
/// let guard = domain.read();
/// let seen = cell.load(&guard);
/// drop(guard);
/// assert_eq!(*seen, 1);
/// ```
pub struct RcuDomain {
    inner: Arc<Inner>,
}

/// How readers order themselves against writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ReaderMode {
    /// A compiler fence in the reader, `membarrier(2)` in the writer.
    Membarrier,
    /// A full fence in both.
    Fence,
}

/// Counts of a domain; see [`RcuDomain::stats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RcuStats {
    /// Grace periods that ended (one serves many batches).
    pub grace_periods: u64,
    /// Callbacks that were deferred and have not run yet.
    pub deferred_callbacks: u64,
    /// The bytes that these account for.
    pub deferred_bytes: u64,
    /// Callbacks that have run.
    pub freed_callbacks: u64,
    /// The bytes that these accounted for.
    pub freed_bytes: u64,
    /// Grace periods that waited a second or longer for a reader.
    pub stalls: u64,
    /// Grace periods that wait so long now.
    pub stalled_now: u64,
    /// The longest grace period that ended, in nanoseconds.
    pub longest_grace_period_ns: u64,
    /// Guards that a destructor dropped too late (see [`ReadGuard`]); each stalls the domain for good.
    pub leaked_guards: u64,
    /// Callbacks that panicked. The others ran all the same.
    pub panics: u64,
    /// Grace periods that could not begin ([`Refused`]). The memory that waits for them stays until
    /// one can.
    pub refusals: u64,
    /// How readers order themselves against writers.
    pub reader_mode: ReaderMode,
}

impl RcuDomain {
    /// Returns a domain with the cheapest readers that the system offers.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::new(Inner::new(false, false)) }
    }

    /// Returns a domain whose readers execute a full fence and whose writers need no
    /// `membarrier(2)`. [`RcuDomain::new`] falls back to it.
    #[must_use]
    pub fn with_fences() -> Self {
        Self { inner: Arc::new(Inner::new(true, false)) }
    }

    /// Returns a domain without a background thread; other domains fall back to this while the
    /// system has no room for a thread. Callbacks run on the calling thread, inside a later `defer`
    /// that fills a batch of callbacks, or inside `flush` or `barrier`. So this caller must not
    /// hold a lock that a callback takes. No thread waits for a grace period, so a stall shows only
    /// in the deferred bytes.
    #[must_use]
    pub fn without_reclaimer() -> Self {
        Self { inner: Arc::new(Inner::new(false, true)) }
    }

    /// Enters a read section. Values loaded in it stay until the guard is dropped. Sections nest.
    #[inline(always)]
    pub fn read(&self) -> ReadGuard<'_> {
        ReadGuard { domain: &self.inner, _section: self.inner.readers.enter() }
    }

    /// Waits until every read section that is open now, on any thread, has ended.
    ///
    /// # Panics
    /// Inside a read section of this domain (it would wait for itself), or for a reason of [`Refused`].
    pub fn synchronize(&self) {
        self.check_outside("synchronize");
        match self.inner.readers.start().map(|target| self.inner.wait_for_readers(target)) {
            Ok(ended) => debug_assert!(ended, "only the last user of a domain drops it"),
            Err(refused) => panic!("synchronize: {refused}"),
        }
    }

    /// Returns whether the calling thread is in a read section of this domain.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.inner.readers.is_inside()
    }

    /// Panics if the calling thread is in a read section of this domain.
    fn check_outside(&self, call: &str) {
        assert!(!self.inner.readers.is_inside(), "{call} inside a read section of the same domain");
    }

    /// Runs `f` after a grace period, once, usually on another thread. `bytes`: the memory that `f` will free.
    ///
    /// Never waits, never frees in place. `f` must not wait for the deferring thread, nor call [`RcuDomain::barrier`].
    pub fn defer(&self, bytes: usize, f: impl FnOnce() + Send + 'static) {
        self.push(bytes, Callback::from_fn(f));
    }

    /// Drops `value` after a grace period; accounts its own size. Allocates nothing besides its share of a batch.
    pub fn defer_drop<T: Send + 'static>(&self, value: Box<T>) {
        self.push(size_of::<T>(), Callback::from_box(value));
    }

    /// Calls `call(data)` after a grace period, once, on any thread; accounts `bytes`. Allocates nothing besides its
    /// share of a batch.
    ///
    /// # Safety
    /// The call is sound on any thread once all read sections that are open now have ended, for as long as the domain
    /// lives and at its drop.
    pub unsafe fn defer_raw(&self, bytes: usize, call: unsafe fn(*mut ()), data: *mut ()) {
        // SAFETY: the caller's promise.
        self.push(bytes, unsafe { Callback::raw(call, data) });
    }

    #[inline]
    fn push(&self, bytes: usize, callback: Callback) {
        if self.inner.defer(bytes, callback) {
            reclaim::call_reclaimer(&self.inner);
        }
    }

    /// Hands the batches of all CPUs to the reclaimer, full or not, and does not wait.
    pub fn flush(&self) {
        reclaim::flush(&self.inner);
    }

    /// Returns when every callback that was deferred before, by any thread, has run (`rcu_barrier`).
    ///
    /// # Panics
    /// Inside a read section or a callback of this domain (it would wait for itself), or for a reason of [`Refused`].
    pub fn barrier(&self) {
        if let Err(refused) = self.try_barrier() {
            panic!("barrier: {refused}");
        }
    }

    /// As [`RcuDomain::barrier`], if grace periods can begin.
    ///
    /// # Errors
    /// [`Refused`]; the callbacks have not run.
    ///
    /// # Panics
    /// Inside a read section or a callback of this domain.
    pub fn try_barrier(&self) -> Result<(), Refused> {
        self.inner.readers.check_era()?;
        self.check_outside("barrier");
        assert!(!self.inner.is_in_callback(), "barrier inside a callback of the same domain");
        reclaim::barrier(&self.inner)
    }

    /// Returns the current counts. Counts of other threads' work in progress may be slightly old.
    #[must_use]
    pub fn stats(&self) -> RcuStats {
        let counters = &self.inner.reclaim.counters;
        // Freed first: callbacks deferred later must not make the difference too large.
        let (freed_callbacks, freed_bytes) =
            (counters.freed_callbacks.load(Relaxed), counters.freed_bytes.load(Relaxed));
        let (mut queued_callbacks, mut queued_bytes) = (0u64, 0u64);
        for pending in self.inner.readers.iter() {
            pending.with(|pending: &mut Pending| {
                queued_callbacks += pending.queued_callbacks;
                queued_bytes += pending.queued_bytes;
            });
        }
        RcuStats {
            grace_periods: counters.grace_periods.load(Relaxed),
            deferred_callbacks: queued_callbacks.saturating_sub(freed_callbacks),
            deferred_bytes: queued_bytes.saturating_sub(freed_bytes),
            freed_callbacks,
            freed_bytes,
            stalls: counters.stalls.load(Relaxed),
            stalled_now: counters.stalled_now.load(Relaxed),
            longest_grace_period_ns: counters.longest_grace_period_ns.load(Relaxed),
            leaked_guards: self.inner.readers.leaked(),
            panics: counters.panics.load(Relaxed),
            refusals: counters.refusals.load(Relaxed),
            reader_mode: if self.inner.readers.asymmetric.is_fence() {
                ReaderMode::Fence
            } else {
                ReaderMode::Membarrier
            },
        }
    }

    /// Differs from the number of every other living domain.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref::<Inner>(&self.inner).addr()
    }
}

impl Default for RcuDomain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RcuDomain {
    /// Ends the reclaimer and runs all remaining callbacks. In the child of a fork it does nothing.
    fn drop(&mut self) {
        reclaim::shut_down(&self.inner);
    }
}

impl core::fmt::Debug for RcuDomain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RcuDomain").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// A read section of a domain; left when dropped.
///
/// `!Send` and `!Sync`: the guard belongs to its thread's slot. A guard never ends if it is
/// forgotten, or dropped after the thread returned its CPU index (in a destructor of
/// `pthread_key_create(3)`; with musl also of a thread-local). It then stalls the domain, but
/// nothing that a reader uses is freed. [`RcuStats::leaked_guards`] counts the late drops.
pub struct ReadGuard<'d> {
    domain: &'d Inner,
    _section: Section<'d, TryLock<Pending>>,
}

impl ReadGuard<'_> {
    /// Returns the address of its domain, which cannot be dropped before the guard.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref::<Inner>(self.domain).addr()
    }
}

impl core::fmt::Debug for ReadGuard<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReadGuard").finish_non_exhaustive()
    }
}
