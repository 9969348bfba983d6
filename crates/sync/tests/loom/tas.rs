//! loom models of `TasLock`.

use crate::raw_lock;
use lightfoot_sync::TasLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<TasLock>(&[1, 1], None);
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<TasLock>();
}
