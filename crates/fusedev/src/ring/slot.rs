//! The memory of a slot.
//!
//! ```text
//! 0        128                  256               512     ...            4096
//! header | operation's struct | lengths, number |  parts | the message's start | names and data; body of the reply
//! ```
//!
//! The kernel writes header, struct, and names and data to different places. Header and struct are copied to where the names
//! begin, so that a request is one message as it is from `/dev/fuse`.

use super::InKernel;
use crate::wire::abi::{InHeader, OutHeader, UringEntInOut};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;
use std::ptr::{NonNull, null_mut};
use zerocopy::{FromBytes, IntoBytes};

/// Parts of the memory that the kernel gets: headers; names and data.
pub(super) const PARTS: u32 = 2;

/// Offset of the operation's struct, and its room.
const OPERATION: usize = 128;

/// Offset of [`UringEntInOut`].
const LENGTHS: usize = 256;

/// Bytes of the headers: `struct fuse_uring_req_header`.
const HEADERS: usize = LENGTHS + size_of::<UringEntInOut>();

/// Offset of the list of [`PARTS`]: address and length of each.
const LIST: usize = 512;

/// Offset of names and data.
pub(super) const DATA: usize = 4096;

/// Bytes of names and data that a slot keeps when it [gives memory back](Slot::give_back).
pub(super) const KEPT: usize = 16 << 10;

/// A request that has arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    /// The number by which the kernel finds the request again.
    pub(super) commit_id: u64,
    /// Bytes of names and data.
    data: usize,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Slot {
    memory: Memory,
    /// The processor whose requests the slot gets.
    pub(super) queue: u16,
    /// `None`: the slot is [`Ours`](super::Ours), or was refused.
    pub(super) in_kernel: Option<InKernel>,
    /// Bytes of names and data that were used since memory was last released.
    used: usize,
}

/// The memory of a slot, which [`Ring::lend`](super::Ring::lend) lends.
#[derive(Debug)]
pub struct Loan<'r> {
    /// The request.
    pub message: &'r [u8],
    /// Memory for the body of the reply. Empty if the request has names or data, which use the same
    /// memory.
    pub room: &'r mut [u8],
}

/// The body of a reply.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'b> {
    /// So many bytes at the start of [`Loan::room`].
    Written(usize),
    /// These bytes.
    Copied(&'b [u8]),
}

impl Slot {
    /// Creates a slot with `payload` bytes of memory for names and data.
    pub(super) fn new(queue: u16, payload: usize) -> io::Result<Self> {
        Ok(Self { memory: Memory::map(DATA + payload)?, queue, in_kernel: None, used: 0 })
    }

    /// Writes the list of parts, and returns the address of this list.
    pub(super) fn parts(&mut self) -> u64 {
        let start = self.memory.start.as_ptr().expose_provenance();
        let list = [start, HEADERS, start + DATA, self.memory.len - DATA];
        self.memory.bytes()[LIST..LIST + size_of_val(&list)].copy_from_slice(list.as_bytes());
        (start + LIST) as u64
    }

    /// Reads the number and the length of the request that the kernel has put into the slot.
    pub(super) fn arrived(&mut self) -> Arrived {
        let lengths = self.lengths();
        self.used = self.used.max(lengths.payload_sz as usize);
        Arrived { commit_id: lengths.commit_id, data: lengths.payload_sz as usize }
    }

    fn lengths(&mut self) -> UringEntInOut {
        let lengths = UringEntInOut::read_from_prefix(&self.memory.bytes()[LENGTHS..]);
        lengths.map(|(lengths, _)| lengths).unwrap_or_default()
    }

    pub(super) fn lend(&mut self, arrived: &Arrived) -> Option<Loan<'_>> {
        const HEADER: usize = size_of::<InHeader>();
        let bytes = self.memory.bytes();
        let (header, _) = InHeader::read_from_prefix(bytes).ok()?;
        // The kernel does not state the length of the struct: it is the rest of the whole after
        // header, names and data.
        let operation = (header.len as usize).checked_sub(HEADER)?.checked_sub(arrived.data)?;
        if operation > LENGTHS - OPERATION {
            return None;
        }
        let start = DATA - operation - HEADER;
        bytes.copy_within(..HEADER, start);
        bytes.copy_within(OPERATION..OPERATION + operation, start + HEADER);
        let (front, back) = bytes.split_at_mut_checked(DATA + arrived.data)?;
        Some(Loan { message: &front[start..], room: if arrived.data == 0 { back } else { &mut [] } })
    }

    pub(super) fn put_reply(&mut self, arrived: &Arrived, error: i32, reply: Reply<'_>) {
        let room = self.memory.len - DATA;
        let len = match reply {
            Reply::Written(len) => len,
            Reply::Copied(body) => body.len(),
        };
        let error = if error == 0 && len > room { rustix::io::Errno::IO.raw_os_error() } else { error };
        let len = if error == 0 { len } else { 0 };
        self.used = self.used.max(len);
        let bytes = self.memory.bytes();
        if let (0, Reply::Copied(body)) = (error, reply) {
            bytes[DATA..DATA + len].copy_from_slice(body);
        }
        // Both fit: the memory is longer than a page.
        let total = (size_of::<OutHeader>() + len) as u32;
        let header = OutHeader { len: total, error: -error, unique: arrived.commit_id };
        bytes[..size_of::<OutHeader>()].copy_from_slice(header.as_bytes());
        let lengths =
            UringEntInOut { commit_id: arrived.commit_id, payload_sz: len as u32, ..UringEntInOut::default() };
        bytes[LENGTHS..HEADERS].copy_from_slice(lengths.as_bytes());
    }

    /// Returns whether the kernel has the slot, and the slot has used more memory than it keeps
    /// ([`KEPT`]).
    pub(super) fn is_swollen(&self) -> bool {
        self.in_kernel.is_some() && self.used > KEPT
    }

    /// Gives the memory of names and data back to the system, but for [`KEPT`] bytes.
    pub(super) fn give_back(&mut self) {
        self.used = 0;
        self.memory.give_back(DATA + KEPT);
    }

    /// Returns all memory of the slot, to which a test writes in place of the kernel.
    #[cfg(test)]
    pub(super) fn as_kernel(&mut self) -> &mut [u8] {
        self.memory.bytes()
    }
}

/// Memory of the process, zero at first. Pages that nobody touches cost nothing.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    len: usize,
}

impl Memory {
    fn map(len: usize) -> io::Result<Self> {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: mapping: the kernel chooses an address where nothing is.
        let start = unsafe { mmap_anonymous(null_mut(), len, rights, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { start, len })
    }

    /// Gives pages from `at` on back to the system. They are zero when they are used again.
    fn give_back(&mut self, at: usize) {
        let Some(rest) = self.bytes().get_mut(at..) else { return };
        // SAFETY: mapping, enter: the pages are this memory's, and nobody else uses them as long as it is borrowed. Zeros are
        // valid bytes.
        let _ = unsafe { madvise(rest.as_mut_ptr().cast(), rest.len(), Advice::LinuxDontNeed) };
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapping, enter: the memory is of this length and initialised, and nobody else uses it as long as the ring is
        // borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapping, order: it is this memory's, and no reference and no ring uses it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
