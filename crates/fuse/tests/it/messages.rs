//! Messages as bytes, without a kernel: each request gets one reply, whatever its bytes are.

use fusedev::wire::abi::{
    AttrOut, BatchForgetIn, CreateIn, CreateOut, Dirent, DirentPlus, EntryOut, ExtHeader, ForgetIn, ForgetOne,
    GetxattrIn, InHeader, LkIn, OpenIn, OpenOut, ReadIn, ReleaseIn, Secctx, SetattrIn, SetxattrIn, WriteIn, WriteOut,
    fattr, fopen, opcode, write,
};
use fusedev::wire::{Body, Request};
use lightfoot_fuse::{Channel, Gauge, MountOptions, Next, Session, SessionOptions, Transport};
use parking_lot::Mutex;
use ramfs::RamFs;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use vfs::{Errno, Vfs};
use zerocopy::{FromBytes, IntoBytes};

/// A reply: number of the request, errno, body.
type Sent = (u64, i32, Vec<u8>);

#[derive(Debug, Default)]
struct Kernel(Mutex<Vec<Sent>>);

impl Channel for Kernel {
    fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
        self.0.lock().push((unique, error, body.to_vec()));
        Ok(())
    }

    fn open_backing(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn close_backing(&self, _: i32) -> io::Result<()> {
        Ok(())
    }
}

/// A transport over an empty tree.
struct Server {
    session: Arc<Session>,
    transport: Transport,
    kernel: Arc<Kernel>,
    body: Body<'static>,
}

impl Server {
    fn new(options: MountOptions) -> Self {
        let session = Session::new(&Vfs::new(RamFs::new()), options.session.clone()).unwrap();
        let transport = Transport::new(session.clone(), &options);
        Self { session, transport, kernel: Arc::default(), body: Body::new() }
    }

    /// The replies to a message.
    fn send(&mut self, message: &[u8]) -> (Next, Vec<Sent>) {
        let channel: Arc<dyn Channel> = self.kernel.clone();
        let next = self.transport.serve(&channel, message, &mut self.body);
        (next, std::mem::take(&mut *self.kernel.0.lock()))
    }

    /// The body of the reply to a request of root, or its errno.
    fn ask(&mut self, opcode: u32, node: u64, parts: &[&[u8]]) -> Result<Vec<u8>, Errno> {
        let (next, replies) = self.send(&message(opcode, node, parts));
        let [(7, error, body)] = &replies[..] else { panic!("one reply to {opcode}: {replies:?}") };
        assert_eq!(next, Next::More);
        if *error == 0 { Ok(body.clone()) } else { Err(Errno::from_raw(*error)) }
    }

    /// The struct of a reply, which must be all of it.
    fn get<T: FromBytes>(&mut self, opcode: u32, node: u64, parts: &[&[u8]]) -> T {
        let body = self.ask(opcode, node, parts).unwrap();
        T::read_from_bytes(&body).unwrap_or_else(|_| panic!("{opcode}: {} bytes", body.len()))
    }
}

fn message(opcode: u32, nodeid: u64, parts: &[&[u8]]) -> Vec<u8> {
    let arguments = parts.concat();
    let len = (size_of::<InHeader>() + arguments.len()) as u32;
    let header =
        InHeader { len, opcode, unique: 7, nodeid, uid: rustix::process::geteuid().as_raw(), ..InHeader::default() };
    [header.as_bytes(), &arguments].concat()
}

fn options() -> MountOptions {
    MountOptions { session: SessionOptions { locks: true, ..SessionOptions::default() }, ..MountOptions::default() }
}

/// A file `file` with the contents `contents`, open: its node and handle.
fn make_file(server: &mut Server) -> (u64, u64) {
    let create = CreateIn { flags: 2, mode: 0o100_644, umask: 0o027, open_flags: 0 };
    let made: CreateOut = server.get(opcode::CREATE, 1, &[create.as_bytes(), b"file\0"]);
    assert_eq!(made.entry.attr.mode, 0o100_640);
    let write = WriteIn { fh: made.open.fh, size: 8, ..WriteIn::default() };
    let written: WriteOut = server.get(opcode::WRITE, made.entry.nodeid, &[write.as_bytes(), b"contents"]);
    assert_eq!(written.size, 8);
    (made.entry.nodeid, made.open.fh)
}

#[test]
fn a_file_is_made_read_changed_and_removed() {
    let mut server = Server::new(options());
    let (node, fh) = make_file(&mut server);
    let read = |offset, size| ReadIn { fh, offset, size, ..ReadIn::default() };
    assert_eq!(server.ask(opcode::READ, node, &[read(3, 100).as_bytes()]), Ok(b"tents".to_vec()));
    assert_eq!(server.ask(opcode::READ, node, &[read(3, 2).as_bytes()]), Ok(b"te".to_vec()));
    assert_eq!(server.ask(opcode::READ, node, &[read(1 << 63, 2).as_bytes()]), Err(Errno::EINVAL));
    let first = SetattrIn {
        valid: fattr::MTIME | fattr::SIZE,
        size: 3,
        mtime: -1i64 as u64,
        mtimensec: 5,
        ..SetattrIn::default()
    };
    let set: AttrOut = server.get(opcode::SETATTR, node, &[first.as_bytes()]);
    assert_eq!((set.attr.size, set.attr.mtime as i64, set.attr.mtimensec, set.attr.ino), (3, -1, 5, node));
    assert_eq!(server.get::<AttrOut>(opcode::GETATTR, node, &[&[0; 16]]).attr, set.attr);
    let found: EntryOut = server.get(opcode::LOOKUP, 1, &[b"file\0"]);
    assert_eq!((found.nodeid, found.attr, found.entry_valid), (node, set.attr, 1));
    assert_eq!(server.ask(opcode::UNLINK, 1, &[b"file\0"]), Ok(Vec::new()));
    assert_eq!(server.ask(opcode::UNLINK, 1, &[b"file\0"]), Err(Errno::ENOENT));
    let release = ReleaseIn { fh, ..ReleaseIn::default() };
    assert_eq!(server.ask(opcode::RELEASE, node, &[release.as_bytes()]), Ok(Vec::new()));
    let (next, replies) = server.send(&message(opcode::FORGET, node, &[ForgetIn { nlookup: 1 }.as_bytes()]));
    assert_eq!((next, replies), (Next::More, Vec::new()));
    let one = ForgetOne { nodeid: node, nlookup: 1 };
    let batch = BatchForgetIn { count: 1, dummy: 0 };
    let (_, replies) = server.send(&message(opcode::BATCH_FORGET, 0, &[batch.as_bytes(), one.as_bytes()]));
    assert_eq!(replies, []);
    assert_eq!((server.session.known_nodes(), server.session.open_handles()), (1, 0));
    let ops = server.session.metrics().snapshot().ops;
    let moved: Vec<_> = ops.iter().filter(|op| op.bytes != 0).map(|op| (op.name.as_str(), op.bytes)).collect();
    assert_eq!(moved, [("read", 7), ("write", 8)]);
}

#[test]
fn a_name_that_does_not_exist_may_be_cached() {
    let mut server = Server::new(options());
    let absent: EntryOut = server.get(opcode::LOOKUP, 1, &[b"none\0"]);
    assert_eq!((absent.nodeid, absent.entry_valid), (0, 1));
    let ops = server.session.metrics().snapshot().ops;
    assert_eq!(ops[0].errnos, [("ENOENT".to_owned(), 1)]);
    assert_eq!(ops[0].errors, 0, "a regular no");
}

#[test]
fn listings_stay_within_the_size_that_is_requested() {
    let mut server = Server::new(options());
    for name in [&b"one\0"[..], b"two\0", b"three\0"] {
        server.ask(opcode::MKDIR, 1, &[&[0; 8], name]).unwrap();
    }
    let open: OpenOut = server.get(opcode::OPENDIR, 1, &[OpenIn::default().as_bytes()]);
    // The access must be recorded, so the listing that the kernel has cached is not used.
    assert_eq!(open.open_flags, fopen::CACHE_DIR);
    for (opcode, head) in [(opcode::READDIR, size_of::<Dirent>()), (opcode::READDIRPLUS, size_of::<DirentPlus>())] {
        let read = |offset, size| ReadIn { fh: open.fh, offset, size, ..ReadIn::default() };
        for size in [0, 1, head as u32, head as u32 + 7] {
            assert_eq!(server.ask(opcode, 1, &[read(0, size).as_bytes()]), Ok(Vec::new()), "{size}");
        }
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            // Room for one entry at a time.
            let body = server.ask(opcode, 1, &[read(offset, head as u32 + 8).as_bytes()]).unwrap();
            if body.is_empty() {
                break;
            }
            assert_eq!(body.len(), head + 8);
            let (dirent, _) = Dirent::read_from_prefix(&body[head - size_of::<Dirent>()..]).unwrap();
            let name = &body[head..][..dirent.namelen as usize];
            assert_eq!(dirent.kind, 4);
            names.push(String::from_utf8(name.to_vec()).unwrap());
            offset = dirent.off;
        }
        names.sort();
        assert_eq!(names, [".", "..", "one", "three", "two"]);
    }
}

#[test]
fn extended_attributes_fit_or_are_too_long() {
    let mut server = Server::new(options());
    let (node, _) = make_file(&mut server);
    let set = SetxattrIn { size: 5, flags: 0 };
    assert_eq!(server.ask(opcode::SETXATTR, node, &[set.as_bytes(), b"user.a\0value"]), Ok(Vec::new()));
    for (opcode, name, value) in
        [(opcode::GETXATTR, &b"user.a\0"[..], &b"value"[..]), (opcode::LISTXATTR, b"", b"user.a\0")]
    {
        let mut get = |size| server.ask(opcode, node, &[GetxattrIn { size, padding: 0 }.as_bytes(), name]);
        let len = value.len() as u32;
        assert_eq!(get(0), Ok([len, 0].as_bytes().to_vec()));
        assert_eq!((get(len), get(len - 1)), (Ok(value.to_vec()), Err(Errno::ERANGE)));
    }
}

/// A lock of all bytes: `F_WRLCK` (1) or `F_UNLCK` (2), of `flock(2)` with flag 1.
fn lock_of(owner: u64, kind: u32, lk_flags: u32) -> LkIn {
    let mut lock = LkIn { owner, lk_flags, ..LkIn::default() };
    (lock.lk.end, lock.lk.kind) = (u64::MAX, kind);
    lock
}

/// A request with another number than 7.
fn numbered(unique: u64, opcode: u32, node: u64, arguments: &[u8]) -> Vec<u8> {
    let mut message = message(opcode, node, &[arguments]);
    message[8..16].copy_from_slice(&unique.to_ne_bytes());
    message
}

#[test]
fn a_request_that_waits_for_a_lock_has_one_reply_when_the_wait_ends() {
    let eintr = Errno::EINTR.raw();
    for flags in [0, 1] {
        let mut server = Server::new(options());
        let (node, _) = make_file(&mut server);
        let metrics = server.session.metrics().clone();
        let mut send = |unique, opcode, arguments: &[u8]| {
            let (next, replies) = server.send(&numbered(unique, opcode, node, arguments));
            assert_eq!(next, Next::More);
            replies.into_iter().map(|(unique, error, body)| (unique, error, body.len())).collect::<Vec<_>>()
        };
        let interrupt = |unique: u64| unique.to_ne_bytes();
        let wait = |owner| lock_of(owner, 1, flags);
        assert_eq!(send(2, opcode::SETLKW, wait(1).as_bytes()), [(2, 0, 0)], "it is free");
        assert_eq!(send(4, opcode::SETLKW, wait(2).as_bytes()), []);
        assert_eq!(send(5, opcode::INTERRUPT, &interrupt(4)), [(4, eintr, 0)], "which waits");
        assert_eq!(send(5, opcode::INTERRUPT, &interrupt(4)), [], "which was answered");
        assert_eq!(send(7, opcode::INTERRUPT, &interrupt(6)), [], "which comes");
        assert_eq!(send(6, opcode::SETLKW, wait(2).as_bytes()), [(6, eintr, 0)]);
        assert_eq!(send(8, opcode::SETLKW, wait(2).as_bytes()), []);
        assert_eq!(send(9, opcode::SETLK, lock_of(1, 2, flags).as_bytes()), [(8, 0, 0), (9, 0, 0)], "a release");
        assert_eq!(send(10, opcode::SETLKW, wait(3).as_bytes()), []);
        assert_eq!(metrics.get(Gauge::InFlight), 1, "it has no reply");
        let mut bad = wait(3);
        bad.lk.kind = 3;
        assert_eq!(send(11, opcode::SETLKW, bad.as_bytes()), [(11, Errno::EINVAL.raw(), 0)]);
        server.session.end();
        let replies = std::mem::take(&mut *server.kernel.0.lock());
        assert_eq!(replies, [(10, eintr, Vec::new())]);
        assert_eq!(metrics.get(Gauge::InFlight), 0);
        let recorded = server.session.metrics().snapshot().ops;
        let recorded = recorded.iter().find(|op| op.name == "setlk").unwrap();
        assert_eq!((recorded.count, &recorded.errnos[..]), (7, &[("EINTR".into(), 3), ("EINVAL".into(), 1)][..]));
    }
}

#[test]
fn without_locks_the_kernel_sends_no_more_interrupts() {
    let mut server = Server::new(MountOptions::default());
    assert_eq!(server.ask(opcode::INTERRUPT, 0, &[&[0; 8]]), Err(Errno::ENOSYS));
}

#[test]
fn what_is_not_served_has_its_errno() {
    let mut server = Server::new(options());
    let cases = [
        (opcode::IOCTL, Errno::ENOTTY),
        (opcode::BMAP, Errno::ENOSYS),
        (opcode::POLL, Errno::ENOSYS),
        (opcode::COPY_FILE_RANGE, Errno::EBADF),
        (opcode::COPY_FILE_RANGE_64, Errno::EBADF),
        (50, Errno::ENOSYS),
        (u32::MAX, Errno::ENOSYS),
    ];
    for (opcode, errno) in cases {
        assert_eq!(server.ask(opcode, 1, &[&[0; 64]]), Err(errno), "{opcode}");
    }
    assert_eq!(server.ask(opcode::INIT, 1, &[&[0; 64]]), Err(Errno::EIO), "there is one, and it was before");
    assert_eq!(server.send(&message(opcode::DESTROY, 0, &[])), (Next::End, vec![(7, 0, Vec::new())]));
}

#[test]
fn only_the_user_who_mounts_may_send_requests_without_allow_other() {
    let mut other = message(opcode::LOOKUP, 1, &[b"name\0"]);
    other[24..28].copy_from_slice(&12_345u32.to_ne_bytes());
    for (allow_other, errno) in [(false, Errno::EACCES.raw()), (true, 0)] {
        let mut server = Server::new(MountOptions { allow_other, ..options() });
        assert_eq!(server.send(&other).1[0].1, errno);
    }
}

#[test]
fn the_kernel_s_flags_decide_over_set_id_bits() {
    // Requests of root with and without the flag.
    for (clears, mode) in [(false, 0o6755), (true, 0o755)] {
        let mut server = Server::new(options());
        let (node, fh) = make_file(&mut server);
        let set = |valid| SetattrIn { valid, fh, size: 1, mode: 0o6755, ..SetattrIn::default() };
        let flag = |flag| if clears { flag } else { 0 };
        let write = WriteIn { fh, size: 1, write_flags: flag(write::KILL_SUIDGID), ..WriteIn::default() };
        let cut = set(fattr::SIZE | flag(fattr::KILL_SUIDGID));
        let cut_open = set(cut.valid | fattr::FH);
        let changes = [
            (opcode::WRITE, [write.as_bytes(), b"x"]),
            (opcode::SETATTR, [cut.as_bytes(), b""]),
            (opcode::SETATTR, [cut_open.as_bytes(), b""]),
        ];
        for (opcode, parts) in changes {
            let _: AttrOut = server.get(opcode::SETATTR, node, &[set(fattr::MODE).as_bytes()]);
            server.ask(opcode, node, &parts).unwrap();
            let now: AttrOut = server.get(opcode::GETATTR, node, &[&[0; 16]]);
            assert_eq!(now.attr.mode & 0o7777, mode, "{opcode}");
        }
    }
}

/// A channel that panics at the first reply.
#[derive(Debug, Default)]
struct Panicking(Mutex<Vec<i32>>);

impl Channel for Panicking {
    fn reply(&self, _: u64, error: i32, _: &[u8]) -> io::Result<()> {
        let mut sent = self.0.lock();
        sent.push(error);
        assert!(sent.len() != 1, "on purpose");
        Ok(())
    }

    fn open_backing(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn close_backing(&self, _: i32) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_anywhere_in_a_message_ends_that_message_alone() {
    for (opcode, error) in [(opcode::GETATTR, 0), (opcode::LSEEK, Errno::EINVAL.raw()), (u32::MAX, Errno::ENOSYS.raw())]
    {
        let mut server = Server::new(options());
        let kernel = Arc::new(Panicking::default());
        let channel: Arc<dyn Channel> = kernel.clone();
        let next = server.transport.serve(&channel, &message(opcode, 1, &[&[0; 64]]), &mut server.body);
        let sent = kernel.0.lock().clone();
        assert_eq!((next, sent), (Next::More, vec![error, Errno::EIO.raw()]), "{opcode}");
        assert_eq!(server.session.metrics().get(Gauge::Panics), 1);
    }
}

/// Requests of all lengths and kinds of arguments.
fn examples() -> Vec<Vec<u8>> {
    let read = ReadIn { fh: 1, size: 100, ..ReadIn::default() };
    let write = WriteIn { fh: 1, size: 4, ..WriteIn::default() };
    let batch = BatchForgetIn { count: 1, dummy: 0 };
    vec![
        message(opcode::LOOKUP, 1, &[b"file\0"]),
        message(opcode::SYMLINK, 1, &[b"link\0file\0"]),
        message(opcode::RENAME2, 1, &[&1u64.to_ne_bytes(), &[0; 8], b"file\0other\0"]),
        message(opcode::CREATE, 1, &[CreateIn { mode: 0o100_600, ..CreateIn::default() }.as_bytes(), b"new\0"]),
        message(
            opcode::TMPFILE,
            1,
            &[CreateIn { flags: 2, mode: 0o100_600, ..CreateIn::default() }.as_bytes(), b"/\0"],
        ),
        message(opcode::READ, 2, &[read.as_bytes()]),
        message(opcode::WRITE, 2, &[write.as_bytes(), b"data"]),
        message(opcode::READDIRPLUS, 1, &[read.as_bytes()]),
        message(opcode::SETATTR, 2, &[SetattrIn { valid: u32::MAX, ..SetattrIn::default() }.as_bytes()]),
        message(opcode::SETXATTR, 2, &[SetxattrIn { size: 3, flags: 0 }.as_bytes(), b"user.a\0abc"]),
        message(opcode::BATCH_FORGET, 0, &[batch.as_bytes(), ForgetOne::default().as_bytes()]),
        message(opcode::GETATTR, 1, &[&[0; 16]]),
    ]
}

#[test]
fn any_bytes_get_one_reply_or_none() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut server = Server::new(MountOptions { allow_other: true, ..options() });
    make_file(&mut server);
    let examples = examples();
    for _ in 0..20_000 {
        let mut bytes = dice.choice(&examples).unwrap().clone();
        for _ in 0..dice.usize(..4) {
            let at = dice.usize(..bytes.len());
            bytes[at] = dice.u8(..);
        }
        if dice.bool() {
            bytes.truncate(dice.usize(..=bytes.len()));
        }
        // The reply to a request that waits comes later.
        let is_waiting = bytes.get(4..8) == Some(&opcode::SETLKW.to_ne_bytes());
        if is_waiting {
            continue;
        }
        let (_, replies) = server.send(&bytes);
        let has_header = bytes.len() >= size_of::<InHeader>();
        let is_forget = Request::parse(&bytes).is_ok_and(|request| {
            let without = [opcode::FORGET, opcode::BATCH_FORGET, opcode::NOTIFY_REPLY, opcode::INTERRUPT];
            without.contains(&request.header.opcode)
        });
        assert_eq!(replies.len(), usize::from(has_header && !is_forget), "{bytes:?}");
        assert!(replies.iter().all(|(unique, ..)| unique.to_ne_bytes() == bytes[8..16]), "{bytes:?}");
    }
    assert_eq!(server.session.metrics().get(Gauge::Panics), 0);
}

#[test]
fn labels_come_with_the_request_that_makes_a_file() {
    let session = SessionOptions { labels: true, ..SessionOptions::default() };
    let mut server = Server::new(MountOptions { session, ..MountOptions::default() });
    let label = [Secctx { size: 5, padding: 0 }.as_bytes(), b"security.x\0label"].concat();
    let size = (size_of::<ExtHeader>() + label.len()) as u32;
    assert_eq!(size % 8, 0);
    let extension = [ExtHeader { size, kind: 1 }.as_bytes(), &label].concat();
    let create = CreateIn { flags: 2, mode: 0o100_644, ..CreateIn::default() };
    for (opcode, parts) in [
        (opcode::MKNOD, [&[0; 16][..], b"a\0"]),
        (opcode::MKDIR, [&[0; 8], b"b\0"]),
        (opcode::SYMLINK, [b"c\0", b"to\0"]),
        (opcode::CREATE, [create.as_bytes(), b"d\0"]),
        (opcode::TMPFILE, [create.as_bytes(), b"/\0"]),
    ] {
        let mut bytes = message(opcode, 1, &[parts[0], parts[1], &extension]);
        bytes[36..38].copy_from_slice(&((extension.len() / 8) as u16).to_ne_bytes());
        let (_, replies) = server.send(&bytes);
        let [(7, 0, body)] = &replies[..] else { panic!("{opcode}: {replies:?}") };
        let (made, _) = EntryOut::read_from_prefix(body).unwrap();
        let get = GetxattrIn { size: 100, padding: 0 };
        let found = server.ask(opcode::GETXATTR, made.nodeid, &[get.as_bytes(), b"security.x\0"]);
        assert_eq!(found, Ok(b"label".to_vec()), "{opcode}");
    }
}
