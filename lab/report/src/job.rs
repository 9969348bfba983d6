//! Everything about one run.
//!
//! # What it is
//! A value that is sent to another process as JSON and returned with its outcome, so that a run can
//! be repeated from its record.

use serde::{Deserialize, Serialize};
use sim::Machine;
pub use sim::{Interrupts, Placement};
use std::collections::BTreeMap;

/// One run: an era under a workload somewhere.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Job {
    /// The name of the era.
    pub era: String,
    /// Fields of the era's options by name, where they differ from the defaults; booleans are 0 and 1.
    #[serde(default)]
    pub era_options: BTreeMap<String, u64>,
    /// The name of the workload.
    pub workload: String,
    /// Its parameters by name, where they differ from the defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, u64>,
    /// Where it runs.
    pub on: Substrate,
    /// Equal seeds give equal choices of the workers; simulated, equal figures.
    pub seed: u64,
    /// Nanoseconds, real or virtual, before anything is counted.
    pub warm_ns: u64,
    /// Nanoseconds, real or virtual, that are counted.
    pub run_ns: u64,
    /// Whether the era's locks keep statistics.
    #[serde(default)]
    pub lockstat: bool,
}

/// The machine of a job.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Substrate {
    /// Threads of this machine, which run where the system puts them.
    Native {
        /// The number of threads.
        threads: usize,
    },
    /// A simulated machine.
    Simulated(Box<Simulation>),
}

impl Substrate {
    /// Returns a simulation of `machine` that uses the first `cpus` CPUs and as many threads.
    #[must_use]
    pub fn simulated(machine: Machine, cpus: usize) -> Self {
        Self::Simulated(Box::new(Simulation::new(machine, cpus)))
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self {
            Self::Native { threads } => *threads,
            Self::Simulated(simulation) => simulation.threads,
        }
    }

    /// Returns the number of CPUs that the workers have; natively, one CPU for each worker is
    /// assumed.
    #[must_use]
    pub fn cpus(&self) -> usize {
        match self {
            Self::Native { threads } => *threads,
            Self::Simulated(simulation) => simulation.cpus,
        }
    }

    /// Returns "native", or "sim:" and the name of the machine.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Native { .. } => "native".into(),
            Self::Simulated(simulation) => format!("sim:{}", simulation.machine.name),
        }
    }
}

/// A simulated machine and how it is used; see [`sim::Config`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Simulation {
    /// The machine.
    pub machine: Machine,
    /// The number of CPUs of the machine that are used.
    pub cpus: usize,
    /// The choice of these CPUs.
    pub placement: Placement,
    /// The number of threads. If there are more threads than CPUs, the threads share the CPUs.
    pub threads: usize,
    /// Interrupts, if there are any.
    pub interrupts: Option<Interrupts>,
    /// Nanoseconds that a CPU may run ahead of the slowest CPU; 0 is exact.
    pub slack_ns: u64,
    /// Whether private caches have a size.
    pub finite_caches: bool,
    /// Whether the outcome has the stalls.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stalls: bool,
}

impl Simulation {
    /// Returns a simulation of the first `cpus` CPUs with as many threads. The simulation is exact,
    /// and without interrupts.
    #[must_use]
    pub fn new(machine: Machine, cpus: usize) -> Self {
        Self {
            machine,
            cpus,
            placement: Placement::Compact,
            threads: cpus,
            interrupts: None,
            slack_ns: 0,
            finite_caches: true,
            stalls: false,
        }
    }
}
