//! Real code of `sync` on the simulated machine, from set-up to teardown.

use lightfoot_sim::atomic::{AtomicU64, Ordering::Relaxed};
use lightfoot_sim::{Config, Machine, PerMachine, lockstat};
use sync_sim::Mutex;
use sync_sim::SpinLock;
use sync_sim::rcu::{RcuDomain, RcuOption};

fn machine() -> Machine {
    Machine::preset("dl980").expect("a preset")
}

#[test]
fn a_spinlock_excludes_and_its_time_is_seen() {
    let report = lightfoot_sim::run(
        Config::new(machine(), 20, 200),
        || SpinLock::new(0u64),
        |lock, _| {
            while lightfoot_sim::running() {
                {
                    let mut value = lock.lock();
                    let before = *value;
                    lightfoot_sim::cost(50);
                    *value = before + 1;
                }
                lightfoot_sim::cost(300);
                lightfoot_sim::count_op(0);
            }
        },
    );
    assert!(report.rate(0) > 1e5, "{report:?}");
    let stat = report.lock("TasLock").expect("the class was seen");
    assert!(stat.contended > 0 && stat.hold_ns > 0.0 && stat.wait_ns > 0.0, "{stat:?}");
}

#[test]
fn a_sleeping_lock_parks_and_wakes_under_more_threads_than_cpus() {
    let mut config = Config::new(machine(), 4, 3000);
    config.threads = 12;
    let report = lightfoot_sim::run(
        config,
        || Mutex::new(0u64),
        |lock, _| {
            for _ in 0..200 {
                let mut value = lock.lock();
                let before = *value;
                lightfoot_sim::cost(2_000);
                *value = before + 1;
                assert_eq!(*value, before + 1);
                drop(value);
                lightfoot_sim::cost(1_000);
            }
        },
    );
    assert!(report.counters.parks > 0 && report.counters.wakes > 0, "{:?}", report.counters);
}

#[test]
fn a_background_thread_of_the_state_lives_from_set_up_to_teardown() {
    let report = lightfoot_sim::run(
        Config::new(machine(), 8, 500),
        || {
            let domain = RcuDomain::new();
            let cell = RcuOption::some(&domain, 0u64);
            domain.defer_drop(Box::new([0u8; 100]));
            domain.barrier();
            (cell, domain)
        },
        |(cell, domain), thread| {
            let mut round = 0;
            while lightfoot_sim::running() {
                if thread == 0 {
                    cell.set(domain, Some(round));
                    round += 1;
                    if round % 16 == 0 {
                        domain.synchronize();
                    }
                } else {
                    let guard = domain.read();
                    assert!(cell.load(&guard).is_some());
                }
                lightfoot_sim::cost(200);
                lightfoot_sim::count_op(0);
            }
        },
    );
    assert!(report.operations[0] > 1000, "{report:?}");
}

#[test]
fn each_simulation_has_its_own_value_of_a_machine() {
    static COUNT: PerMachine<AtomicU64> = PerMachine::new(AtomicU64::default);
    static LATER: PerMachine<AtomicU64> = PerMachine::new(|| AtomicU64::new(100));
    COUNT.get().store(7, Relaxed);
    for _ in 0..2 {
        lightfoot_sim::run(
            Config::new(machine(), 4, 10),
            || {
                assert_eq!((COUNT.get().load(Relaxed), LATER.get().load(Relaxed)), (0, 100));
            },
            |(), _| {
                COUNT.get().fetch_add(1, Relaxed);
                assert!((1..=4).contains(&COUNT.get().load(Relaxed)));
            },
        );
    }
    assert_eq!((COUNT.get().load(Relaxed), LATER.get().load(Relaxed)), (7, 100));
}

#[test]
fn a_lock_counts_under_its_name_and_its_spinning_for_the_innermost_caller() {
    let report = lightfoot_sim::run(
        Config::new(machine(), 20, 200),
        || [SpinLock::new(0u64), SpinLock::new(0)],
        |locks, _| {
            while lightfoot_sim::running() {
                let _outer = lockstat::caller("outer");
                {
                    let _inner = lockstat::caller("inner");
                    lockstat::named(|| "first");
                    *locks[0].lock() += 1;
                }
                *locks[1].lock() += 1;
                lightfoot_sim::cost(300);
                lightfoot_sim::count_op(0);
            }
        },
    );
    let of = |class| report.lock(class).map_or(0, |lock| lock.acquisitions);
    let (first, second) = (of("first"), of("TasLock"));
    assert!(first > 100 && first.abs_diff(second) <= 20, "{first} named, {second} by type");
    let spun = |name| report.callers.iter().find(|(caller, _)| *caller == name).map_or(0.0, |(_, ns)| *ns);
    assert!(spun("inner") > 0.0 && spun("outer") > 0.0, "{:?}", report.callers);
    let spinning = report.tag_ns[lightfoot_sim::profile::Tag::SpinLock as usize];
    assert!((spun("inner") + spun("outer") - spinning).abs() <= 0.01 * spinning, "{:?} {spinning}", report.callers);
}
