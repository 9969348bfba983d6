//! How much a list of simulations still costs: in accesses, which decide how long a simulation takes, not in runs.
//!
//! How many accesses a job makes shows only afterwards. Until then, a job counts as many for each nanosecond of its CPUs as
//! those of its era and workload that are done, or else as all that are done.

use lab::{Job, Outcome, report};
use std::collections::BTreeMap;

/// The accesses of a list of jobs.
pub(crate) struct Estimate {
    /// Era and workload of each job, and the nanoseconds of its CPUs.
    jobs: Vec<((String, String), f64)>,
    /// What is left of each kind, in nanoseconds.
    left: BTreeMap<(String, String), f64>,
    /// Accesses and nanoseconds of what is done of each kind.
    known: BTreeMap<(String, String), Cost>,
    all: Cost,
}

/// Accesses, and nanoseconds of CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    accesses: f64,
    ns: f64,
}

impl Cost {
    fn add(&mut self, accesses: f64, ns: f64) {
        self.accesses += accesses;
        self.ns += ns;
    }

    /// Accesses for each nanosecond; one, while nothing is known.
    fn rate(self) -> f64 {
        if self.ns > 0.0 { self.accesses / self.ns } else { 1.0 }
    }
}

impl Estimate {
    pub(crate) fn new(jobs: &[Job]) -> Self {
        let jobs: Vec<_> =
            jobs.iter().map(|job| ((job.era.clone(), job.workload.clone()), report::cost(job))).collect();
        let mut left: BTreeMap<(String, String), f64> = BTreeMap::new();
        for (kind, ns) in &jobs {
            *left.entry(kind.clone()).or_default() += ns;
        }
        Self { jobs, left, known: BTreeMap::new(), all: Cost::default() }
    }

    /// Job number `number` is done; without an outcome it counts as long as it was.
    pub(crate) fn done(&mut self, number: usize, outcome: Option<&Outcome>) {
        let (kind, ns) = &self.jobs[number];
        let accesses = outcome.and_then(|outcome| outcome.counters.get("accesses")).map_or(*ns, |&count| count as f64);
        self.known.entry(kind.clone()).or_default().add(accesses, *ns);
        self.all.add(accesses, *ns);
        if let Some(left) = self.left.get_mut(kind) {
            *left -= ns;
        }
    }

    /// Accesses done.
    pub(crate) fn accesses(&self) -> f64 {
        self.all.accesses
    }

    /// Accesses of all jobs, as far as can be known.
    pub(crate) fn total(&self) -> f64 {
        let rate = |kind| self.known.get(kind).unwrap_or(&self.all).rate();
        self.all.accesses + self.left.iter().map(|(kind, ns)| ns * rate(kind)).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Substrate;
    use std::collections::BTreeMap;

    fn job(era: &str, run_ns: u64) -> Job {
        Job {
            era: era.into(),
            era_options: BTreeMap::new(),
            workload: "open-close".into(),
            parameters: BTreeMap::new(),
            on: Substrate::Native { threads: 2 },
            seed: 1,
            warm_ns: 0,
            run_ns,
            lockstat: false,
        }
    }

    #[test]
    fn what_is_left_counts_as_its_kind_did_and_not_as_a_run() {
        let mut estimate = Estimate::new(&[job("fast", 100), job("fast", 300), job("slow", 100)]);
        assert_eq!(estimate.total(), 1000.0, "nothing is known yet");
        estimate.all.add(2000.0, 200.0);
        estimate.known.entry(("fast".into(), "open-close".into())).or_default().add(2000.0, 200.0);
        *estimate.left.get_mut(&("fast".into(), "open-close".into())).expect("a kind") -= 200.0;
        assert_eq!(estimate.total(), 2000.0 + 6000.0 + 2000.0, "the second is three times as long as the first");
        estimate.done(2, None);
        assert_eq!(estimate.total(), 2000.0 + 200.0 + 6000.0, "the third made fewer than was thought");
        estimate.done(1, None);
        assert_eq!(estimate.total(), estimate.accesses());
    }
}
