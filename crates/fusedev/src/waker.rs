//! Wakes the thread that waits in a [`Ring`](crate::Ring), from another thread.
//!
//! # Where it comes from
//! `eventfd(2)`.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes the thread that waits in a [`Ring`](crate::Ring). Any thread may call a waker.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker that nobody has called.
    ///
    /// # Errors
    /// As for `eventfd(2)`.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the thread. If the thread does not wait now, its next wait ends at once. Several calls
    /// may wake the thread once.
    pub fn wake(&self) {
        // It fails only when it was called 2^64 times in vain, and then the thread is woken anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Takes back all calls so far.
    pub(crate) fn rest(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
