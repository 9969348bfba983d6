//! The results of a run of the lab, as text or as one JSON document.

use crate::machine::Machine;
use crate::table;
use eras::workload::{Parameter, WorkloadEntry};
use lab::{Failure, Job, Outcome, Substrate};
use serde::Serialize;
use std::fmt::Write as _;

/// All that `lightfoot-lab run` gives, of at least one job.
#[derive(Serialize)]
pub(crate) struct RunReport<'a> {
    /// The machine that it ran on; simulated figures do not depend on it.
    host: Machine,
    #[serde(skip)]
    workload: &'static WorkloadEntry,
    #[serde(skip)]
    pub(crate) jobs: &'a [Job],
    /// In the order of the jobs. `host_seconds` is the one field that differs between runs of one seed.
    results: Vec<Result<Outcome, Failure>>,
}

impl<'a> RunReport<'a> {
    /// Returns the report of at least one job; `results` are in the order of `jobs`.
    pub(crate) fn new(
        workload: &'static WorkloadEntry,
        jobs: &'a [Job],
        results: Vec<Result<Outcome, Failure>>,
    ) -> Self {
        Self { host: Machine::here(), workload, jobs, results }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Job, &Result<Outcome, Failure>)> {
        self.jobs.iter().zip(&self.results)
    }

    pub(crate) fn done(&self) -> impl Iterator<Item = &Outcome> {
        self.results.iter().filter_map(|result| result.as_ref().ok())
    }

    /// Returns the failures, without eras that lack an operation: that is a fact about the era.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Failure> {
        let failures = self.results.iter().filter_map(|result| result.as_ref().err());
        failures.filter(|failure| !matches!(failure, Failure::Unsupported { .. }))
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.jobs[0].on, Substrate::Simulated(_))
    }

    /// As text: a head, the table, and the locks if they were requested.
    pub(crate) fn text(&self) -> String {
        let mut text = self.head();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}\n", table::throughput(self));
        if let Some(locks) = table::locks(self) {
            let _ = write!(text, "\n{locks}\n");
        }
        for stalls in self.done().filter_map(table::stalls) {
            let _ = write!(text, "\n{stalls}");
        }
        for failure in self.results.iter().filter_map(|result| result.as_ref().err()) {
            let _ = writeln!(text, "not run: {failure}");
        }
        text
    }

    fn head(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "{label:<11}{value}");
        };
        let (job, WorkloadEntry { name, summary, source, parameters, .. }) = (&self.jobs[0], self.workload);
        line("workload", format!("{name}: {summary}"));
        line("", format!("after {source}"));
        let value = |parameter: &Parameter| {
            let value = job.parameters.get(parameter.name).copied().unwrap_or(parameter.default);
            format!("{}={value}", parameter.name)
        };
        line("set", parameters.iter().map(value).collect::<Vec<String>>().join(", "));
        if !job.era_options.is_empty() {
            let values = job.era_options.iter().map(|(name, value)| format!("{name}={value}"));
            line("eras", values.collect::<Vec<String>>().join(", "));
        }
        let (ms, warm_ms, seed) = (job.run_ns as f64 / 1e6, job.warm_ns as f64 / 1e6, job.seed);
        match &job.on {
            Substrate::Simulated(simulation) => {
                line("on", format!("{}: {}", job.on.name(), simulation.machine.description));
                line("method", format!("{ms} ms of virtual time after {warm_ms} ms, seed {seed}"));
            }
            Substrate::Native { .. } => {
                line("on", format!("{}, {} CPUs, {}", self.host.cpu, self.host.cpus, self.host.kernel));
                line("method", format!("{ms} ms after {warm_ms} ms, seed {seed}; threads not pinned"));
            }
        }
        text
    }
}
