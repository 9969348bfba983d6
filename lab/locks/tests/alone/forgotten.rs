//! Guards that are forgotten: the lock stays held, and nothing else breaks.

use lightfoot_locks::{McsLock, QueuedLock, TicketLock};
use std::sync::mpsc;
use std::time::Duration;
use sync::{Lock, RawLock, TasLock};

/// Three locks at one address, the first two left locked; the third excludes.
fn check<R: RawLock + Send + 'static>() {
    const ROUNDS: u32 = 10_000;
    let (done, is_done) = mpsc::channel();
    let body = move || {
        let mut lock = Box::new(Lock::<R, u32>::new(0));
        for _ in 0..2 {
            core::mem::forget(lock.lock());
            assert!(lock.try_lock().is_none());
            *lock = Lock::new(0);
        }
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..ROUNDS).for_each(|_| *lock.lock() += 1));
            }
            (0..ROUNDS).for_each(|_| *lock.lock() += 1);
        });
        assert_eq!(lock.into_inner(), 3 * ROUNDS);
        done.send(()).expect("the test waits");
    };
    let thread = std::thread::spawn(body);
    // A limit, not a measurement: a lock that hangs must not keep the other tests.
    let ended = is_done.recv_timeout(Duration::from_secs(120));
    assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    thread.join().expect("no panic");
}

#[test]
fn a_lock_in_the_memory_of_one_that_was_left_locked_works() {
    check::<McsLock>();
    check::<QueuedLock>();
    check::<TicketLock>();
    check::<TasLock>();
}
