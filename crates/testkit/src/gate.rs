//! A gate: threads wait at it until a test opens it.
//!
//! # What it is
//! A [`Store`](crate::Store)'s hook calls [`Gate::pass`] to hold a request inside of the file system. The test waits until the request
//! is there ([`Gate::wait_for`]), does something beside it, and opens the gate.
//!
//! # How it is locked
//! One mutex with a condition variable; a leaf.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

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
    fn set_closed(&self, is_closed: bool) {
        self.0.state.lock().is_closed = is_closed;
        self.0.changed.notify_all();
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
        let mut state = self.0.state.lock();
        state.waiting += 1;
        self.0.changed.notify_all();
        self.0.changed.wait_while(&mut state, |state| state.is_closed);
        state.waiting -= 1;
    }

    /// Waits until `count` threads wait at the gate.
    pub fn wait_for(&self, count: u32) {
        self.0.changed.wait_while(&mut self.0.state.lock(), |state| state.waiting < count);
    }
}
