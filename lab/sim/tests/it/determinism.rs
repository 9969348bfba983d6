//! The same seed gives the same run: in one process whatever its heap looks like, and in another process.

use lightfoot_sim::{Config, Machine, Schedule};
use locks_sim::McsLock;
use std::process::Command;
use sync_sim::rcu::{RcuDomain, RcuOption};
use sync_sim::{Lock, Mutex, TasLock};

/// A mixture: spinning and sleeping locks, queue nodes on stacks, callbacks, allocation, addresses in a hash.
fn hash(seed: u64, schedule: Schedule) -> u64 {
    let mut config = Config::new(Machine::preset("dl980").expect("a preset"), 24, 60);
    (config.seed, config.schedule, config.threads) = (seed, schedule, 30);
    let report = lightfoot_sim::run(
        config,
        || {
            let domain = RcuDomain::new();
            let cell = RcuOption::some(&domain, [0u64; 8]);
            (Lock::<TasLock, u64>::new(0), Mutex::new(vec![0u64]), Lock::<McsLock, u64>::new(0), cell, domain)
        },
        |(spin, sleep, queue, cell, domain), thread| {
            let mut random = lightfoot_sim::seed::random_u64();
            while lightfoot_sim::running() {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(thread as u64);
                match random >> 61 {
                    0 => *spin.lock() += 1,
                    1 => sleep.lock().push(random),
                    2 => *queue.lock() += 1,
                    3 => cell.set(domain, Some([random; 8])),
                    4 => lightfoot_sim::cost(Box::into_raw(Box::new(random)).addr() as u64 >> 4 & 0x3F),
                    _ => assert!(cell.load(&domain.read()).is_some()),
                }
                lightfoot_sim::count_op(0);
            }
        },
    );
    assert!(report.operations[0] > 100, "{report:?}");
    report.hash
}

#[test]
fn a_run_repeats_in_one_process_whatever_its_heap_looks_like() {
    for schedule in [Schedule::Exact, Schedule::Shuffled] {
        let first = hash(1, schedule);
        let disturbed: Vec<Vec<u8>> = (1..100).map(|size| vec![1; size * 37]).collect();
        assert_eq!(hash(1, schedule), first, "{schedule:?}");
        drop(disturbed);
        assert_eq!(hash(1, schedule), first, "{schedule:?}");
        assert_ne!(hash(2, schedule), first, "{schedule:?}");
    }
    assert_ne!(hash(1, Schedule::Exact), hash(1, Schedule::Shuffled));
}

/// Set in the child process, which prints hashes instead of comparing them.
const CHILD: &str = "LIGHTFOOT_SIM_DETERMINISM_CHILD";

#[test]
fn a_run_repeats_in_another_process() {
    let here = [(1, Schedule::Exact), (2, Schedule::Exact), (1, Schedule::Shuffled)].map(|(s, o)| hash(s, o));
    let line = format!("hashes {here:x?}");
    if std::env::var_os(CHILD).is_some() {
        return println!("{line}");
    }
    let name = "determinism::a_run_repeats_in_another_process";
    let mut child = Command::new(std::env::current_exe().expect("this test's binary"));
    let output =
        child.args([name, "--exact", "--nocapture"]).env(CHILD, "a longer environment moves the stack").output();
    let output = String::from_utf8(output.expect("it starts").stdout).expect("text");
    assert!(output.contains(&line), "{line} not in: {output}");
}
