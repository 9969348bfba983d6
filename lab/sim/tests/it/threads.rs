//! Run queues, sleeping, interrupts and the accounts.

use super::small::{config, machine, wait_until};
use lightfoot_sim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lightfoot_sim::profile::{Tag, scope};
use lightfoot_sim::{Config, Interrupts, Machine, Placement, Report};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sync_sim::{Lock, TasLock};

/// `threads` threads on the first `cpus` CPUs.
fn threads(cpus: usize, threads: usize) -> Config {
    let mut config = config(machine());
    (config.cpus, config.threads) = (cpus, threads);
    config
}

/// When each of `count` threads was done with `body`, in nanoseconds.
fn ends(config: Config, body: impl Fn(&[AtomicU64; 16], usize) + Clone + 'static) -> (Vec<u64>, Report) {
    let ends: Rc<Vec<Cell<u64>>> = Rc::new((0..config.threads).map(|_| Cell::new(0)).collect());
    let result = Rc::clone(&ends);
    let report = lightfoot_sim::run(
        config,
        || [const { AtomicU64::new(0) }; 16],
        move |words, thread| {
            body(words, thread);
            result[thread].set(lightfoot_sim::now_ns());
        },
    );
    (ends.iter().map(Cell::get).collect(), report)
}

#[test]
fn threads_of_one_cpu_take_turns_and_long_work_is_split() {
    let (ends, report) = ends(threads(1, 2), |_, _| lightfoot_sim::cost(10_000_000));
    // Twenty slices of a millisecond, each with a switch; the first to end has waited for the other throughout.
    assert!(ends[0].min(ends[1]) > 18_900_000 && ends[0].max(ends[1]) < 20_100_000, "{ends:?}");
    assert!((17..=20).contains(&report.counters.preemptions), "{:?}", report.counters);
}

#[test]
fn a_thread_alone_on_its_cpu_is_not_preempted() {
    let (_, report) = ends(threads(8, 8), |words, thread| {
        for _ in 0..100 {
            lightfoot_sim::cost(100_000);
            words[thread].load(Relaxed);
        }
    });
    assert_eq!(report.counters.preemptions, 0);
}

#[test]
fn a_cpu_with_nothing_to_do_takes_a_thread_that_waits_elsewhere() {
    // Both CPUs are busy when thread 0 starts another, which waits for CPU 0 until thread 1 has ended.
    let (ends, report) = ends(threads(2, 2), |_, thread| {
        wait_until(5_000);
        if thread == 0 {
            let other =
                lightfoot_sim::thread::spawn("other", || lightfoot_sim::cost(3_000_000)).expect("there is room");
            lightfoot_sim::cost(5_000_000);
            other.join().expect("it does not panic");
        } else {
            lightfoot_sim::cost(100_000);
        }
    });
    assert!(ends[0] < 5_020_000, "the other ran on CPU 1: {ends:?}");
    assert_eq!((report.counters.migrations, report.counters.preemptions), (1, 0));
}

#[test]
fn a_thread_that_wakes_goes_back_to_its_cpu_if_that_is_idle() {
    let (_, report) = ends(threads(8, 8), |_, _| (0..20).for_each(|_| lightfoot_sim::idle(3_000)));
    // One switch for each thread, and those of set-up and teardown.
    assert_eq!((report.counters.migrations, report.counters.switches), (0, 10));
}

#[test]
fn a_thread_that_wakes_while_its_cpu_is_taken_goes_to_the_nearest_idle_one() {
    // All CPUs are busy when thread 0 starts another, which therefore waits for CPU 0 and gets it while thread 0 sleeps.
    // When that wakes, CPUs 1 and 7 are idle, of which CPU 1 is of its node.
    let report = ends(threads(8, 8), |words, thread| match thread {
        0 => {
            wait_until(5_000);
            let _ = lightfoot_sim::thread::spawn("other", || lightfoot_sim::cost(500_000));
            words[0].store(1, Relaxed);
            lightfoot_sim::cost(3_000);
            lightfoot_sim::idle(50_000);
            let begin = lightfoot_sim::now_ns();
            words[0].load(Relaxed);
            assert_eq!(lightfoot_sim::now_ns() - begin, 100, "CPU 0, of the same node, has it modified");
        }
        1 | 7 => lightfoot_sim::cost(20_000),
        _ => lightfoot_sim::cost(600_000),
    });
    assert_eq!(report.1.counters.migrations, 1);
}

#[test]
fn a_spinner_gives_its_cpu_to_the_thread_it_waits_for_long_before_its_slice_is_over() {
    let (ends, _) = ends(threads(1, 2), |words, thread| match thread {
        0 => {
            lightfoot_sim::cost(2_000);
            words[0].store(1, Relaxed);
        }
        _ => lightfoot_sim::hint::spin_until(|| words[0].load(Relaxed) == 1),
    });
    assert!(ends[1] < 20_000, "256 turns, some switches: {ends:?}");
}

#[test]
fn a_thread_that_slept_goes_before_one_that_has_not_used_its_slice_up() {
    let config = threads(1, 2);
    let slice = config.machine.system.slice_ns as u64;
    let (ends, _) = ends(config, move |_, thread| match thread {
        0 => lightfoot_sim::cost(5 * slice),
        // It sleeps at once, or after the first slice of the other; it wakes within a slice of the other.
        _ => lightfoot_sim::idle(slice / 10),
    });
    assert!(ends[1] < slice * 3 / 2, "a slice is {slice}: {ends:?}");
}

/// When a thread runs that waits for the CPU of a spinner, which spins for `spins_ns`.
#[track_caller]
fn check_other_runs(keeps: bool, spins_ns: u64, is_right: impl Fn(u64) -> bool) {
    let other = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let result = Arc::clone(&other);
    ends(threads(2, 2), move |words, thread| {
        if thread == 0 {
            // Both CPUs are busy, so the other thread waits for this one.
            let _keep = keeps.then(lightfoot_sim::preempt::off);
            wait_until(5_000);
            let result = Arc::clone(&result);
            let _ = lightfoot_sim::thread::spawn("other", move || result.store(lightfoot_sim::now_ns(), Relaxed));
            lightfoot_sim::hint::spin_until(|| words[0].load(Relaxed) == 1);
        } else {
            lightfoot_sim::cost(spins_ns);
            words[0].store(1, Relaxed);
        }
    });
    let ran = other.load(Relaxed);
    assert!(is_right(ran), "{keeps}, {spins_ns}: the other ran at {ran}");
}

#[test]
fn in_a_section_that_keeps_the_cpu_a_spinner_gives_it_up_after_a_whole_slice_only() {
    check_other_runs(false, 1_000_000, |ran| ran < 1_000_000);
    check_other_runs(true, 1_000_000, |ran| ran > 1_000_000);
    check_other_runs(true, 100_000_000, |ran| (1_000_000..100_000_000).contains(&ran));
}

/// The longest wait for a lock that is held for 20 us in all, by 4 threads on each of 2 CPUs, with slices of 100 us.
fn longest_wait(keeps_cpu: bool) -> f64 {
    let mut config = threads(2, 8);
    config.machine.system.slice_ns = 100_000.0;
    config.run_ns = 20_000_000;
    let report = lightfoot_sim::run(
        config,
        || Lock::<TasLock, u64>::new(0),
        move |lock, _| {
            while lightfoot_sim::running() {
                lightfoot_sim::cost(10_000);
                let _keep = keeps_cpu.then(lightfoot_sim::preempt::off);
                let mut value = lock.lock();
                let before = *value;
                lightfoot_sim::cost(20_000);
                *value = before + 1;
                lightfoot_sim::count_op(0);
            }
        },
    );
    report.lock("TasLock").expect("used").wait_max_ns
}

#[test]
fn the_holder_of_a_lock_is_preempted_unless_it_keeps_its_cpu() {
    let (preempted, kept) = (longest_wait(false), longest_wait(true));
    assert!(preempted > 150_000.0, "the others' slices go by: {preempted}");
    assert!(kept < 60_000.0, "at most the sections of the other CPU: {kept}");
}

#[test]
fn sleepers_wake_in_order_and_pay_for_it() {
    let order = Rc::new(Cell::new(0u64));
    let result = Rc::clone(&order);
    let report = lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        move |word, thread| {
            if thread == 0 {
                wait_until(100_000);
                for _ in 0..7 {
                    lightfoot_sim::park::unpark_one(word);
                    lightfoot_sim::cost(10_000);
                }
            } else {
                wait_until(10_000 * (8 - thread as u64));
                let begin = lightfoot_sim::now_ns();
                lightfoot_sim::park::park(word, 0);
                assert!(lightfoot_sim::now_ns() - begin > 2_000 + 1_000, "the wake latency, going to sleep");
                result.set(result.get() * 10 + thread as u64);
            }
        },
    );
    assert_eq!(order.get(), 7_654_321);
    assert_eq!((report.counters.parks, report.counters.wakes), (7, 7));
}

#[test]
fn a_park_ends_with_its_time_with_a_wake_or_at_once_if_the_word_differs() {
    let (_, report) = ends(threads(2, 2), |_, thread| {
        let word = AtomicU32::new(5);
        if thread == 0 {
            let begin = lightfoot_sim::now_ns();
            assert!(lightfoot_sim::park::park_timeout(&word, 6, Duration::from_millis(1)));
            assert!(lightfoot_sim::now_ns() - begin < 1_000, "the word differs");
            assert!(!lightfoot_sim::park::park_timeout(&word, 5, Duration::from_millis(1)));
            let waited = lightfoot_sim::now_ns() - begin;
            assert!((1_000_000..1_010_000).contains(&waited), "{waited}");
        }
    });
    assert_eq!((report.counters.parks, report.counters.wakes), (2, 0));
    let (ends, _) = ends(threads(2, 2), |words, thread| {
        let word = lightfoot_sim::uncharged(|| AtomicU32::new(0));
        if thread == 0 {
            words[0].store(core::ptr::from_ref(&word).addr() as u64, Relaxed);
            assert!(!lightfoot_sim::park::park_timeout(&word, 0, Duration::from_micros(3)), "nobody wakes it");
        }
    });
    assert!(ends[0] > 3_000);
}

#[test]
fn a_thread_of_the_body_can_start_and_join_others() {
    let (ends, _) = ends(threads(4, 1), |_, _| {
        let work = |ns| move || lightfoot_sim::cost(ns);
        let handles: Vec<_> =
            [50_000, 100_000].map(|ns| lightfoot_sim::thread::spawn("helper", work(ns)).expect("there is room")).into();
        assert!(!handles[1].is_finished());
        handles.into_iter().for_each(|handle| handle.join().expect("it does not panic"));
    });
    assert!((100_000..115_000).contains(&ends[0]), "at the same time: {ends:?}");
}

#[test]
fn membarrier_costs_a_call_and_disturbs_who_runs() {
    let time = |callers: usize| {
        let (ends, _) = ends(threads(8, 8), move |words, thread| {
            if thread < callers {
                (0..100).for_each(|_| assert!(lightfoot_sim::barrier::all_threads()));
            } else {
                (0..1000).for_each(|_| {
                    lightfoot_sim::cost(100);
                    words[thread].load(Relaxed);
                });
            }
        });
        (ends[0], ends[7])
    };
    let ((_, undisturbed), (caller, disturbed)) = (time(0), time(1));
    assert!(caller > 100 * (100 + 2 * 304), "{caller}");
    assert!(disturbed > undisturbed + 100 * 90, "{disturbed}, {undisturbed}");
}

#[test]
fn every_nanosecond_of_every_cpu_is_in_one_account() {
    let mut config = threads(4, 9);
    config.machine.system.slice_ns = 10_000.0;
    config.interrupts = Some(Interrupts { every_ns: 10_000, mean_ns: 3_000 });
    (config.warm_ns, config.run_ns) = (100_000, 3_000_000);
    let report = lightfoot_sim::run(
        config,
        || (Lock::<TasLock, u64>::new(0), sync_sim::Mutex::new(0u64)),
        |(spin, sleep), thread| {
            while lightfoot_sim::running() {
                let _user = scope(Tag::User);
                lightfoot_sim::cost(3_000);
                let _kernel = scope(Tag::Kernel);
                *spin.lock() += 1;
                *sleep.lock() += 1;
                lightfoot_sim::cost(500);
                if thread >= 4 {
                    lightfoot_sim::idle(40_000);
                }
                lightfoot_sim::count_op(thread % 8);
            }
        },
    );
    let tags: f64 = report.tag_ns.iter().sum();
    let all = tags + report.idle_ns + report.interrupt_ns + report.switch_ns;
    let wanted = report.span_ns * 4.0;
    assert!((all / wanted - 1.0).abs() < 1e-3, "{all} of {wanted}: {report:?}");
    assert!(report.idle_ns > 0.0 && report.switch_ns > 0.0 && report.share(Tag::User) > 0.2, "{report:?}");
    let interrupts = report.interrupt_ns / (wanted - report.idle_ns);
    assert!((0.17..0.29).contains(&interrupts), "3 of 13 us: {interrupts}");
    assert_eq!(report.operations_per_thread.iter().map(|thread| thread[0]).sum::<u64>(), report.operations[0]);
}

#[test]
fn spread_threads_use_all_nodes_and_compact_ones_the_first() {
    let cost = |placement| {
        let mut config = threads(2, 2);
        config.placement = placement;
        let (ends, _) = ends(config, |words, thread| {
            wait_until(5_000 + thread as u64 * 1_000);
            words[0].fetch_add(1, Relaxed);
        });
        ends[1] - 6_000
    };
    assert_eq!((cost(Placement::Compact), cost(Placement::Spread)), (110, 210));
}

#[test]
fn the_largest_machine_runs() {
    let mut machine = Machine::preset("dl980").expect("a preset");
    machine.cpus_per_node = 1024 / machine.nodes;
    let mut config = Config::new(machine, 1024, 20);
    config.threads = 4096;
    config.machine.system.slice_ns = 2_000.0;
    let report = lightfoot_sim::run(
        config,
        || lightfoot_sim::PerCpu::new(|| AtomicU64::new(0)),
        |slots, _| {
            while lightfoot_sim::running() {
                slots.this().fetch_add(1, Relaxed);
                lightfoot_sim::cost(500);
                lightfoot_sim::count_op(0);
            }
            assert!(slots.get(4095).load(Relaxed) < 1_000);
        },
    );
    assert_eq!(report.operations_per_thread.len(), 4096);
    assert!(report.counters.preemptions > 1000);
}
