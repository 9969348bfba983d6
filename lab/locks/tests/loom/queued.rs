//! loom models of `QueuedLock`.

use crate::raw_lock;
use lightfoot_locks::QueuedLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<QueuedLock>(&[2, 2], Some(3));
}

/// One thread releases the lock while the other is pending, comes again, finds the pending bit alone and queues up.
/// Then the other comes again, and queues up behind it.
#[test]
fn the_thread_behind_the_head_of_the_queue_becomes_its_head() {
    raw_lock::sections_exclude::<QueuedLock>(&[3, 2], Some(3));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<QueuedLock>();
}
