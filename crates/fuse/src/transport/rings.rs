//! The threads that serve requests through io_uring.
//!
//! # What it is
//! [`Rings::start`] makes the threads, each with a ring and the memory of its slots, before INIT is
//! answered. Then [`Rings::register`] gives the kernel the slots of all threads, and they serve
//! until the connection is over. After the reply to INIT the kernel keeps every request until all
//! queues have slots. In this order, the only event between both steps can be a refusal of the
//! kernel. When the kernel refuses, it continues through `/dev/fuse`.
//!
//! When all threads of a queue but one are inside calls that hang, another thread starts and
//! registers a slot ([`pool`](super::pool)). It starts while one thread is free, because the kernel
//! puts only new requests into a new slot: requests that the kernel has kept wait for the next
//! reply. If the kernel kept requests nevertheless, the new thread makes the kernel send a request
//! that needs only a reply: [`wake`].
//!
//! # What it is not
//! The whole connection: FORGET, INTERRUPT and replies to notices come through `/dev/fuse`.
//!
//! # Limitations
//! Two requests that hang may come to one queue within the same milliseconds, when all its other
//! threads hang. If the kernel has no file yet (`wake`), the second may stay in the kernel until
//! the next request comes to that queue, or any of them is answered.
//!
//! # How it is locked
//! Each thread has its ring. Replies of other threads reach the ring through [`replies`].
//!
//! # Where it comes from
//! `fuse_uring_register`, `is_ring_ready`, `fuse_uring_do_register` and `fuse_uring_next_fuse_req` in Linux's
//! `fs/fuse/dev_uring.c`.

mod plan;
mod replies;
mod worker;

use super::Transport;
use super::pool::{Actions, Member, Pools};
use super::stop::{Stop, StopAtEnd};
use super::threads::{END_LIMIT, Threads};
use crate::transport_kind::NoRing;
use fusedev::wire::notice::{self, RETRIEVE};
use fusedev::{Device, Ring, Waker};
use plan::{Group, MAX_THREADS, go_to};
pub(super) use plan::{MANY_THREADS, plan};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use worker::Worker;

/// Numbers of the requests that this process makes the kernel send begin here. The kernel counts its own from 2, by 2.
const FIRST_ROUSED: u64 = 1 << 62;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Rings {
    shared: Arc<Shared>,
    /// The work of the threads of each pool.
    groups: Vec<Group>,
    starting: Vec<RingThread>,
    queues: BTreeSet<u16>,
    /// Threads that it began with.
    count: usize,
}

/// State that all threads share.
#[derive(Debug)]
struct Shared {
    transport: Arc<Transport>,
    device: Arc<Device>,
    /// Length of a slot's memory for names and data, in bytes.
    payload: usize,
    stop: Arc<Stop>,
    pools: Arc<Pools>,
    threads: Arc<Threads>,
    next_roused: AtomicU64,
}

/// A thread that does not serve yet.
#[derive(Debug)]
struct RingThread {
    /// Each allows one more step: to register, to serve. When it is dropped before, the thread ends.
    actions: Sender<()>,
    /// The result of each step: the queues that have slots of this thread.
    reports: Receiver<io::Result<Vec<u16>>>,
}

impl RingThread {
    fn report(&self) -> io::Result<Vec<u16>> {
        self.reports.recv().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")))
    }

    fn proceed(&self) {
        let _ = self.actions.send(());
    }
}

impl Rings {
    /// Starts the threads. `payload` is the length of a slot's memory for names and data, in bytes.
    pub(super) fn start(
        transport: &Arc<Transport>,
        device: &Arc<Device>,
        payload: usize,
        plan: Vec<plan::Pool>,
        stop: &Arc<Stop>,
    ) -> Result<Self, NoRing> {
        let queues = plan.iter().flat_map(|pool| pool.group.queues.iter().copied()).collect();
        let size = |pool: &plan::Pool| (pool.threads, if pool.group.may_wait { MAX_THREADS } else { 0 });
        let shared = Arc::new(Shared {
            transport: transport.clone(),
            device: device.clone(),
            payload,
            stop: stop.clone(),
            pools: Pools::new(1, plan.iter().map(size)),
            threads: Arc::default(),
            next_roused: AtomicU64::new(FIRST_ROUSED),
        });
        let all = plan.iter().enumerate().flat_map(|(at, pool)| std::iter::repeat_n((at, pool), pool.threads));
        let started = all.map(|(at, pool)| shared.start(at, pool.group.clone(), false));
        let starting: Vec<_> = started.collect::<io::Result<_>>().map_err(|error| NoRing::of(&error))?;
        let made = starting.iter().try_for_each(|thread| thread.report().map(drop));
        made.map_err(|error| NoRing::of(&error))?;
        let count = starting.len();
        Ok(Self { shared, groups: plan.into_iter().map(|pool| pool.group).collect(), starting, queues, count })
    }

    /// Registers the slots. INIT must have been answered. Then the threads serve. Returns why not, if a queue has no slot: the
    /// kernel then sends requests through `/dev/fuse`.
    ///
    /// # Errors
    /// The kernel could not be made to do that.
    pub(super) fn register(&mut self) -> io::Result<Result<(), NoRing>> {
        let starting = std::mem::take(&mut self.starting);
        starting.iter().for_each(RingThread::proceed);
        let (mut served, mut failure) = (BTreeSet::new(), None);
        for thread in &starting {
            match thread.report() {
                Ok(queues) => served.extend(queues),
                Err(error) => failure = Some(error),
            }
        }
        if served != self.queues {
            let error = failure.unwrap_or_else(|| io::Error::other("a queue got no slot"));
            // If the thread failed before it came to the kernel.
            Ring::new(self.shared.device.clone(), Arc::new(Waker::new()?), 0)?.be_refused()?;
            return Ok(Err(NoRing::of(&error)));
        }
        starting.iter().for_each(RingThread::proceed);
        self.shared.lead(self.groups.clone());
        Ok(Ok(()))
    }

    /// Threads that it began with.
    pub(super) fn threads(&self) -> usize {
        self.count
    }

    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Waits until all threads have ended. The connection must be over, or [stopped](Stop::stop).
    ///
    /// # Errors
    /// The error of the first thread that has one, which is a defect. All others have ended, too.
    pub(super) fn join(self) -> io::Result<()> {
        self.shared.pools.end();
        self.shared.threads.join(END_LIMIT)
    }
}

impl Shared {
    /// Starts the supervisor, if calls of the tree may wait.
    fn lead(self: &Arc<Self>, groups: Vec<Group>) {
        if !groups.iter().any(|group| group.may_wait) {
            return;
        }
        let shared = self.clone();
        let spawn_at = move |at: usize| shared.spawn_at(at, &groups[at]);
        let pools = self.pools.clone();
        let lead = move || {
            // Their slots cannot be taken back, so the threads stay.
            pools.lead(&Actions { spawn_at: &spawn_at, idle: None, wake: &|_| {} });
            Ok(())
        };
        if let Err(error) = self.threads.spawn("lightfoot-supervisor", lead) {
            tracing::warn!(%error, "no thread starts others when all hang");
        }
    }

    /// Starts another thread of a pool.
    fn spawn_at(self: &Arc<Self>, at: usize, group: &Group) -> io::Result<()> {
        let thread = self.start(at, Group { slots: 1, ..group.clone() }, true)?;
        thread.report()?;
        thread.proceed();
        thread.report()?;
        thread.proceed();
        Ok(())
    }

    fn start(self: &Arc<Self>, at: usize, group: Group, is_hired: bool) -> io::Result<RingThread> {
        let ((actions, order), (report, reports)) = (channel(), channel());
        let shared = self.clone();
        let run = move || {
            group.pin();
            let member = group.may_wait.then(|| Member::new(&shared.pools, at));
            let mut worker = match Worker::new(shared.clone(), &group, member) {
                Ok(worker) => worker,
                Err(error) => return Ok(_ = report.send(Err(error))),
            };
            let _ = report.send(Ok(Vec::new()));
            if order.recv().is_err() {
                return Ok(());
            }
            let registered = worker.register(&group);
            let is_served = registered.is_ok();
            let _ = report.send(registered);
            if !is_served || order.recv().is_err() {
                return Ok(());
            }
            let end = StopAtEnd::new(shared.stop.clone());
            if is_hired {
                shared.wake(&group.queues, &shared.transport.session.some_files());
            }
            end.ends(worker.serve())
                .inspect_err(|error| tracing::error!(%error, "a queue of requests cannot be served: the mount ends"))
        };
        self.threads.spawn("lightfoot-ring", run)?;
        Ok(RingThread { actions, reports })
    }

    /// Makes the kernel send a request to each of these queues. The reply makes the kernel send a
    /// request that waits there. `files`: nodes; the kernel must have at least one of them as a
    /// file.
    fn wake(&self, queues: &[u16], files: &[u64]) {
        let Ok(before) = sched_getaffinity(None) else { return };
        for queue in queues {
            // The kernel puts the request into the queue of the processor that this thread runs on.
            let woken = go_to((*queue).into()).and_then(|()| {
                let unique = || self.next_roused.fetch_add(2, Relaxed);
                wake(&self.device, files, unique)
            });
            if let Err(error) = woken {
                tracing::debug!(%error, queue, "a request that waits for a slot may wait for the next one");
            }
        }
        let _ = sched_setaffinity(None, &before);
    }
}

/// Makes the kernel send a request that has no reply, with the next number of `unique`.
///
/// # Errors
/// The kernel has none of `files` as a file.
pub(super) fn wake(device: &Device, files: &[u64], unique: impl Fn() -> u64) -> io::Result<()> {
    let none = Err(io::ErrorKind::NotFound.into());
    let send = |file: &u64| device.notify(RETRIEVE, &notice::retrieve(*file, unique()));
    files.iter().map(send).find(Result::is_ok).unwrap_or(none)
}
