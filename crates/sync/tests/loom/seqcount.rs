//! loom models of `SeqCount` and of `SeqLock`, which has the same readers.
//! weaken-orderings: also seqlock
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::{SeqCount, SeqLock};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

/// Two words that are equal outside of write sections.
struct Pair {
    count: SeqCount,
    lock: SeqLock,
    a: AtomicU32,
    b: AtomicU32,
}

impl Pair {
    fn new() -> Arc<Self> {
        let zero = || AtomicU32::new(0);
        Arc::new(Self { count: SeqCount::new(), lock: SeqLock::new(), a: zero(), b: zero() })
    }

    fn store(&self, value: u32) {
        self.a.store(value, Relaxed);
        self.b.store(value, Relaxed);
    }

    fn load(&self) -> (u32, u32) {
        (self.a.load(Relaxed), self.b.load(Relaxed))
    }
}

#[test]
fn a_reader_that_need_not_retry_has_no_torn_pair() {
    loom::model(|| {
        let pair = Pair::new();
        let writer = {
            let pair = pair.clone();
            thread::spawn(move || {
                for value in 1..=2 {
                    let _write = pair.count.write();
                    pair.store(value);
                }
            })
        };
        let start = pair.count.raw_begin();
        let (a, b) = pair.load();
        if !pair.count.retry(start) {
            assert_eq!((a, b), (start / 2, start / 2));
        }
        writer.join().unwrap();
        assert_eq!(pair.count.current(), 4);
    });
}

#[test]
fn begin_waits_for_an_even_count() {
    loom::model(|| {
        let pair = Pair::new();
        let writer = {
            let pair = pair.clone();
            thread::spawn(move || {
                pair.count.write_begin();
                pair.store(1);
                pair.count.write_end();
            })
        };
        let start = pair.count.begin();
        assert_eq!(start & 1, 0);
        let (a, b) = pair.load();
        assert!(pair.count.retry(start) || a == b);
        writer.join().unwrap();
    });
}

#[test]
fn a_seqlock_reader_has_no_torn_pair() {
    loom::model(|| {
        let pair = Pair::new();
        let writer = {
            let pair = pair.clone();
            thread::spawn(move || {
                let _writer = pair.lock.write_lock();
                pair.store(1);
            })
        };
        let start = pair.lock.raw_begin();
        let (a, b) = pair.load();
        if !pair.lock.read_retry(start) {
            assert_eq!((a, b), (start / 2, start / 2));
        }
        writer.join().unwrap();
        let (a, b) = pair.lock.read(|| pair.load());
        assert_eq!((a, b), (1, 1));
    });
}

#[test]
fn a_sample_of_a_finished_seqlock_write_sees_its_data() {
    loom::model(|| {
        let shared = Arc::new((SeqLock::new(), UnsafeCell::new(0)));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let _writer = shared.0.write_lock();
                // SAFETY: the one write, under the lock.
                shared.1.with_mut(|n| unsafe { *n = 1 });
            })
        };
        // loom 0.7 looks for races with the last access of a word only, and never has the reader of the test above
        // begin after the writer ended: so this one waits. After that it reads no stale atomics: so a cell.
        while shared.0.raw_begin() != 2 {
            thread::yield_now();
        }
        // SAFETY: the one write is over.
        shared.1.with(|n| assert_eq!(unsafe { *n }, 1));
        writer.join().unwrap();
    });
}

#[test]
fn seqlock_writers_exclude_one_another() {
    loom::model(|| {
        let shared = Arc::new((SeqLock::new(), UnsafeCell::new(0)));
        let add = |shared: &(SeqLock, UnsafeCell<u32>)| {
            let _writer = shared.0.write_lock();
            // SAFETY: the lock is held.
            shared.1.with_mut(|n| unsafe { *n += 1 });
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || add(&shared))
        };
        add(&shared);
        other.join().unwrap();
        // SAFETY: the other thread is gone.
        shared.1.with(|n| assert_eq!(unsafe { *n }, 2));
    });
}
