//! The facade between lock code and the machine.
//!
//! `sync`, `vfs`, `ramfs` and the lab's eras and locks reach every atomic, fence, cell, spin hint, per-CPU index,
//! parking call, clock and random seed through this crate. They must not use `core::sync::atomic`, `std::thread`,
//! `thread_local!` or a clock of the standard library (clippy and `tools/tidy` check this).
//!
//! # What it is
//! In production: re-exports and `#[inline]` wrappers that compile to what they wrap. Under `--cfg loom`: loom's types.
//! A simulated machine has the same interface in a package of another name, and a *twin* package maps the dependency
//! name `prim` to it; the code above does not change. So the interface has only what a simulator can implement.
//!
//! # What it is not
//! A portability layer: Linux only (futex, membarrier).
//!
//! # Rules for code above
//! State belongs to an instance, not to a static ([`PerMachine`] is the exception). Code waits with
//! [`hint::spin_until`] or [`park`]. Per-CPU data is a [`PerCpu`] array indexed by [`cpu::id`].

#![allow(unsafe_code, reason = "the edge to system calls and instructions")]

pub mod atomic;
pub mod barrier;
pub mod bytes;
pub mod cell;
mod charge;
pub mod clock;
pub mod cpu;
pub mod descriptor;
pub mod era;
pub mod file_handle;
pub mod hint;
pub mod lockstat;
pub mod mem;
pub mod park;
mod per_machine;
mod percpu;
pub mod preempt;
pub mod profile;
pub mod seed;
pub mod shared;
pub mod thread;
pub mod wide;

pub use charge::{cost, idle, uncharged};
pub use per_machine::PerMachine;
pub use percpu::PerCpu;

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
