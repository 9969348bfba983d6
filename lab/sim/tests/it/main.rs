//! The simulated machine: its coherence rules, its scheduler, its determinism, its presets, and code of `sync` on it.

mod coherence;
mod determinism;
mod example_lock;
mod facade;
mod failure;
mod footprint;
mod presets;
mod small;
mod spinning;
mod stalls;
mod stores;
mod threads;

#[global_allocator]
static ARENA: lightfoot_sim::Arena = lightfoot_sim::Arena;
