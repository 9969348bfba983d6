//! loom models of `TicketLock`.

use crate::raw_lock;
use lightfoot_locks::TicketLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<TicketLock>(&[2, 2], None);
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<TicketLock>();
}
