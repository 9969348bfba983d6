//! loom models of `SpinningMutex`.
#![cfg(loom)]

// The modules of sync's tests name the crate by its own name.
extern crate sync as lightfoot_sync;

#[path = "../../../crates/sync/tests/raw_lock/mod.rs"]
mod raw_lock;

use lightfoot_locks::SpinningMutex;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<SpinningMutex>(&[1, 1], Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<SpinningMutex>();
}
