//! A kernel that is a socket: INIT, several threads, and the end.

use super::*;
use crate::options::{SessionOptions, Ttls};
use crate::session::Session;
use crate::transport::KernelSender;
use fusedev::wire::abi::{FsyncIn, InitOut, InterruptIn, MINOR, OpenOut, OutHeader, ReadIn, SetattrIn, fattr, opcode};
use fusedev::wire::extension::Extensions;
use ramfs::RamFs;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::OwnedFd;
use vfs::Vfs;
use zerocopy::FromBytes;

/// The kernel's side of a connection: each write and read is one message.
struct Kernel(OwnedFd);

impl Kernel {
    fn new() -> (Self, Arc<Device>) {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a pair");
        (Self(one), Arc::new(other.into()))
    }

    fn send(&self, opcode: u32, unique: u64, arguments: &[u8]) {
        let len = (size_of::<InHeader>() + arguments.len()) as u32;
        let uid = rustix::process::geteuid().as_raw();
        let header = InHeader { len, opcode, unique, nodeid: 1, uid, ..InHeader::default() };
        rustix::io::write(&self.0, &[header.as_bytes(), arguments].concat()).expect("sent");
    }

    fn receive(&self) -> (OutHeader, Vec<u8>) {
        let mut buffer = vec![0; 4096];
        let len = rustix::io::read(&self.0, &mut buffer).expect("a reply");
        let (header, body) = OutHeader::read_from_prefix(&buffer[..len]).expect("a header");
        assert_eq!(header.len as usize, len);
        (header, body.to_vec())
    }
}

fn init(major: u32, minor: u32) -> Vec<u8> {
    InitIn { major, minor, max_readahead: 1 << 17, flags: u32::MAX, ..InitIn::default() }.as_bytes().to_vec()
}

fn negotiate(device: Arc<Device>, options: &MountOptions) -> (Arc<Session>, Result<Server, ServerError>) {
    let session = Session::new(&Vfs::new(RamFs::new()), options.session.clone()).expect("a session");
    let server = Server::negotiate(Transport::new(session.clone(), options), device, options);
    (session, server)
}

#[test]
fn a_newer_kernel_goes_back_to_our_version() {
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init(8, 0));
    kernel.send(opcode::INIT, 2, &init(7, 99));
    assert!(negotiate(device, &MountOptions::default()).1.is_ok());
    for unique in [1, 2] {
        let (header, body) = kernel.receive();
        let out = InitOut::read_from_bytes(&body).expect("a struct");
        assert_eq!((header.error, header.unique, out.major, out.minor), (0, unique, MAJOR, MINOR));
        assert_eq!((out.max_write, out.max_background), if unique == 1 { (0, 0) } else { (1 << 20, 64) });
    }
}

#[test]
fn what_is_no_init_of_a_known_kernel_is_an_error() {
    let cases = [
        (opcode::INIT, init(6, 99), Some(Errno::PROTO)),
        (opcode::INIT, init(7, OLDEST_MINOR - 1), Some(Errno::PROTO)),
        (opcode::INIT, b"short".to_vec(), None),
        (opcode::GETATTR, Vec::new(), None),
    ];
    for (opcode, arguments, errno) in cases {
        let (kernel, device) = Kernel::new();
        kernel.send(opcode, 1, &arguments);
        let Err(ServerError::Io(error)) = negotiate(device, &MountOptions::default()).1 else { panic!("an error") };
        assert_eq!(error.raw_os_error(), errno.map(Errno::raw_os_error));
    }
    let (kernel, device) = Kernel::new();
    drop(kernel);
    let Err(ServerError::Io(error)) = negotiate(device, &MountOptions::default()).1 else { panic!("an error") };
    assert_eq!(error.raw_os_error(), Some(Errno::NOTCONN.raw_os_error()), "unmounted before INIT");
}

#[test]
fn all_threads_and_the_session_end_with_the_connection() {
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init(7, 45));
    // A socket cannot be cloned, so the threads share it.
    let options = MountOptions { threads: Some(3), clone_fd: true, ..MountOptions::default() };
    let (session, server) = negotiate(device, &options);
    let server = server.expect("a server");
    kernel.receive();
    let running = thread::spawn(move || server.run(|| {}));
    kernel.send(opcode::LOOKUP, 2, b"name\0");
    kernel.send(opcode::OPENDIR, 3, &[0; 8]);
    let mut replies = [kernel.receive().0, kernel.receive().0];
    replies.sort_by_key(|header| header.unique);
    assert_eq!(replies.map(|header| (header.unique, header.error)), [(2, 0), (3, 0)]);
    assert_eq!(session.open_handles(), 1);
    drop(kernel);
    running.join().expect("no panic").expect("no error");
    assert_eq!((session.known_nodes(), session.open_handles()), (1, 0));
}

#[test]
fn a_device_that_cannot_be_read_any_more_is_aborted_and_the_mount_has_the_error() {
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init(7, 45));
    let options = MountOptions { threads: Some(3), ..MountOptions::default() };
    let (session, server) = negotiate(device, &options);
    // It has not taken the reply, so the other side reads an error.
    drop(kernel);
    let mut is_aborted = false;
    let error = server.expect("a server").run(|| is_aborted = true).expect_err("it cannot be read");
    assert_eq!((error.raw_os_error(), is_aborted), (Some(Errno::CONNRESET.raw_os_error()), true));
    assert_eq!(session.known_nodes(), 1, "it has ended");
}

/// INIT of a kernel that offers io_uring. The socket refuses its commands.
fn init_with_rings() -> Vec<u8> {
    let flags2 = (InitFlags::OVER_IO_URING.bits() >> 32) as u32;
    InitIn { major: 7, minor: 45, flags: u32::MAX, flags2, ..InitIn::default() }.as_bytes().to_vec()
}

#[test]
fn a_kernel_that_refuses_slots_is_served_through_the_device() {
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init_with_rings());
    let options = MountOptions { threads: Some(2), clone_fd: false, ..MountOptions::default() };
    let (_session, server) = negotiate(device, &options);
    let mut server = server.expect("a server");
    let taken = init::taken(&InitOut::read_from_bytes(&kernel.receive().1).expect("a struct"));
    let TransportKind::Ring { .. } = server.transport_kind() else {
        assert!(!taken.contains(InitFlags::OVER_IO_URING), "only with rings");
        return println!("SKIPPED: {}", server.transport_kind());
    };
    assert!(taken.contains(InitFlags::OVER_IO_URING));
    server.begin(&options).expect("the device");
    assert_eq!(server.transport_kind(), TransportKind::Device { threads: 2, reason: NoRing::NotOffered });
    assert_eq!(server.waiting(), 1);
    let running = thread::spawn(move || server.run(|| {}));
    kernel.send(opcode::LOOKUP, 2, b"name\0");
    assert_eq!(kernel.receive().0.unique, 2);
    drop(kernel);
    running.join().expect("no panic").expect("no error");
}

#[test]
fn required_rings_that_are_not_offered_or_refused_are_an_error() {
    let options = MountOptions { uring: Uring::Required, ..MountOptions::default() };
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init(7, 45));
    let Err(ServerError::NoRing(NoRing::NotOffered)) = negotiate(device, &options).1 else { panic!("an error") };
    assert_ne!(kernel.receive().0.error, 0, "the mount cannot be used");
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init_with_rings());
    match negotiate(device, &options).1 {
        Ok(mut server) => assert!(matches!(server.begin(&options), Err(ServerError::NoRing(_)))),
        Err(error) => assert!(matches!(error, ServerError::NoRing(_)), "{error:?}"),
    }
}

#[test]
fn rings_are_not_made_where_they_are_not_wanted_or_offered() {
    for (uring, offer, reason) in [
        (Uring::Never, init_with_rings(), NoRing::NotWanted),
        (Uring::IfOffered, init(7, 45), NoRing::NotOffered),
        (Uring::Never, init(7, 45), NoRing::NotWanted),
    ] {
        let (kernel, device) = Kernel::new();
        kernel.send(opcode::INIT, 1, &offer);
        let options = MountOptions { uring, threads: Some(3), ..MountOptions::default() };
        let (_session, server) = negotiate(device, &options);
        assert_eq!(server.expect("a server").transport_kind(), TransportKind::Device { threads: 3, reason });
        let taken = init::taken(&InitOut::read_from_bytes(&kernel.receive().1).expect("a struct"));
        assert!(!taken.contains(InitFlags::OVER_IO_URING));
    }
}

#[test]
fn the_device_is_closed_when_the_session_has_ended() {
    let (kernel, device) = Kernel::new();
    kernel.send(opcode::INIT, 1, &init(7, 45));
    let options = MountOptions { threads: Some(1), clone_fd: false, ..MountOptions::default() };
    let (session, server) = negotiate(device.clone(), &options);
    session.notify_by(KernelSender { device, session: Arc::downgrade(&session) });
    kernel.send(opcode::DESTROY, 2, &[]);
    server.expect("a server").run(|| {}).expect("no error");
    kernel.receive();
    kernel.receive();
    assert_eq!(rustix::io::read(&kernel.0, &mut [0; 8]), Ok(0), "nobody has the other side");
}

#[test]
fn a_mount_of_another_user_than_root_takes_times_that_the_kernel_flushes_as_root() {
    let options = MountOptions::default();
    let session = Session::new(&Vfs::new(RamFs::new()), options.session.clone()).expect("a session");
    let transport = Transport { only: Some(12_345), ..Transport::new(session, &options) };
    let cases = [
        (fattr::MTIME, 0, true),
        (fattr::MTIME | fattr::CTIME | fattr::FH, 0, true),
        (fattr::MTIME, 1, false),
        (0, 0, false),
        (fattr::MTIME | fattr::MODE, 0, false),
        (fattr::MTIME | fattr::SIZE, 0, false),
        (fattr::MTIME | fattr::KILL_SUIDGID, 0, false),
    ];
    for (valid, uid, is_served) in cases {
        let header = InHeader { uid, ..InHeader::default() };
        let operation = Operation::Setattr(SetattrIn { valid, ..SetattrIn::default() });
        assert_eq!(
            transport.may_send(&Request { header, operation, extensions: Extensions::default() }),
            is_served,
            "{valid}, {uid}"
        );
    }
    let operation = Operation::Interrupt(InterruptIn::default());
    let interrupt = Request { header: InHeader::default(), operation, extensions: Extensions::default() };
    assert!(transport.may_send(&interrupt), "the kernel sends it for all users");
}

#[test]
fn without_opens_directories_are_listed_by_their_nodes() {
    for (ttl, is_refused) in [(1, true), (0, false)] {
        let session =
            SessionOptions { no_open: true, ttls: Ttls::all(Duration::from_secs(ttl)), ..SessionOptions::default() };
        let options = MountOptions { session, ..MountOptions::default() };
        let (kernel, device) = Kernel::new();
        kernel.send(opcode::INIT, 1, &init(7, 45));
        let (session, server) = negotiate(device, &options);
        let server = server.expect("a server");
        let out = InitOut::read_from_bytes(&kernel.receive().1).expect("a struct");
        assert_eq!(init::taken(&out).contains(InitFlags::NO_OPENDIR_SUPPORT), is_refused);
        let running = thread::spawn(move || server.run(|| {}));
        let ask = |opcode, arguments: &[u8]| {
            kernel.send(opcode, 2, arguments);
            kernel.receive()
        };
        assert_eq!(ask(opcode::MKDIR, &[&[0; 8][..], b"name\0"].concat()).0.error, 0);
        let (opened, body) = ask(opcode::OPENDIR, &[0; 8]);
        assert_eq!(opened.error, if is_refused { -Errno::NOSYS.raw_os_error() } else { 0 });
        let fh = if is_refused { 0 } else { OpenOut::read_from_bytes(&body).expect("a struct").fh };
        let read = ReadIn { fh, size: 4000, ..ReadIn::default() };
        for opcode in [opcode::READDIR, opcode::READDIRPLUS] {
            let (header, listed) = ask(opcode, read.as_bytes());
            let has_name = listed.windows(4).any(|part| part == b"name");
            assert!(header.error == 0 && has_name, "{opcode}: {header:?}");
        }
        assert_eq!(ask(opcode::FSYNCDIR, FsyncIn { fh, ..FsyncIn::default() }.as_bytes()).0.error, 0);
        assert_eq!(session.open_handles(), usize::from(!is_refused));
        // Without a flag of INIT a handle of nothing is bad.
        let bad = ask(opcode::READDIR, ReadIn { fh: if is_refused { 7 } else { 0 }, ..read }.as_bytes()).0;
        assert_eq!(bad.error, -Errno::BADF.raw_os_error());
        drop(kernel);
        running.join().expect("no panic").expect("no error");
    }
}
