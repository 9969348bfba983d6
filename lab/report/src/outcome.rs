//! The result of a run: rates, and on a simulated machine the use of the time.

use crate::job::Job;
use crate::lock_row::LockRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one job.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Outcome {
    /// The job, as it was run.
    pub job: Job,
    /// Seconds, real or virtual, that were counted.
    pub seconds: f64,
    /// Steps per second of all workers of the first role.
    pub ops_per_second: f64,
    /// The rate by the number of CPUs; natively, of threads.
    pub ops_per_second_per_cpu: f64,
    /// Steps by role, the first role first.
    pub roles: Vec<RoleRate>,
    /// Steps of each worker.
    pub per_worker: Vec<u64>,
    /// The use of the CPUs' time; simulated only.
    pub shares: Vec<Share>,
    /// Statistics of the era's locks, if they were requested.
    pub locks: Vec<LockRow>,
    /// Percent of all time spent spinning, by the innermost function that the era names; simulated only.
    #[serde(default)]
    pub callers: Vec<Share>,
    /// The waits of the simulated CPUs, the longest first, if they were requested: by source line,
    /// then by cache line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<StallRow>,
    /// The counts of the era, and of the simulated machine.
    pub counters: BTreeMap<String, u64>,
    /// Seconds of this machine that the run took, with making the tree. This is the only field that
    /// differs from run to run.
    pub host_seconds: f64,
}

impl Outcome {
    /// Returns the outcome of a run of `seconds` in which worker `i` did `per_worker[i]` steps.
    /// `roles` are the names of the roles, and `role` returns the place of a worker's role in
    /// `roles`.
    pub(crate) fn new(
        job: &Job,
        seconds: f64,
        per_worker: Vec<u64>,
        roles: &[&str],
        role: impl Fn(usize) -> usize,
    ) -> Self {
        let rate = |place: usize, name: &&str| {
            let of_role = || (0..per_worker.len()).filter(|&worker| role(worker) == place);
            let ops = of_role().map(|worker| per_worker[worker]).sum::<u64>();
            RoleRate { role: (*name).into(), workers: of_role().count(), ops, ops_per_second: ops as f64 / seconds }
        };
        let roles: Vec<RoleRate> = roles.iter().enumerate().map(|(place, name)| rate(place, name)).collect();
        let ops_per_second = roles.first().map_or(0.0, |role| role.ops_per_second);
        Self {
            job: job.clone(),
            seconds,
            ops_per_second,
            ops_per_second_per_cpu: ops_per_second / job.on.cpus() as f64,
            roles,
            per_worker,
            shares: Vec::new(),
            locks: Vec::new(),
            callers: Vec::new(),
            stalls: Vec::new(),
            counters: BTreeMap::new(),
            host_seconds: 0.0,
        }
    }

    /// Percent of the CPUs' time under this tag, such as "`SpinLock`"; 0 if there was none.
    #[must_use]
    pub fn share(&self, tag: &str) -> f64 {
        self.shares.iter().find(|share| share.tag == tag).map_or(0.0, |share| share.percent)
    }
}

/// The steps of all workers of one role.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RoleRate {
    /// The workload's name for the role.
    pub role: String,
    /// The number of workers that have the role.
    pub workers: usize,
    /// The number of steps of these workers.
    pub ops: u64,
    /// Steps of these workers per second.
    pub ops_per_second: f64,
}

/// The stalls of one source line, or of one cache line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StallRow {
    /// The source line, `file:line`; of a cache line those that access it, the longest stalls first.
    pub places: Vec<String>,
    /// Cache lines of the source line. `None`: the row is one cache line.
    pub cache_lines: Option<usize>,
    /// Times that a cache line was not there.
    pub misses: u64,
    /// Nanoseconds that all CPUs waited for it.
    pub ns: f64,
}

/// A part of the time of all CPUs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Share {
    /// The use of the time.
    pub tag: String,
    /// How much.
    pub percent: f64,
}
