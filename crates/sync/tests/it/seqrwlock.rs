//! Behaviour of `SeqRwLock`: exclusion, the passes that a read takes, and that no thread starves.

use lightfoot_sync::SeqRwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Two words that are equal outside of write sections.
#[derive(Default)]
struct Pair(AtomicU64, AtomicU64);

impl Pair {
    /// Under the writers' lock.
    fn step(&self) {
        let next = self.0.load(Relaxed) + 1;
        self.0.store(next, Relaxed);
        self.1.store(next, Relaxed);
    }

    fn load(&self) -> (u64, u64) {
        (self.0.load(Relaxed), self.1.load(Relaxed))
    }
}

#[test]
fn readers_share_and_a_writer_excludes_all() {
    let lock = SeqRwLock::new();
    let check = |what: &str, can_read: bool, can_write: bool| {
        assert_eq!(lock.try_read_lock().is_some(), can_read, "a reader beside {what}");
        assert_eq!(lock.try_write_lock().is_some(), can_write, "a writer beside {what}");
    };
    check("nobody", true, true);
    let reader = lock.read_lock();
    check("a reader", true, false);
    let second = lock.read_lock();
    drop(reader);
    check("the second reader", true, false);
    drop(second);
    let writer = lock.write_lock();
    check("a writer", false, false);
    drop(writer);
    check("nobody any more", true, true);
}

#[test]
fn an_optimistic_reader_reads_again_because_of_writers_only() {
    let lock = SeqRwLock::new();
    let start = lock.read_begin();
    drop(lock.read_lock());
    assert!(!lock.read_retry(start), "a blocking reader disturbs nobody");
    let writer = lock.write_lock();
    assert!(lock.read_retry(start) && lock.read_retry(lock.raw_begin()));
    drop(writer);
    assert!(lock.read_retry(start));
    assert!(!lock.read_retry(lock.read_begin()));
}

#[test]
fn a_read_takes_one_optimistic_pass_and_if_disturbed_one_that_blocks() {
    let check = |disturb: bool, want: &[bool]| {
        let (lock, mut passes) = (SeqRwLock::new(), Vec::new());
        let value = lock.read_seq_or_lock(|pass| {
            passes.push(pass.is_blocking());
            if disturb {
                assert!(!pass.is_disturbed());
                let wrote = lock.try_write_lock().is_some();
                assert_eq!(wrote, !pass.is_blocking(), "only a pass that blocks keeps writers out");
                assert_eq!(pass.is_disturbed(), wrote);
            }
            passes.len()
        });
        assert_eq!((value, &*passes), (want.len(), want));
        assert!(lock.try_write_lock().is_some(), "nothing is held afterwards");
    };
    check(false, &[false]);
    check(true, &[false, true]);
}

#[test]
fn a_read_waits_for_the_write_that_is_under_way() {
    let (lock, pair, begun) = (SeqRwLock::new(), Pair::default(), AtomicBool::new(false));
    thread::scope(|s| {
        let writer = lock.write_lock();
        let reader = s.spawn(|| {
            begun.store(true, Relaxed);
            let mut passes = 0;
            let value = lock.read_seq_or_lock(|pass| {
                assert!(!pass.is_blocking(), "no other write follows");
                passes += 1;
                pair.load()
            });
            (value, passes)
        });
        until(|| begun.load(Relaxed));
        (0..100).for_each(|_| {
            pair.step();
            thread::yield_now();
        });
        drop(writer);
        assert_eq!(reader.join().unwrap(), ((100, 100), 1));
    });
}

#[test]
fn a_writer_that_waits_comes_before_readers_that_come_later() {
    let (lock, pair) = (SeqRwLock::new(), Pair::default());
    thread::scope(|s| {
        let first = lock.read_lock();
        s.spawn(|| {
            let _writer = lock.write_lock();
            pair.step();
        });
        // The mark of the writer that waits.
        until(|| lock.try_read_lock().is_none());
        let late = s.spawn(|| {
            let _reader = lock.read_lock();
            pair.load()
        });
        assert_eq!(pair.load(), (0, 0));
        drop(first);
        assert_eq!(late.join().unwrap(), (1, 1), "the late reader follows the writer");
    });
}

#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    let (lock, done) = (SeqRwLock::new(), AtomicBool::new(false));
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                // Hand over hand: with another thread doing so there is always a reader in.
                while !done.load(Relaxed) {
                    let _reader = lock.read_lock();
                    thread::yield_now();
                }
            });
        }
        (0..50).for_each(|_| drop(lock.write_lock()));
        done.store(true, Relaxed);
    });
}

#[test]
fn a_stream_of_writers_starves_no_reader() {
    let (lock, pair, done) = (SeqRwLock::new(), Pair::default(), AtomicBool::new(false));
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !done.load(Relaxed) {
                    let _writer = lock.write_lock();
                    pair.step();
                }
            });
        }
        for _ in 0..200 {
            let (a, b) = lock.read_seq_or_lock(|_| pair.load());
            assert_eq!(a, b);
            let _reader = lock.read_lock();
            let (a, b) = pair.load();
            assert_eq!(a, b);
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn no_write_is_lost_and_no_reader_sees_half_of_one() {
    const WRITES: u64 = 5_000;
    let (lock, pair) = (SeqRwLock::new(), Pair::default());
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for _ in 0..WRITES {
                    let _writer = lock.write_lock();
                    pair.step();
                }
            });
        }
        for is_blocking in [false, true] {
            let (lock, pair) = (&lock, &pair);
            s.spawn(move || {
                let mut last = 0;
                while last < 2 * WRITES {
                    let _reader = is_blocking.then(|| lock.read_lock());
                    let (a, b) = if is_blocking { pair.load() } else { lock.read_seq_or_lock(|_| pair.load()) };
                    assert_eq!(a, b);
                    assert!(a >= last);
                    last = a;
                }
            });
        }
    });
    assert_eq!(pair.load(), (2 * WRITES, 2 * WRITES));
}

#[test]
fn a_panic_gives_the_lock_back() {
    let lock = SeqRwLock::new();
    let check = |section: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(section)).is_err());
        assert!(lock.try_write_lock().is_some());
        assert_eq!(lock.read_begin() & 1, 0);
    };
    check(&|| {
        let _writer = lock.write_lock();
        panic!("on purpose");
    });
    check(&|| {
        lock.read_seq_or_lock(|pass| {
            assert!(!pass.is_blocking(), "on purpose");
            drop(lock.write_lock());
        });
    });
}
