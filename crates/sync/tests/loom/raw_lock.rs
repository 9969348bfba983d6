//! What every raw lock must do, as loom models. A wake or a handover that is lost shows as a deadlock, or as a thread
//! that spins for ever, and loom reports both.
//!
//! Two threads that spin on one word at once are beyond loom 0.7, which runs them in turn for ever; so locks whose
//! waiters do so are modelled with two threads.
//!
//! After a lock was free once, a thread can take it by several ways (free, first waiter, further waiters). So a thread
//! takes it twice: the second time it comes behind those that waited during the first.

use lightfoot_sync::{Lock, RawLock};
use loom::sync::Arc;
use loom::thread;

/// `threads` threads, the main one among them, add one `turns[thread]` times each.
pub(crate) fn sections_exclude<R: RawLock + 'static>(turns: &'static [u32], preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let lock: Arc<Lock<R, u32>> = Arc::new(Lock::new(0));
        let add = |lock: &Lock<R, u32>, turns| (0..turns).for_each(|_| *lock.lock() += 1);
        let others: Vec<_> = turns[1..]
            .iter()
            .map(|&turns| {
                let lock = lock.clone();
                thread::spawn(move || add(&lock, turns))
            })
            .collect();
        add(&lock, turns[0]);
        others.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), turns.iter().sum::<u32>());
    });
}

/// A `try_lock` in the main thread, once before it waited for the other and once after.
pub(crate) fn tries_exclude<R: RawLock + 'static>() {
    loom::model(|| {
        let lock: Arc<Lock<R, u32>> = Arc::new(Lock::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || *lock.lock() += 1)
        };
        let added = lock.try_lock().map(|mut guard| *guard += 1).is_some();
        other.join().unwrap();
        let mut guard = lock.try_lock().expect("nobody is left");
        assert!(lock.try_lock().is_none());
        *guard += 1;
        assert_eq!(*guard, 2 + u32::from(added));
    });
}
