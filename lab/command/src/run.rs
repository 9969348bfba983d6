//! `lightfoot-lab run`: makes jobs of the arguments, has them done, and shows their results.

use crate::arguments::Run;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::machine::usable_cpus;
use crate::output::{json, write};
use crate::place::Place;
use crate::progress::Progress;
use crate::run_report::RunReport;
use eras::workload;
use lab::{Failure, Interrupts, Job, Outcome, Placement, Pool, Simulation, Substrate, report};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;

/// Milliseconds that are counted by default: real and virtual.
const NATIVE_MS: f64 = 300.0;
const SIMULATED_MS: f64 = 10.0;

/// Default interrupts of simulated CPUs: a timer tick.
const INTERRUPTS: Interrupts = Interrupts { every_ns: 1_000_000, mean_ns: 3_000 };

/// Runs the command and writes its report to `out`.
pub(crate) fn run(arguments: &Run, out: &mut impl Write) -> Result<(), Error> {
    let jobs = jobs(arguments)?;
    let interrupt = Interrupt::listen()?;
    let results = in_children(&jobs, arguments.jobs, &interrupt)?;
    let entry = workload(&arguments.workload)?;
    let report = RunReport::new(entry, &jobs, results);
    write(out, &if arguments.json { json(&report) } else { report.text() })?;
    let mut failures = report.failures();
    failures.next().map_or(Ok(()), |first| Err(Error::Lab { first: first.clone(), more: failures.count() }))
}

/// Has the jobs done, in child processes.
pub(crate) fn in_children(
    jobs: &[Job],
    processes: Option<u32>,
    interrupt: &Interrupt,
) -> Result<Vec<Result<Outcome, Failure>>, Error> {
    let program = env::current_exe().map_err(|error| Error::Cell(error.into()))?;
    let processes = processes.map_or_else(|| usable_cpus().len(), |jobs| jobs as usize);
    let pool = Pool::of([program.into_os_string(), OsString::from("cell")], processes);
    let microseconds = |job: &Job| (report::cost(job) / 1e3) as usize;
    let progress = Progress::of("running", jobs.iter().map(microseconds).sum());
    let mut interrupted = Ok(());
    let results = pool.run(jobs, |number, _| {
        progress.step(microseconds(&jobs[number]));
        interrupted = interrupt.check();
        if interrupted.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // A signal to the whole group ends the children first.
    interrupted.and_then(|()| interrupt.check()).map(|()| results)
}

/// Returns a job for each era at each number of CPUs and threads.
fn jobs(arguments: &Run) -> Result<Vec<Job>, Error> {
    let eras = eras(&arguments.era)?;
    let parameters: BTreeMap<String, u64> = arguments.set.iter().cloned().collect();
    let values = parameters.iter().map(|(name, &value)| (name.as_str(), value));
    workload(&arguments.workload)?
        .make(values)
        .map_err(|refused| Error::Invalid(format!("--set for the workload {}: {refused}", arguments.workload)))?;
    let era_options: BTreeMap<String, u64> = arguments.era_set.iter().cloned().collect();
    lab::check_era_options(&era_options).map_err(|why| Error::Invalid(format!("--era-set: {why}")))?;
    let places = substrates(arguments)?;
    let is_native = matches!(places.first(), Some(Substrate::Native { .. }));
    let ms = arguments.time_ms.unwrap_or(if is_native { NATIVE_MS } else { SIMULATED_MS });
    let run_ns = (ms * 1e6) as u64;
    let job = |era: &str, on: &Substrate| Job {
        era: era.into(),
        era_options: era_options.clone(),
        workload: arguments.workload.clone(),
        parameters: parameters.clone(),
        on: on.clone(),
        seed: arguments.seed,
        warm_ns: run_ns / 5,
        run_ns,
        lockstat: arguments.lockstat,
    };
    Ok(eras.iter().flat_map(|era| places.iter().map(move |on| job(era, on))).collect())
}

/// Returns the names of the requested eras, each once, in the catalogue's order.
fn eras(asked: &[String]) -> Result<Vec<&'static str>, Error> {
    let all: Vec<&'static str> = eras::catalogue().iter().map(|era| era.name).collect();
    if let Some(unknown) = asked.iter().find(|name| *name != "all" && !all.contains(&name.as_str())) {
        return Err(Error::no_such("--era", unknown, &format!("{}, or all", all.join(", "))));
    }
    let is_asked = |era: &&str| asked.iter().any(|name| name == "all" || name == era);
    Ok(all.into_iter().filter(|era| is_asked(era)).collect())
}

fn workload(name: &str) -> Result<&'static workload::WorkloadEntry, Error> {
    workload::find(name).ok_or_else(|| {
        let there: Vec<&str> = workload::catalogue().iter().map(|entry| entry.name).collect();
        Error::no_such("--workload", name, &there.join(", "))
    })
}

/// Where to run: each number of CPUs with each number of threads.
fn substrates(arguments: &Run) -> Result<Vec<Substrate>, Error> {
    match Place::named(&arguments.on)? {
        Place::Native => native(arguments),
        Place::Simulated(machine) => simulated(arguments, &machine),
    }
}

fn native(arguments: &Run) -> Result<Vec<Substrate>, Error> {
    if let Some(only_simulated) = only_simulated(arguments) {
        let why = "it is for simulated machines (leave it out, or use --on sim:NAME)";
        return Err(Error::Invalid(format!("{only_simulated}: {why}")));
    }
    let cpus = usable_cpus().len();
    let threads = counts(&arguments.threads, cpus);
    if let Some(&asked) = threads.iter().find(|&&count| count > cpus) {
        return Err(Error::too_many_threads(asked, cpus));
    }
    Ok(threads.into_iter().map(|threads| Substrate::Native { threads }).collect())
}

/// Returns the first of the options given that is for simulated machines alone.
fn only_simulated(arguments: &Run) -> Option<&'static str> {
    let given = [
        (!arguments.cpus.is_empty(), "--cpus"),
        (arguments.spread, "--spread"),
        (!arguments.interrupts_us.is_empty(), "--interrupts-us"),
        (arguments.slack_ns > 0, "--slack-ns"),
        (arguments.stalls, "--stalls"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
}

fn simulated(arguments: &Run, machine: &sim::Machine) -> Result<Vec<Substrate>, Error> {
    let interrupts = match arguments.interrupts_us[..] {
        [] => Some(INTERRUPTS),
        [0] => None,
        [every, length] if every > 0 && length > 0 => {
            Some(Interrupts { every_ns: u64::from(every) * 1000, mean_ns: u64::from(length) * 1000 })
        }
        _ => {
            return Err(Error::Invalid(
                "--interrupts-us (use two numbers, the microseconds between interrupts and the length of each, such as \
                 300,100; or 0 for none)"
                    .into(),
            ));
        }
    };
    let cpus = counts(&arguments.cpus, machine.cpus());
    if let Some(&asked) = cpus.iter().find(|&&count| count > machine.cpus()) {
        let (name, there) = (&machine.name, machine.cpus());
        return Err(Error::Invalid(format!("--cpus: {name} does not have {asked} CPUs (use at most {there})")));
    }
    let on = |cpus: usize, threads: usize| {
        let placement = if arguments.spread { Placement::Spread } else { Placement::Compact };
        let simulation = Simulation::new(machine.clone(), cpus);
        let (slack_ns, stalls) = (arguments.slack_ns, arguments.stalls);
        Substrate::Simulated(Box::new(Simulation { placement, threads, interrupts, slack_ns, stalls, ..simulation }))
    };
    let all = cpus.into_iter().flat_map(|cpus| match arguments.threads.is_empty() {
        true => vec![on(cpus, cpus)],
        false => counts(&arguments.threads, 0).into_iter().map(|threads| on(cpus, threads)).collect(),
    });
    Ok(all.collect())
}

/// Returns the requested numbers, in order; without any 1, 2, 4, ... and `all`.
fn counts(asked: &[u32], all: usize) -> BTreeSet<usize> {
    if asked.is_empty() {
        return (0..).map(|bit| 1 << bit).take_while(|&count| count < all).chain([all]).collect();
    }
    asked.iter().map(|&count| count as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_numbers_there_are_the_powers_of_two_and_all() {
        let check = |asked: &[u32], all, expected: &[usize]| {
            assert_eq!(counts(asked, all).into_iter().collect::<Vec<usize>>(), expected);
        };
        check(&[], 1, &[1]);
        check(&[], 8, &[1, 2, 4, 8]);
        check(&[], 10, &[1, 2, 4, 8, 10]);
        check(&[40, 10, 40], 80, &[10, 40]);
    }
}
