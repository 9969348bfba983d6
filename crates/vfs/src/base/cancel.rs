//! Cancellation: another thread ends the wait of a caller.
//!
//! # What it is
//! Any thread may set a [`Cancel`], once. While a thread runs [`Cancel::scope`] it carries the
//! handle, and the handle cancels the calls on trees that the thread makes. A file system finds the
//! handle in its [`Request`](crate::Request).
//!
//! # What it is not
//! A deadline, which a request has beside it. It is not a part of the request either: a call that nobody can cancel must not pay, and
//! one open file serves many callers.
//!
//! # How it is locked
//! One mutex around the watches, a leaf; they are called without it.
//!
//! # Where it comes from
//! A signal that is pending for a thread of Linux, which ends the thread's sleep; `context.Context` of Go.

use crate::base::deadline::moment_in;
use core::time::Duration;
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use prim::thread::{self, Carried};
use sync::Mutex;

/// Whether a caller still waits. Clones are the same.
///
/// Other threads can cancel the calls that a thread makes inside of [`Cancel::scope`]: a file
/// system that obeys ([`Bounded`](crate::Bounded) makes each obey) then fails with `EINTR`.
///
/// ```
/// use lightfoot_vfs::Cancel;
///
/// let cancel = Cancel::new();
/// std::thread::scope(|scope| {
///     let reader = scope.spawn(|| cancel.scope(|| /* calls on a tree */ Cancel::current().is_some()));
///     cancel.cancel();
///     assert!(reader.join().unwrap());
/// });
/// assert!(cancel.is_cancelled() && Cancel::current().is_none());
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_cancelled: AtomicBool,
    /// From when a cancellation has its effect, on the monotonic clock. 0: at once.
    from_ns: i64,
    watches: Mutex<Watches>,
}

#[derive(Default)]
struct Watches {
    last: u64,
    /// By number.
    acts: Vec<(u64, Act)>,
}

type Act = Box<dyn FnOnce() + Send>;

impl Cancel {
    /// Returns a handle that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a handle that is not cancelled, and whose cancellation has no effect for the time
    /// `patience` after this call. So calls that do not take long end as usual.
    ///
    /// ```
    /// use lightfoot_vfs::Cancel;
    /// use std::time::Duration;
    ///
    /// let cancel = Cancel::after(Duration::from_secs(3600));
    /// cancel.cancel();
    /// assert!(!cancel.is_cancelled());
    /// ```
    #[must_use]
    pub fn after(patience: Duration) -> Self {
        let from_ns = moment_in(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        Self(Arc::new(Inner { from_ns, ..Inner::default() }))
    }

    /// Cancels, for good. Calls the act of each [watch](Cancel::watch).
    pub fn cancel(&self) {
        let acts = {
            let mut watches = self.0.watches.lock();
            // Relaxed: the mutex orders it for threads that begin to watch; for others it is a flag by itself.
            self.0.is_cancelled.store(true, Relaxed);
            core::mem::take(&mut watches.acts)
        };
        acts.into_iter().for_each(|(_, act)| act());
    }

    /// Returns whether the handle was cancelled and the cancellation has its effect now.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.effect_ns().is_some_and(|from_ns| from_ns == 0 || from_ns <= prim::clock::monotonic_ns())
    }

    /// Returns the moment from which the cancellation has its effect, on the monotonic clock;
    /// `None` if the handle was not cancelled.
    pub(crate) fn effect_ns(&self) -> Option<i64> {
        self.0.is_cancelled.load(Relaxed).then_some(self.0.from_ns)
    }

    /// Has `act` called by the thread that cancels, or at once if the handle was cancelled before.
    /// The call comes even if the cancellation takes effect later. `act` must not block. `act` is
    /// not called after the watch is dropped, except by a thread that cancels at that moment.
    pub fn watch(&self, act: impl FnOnce() + Send + 'static) -> CancelWatch<'_> {
        let mut watches = self.0.watches.lock();
        if self.effect_ns().is_some() {
            drop(watches);
            act();
            return CancelWatch { cancel: self, number: 0 };
        }
        watches.last += 1;
        let number = watches.last;
        watches.acts.push((number, Box::new(act)));
        CancelWatch { cancel: self, number }
    }

    /// Runs `f`. This handle cancels the calls on trees that the thread makes in `f`; the handle of
    /// an outer scope does not.
    pub fn scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let _outer = Outer(thread::carry(Some(Box::new(self.clone()))));
        f()
    }

    /// Returns the handle that cancels the calls of this thread.
    #[must_use]
    pub fn current() -> Option<Self> {
        thread::carried()
    }
}

/// A watch on a [`Cancel`], until it is dropped.
#[must_use = "dropped, it watches no longer"]
pub struct CancelWatch<'c> {
    cancel: &'c Cancel,
    /// 0: the act was called.
    number: u64,
}

impl Drop for CancelWatch<'_> {
    fn drop(&mut self) {
        let mut watches = self.cancel.0.watches.lock();
        let at = watches.acts.iter().position(|(number, _)| *number == self.number);
        let act = at.map(|at| watches.acts.swap_remove(at));
        // The drop of the act is the owner's code.
        drop(watches);
        drop(act);
    }
}

/// The thread's handle before a scope.
struct Outer(Option<Carried>);

impl Drop for Outer {
    fn drop(&mut self) {
        drop(thread::carry(self.0.take()));
    }
}

impl core::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for CancelWatch<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CancelWatch").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_watch_is_called_once_and_not_after_its_end() {
        let (cancel, calls) = (Cancel::new(), std::sync::Arc::new(AtomicU32::new(0)));
        let count = || {
            let calls = calls.clone();
            move || _ = calls.fetch_add(1, Relaxed)
        };
        let (_watch, ended) = (cancel.watch(count()), cancel.watch(count()));
        drop(ended);
        cancel.cancel();
        cancel.cancel();
        assert_eq!(calls.load(Relaxed), 1);
        let _late = cancel.watch(count());
        assert_eq!(calls.load(Relaxed), 2, "it was cancelled already");
    }

    #[test]
    fn a_cancellation_has_its_effect_after_the_patience() {
        for (patience, is_cancelled) in [(Duration::ZERO, true), (Duration::MAX, false)] {
            let cancel = Cancel::after(patience);
            assert!(!cancel.is_cancelled());
            cancel.cancel();
            assert_eq!(cancel.is_cancelled(), is_cancelled);
            let called = std::sync::Arc::new(AtomicU32::new(0));
            let act = called.clone();
            let _watch = cancel.watch(move || _ = act.fetch_add(1, Relaxed));
            assert_eq!(called.load(Relaxed), 1, "a watch hears of it at once");
        }
    }

    #[test]
    fn a_scope_ends_with_its_call_also_by_a_panic() {
        let (outer, inner) = (Cancel::new(), Cancel::new());
        let is = |cancel: &Cancel| Cancel::current().is_some_and(|current| Arc::ptr_eq(&current.0, &cancel.0));
        outer.scope(|| {
            let panics = || {
                inner.scope(|| {
                    assert!(is(&inner));
                    std::panic::resume_unwind(Box::new(()));
                });
            };
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
            assert!(panicked.is_err() && is(&outer));
        });
        assert!(Cancel::current().is_none());
    }
}
