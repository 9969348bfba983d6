//! Tests over simulations, one at a time: `footprints` reads what simulated threads have left, which lies in memory that the next
//! simulation of the process clears.

mod footprints;
mod simulated;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
