//! loom models of `lockstat::Class`.

use lightfoot_locks::lockstat::{Class, Measured};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{self, Acquire, Relaxed, Release},
};
use loom::thread;
use sync::{Lock, TasLock};

/// Steps of the two threads, so that loom need not find the order in which they matter.
struct Turn(AtomicU32);

impl Turn {
    fn pass(&self, to: u32, order: Ordering) {
        self.0.store(to, order);
    }

    fn wait(&self, turn: u32, order: Ordering) {
        while self.0.load(order) != turn {
            thread::yield_now();
        }
    }
}

#[test]
fn counts_from_before_a_reset_are_gone_after_it() {
    loom::model(|| {
        let class = Class::new("model");
        class.enable();
        let lock = Lock::<Measured<TasLock>, _>::with_raw(Measured::of(&class), ());
        let turn = Arc::new(Turn(AtomicU32::new(0)));
        let other = {
            let turn = turn.clone();
            thread::spawn(move || {
                (0..2).for_each(|_| drop(lock.lock()));
                turn.pass(1, Release);
                turn.wait(2, Acquire);
                drop(lock.lock());
                // Relaxed: what was counted since must be seen without this.
                turn.pass(3, Relaxed);
            })
        };
        turn.wait(1, Acquire);
        class.reset();
        turn.pass(2, Release);
        turn.wait(3, Relaxed);
        assert!(class.counts().acquisitions <= 1);
        other.join().unwrap();
        assert_eq!(class.counts().acquisitions, 1);
    });
}
