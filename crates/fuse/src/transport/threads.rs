//! Threads of a connection, which end with the connection, except threads inside calls of the tree
//! that hang.
//!
//! # How it is locked
//! One mutex, which nobody holds while a thread serves.

use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a connection that is over waits for its threads. Nobody waits for their results any
/// more.
pub(super) const END_LIMIT: Duration = Duration::from_secs(2);

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(super) struct Threads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    handles: Vec<JoinHandle<io::Result<()>>>,
    /// Threads that were started. A thread that could not start counts as started and ended.
    started: usize,
    ended: usize,
}

/// Counts the end of a thread, also by a panic.
struct Ending(Arc<Threads>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.state.lock().ended += 1;
        self.0.changed.notify_all();
    }
}

impl Threads {
    /// Starts a thread.
    ///
    /// # Errors
    /// As for `pthread_create(3)`.
    pub(super) fn spawn(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.state.lock().started += 1;
        let ending = Ending(self.clone());
        let run = move || {
            let _ending = ending;
            work()
        };
        let handle = Builder::new().name(name.into()).spawn(run)?;
        self.state.lock().handles.push(handle);
        Ok(())
    }

    /// Waits until all threads have ended, or for the time `limit`. Logs how many threads have not
    /// ended.
    ///
    /// # Errors
    /// The error of the first thread that has one.
    pub(super) fn join(&self, limit: Duration) -> io::Result<()> {
        let until = Instant::now() + limit;
        let mut state = self.state.lock();
        while state.ended < state.started && !self.changed.wait_until(&mut state, until).timed_out() {}
        let are_all = state.ended == state.started;
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        let (ended, left): (Vec<_>, Vec<_>) = handles.into_iter().partition(|one| are_all || one.is_finished());
        if !left.is_empty() {
            tracing::error!(
                threads = left.len(),
                "the connection is over, and threads are inside calls that hang: they are left behind"
            );
        }
        ended.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn all_threads_are_waited_for_but_those_that_hang() {
        let threads = Arc::new(Threads::default());
        let (release, hangs) = channel::<()>();
        threads.spawn("test", || Ok(())).unwrap();
        threads.spawn("test", move || Ok(_ = hangs.recv())).unwrap();
        threads.spawn("test", || Err(io::Error::other("on purpose"))).unwrap();
        // Without the one that hangs, the first error is there.
        assert_eq!(threads.join(Duration::from_millis(200)).unwrap_err().to_string(), "on purpose");
        drop(release);
        let threads = Arc::new(Threads::default());
        threads.spawn("test", || panic!("on purpose")).unwrap();
        assert!(threads.join(Duration::from_secs(3600)).is_err());
        assert!(threads.join(Duration::from_secs(3600)).is_ok(), "nobody is left");
    }
}
