//! Your lock in the directory cache: an era that is not in the catalogue, beside two that are.
//!
//! `cargo run --release -p lightfoot-lab-report --example own_era`; takes some seconds. See `lab/docs/own.md`.

use eras_sim::{Era, Options, walk_of_2_6_38};
use lightfoot_lab_report::{Failure, Job, Own, Substrate, run, run_own};
use locks_sim::{McsLock, SpinningMutex};
use sim::Machine;

/// Without it, the lines of the heap depend on the host. (The program of the tests, which has this file too, has its own.)
#[cfg_attr(not(test), global_allocator)]
static ARENA: sim::Arena = sim::Arena;

/// Yours: the store-free walk with MCS locks in entries and chains, and a queue in front of the directory's mutex.
fn era(options: &Options) -> Box<dyn Era> {
    walk_of_2_6_38::<McsLock, SpinningMutex>(options)
}

/// Million lookups of one path a second, by all CPUs: all of them count on its last component.
pub(crate) fn rate(name: &str, cpus: usize, run_ns: u64) -> Result<f64, Failure> {
    let job = Job {
        era: name.into(),
        era_options: [].into(),
        workload: "MRPH".into(),
        parameters: [].into(),
        on: Substrate::simulated(Machine::preset("dl980").expect("a preset"), cpus),
        seed: 1,
        warm_ns: run_ns / 4,
        run_ns,
        lockstat: false,
    };
    let outcome = if name == "yours" { run_own(&job, Own { era: Some(era), workload: None }) } else { run(&job) };
    Ok(outcome?.ops_per_second / 1e6)
}

fn main() -> Result<(), Failure> {
    println!("Million lookups a second of one path by all CPUs of a simulated DL980.");
    println!("rcu-walk counts under a lock, lockref-2013 by compare-exchange, yours by yours");
    println!("{:>16}{:>10}{:>10}{:>10}", "CPUs:", 1, 20, 80);
    for name in ["rcu-walk", "lockref-2013", "yours"] {
        print!("{name:>16}");
        for cpus in [1, 20, 80] {
            print!("{:>10.2}", rate(name, cpus, 400_000)?);
        }
        println!();
    }
    Ok(())
}
