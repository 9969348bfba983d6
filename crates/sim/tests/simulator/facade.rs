//! Real code of `sync` on the simulated machine, from set-up to teardown.

use sim::{Config, Machine};
use sync_sim::Mutex;
use sync_sim::SpinLock;
use sync_sim::rcu::{RcuDomain, RcuOption};

fn machine() -> Machine {
    Machine::preset("dl980").expect("a preset")
}

#[test]
fn a_spinlock_excludes_and_its_time_is_seen() {
    let report = sim::run(
        Config::new(machine(), 20, 200),
        || SpinLock::new(0u64),
        |lock, _| {
            while sim::running() {
                {
                    let mut value = lock.lock();
                    let before = *value;
                    sim::cost(50);
                    *value = before + 1;
                }
                sim::cost(300);
                sim::count_op(0);
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
    let report = sim::run(
        config,
        || Mutex::new(0u64),
        |lock, _| {
            for _ in 0..200 {
                let mut value = lock.lock();
                let before = *value;
                sim::cost(2_000);
                *value = before + 1;
                assert_eq!(*value, before + 1);
                drop(value);
                sim::cost(1_000);
            }
        },
    );
    assert!(report.counters.parks > 0 && report.counters.wakes > 0, "{:?}", report.counters);
}

#[test]
fn a_background_thread_of_the_state_lives_from_set_up_to_teardown() {
    let report = sim::run(
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
            while sim::running() {
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
                sim::cost(200);
                sim::count_op(0);
            }
        },
    );
    assert!(report.operations[0] > 1000, "{report:?}");
}
