//! loom models of `RawMutex`.
#![cfg(loom)]

mod raw_lock;

use lightfoot_sync::RawMutex;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<RawMutex>(&[1, 1], None);
}

#[test]
fn of_two_sleepers_each_is_woken() {
    raw_lock::sections_exclude::<RawMutex>(&[1, 1, 1], Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<RawMutex>();
}
