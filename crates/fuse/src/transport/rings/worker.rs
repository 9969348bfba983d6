//! A thread that serves queues: takes requests from its ring, serves them, and answers.
//!
//! # What it is
//! One system call sends the replies of all served requests and waits for the next request. A
//! request whose reply comes later keeps its slot, so its queue gets another slot: waiting requests
//! cannot stop the queue. These slots are never removed: a queue has its first slots, and one for
//! each request that waits, or waited before. Memory that long requests have used is returned to
//! the system when the thread had nothing to do for [`IDLE`].
//!
//! # Limitations
//! A reply that comes later waits while its thread is inside a call into the tree.

use super::super::Transport;
use super::super::pool::Member;
use super::super::reply::Channel;
use super::super::stop::Stop;
use super::Shared;
use super::plan::Group;
use super::replies::{LateReply, Replies};
use fusedev::wire::Body;
use fusedev::wire::abi::{InHeader, opcode};
use fusedev::{Event, Loan, Ours, Reply, Ring, Wait, Waker};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::mem::take;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::FromBytes;

/// How long a thread must have nothing to do before it gives memory back.
const IDLE: Duration = Duration::from_secs(1);

/// Memory for bodies beside the slots that a thread keeps, in bytes.
const KEPT: usize = 16 << 10;

/// See the [module documentation](self).
pub(super) struct Worker {
    shared: Arc<Shared>,
    transport: Arc<Transport>,
    ring: Ring,
    replies: Arc<Replies>,
    stop: Arc<Stop>,
    channel: Arc<dyn Channel>,
    /// Requests that are answered later, by their numbers.
    parked: HashMap<u64, Ours>,
    /// Events that came before this thread served.
    early: Vec<Event>,
    /// The least number of slots of a queue that are not parked.
    slots: usize,
    may_wait: bool,
    /// Its place among the threads of its queues. `None`: calls of this tree never hang.
    member: Option<Member>,
    /// Memory for bodies that are not in a slot.
    memory: Vec<u8>,
    copied: Vec<u8>,
}

impl Worker {
    /// Returns a worker whose slots the kernel does not have yet.
    ///
    /// # Errors
    /// As for [`Ring::new`] and [`Ring::add`].
    pub(super) fn new(shared: Arc<Shared>, group: &Group, member: Option<Member>) -> io::Result<Self> {
        let waker = Arc::new(Waker::new()?);
        shared.stop.add(waker.clone());
        let (device, payload) = (shared.device.clone(), shared.payload);
        let mut ring = Ring::new(device.clone(), waker.clone(), payload)?;
        let mut queues = group.queues.iter().flat_map(|queue| std::iter::repeat_n(*queue, group.slots));
        queues.try_for_each(|queue| ring.add(queue))?;
        let replies = Arc::new(Replies::new(device, waker, payload));
        Ok(Self {
            transport: shared.transport.clone(),
            ring,
            channel: replies.clone(),
            replies,
            stop: shared.stop.clone(),
            shared,
            parked: HashMap::new(),
            early: Vec::new(),
            slots: group.slots,
            may_wait: group.may_wait,
            member,
            memory: Vec::new(),
            copied: Vec::new(),
        })
    }

    /// Gives the kernel the slots, and returns the queues that got one.
    ///
    /// # Errors
    /// The reason for which no queue got a slot.
    pub(super) fn register(&mut self, group: &Group) -> io::Result<Vec<u16>> {
        self.ring.watch()?;
        self.ring.register()?;
        self.ring.enter(Wait::Never)?;
        let (mut refused, mut failure) = (HashMap::new(), None);
        // A refusal is there as soon as the kernel has seen the entry.
        while let Some(event) = self.ring.next_event()? {
            match event {
                Event::Refused(queue, errno) => {
                    *refused.entry(queue).or_insert(0) += 1;
                    failure = Some(errno);
                }
                event => self.early.push(event),
            }
        }
        let queues = group.queues.iter().copied();
        let served: Vec<_> = queues.filter(|queue| refused.get(queue) != Some(&group.slots)).collect();
        match failure {
            Some(errno) if served.is_empty() => Err(errno.into()),
            _ => Ok(served),
        }
    }

    /// Serves until the connection is over.
    ///
    /// # Errors
    /// As for [`Ring::enter`]: a defect.
    pub(super) fn serve(&mut self) -> io::Result<()> {
        let result = self.serve_all();
        self.replies.close();
        result
    }

    fn serve_all(&mut self) -> io::Result<()> {
        for event in take(&mut self.early) {
            if self.handle(event)?.is_break() {
                return Ok(());
            }
        }
        loop {
            let is_swollen = self.is_swollen();
            self.ring.enter(if is_swollen { Wait::AtMost(IDLE) } else { Wait::ForEvent })?;
            let mut is_first = true;
            while let Some(event) = self.ring.next_event()? {
                // A call that waits must not delay the replies before it.
                if !take(&mut is_first) && self.may_wait {
                    self.ring.enter(Wait::Never)?;
                }
                if self.handle(event)?.is_break() {
                    return Ok(());
                }
            }
            if is_swollen && is_first {
                self.give_back();
            }
        }
    }

    fn is_swollen(&self) -> bool {
        self.ring.is_swollen() || self.memory.capacity() > KEPT || self.copied.capacity() > KEPT
    }

    #[cold]
    fn give_back(&mut self) {
        self.ring.give_back();
        (self.memory, self.copied) = (Vec::new(), Vec::new());
        self.replies.give_back();
    }

    /// Handles an event. Breaks if the worker must end.
    fn handle(&mut self, event: Event) -> io::Result<ControlFlow<()>> {
        match event {
            Event::Request(slot) => self.serve_request(slot)?,
            Event::Woken if self.stop.is_stopped() => return Ok(ControlFlow::Break(())),
            Event::Woken => self.replies.late().into_iter().try_for_each(|late| self.answer_late(late))?,
            Event::Refused(queue, errno) => tracing::warn!(%errno, queue, "the kernel refused another slot"),
            Event::Unanswered(errno) => tracing::error!(%errno, "the kernel refused a reply through io_uring"),
            Event::Over => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn serve_request(&mut self, mut slot: Ours) -> io::Result<()> {
        let unique = slot.unique();
        let Some(Loan { message, room }) = self.ring.lend(&mut slot) else {
            tracing::error!(unique, "the kernel sent a malformed message through io_uring");
            return self.ring.answer(slot, Errno::IO.raw_os_error(), Reply::Copied(&[]));
        };
        let header = InHeader::read_from_prefix(message).map_or_else(|_| InHeader::default(), |(header, _)| header);
        self.replies.begin(unique, room);
        let mut body = Body::lent(room, take(&mut self.memory));
        {
            let _inside = self.member.as_ref().map(Member::enter);
            // After DESTROY, too, the kernel ends the connection by itself.
            self.transport.serve(&self.channel, message, &mut body);
        }
        self.memory = body.into_memory();
        match self.replies.end(&mut self.copied) {
            Some(done) if done.is_in_place => self.ring.answer(slot, 0, Reply::Written(done.len)),
            Some(done) => self.ring.answer(slot, done.error, Reply::Copied(&self.copied)),
            // The slot is answered all the same.
            None if is_one_way(&header) => self.ring.answer(slot, 0, Reply::Copied(&[])),
            None => self.park(slot, header.nodeid),
        }
    }

    /// Keeps a request for `node` until its reply comes.
    fn park(&mut self, slot: Ours, node: u64) -> io::Result<()> {
        let queue = self.ring.queue(&slot);
        self.parked.insert(slot.unique(), slot);
        let parked = self.parked.values().filter(|slot| self.ring.queue(slot) == queue).count();
        if self.ring.count(queue) >= self.slots + parked {
            return Ok(());
        }
        if let Err(error) = self.ring.add(queue) {
            tracing::warn!(%error, queue, "no memory for another slot: requests may have to wait for one that waits");
        }
        self.ring.register()?;
        self.ring.enter(Wait::Never)?;
        // The kernel may have kept requests while all slots were taken.
        self.shared.wake(&[queue], &[node]);
        Ok(())
    }

    fn answer_late(&mut self, late: LateReply) -> io::Result<()> {
        let Some(slot) = self.parked.remove(&late.unique) else {
            tracing::debug!(late.unique, "nobody waits for a reply any more");
            return Ok(());
        };
        self.ring.answer(slot, late.error, Reply::Copied(&late.body))
    }
}

/// Returns whether a request has no reply. The kernel sends most such requests through `/dev/fuse`.
fn is_one_way(header: &InHeader) -> bool {
    const ONE_WAY: [u32; 4] = [opcode::FORGET, opcode::BATCH_FORGET, opcode::INTERRUPT, opcode::NOTIFY_REPLY];
    ONE_WAY.contains(&header.opcode)
}
