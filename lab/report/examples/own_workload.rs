//! Your workload on every era: something that is not in the catalogue, on 40 simulated CPUs.
//!
//! `cargo run --release -p lightfoot-lab-report --example own_workload`; takes some seconds. See `lab/docs/own.md`.

use eras_sim::workload::{Stage, Worker, Workload};
use eras_sim::{Era, Result, catalogue};
use lightfoot_lab_report::{Failure, Job, Own, Substrate, run_own};
use sim::Machine;

/// Without it, the lines of the heap depend on the host. (The program of the tests, which has this file too, has its own.)
#[cfg_attr(not(test), global_allocator)]
static ARENA: sim::Arena = sim::Arena;

/// Yours: each worker looks up one name, which all have in common; one in eight lists the directory.
struct Mail;

impl Workload for Mail {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        process.make_directory(b"/spool")?;
        process.close(process.create(b"/spool/box")?);
        Ok(Box::new(Spool(era)))
    }

    fn entries(&self, _workers: usize) -> usize {
        2
    }
}

struct Spool<'era>(&'era dyn Era);

impl Stage for Spool<'_> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let process = self.0.process();
        if index.is_multiple_of(8) {
            return Ok(Box::new(move || process.list(b"/spool", &mut |_| ())));
        }
        Ok(Box::new(move || process.stat(b"/spool/box").map(drop)))
    }
}

/// Million operations a second.
pub(crate) fn rate(era: &str, cpus: usize, run_ns: u64) -> std::result::Result<f64, Failure> {
    let job = Job {
        era: era.into(),
        // Small tables, which are soon made: the tree has three entries.
        era_options: [("capacity".into(), 900)].into(),
        workload: "yours".into(),
        parameters: [].into(),
        on: Substrate::simulated(Machine::preset("dl980").expect("a preset"), cpus),
        seed: 1,
        warm_ns: run_ns / 4,
        run_ns,
        lockstat: false,
    };
    let outcome = run_own(&job, Own { era: None, workload: Some(|| Box::new(Mail)) })?;
    Ok(outcome.ops_per_second / 1e6)
}

fn main() -> std::result::Result<(), Failure> {
    println!("Million operations of your workload a second, on 40 CPUs of a simulated DL980:");
    for entry in catalogue() {
        println!("{:>20} {:>8.2}", entry.name, rate(entry.name, 40, 200_000)?);
    }
    Ok(())
}
