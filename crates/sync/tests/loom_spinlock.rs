//! loom models of `SpinLock`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::SpinLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || *lock.lock() += 1)
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), 2);
    });
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || *lock.lock() += 1)
        };
        let added = lock.try_lock().map(|mut guard| *guard += 1).is_some();
        other.join().unwrap();
        assert_eq!(*lock.lock(), 1 + u32::from(added));
    });
}
