//! The facade between lock code and the machine.
//!
//! Every atomic, fence, cell, spin hint, per-CPU index, parking call, clock and random seed that `sync`, `vfs` and the
//! file systems use goes through this crate; nothing else in those crates may name `core::sync::atomic`,
//! `std::thread`, `thread_local!` or the clock (the tidy test in `crates/cli/tests` enforces it).
//!
//! # What it is
//! In production: re-exports and `#[inline]` wrappers that compile to what they wrap. Under `--cfg loom`: loom's types.
//! A simulated machine offers the same surface from a package of another name, and a *twin* package maps the
//! dependency name `prim` to it; the code above never knows. So the surface holds only what a simulator can offer.
//!
//! # What it is not
//! A portability layer: Linux only (futex, membarrier).
//!
//! # Rules for code above
//! State hangs off an instance, never off a static. Waiting is [`hint::spin_until`] or [`park`]. Per-CPU data is a
//! [`PerCpu`] array indexed by [`cpu::id`].

pub mod atomic;
pub mod barrier;
pub mod bytes;
pub mod cell;
pub mod clock;
pub mod cpu;
pub mod hint;
pub mod lockstat;
pub mod mem;
pub mod park;
mod percpu;
pub mod preempt;
pub mod profile;
pub mod qnode;
pub mod seed;
pub mod shared;
pub mod thread;

pub use percpu::PerCpu;

/// A cost hint: `ns` nanoseconds of private work. Nothing in production; virtual time on a simulated machine.
#[inline(always)]
pub fn cost(_ns: u64) {}

/// Calls `f`. For bookkeeping (lock statistics, rank checks) that the code measured would not have: a simulated machine
/// charges nothing for what happens inside.
#[inline(always)]
pub fn uncharged<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// The thread has nothing to do for `ns` nanoseconds and leaves its CPU to others. Nothing in production; virtual time on
/// a simulated machine.
#[inline(always)]
pub fn idle(_ns: u64) {}

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
