//! The threads that wait for a [`RawRwSem`](super::RawRwSem), first come first served.
//!
//! # What it is
//! A doubly linked list of nodes on the waiters' own stacks, and the word on which each waiter
//! sleeps. Threads reach the list only under the wait lock. The thread that grants the semaphore
//! cuts the granted waiters off the head under the wait lock, and wakes them after it has released
//! the wait lock.
//!
//! # What it is not
//! The policy: `RawRwSem::grant` decides which waiters come in.
//!
//! # State of a waiter
//! ```text
//! WAITING --- park ---> PARKED
//!    |                     |
//!  grant                 grant      (a swap, which shows the granter whether there is a sleeper)
//!    v                     v
//! GRANTED               GRANTED --- the granter has called unpark ---> GONE
//! ```
//! A waiter leaves, and its node ends, in `GRANTED` if it never parked, else in `GONE`: the granter touches the node of
//! a sleeper until it has woken it.
//!
//! # Invariants
//! 1. A node is in the queue exactly while its `links.queued` is set; all links are reached under the wait lock, except
//!    `next` of a node that was cut off, which its granter reads.
//! 2. A node lives while it is queued. After it was cut off, it lives until the state in which its
//!    waiter leaves. A waiter leaves `sleep` in that state, or after `remove` has unlinked the node
//!    under the wait lock.
//! 3. A node is cut off once, and the [`Granted`] it is in is woken once.
//!
//! # Orderings
//! | here                                     | partner                                  |
//! |------------------------------------------|------------------------------------------|
//! | `sleep`: exchange that fails, Acquire    | `Granted::wake`: swap, Release           |
//! | `sleep`: load of `GONE`, Acquire         | `Granted::wake`: store of `GONE`, Release |
//!
//! # Source
//! Linux's `rwsem_waiter` list and `wake_q`. A kernel keeps a sleeper's task alive by a count; here the last state
//! does that.

use super::RwSemStats;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::{hint, park};

const WAITING: u32 = 0;
const PARKED: u32 = 1;
const GRANTED: u32 = 2;
const GONE: u32 = 3;

/// The share of the lock that a waiter wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// A thread that waits.
pub(super) struct Waiter {
    kind: Kind,
    state: AtomicU32,
    links: UnsafeCell<Links>,
}

#[derive(Default)]
struct Links {
    queued: bool,
    next: Option<NonNull<Waiter>>,
    prev: Option<NonNull<Waiter>>,
}

impl Waiter {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, state: AtomicU32::new(WAITING), links: UnsafeCell::new(Links::default()) }
    }

    /// Sleeps until the lock is granted to this waiter, which must be queued. At `deadline_ns` of
    /// the monotonic clock it calls `give_up`, which must try to [remove](Queue::remove) the
    /// waiter, and return whether it did. Returns `false` if the waiter was removed.
    pub(super) fn sleep(&self, deadline_ns: Option<i64>, give_up: impl FnOnce() -> bool) -> bool {
        // Relaxed if it succeeds: the granter's swap comes after it. ORDERING: Acquire if it fails pairs with the
        // Release in `Granted::wake`: what the granter saw of former holders comes with the lock.
        if self.state.compare_exchange(WAITING, PARKED, Relaxed, Acquire).is_err() {
            return true;
        }
        let mut until = deadline_ns.map(|deadline_ns| (deadline_ns, give_up));
        // Relaxed: the load of `GONE` orders.
        while self.state.load(Relaxed) == PARKED {
            let Some((deadline_ns, give_up)) = until.take() else {
                park::park(&self.state, PARKED);
                continue;
            };
            let left_ns = deadline_ns.saturating_sub(prim::clock::monotonic_ns());
            if left_ns > 0 {
                park::park_timeout(&self.state, PARKED, core::time::Duration::from_nanos(left_ns.unsigned_abs()));
                until = Some((deadline_ns, give_up));
            } else if give_up() {
                return false;
            }
        }
        // ORDERING: Acquire pairs with the Release of `GONE` in `Granted::wake`: what the granter saw of former holders
        // comes with the lock, and the granter no longer uses the node.
        hint::spin_until(|| self.state.load(Acquire) == GONE);
        true
    }

    /// # Safety
    /// The caller holds the wait lock, or this is a node that it cut off and has not woken.
    unsafe fn next(&self) -> Option<NonNull<Waiter>> {
        // SAFETY: invariant 1, by this function's contract.
        self.links.with(|links| unsafe { (*links).next })
    }

    /// # Safety
    /// The caller holds the wait lock.
    unsafe fn change(&self, change: impl FnOnce(&mut Links)) {
        // SAFETY: invariant 1, by this function's contract.
        self.links.with_mut(|links| change(unsafe { &mut *links }));
    }
}

/// The waiters, and the counts kept under the same lock.
#[derive(Default)]
pub(super) struct Queue {
    head: Option<NonNull<Waiter>>,
    tail: Option<NonNull<Waiter>>,
    len: u64,
    pub(super) stats: RwSemStats,
}

// SAFETY: the nodes are `Sync` by invariant 1, and the queue may be on any thread.
unsafe impl Send for Queue {}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Appends `waiter`.
    ///
    /// # Safety
    /// The waiter lives, and is not moved, until it leaves [`Waiter::sleep`], which its thread
    /// calls next.
    pub(super) unsafe fn push(&mut self, waiter: &Waiter) {
        let node = NonNull::from(waiter);
        let prev = self.tail.replace(node);
        Self::change(waiter, |links| *links = Links { queued: true, next: None, prev });
        self.link_after(prev, Some(node));
        self.len += 1;
    }

    /// Unlinks `waiter`. `false`: it has been cut off, so it has been, or is about to be, granted the lock.
    pub(super) fn remove(&mut self, waiter: &Waiter) -> bool {
        // SAFETY: invariant 1: `&mut self` comes from the wait lock. Only a read: a granter may read `next` meanwhile.
        if !waiter.links.with(|links| unsafe { (*links).queued }) {
            return false;
        }
        let mut links = Links::default();
        Self::change(waiter, |own| links = core::mem::take(own));
        self.link_after(links.prev, links.next);
        self.link_before(links.next, links.prev);
        self.len -= 1;
        true
    }

    /// Makes `next` follow `prev`, or the head.
    fn link_after(&mut self, prev: Option<NonNull<Waiter>>, next: Option<NonNull<Waiter>>) {
        match prev {
            // SAFETY: invariant 2: a neighbour is queued, so it lives.
            Some(prev) => Self::change(unsafe { prev.as_ref() }, |links| links.next = next),
            None => self.head = next,
        }
    }

    /// Makes `prev` come before `next`, or before the end.
    fn link_before(&mut self, next: Option<NonNull<Waiter>>, prev: Option<NonNull<Waiter>>) {
        match next {
            // SAFETY: invariant 2: a neighbour is queued, so it lives.
            Some(next) => Self::change(unsafe { next.as_ref() }, |links| links.prev = prev),
            None => self.tail = prev,
        }
    }

    fn change(waiter: &Waiter, change: impl FnOnce(&mut Links)) {
        // SAFETY: invariant 1: callers have `&mut Queue`, which comes from the wait lock.
        unsafe { waiter.change(change) };
    }

    /// Returns the longest run of waiters at the head that can come in together: all readers up to
    /// the first writer, or one writer. The result is their kind, their number, and the last
    /// waiter.
    pub(super) fn batch(&self) -> Option<Batch> {
        let mut last = self.head?;
        // SAFETY: invariant 2: it is queued, so it lives.
        let kind = unsafe { last.as_ref() }.kind;
        let mut len = 1;
        if kind == Kind::Read {
            while let Some(next) = Self::next_reader(last) {
                last = next;
                len += 1;
            }
        }
        Some(Batch { kind, len, last })
    }

    /// Returns the waiter behind `node`, which is queued, if it is a reader.
    fn next_reader(node: NonNull<Waiter>) -> Option<NonNull<Waiter>> {
        // SAFETY: invariant 2: it is queued, so it lives.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: callers have `&Queue`, which comes from the wait lock.
        let next = unsafe { waiter.next() }?;
        // SAFETY: invariant 2, as above.
        (unsafe { next.as_ref() }.kind == Kind::Read).then_some(next)
    }

    /// Cuts off a batch, to be woken after the wait lock is released.
    pub(super) fn cut(&mut self, batch: &Batch) -> Granted {
        let first = self.head;
        let mut at = first;
        while let Some(node) = at {
            // SAFETY: invariant 2: it is queued, so it lives.
            let waiter = unsafe { node.as_ref() };
            let is_last = node == batch.last;
            Self::change(waiter, |links| {
                links.queued = false;
                at = links.next;
                if is_last {
                    links.next = None;
                }
            });
            if is_last {
                break;
            }
        }
        self.head = at;
        self.link_before(at, None);
        self.len -= batch.len;
        Granted { first }
    }
}

/// Waiters at the head of a queue; see [`Queue::batch`].
pub(super) struct Batch {
    pub(super) kind: Kind,
    pub(super) len: u64,
    last: NonNull<Waiter>,
}

/// Waiters that have been cut off and own their share of the lock, but have not been notified.
#[must_use = "they sleep until woken"]
#[derive(Default)]
pub(super) struct Granted {
    first: Option<NonNull<Waiter>>,
}

impl Granted {
    /// Notifies and wakes them. Call it without the wait lock: it makes system calls.
    pub(super) fn wake(self) {
        let mut at = self.first;
        while let Some(node) = at {
            // SAFETY: invariant 2: it has not been notified, so it lives.
            let waiter = unsafe { node.as_ref() };
            // SAFETY: invariant 3: it was cut off for this `Granted`.
            at = unsafe { waiter.next() };
            // ORDERING: Release pairs with the Acquire of the failing exchange in `Waiter::sleep`: the waiter's section
            // follows the sections that the granter saw end.
            if waiter.state.swap(GRANTED, Release) == PARKED {
                park::unpark_one(&waiter.state);
                // ORDERING: Release pairs with the Acquire of the load of `GONE` in `Waiter::sleep`: as above, and the
                // granter does not touch the node after this.
                waiter.state.store(GONE, Release);
            }
        }
    }
}
