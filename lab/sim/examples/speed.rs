//! How fast the simulator is: charged accesses in a second of the host, for a few kinds of code and sizes of machine.
//!
//! `cargo run -p lightfoot-sim --release --example speed`; takes some ten seconds.

use lightfoot_sim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lightfoot_sim::{Arena, Config, Machine, Report};

#[global_allocator]
static ARENA: Arena = Arena;

/// A machine of any size: nodes of 16 CPUs, the DL980's costs.
fn machine(cpus: usize) -> Machine {
    let mut machine = Machine::preset("dl980").expect("a preset");
    machine.cpus_per_node = cpus.div_ceil(machine.nodes).max(1);
    machine
}

fn main() {
    println!("{:>5} {:<16} {:>10} {:>8} {:>10} {:>8}", "CPUs", "code", "M acc/s", "hits %", "resumes/acc", "host s");
    print(
        "load hits",
        1,
        20_000,
        |_, _| (),
        |(), data, _| {
            data.load(Relaxed);
        },
    );
    for cpus in [80, 128, 1024] {
        let us = 20_000 / cpus as u64;
        private(cpus, us);
        read_only(cpus, us);
        ticket(cpus, us * 40);
    }
}

fn print<S: 'static>(
    name: &str,
    cpus: usize,
    run_us: u64,
    set_up: impl FnOnce(usize, &[AtomicU64]) -> S + 'static,
    turn: impl Fn(&S, &AtomicU64, usize) + Clone + 'static,
) -> Report {
    let mut config = Config::new(machine(cpus), cpus, run_us);
    config.warm_ns = 0;
    let report = lightfoot_sim::run(
        config,
        move || {
            let data: Vec<AtomicU64> = (0..cpus * 16).map(|_| AtomicU64::new(0)).collect();
            (set_up(cpus, &data), data)
        },
        move |(state, data), thread| {
            while lightfoot_sim::running() {
                for _ in 0..16 {
                    turn(state, &data[thread * 16], thread);
                }
            }
        },
    );
    let c = &report.counters;
    let hits = (c.load_hits + c.write_hits) as f64 / c.accesses as f64 * 100.0;
    let speed = c.accesses as f64 / report.host_seconds / 1e6;
    let resumes = c.resumes as f64 / c.accesses as f64;
    println!("{cpus:>5} {name:<16} {speed:>10.1} {hits:>8.2} {resumes:>10.3} {:>8.2}", report.host_seconds);
    report
}

fn private(cpus: usize, us: u64) {
    print(
        "private rmw",
        cpus,
        us,
        |_, _| (),
        |(), data, _| {
            data.fetch_add(1, Relaxed);
        },
    );
}

fn read_only(cpus: usize, us: u64) {
    let table = |_, _: &[AtomicU64]| (0..512).map(|_| AtomicU64::new(1)).collect::<Vec<_>>();
    print("read-only walk", cpus, us, table, |table, _, thread| {
        for step in 0..4 {
            table[(thread * 7 + step * 8) % 512].load(Relaxed);
        }
    });
}

fn ticket(cpus: usize, us: u64) {
    let lock = |_, _: &[AtomicU64]| (AtomicU32::new(0), AtomicU32::new(0));
    print("ticket lock", cpus, us, lock, |(next, serving), data, _| {
        let mine = next.fetch_add(1, Relaxed);
        lightfoot_sim::hint::spin_until(|| serving.load(Relaxed) == mine);
        data.fetch_add(1, Relaxed);
        serving.store(mine.wrapping_add(1), Relaxed);
        lightfoot_sim::cost(1000);
    });
}
