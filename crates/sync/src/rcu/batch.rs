//! Deferred callbacks: one, a batch of them, and the stack of batches handed to the reclaimer.
//!
//! # Invariants
//! 1. A [`Callback`] owns `data`, may be run on any thread, and is run once or leaked.
//! 2. Only the holder of `held` touches [`TryLock::value`].
//! 3. The [`Handed`] stack owns the batches on it; `next` is written before a batch gets there and read after it was
//!    taken.

use prim::atomic::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::shared::Arc;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Callbacks after which a batch is handed over.
pub(super) const BATCH_CALLBACKS: usize = if cfg!(loom) { 2 } else { 1024 };
/// Bytes after which a batch is handed over.
pub(super) const BATCH_BYTES: usize = 64 << 10;

/// A marker's word when all before it have run.
pub(super) const DONE: u32 = 1;
/// A marker's word when the reclaimer could not begin a grace period.
pub(super) const REFUSED: u32 = 2;

/// A function to call once after a grace period.
pub(super) struct Callback {
    call: unsafe fn(*mut ()),
    data: *mut (),
}

// SAFETY: `Callback::raw` requires that it may run on any thread (invariant 1).
unsafe impl Send for Callback {}

impl Callback {
    /// # Safety
    /// `call(data)` is sound once, later, on any thread.
    pub(super) unsafe fn raw(call: unsafe fn(*mut ()), data: *mut ()) -> Self {
        Self { call, data }
    }

    pub(super) fn from_fn<F: FnOnce() + Send + 'static>(f: F) -> Self {
        /// # Safety
        /// `data` is a `Box<F>` that the call takes over.
        unsafe fn call<F: FnOnce()>(data: *mut ()) {
            // SAFETY: as above.
            let f = unsafe { Box::from_raw(data.cast::<F>()) };
            f();
        }
        Self { call: call::<F>, data: Box::into_raw(Box::new(f)).cast() }
    }

    pub(super) fn from_box<T: Send + 'static>(value: Box<T>) -> Self {
        /// # Safety
        /// `data` is a `Box<T>` that the call takes over.
        unsafe fn call<T>(data: *mut ()) {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(data.cast::<T>()) });
        }
        Self { call: call::<T>, data: Box::into_raw(value).cast() }
    }

    pub(super) fn run(self) {
        // SAFETY: invariant 1; `self` is consumed.
        unsafe { (self.call)(self.data) }
    }
}

/// The callbacks that one CPU has deferred and not handed over yet.
#[derive(Default)]
pub(super) struct Pending {
    /// The batch being filled, if there is room for one.
    pub(super) batch: Option<Box<Batch>>,
    /// Callbacks ever deferred here, and their bytes.
    pub(super) queued_callbacks: u64,
    pub(super) queued_bytes: u64,
}

impl Pending {
    /// Takes `callback` into the batch. `None`: there is no room, and `callback` stays.
    /// `Some(true)`: `callback` filled the batch, which is now on `handed`.
    #[inline]
    pub(super) fn push(&mut self, bytes: usize, callback: &mut Option<Callback>, handed: &Handed) -> Option<bool> {
        let batch = self.batch.as_mut()?;
        batch.callbacks.extend(callback.take());
        batch.bytes += bytes;
        self.queued_callbacks += 1;
        self.queued_bytes += bytes as u64;
        let is_full = batch.callbacks.len() >= BATCH_CALLBACKS || batch.bytes >= BATCH_BYTES;
        Some(is_full && self.hand_over(handed))
    }

    /// Moves the batch, if there is one, to `handed`. Within the lock: if a thread finds the lock
    /// free and no batch, the batch is on `handed`.
    pub(super) fn hand_over(&mut self, handed: &Handed) -> bool {
        let batch = self.batch.take();
        batch.map(|batch| handed.push(batch)).is_some()
    }
}

/// Callbacks that wait for one grace period together.
pub(super) struct Batch {
    pub(super) callbacks: Vec<Callback>,
    pub(super) bytes: usize,
    /// Set to [`DONE`] when this batch and all before it have run; threads park on it.
    done: Option<Arc<AtomicU32>>,
    next: *mut Batch,
}

// SAFETY: callbacks are `Send`; only the owner of the batch uses `next` (invariant 3).
unsafe impl Send for Batch {}

impl Batch {
    /// Returns an empty batch with its room.
    pub(super) fn with_room() -> Box<Self> {
        let callbacks = Vec::with_capacity(BATCH_CALLBACKS);
        Box::new(Self { callbacks, bytes: 0, done: None, next: core::ptr::null_mut() })
    }

    /// Returns an empty batch that sets `done`, and wakes the threads parked on it: to [`DONE`], or
    /// [`REFUSED`].
    pub(super) fn marker(done: Arc<AtomicU32>) -> Box<Self> {
        Box::new(Self { callbacks: Vec::new(), bytes: 0, done: Some(done), next: core::ptr::null_mut() })
    }

    /// Runs the callbacks in the order in which they were deferred. A callback that panics (the panic hook has reported
    /// it) does not keep the others from running. Returns how many did.
    pub(super) fn run(mut self) -> u64 {
        let mut callbacks = core::mem::take(&mut self.callbacks).into_iter();
        if cfg!(loom) {
            // Under loom a panic must reach the model.
            callbacks.by_ref().for_each(Callback::run);
        }
        let mut panics = 0;
        while !callbacks.as_slice().is_empty() {
            panics += u64::from(panics_in(|| callbacks.by_ref().for_each(Callback::run)));
        }
        self.notify(DONE);
        panics
    }

    /// Sets a marker's word, and wakes the threads parked on it.
    pub(super) fn notify(&mut self, result: u32) {
        if let Some(done) = self.done.take() {
            // ORDERING: Release pairs with the Acquire in `barrier` (reclaim.rs): what the callbacks did.
            done.store(result, Release);
            prim::park::unpark_all(&done);
        }
    }
}

/// Calls `f`; returns whether it panicked. A panic ends here. If its payload panics while it is
/// dropped, the payload of that panic is leaked, since it might do the same.
fn panics_in(f: impl FnOnce()) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { return false };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(second);
    }
    true
}

/// A stack to which many threads push and from which one takes all (so no ABA).
pub(super) struct Handed {
    head: AtomicPtr<Batch>,
}

impl Handed {
    pub(super) fn new() -> Self {
        Self { head: AtomicPtr::new(core::ptr::null_mut()) }
    }

    pub(super) fn push(&self, batch: Box<Batch>) {
        let new = Box::into_raw(batch);
        // Relaxed: only compared, never followed.
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: not on the stack yet, so this thread owns it (invariant 3).
            unsafe { (*new).next = head };
            // ORDERING: Release pairs with the Acquire in `take_all`: the batch and the callbacks in it. Relaxed on
            // failure: as above.
            match self.head.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all batches, oldest first.
    pub(super) fn take_all(&self) -> Vec<Batch> {
        let mut batches = Vec::new();
        // ORDERING: Acquire pairs with the Release in `push`; the batches below the top come with it, because a push
        // on top is a read-modify-write and continues the release sequence. (not visible to loom: the later
        // fence of the grace period is an acquire, too)
        let mut head = self.head.swap(core::ptr::null_mut(), Acquire);
        while !head.is_null() {
            // SAFETY: taken off the stack, so this thread owns it (invariant 3).
            let batch = unsafe { Box::from_raw(head) };
            head = batch.next;
            batches.push(*batch);
        }
        batches.reverse();
        batches
    }
}

/// A lock that is nearly always free: one compare-exchange on a cache line of the owner.
///
/// `barrier` needs it to collect other CPUs' batches. Taking the batch out by an atomic swap instead would cost the
/// same one locked instruction per callback, and "empty" and "being written" would have to be distinguished.
pub(super) struct TryLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: invariant 2; a holder may move the value out, so `T: Send`.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Calls `f` with the value, or returns `None` if the lock is held.
    #[inline]
    pub(super) fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let held = self.try_hold()?;
        Some(self.access(&held, f))
    }

    /// Calls `f` with the value once the lock is free.
    #[inline]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let held = loop {
            if let Some(held) = self.try_hold() {
                break held;
            }
            // Relaxed: a hint; `try_hold` acquires.
            prim::hint::spin_until(|| !self.held.load(Relaxed));
        };
        self.access(&held, f)
    }

    #[inline]
    fn try_hold(&self) -> Option<Held<'_>> {
        // ORDERING: Acquire pairs with the Release in `Held::drop`. Relaxed on failure: nothing is read then.
        self.held.compare_exchange(false, true, Acquire, Relaxed).is_ok().then(|| Held(&self.held))
    }

    #[inline]
    fn access<R>(&self, _held: &Held<'_>, f: impl FnOnce(&mut T) -> R) -> R {
        self.value.with_mut(|value| {
            // SAFETY: invariant 2.
            f(unsafe { &mut *value })
        })
    }
}

impl<T: Default> Default for TryLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// The lock is held; dropping this releases it, also when the user of the value panics.
struct Held<'l>(&'l AtomicBool);

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `try_hold`.
        self.0.store(false, Release);
    }
}
