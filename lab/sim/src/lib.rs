//! A simulated shared-memory machine, with the surface of `prim`.
//!
//! # What it is
//! Lock code written against `prim` runs here on virtual CPUs: every access to an atomic or a cell is charged to its
//! cache line, in virtual time, in exact order, from a seed. A *twin* package compiles the same sources with the
//! dependency name `prim` mapped to this crate; the modules that have `prim`'s names are for it. [`run`] and its types
//! are for the lab, and for tests that check which lines an operation touches.
//!
//! # What it is not
//! A processor: `lab/docs/simulator.md` has the model, its omissions and its errors.
//!
//! # How it is locked
//! One simulation at a time in a process; all its threads are coroutines on the host thread that called [`run`].
//!
//! # Source
//! Execution-driven simulators: Proteus (MIT, 1991), Graphite (2010).

#![allow(unsafe_code, reason = "coroutines, an allocator at fixed addresses, engine state that they share")]

mod arena;
pub mod atomic;
pub mod barrier;
pub mod cell;
mod charge;
pub mod clock;
mod config;
mod counters;
pub mod cpu;
mod engine;
pub mod footprint;
mod hash;
pub mod hint;
mod lockmeter;
pub mod lockstat;
pub mod machine;
pub mod mem;
mod memory;
pub mod park;
mod per_machine;
#[path = "../../../crates/prim/src/percpu.rs"]
mod percpu;
pub mod preempt;
pub mod profile;
mod report;
mod run;
pub mod seed;
pub mod shared;
mod stack;
pub mod stall;
pub mod thread;
pub mod wide;

pub use arena::Arena;
pub use charge::{cost, idle, uncharged};
pub use config::{Config, Interrupts, Placement, Schedule};
pub use counters::Counters;
pub use engine::Kind;
pub use lockmeter::LockStat;
pub use machine::Machine;
pub use per_machine::PerMachine;
pub use percpu::PerCpu;
pub use prim::bytes;
pub use prim::era;
pub use report::Report;
pub use run::run;

use engine::{NS, current};

/// Returns whether the virtual time of the run is not up yet. A body's loop ends when it returns
/// `false`. `false` outside of a simulation.
#[must_use]
pub fn running() -> bool {
    current().is_some_and(|engine| {
        engine.spend(0);
        engine.clock.get() < engine.deadline.get()
    })
}

/// Returns whether current events are counted: the warm-up is over and the run is not.
#[must_use]
pub fn is_warm() -> bool {
    current().is_some_and(engine::Engine::is_measured)
}

/// Counts an operation in one of eight slots, while [`is_warm`].
///
/// # Panics
/// With a slot above 7.
pub fn count_op(slot: usize) {
    if let Some(engine) = current() {
        engine.count_operation(slot);
    }
}

/// Virtual nanoseconds since the simulation began; 0 outside of one.
#[must_use]
pub fn now_ns() -> u64 {
    current().map_or(0, |engine| {
        engine.note_unwatchable();
        engine.clock.get() / NS
    })
}
