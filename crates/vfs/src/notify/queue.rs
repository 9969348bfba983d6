//! A watcher's queue of events: bounded, and threads can wait on it.
//!
//! # What it is
//! Events in order, at most `capacity` of them, and at most one overflow mark among them. The mark is added
//! when an event finds the queue full, and does not count as an event. While the mark is queued, further
//! events that find the queue full are dropped without a second mark: the reader of the mark reads everything
//! again, and so sees their changes.
//!
//! # What it is not
//! A journal without losses: an event equal to the last queued one is dropped, as by inotify.
//!
//! # How it is locked
//! One [`Monitor`], a leaf. Bells are called without it.
//!
//! # Where it comes from
//! `inotify(7)`; `fsnotify_insert_event` of Linux's `fs/notify/notification.c`; but there an equal event that
//! finds the queue full causes an overflow.

use super::{Event, EventKind};
use crate::base::deadline::Deadline;
use crate::base::monitor::Monitor;
use core::time::Duration;
use prim::shared::PlainArc as Arc;
use std::collections::VecDeque;
use std::path::PathBuf;

pub(super) struct Queue {
    waiting: Monitor<Waiting>,
    capacity: usize,
}

/// Called by an event that finds no other queued.
type Bell = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// Whether `events` contains an overflow mark.
    has_overflow: bool,
    /// Whether the final event was queued.
    is_closed: bool,
    bell: Option<Arc<Bell>>,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        Self { waiting: Monitor::new(Waiting::default()), capacity: capacity.max(1) }
    }

    pub(super) fn push(&self, event: Event) {
        let is_last = event.kind == EventKind::Unmounted;
        let take_in = |waiting: &mut Waiting| {
            let is_first = waiting.take_in(event, self.capacity) && waiting.events.len() == 1;
            if is_first { waiting.bell.clone() } else { None }
        };
        let bell = if is_last { self.waiting.change(take_in) } else { self.waiting.change_for_one(take_in) };
        // A bell that is set after this finds the event queued.
        if let Some(bell) = bell {
            bell();
        }
    }

    pub(super) fn set_bell(&self, ring: Bell) {
        let (bell, has_events) = self.waiting.change_silently(|waiting| {
            let bell = waiting.bell.get_or_insert_with(|| Arc::new(ring)).clone();
            (bell, !waiting.events.is_empty())
        });
        if has_events {
            bell();
        }
    }

    pub(super) fn try_next(&self) -> Option<Event> {
        self.waiting.change_silently(Waiting::give_out)
    }

    pub(super) fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let next = |waiting: &mut Waiting| match waiting.give_out() {
            None if !waiting.is_closed => None,
            given => Some(given),
        };
        self.waiting.wait(Deadline::after(timeout), next).flatten()
    }

    pub(super) fn pending(&self) -> usize {
        self.waiting.change_silently(|waiting| waiting.events.len())
    }

    #[cfg(test)]
    pub(super) fn sleepers(&self) -> usize {
        self.waiting.sleepers()
    }
}

impl Waiting {
    /// Appends `event`, or an overflow mark, or nothing; returns whether it appended anything.
    fn take_in(&mut self, event: Event, capacity: usize) -> bool {
        if self.is_closed || self.events.back() == Some(&event) {
            return false;
        }
        // The final event always fits.
        let is_last = event.kind == EventKind::Unmounted;
        // An event that the caller could not give a path is lost, as one that finds the queue full.
        let is_lost = event.kind == EventKind::Overflow;
        let has_room = self.events.len() - usize::from(self.has_overflow) < capacity;
        if (has_room && !is_lost) || is_last {
            self.is_closed = is_last;
            self.events.push_back(event);
            return true;
        }
        let is_first = !self.has_overflow;
        if is_first {
            self.has_overflow = true;
            self.events.push_back(Event { kind: EventKind::Overflow, is_dir: false, cookie: 0, path: PathBuf::new() });
        }
        is_first
    }

    fn give_out(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.has_overflow &= event.kind != EventKind::Overflow;
        Some(event)
    }
}
