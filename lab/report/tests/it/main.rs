//! The integration tests of this crate, except those that `alone` has.

mod contention;
mod example_era;
mod example_workload;
mod lock_names;
mod pool;
mod report;
mod run;
mod torture;
mod waiting_time;

/// So that simulated code has its own cache lines.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;
