//! Requests that a signal ends, for trees whose calls can be cancelled.
//!
//! # What it is
//! While a thread serves a request, the thread has a [`Cancel`]. INTERRUPT finds the `Cancel` by
//! the number of the request; it takes effect a second after the begin of the request. An INTERRUPT
//! that another thread reads before its request begins is kept. Most of the kept interrupts are of
//! requests that have ended.
//!
//! # How it is locked
//! One mutex, a leaf.
//!
//! # Where it comes from
//! `fuse_interrupt` of libfuse's `lib/fuse.c`.

use super::Session;
use super::early::Early;
use parking_lot::Mutex;
use std::time::Duration;
use vfs::Cancel;

/// The most interrupts that are kept for requests that have not begun.
const MAX_EARLY: usize = 64;

/// How long a request may take before an interrupt ends it. The kernel sends an interrupt for each
/// signal, even for a signal that the program handles and that would not end a call on another file
/// system: a timer, the end of a child. So an interrupt ends only calls that seem to hang.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the [module documentation](self).
#[derive(Default)]
pub(super) struct Interrupts(Mutex<State>);

#[derive(Default)]
struct State {
    running: Vec<(u64, Cancel)>,
    early: Early<MAX_EARLY>,
}

/// A request that runs.
struct Running<'i> {
    interrupts: &'i Interrupts,
    unique: u64,
}

impl Interrupts {
    fn begin(&self, unique: u64, cancel: &Cancel) -> Running<'_> {
        let mut state = self.0.lock();
        if state.early.take(unique) {
            cancel.cancel();
        }
        state.running.push((unique, cancel.clone()));
        Running { interrupts: self, unique }
    }

    /// Cancels the request `unique` and returns true, if it runs; otherwise keeps the number for when it begins.
    pub(super) fn cancel(&self, unique: u64) -> bool {
        let running = {
            let mut state = self.0.lock();
            let found = state.running.iter().find(|(number, _)| *number == unique).map(|(_, cancel)| cancel.clone());
            if found.is_none() {
                state.early.keep(unique);
            }
            found
        };
        running.inspect(Cancel::cancel).is_some()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.interrupts.0.lock();
        if let Some(at) = state.running.iter().position(|(number, _)| *number == self.unique) {
            state.running.swap_remove(at);
        }
    }
}

impl Session {
    /// Serves the request `unique` by `serve`, so that [`Session::interrupt`] ends its calls. A
    /// transport calls it around each operation except SETLKW, which waits without a thread. At no
    /// cost in a tree whose file systems cannot be cancelled.
    pub fn interruptible<R>(&self, unique: u64, serve: impl FnOnce() -> R) -> R {
        if !self.vfs.is_cancellable() {
            return serve();
        }
        let cancel = Cancel::after(PATIENCE);
        let _running = self.interrupts.begin(unique, &cancel);
        cancel.scope(serve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionOptions;
    use ramfs::RamFs;
    use vfs::{Bounded, Errno, Vfs};

    fn session(vfs: &Vfs, locks: bool) -> std::sync::Arc<Session> {
        Session::new(vfs, SessionOptions { locks, ..SessionOptions::default() }).unwrap()
    }

    fn bounded() -> Vfs {
        Vfs::new(Bounded::of(Box::new(RamFs::new()), Duration::MAX))
    }

    fn is_cancelled() -> Option<bool> {
        Cancel::current().map(|cancel| cancel.is_cancelled())
    }

    /// Waits until the request is cancelled, which has its effect a while after it began.
    fn ends() {
        while is_cancelled() == Some(false) {
            std::thread::yield_now();
        }
        assert_eq!(is_cancelled(), Some(true));
    }

    #[test]
    fn an_interrupt_cancels_its_request_alone_also_if_it_comes_first() {
        for locks in [false, true] {
            let session = session(&bounded(), locks);
            session.interruptible(2, || {
                session.interruptible(4, || {
                    assert_eq!(session.interrupt(4), Ok(()));
                    ends();
                });
                assert_eq!(is_cancelled(), Some(false));
            });
            assert_eq!(session.interrupt(6), Ok(()));
            assert_eq!(session.interruptible(8, is_cancelled), Some(false));
            session.interruptible(6, ends);
            // It was kept for one request. The kernel uses no number again.
            assert_eq!(session.interruptible(6, is_cancelled), Some(false));
        }
    }

    #[test]
    fn early_interrupts_take_little_room() {
        let session = session(&bounded(), false);
        (0..1000).for_each(|number| session.interrupt(number).unwrap());
        assert_eq!(session.interrupts.0.lock().early.len(), MAX_EARLY);
    }

    #[test]
    fn a_tree_that_cannot_be_cancelled_refuses_interrupts() {
        let session = session(&Vfs::new(RamFs::new()), false);
        assert_eq!(session.interrupt(2), Err(Errno::ENOSYS));
        assert_eq!(session.interruptible(2, is_cancelled), None);
    }
}
