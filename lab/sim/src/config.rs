//! The input of a simulation.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Which CPUs of a machine are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// All of the first node, then all of the second, and so on.
    Compact,
    /// One of each node in turn.
    Spread,
}

/// In which order simulated threads take their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The least virtual clock runs next.
    Exact,
    /// Likewise, but the seed disturbs the clocks at random, and draws which thread wakes first: a search for
    /// races that one order does not show. Its times mean nothing.
    Shuffled,
}

/// Interrupts of each CPU: both exponentially distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Interrupts {
    /// Mean nanoseconds from the end of one to the next.
    pub every_ns: u64,
    /// Mean nanoseconds that one lasts.
    pub mean_ns: u64,
}

/// A simulation: the machine and its load.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub machine: Machine,
    /// The number of CPUs of the machine that are used.
    pub cpus: usize,
    /// The choice of these CPUs.
    pub placement: Placement,
    /// Threads that run the body; at most 4096. Thread `i` begins on CPU `i % cpus`.
    pub threads: usize,
    /// The seed from which everything random comes.
    pub seed: u64,
    /// Virtual nanoseconds before anything is counted.
    pub warm_ns: u64,
    /// Virtual nanoseconds that are counted; afterwards [`crate::running`] returns `false`.
    pub run_ns: u64,
    /// The interrupts of each CPU; none unless set.
    pub interrupts: Option<Interrupts>,
    /// Virtual nanoseconds that a CPU may run ahead of the slowest CPU. 0 is exact; 10 to 50 make
    /// read-mostly code several times as fast for an error below a percent; 1000 is wrong.
    pub slack_ns: u64,
    /// The order of turns.
    pub schedule: Schedule,
    /// Whether private caches have the machine's size or no limit.
    pub finite_caches: bool,
    /// Whether [`Report::stalls`](crate::Report::stalls) is kept. The choice changes nothing in the
    /// simulation.
    pub stalls: bool,
}

impl Config {
    /// Returns the configuration of a run on the first `cpus` CPUs with as many threads. The run
    /// counts `run_us` microseconds after a fifth of that time to warm up. The seed is 1. The run
    /// is exact, without interrupts, and with finite caches.
    #[must_use]
    pub fn new(machine: Machine, cpus: usize, run_us: u64) -> Self {
        Self {
            machine,
            cpus,
            placement: Placement::Compact,
            threads: cpus,
            seed: 1,
            warm_ns: run_us * 1000 / 5,
            run_ns: run_us * 1000,
            interrupts: None,
            slack_ns: 0,
            schedule: Schedule::Exact,
            finite_caches: true,
            stalls: false,
        }
    }
}
