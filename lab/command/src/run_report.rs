//! What came of a run of the lab, as text or as one JSON document.

use crate::machine::Machine;
use crate::table;
use eras::workload::WorkloadEntry;
use lab::{Failure, Job, LockRow, Outcome, RoleRate, Share, StallRow, Substrate};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// All that `lightfoot-lab run` gives.
#[derive(Debug, Serialize)]
pub(crate) struct RunReport {
    /// The machine that it ran on; simulated figures do not depend on it.
    pub(crate) host: Machine,
    /// Where the workload ran: "native" or "sim:NAME".
    pub(crate) on: String,
    /// The simulated machine, one sentence.
    pub(crate) simulated: Option<String>,
    pub(crate) workload: WorkloadFacts,
    /// Options of the eras that are not at their defaults.
    pub(crate) era_options: BTreeMap<String, u64>,
    pub(crate) seed: u64,
    pub(crate) run_ms: f64,
    pub(crate) warm_ms: f64,
    pub(crate) rows: Vec<RunRow>,
    #[serde(skip)]
    failures: Vec<Failure>,
}

/// The workload, with what was set on it.
#[derive(Debug, Serialize)]
pub(crate) struct WorkloadFacts {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) source: &'static str,
    /// Every parameter's value.
    pub(crate) parameters: BTreeMap<&'static str, u64>,
}

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct RunRow {
    pub(crate) era: String,
    pub(crate) year: u32,
    pub(crate) cpus: usize,
    pub(crate) threads: usize,
    /// Steps per second of all workers of the first role.
    pub(crate) ops_per_second: Option<f64>,
    pub(crate) ops_per_second_per_cpu: Option<f64>,
    /// Throughput by that of the same era's first row.
    pub(crate) times_own_first: Option<f64>,
    /// Throughput by that of the first era's row with as many CPUs and threads.
    pub(crate) times_first_era: Option<f64>,
    pub(crate) roles: Vec<RoleRate>,
    pub(crate) per_worker: Vec<u64>,
    pub(crate) shares: Vec<Share>,
    pub(crate) locks: Vec<LockRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stalls: Vec<StallRow>,
    pub(crate) counters: BTreeMap<String, u64>,
    /// Why there are no figures, if there are none.
    pub(crate) failure: Option<String>,
    /// Seconds of the host that it took: the one field that differs between runs of one seed.
    pub(crate) host_seconds: Option<f64>,
}

impl RunRow {
    pub(crate) fn is_done(&self) -> bool {
        self.failure.is_none()
    }

    /// Percent of the CPUs' time under any of these tags.
    pub(crate) fn share(&self, tags: &[&str]) -> f64 {
        self.shares.iter().filter(|share| tags.contains(&share.tag.as_str())).map(|share| share.percent).sum()
    }

    fn new(job: &Job, result: Result<Outcome, Failure>) -> Self {
        let (cpus, threads) = (job.on.cpus(), job.on.threads());
        let year = eras::find(&job.era).map_or(0, |era| era.year);
        let mut row = Self {
            era: job.era.clone(),
            year,
            cpus,
            threads,
            ops_per_second: None,
            ops_per_second_per_cpu: None,
            times_own_first: None,
            times_first_era: None,
            roles: Vec::new(),
            per_worker: Vec::new(),
            shares: Vec::new(),
            locks: Vec::new(),
            stalls: Vec::new(),
            counters: BTreeMap::new(),
            failure: None,
            host_seconds: None,
        };
        match result {
            Ok(outcome) => {
                row.ops_per_second = Some(outcome.ops_per_second);
                row.ops_per_second_per_cpu = Some(outcome.ops_per_second_per_cpu);
                row.host_seconds = Some(outcome.host_seconds);
                (row.roles, row.per_worker) = (outcome.roles, outcome.per_worker);
                row.stalls = outcome.stalls;
                (row.shares, row.locks, row.counters) = (outcome.shares, outcome.locks, outcome.counters);
            }
            Err(failure) => row.failure = Some(failure.to_string()),
        }
        row
    }
}

impl RunReport {
    /// The report of at least one job; `results` are in the order of `jobs`.
    pub(crate) fn new(entry: &'static WorkloadEntry, jobs: &[Job], results: Vec<Result<Outcome, Failure>>) -> Self {
        let failures = results.iter().filter_map(|result| result.as_ref().err());
        // An era that lacks an operation is a fact about the era.
        let failures = failures.filter(|failure| !matches!(failure, Failure::Unsupported { .. })).cloned().collect();
        let mut rows: Vec<RunRow> = jobs.iter().zip(results).map(|(job, result)| RunRow::new(job, result)).collect();
        compare(&mut rows);
        let first = jobs.first();
        let value = |parameter: &eras::workload::Parameter| {
            let set = first.and_then(|job| job.parameters.get(parameter.name));
            (parameter.name, set.copied().unwrap_or(parameter.default))
        };
        Self {
            host: Machine::here(),
            on: first.map_or_else(String::new, |job| job.on.name()),
            simulated: first.and_then(|job| match &job.on {
                Substrate::Native { .. } => None,
                Substrate::Simulated(simulation) => Some(simulation.machine.description.clone()),
            }),
            workload: WorkloadFacts {
                name: entry.name,
                summary: entry.summary,
                source: entry.source,
                parameters: entry.parameters.iter().map(value).collect(),
            },
            era_options: first.map_or_else(BTreeMap::new, |job| job.era_options.clone()),
            seed: first.map_or(0, |job| job.seed),
            run_ms: first.map_or(0.0, |job| job.run_ns as f64 / 1e6),
            warm_ms: first.map_or(0.0, |job| job.warm_ns as f64 / 1e6),
            rows,
            failures,
        }
    }

    /// What failed, without eras that lack an operation.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// As one JSON document.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As text: a head, the table, and the locks if they were requested.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label:<11}{value}");
        };
        let WorkloadFacts { name, summary, source, parameters } = &self.workload;
        line("workload", &format!("{name}: {summary}"));
        line("", &format!("after {source}"));
        line("set", &listed(parameters.iter().map(|(name, value)| (*name, *value))));
        if !self.era_options.is_empty() {
            line("eras", &listed(self.era_options.iter().map(|(name, value)| (name.as_str(), *value))));
        }
        let host = format!("{}, {} CPUs, {}", self.host.cpu, self.host.cpus, self.host.kernel);
        match &self.simulated {
            Some(description) => {
                line("on", &format!("{}: {description}", self.on));
                line(
                    "method",
                    &format!("{} ms of virtual time after {} ms, seed {}", self.run_ms, self.warm_ms, self.seed),
                );
            }
            None => {
                line("on", &host);
                line(
                    "method",
                    &format!("{} ms after {} ms, seed {}; threads not pinned", self.run_ms, self.warm_ms, self.seed),
                );
            }
        }
        let _ = write!(text, "\n{}\n", table::throughput(self));
        if let Some(locks) = table::locks(self) {
            let _ = write!(text, "\n{locks}\n");
        }
        for stalls in self.rows.iter().filter_map(table::stalls) {
            let _ = write!(text, "\n{stalls}");
        }
        for row in self.rows.iter().filter(|row| !row.is_done()) {
            let _ = writeln!(text, "not run: {}", row.failure.as_deref().unwrap_or_default());
        }
        text
    }
}

fn listed<'a>(values: impl Iterator<Item = (&'a str, u64)>) -> String {
    values.map(|(name, value)| format!("{name}={value}")).collect::<Vec<String>>().join(", ")
}

/// Fills in the ratios to other rows.
fn compare(rows: &mut [RunRow]) {
    let facts: Vec<_> = rows.iter().map(|row| (row.era.clone(), row.cpus, row.threads, row.ops_per_second)).collect();
    let rate = |is_it: &dyn Fn(&str, usize, usize) -> bool| {
        let found = facts.iter().find(|(era, cpus, threads, _)| is_it(era, *cpus, *threads));
        found.and_then(|(_, _, _, rate)| *rate).filter(|rate| *rate > 0.0)
    };
    let first_era = facts.first().map(|(era, ..)| era.clone()).unwrap_or_default();
    for row in rows {
        let own_first = rate(&|era, _, _| era == row.era);
        let of_first_era = rate(&|era, cpus, threads| era == first_era && (cpus, threads) == (row.cpus, row.threads));
        let times = |other: Option<f64>| Some(row.ops_per_second? / other?);
        (row.times_own_first, row.times_first_era) = (times(own_first), times(of_first_era));
    }
}
