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

/// Threads that lock and lend; each sleeper requests the lock when it is passed for the first time.
#[test]
fn a_lock_that_is_lent_while_a_sleeper_asks_for_it_is_handed_over() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let lock: Arc<Mutex<u32>> = Arc::new(Mutex::new(0));
        let add = |lock: &Mutex<u32>| {
            let mut guard = lock.try_lock().unwrap_or_else(|| lock.lock_noting(|| true));
            *guard += 1;
            MutexGuard::lend(guard);
        };
        let others = [(); 2].map(|()| {
            let lock = lock.clone();
            thread::spawn(move || add(&lock))
        });
        add(&lock);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*lock.try_end().expect("nobody is left"), 3);
    });
}

#[test]
fn a_thread_that_takes_the_lock_again_and_again_lets_a_sleeper_in() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let lock: Arc<Mutex<u32>> = Arc::new(Mutex::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || *lock.lock() += 1)
        };
        (0..3).for_each(|_| *lock.lock() += 1);
        other.join().unwrap();
        assert_eq!(*lock.lock(), 4);
    });
}
