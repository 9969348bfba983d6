//! Your lock in the directory cache: an era that is not in the catalogue, beside two that are.
//!
//! `cargo run --release -p lightfoot-lab-report --example own_era`; takes some seconds. See `lab/docs/own.md`.

use eras_sim::{Era, Options, walk_of_2_6_38};
use lightfoot_lab_report::{Failure, Job, Own, Substrate, run, run_own};
use locks_sim::{McsLock, SpinningMutex};
use sim::Machine;

/// Without it, the lines of the heap depend on the host.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

/// Yours: the store-free walk with MCS locks in entries and chains, and a queue in front of the directory's mutex.
fn era(options: &Options) -> Box<dyn Era> {
    walk_of_2_6_38::<McsLock, SpinningMutex>(options)
}

fn main() -> Result<(), Failure> {
    println!("{:>16}{:>10}{:>10}{:>10}  CPUs; million pairs of open and close/s", "era", 1, 20, 80);
    for name in ["rcu-walk", "lockref-2013", "yours"] {
        print!("{name:>16}");
        for cpus in [1, 20, 80] {
            let job = Job {
                era: name.into(),
                era_options: [].into(),
                workload: "open-close".into(),
                parameters: [].into(),
                on: Substrate::simulated(Machine::preset("dl980").expect("a preset"), cpus),
                seed: 1,
                warm_ns: 100_000,
                run_ns: 400_000,
                lockstat: false,
            };
            let outcome =
                if name == "yours" { run_own(&job, Own { era: Some(era), workload: None }) } else { run(&job) };
            print!("{:>10.2}", outcome?.ops_per_second / 1e6);
        }
        println!();
    }
    Ok(())
}
