//! The end of a connection that cannot be served any more: stops all of its threads.
//!
//! # What it is
//! With io_uring, a request belongs to the queue of its client's processor. If the thread of a
//! queue ended by an error, the requests of the queue would wait for ever, while all others are
//! served. So after such an error every thread ends, and the server aborts the connection: all
//! requests fail, even requests whose threads are inside calls of the tree.
//!
//! # How it is locked
//! One mutex, which nobody holds while something waits.

use fusedev::Waker;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Stop(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    is_failed: bool,
    wakers: Vec<Arc<Waker>>,
}

impl Stop {
    /// Adds a thread, whose wait the waker ends.
    pub(super) fn add(&self, waker: Arc<Waker>) {
        let mut state = self.0.lock();
        if state.is_stopped {
            waker.wake();
        }
        state.wakers.push(waker);
    }

    /// Makes all threads end.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock();
        state.is_stopped = true;
        state.wakers.iter().for_each(|waker| waker.wake());
    }

    /// Returns whether a thread has ended by an error or a panic, so that requests may be left
    /// without a reply.
    pub(super) fn is_failed(&self) -> bool {
        self.0.lock().is_failed
    }

    /// Returns whether the thread that calls this must end.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.lock().is_stopped
    }
}

/// A drop, also by a panic, stops the other threads.
pub(super) struct StopAtEnd {
    stop: Arc<Stop>,
    is_failed: bool,
}

impl StopAtEnd {
    pub(super) fn new(stop: Arc<Stop>) -> Self {
        Self { stop, is_failed: true }
    }

    /// Notes that the thread ends with `result`, and not by a panic.
    pub(super) fn ends<T>(mut self, result: io::Result<T>) -> io::Result<T> {
        self.is_failed = result.is_err();
        result
    }
}

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.stop.0.lock().is_failed |= self.is_failed;
        self.stop.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fusedev::Device;
    use std::os::fd::OwnedFd;

    fn waker(stop: &Stop) -> Arc<Waker> {
        let waker = Arc::new(Waker::new().unwrap());
        stop.add(waker.clone());
        waker
    }

    #[test]
    fn a_thread_that_ends_by_a_panic_wakes_all_others() {
        let (stop, (silent, _open)) = (Arc::new(Stop::default()), io::pipe().unwrap());
        let device = Device::from(OwnedFd::from(silent));
        let one = waker(&stop);
        assert!(!stop.is_stopped());
        let ends = StopAtEnd::new(stop.clone());
        let panics = std::thread::spawn(move || {
            let _ends = ends;
            panic!("on purpose");
        });
        assert!(panics.join().is_err());
        // Also one that comes later.
        for waker in [&one, &waker(&stop)] {
            device.wait(waker).unwrap();
        }
        assert!(stop.is_stopped() && stop.is_failed());
    }

    #[test]
    fn an_error_fails_the_connection_and_an_end_does_not() {
        let stop = Arc::new(Stop::default());
        assert!(StopAtEnd::new(stop.clone()).ends(Ok(())).is_ok());
        assert!(stop.is_stopped() && !stop.is_failed());
        assert!(StopAtEnd::new(stop.clone()).ends::<()>(Err(io::Error::other("on purpose"))).is_err());
        assert!(stop.is_failed());
        assert!(StopAtEnd::new(stop.clone()).ends(Ok(())).is_ok());
        assert!(stop.is_failed(), "it stays");
    }
}
