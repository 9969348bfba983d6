//! The lab: eras of the directory cache under workloads, on this machine and on simulated ones.
//!
//! # What it is
//! A [`Job`] describes one run completely: which era, which workload with which values, where, for how long, from which
//! seed. [`run`] does it and gives an [`Outcome`]. [`Pool`] does many, each in a separate process, so that simulations,
//! which go one at a time in a process, use every core.
//!
//! # What it is not
//! It draws nothing, prints nothing and has no published figures; that is the command's and the report's.
//!
//! # The arena
//! A binary that simulates must declare `#[global_allocator] static ARENA: sim::Arena`, so that
//! allocations of the simulated code have their own cache lines, at the same places in every run.
//!
//! # Locking
//! Each run has its own state. Each worker counts in its own slot.

#![forbid(unsafe_code)]

pub mod calibrate;
mod failure;
mod job;
mod lock_row;
mod native;
mod outcome;
mod pool;
pub mod report;
mod run;
mod simulated;
mod stage;

use std::collections::BTreeMap;

pub use failure::Failure;
pub use job::{Interrupts, Job, Placement, Simulation, Substrate};
pub use lock_row::LockRow;
pub use outcome::{Outcome, RoleRate, Share, StallRow};
pub use pool::{Pool, run_cell};
pub use run::{Own, run, run_own};

/// Returns whether eras have these options.
///
/// # Errors
/// A sentence that names the first that they have not, and those that there are.
pub fn check_era_options(options: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut scratch = eras::Options::default();
    options.iter().try_for_each(|(name, &value)| stage::native::set(&mut scratch, name, value))
}
