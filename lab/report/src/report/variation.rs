//! The inputs that vary without being chosen: the seed, and the box of the model's least certain
//! numbers.

use crate::job::{Job, Substrate};

/// One of the runs for every figure and every claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// As the report names it.
    pub name: &'static str,
    /// Seed of the run.
    pub seed: u64,
    /// Replaces the machine's `queue.keep`.
    pub keep: Option<f64>,
    /// Multiplies the machine's occupancies.
    pub occupancy: f64,
    /// Replaces the machine's `queue.overtake`.
    pub overtake: Option<u16>,
}

impl Variation {
    const fn seed(name: &'static str, seed: u64) -> Self {
        Self { name, seed, keep: None, occupancy: 1.0, overtake: None }
    }

    /// Returns the machine as it is, with three seeds.
    #[must_use]
    pub const fn seeds() -> [Self; 3] {
        [Self::seed("seed 1", 1), Self::seed("seed 2", 2), Self::seed("seed 3", 3)]
    }

    /// Returns the corners of the box that the simulator's report names: keep 0.25 and 1, occupancy
    /// halved and doubled, four local requests may overtake.
    #[must_use]
    pub const fn corners() -> [Self; 5] {
        let base = Self::seed("", 1);
        [
            Self { name: "keep 0.25", keep: Some(0.25), ..base },
            Self { name: "keep 1", keep: Some(1.0), ..base },
            Self { name: "occupancy x0.5", occupancy: 0.5, ..base },
            Self { name: "occupancy x2", occupancy: 2.0, ..base },
            Self { name: "overtake 4", overtake: Some(4), ..base },
        ]
    }

    /// Returns the variation of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::seeds().into_iter().chain(Self::corners()).find(|variation| variation.name == name)
    }

    /// Returns whether this is the machine as it is.
    #[must_use]
    pub fn is_seed(&self) -> bool {
        self.keep.is_none() && self.overtake.is_none() && self.occupancy == 1.0
    }

    /// `job` on the machine so varied.
    #[must_use]
    pub fn apply(&self, job: &Job) -> Job {
        let mut job = job.clone();
        job.seed = self.seed;
        if let Substrate::Simulated(simulation) = &mut job.on {
            let machine = &mut simulation.machine;
            machine.queue.keep = self.keep.unwrap_or(machine.queue.keep);
            machine.queue.overtake = self.overtake.unwrap_or(machine.queue.overtake);
            machine.queue.local_occupancy_ns *= self.occupancy;
            machine.queue.home_occupancy_ns *= self.occupancy;
        }
        job
    }
}
