//! Messages of the kernel's protocol, as bytes, to the transport of a FUSE session over a tree in memory, without a kernel.
//!
//! A message is any bytes, or a header that fits its length with any operation and any arguments. No panic, not even one that
//! the transport contains; exactly one reply to each request, none to others; no reply is longer than its request allows; and
//! at the end nothing is held.

use crate::guarded_tree::tree;
use crate::input::Input;
use fuse::{Channel, Gauge, MountOptions, Next, Session, SessionOptions, Transport};
use fusedev::wire::abi::{CreateOut, EntryOut, ExtHeader, InHeader, IoctlIn, IoctlOut, OpenOut, ioctl, opcode};
use fusedev::wire::{Body, Malformed, Operation, Request};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::{FromBytes, IntoBytes};

/// One run sends at most this many messages.
const MAX_STEPS: usize = 64;

/// All errnos of Linux are below this number.
const MAX_ERRNO: i32 = 4096;

/// Collects the replies. A reply has the number of the request, an errno and a body.
#[derive(Debug, Default)]
struct Kernel(Mutex<Vec<(u64, i32, Vec<u8>)>>);

impl Kernel {
    fn taken(&self) -> Vec<(u64, i32, Vec<u8>)> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Channel for Kernel {
    fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((unique, error, body.to_vec()));
        Ok(())
    }

    fn open_backing(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn close_backing(&self, _: i32) -> io::Result<()> {
        Ok(())
    }
}

/// Runs one input: its first byte chooses the options, and the rest makes the messages.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.byte();
    let (vfs, _counts) = tree();
    let session = SessionOptions {
        // Without: the data of files are not waited for, which would need a kernel.
        writeback: false,
        locks: flags & 1 != 0,
        no_open: flags & 2 != 0,
        labels: flags & 8 != 0,
        max_nodes: 8,
        ..SessionOptions::default()
    };
    let options = MountOptions { session: session.clone(), allow_other: flags & 4 != 0, ..MountOptions::default() };
    let session = Session::new(&vfs, session).expect("a session");
    let transport = Transport::new(session.clone(), &options);
    let kernel = Arc::new(Kernel::default());
    let channel: Arc<dyn Channel> = kernel.clone();
    let (mut body, mut handle, mut node) = (Body::new(), 0, 1);
    let (mut waits, mut waiting) = (Vec::new(), Vec::new());
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        let bytes = message(&mut input, handle, node);
        let parsed = Request::parse(&bytes);
        if matches!(parsed, Ok(Request { operation: Operation::Setlkw(_), .. })) {
            waits.push(bytes);
            continue;
        }
        let next = transport.serve(&channel, &bytes, &mut body);
        let replies = kernel.taken();
        check(&parsed, &replies, session.options().locks);
        if next == Next::End {
            break;
        }
        if let (Ok(request), Some((_, 0, body))) = (parsed, replies.first()) {
            match request.operation {
                Operation::Open(_) | Operation::Opendir(_) => handle = read::<OpenOut>(body).fh,
                Operation::Create(..) | Operation::Tmpfile(_) => {
                    let made: CreateOut = read(body);
                    (handle, node) = (made.open.fh, made.entry.nodeid);
                }
                Operation::Lookup(_) | Operation::Mkdir(..) | Operation::Mknod(..) | Operation::Symlink(..) => {
                    node = read::<EntryOut>(body).nodeid;
                }
                _ => {}
            }
        }
    }
    // Each of these is answered once: at once, when another releases its lock, or at the end.
    for (unique, mut bytes) in (1_000_000..).zip(waits) {
        bytes[8..16].copy_from_slice(&u64::to_ne_bytes(unique));
        waiting.push(unique);
        transport.serve(&channel, &bytes, &mut body);
    }
    assert_eq!(session.metrics().get(Gauge::Panics), 0, "a panic was contained");
    session.end();
    let mut answered: Vec<u64> = kernel.taken().into_iter().map(|(unique, ..)| unique).collect();
    answered.sort_unstable();
    assert_eq!(answered, waiting);
    assert_eq!((session.known_nodes(), session.open_handles()), (1, 0));
}

fn read<T: FromBytes>(body: &[u8]) -> T {
    T::read_from_bytes(body).expect("the struct of the operation, and nothing else")
}

/// Makes one message. Some messages are any bytes. Most have a header with the right length, and
/// arguments that often begin with `handle`, the last opened handle.
fn message(input: &mut Input<'_>, handle: u64, node: u64) -> Vec<u8> {
    let kind = input.byte();
    if kind < 16 {
        return input.take(usize::from(kind) * 8).to_vec();
    }
    let opcode = u32::from(input.byte()) % (opcode::TMPFILE + 8);
    let mut arguments = if kind & 1 == 0 { handle.as_bytes().to_vec() } else { Vec::new() };
    let len = usize::from(input.byte());
    arguments.extend_from_slice(input.take(len));
    // So that structs are long enough, and names end.
    arguments.resize(arguments.len() + usize::from(kind & 0x7e), 0);
    if opcode == opcode::IOCTL && arguments.len() >= size_of::<IoctlIn>() {
        // So that its command is often a known one, and its argument is there.
        const KNOWN: [u32; 4] = [ioctl::GETFLAGS, ioctl::SETFLAGS, ioctl::FSGETXATTR, ioctl::FSSETXATTR];
        arguments[12..16].copy_from_slice(&KNOWN[usize::from(kind / 16) % KNOWN.len()].to_ne_bytes());
        let argument = (arguments.len() - size_of::<IoctlIn>()) as u32;
        arguments[24..28].copy_from_slice(&argument.to_ne_bytes());
    }
    let extensions = if kind >= 0xf0 { extensions(input, kind) } else { Vec::new() };
    let total_extlen = (extensions.len() / 8) as u16;
    arguments.extend_from_slice(&extensions);
    let header = InHeader {
        len: (size_of::<InHeader>() + arguments.len()) as u32,
        opcode,
        unique: u64::from(kind) << 8 | 2,
        nodeid: if kind & 4 == 0 { 1 } else { node },
        uid: if kind & 8 == 0 { 0 } else { 1001 },
        gid: 0,
        pid: 0,
        total_extlen: total_extlen + u16::from(kind == 255),
        padding: 0,
    };
    [header.as_bytes(), &arguments].concat()
}

/// Makes an extension of a message. Its header has the right length, or, if `kind` is 0xfe, a
/// length that is 8 too large.
fn extensions(input: &mut Input<'_>, kind: u8) -> Vec<u8> {
    let (of_kind, len) = (u32::from(input.byte() & 63), usize::from(input.byte() & 63));
    let mut content = input.take(len).to_vec();
    content.resize(content.len().next_multiple_of(8), 0);
    let size = (size_of::<ExtHeader>() + content.len()) as u32 + u32::from(kind == 0xfe) * 8;
    [ExtHeader { size, kind: of_kind }.as_bytes(), &content].concat()
}

fn check(parsed: &Result<Request<'_>, Malformed>, replies: &[(u64, i32, Vec<u8>)], has_waits: bool) {
    let unique = match parsed {
        Err(Malformed::NoHeader) => None,
        Err(Malformed::Request(unique)) => Some(*unique),
        Ok(Request {
            operation: Operation::Forget(_) | Operation::BatchForget(_) | Operation::NotifyReply, ..
        }) => None,
        Ok(Request { operation: Operation::Interrupt(_), .. }) if has_waits => None,
        Ok(request) => Some(request.header.unique),
    };
    let got: Vec<u64> = replies.iter().map(|(unique, ..)| *unique).collect();
    assert_eq!(got, unique.into_iter().collect::<Vec<_>>(), "{parsed:?}");
    let Some((_, error, body)) = replies.first() else { return };
    assert!((0..MAX_ERRNO).contains(error) && (*error == 0 || body.is_empty()), "{parsed:?}: {error}");
    let limit = match parsed.as_ref().map(|request| request.operation) {
        Ok(Operation::Read(read) | Operation::Readdir(read) | Operation::Readdirplus(read)) => Some(read.size),
        Ok(Operation::Getxattr(get, _) | Operation::Listxattr(get)) if get.size > 0 => Some(get.size),
        Ok(Operation::Ioctl(call, _)) => Some(call.out_size.saturating_add(size_of::<IoctlOut>() as u32)),
        Err(_) => Some(0),
        Ok(_) => None,
    };
    assert!(limit.is_none_or(|limit| body.len() <= limit as usize), "{parsed:?}: {} bytes", body.len());
}
