//! Files that wait for an invalidation because this file system has changed them, too.
//!
//! # What it is
//! The host reports changes without their authors, and merges two equal events that follow each
//! other. So a change by another program at the time of a change by this file system may leave no
//! separate event. If an event of a file may come from this file system, the file is invalidated
//! [`DELAY`] after the event, once for all events before that moment. So changes of other programs
//! become visible, and a file that this file system writes for long keeps its caches in between.
//!
//! # How it is locked
//! Not: only the thread of [`crate::events`] uses it.
//!
//! # Where it comes from
//! The "racy" entries of git's index, which are compared again later.

use core::time::Duration;
use std::collections::{HashSet, VecDeque};
use std::time::Instant;

/// How long a file waits.
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Nodes, and the times of their invalidations, the earliest first.
    order: VecDeque<(Instant, u64)>,
    nodes: HashSet<u64>,
}

impl Settling {
    /// Adds a node whose event was read at `now`, unless it waits already.
    pub(crate) fn add(&mut self, node: u64, now: Instant) {
        if self.nodes.insert(node) {
            self.order.push_back((now + DELAY, node));
        }
    }

    /// Returns the time of the next invalidation.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.order.front().map(|(time, _)| *time)
    }

    /// Takes out a node whose time has come.
    pub(crate) fn take(&mut self, now: Instant) -> Option<u64> {
        let node = self.order.front().filter(|(time, _)| *time <= now).map(|(_, node)| *node)?;
        self.order.pop_front();
        self.nodes.remove(&node);
        Some(node)
    }

    /// Takes out all: everything is invalidated.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_waits_once_from_its_first_event_on() {
        let (mut settling, start) = (Settling::default(), Instant::now());
        settling.add(1, start);
        settling.add(2, start + DELAY / 2);
        settling.add(1, start + DELAY / 2);
        assert_eq!((settling.next_time(), settling.take(start)), (Some(start + DELAY), None));
        assert_eq!((settling.take(start + DELAY), settling.take(start + DELAY)), (Some(1), None));
        settling.add(1, start + DELAY);
        assert_eq!([0; 3].map(|_| settling.take(start + 2 * DELAY)), [Some(2), Some(1), None]);
    }
}
