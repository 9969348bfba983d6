//! One job, on the substrate that it names.

use crate::failure::Failure;
use crate::job::{Job, Substrate};
use crate::outcome::Outcome;
use crate::{native, simulated};

/// Does one job, in this process.
///
/// # Errors
/// A [`Failure`] that names era, workload and, where one failed, the worker.
pub fn run(job: &Job) -> Result<Outcome, Failure> {
    match &job.on {
        Substrate::Native { threads } => native::run(job, *threads),
        Substrate::Simulated(simulation) => simulated::run(job, simulation),
    }
}
