//! Waits of threads for the runtime of a store.
//!
//! # What it is
//! The workers of a runtime drive its timers between two tasks. A worker that reads an answer which never ends (`100 Continue`,
//! again and again) is busy for seconds. The other workers may sleep meanwhile, and no worker drives the timers. A thread that
//! waits gives them an empty task now and then, and the worker that wakes drives the timers.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Instant;
use tokio::runtime::Runtime;

/// How often a thread that waits wakes a worker.
const PERIOD: Duration = Duration::from_millis(250);

struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the output of `call`, for which the thread waits.
pub(crate) fn block_on<T>(runtime: &Runtime, call: impl Future<Output = T>) -> T {
    let _inside = runtime.enter();
    let bell = Waker::from(Arc::new(Bell(thread::current())));
    let (mut context, mut call) = (Context::from_waker(&bell), pin!(call));
    let mut woken = Instant::now();
    loop {
        if let Poll::Ready(done) = call.as_mut().poll(&mut context) {
            return done;
        }
        thread::park_timeout(PERIOD);
        if woken.elapsed() >= PERIOD {
            woken = Instant::now();
            runtime.spawn(async {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use tokio::runtime::Builder;

    #[test]
    fn a_timer_ends_a_wait_while_the_worker_that_drives_the_timers_is_busy() {
        let runtime = Builder::new_multi_thread().worker_threads(3).enable_time().build().expect("threads");
        for _ in 0..5 {
            let is_over = Arc::new(AtomicBool::new(false));
            let until = is_over.clone();
            // The worker whose timers end this sleep runs the rest of the task.
            let busy = runtime.spawn(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                while !until.load(Relaxed) {
                    thread::yield_now();
                }
            });
            block_on(&runtime, async { tokio::time::sleep(Duration::from_millis(50)).await });
            is_over.store(true, Relaxed);
            block_on(&runtime, busy).expect("no panic");
        }
    }
}
