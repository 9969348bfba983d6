//! RCU and `PerCpuArc` on real threads: bounded work, no sleeps, nothing timed.
#![allow(unsafe_code, reason = "a destructor that the standard library does not offer")]

use lightfoot_sync::rcu::{Rcu, RcuDomain, RcuOption, ReadGuard, ReaderMode};
use lightfoot_sync::{PerCpuArc, PerCpuOwner};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

const DOMAINS: [fn() -> RcuDomain; 3] = [RcuDomain::new, RcuDomain::with_fences, RcuDomain::without_reclaimer];

const ALIVE: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Poisons itself when dropped.
struct Canary {
    word: AtomicU64,
    number: u64,
    drops: Arc<AtomicUsize>,
}

impl Canary {
    fn new(number: u64, drops: &Arc<AtomicUsize>) -> Self {
        Self { word: AtomicU64::new(ALIVE), number, drops: drops.clone() }
    }

    fn look(&self) -> u64 {
        assert_eq!(self.word.load(Relaxed), ALIVE, "freed under a reader");
        self.number
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        assert_eq!(self.word.swap(0, Relaxed), ALIVE, "dropped twice");
        self.drops.fetch_add(1, Relaxed);
    }
}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn domains_cells_and_references_are_shared_by_threads() {
    is_send_and_sync::<RcuDomain>();
    is_send_and_sync::<Rcu<String>>();
    is_send_and_sync::<RcuOption<String>>();
    is_send_and_sync::<PerCpuOwner<String>>();
    is_send_and_sync::<PerCpuArc<String>>();
    assert_eq!(size_of::<PerCpuOwner<String>>(), size_of::<usize>());
    assert_eq!(size_of::<PerCpuArc<String>>(), size_of::<usize>());
}

#[test]
fn nothing_is_freed_under_a_reader() {
    const REPLACEMENTS: u64 = 60_000;
    for new in DOMAINS {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = new();
        let cell = Rcu::new(&domain, Canary::new(0, &drops));
        let is_over = AtomicBool::new(false);
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    while !is_over.load(Relaxed) {
                        let guard = domain.read();
                        let first = cell.load(&guard);
                        let second = cell.load(&domain.read()).look();
                        assert!(first.look() <= second, "went back in time");
                        first.look();
                    }
                });
            }
            for number in 1..=REPLACEMENTS {
                cell.replace(&domain, Canary::new(number, &drops));
                if number % 10_000 == 0 {
                    domain.synchronize();
                }
            }
            is_over.store(true, Relaxed);
        });
        domain.barrier();
        assert_eq!(drops.load(Relaxed) as u64, REPLACEMENTS);
        let stats = domain.stats();
        assert_eq!((stats.deferred_callbacks, stats.deferred_bytes), (0, 0));
        assert_eq!(stats.freed_callbacks, REPLACEMENTS);
        drop((cell, domain));
        assert_eq!(drops.load(Relaxed) as u64, REPLACEMENTS + 1);
    }
}

/// Also when a reader panics, so that the writer does not run on.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Two objects that take turns. The reader fills its store buffer first, so that its entry is seen late unless a fence
/// sees to it, and lingers, so that an early free is seen.
#[test]
fn an_entry_is_seen_by_a_grace_period_that_begins_after_it() {
    const SECTIONS: usize = 100_000;
    for new in DOMAINS {
        let domain = new();
        let objects = [AtomicU64::new(ALIVE), AtomicU64::new(0)];
        let (current, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let cold: Vec<AtomicU64> = (0..1 << 20).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|s| {
            s.spawn(|| {
                let _over = SetOnDrop(&is_over);
                let mut at = 0;
                for _ in 0..SECTIONS {
                    for _ in 0..48 {
                        at = (at + 4099) % cold.len();
                        cold[at].store(1, Relaxed);
                    }
                    let _guard = domain.read();
                    let object = &objects[current.load(Acquire)];
                    for _ in 0..64 {
                        assert_eq!(object.load(Relaxed), ALIVE, "freed under a reader");
                        std::hint::spin_loop();
                    }
                }
            });
            let mut turn = 0;
            while !is_over.load(Relaxed) {
                turn += 1;
                objects[turn % 2].store(ALIVE, Relaxed);
                current.store(turn % 2, Release);
                domain.synchronize();
                objects[(turn + 1) % 2].store(0, Relaxed);
                // Lets the reader have the line of `current`, or its load would take longer than its stores.
                (0..50).for_each(|_| std::hint::spin_loop());
            }
        });
    }
}

#[test]
fn synchronize_waits_for_the_outermost_section() {
    for new in DOMAINS {
        let domain = new();
        let (has_left, has_synchronized) = (AtomicBool::new(false), AtomicBool::new(false));
        let is_inside = Barrier::new(2);
        thread::scope(|s| {
            s.spawn(|| {
                let outer = domain.read();
                let middle = domain.read();
                is_inside.wait();
                drop(outer);
                let inner = domain.read();
                drop(inner);
                for _ in 0..1000 {
                    assert!(!has_synchronized.load(Relaxed));
                    thread::yield_now();
                }
                has_left.store(true, Relaxed);
                drop(middle);
            });
            is_inside.wait();
            domain.synchronize();
            has_synchronized.store(true, Relaxed);
            assert!(has_left.load(Relaxed));
        });
    }
}

#[test]
fn slots_change_hands_when_threads_end() {
    for new in DOMAINS {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = new();
        let cell: RcuOption<Canary> = RcuOption::none(&domain);
        for round in 0..50 {
            thread::scope(|s| {
                for _ in 0..8 {
                    s.spawn(|| {
                        for _ in 0..50 {
                            let guard = domain.read();
                            if let Some(canary) = cell.load(&guard) {
                                canary.look();
                            }
                            cell.set(&domain, Some(Canary::new(round, &drops)));
                        }
                    });
                }
            });
        }
        cell.set(&domain, None);
        domain.barrier();
        assert_eq!(drops.load(Relaxed), 50 * 8 * 50);
        assert_eq!(domain.stats().deferred_bytes, 0);
        assert_eq!(domain.stats().leaked_guards, 0);
    }
}

#[test]
fn a_barrier_runs_all_that_was_deferred_before_it_by_any_thread() {
    for new in DOMAINS {
        let domain = new();
        let ran = Arc::new(AtomicUsize::new(0));
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for own in 1..=20 {
                        let own_ran = Arc::new(AtomicUsize::new(0));
                        for _ in 0..300 {
                            let (ran, own_ran) = (ran.clone(), own_ran.clone());
                            domain.defer(100, move || {
                                ran.fetch_add(1, Relaxed);
                                own_ran.fetch_add(1, Relaxed);
                            });
                        }
                        domain.barrier();
                        assert_eq!(own_ran.load(Relaxed), 300, "round {own}");
                    }
                });
            }
        });
        assert_eq!(ran.load(Relaxed), 4 * 20 * 300);
        assert_eq!(domain.stats().freed_bytes, 4 * 20 * 300 * 100);
    }
}

#[test]
fn dropping_a_domain_runs_the_rest() {
    for new in DOMAINS {
        for count in [0, 1, 1023, 1024, 5000] {
            let drops = Arc::new(AtomicUsize::new(0));
            let domain = new();
            for number in 0..count {
                domain.defer_drop(Box::new(Canary::new(number, &drops)));
            }
            std::mem::forget(domain.read());
            drop(domain);
            assert_eq!(drops.load(Relaxed) as u64, count);
        }
    }
}

#[test]
fn callbacks_may_defer_and_read_and_panic_and_drop_the_domain() {
    for new in DOMAINS {
        let domain = Arc::new(new());
        let (sender, receiver) = mpsc::channel();
        let shared = domain.clone();
        domain.defer(0, || panic!("expected: a callback of a test panics"));
        domain.defer(0, move || {
            let guard = shared.read();
            let again = sender.clone();
            shared.defer(0, move || drop(again));
            drop(guard);
            drop(shared);
            sender.send(()).unwrap();
        });
        domain.flush();
        drop(domain);
        receiver.recv().unwrap();
        // Ends when the second callback, which holds the other sender, is gone.
        assert!(receiver.recv().is_err());
    }
}

/// Panics when dropped; what that panic carries does so again.
struct Grenade(u32);

impl Drop for Grenade {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Self(self.0 - 1));
        }
    }
}

#[test]
fn a_panic_that_panics_when_dropped_ends_no_reclaimer() {
    for new in DOMAINS {
        for depth in [0, 1, 2, 5] {
            let domain = new();
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..10 {
                domain.defer(0, move || std::panic::panic_any(Grenade(depth)));
                let ran = ran.clone();
                domain.defer(0, move || _ = ran.fetch_add(1, Relaxed));
                domain.barrier();
            }
            assert_eq!((ran.load(Relaxed), domain.stats().panics), (10, 10));
        }
    }
}

#[test]
fn bytes_are_accounted_until_they_are_freed() {
    let domain = RcuDomain::new();
    let guard = domain.read();
    let cell = RcuOption::some(&domain, vec![0u8; 1000]);
    domain.defer(7, || {});
    domain.defer_drop(Box::new([0u64; 4]));
    cell.set_sized(&domain, None, Vec::capacity);
    let expected = 7 + 32 + (24 + 1000);
    let stats = domain.stats();
    assert_eq!((stats.deferred_callbacks, stats.deferred_bytes), (3, expected));
    assert_eq!((stats.freed_callbacks, stats.freed_bytes), (0, 0));
    drop(guard);
    domain.barrier();
    let stats = domain.stats();
    assert_eq!((stats.deferred_callbacks, stats.deferred_bytes), (0, 0));
    assert_eq!((stats.freed_callbacks, stats.freed_bytes), (3, expected));
}

#[test]
fn many_bytes_fill_a_batch_before_many_callbacks_do() {
    let domain = RcuDomain::without_reclaimer();
    domain.defer((64 << 10) - 1, || {});
    assert_eq!(domain.stats().freed_callbacks, 0);
    domain.defer(1, || {});
    assert_eq!(domain.stats().freed_callbacks, 2, "no reader is in the way, so the batch is run in passing");
}

#[test]
fn a_sleeping_reader_is_seen_as_a_stall_while_memory_grows() {
    for new in [RcuDomain::new, RcuDomain::with_fences] {
        let domain = new();
        let guard = domain.read();
        for _ in 0..3000 {
            domain.defer_drop(Box::new([0u8; 100]));
        }
        while domain.stats().stalled_now == 0 {
            thread::yield_now();
        }
        assert_eq!(domain.stats().deferred_bytes, 300_000);
        drop(guard);
        domain.barrier();
        let stats = domain.stats();
        assert!(stats.stalls >= 1);
        assert_eq!((stats.stalled_now, stats.deferred_bytes), (0, 0));
        assert!(stats.grace_periods >= 1 && stats.longest_grace_period_ns > 0);
    }
}

#[test]
fn the_reader_mode_is_reported() {
    assert_eq!(RcuDomain::with_fences().stats().reader_mode, ReaderMode::Fence);
    let expected = if prim::barrier::register() { ReaderMode::Membarrier } else { ReaderMode::Fence };
    assert_eq!(RcuDomain::new().stats().reader_mode, expected);
}

#[test]
#[should_panic(expected = "not its own")]
fn a_cell_refuses_the_guard_of_another_domain() {
    let (own, other) = (RcuDomain::new(), RcuDomain::new());
    Rcu::new(&own, 1).load(&other.read());
}

#[test]
#[should_panic(expected = "not its own")]
fn a_cell_refuses_to_free_through_another_domain() {
    let (own, other) = (RcuDomain::new(), RcuDomain::new());
    Rcu::new(&own, 1).replace(&other, 2);
}

#[test]
#[should_panic(expected = "inside a read section")]
fn synchronize_inside_a_section_is_refused() {
    let domain = RcuDomain::new();
    let _guard = domain.read();
    domain.synchronize();
}

#[test]
#[should_panic(expected = "inside a read section")]
fn barrier_inside_a_section_is_refused() {
    let domain = RcuDomain::new();
    let _guard = domain.read();
    domain.barrier();
}

thread_local! {
    static KEPT: RefCell<Option<ReadGuard<'static>>> = const { RefCell::new(None) };
}

#[test]
fn a_guard_may_be_kept_in_a_thread_local() {
    for is_registered_first in [false, true] {
        let domain: &'static RcuDomain = Box::leak(Box::new(RcuDomain::new()));
        thread::spawn(move || {
            if is_registered_first {
                KEPT.with(|kept| kept.borrow_mut().take());
            }
            let guard = domain.read();
            KEPT.with(|kept| *kept.borrow_mut() = Some(guard));
        })
        .join()
        .unwrap();
        assert_eq!(domain.stats().leaked_guards, 0);
        domain.synchronize();
    }
}

/// # Safety
/// `guard` came from a `Box<ReadGuard>`, which the call takes over.
unsafe extern "C" fn drop_guard(guard: *mut std::ffi::c_void) {
    // SAFETY: this function's contract.
    drop(unsafe { Box::from_raw(guard.cast::<ReadGuard<'static>>()) });
}

/// Leaves a guard of `domain` to a destructor that runs after the thread's index went back: that of a key made later.
fn leak_a_guard(domain: &'static RcuDomain) {
    let body = move || {
        let guard = Box::new(domain.read());
        let mut key = 0;
        // SAFETY: it writes the key.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(drop_guard)) }, 0);
        // SAFETY: the value is what the destructor takes.
        assert_eq!(unsafe { libc::pthread_setspecific(key, Box::into_raw(guard).cast()) }, 0);
    };
    thread::spawn(body).join().unwrap();
}

#[test]
fn a_guard_dropped_after_its_index_went_back_only_stalls() {
    let domain: &'static RcuDomain = Box::leak(Box::new(RcuDomain::new()));
    leak_a_guard(domain);
    assert_eq!(domain.stats().leaked_guards, 1);
    // The slot's next owners read on; what they read is never freed.
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = Rcu::new(domain, Canary::new(0, &drops));
    for number in 1..=3000 {
        cell.replace(domain, Canary::new(number, &drops));
        if number % 100 == 0 {
            thread::scope(|s| {
                s.spawn(|| assert_eq!(cell.load(&domain.read()).look(), number));
            });
        }
    }
    assert_eq!(drops.load(Relaxed), 0);
}

#[test]
fn a_percpu_reference_is_dropped_once_by_the_last_of_many_threads() {
    for round in 0..100u64 {
        let drops = Arc::new(AtomicUsize::new(0));
        let owner = PerCpuOwner::new(Canary::new(round, &drops), false);
        let start = Barrier::new(4);
        thread::scope(|s| {
            for turn in 0..3 {
                let share = owner.share();
                let start = &start;
                s.spawn(move || {
                    start.wait();
                    let mut kept = Vec::new();
                    for i in 0..300 {
                        let clone = share.clone();
                        assert_eq!(clone.look(), round);
                        // References dropped on another thread, or later, than they were taken.
                        if i % 7 == turn {
                            kept.push(clone);
                        }
                    }
                    drop(share);
                    thread::spawn(move || kept.iter().for_each(|share| assert_eq!(share.look(), round)))
                        .join()
                        .unwrap();
                });
            }
            start.wait();
            assert_eq!(owner.look(), round);
            assert_eq!(drops.load(Relaxed), 0);
            drop(owner);
        });
        assert_eq!(drops.load(Relaxed), 1);
    }
}

#[test]
fn an_owner_without_shares_drops_the_value() {
    let drops = Arc::new(AtomicUsize::new(0));
    drop(PerCpuOwner::new(Canary::new(0, &drops), false));
    assert_eq!(drops.load(Relaxed), 1);
}
