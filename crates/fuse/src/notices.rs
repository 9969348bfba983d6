//! Notices: what the kernel is told without having asked, from a thread of its own.
//!
//! # What it is
//! A queue of names and nodes that the kernel shall no longer believe, and the thread that tells it. A notice about a
//! directory waits in the kernel for that directory's lock, which a process may hold that itself waits for this
//! server's answer: who sends from the thread that should answer waits for itself. So handlers, and file systems that
//! push, only [push](Notices::push), which never waits.
//!
//! # What it is not
//! Lossy: a queue that is full turns into one mark, "everything", which stands for all that was in it and for all that
//! comes until the thread gets to it. The kernel then loses more than it had to. Nor are notices a barrier: a push says
//! that the kernel will be told. [`Notices::flush`] waits until it was.
//!
//! # How it is locked
//! One mutex around the queue, held to put in and to take out, never while sending. The thread sleeps on one condition,
//! who flushes on another.
//!
//! # The end
//! A drop sets a stop flag under the mutex. If the thread is not sending it cannot begin to, so it ends at once and is
//! joined. If it is sending, the call may wait in the kernel for as long as the connection lives: joining it from the
//! code that is about to close the connection would wait for ever. So it is let go; it owns all that it needs, sends
//! nothing more, and ends when its call returns, which the end of the connection makes sure of: the kernel fails every
//! request then, and their locks are given back.
//!
//! # Source
//! `FUSE_NOTIFY_INVAL_ENTRY` and `FUSE_NOTIFY_INVAL_INODE` in Linux's `fs/fuse/dev.c`; the warning
//! about locks at `fuse_lowlevel_notify_inval_entry` in libfuse's `fuse_lowlevel.h`.

use crate::metrics::{Gauge, Metrics};
use core::fmt;
use core::time::Duration;
use prim::clock;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// After this long a call is worth a warning: the kernel waits for a lock, perhaps for good.
pub(crate) const SLOW: Duration = Duration::from_millis(500);

/// The errno of what the kernel does not know, which is as good as having told it.
const ENOENT: i32 = 2;

/// What the kernel shall no longer believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// That `name` in the directory `parent` is, or is not, what it was.
    InvalEntry { parent: u64, name: Box<[u8]> },
    /// The attributes of `node`, and of its data `len` bytes from `offset` on: 0 for all behind it; a negative offset
    /// for the attributes alone.
    InvalInode { node: u64, offset: i64, len: i64 },
}

/// The way to the kernel. Called by the queue's thread alone, with no lock held; may take its time.
pub(crate) trait Sender: Send + 'static {
    /// Tells the kernel of one. `ENOENT`: it did not know it, which is as good. Other errors are counted and logged.
    fn send(&self, notice: &Notice) -> io::Result<()>;

    /// Makes the kernel believe nothing that it has cached.
    fn all(&self) -> io::Result<()>;
}

/// The queue; see the module's description.
pub(crate) struct Notices {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to send, or to stop for.
    work: Condvar,
    /// There is nothing left to send, or the thread has ended.
    idle: Condvar,
    metrics: Arc<Metrics>,
    capacity: usize,
    slow: Duration,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Notice>,
    /// Stands for more notices than the queue had room for, which is empty then.
    is_everything: bool,
    /// When the call under way began.
    sending_since_ns: Option<i64>,
    /// That call was warned about.
    is_warned: bool,
    /// Nothing is sent any more.
    is_stopped: bool,
    has_ended: bool,
}

enum Task {
    One(Notice),
    All,
}

impl Notices {
    /// A queue for `capacity` notices (at least 1), with its thread, `lightfoot-notices`.
    ///
    /// # Errors
    /// Those of `pthread_create(3)`.
    pub(crate) fn start(sender: impl Sender, capacity: usize, metrics: Arc<Metrics>) -> io::Result<Self> {
        Self::start_with(sender, capacity, metrics, SLOW)
    }

    fn start_with(sender: impl Sender, capacity: usize, metrics: Arc<Metrics>, slow: Duration) -> io::Result<Self> {
        let (state, work, idle) = Default::default();
        let shared = Arc::new(Shared { state, work, idle, metrics, capacity: capacity.max(1), slow });
        let run = {
            let shared = shared.clone();
            move || shared.run(&sender)
        };
        let thread = thread::Builder::new().name("lightfoot-notices".into()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sees to it that the kernel is told. Does not wait; fit for handlers and under locks. What equals the notice
    /// queued last is that notice.
    pub(crate) fn push(&self, notice: Notice) {
        let blocked_ns = {
            let mut state = self.shared.lock();
            if state.is_stopped || state.has_ended {
                return;
            }
            if !state.is_everything && state.queue.back() != Some(&notice) {
                if state.queue.len() < self.shared.capacity {
                    state.queue.push_back(notice);
                } else {
                    state.queue.clear();
                    state.is_everything = true;
                    self.shared.metrics.add(Gauge::NoticesCollapsed, 1);
                }
            }
            self.shared.work.notify_one();
            self.shared.newly_slow(&mut state)
        };
        // Said here, for a call that never returns could not say so itself.
        if let Some(ns) = blocked_ns {
            tracing::warn!(ms = ns / 1_000_000, "the kernel has not taken a notice yet: somebody holds the directory");
        }
    }

    /// Sees to it that the kernel is told that everything is in doubt.
    pub(crate) fn push_all(&self) {
        let mut state = self.shared.lock();
        if !state.is_stopped && !state.has_ended {
            state.queue.clear();
            state.is_everything = true;
            self.shared.work.notify_one();
        }
    }

    /// Whether so much waits to be sent that what can wait should not be added.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.shared.lock();
        state.is_everything || state.queue.len() * 2 > self.shared.capacity
    }

    /// Waits until all that was pushed before was sent, or the thread has ended. Not for handlers, nor for a sender.
    pub(crate) fn flush(&self) {
        let is_busy = |state: &mut State| {
            let is_empty = state.queue.is_empty() && !state.is_everything && state.sending_since_ns.is_none();
            !is_empty && !state.has_ended
        };
        drop(self.shared.idle.wait_while(self.shared.lock(), is_busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the thread was sending when it was told to stop.
    fn stop(&self) -> bool {
        let mut state = self.shared.lock();
        state.is_stopped = true;
        state.queue.clear();
        state.is_everything = false;
        self.shared.work.notify_one();
        state.sending_since_ns.is_some()
    }

    fn join(&mut self) {
        // It panicked if the sender did, which said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        if !self.stop() {
            self.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the mutex would leave nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn run(&self, sender: &impl Sender) {
        let _ended = Ended(self);
        while let Some(task) = self.next() {
            let (what, result) = match &task {
                Task::One(notice) => (Some(notice), sender.send(notice)),
                Task::All => (None, sender.all()),
            };
            self.sent(what, result);
        }
    }

    /// Waits for the next task, and marks it as under way.
    fn next(&self) -> Option<Task> {
        let is_idle = |state: &mut State| !state.is_stopped && !state.is_everything && state.queue.is_empty();
        let mut state = self.work.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped {
            return None;
        }
        let task = if state.is_everything {
            // From here on pushes are queued: this call may not cover them.
            state.is_everything = false;
            Task::All
        } else {
            Task::One(state.queue.pop_front()?)
        };
        state.sending_since_ns = Some(clock::monotonic_ns());
        Some(task)
    }

    /// Ends the task that was under way; without a notice it was "everything".
    fn sent(&self, what: Option<&Notice>, result: io::Result<()>) {
        // Counted before the call is marked as done, so that who flushes finds it counted.
        let failure = result.err().filter(|error| error.raw_os_error() != Some(ENOENT));
        self.metrics.add(Gauge::NoticesSent, 1);
        self.metrics.add(Gauge::NoticesFailed, failure.is_some().into());
        let (slow_ns, was_warned) = {
            let mut state = self.lock();
            let was_warned = state.is_warned;
            let slow_ns = self.newly_slow(&mut state);
            (state.sending_since_ns, state.is_warned) = (None, false);
            if state.queue.is_empty() && !state.is_everything {
                self.idle.notify_all();
            }
            (slow_ns, was_warned)
        };
        if let Some(ns) = slow_ns {
            tracing::warn!(ms = ns / 1_000_000, ?what, "the kernel took long over a notice");
        } else if was_warned {
            tracing::warn!(?what, "the kernel has taken the notice at last");
        }
        if let Some(error) = failure {
            tracing::debug!(%error, ?what, "the kernel refused a notice");
        }
    }

    /// How long the call under way has lasted, if that is long and nobody has said so yet. Counts it.
    fn newly_slow(&self, state: &mut State) -> Option<u64> {
        let since = state.sending_since_ns.filter(|_| !state.is_warned)?;
        let ns = u64::try_from(clock::monotonic_ns() - since).unwrap_or(0);
        if u128::from(ns) < self.slow.as_nanos() {
            return None;
        }
        state.is_warned = true;
        self.metrics.add(Gauge::SlowNotices, 1);
        Some(ns)
    }
}

/// Says that the thread has ended, also by a panic of the sender: nobody waits for it, and nothing is queued for it.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.queue = VecDeque::new();
        (state.is_everything, state.sending_since_ns) = (false, None);
        self.0.idle.notify_all();
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("capacity", &self.shared.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "notices/tests.rs"]
mod tests;
