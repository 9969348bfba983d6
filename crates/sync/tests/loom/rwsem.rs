//! loom models of `RwSem` with both slow paths. The data is a tracked cell, so an overlap, or a section that does not
//! see the one before, is a data race for loom; a wake that is lost is a deadlock. (Time does not
//! pass under loom: a timeout of nothing runs out at once, others never.)

use core::time::Duration;
use lightfoot_sync::{AlwaysQueue, EarlyExit, RwSem, SlowPath};
use loom::sync::Arc;
use loom::thread;

/// Runs each of `bodies` in a thread, the first in the model's; the data ends as `writes`.
fn check<P: SlowPath + 'static>(
    preemptions: Option<usize>,
    bodies: &'static [fn(&RwSem<u32, P>)],
    writes: core::ops::RangeInclusive<u32>,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 20_000;
    model.check(move || {
        let sem = Arc::new(RwSem::<u32, P>::with_slow_path(0));
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|body| {
                let sem = sem.clone();
                thread::spawn(move || body(&sem))
            })
            .collect();
        bodies[0](&sem);
        others.into_iter().for_each(|t| t.join().unwrap());
        // The queue is empty: a mark that stayed would keep this writer out.
        assert!(writes.contains(&*sem.try_write().expect("free")));
    });
}

fn write<P: SlowPath>(sem: &RwSem<u32, P>) {
    *sem.write() += 1;
}

fn read<P: SlowPath>(sem: &RwSem<u32, P>) {
    assert!(*sem.read() <= 2);
}

fn try_write<P: SlowPath>(sem: &RwSem<u32, P>) {
    if let Some(mut writer) = sem.try_write() {
        *writer += 1;
    }
}

fn try_read<P: SlowPath>(sem: &RwSem<u32, P>) {
    if let Some(reader) = sem.try_read() {
        assert!(*reader <= 1);
    }
}

fn write_or_give_up<P: SlowPath>(sem: &RwSem<u32, P>) {
    if let Some(mut writer) = sem.try_write_for(Duration::ZERO) {
        *writer += 1;
    }
}

fn read_or_give_up<P: SlowPath>(sem: &RwSem<u32, P>) {
    if let Some(reader) = sem.try_read_for(Duration::ZERO) {
        assert!(*reader <= 2);
    }
}

fn write_then_read<P: SlowPath>(sem: &RwSem<u32, P>) {
    let mut writer = sem.write();
    *writer += 1;
    let written = *writer;
    let reader = writer.downgrade();
    assert_eq!(*reader, written, "no other writer comes in between");
}

#[test]
fn writers_exclude_and_follow_one_another() {
    check::<EarlyExit>(Some(4), &[write, write], 2..=2);
}

#[test]
fn a_reader_and_a_writer_exclude_and_follow_one_another() {
    check::<EarlyExit>(Some(4), &[read, write], 1..=1);
    check::<AlwaysQueue>(Some(4), &[read, write], 1..=1);
}

#[test]
fn of_three_writers_each_comes_in() {
    check::<EarlyExit>(Some(2), &[write, write, write], 3..=3);
}

#[test]
fn readers_and_a_writer_that_queue_all_come_in() {
    check::<EarlyExit>(Some(2), &[read, write, read], 1..=1);
    check::<AlwaysQueue>(Some(2), &[read, write, read], 1..=1);
}

#[test]
fn a_reader_and_writers_that_queue_all_come_in() {
    check::<EarlyExit>(Some(2), &[write, read, write], 2..=2);
    check::<AlwaysQueue>(Some(2), &[write, read, write], 2..=2);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in_and_no_writer() {
    check::<EarlyExit>(Some(3), &[write_then_read, read], 1..=1);
    check::<AlwaysQueue>(Some(3), &[write_then_read, read], 1..=1);
    check::<EarlyExit>(Some(3), &[write_then_read, write_then_read], 2..=2);
    check::<EarlyExit>(Some(2), &[write_then_read, read, write], 2..=2);
}

#[test]
fn a_try_that_succeeds_excludes_and_follows() {
    check::<EarlyExit>(Some(4), &[try_read, write], 1..=1);
    check::<EarlyExit>(Some(4), &[try_write, write], 1..=2);
    check::<EarlyExit>(Some(4), &[try_write, read], 0..=1);
    check::<EarlyExit>(Some(4), &[try_write, try_read], 0..=1);
    check::<EarlyExit>(Some(4), &[write_then_read, try_read], 1..=1);
}

#[test]
fn a_waiter_that_gives_up_keeps_nobody_out() {
    check::<EarlyExit>(Some(3), &[read_or_give_up, write], 1..=1);
    check::<AlwaysQueue>(Some(3), &[read_or_give_up, write], 1..=1);
    check::<EarlyExit>(Some(3), &[write_or_give_up, write], 1..=2);
    check::<EarlyExit>(Some(3), &[write_or_give_up, read], 0..=1);
}

#[test]
fn a_waiter_behind_one_that_gives_up_comes_in() {
    check::<EarlyExit>(Some(2), &[write_or_give_up, read, read], 0..=1);
    check::<AlwaysQueue>(Some(2), &[write_or_give_up, read, write], 1..=2);
    check::<AlwaysQueue>(Some(2), &[read_or_give_up, write, read], 1..=1);
}
