//! loom models of `RawMutex`.

use crate::raw_lock;
use lightfoot_sync::{Mutex, MutexGuard, RawMutex};
use loom::sync::Arc;
use loom::thread;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<RawMutex>(&[1, 1], None);
}

#[test]
fn of_two_sleepers_each_is_woken() {
    raw_lock::sections_exclude::<RawMutex>(&[1, 1, 1], Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<RawMutex>();
}

#[test]
fn a_lent_lock_is_taken_by_one_after_the_other_and_wakes_those_that_sleep() {
    loom::model(|| {
        let lock: Arc<Mutex<u32>> = Arc::new(Mutex::new(0));
        MutexGuard::lend(lock.lock());
        assert!(lock.try_lock().is_none() && !lock.is_free());
        let other = {
            let lock = lock.clone();
            thread::spawn(move || {
                let mut guard = lock.lock();
                *guard += 1;
                MutexGuard::lend(guard);
            })
        };
        let mut added = 0;
        if let Some(mut guard) = lock.try_end() {
            *guard += 1;
            added = 1;
            MutexGuard::lend(guard);
        }
        let mut guard = lock.lock();
        *guard += 1;
        MutexGuard::lend(guard);
        other.join().unwrap();
        assert_eq!(*lock.try_end().expect("nobody is left"), 2 + added);
    });
}
