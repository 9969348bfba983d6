//! A reference count that many threads take and give back without writing a shared line.
//!
//! # What it is
//! An `Arc` for one hot, long-lived object with one owner (a mount, a superblock). While the [`PerCpuOwner`] lives,
//! cloning and dropping a [`PerCpuArc`] add to and subtract from a counter of the calling CPU; only the sum of all
//! counters means something, and nobody needs it: the owner's own reference keeps the object. Dropping the owner
//! switches to one atomic count, and the last reference drops the value, on whichever thread that is.
//!
//! # What it is not
//! A replacement for `Arc`: it takes some 4 KiB, and the owner's drop waits for a (short) grace period. There are no
//! weak references, and the count cannot be read while the owner lives.
//!
//! # State
//! ```text
//! dying  central                          counters       clone / drop of a reference
//! false  BIAS + 1 (the owner's own)       sum = shares   own CPU's counter +- 1
//! true   BIAS + 1 + central ones so far   final          central +- 1
//! then   references left                  unused         central +- 1; who reaches 0 drops the object
//! ```
//! The switch sets `dying`, waits for a grace period of the object's own readers - every clone or drop is a read
//! section, so afterwards none uses a counter any more - and adds the sum of the counters, less `BIAS` and the owner's
//! reference. Until then `BIAS` keeps the central count from reaching 0.
//!
//! # Invariants
//! 1. A handle ([`PerCpuOwner`], [`PerCpuArc`]) owns one reference: `body` is valid while it lives.
//! 2. `central` reaches 0 once, when no handle is left, and whoever brings it there frees `body` and touches it last:
//!    a thread that gives its reference back in the central count has left its read section before, and one that does
//!    so in a counter is still in its section, which the switch waits for.
//! 3. A counter is written by the thread that owns its index, inside a read section that saw `dying` unset.
//!
//! # Source
//! Linux `percpu-ref` (Kent Overstreet, Tejun Heo, 2013). Differs in that the grace period is the object's own and
//! that the kill waits for it, so it may be done inside read sections of any [`RcuDomain`](crate::rcu::RcuDomain).

use crate::rcu::readers::Readers;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Relaxed},
};

/// More than there can be references.
const BIAS: i64 = 1 << 62;

/// One CPU's share of the count: its clones less its drops. Lives in the line of its reader slot.
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
    dying: AtomicBool,
    central: AtomicI64,
    value: T,
}

impl<T> Body<T> {
    /// Adds `n` to the own CPU's counter; `false`, and nothing done, if the owner is gone.
    #[inline(always)]
    fn add_on_cpu(&self, n: i64) -> bool {
        let section = self.readers.enter();
        // Relaxed: the grace period of the switch orders it: a section that it does not wait for sees the flag.
        let alive = !self.dying.load(Relaxed);
        if alive {
            section.own().add(n);
        }
        alive
    }
}

/// Takes a reference.
#[inline(always)]
fn get<T>(body: NonNull<Body<T>>) -> PerCpuArc<T> {
    // SAFETY: invariant 1: the caller's handle lives.
    let shared = unsafe { body.as_ref() };
    if !shared.add_on_cpu(1) {
        // Relaxed: made from a living reference, which orders it against the last drop.
        shared.central.fetch_add(1, Relaxed);
    }
    PerCpuArc { body, owned: PhantomData }
}

/// Gives references back in the central count: adds `n`, frees the body if that makes 0.
///
/// # Safety
/// The caller gives up a reference with this and uses the body no more.
#[cold]
unsafe fn put_central<T>(body: NonNull<Body<T>>, n: i64) {
    // SAFETY: invariant 1: the reference being given up is still there.
    let central = unsafe { &body.as_ref().central };
    // ORDERING: AcqRel pairs with itself in other calls: whoever frees sees what all others did before they let go.
    // (What was let go in a counter comes with the grace period of the switch, which then comes through here.)
    if central.fetch_add(n, AcqRel) + n == 0 {
        // SAFETY: invariant 2.
        drop(unsafe { Box::from_raw(body.as_ptr()) });
    }
}

/// The owner of a value with a per-CPU reference count. Dropping it leaves the value to the last [`PerCpuArc`].
///
/// ```
/// let owner = sync::PerCpuOwner::new(String::from("root"));
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

// SAFETY: as `Arc<T>`: a handle gives out `&T` on any thread (`T: Sync`), and the last one drops the `T` where it is
// (`T: Send`). The body's other fields are `Sync`.
unsafe impl<T: Send + Sync> Send for PerCpuOwner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuOwner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for PerCpuArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuArc<T> {}

impl<T> PerCpuOwner<T> {
    /// Moves `value` to the heap, with counters.
    #[must_use]
    pub fn new(value: T) -> Self {
        let body = Box::new(Body {
            readers: Readers::new(false),
            dying: AtomicBool::new(false),
            central: AtomicI64::new(BIAS + 1),
            value,
        });
        Self { body: NonNull::from(Box::leak(body)), owned: PhantomData }
    }

    /// A shared reference.
    #[inline(always)]
    #[must_use]
    pub fn share(&self) -> PerCpuArc<T> {
        get(self.body)
    }
}

impl<T> Drop for PerCpuOwner<T> {
    /// Switches to the atomic count. Waits for clones and drops that are being executed right now, no longer.
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        let body = unsafe { self.body.as_ref() };
        // Relaxed: see `add_on_cpu`.
        body.dying.store(true, Relaxed);
        let target = body.readers.start();
        body.readers.wait(target, || {
            prim::thread::yield_now();
            true
        });
        // Relaxed: the grace period ordered them, and nobody writes them any more.
        let shares = body.readers.iter().fold(0i64, |sum, counter| sum.wrapping_add(counter.0.load(Relaxed)));
        // SAFETY: the owner's own reference is the one given up.
        unsafe { put_central(self.body, shares - BIAS - 1) };
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
            // SAFETY: this reference is the one given up, and the read section is over.
            unsafe { put_central(self.body, -1) };
        }
    }
}

impl<T> PerCpuArc<T> {
    /// Whether both refer to the same value.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.body == other.body
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
