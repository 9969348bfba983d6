//! The end of a connection that cannot be served any more: stops all of its threads.
//!
//! # What it is
//! With io_uring, a request belongs to the queue of its client's processor. If the thread of a queue ends by an error, its
//! requests would wait for ever, while all others are served. So every thread then ends; with the last descriptor the kernel
//! aborts the connection, and all requests fail.
//!
//! # How it is locked
//! One mutex, which nobody holds while something waits.
//!
//! # Limitations
//! A thread inside a call of the tree ends after that call.

use fusedev::Waker;
use parking_lot::Mutex;
use std::sync::Arc;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Stop(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    wakers: Vec<Arc<Waker>>,
}

impl Stop {
    /// Adds a thread: the waker ends its wait.
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

    /// Whether the thread that calls this must end.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.lock().is_stopped
    }
}

/// Stops the others when its thread ends, also by a panic.
pub(super) struct StopAtEnd(pub(super) Arc<Stop>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fusedev::Device;
    use std::io;
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
        let ends = StopAtEnd(stop.clone());
        let panics = std::thread::spawn(move || {
            let _ends = ends;
            panic!("on purpose");
        });
        assert!(panics.join().is_err());
        // Also one that comes later.
        for waker in [&one, &waker(&stop)] {
            device.wait(waker).unwrap();
        }
        assert!(stop.is_stopped());
    }
}
