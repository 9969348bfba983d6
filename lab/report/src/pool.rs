//! Many jobs at once, each in a separate process.
//!
//! # What it is
//! A simulation has its process to itself (one arena, one clock), so a pool starts child processes,
//! `processes` at a time: each reads one job as JSON from its standard input ([`run_cell`]) and
//! writes the result. Jobs on this machine itself measure real time; they run after all others, one
//! at a time.
//!
//! # What it is not
//! A scheduler: jobs start in the order they are given in, and none is tried again.
//!
//! # How it is locked
//! Threads take the number of the next job from a counter and send the result over a channel.

use crate::failure::Failure;
use crate::job::{Job, Substrate};
use crate::outcome::Outcome;
use crate::run::run;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

/// Where jobs are done.
#[derive(Clone, Debug)]
pub struct Pool {
    command: Vec<OsString>,
    processes: usize,
}

impl Pool {
    /// Child processes of `command` (a program and its arguments), which must do as [`run_cell`] does; at most
    /// `processes` at a time, and at least one.
    pub fn of(command: impl IntoIterator<Item = OsString>, processes: usize) -> Self {
        Self { command: command.into_iter().collect(), processes: processes.max(1) }
    }

    /// Does all jobs and returns the results, in their order. The calling thread calls `done` after
    /// each job, with the job's number in `jobs`; once `done` returns a break, no further job is
    /// begun.
    pub fn run(
        &self,
        jobs: &[Job],
        mut done: impl FnMut(usize, &Result<Outcome, Failure>) -> ControlFlow<()>,
    ) -> Vec<Result<Outcome, Failure>> {
        let (native, simulated): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|&number| matches!(jobs[number].on, Substrate::Native { .. }));
        let mut all: Vec<Result<Outcome, Failure>> = jobs.iter().map(not_begun).collect();
        let mut keep = |number: usize, result: Result<Outcome, Failure>| {
            let goes_on = done(number, &result);
            all[number] = result;
            goes_on
        };
        if self.run_some(jobs, &simulated, self.processes, &mut keep).is_continue() {
            // Broken off or not, there is nothing after these.
            let _ = self.run_some(jobs, &native, 1, &mut keep);
        }
        all
    }

    /// Does the jobs with these numbers, so many at a time.
    fn run_some(
        &self,
        jobs: &[Job],
        numbers: &[usize],
        at_a_time: usize,
        keep: &mut impl FnMut(usize, Result<Outcome, Failure>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut goes_on = ControlFlow::Continue(());
        let (next, (sender, receiver)) = (&AtomicUsize::new(0), mpsc::channel());
        thread::scope(|scope| {
            for _ in 0..at_a_time.min(numbers.len()) {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(&number) = numbers.get(next.fetch_add(1, Relaxed)) {
                        // The receiver lives as long as there are senders.
                        let _ = sender.send((number, in_child(&self.command, &jobs[number])));
                    }
                });
            }
            drop(sender);
            for (number, result) in receiver {
                if keep(number, result).is_break() {
                    goes_on = ControlFlow::Break(());
                    // No number is left to take. Relaxed: a thread that takes one meanwhile had begun.
                    next.store(numbers.len(), Relaxed);
                }
            }
        });
        goes_on
    }
}

fn not_begun(job: &Job) -> Result<Outcome, Failure> {
    Err(Failure::NotBegun { era: job.era.clone(), workload: job.workload.clone() })
}

/// Does one job in a child process.
fn in_child(command: &[OsString], job: &Job) -> Result<Outcome, Failure> {
    let died = |status: String, message: String| Failure::Died {
        era: job.era.clone(),
        workload: job.workload.clone(),
        status,
        message,
    };
    let output = ask(command, job).map_err(|error| died("no start".into(), error.to_string()))?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        let message = if errors.trim().is_empty() { "it wrote no error" } else { errors.trim() };
        Err(died(output.status.to_string(), message.into()))
    })
}

/// Starts the child, gives it the job and reads its output.
fn ask(command: &[OsString], job: &Job) -> io::Result<std::process::Output> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let question = serde_json::to_vec(job)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that dies before it has read reports that by its status.
        let _ = stdin.write_all(&question);
    }
    child.wait_with_output()
}

/// Runs the child's side: reads one job, does the job, and writes the result.
///
/// # Errors
/// The errors of reading and writing; input that is not a job.
pub fn run_cell(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut question = Vec::new();
    input.read_to_end(&mut question)?;
    let job: Job = serde_json::from_slice(&question)?;
    serde_json::to_writer(&mut output, &run(&job))?;
    output.flush()
}
