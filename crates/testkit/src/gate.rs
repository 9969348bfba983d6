//! A gate: threads wait at it until a test opens it.
//!
//! # What it is
//! A [`Store`](crate::Store)'s hook calls [`Gate::pass`] to hold a request inside of the file system. The test waits until the request
//! is there ([`Gate::wait_for`]), does something beside it, and opens the gate.
//!
//! # How it is locked
//! One mutex with a condition variable; a leaf.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Holds requests inside of a [`Store`](crate::Store) until the test opens it. Clones are the same gate. It is open at first.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// Threads inside of [`Gate::pass`].
    waiting: u32,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_closed(&self, is_closed: bool) {
        self.state().is_closed = is_closed;
        self.0.changed.notify_all();
    }

    fn wait_until(&self, is_reached: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.0.changed.wait_while(self.state(), |state| !is_reached(state));
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the gate: threads that come later wait at it.
    pub fn close(&self) {
        self.set_closed(true);
    }

    /// Lets all waiting threads continue, and those that come later pass.
    pub fn open(&self) {
        self.set_closed(false);
    }

    /// Waits while the gate is closed.
    pub fn pass(&self) {
        self.state().waiting += 1;
        self.0.changed.notify_all();
        self.wait_until(|state| !state.is_closed).waiting -= 1;
    }

    /// Waits until `count` threads wait at the gate.
    pub fn wait_for(&self, count: u32) {
        drop(self.wait_until(|state| state.waiting >= count));
    }
}
