//! What every lock around data must do, with threads of this machine.

use core::fmt;
use lightfoot_sync::{Lock, RawLock};

/// Threads that contend, and turns of each. Now and then a holder yields its CPU, so that the others find the lock
/// taken even on one CPU.
const THREADS: usize = 4;
const TURNS: usize = 500;

/// One guard at a time reaches the data of a lock that `new` makes.
pub(crate) fn check<R: RawLock + fmt::Debug>(name: &str, new: impl Fn() -> R) {
    let lock = Lock::with_raw(new(), 7);
    let guard = lock.lock();
    assert!(lock.try_lock().is_none(), "{name}");
    drop(guard);
    assert_eq!(lock.try_lock().map(|guard| *guard), Some(7), "{name}");
    *lock.lock() = 8;
    assert_eq!(format!("{:?}", lock.lock()), "8", "{name}");
    assert!(format!("{lock:?}").starts_with("Lock {"), "{name}");

    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = lock.lock();
        panic!("on purpose");
    }));
    assert!(unwound.is_err() && lock.try_lock().is_some(), "{name}: a panic frees the lock");
    assert_eq!(lock.into_inner(), 8, "{name}");

    let (one, other) = (Lock::with_raw(new(), 0), Lock::with_raw(new(), 0));
    std::thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                for turn in 0..TURNS {
                    let mut first = one.lock();
                    // Two at once, released in the order in which they were taken.
                    let mut second = other.lock();
                    (*first, *second) = (*first + 1, *second + 1);
                    if turn % 16 == 0 {
                        std::thread::yield_now();
                    }
                    drop(first);
                    drop(second);
                }
            });
        }
        // Tries among them.
        let mut added = 0;
        while added < TURNS {
            if let Some(mut guard) = other.try_lock() {
                (*guard, added) = (*guard + 1, added + 1);
            } else {
                std::thread::yield_now();
            }
        }
    });
    assert_eq!((one.into_inner(), other.into_inner()), (THREADS * TURNS, (THREADS + 1) * TURNS), "{name}");
}
