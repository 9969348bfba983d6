//! The threads that serve requests through io_uring.
//!
//! # What it is
//! [`Rings::start`] makes the threads, each with a ring and the memory of its slots, before INIT is answered.
//! [`Rings::register`] gives the kernel the slots of all after that; from then on they serve, until the connection is over. In
//! this order only the kernel's refusal can come between the reply, after which it keeps every request until all queues have
//! slots, and the slots. When it refuses, it goes on through `/dev/fuse`.
//!
//! # What it is not
//! All of the connection: FORGET, INTERRUPT and replies to notices come through `/dev/fuse`.
//!
//! # How it is locked
//! Each thread has its ring. Replies of other threads reach it through [`replies`].
//!
//! # Where it comes from
//! `fuse_uring_register` and `is_ring_ready` in Linux's `fs/fuse/dev_uring.c`.

mod plan;
mod replies;
mod worker;

use super::Transport;
use super::stop::{Stop, StopAtEnd};
use crate::carrier::NoRing;
use fusedev::{Device, Ring, Waker};
use plan::Group;
pub(super) use plan::{MOST_THREADS, plan};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use worker::Worker;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Rings {
    threads: Vec<RingThread>,
    queues: BTreeSet<u16>,
}

#[derive(Debug)]
struct RingThread {
    /// Each allows one more step: to register, to serve. When it is dropped, the thread ends.
    orders: Sender<()>,
    /// The result of each step: the queues that have slots of this thread.
    reports: Receiver<io::Result<Vec<u16>>>,
    handle: JoinHandle<io::Result<()>>,
}

impl RingThread {
    fn report(&self) -> io::Result<Vec<u16>> {
        self.reports.recv().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")))
    }
}

impl Rings {
    /// Starts the threads. `payload` is the length of a slot's memory for names and data, in bytes.
    pub(super) fn start(
        transport: &Arc<Transport>,
        device: &Arc<Device>,
        payload: usize,
        groups: Vec<Group>,
        stop: &Arc<Stop>,
    ) -> Result<Self, NoRing> {
        let queues = groups.iter().flat_map(|group| group.queues.iter().copied()).collect();
        let started = groups.into_iter().map(|group| start(transport, device, payload, group, stop));
        let threads: io::Result<Vec<_>> = started.collect();
        let rings = Self { threads: threads.map_err(|error| NoRing::of(&error))?, queues };
        let made = rings.threads.iter().try_for_each(|thread| thread.report().map(drop));
        made.map_err(|error| NoRing::of(&error))?;
        Ok(rings)
    }

    /// Registers the slots. INIT must have been answered. Then the threads serve. Returns why not, if a queue has no slot: the
    /// kernel then sends requests through `/dev/fuse`.
    ///
    /// # Errors
    /// The kernel could not be made to do that.
    pub(super) fn register(&self, device: &Arc<Device>) -> io::Result<Result<(), NoRing>> {
        self.threads.iter().for_each(|thread| _ = thread.orders.send(()));
        let (mut served, mut failure) = (BTreeSet::new(), None);
        for thread in &self.threads {
            match thread.report() {
                Ok(queues) => served.extend(queues),
                Err(error) => failure = Some(error),
            }
        }
        if served != self.queues {
            let error = failure.unwrap_or_else(|| io::Error::other("a queue got no slot"));
            // If the thread failed before it came to the kernel.
            Ring::new(device.clone(), Arc::new(Waker::new()?), 0)?.be_refused()?;
            return Ok(Err(NoRing::of(&error)));
        }
        self.threads.iter().for_each(|thread| _ = thread.orders.send(()));
        Ok(Ok(()))
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Waits until all threads have ended.
    ///
    /// # Errors
    /// That of the first that has one, which is a defect. All others have then ended, too.
    pub(super) fn join(self) -> io::Result<()> {
        let mut result = Ok(());
        for RingThread { orders, handle, .. } in self.threads {
            drop(orders);
            let ended = handle.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
            result = result.and(ended);
        }
        result
    }
}

fn start(
    transport: &Arc<Transport>,
    device: &Arc<Device>,
    payload: usize,
    group: Group,
    stop: &Arc<Stop>,
) -> io::Result<RingThread> {
    let ((orders, order), (report, reports)) = (channel(), channel());
    let (transport, device, stop) = (transport.clone(), device.clone(), stop.clone());
    let run = move || {
        group.pin();
        let made = Worker::new(transport, device, payload, &group, stop.clone());
        let mut worker = match made {
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
        let _others = StopAtEnd(stop);
        worker
            .serve()
            .inspect_err(|error| tracing::error!(%error, "a queue of requests cannot be served: the mount ends"))
    };
    let handle = std::thread::Builder::new().name("lightfoot-ring".into()).spawn(run)?;
    Ok(RingThread { orders, reports, handle })
}
