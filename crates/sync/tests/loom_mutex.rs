//! loom models of `RawMutex` and `Mutex`. A wake that is lost shows as a deadlock, which loom reports.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::{Mutex, RawMutex};

fn add_in_threads(threads: usize, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let lock = Arc::new(Mutex::new(0));
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || *lock.lock() += 1)
            })
            .collect();
        *lock.lock() += 1;
        others.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), threads);
    });
}

#[test]
fn sections_exclude_and_follow_one_another() {
    add_in_threads(2, None);
}

#[test]
fn of_two_sleepers_each_is_woken() {
    add_in_threads(3, Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    loom::model(|| {
        let lock = Arc::new(Mutex::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || *lock.lock() += 1)
        };
        let added = lock.try_lock().map(|mut guard| *guard += 1).is_some();
        other.join().unwrap();
        assert_eq!(*lock.lock(), 1 + u32::from(added));
    });
}

#[test]
fn the_bare_word_excludes() {
    loom::model(|| {
        let shared = Arc::new((RawMutex::new(), loom::cell::UnsafeCell::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let _guard = shared.0.guard();
                // SAFETY: the lock is held.
                shared.1.with_mut(|n| unsafe { *n += 1 });
            })
        };
        shared.0.lock();
        // SAFETY: the lock is held.
        shared.1.with_mut(|n| unsafe { *n += 1 });
        // SAFETY: the lock is held, without a guard.
        unsafe { shared.0.unlock() };
        other.join().unwrap();
        // SAFETY: the other thread is gone.
        shared.1.with(|n| assert_eq!(unsafe { *n }, 2));
    });
}
