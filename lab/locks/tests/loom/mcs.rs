//! loom models of `McsLock`.

use crate::raw_lock;
use lightfoot_locks::McsLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<McsLock>(&[2, 2], Some(3));
}

#[test]
fn of_two_waiters_each_is_handed_the_lock() {
    raw_lock::sections_exclude::<McsLock>(&[1, 1, 1], Some(2));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<McsLock>();
}
