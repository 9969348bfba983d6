//! Behaviour of `PerCpuRwLock`: exclusion across slots that exist and slots that come later, nesting, indexes reused.

use lightfoot_sync::{PerCpuReadGuard, PerCpuRwLock};
use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// More threads at once than an array has slots from the start.
const THREADS: usize = 80;

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn readers_are_in_together_and_nest() {
    let lock = PerCpuRwLock::new(7);
    let meeting = Barrier::new(4);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let outer = lock.read();
                meeting.wait();
                let inner = lock.read();
                drop(outer);
                assert_eq!(*inner, 7);
                meeting.wait();
            });
        }
    });
    *lock.write() = 8;
    assert_eq!(*lock.read(), 8);
}

#[test]
fn a_nested_reader_does_not_wait_for_the_writer_that_waits_for_it() {
    let (lock, asked) = (PerCpuRwLock::new(0), AtomicUsize::new(0));
    thread::scope(|s| {
        let outer = lock.read();
        s.spawn(|| {
            asked.store(1, Relaxed);
            *lock.write() += 1;
        });
        until(|| asked.load(Relaxed) == 1);
        // The writer marks the slot somewhere in here.
        for _ in 0..10_000 {
            assert_eq!(*lock.read(), 0);
        }
        drop(outer);
    });
    assert_eq!(*lock.read(), 1);
}

#[test]
fn a_writer_excludes_readers_whose_slots_are_made_while_it_is_in() {
    let lock = PerCpuRwLock::new(0);
    let (started, entered) = (Barrier::new(THREADS + 1), AtomicUsize::new(0));
    thread::scope(|s| {
        let mut writer = lock.write();
        for _ in 0..THREADS {
            s.spawn(|| {
                started.wait();
                let reader = lock.read();
                entered.fetch_add(1, Relaxed);
                assert_eq!(*reader, 1000);
            });
        }
        started.wait();
        for _ in 0..1000 {
            *writer += 1;
            thread::yield_now();
            assert_eq!(entered.load(Relaxed), 0);
        }
        drop(writer);
    });
    assert_eq!(entered.load(Relaxed), THREADS);
}

#[test]
fn no_write_is_lost_and_no_reader_sees_half_of_one() {
    const WRITES: u64 = 40;
    let lock = PerCpuRwLock::new((0u64, 0u64));
    let reads = AtomicU64::new(0);
    thread::scope(|s| {
        for thread in 0..THREADS {
            let (lock, reads) = (&lock, &reads);
            s.spawn(move || {
                let mut last = 0;
                for turn in 0..400 {
                    if thread % 20 == 0 && turn % 10 == 0 {
                        let mut pair = lock.write();
                        pair.0 += 1;
                        std::hint::black_box(&mut *pair);
                        pair.1 += 1;
                    } else {
                        let pair = lock.read();
                        assert_eq!(pair.0, pair.1);
                        assert!(pair.0 >= last);
                        last = pair.0;
                        reads.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let writes = (THREADS as u64).div_ceil(20) * WRITES;
    assert_eq!(*lock.read(), (writes, writes));
    assert_eq!(reads.into_inner(), THREADS as u64 * 400 - writes);
}

#[test]
fn a_slot_serves_the_next_owner_of_its_index() {
    let lock = PerCpuRwLock::new(0);
    for turn in 0..100 {
        thread::scope(|s| {
            s.spawn(|| assert_eq!(*lock.read(), turn));
        });
        *lock.write() += 1;
    }
}

#[test]
fn a_guard_dropped_after_its_thread_gave_the_index_back_frees_the_slot() {
    thread_local! {
        static LATE: RefCell<Option<PerCpuReadGuard<'static, u32>>> = const { RefCell::new(None) };
    }
    let lock: &'static PerCpuRwLock<u32> = Box::leak(Box::new(PerCpuRwLock::new(0)));
    for _ in 0..20 {
        // Before the index is used, so that the destructor runs after the index went back.
        let reader = thread::spawn(|| LATE.with(|late| *late.borrow_mut() = Some(lock.read())));
        reader.join().unwrap();
        *lock.write() += 1;
    }
    assert_eq!(*lock.read(), 20);
}

#[test]
fn a_panic_gives_the_lock_back() {
    let lock = PerCpuRwLock::new(0);
    let check = |section: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(section)).is_err());
        *lock.write() += 1;
        assert!(*lock.read() > 0);
    };
    check(&|| {
        let _writer = lock.write();
        panic!("on purpose");
    });
    check(&|| {
        let _reader = lock.read();
        panic!("on purpose");
    });
}
