//! loom models of `SpinningMutex`.

use crate::raw_lock;
use lightfoot_locks::SpinningMutex;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<SpinningMutex>(&[1, 1], Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<SpinningMutex>();
}
