//! The loom models of this crate: CONTRIBUTING.md has the command. Empty outside loom.
#![cfg(loom)]

// The modules of sync's tests name the crate by its own name.
extern crate sync as lightfoot_sync;

mod lockstat;
mod mcs;
mod queued;
#[path = "../../../../crates/sync/tests/loom/raw_lock.rs"]
mod raw_lock;
mod spinning_mutex;
mod ticket;
