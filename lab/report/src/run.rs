//! One job, on the substrate that it names.

use crate::failure::Failure;
use crate::job::{Job, Substrate};
use crate::outcome::Outcome;
use crate::stage::simulated::{MakeEra, MakeWorkload};
use crate::{native, simulated};

/// Does one job, in this process.
///
/// # Errors
/// A [`Failure`] that names era, workload and, where one failed, the worker.
pub fn run(job: &Job) -> Result<Outcome, Failure> {
    match &job.on {
        Substrate::Native { threads } => native::run(job, *threads),
        Substrate::Simulated(simulation) => simulated::run(job, simulation, (None, None)),
    }
}

/// The input of a run that comes from its caller and not from the catalogues.
#[derive(Clone, Copy, Default)]
pub struct Own {
    /// Makes the era, compiled for the simulator.
    pub era: Option<MakeEra>,
    /// Makes the workload, compiled for the simulator.
    pub workload: Option<MakeWorkload>,
}

/// Does one simulated job, with an era or a workload of the caller's; the job's names of those are for messages only.
///
/// # Errors
/// As [`run`]; [`Failure::BadJob`] for a job that is not simulated.
pub fn run_own(job: &Job, own: Own) -> Result<Outcome, Failure> {
    match &job.on {
        Substrate::Native { .. } => Err(Failure::BadJob("own eras and workloads run on simulated machines".into())),
        Substrate::Simulated(simulation) => simulated::run(job, simulation, (own.era, own.workload)),
    }
}
