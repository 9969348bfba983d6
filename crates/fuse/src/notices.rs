//! Notices: messages to the kernel that do not reply to a request, and the thread that sends them.
//!
//! # What it is
//! A queue of names and nodes that the kernel must invalidate, and the thread that sends them. A
//! notice about a directory waits in the kernel for that directory's lock. A process may hold that
//! lock while it waits for a reply of this server. So a thread that serves requests must not send
//! notices: the thread would wait for itself. Handlers, and file systems that report changes, only
//! [push](Notices::push), which never waits.
//!
//! # What it is not
//! Lossy: a full queue becomes one mark, "everything". The mark covers all notices in the queue,
//! and all notices that come until the thread sends the mark. The kernel drops more than necessary
//! for it. Nor a barrier: [`Notices::push`] returns before the kernel has the notice;
//! [`Notices::flush`] waits until the kernel has it.
//!
//! # How it is locked
//! One mutex protects the queue. Threads hold it to add and to remove notices, never while the
//! thread sends. The sending thread sleeps on one condition variable, flushes on another.
//!
//! # The end
//! A drop sets a stop flag under the mutex. If the thread is not sending at that moment, it sends
//! nothing more and ends at once, and the drop joins it. If the thread is sending, its call may
//! block in the kernel until the connection ends, and the caller of the drop is about to close the
//! connection. So a join could wait for ever, and the drop detaches the thread. The thread owns all
//! that it needs, sends nothing more, and ends when its call returns. The end of the connection
//! makes the call return: the kernel fails every request, which releases the locks of the requests.
//!
//! # Source
//! `FUSE_NOTIFY_INVAL_ENTRY`, `FUSE_NOTIFY_INVAL_INODE`, `FUSE_NOTIFY_DELETE` and `FUSE_NOTIFY_PRUNE` in Linux's `fs/fuse/dev.c`; the warning
//! about locks at `fuse_lowlevel_notify_inval_entry` in libfuse's `fuse_lowlevel.h`.

use crate::metrics::{Gauge, Metrics};
use crate::panics::contained;
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use prim::clock;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A call that takes longer is logged: the kernel waits for a lock, perhaps for ever.
pub(crate) const SLOW: Duration = Duration::from_millis(500);

/// The nanoseconds after which a notice is sent again, in case that the kernel has taken an older reply after the notice: longer than a process
/// waits for a processor.
pub(crate) const DELAY_NS: i64 = 1_000_000_000;

/// The kernel does not have the name or node, so there is nothing to invalidate.
const ENOENT: i32 = 2;

/// How many times a notice is sent that the kernel refuses for a reason that may pass.
const MAX_TRIES: u8 = 3;

/// A thing that the kernel must invalidate, or should forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The name `name` in the directory `parent`, whether it exists or not, must be looked up
    /// before its next use. Harmless for a name in use: it stays the path of open files and working
    /// directories, and a mount there stays.
    Expire { parent: u64, name: Box<[u8]> },
    /// The kernel must drop the name, also while processes use it. Not for directories, nor for files that are open.
    Drop { parent: u64, name: Box<[u8]> },
    /// The file `child` had the name `name` in the directory `parent`, and no other, and was removed. Not for directories.
    Delete { parent: u64, child: u64, name: Box<[u8]> },
    /// The kernel should forget each of these nodes that nothing uses.
    Prune(Box<[u64]>),
    /// The attributes of `node`, and `len` bytes of its cached data from `offset` on. `len` 0: up to the end. A negative
    /// `offset`: only the attributes.
    InvalInode { node: u64, offset: i64, len: i64 },
}

/// The connection to the kernel. Only the queue's thread calls it, without a lock; the calls may block.
pub(crate) trait Sender: Send + 'static {
    /// Sends one notice. `ENOENT` counts as success. Other errors are counted and logged.
    fn send(&self, notice: &Notice) -> io::Result<()>;

    /// Invalidates all that the kernel has cached.
    fn all(&self) -> io::Result<()>;
}

/// The queue; see the module's description.
pub(crate) struct Notices {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when the thread must send or stop.
    work: Condvar,
    /// Signalled when all is sent, or the thread has ended.
    idle: Condvar,
    metrics: Arc<Metrics>,
    capacity: usize,
    slow: Duration,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Queued>,
    /// Notices that are sent later, and when, in that order. `None`: everything.
    later: VecDeque<(i64, Option<Notice>)>,
    /// The mark "everything", which replaced more notices than fit into the queue; the queue is
    /// empty.
    is_everything: bool,
    /// When the current call began.
    sending_since_ns: Option<i64>,
    /// The current call was logged as slow.
    is_warned: bool,
    /// The thread must send nothing more.
    is_stopped: bool,
    has_ended: bool,
}

struct Queued {
    notice: Notice,
    /// How often the kernel has refused it.
    refused: u8,
}

enum Task {
    One(Queued),
    All,
}

impl State {
    /// Takes what is due.
    fn take(&mut self, now_ns: i64) -> Option<Task> {
        // The call for everything may not cover notices that are pushed from here on, so they are queued.
        if core::mem::take(&mut self.is_everything) {
            return Some(Task::All);
        }
        if let Some(queued) = self.queue.pop_front() {
            return Some(Task::One(queued));
        }
        let (_, notice) = self.later.pop_front_if(|(due_ns, _)| *due_ns <= now_ns)?;
        Some(notice.map_or(Task::All, |notice| Task::One(Queued { notice, refused: 0 })))
    }
}

impl Notices {
    /// Returns a queue for `capacity` notices (at least 1), with its thread, `lightfoot-notices`.
    ///
    /// # Errors
    /// As for `pthread_create(3)`.
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

    /// Queues a notice, unless it equals the last one in the queue. Never waits, so handlers may call it, also under locks.
    pub(crate) fn push(&self, notice: Notice) {
        let blocked_ns = {
            let mut state = self.shared.state.lock();
            if state.is_stopped || state.has_ended {
                return;
            }
            if !state.is_everything && state.queue.back().map(|queued| &queued.notice) != Some(&notice) {
                if state.queue.len() < self.shared.capacity {
                    state.queue.push_back(Queued { notice, refused: 0 });
                } else {
                    state.queue.clear();
                    state.is_everything = true;
                    self.shared.metrics.add(Gauge::NoticesCollapsed, 1);
                }
            }
            self.shared.work.notify_one();
            self.shared.newly_slow(&mut state)
        };
        // The pushing thread logs this, since the sending thread cannot log a call that never
        // returns.
        if let Some(ns) = blocked_ns {
            tracing::warn!(
                ms = ns / 1_000_000,
                "a notice is still blocked in the kernel: a process holds the lock of the directory"
            );
        }
    }

    /// Queues the invalidation of everything. Never waits.
    pub(crate) fn push_all(&self) {
        let mut state = self.shared.state.lock();
        if !state.is_stopped && !state.has_ended {
            state.queue.clear();
            state.is_everything = true;
            self.shared.work.notify_one();
        }
    }

    /// Queues a notice that is sent after [`DELAY_NS`]; `None`: everything. Never waits, and [`Notices::flush`] does not wait for it.
    pub(crate) fn push_later(&self, notice: Option<Notice>) {
        let mut state = self.shared.state.lock();
        if state.is_stopped || state.has_ended {
            return;
        }
        let due_ns = clock::monotonic_ns() + DELAY_NS;
        state.later.pop_back_if(|(_, last)| *last == notice);
        if state.later.len() < self.shared.capacity {
            state.later.push_back((due_ns, notice));
        } else {
            state.later = [(due_ns, None)].into();
            self.shared.metrics.add(Gauge::NoticesCollapsed, 1);
        }
        self.shared.work.notify_one();
    }

    /// Returns whether the queue is more than half full, so that notices of low priority should
    /// wait.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.shared.state.lock();
        state.is_everything || state.queue.len() * 2 > self.shared.capacity
    }

    /// Waits until all notices that were queued before are sent, or the thread has ended. Handlers and senders must not call
    /// it.
    pub(crate) fn flush(&self) {
        let is_busy = |state: &mut State| {
            let is_empty = state.queue.is_empty() && !state.is_everything && state.sending_since_ns.is_none();
            !is_empty && !state.has_ended
        };
        self.shared.idle.wait_while(&mut self.shared.state.lock(), is_busy);
    }

    /// Makes the thread stop, which then drops its sender. Returns whether it was sending.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.shared.state.lock();
        state.is_stopped = true;
        (state.queue, state.later) = Default::default();
        state.is_everything = false;
        self.shared.work.notify_one();
        state.sending_since_ns.is_some()
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        if !self.stop() {
            // An error means that the sender has panicked, which the panic hook has reported.
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

impl Shared {
    /// Sends notices until the queue is stopped. The thread of the queue runs this.
    fn run(&self, sender: &impl Sender) {
        let _ended = Ended(self);
        while let Some(task) = self.next() {
            let send = || match &task {
                Task::One(queued) => sender.send(&queued.notice),
                Task::All => sender.all(),
            };
            let result = contained(&self.metrics, "a notice", send);
            self.sent(task, result.unwrap_or_else(|| Err(io::Error::other("the sender panicked"))));
        }
    }

    /// Waits for the next task, and marks it as under way.
    fn next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        while !state.is_stopped {
            let now_ns = clock::monotonic_ns();
            if let Some(task) = state.take(now_ns) {
                state.sending_since_ns = Some(now_ns);
                return Some(task);
            }
            match state.later.front() {
                Some(&(due_ns, _)) => {
                    let ns = u64::try_from(due_ns - now_ns).unwrap_or(0);
                    self.work.wait_for(&mut state, Duration::from_nanos(ns));
                }
                None => self.work.wait(&mut state),
            }
        }
        None
    }

    /// Ends the current task. A notice that the kernel has refused moves to the end of the queue.
    fn sent(&self, task: Task, result: io::Result<()>) {
        // Counts the call before it marks the call as done, so that the count is complete when a
        // flush returns.
        let failure = result.err().filter(|error| error.raw_os_error() != Some(ENOENT));
        self.metrics.add(Gauge::NoticesSent, 1);
        self.metrics.add(Gauge::NoticesFailed, failure.is_some().into());
        let what = if let Task::One(queued) = &task { Some(queued.notice.clone()) } else { None };
        let (slow_ns, was_warned) = {
            let mut state = self.state.lock();
            let was_warned = state.is_warned;
            let slow_ns = self.newly_slow(&mut state);
            (state.sending_since_ns, state.is_warned) = (None, false);
            if let Task::One(queued) = task
                && failure.as_ref().is_some_and(may_pass)
                && queued.refused + 1 < MAX_TRIES
                && !state.is_everything
                && !state.is_stopped
            {
                state.queue.push_back(Queued { refused: queued.refused + 1, ..queued });
            }
            if state.queue.is_empty() && !state.is_everything {
                self.idle.notify_all();
            }
            (slow_ns, was_warned)
        };
        if let Some(ns) = slow_ns {
            tracing::warn!(ms = ns / 1_000_000, ?what, "a notice took long");
        } else if was_warned {
            tracing::warn!(?what, "a notice that was blocked has returned");
        }
        if let Some(error) = failure {
            tracing::debug!(%error, ?what, "a notice failed");
        }
    }

    /// Returns how long the current call has lasted, if that is long and was not reported yet.
    /// Counts it.
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

/// Returns whether a notice that failed may succeed later.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, ResourceBusy, WouldBlock};
    matches!(error.kind(), Interrupted | OutOfMemory | ResourceBusy | WouldBlock)
}

/// Marks the thread as ended, also after a panic of the sender: nothing waits for it, and nothing is queued for it.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.has_ended = true;
        (state.queue, state.later) = Default::default();
        (state.is_everything, state.sending_since_ns) = (false, None);
        self.0.idle.notify_all();
    }
}

#[cfg(test)]
#[path = "notices/tests.rs"]
mod tests;
