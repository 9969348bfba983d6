//! io_uring: requests and replies through memory that the kernel and one thread share (Linux 6.14).
//!
//! # What it is
//! The kernel has a queue of requests for each possible processor, and each queue has slots. A slot is memory for one request
//! and its reply. A type shows which side has it: `InKernel`, until a completion makes it [`Ours`], and [`Ring::answer`]
//! gives it back. Only [`Ours`] lends the memory. [`Ring::enter`] hands over all slots that were answered, and waits for the
//! next request, in one system call.
//!
//! # What it is not
//! The whole connection: FORGET, INTERRUPT and notices still go through [`Device`].
//!
//! # Invariants
//! - enter: the kernel reads and writes slots only while this thread is inside `io_uring_enter` (`DEFER_TASKRUN`). No reference
//!   into a slot exists then, as a loan borrows the ring, and to enter takes `&mut Ring`.
//! - mapping: a slot's memory is a mapping of its length that only the slot has. It lives until the slot is dropped.
//! - order: the ring is dropped before its slots, so the kernel has no task of this thread that could still use them.
//! - entry: an entry names nothing but a slot's memory, and descriptors that the ring keeps.
//! - layout: an entry is 128 bytes as `struct io_uring_sqe` has them, without padding.
//!
//! # Where it comes from
//! `fs/fuse/dev_uring.c` in Linux; `Documentation/filesystems/fuse-io-uring.rst`; `io_uring(7)`.

#![allow(unsafe_code, reason = "memory that the kernel writes, and the entries that name it")]

mod slot;

use crate::device::Device;
use crate::waker::Waker;
use crate::wire::abi::{InitOut, UringCmdReq, uring};
use crate::wire::init::{InitFlags, taken};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::io::Errno;
use slot::{Arrived, Slot};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;
use zerocopy::IntoBytes;

pub use slot::{Loan, Reply};

/// The number that the entry of the waker has in place of the number of a slot.
const WAKER: u64 = u64::MAX;

/// The least memory for names and data that the kernel takes (`FUSE_MIN_READ_BUFFER`), and the
/// memory that it uses without `FUSE_MAX_PAGES`.
const MIN_PAYLOAD: u32 = 128 << 10;

/// How many entries can wait to be submitted. If more are pushed, the earlier entries are submitted
/// first.
const ENTRIES: u32 = 32;

/// The slots of one thread. A ring must be used on the thread that made the ring.
pub struct Ring {
    // Before `slots`: see `order`.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    slots: Vec<Slot>,
    /// How many of `slots` were registered.
    registered: usize,
    payload: usize,
    device: Arc<Device>,
    waker: Arc<Waker>,
}

/// A slot that the kernel has.
#[derive(Debug)]
struct InKernel {
    /// Whether the slot was registered, and had no request yet.
    is_new: bool,
}

/// A slot with a request that was not answered. If this value is dropped, the request hangs.
#[derive(Debug)]
pub struct Ours {
    at: usize,
    arrived: Arrived,
}

/// How long [`Ring::enter`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Never,
    /// Until there is an event.
    ForEvent,
    /// As `ForEvent`, but no longer than this (Linux 5.11).
    AtMost(Duration),
}

/// An event in the kernel.
#[derive(Debug)]
pub enum Event {
    /// A request.
    Request(Ours),
    /// The [`Waker`] was called.
    Woken,
    /// The kernel did not take a slot for this queue.
    Refused(u16, Errno),
    /// The kernel did not take a reply. The slot continues with the next request.
    Unanswered(Errno),
    /// The connection has ended.
    Over,
}

impl Ours {
    /// Returns the number of the request.
    #[must_use]
    pub const fn unique(&self) -> u64 {
        self.arrived.commit_id
    }
}

impl Ring {
    /// Creates a ring without slots. Each slot that is added later has `payload` bytes of memory
    /// for names and data ([`payload_bytes`]).
    ///
    /// # Errors
    /// As for `io_uring_setup(2)`: `EPERM` (forbidden by `kernel.io_uring_disabled`, or a filter),
    /// `ENOSYS`, `ENOMEM`.
    pub fn new(device: Arc<Device>, waker: Arc<Waker>, payload: usize) -> io::Result<Self> {
        let mut builder = IoUring::<squeue::Entry128, cqueue::Entry>::builder();
        // One thread uses it, and the kernel does its part when that thread enters: the invariant `enter`.
        builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(ENTRIES * 4).dontfork();
        Ok(Self { ring: builder.build(ENTRIES)?, slots: Vec::new(), registered: 0, payload, device, waker })
    }

    /// Adds a slot for the queue of the processor `queue`. The kernel does not have it before [`register`](Self::register).
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn add(&mut self, queue: u16) -> io::Result<()> {
        self.slots.push(Slot::new(queue, self.payload)?);
        Ok(())
    }

    /// Registers the slots that were added since the last time. The kernel gets these slots with
    /// the next [`enter`](Self::enter), and refuses those that it does not take at once.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn register(&mut self) -> io::Result<()> {
        (self.registered..self.slots.len()).try_for_each(|at| {
            self.registered = at + 1;
            self.register_slot(at)
        })
    }

    /// Makes the kernel refuse a slot: if not all queues have one yet, it then sends requests through [`Device`].
    ///
    /// # Errors
    /// As for [`enter`](Self::enter); `EPROTO`: it was not refused.
    pub fn be_refused(&mut self) -> io::Result<()> {
        /// A queue that no machine has.
        const NO_QUEUE: u16 = u16::MAX;
        self.add(NO_QUEUE)?;
        self.register()?;
        self.enter(Wait::Never)?;
        let event = self.next_event()?;
        if matches!(event, Some(Event::Refused(NO_QUEUE, _))) { Ok(()) } else { Err(Errno::PROTO.into()) }
    }

    fn register_slot(&mut self, at: usize) -> io::Result<()> {
        let slot = &mut self.slots[at];
        let parts = slot.parts();
        slot.in_kernel = Some(InKernel { is_new: true });
        let mut entry = command(&self.device, uring::REGISTER, slot.queue, 0, Some(parts));
        set_parts(&mut entry);
        self.push(entry.user_data(at as u64))
    }

    /// Makes [`Event::Woken`] of the next call of the waker.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn watch(&mut self) -> io::Result<()> {
        /// `POLLIN` of `poll(2)`.
        const READABLE: u32 = 1;
        let entry = opcode::PollAdd::new(types::Fd(self.waker.as_fd().as_raw_fd()), READABLE).build();
        self.push(squeue::Entry128::from(entry).user_data(WAKER))
    }

    fn push(&mut self, entry: squeue::Entry128) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.enter(Wait::Never)?;
        }
        // SAFETY: entry: the memory that it names lives as long as the ring.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY.into())
    }

    /// Hands the kernel the answered and added entries, and then waits for an event.
    ///
    /// # Errors
    /// As for `io_uring_enter(2)`, but for signals and a lack that passes.
    pub fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::Never => self.ring.submit(),
            Wait::ForEvent => self.ring.submit_and_wait(1),
            Wait::AtMost(time) => {
                // The kernel sees the pushed entries when the queue is dropped.
                drop(self.ring.submission());
                let time = types::Timespec::from(time);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::TIME) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Returns whether a slot that the kernel has keeps the memory of a long request.
    #[must_use]
    pub fn is_swollen(&self) -> bool {
        self.slots.iter().any(Slot::is_swollen)
    }

    /// Gives the memory that long requests have used back to the system.
    pub fn give_back(&mut self) {
        self.slots.iter_mut().filter(|slot| slot.is_swollen()).for_each(Slot::give_back);
    }

    /// Returns the next event that has happened, if any.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        let Some(done) = self.ring.completion().next() else { return Ok(None) };
        if done.user_data() == WAKER {
            self.waker.rest();
            self.watch()?;
            return Ok(Some(Event::Woken));
        }
        let at = usize::try_from(done.user_data()).unwrap_or(usize::MAX);
        let slot = self.slots.get_mut(at).and_then(|slot| slot.in_kernel.take().map(|state| (slot, state)));
        // The kernel completes only its own entries.
        let Some((slot, InKernel { is_new })) = slot else { return Err(Errno::PROTO.into()) };
        if done.result() >= 0 {
            return Ok(Some(Event::Request(Ours { at, arrived: slot.arrived() })));
        }
        let errno = Errno::from_io_error(&io::Error::from_raw_os_error(done.result().saturating_neg()));
        let event = match errno.unwrap_or(Errno::IO) {
            Errno::NOTCONN | Errno::CONNABORTED | Errno::CANCELED => Event::Over,
            errno if is_new => Event::Refused(slot.queue, errno),
            errno => {
                self.register_slot(at)?;
                Event::Unanswered(errno)
            }
        };
        Ok(Some(event))
    }

    /// Returns the queue of a slot.
    #[must_use]
    pub fn queue(&self, slot: &Ours) -> u16 {
        self.slots[slot.at].queue
    }

    /// Returns the number of slots for a queue.
    #[must_use]
    pub fn count(&self, queue: u16) -> usize {
        self.slots.iter().filter(|slot| slot.queue == queue).count()
    }

    /// Returns the request in a slot as one message, and memory for the body of the reply. Returns
    /// `None` if the lengths in the request do not fit each other.
    pub fn lend(&mut self, slot: &mut Ours) -> Option<Loan<'_>> {
        self.slots[slot.at].lend(&slot.arrived)
    }

    /// Answers the request in a slot: with a body, or with the errno `error` and no body.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter). A body that is longer than the slot becomes `EIO`.
    pub fn answer(&mut self, slot: Ours, error: i32, reply: Reply<'_>) -> io::Result<()> {
        let Ours { at, arrived } = slot;
        let slot = &mut self.slots[at];
        slot.put_reply(&arrived, error, reply);
        slot.in_kernel = Some(InKernel { is_new: false });
        let entry = command(&self.device, uring::COMMIT_AND_FETCH, slot.queue, arrived.commit_id, None);
        self.push(entry.user_data(at as u64))
    }
}

impl core::fmt::Debug for Ring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ring").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

/// Returns how many bytes a slot's memory for names and data must have, after this reply to INIT.
#[must_use]
pub fn payload_bytes(out: &InitOut) -> usize {
    let page = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    let pages = if taken(out).contains(InitFlags::MAX_PAGES) { u32::from(out.max_pages) } else { 0 };
    let bytes = MIN_PAYLOAD.max(out.max_write).max(pages.saturating_mul(page));
    bytes.next_multiple_of(page) as usize
}

fn command(device: &Device, code: u32, queue: u16, commit_id: u64, parts: Option<u64>) -> squeue::Entry128 {
    let request = UringCmdReq { commit_id, qid: queue, ..UringCmdReq::default() };
    let mut bytes = [0; 80];
    bytes[..size_of::<UringCmdReq>()].copy_from_slice(request.as_bytes());
    opcode::UringCmd80::new(types::Fd(device.as_fd().as_raw_fd()), code).cmd(bytes).addr(parts).build()
}

/// Sets the number of parts of a slot's memory, for which [`opcode::UringCmd80`] has no setter.
fn set_parts(entry: &mut squeue::Entry128) {
    /// Offset of `len` in `struct io_uring_sqe`, in units of 4 bytes.
    const LEN: usize = 24 / 4;
    // SAFETY: layout: the number is within the entry.
    let len = unsafe { core::ptr::from_mut(entry).cast::<u32>().add(LEN) };
    // SAFETY: layout: it is a number of 32 bits, aligned as the entry is to 8 bytes.
    unsafe { len.write(slot::PARTS) };
}

#[cfg(test)]
mod tests;
