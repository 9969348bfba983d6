//! The parts that need no mount: entries, the memory of slots, and a ring whose device is none.

use super::slot::{DATA, KEPT};
use super::*;
use crate::wire::abi::{InHeader, OutHeader, UringEntInOut};
use crate::wire::{Operation, Request};
use std::os::fd::OwnedFd;
use zerocopy::FromBytes;

const PAYLOAD: usize = 128 << 10;

/// Puts a request into the slot, as the kernel does.
fn put(slot: &mut Slot, opcode: u32, operation: &[u8], data: &[u8], stated: u32) -> Arrived {
    let len = (size_of::<InHeader>() + operation.len() + data.len()) as u32;
    let header = InHeader { len, opcode, unique: 8, nodeid: 1, ..InHeader::default() };
    let lengths = UringEntInOut { commit_id: 8, payload_sz: stated, ..UringEntInOut::default() };
    let memory = slot.as_kernel();
    memory[..40].copy_from_slice(header.as_bytes());
    memory[128..128 + operation.len()].copy_from_slice(operation);
    memory[256..288].copy_from_slice(lengths.as_bytes());
    memory[4096..4096 + data.len()].copy_from_slice(data);
    slot.arrived()
}

#[test]
fn a_request_in_three_places_is_one_message() {
    use crate::wire::abi::{GetattrIn, MkdirIn, opcode};
    let mut slot = Slot::new(0, PAYLOAD).expect("memory");
    let made = MkdirIn { mode: 0o755, umask: 0o22 };
    let arrived = put(&mut slot, opcode::MKDIR, made.as_bytes(), b"name\0", 5);
    let Loan { message, room } = slot.lend(&arrived).expect("it fits");
    let request = Request::parse(message).expect("a request");
    assert_eq!((request.header.unique, request.operation), (8, Operation::Mkdir(made, b"name")));
    assert_eq!(room.len(), 0, "the name is there");
    let arrived = put(&mut slot, opcode::GETATTR, GetattrIn::default().as_bytes(), b"", 0);
    let Loan { message, room } = slot.lend(&arrived).expect("it fits");
    assert_eq!(Request::parse(message).expect("a request").operation, Operation::Getattr);
    assert_eq!(room.len(), PAYLOAD);
    let arrived = put(&mut slot, opcode::LOOKUP, b"", b"name\0", 5);
    let message = slot.lend(&arrived).expect("it fits").message;
    assert_eq!(Request::parse(message).expect("a request").operation, Operation::Lookup(b"name"));
}

#[test]
fn lengths_that_lie_lend_nothing() {
    let mut slot = Slot::new(0, PAYLOAD).expect("memory");
    // More data than the header has; a struct that is longer than its place; data beyond the memory.
    for (operation, data, stated) in
        [(&b""[..], &b"name\0"[..], 6), (&[0; 128], b"x", 0), (b"", b"", u32::MAX), (b"", b"", PAYLOAD as u32 + 1)]
    {
        let arrived = put(&mut slot, 1, operation, data, stated);
        assert!(slot.lend(&arrived).is_none(), "{stated}");
    }
}

/// Header, stated length and body of a reply.
fn sent(slot: &mut Slot, error: i32, reply: Reply<'_>) -> (i32, u32, Vec<u8>) {
    let arrived = put(slot, 3, &[], &[], 0);
    slot.put_reply(&arrived, error, reply);
    let memory = slot.as_kernel();
    let (header, _) = OutHeader::read_from_prefix(memory).expect("a header");
    let (lengths, _) = UringEntInOut::read_from_prefix(&memory[256..]).expect("lengths");
    assert_eq!((header.unique, lengths.commit_id, header.len), (8, 8, lengths.payload_sz + 16));
    let body = memory[4096..].get(..lengths.payload_sz as usize).expect("within the memory").to_vec();
    (header.error, header.len, body)
}

#[test]
fn a_reply_states_what_was_written_and_no_more() {
    let mut slot = Slot::new(0, PAYLOAD).expect("memory");
    assert_eq!(sent(&mut slot, 0, Reply::Copied(b"body")), (0, 20, b"body".to_vec()));
    assert_eq!(sent(&mut slot, 0, Reply::Written(2)), (0, 18, b"bo".to_vec()));
    assert_eq!(sent(&mut slot, 2, Reply::Copied(b"not sent")), (-2, 16, Vec::new()));
    assert_eq!(sent(&mut slot, 0, Reply::Copied(&vec![1; PAYLOAD + 1])), (-5, 16, Vec::new()));
    assert_eq!(sent(&mut slot, 0, Reply::Written(PAYLOAD + 1)), (-5, 16, Vec::new()));
    assert_eq!(sent(&mut slot, 0, Reply::Copied(&vec![1; PAYLOAD])).1 as usize, PAYLOAD + 16);
}

/// Pages of the slot's memory that are there.
fn resident(slot: &mut Slot) -> usize {
    use std::os::unix::fs::FileExt;
    const PRESENT: u64 = 1 << 63;
    let (page, memory) = (rustix::param::page_size(), slot.as_kernel());
    let (first, count) = (memory.as_ptr().addr() / page, memory.len() / page);
    let mut entries = vec![0; count * 8];
    let pagemap = std::fs::File::open("/proc/self/pagemap").expect("this process's");
    pagemap.read_exact_at(&mut entries, first as u64 * 8).expect("pages of this process");
    let entries = entries.chunks(8).map(|entry| u64::read_from_bytes(entry).expect("8 bytes"));
    entries.filter(|entry| entry & PRESENT != 0).count()
}

#[test]
fn memory_of_long_requests_is_given_back_and_zero_again() {
    let mut slot = Slot::new(0, PAYLOAD).expect("memory");
    let pages = (DATA + PAYLOAD) / rustix::param::page_size();
    let kept = (DATA + KEPT) / rustix::param::page_size();
    let arrived = put(&mut slot, 1, &[], &vec![7; PAYLOAD], PAYLOAD as u32);
    assert!(!slot.is_swollen(), "it is not the kernel's");
    slot.put_reply(&arrived, 0, Reply::Copied(b"short"));
    slot.in_kernel = Some(InKernel { is_new: false });
    assert!(slot.is_swollen());
    assert_eq!(resident(&mut slot), pages);
    slot.give_back();
    assert!(!slot.is_swollen());
    assert_eq!(resident(&mut slot), kept);
    assert_eq!(slot.as_kernel()[DATA + KEPT..], vec![0; PAYLOAD - KEPT]);
    // A short request leaves it as it is; a long reply does not.
    let arrived = put(&mut slot, 1, &[], &vec![7; KEPT], KEPT as u32);
    assert!(!slot.is_swollen());
    slot.put_reply(&arrived, 0, Reply::Copied(&vec![7; KEPT + 1]));
    assert!(slot.is_swollen());
}

#[test]
fn a_wait_with_a_limit_ends_without_an_event() {
    let Some(mut ring) = ring() else { return };
    ring.watch().expect("room");
    // With something to hand over, and without.
    for _ in 0..2 {
        ring.enter(Wait::AtMost(Duration::from_millis(1))).expect("entered");
        assert!(ring.next_event().expect("events").is_none());
    }
    ring.waker.wake();
    ring.enter(Wait::AtMost(Duration::from_secs(3600))).expect("entered");
    assert!(matches!(ring.next_event().expect("events"), Some(Event::Woken)));
}

#[test]
fn a_slot_has_the_memory_that_the_kernel_will_use() {
    let page = u32::try_from(rustix::param::page_size()).expect("a number");
    let flags = InitFlags::MAX_PAGES.bits() as u32;
    for (max_write, max_pages, flags, bytes) in [
        (1, 1, flags, MIN_PAYLOAD),
        (1 << 20, 256, flags, 1 << 20),
        ((1 << 20) + 1, 0, 0, (1 << 20) + page),
        (4096, 1024, flags, 1024 * page),
        (4096, 1024, 0, MIN_PAYLOAD),
    ] {
        let out = InitOut { max_write, max_pages, flags, ..InitOut::default() };
        assert_eq!(payload_bytes(&out), bytes as usize, "{max_write}, {max_pages}, {flags}");
    }
}

fn none() -> Arc<Device> {
    Arc::new(OwnedFd::from(io::pipe().expect("a pipe").0).into())
}

#[test]
fn a_command_is_laid_out_as_the_kernel_reads_it() {
    let device = none();
    let mut entry = command(&device, uring::REGISTER, 7, 9, Some(0x1234));
    set_parts(&mut entry);
    let entry = entry.user_data(3);
    // SAFETY: layout: all of its bytes are initialised.
    let bytes: [u8; 128] = unsafe { core::mem::transmute_copy(&entry) };
    let word = |at: usize| u64::read_from_bytes(&bytes[at..at + 8]).expect("8 bytes");
    let half = |at: usize| u32::read_from_bytes(&bytes[at..at + 4]).expect("4 bytes");
    assert_eq!(half(4), device.as_fd().as_raw_fd() as u32);
    assert_eq!((half(8), word(16), half(24), word(32)), (uring::REGISTER, 0x1234, 2, 3));
    assert_eq!((word(48), word(56), half(64)), (0, 9, 7), "flags, number, queue");
}

/// A ring over a device that is none. `None`, with the line SKIPPED, if this machine has no io_uring.
fn ring() -> Option<Ring> {
    let waker = Arc::new(Waker::new().expect("an eventfd"));
    let ring = Ring::new(none(), waker, PAYLOAD);
    ring.inspect_err(|error| println!("SKIPPED: no io_uring: {error}")).ok()
}

#[test]
fn a_call_of_the_waker_is_an_event_each_time() {
    let Some(mut ring) = ring() else { return };
    let waker = ring.waker.clone();
    ring.watch().expect("room");
    for _ in 0..3 {
        ring.enter(Wait::Never).expect("entered");
        assert!(ring.next_event().expect("events").is_none());
        std::thread::scope(|scope| scope.spawn(|| waker.wake()).join()).expect("no panic");
        ring.enter(Wait::ForEvent).expect("entered");
        assert!(matches!(ring.next_event().expect("events"), Some(Event::Woken)));
    }
}

#[test]
fn a_slot_that_is_refused_is_an_event_and_no_request() {
    let Some(mut ring) = ring() else { return };
    // More than the ring has entries.
    for queue in 0..100 {
        ring.add(queue).expect("memory");
    }
    ring.register().expect("entered");
    let mut refused = Vec::new();
    while refused.len() < 100 {
        ring.enter(Wait::ForEvent).expect("entered");
        while let Some(event) = ring.next_event().expect("events") {
            let Event::Refused(queue, errno) = event else { panic!("{event:?}") };
            assert_eq!(errno, Errno::OPNOTSUPP);
            refused.push(queue);
        }
    }
    refused.sort_unstable();
    assert_eq!(refused, (0..100).collect::<Vec<_>>());
    ring.be_refused().expect("refused");
}
