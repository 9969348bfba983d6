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
//! One mutex, a leaf. A waiter reads `calls` under it, and parks while `calls` is unchanged; a push that sees
//! waiters changes `calls` under the mutex and wakes one of them afterwards. So no wake is lost, and relaxed
//! accesses suffice: the mutex orders them. A woken thread always checks the queue before it returns.
//!
//! # Where it comes from
//! `inotify(7)`; `fsnotify_insert_event` of Linux's `fs/notify/notification.c`; but there an equal event that
//! finds the queue full causes an overflow.

use super::{Event, EventKind};
use crate::base::deadline::Deadline;
use core::fmt;
use core::time::Duration;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use prim::shared::PlainArc as Arc;
use std::collections::VecDeque;
use std::path::PathBuf;
use sync::{Mutex, MutexGuard};

#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Counts the wakes. A waiter misses one only if exactly 2^32 come between its look under the mutex and its park.
    calls: AtomicU32,
    capacity: usize,
}

/// Called by an event that finds no other queued.
struct Bell(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// Whether `events` contains an overflow mark.
    has_overflow: bool,
    /// Whether the final event was queued.
    is_closed: bool,
    /// Threads that are parked, or about to park.
    sleepers: usize,
    bell: Option<Arc<Bell>>,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        Self { waiting: Mutex::default(), calls: AtomicU32::new(0), capacity: capacity.max(1) }
    }

    pub(super) fn push(&self, event: Event) {
        let mut waiting = self.waiting.lock();
        if !waiting.take_in(event, self.capacity) {
            return;
        }
        let bell = if waiting.events.len() == 1 { waiting.bell.clone() } else { None };
        let wakes = waiting.sleepers > 0;
        let wakes_all = waiting.is_closed;
        if wakes {
            self.calls.fetch_add(1, Relaxed);
        }
        drop(waiting);
        match (wakes, wakes_all) {
            (true, true) => park::unpark_all(&self.calls),
            (true, false) => park::unpark_one(&self.calls),
            (false, _) => {}
        }
        // A bell that is set after this finds the event queued.
        if let Some(bell) = bell {
            (bell.0)();
        }
    }

    pub(super) fn set_bell(&self, ring: Box<dyn Fn() + Send + Sync>) {
        let mut waiting = self.waiting.lock();
        let bell = waiting.bell.get_or_insert_with(|| Arc::new(Bell(ring))).clone();
        let has_events = !waiting.events.is_empty();
        drop(waiting);
        if has_events {
            (bell.0)();
        }
    }

    pub(super) fn try_next(&self) -> Option<Event> {
        self.waiting.lock().give_out()
    }

    pub(super) fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let mut waiting = self.waiting.lock();
        let at_once = waiting.give_out();
        if at_once.is_some() || waiting.is_closed {
            return at_once;
        }
        self.wait(waiting, Deadline::after(timeout))
    }

    #[cold]
    fn wait<'q>(&'q self, mut waiting: MutexGuard<'q, Waiting>, deadline: Deadline) -> Option<Event> {
        loop {
            waiting.sleepers += 1;
            let call = self.calls.load(Relaxed);
            drop(waiting);
            let has_time = deadline.park(&self.calls, call);
            waiting = self.waiting.lock();
            waiting.sleepers -= 1;
            let event = waiting.give_out();
            if event.is_some() || waiting.is_closed || !has_time {
                return event;
            }
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.waiting.lock().events.len()
    }

    /// Threads that are parked, or about to park.
    #[cfg(test)]
    pub(super) fn sleepers(&self) -> usize {
        self.waiting.lock().sleepers
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
