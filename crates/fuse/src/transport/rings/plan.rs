//! Which thread serves which queues.
//!
//! # What it is
//! The kernel has a queue for each possible processor, and puts a request into the queue of its
//! client's processor. A thread that is pinned to that processor takes the request with one context
//! switch, and wakes no other processor. Queues of processors that this process may not use have
//! threads that are not pinned; with [`MountOptions::pin`](crate::MountOptions::pin) off, all have.
//!
//! In a tree that never waits, one thread serves a queue, with several slots: the thread sends
//! several replies with one system call. In other trees, several threads have one slot each. The
//! kernel gives a request to the slot that became free last, so one busy client has one thread, and
//! a call that hangs delays only itself. When all threads of a queue hang, further threads start,
//! one after the other.
//!
//! # Where it comes from
//! `fuse_uring_task_to_queue` in Linux's `fs/fuse/dev_uring.c`.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io;

/// The file that has the processors that this machine may ever have.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Slots of a thread in trees that never wait.
const SLOTS: usize = 8;

/// Threads of a queue in trees that may wait.
pub(crate) const MANY_THREADS: usize = 4;

/// The most that it has when all of them hang.
pub(super) const MAX_THREADS: usize = 16;

/// As [`MANY_THREADS`], on machines with more processors than [`MANY`].
const FEWER_THREADS: usize = 2;
const MANY: usize = 16;

/// The work of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::transport) struct Group {
    /// The processor that it is pinned to.
    pub(super) processor: Option<usize>,
    /// The queues that it serves.
    pub(super) queues: Vec<u16>,
    /// Slots that it has in each queue.
    pub(super) slots: usize,
    /// Calls into the tree may wait.
    pub(super) may_wait: bool,
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::transport) struct Pool {
    pub(super) group: Group,
    /// With so many it begins.
    pub(super) threads: usize,
}

impl Group {
    /// Pins this thread.
    pub(super) fn pin(&self) {
        let Some(processor) = self.processor else { return };
        if let Err(error) = go_to(processor) {
            tracing::debug!(%error, processor, "a thread is not pinned to its processor");
        }
    }
}

/// Moves this thread to a processor, where it stays.
pub(super) fn go_to(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL.into());
    }
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// Returns the threads for this machine.
///
/// # Errors
/// The list of processors cannot be read.
pub(in crate::transport) fn plan(may_wait: bool, pin: bool) -> io::Result<Vec<Pool>> {
    let list = fs::read_to_string(POSSIBLE)?;
    let possible = count(&list).ok_or_else(|| io::Error::other(format!("{POSSIBLE}: {list:?}")))?;
    let ours = sched_getaffinity(None)?;
    Ok(pools(possible, |processor| processor < CpuSet::MAX_CPU && ours.is_set(processor), may_wait, pin))
}

fn pools(possible: u16, is_ours: impl Fn(usize) -> bool, may_wait: bool, pin: bool) -> Vec<Pool> {
    let (ours, others): (Vec<u16>, Vec<u16>) = (0..possible).partition(|queue| is_ours(usize::from(*queue)));
    let (threads, slots) = match ours.len() {
        _ if !may_wait => (1, SLOTS),
        ..=MANY => (MANY_THREADS, 1),
        _ => (FEWER_THREADS, 1),
    };
    let own = |queue: u16| Group { processor: pin.then_some(queue.into()), queues: vec![queue], slots, may_wait };
    let mut groups: Vec<_> = ours.into_iter().map(own).collect();
    if !others.is_empty() {
        groups.push(Group { processor: None, queues: others, slots: 1, may_wait });
    }
    groups.into_iter().map(|group| Pool { group, threads }).collect()
}

/// Returns the number of processors in a list such as `0-3,8`.
fn count(list: &str) -> Option<u16> {
    list.trim().split(',').try_fold(0_u16, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn processors_are_counted() {
        for (list, number) in [("0\n", 1), ("0-1\n", 2), ("0-3,8", 5), ("0-65534", u16::MAX)] {
            assert_eq!(count(list), Some(number), "{list}");
        }
        for list in ["", "a", "3-1", "0-65535", "0,,1"] {
            assert_eq!(count(list), None, "{list}");
        }
    }

    #[test]
    fn each_queue_is_served_and_only_our_processors_have_pinned_threads() {
        for (possible, ours, may_wait, threads) in [
            (1, 1, false, 1),
            (4, 4, false, 4),
            (4, 2, false, 3),
            (2, 2, true, 8),
            (4, 2, true, 12),
            (32, 32, true, 64),
        ] {
            for pin in [true, false] {
                let pools = pools(possible, |processor| processor < ours, may_wait, pin);
                assert_eq!(
                    pools.iter().map(|pool| pool.threads).sum::<usize>(),
                    threads,
                    "{possible}, {ours}, {may_wait}"
                );
                let queues: BTreeSet<_> = pools.iter().flat_map(|pool| pool.group.queues.clone()).collect();
                assert_eq!(queues, (0..possible).collect());
                let pinned: Vec<_> = pools.iter().filter(|pool| pool.group.processor.is_some()).collect();
                assert_eq!(pinned.len(), if pin { ours } else { 0 });
                for Pool { group, .. } in pinned {
                    let processor = group.processor.expect("it is pinned");
                    assert!(processor < ours && group.queues == [processor as u16]);
                    assert_eq!(group.slots, if may_wait { 1 } else { SLOTS });
                }
            }
        }
    }

    #[test]
    fn this_machine_has_a_plan() {
        let has_pinned = |pin| plan(false, pin).expect("a list").iter().any(|pool| pool.group.processor.is_some());
        assert!(has_pinned(true) && !has_pinned(false));
    }
}
