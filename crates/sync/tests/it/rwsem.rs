//! Behaviour of `RwSem` with both slow paths: exclusion, order, timeouts, and that no waiter is forgotten.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::{AlwaysQueue, EarlyExit, RawLock, RawRwSem, RwSem, RwSemStats, SlowPath, TasLock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Long enough never to run out.
const LONG: Duration = Duration::MAX;
/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(5);

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Waits until so many readers and writers have queued.
fn queued<T, P: SlowPath>(sem: &RwSem<T, P>, readers: u64, writers: u64) {
    until(|| (sem.stats().read_slow, sem.stats().write_slow) == (readers, writers));
}

#[test]
fn readers_share_and_a_writer_excludes_all() {
    let sem = RwSem::new(0);
    let check = |what: &str, can_read: bool, can_write: bool| {
        assert_eq!(sem.try_read().is_some(), can_read, "a reader beside {what}");
        assert_eq!(sem.try_write().is_some(), can_write, "a writer beside {what}");
        assert_eq!(sem.try_read_for(SHORT).is_some(), can_read, "a reader, after a while, beside {what}");
        assert_eq!(sem.try_write_for(SHORT).is_some(), can_write, "a writer, after a while, beside {what}");
    };
    check("nobody", true, true);
    let reader = sem.read();
    check("a reader", true, false);
    drop(reader);
    let writer = sem.write();
    check("a writer", false, false);
    let reader = writer.downgrade();
    check("a writer that became a reader", true, false);
    drop(reader);
    check("nobody any more", true, true);
    assert_eq!(sem.stats().timed_out, 1 + 2 + 1);
}

#[test]
fn the_queue_is_served_in_order_readers_by_the_batch() {
    let (sem, order) = (RwSem::new(()), Mutex::new(String::new()));
    let enter = |name: char| order.lock().unwrap().push(name);
    thread::scope(|s| {
        let writer = sem.write();
        let mut counts = (0, 0);
        for name in "rrwrrrw".chars() {
            let (sem, enter) = (&sem, &enter);
            s.spawn(move || {
                if name == 'r' {
                    let _reader = sem.read();
                    enter(name);
                } else {
                    let _writer = sem.write();
                    enter(name);
                }
            });
            if name == 'r' {
                counts.0 += 1
            } else {
                counts.1 += 1
            }
            queued(sem, counts.0, counts.1);
        }
        drop(writer);
    });
    assert_eq!(*order.lock().unwrap(), "rrwrrrw");
    let want = RwSemStats::default();
    let stats = sem.stats();
    assert_eq!((stats.read_batches, stats.reads_granted, stats.writes_granted), (2, 5, 2));
    assert_eq!((stats.early_exits, stats.timed_out), (want.early_exits, want.timed_out));
}

#[test]
fn a_writer_that_queues_comes_before_readers_that_come_later() {
    let sem = RwSem::new(0);
    thread::scope(|s| {
        let first = sem.read();
        s.spawn(|| *sem.write() += 1);
        queued(&sem, 0, 1);
        assert!(sem.try_read().is_none() && sem.try_write().is_none());
        let late = s.spawn(|| *sem.read());
        queued(&sem, 1, 1);
        assert_eq!(*first, 0);
        drop(first);
        assert_eq!(late.join().unwrap(), 1, "the late reader follows the writer");
    });
}

#[test]
fn readers_behind_a_writer_that_gives_up_come_in() {
    let sem = RwSem::new(0);
    thread::scope(|s| {
        let first = sem.read();
        let writer = s.spawn(|| sem.try_write_for(Duration::from_millis(50)).is_some());
        let late = s.spawn(|| *sem.read());
        // If the reader came before the writer queued, or after it gave up, it is in already.
        assert!(!writer.join().unwrap());
        assert_eq!(late.join().unwrap(), 0);
        drop(first);
    });
    assert!(sem.try_write().is_some(), "no mark is left behind");
}

#[test]
fn a_waiter_with_a_timeout_comes_in_before_it() {
    let sem = RwSem::new(0);
    thread::scope(|s| {
        let writer = sem.write();
        s.spawn(|| *sem.try_write_for(LONG).expect("never runs out") += 1);
        queued(&sem, 0, 1);
        s.spawn(|| assert_eq!(*sem.try_read_for(Duration::from_secs(3600)).expect("an hour"), 1));
        queued(&sem, 1, 1);
        drop(writer);
    });
    assert_eq!(sem.stats().timed_out, 0);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_in_the_readers_in_front() {
    let sem = RwSem::new(0);
    thread::scope(|s| {
        let mut writer = sem.write();
        let readers = [(); 2].map(|()| s.spawn(|| *sem.read()));
        queued(&sem, 2, 0);
        s.spawn(|| *sem.write() += 1);
        queued(&sem, 2, 1);
        *writer = 5;
        let reader = writer.downgrade();
        for other in readers {
            assert_eq!(other.join().unwrap(), 5);
        }
        assert_eq!(*reader, 5, "the writer that queued is not in");
    });
    assert_eq!(sem.into_inner(), 6);
}

/// A wait lock that readers reach while it is shut, so that what happens meanwhile is the test's choice.
struct Gate(TasLock);

/// One test at a time uses the gate.
static GATE: Mutex<()> = Mutex::new(());
/// Whether the gate is shut, and how many have come to it.
static SHUT: AtomicBool = AtomicBool::new(false);
static CAME: AtomicU64 = AtomicU64::new(0);

// SAFETY: as the lock inside.
unsafe impl RawLock for Gate {
    fn new() -> Self {
        Self(TasLock::new())
    }

    fn lock(&self) {
        CAME.fetch_add(1, Relaxed);
        until(|| !SHUT.load(Relaxed));
        self.0.lock();
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    // SAFETY: as the trait requires.
    unsafe fn unlock(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.0.unlock() }
    }
}

struct Gated<const EARLY_EXIT: bool>;

impl<const EARLY_EXIT: bool> SlowPath for Gated<EARLY_EXIT> {
    const EARLY_EXIT: bool = EARLY_EXIT;
    type WaitLock = Gate;
}

#[test]
fn a_reader_for_whom_nothing_is_in_the_way_any_more_queues_or_not_as_chosen() {
    fn check<P: SlowPath>(want: RwSemStats) {
        let sem = RawRwSem::<P>::default();
        sem.write_lock();
        CAME.store(0, Relaxed);
        SHUT.store(true, Relaxed);
        thread::scope(|s| {
            s.spawn(|| {
                sem.read_lock();
                // SAFETY: just taken.
                unsafe { sem.read_unlock() };
            });
            until(|| CAME.load(Relaxed) == 1);
            // SAFETY: taken above. The queue is empty, so this does not reach the gate.
            unsafe { sem.write_unlock() };
            SHUT.store(false, Relaxed);
        });
        assert_eq!(sem.stats().early_exits, want.early_exits);
        assert_eq!(sem.stats(), want);
        assert!(sem.try_write_lock());
    }
    let seen = |change: fn(&mut RwSemStats)| {
        let mut stats = RwSemStats::default();
        stats.read_slow = 1;
        change(&mut stats);
        stats
    };
    let _turn = GATE.lock();
    check::<Gated<true>>(seen(|stats| stats.early_exits = 1));
    check::<Gated<false>>(seen(|stats| (stats.read_batches, stats.reads_granted) = (1, 1)));
}

#[test]
fn the_head_of_the_queue_is_passed_over_once() {
    let _turn = GATE.lock();
    let (sem, order, may_leave) = (RawRwSem::<Gated<true>>::default(), Mutex::new(String::new()), AtomicU64::new(0));
    let came_in = || order.lock().unwrap().clone();
    let write = |name: char, leave_at: u64| {
        sem.write_lock();
        order.lock().unwrap().push(name);
        until(|| may_leave.load(Relaxed) >= leave_at);
        // SAFETY: just taken.
        unsafe { sem.write_unlock() };
    };
    let shut = || {
        CAME.store(0, Relaxed);
        SHUT.store(true, Relaxed);
    };
    thread::scope(|s| {
        let first = s.spawn(|| write('1', 1));
        until(|| came_in() == "1");
        s.spawn(|| write('h', 0));
        until(|| sem.stats().write_slow == 1);

        // The first has left, but is stopped on its way to the heir: a newcomer is faster.
        shut();
        may_leave.store(1, Relaxed);
        until(|| CAME.load(Relaxed) == 1);
        s.spawn(|| write('2', 2));
        until(|| came_in() == "12");
        SHUT.store(false, Relaxed);
        first.join().unwrap();

        // The same once more: now the newcomer goes to the queue.
        shut();
        may_leave.store(2, Relaxed);
        until(|| CAME.load(Relaxed) == 1);
        s.spawn(|| write('3', 0));
        until(|| CAME.load(Relaxed) == 2 || came_in() != "12");
        SHUT.store(false, Relaxed);
    });
    assert_eq!(came_in(), "12h3");
}

/// Two words that are equal outside of write sections.
type Pair = (u64, u64);

fn step(pair: &mut Pair) {
    pair.0 += 1;
    std::hint::black_box(&mut *pair);
    pair.1 += 1;
}

/// A random operation; the number of writes it made.
fn operate<P: SlowPath>(sem: &RwSem<Pair, P>, random: &mut fastrand::Rng) -> u64 {
    let timeout = Duration::from_micros(random.u64(..30));
    let choice = random.u64(..16);
    let reader = match choice {
        0..8 => Some(sem.read()),
        8 => sem.try_read(),
        9..11 => sem.try_read_for(timeout),
        _ => None,
    };
    if let Some(pair) = &reader {
        assert_eq!(pair.0, pair.1, "a reader saw half of a write");
    }
    let writer = match choice {
        11..13 => Some(sem.write()),
        13 => sem.try_write(),
        14..16 => sem.try_write_for(timeout),
        _ => None,
    };
    let Some(mut pair) = writer else { return 0 };
    step(&mut pair);
    if random.u64(..2) == 0 {
        let written = *pair;
        let pair = pair.downgrade();
        assert_eq!(*pair, written, "a writer came in at a downgrade");
    }
    1
}

#[test]
fn random_operations_lose_no_write_and_forget_nobody() {
    fn check<P: SlowPath>(seed: u64) {
        let sem = RwSem::<Pair, P>::default();
        let writes: u64 = thread::scope(|s| {
            let threads: Vec<_> = (1..=6)
                .map(|thread| {
                    let (sem, mut random) = (&sem, fastrand::Rng::with_seed(seed.wrapping_add(thread)));
                    s.spawn(move || (0..4000).map(|_| operate(sem, &mut random)).sum::<u64>())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(sem.try_write().is_some(), "no mark and no share is left behind");
        assert_eq!(sem.into_inner(), (writes, writes));
    }
    let given = std::env::var("LIGHTFOOT_SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |seed| seed.parse().expect("LIGHTFOOT_SEED: a number"));
    println!("LIGHTFOOT_SEED={seed}");
    check::<EarlyExit>(seed);
    check::<AlwaysQueue>(seed);
}

#[test]
fn a_stream_of_one_kind_does_not_starve_the_other() {
    fn check(stream: impl Fn(&RwSem<Pair>) + Sync, guest: impl Fn(&RwSem<Pair>)) {
        let (sem, done) = (RwSem::<Pair>::default(), AtomicBool::new(false));
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    while !done.load(Relaxed) {
                        stream(&sem);
                    }
                });
            }
            (0..200).for_each(|_| guest(&sem));
            done.store(true, Relaxed);
        });
    }
    let look = |pair: &Pair| assert_eq!(pair.0, pair.1);
    // Hand over hand: with another thread doing so there is always a reader in.
    let read_long = |sem: &RwSem<Pair>| {
        let pair = sem.read();
        thread::yield_now();
        look(&pair);
    };
    check(read_long, |sem| step(&mut sem.write()));
    check(|sem| step(&mut sem.write()), |sem| look(&sem.read()));
    check(|sem| step(&mut sem.write()), |sem| step(&mut sem.write()));
}

#[test]
fn a_panic_gives_the_lock_back() {
    let sem = RwSem::new(0);
    let check = |section: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(section)).is_err());
        assert!(sem.try_write().is_some());
    };
    check(&|| {
        let _writer = sem.write();
        panic!("on purpose");
    });
    check(&|| {
        let _reader = sem.read();
        panic!("on purpose");
    });
    check(&|| {
        let _reader = sem.write().downgrade();
        panic!("on purpose");
    });
}
