//! loom models of `QueuedLock`.
#![cfg(loom)]

mod raw_lock;

use sync::QueuedLock;

#[test]
fn sections_exclude_and_follow_one_another() {
    raw_lock::sections_exclude::<QueuedLock>(&[2, 2], Some(3));
}

/// One that gives the lock back while the other is pending, and comes again, finds the pending bit alone and queues up;
/// then the other comes again, and queues up behind it.
#[test]
fn who_waits_behind_the_head_of_the_queue_becomes_its_head() {
    raw_lock::sections_exclude::<QueuedLock>(&[3, 2], Some(3));
}

#[test]
fn a_try_that_succeeds_follows_the_section_before() {
    raw_lock::tries_exclude::<QueuedLock>();
}
