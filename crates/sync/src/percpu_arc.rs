//! A reference count that many threads change without writing to a shared cache line.
//!
//! # What it is
//! An `Arc` for one hot, long-lived object with one owner (a mount, a superblock). While the [`PerCpuOwner`] lives,
//! cloning and dropping a [`PerCpuArc`] add to and subtract from a counter of the calling CPU. Only the sum of all
//! counters has a meaning, and it is not needed, because the owner's reference keeps the object alive. Dropping the
//! owner switches to one atomic count, and the last reference drops the value, on whichever thread that is. An owner
//! can also be *sealed*: that makes the switch, counts the references, and refuses to turn a [`PerCpuRef`] into a
//! reference until it is unsealed. So an owner can find out whether other references exist.
//!
//! # What it is not
//! A replacement for `Arc`: it takes some 4 KiB, and the drop and the seal of the owner wait for a
//! (short) grace period. There are no weak references, and only sealing reads the count.
//!
//! # State
//! ```text
//!           closed  central                         counters      clone / drop of a reference    to_arc
//! open      false   BIAS + 1 + c                    sum = s       own CPU's counter +- 1         as a clone
//! switching true    BIAS + 1 + c                    s, final      central +- 1                   None
//! sealed    true    1 + r (the owner's, and all)    unused        central +- 1                   None
//! gone      true    r                               unused        central +- 1; 0 drops it all   None
//! ```
//! `r` references exist. While open, `r = s + c`; `c` can differ from 0 only after an unsealing or a switch that failed.
//! A thread that has not seen a change of `closed` yet may still act as in the row before.
//!
//! The switch (by a drop or a seal) sets `closed`, waits for a grace period of the object's own
//! readers, and adds `s - BIAS` to the central count. Every clone or drop is a read section, so
//! after the grace period no thread uses a counter. Before its end `BIAS` keeps the central count
//! from reaching 0; after it the owner's reference does, which a drop returns in the same step.
//! Unsealing adds `BIAS - s` and clears `closed`; the counters keep their values.
//!
//! # Invariants
//! 1. A handle ([`PerCpuOwner`], [`PerCpuArc`]) owns one reference: `body` is valid while it lives. A [`PerCpuRef`]
//!    borrows one that does.
//! 2. `central` reaches 0 once, when no handle is left. The thread that makes it 0 frees `body`,
//!    and no thread touches `body` after that: a thread that drops a reference in the central count
//!    has left its read section before, and for a thread that drops a reference in a counter, still
//!    in its section, the switch waits.
//! 3. Only the thread that owns its index writes a counter, inside a read section that saw `closed` unset. So from the
//!    end of a switch's grace period to an unsealing no thread writes one: `s` is the same at both.
//! 4. `closed` changes, and `BIAS` and `s` are added and subtracted, only under the lock of `sealed` or in the owner's
//!    drop.
//!
//! # Source
//! Linux `percpu-ref` (Kent Overstreet, Tejun Heo, 2013). The difference: the object has its own
//! grace period, and the kill waits for it, so the kill may run inside read sections of any
//! [`RcuDomain`](crate::rcu::RcuDomain). The seal is Linux's `percpu_ref_kill` followed by
//! `percpu_ref_reinit`; the borrow is `triomphe`'s `ArcBorrow`.

use crate::mutex::Mutex;
use crate::rcu::readers::{Readers, Refused};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// More than the largest number of references.
const BIAS: i64 = 1 << 62;

/// One CPU's share of the count: its clones less its drops. In the cache line of its reader slot.
#[derive(Default)]
struct Counter(AtomicI64);

impl Counter {
    #[inline(always)]
    fn add(&self, n: i64) {
        // Relaxed: a counter with one writer; the switch reads it after a grace period. (loom gets a read-modify-write,
        // or it would not see a second writer.)
        if cfg!(loom) {
            self.0.fetch_add(n, Relaxed);
        } else {
            self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }
}

struct Body<T> {
    readers: Readers<Counter>,
    closed: AtomicBool,
    central: AtomicI64,
    /// Whether the owner is sealed. Locked for the length of a change (invariant 4).
    sealed: Mutex<bool>,
    value: T,
}

impl<T> Body<T> {
    /// Adds `n` to the calling CPU's counter. `false`, with nothing done, if the owner is sealed or
    /// dropped.
    #[inline(always)]
    fn add_on_cpu(&self, n: i64) -> bool {
        let section = self.readers.enter();
        // Relaxed: the grace period of the switch orders it: a section that it does not wait for sees the flag. A
        // thread that sees an unsealing late uses the central count once more, which is always correct.
        let open = !self.closed.load(Relaxed);
        if open {
            section.own().add(n);
        }
        open
    }

    /// Makes every later clone and drop use the central count. Waits for the clones and drops that
    /// are running at the call, no longer. Returns the number that must be added to the central
    /// count; see the state table. If readers cannot be waited for, it fails and opens again.
    fn close(&self) -> Result<i64, Refused> {
        // Relaxed: see `add_on_cpu`.
        self.closed.store(true, Relaxed);
        let target = self.readers.start().inspect_err(|_| self.closed.store(false, Relaxed))?;
        self.readers.wait(target, || {
            prim::thread::yield_now();
            true
        });
        Ok(self.counted() - BIAS)
    }

    /// Returns the sum of the counters, which no thread writes meanwhile (invariant 3).
    fn counted(&self) -> i64 {
        // Relaxed: the grace period of the switch ordered them.
        self.readers.iter().fold(0i64, |sum, counter| sum.wrapping_add(counter.0.load(Relaxed)))
    }
}

/// Takes a reference unless the owner is sealed or dropped.
#[inline(always)]
fn try_get<T>(body: NonNull<Body<T>>) -> Option<PerCpuArc<T>> {
    // SAFETY: invariant 1: the handle that the caller has or borrows lives.
    let taken = unsafe { body.as_ref() }.add_on_cpu(1);
    // Made only if taken: its drop would subtract a reference that was never added.
    taken.then(|| PerCpuArc { body, owned: PhantomData })
}

/// Takes a reference.
#[inline(always)]
fn get<T>(body: NonNull<Body<T>>) -> PerCpuArc<T> {
    // SAFETY: invariant 1: the caller's handle lives.
    let shared = unsafe { body.as_ref() };
    if !shared.add_on_cpu(1) {
        // Relaxed: the living reference it is made from orders it before the last drop.
        shared.central.fetch_add(1, Relaxed);
    }
    PerCpuArc { body, owned: PhantomData }
}

/// Adds `n`, which is negative if references are dropped, to the central count, and frees the body if the count is 0 then.
///
/// # Safety
/// The caller gives up a reference with this call and does not use the body after it.
#[cold]
unsafe fn put_central<T>(body: NonNull<Body<T>>, n: i64) {
    // SAFETY: invariant 1: the reference that the caller returns still exists.
    let central = unsafe { &body.as_ref().central };
    // ORDERING: AcqRel pairs with itself in other calls, and with the Acquire in `PerCpuOwner::seal`: the thread that
    // frees, or finds no reference left, sees what all others did before they dropped theirs. (References dropped in a
    // counter are ordered by the grace period of the switch; a sealer, or a drop that then comes through here, makes
    // it.) The Release is not visible in a model: each drop has just left a read section, whose fence loom takes for one.
    // (not visible to loom: the fence of the read section)
    if central.fetch_add(n, AcqRel) + n == 0 {
        // SAFETY: invariant 2.
        drop(unsafe { Box::from_raw(body.as_ptr()) });
    }
}

/// The owner of a value with a per-CPU reference count. Dropping it leaves the value to the last [`PerCpuArc`].
///
/// ```
/// let owner = lightfoot_sync::PerCpuOwner::new(String::from("root"), false);
/// let share = owner.share();
/// drop(owner);
/// assert_eq!(share.clone().as_str(), "root");
/// ```
pub struct PerCpuOwner<T> {
    body: NonNull<Body<T>>,
    owned: PhantomData<Body<T>>,
}

/// A reference to a value with a per-CPU reference count; see [`PerCpuOwner`].
pub struct PerCpuArc<T> {
    body: NonNull<Body<T>>,
    owned: PhantomData<Body<T>>,
}

/// A borrowed value from which a reference can be made. It is like `&PerCpuArc<T>` with one pointer
/// less to follow. Made by [`PerCpuOwner::borrow`] and [`PerCpuArc::borrow`].
pub struct PerCpuRef<'a, T> {
    body: NonNull<Body<T>>,
    handle: PhantomData<&'a PerCpuArc<T>>,
}

// SAFETY: as `Arc<T>`: a handle lends `&T` on any thread (`T: Sync`), and the last one drops the `T` on its thread
// (`T: Send`). The body's other fields are `Sync`.
unsafe impl<T: Send + Sync> Send for PerCpuOwner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuOwner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for PerCpuArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuArc<T> {}
// SAFETY: as above: a handle can be made from it.
unsafe impl<T: Send + Sync> Send for PerCpuRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuRef<'_, T> {}

impl<T> PerCpuOwner<T> {
    /// Moves `value` to the heap, with its counters. `is_small`: a process may have thousands of such values, so fewer counters
    /// exist from the start.
    #[must_use]
    pub fn new(value: T, is_small: bool) -> Self {
        let body = Box::new(Body {
            readers: Readers::new(false, is_small),
            closed: AtomicBool::new(false),
            central: AtomicI64::new(BIAS + 1),
            sealed: Mutex::new(false),
            value,
        });
        Self { body: NonNull::from(Box::leak(body)), owned: PhantomData }
    }

    /// Returns a shared reference. A sealed owner counts the reference in the central count, so the
    /// number that [`PerCpuOwner::seal`] returned is then too low by one.
    #[inline(always)]
    #[must_use]
    pub fn share(&self) -> PerCpuArc<T> {
        get(self.body)
    }

    /// Returns the value, borrowed; a reference can be made from it.
    #[inline(always)]
    #[must_use]
    pub fn borrow(&self) -> PerCpuRef<'_, T> {
        PerCpuRef { body: self.body, handle: PhantomData }
    }

    /// Seals the owner and returns how many references exist. From its return to the next [`PerCpuOwner::unseal`] no
    /// [`PerCpuRef::to_arc`] succeeds, so new references come only from existing ones, or from [`PerCpuOwner::share`],
    /// which the caller must not use meanwhile. If the result is 0, no reference exists or can be made, and all that
    /// their holders did happened before. Otherwise the number may have changed by the time the caller looks at it.
    ///
    /// Waits for clones and drops that are running now, no longer. For an owner that is sealed already it returns the
    /// current number. Callers must serialise the sealing and unsealing of one owner, or one ends the seal that another
    /// relies on; memory safety does not depend on it.
    ///
    /// Where readers cannot be waited for ([`Refused`]) it seals nothing and returns `i64::MAX`.
    #[must_use = "unless it is 0 there are references"]
    pub fn seal(&self) -> i64 {
        // SAFETY: invariant 1.
        let body = unsafe { self.body.as_ref() };
        if body.readers.check_era().is_err() {
            return i64::MAX;
        }
        let mut sealed = body.sealed.lock();
        let Ok(change) = (if *sealed { Ok(0) } else { body.close() }) else { return i64::MAX };
        *sealed = true;
        // ORDERING: Acquire pairs with the AcqRel in `put_central`: a thread that finds no reference left sees what the
        // holders did. (References dropped in a counter are ordered by the grace period.)
        body.central.fetch_add(change, Acquire) + change - 1
    }

    /// Ends what [`PerCpuOwner::seal`] began: references are counted on their CPU again, and [`PerCpuRef::to_arc`]
    /// succeeds. Does nothing to an owner that is not sealed; debug builds panic, since another caller has unsealed it.
    pub fn unseal(&self) {
        // SAFETY: invariant 1.
        let body = unsafe { self.body.as_ref() };
        let mut sealed = body.sealed.lock();
        debug_assert!(*sealed, "unsealed by another caller");
        if *sealed {
            // Relaxed: the owner's reference keeps the count above 0 before and after, in whichever order other threads
            // see this and the flag.
            body.central.fetch_add(BIAS - body.counted(), Relaxed);
            body.closed.store(false, Relaxed);
            *sealed = false;
        }
    }
}

impl<T> Drop for PerCpuOwner<T> {
    /// Switches to the atomic count for good, if a seal has not done so. Waits for clones and drops that are running
    /// now, no longer. Where readers cannot be waited for ([`Refused`]) the value is leaked.
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        let body = unsafe { self.body.as_ref() };
        if body.readers.check_era().is_err() {
            return;
        }
        let Ok(change) = (if *body.sealed.lock() { Ok(0) } else { body.close() }) else { return };
        // SAFETY: this returns the owner's reference.
        unsafe { put_central(self.body, change - 1) };
    }
}

impl<T> Clone for PerCpuArc<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        get(self.body)
    }
}

impl<T> Drop for PerCpuArc<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        if !unsafe { self.body.as_ref() }.add_on_cpu(-1) {
            // SAFETY: this returns this reference, and the read section is over.
            unsafe { put_central(self.body, -1) };
        }
    }
}

impl<T> PerCpuArc<T> {
    /// Returns whether both refer to the same value.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.body == other.body
    }

    /// Returns the value, borrowed; another reference can be made from it.
    #[inline(always)]
    #[must_use]
    pub fn borrow(&self) -> PerCpuRef<'_, T> {
        PerCpuRef { body: self.body, handle: PhantomData }
    }
}

impl<'a, T> PerCpuRef<'a, T> {
    /// Returns the value, for as long as the handle is borrowed.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> &'a T {
        // SAFETY: invariant 1: the borrowed handle lives for `'a`.
        &unsafe { self.body.as_ref() }.value
    }

    /// Returns a reference, at the cost of a clone. `None` if the owner is sealed or dropped.
    ///
    /// ```
    /// let owner = lightfoot_sync::PerCpuOwner::new(1, false);
    /// assert!(owner.borrow().to_arc().is_some());
    /// assert_eq!(owner.seal(), 0);
    /// assert!(owner.borrow().to_arc().is_none());
    /// owner.unseal();
    /// assert_eq!(owner.borrow().to_arc().as_deref(), Some(&1));
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn to_arc(self) -> Option<PerCpuArc<T>> {
        try_get(self.body)
    }

    /// Returns whether both refer to the same value.
    #[inline(always)]
    #[must_use]
    pub fn ptr_eq(self, other: Self) -> bool {
        self.body == other.body
    }
}

impl<T> Copy for PerCpuRef<'_, T> {}

impl<T> Clone for PerCpuRef<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Deref for PerCpuRef<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.get()
    }
}

impl<T> Deref for PerCpuOwner<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: invariant 1.
        &unsafe { self.body.as_ref() }.value
    }
}

impl<T> Deref for PerCpuArc<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: invariant 1.
        &unsafe { self.body.as_ref() }.value
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuOwner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerCpuOwner").field(&**self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerCpuArc").field(&**self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerCpuRef").field(&**self).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, AtomicUsize};

    /// Counts its drops.
    struct Value<'a>(&'a AtomicUsize);

    impl Drop for Value<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_seal_counts_the_references_and_refuses_new_ones() {
        let drops = AtomicUsize::new(0);
        let owner = PerCpuOwner::new(Value(&drops), false);
        let first = owner.share();
        let second = first.borrow().to_arc().expect("the owner is open");
        assert!(first.borrow().ptr_eq(owner.borrow()) && second.ptr_eq(&first));
        assert_eq!(owner.seal(), 2);
        assert!(owner.borrow().to_arc().is_none() && first.borrow().to_arc().is_none());
        let third = second.clone();
        assert_eq!(owner.seal(), 3);
        drop((first, second));
        assert_eq!(owner.seal(), 1);
        owner.unseal();
        let fourth = owner.borrow().to_arc();
        drop(third);
        assert_eq!(owner.seal(), 1);
        drop(fourth);
        assert_eq!(owner.seal(), 0);
        assert_eq!(drops.load(Relaxed), 0);
        drop(owner);
        assert_eq!(drops.load(Relaxed), 1);
    }

    #[test]
    fn a_sealed_owner_leaves_the_value_to_the_last_reference() {
        let drops = AtomicUsize::new(0);
        let owner = PerCpuOwner::new(Value(&drops), false);
        assert_eq!(owner.seal(), 0);
        let share = owner.share();
        drop(owner);
        assert!(share.borrow().to_arc().is_none());
        let other = share.clone();
        drop(share);
        assert_eq!(drops.load(Relaxed), 0);
        drop(other);
        assert_eq!(drops.load(Relaxed), 1);
    }

    #[test]
    fn a_sealer_that_finds_no_reference_is_alone_until_it_unseals() {
        let (inside, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let owner = PerCpuOwner::new((), false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    while !stop.load(Relaxed) {
                        let Some(first) = owner.borrow().to_arc() else {
                            std::thread::yield_now();
                            continue;
                        };
                        inside.fetch_add(1, Relaxed);
                        let second = first.clone();
                        drop(first);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Relaxed);
                        drop(second);
                    }
                });
            }
            let mut alone = 0;
            while alone < 10 {
                if owner.seal() == 0 {
                    alone += 1;
                    assert_eq!(inside.load(Relaxed), 0);
                    std::thread::yield_now();
                    assert_eq!((inside.load(Relaxed), owner.seal()), (0, 0));
                }
                owner.unseal();
                std::thread::yield_now();
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(owner.seal(), 0);
    }
}
