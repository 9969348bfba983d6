//! The integration tests of this crate, except those that `alone` has.
#![cfg(not(loom))]

// The modules of sync's tests name the crate by its own name.
extern crate sync as lightfoot_sync;

#[path = "../../../../crates/sync/tests/it/exclusion.rs"]
mod exclusion;
mod locks;
