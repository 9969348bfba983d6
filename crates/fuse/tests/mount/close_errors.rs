//! Errors of `close(2)` and `fsync(2)`: what a file system writes when a descriptor is closed, and what a kernel writes later,
//! can fail.

use crate::{Mount, long, ram};
use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{Caller, MountOptions, NewMode, ROOT_NODE, Session, SessionOptions};
use prim::descriptor::close;
use ramfs::RamFs;
use rustix::io::Errno as HostErrno;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vfs::{Base, Errno, FileSystem, FsTraits, Layer, Open, OpenFlags, Opens, Position, Request, Vfs, Written};

const SUPER: Caller = Caller::of(0, 0);

/// Finds out that the quota was exceeded when a file is closed, as a network file system may.
struct Late(RamFs);

impl Layer for Late {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: Opens::Yes { flush: true }, ..vfs::FileSystem::traits(&self.0) }
    }

    fn flush(&self, _: &Request, _: &Open<'_>) -> Result<(), Errno> {
        Err(Errno::EDQUOT)
    }
}

fn late() -> Vfs {
    Vfs::new(Late(RamFs::new()))
}

#[test]
fn a_flush_returns_the_error_of_the_file_system_for_writers() {
    for locks in [false, true] {
        let session = |vfs| Session::new(&vfs, SessionOptions { locks, ..SessionOptions::default() }).unwrap();
        let late = session(late());
        let (entry, opened) = late.create(&SUPER, ROOT_NODE, b"f", NewMode::new(0o644, 0), 1).unwrap();
        assert_eq!(late.flush(entry.node, opened.handle, 7), Err(Errno::EDQUOT));
        let reading = late.open(&SUPER, entry.node, 0).unwrap();
        assert_eq!(late.flush(entry.node, reading.handle, 7), Ok(()));
        // Where no file system can fail, the kernel sends no more of them.
        let ram = session(ram());
        let (entry, opened) = ram.create(&SUPER, ROOT_NODE, b"f", NewMode::new(0o644, 0), 1).unwrap();
        let expected = if locks { Ok(()) } else { Err(Errno::ENOSYS) };
        assert_eq!(ram.flush(entry.node, opened.handle, 7), expected);
    }
}

/// Each close of a file that is open for writing fails; others do not.
fn check(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.write_all(b"contents").unwrap();
    let twin = file.try_clone().unwrap();
    for file in [twin, file] {
        assert_eq!(close(file.into()), Err(HostErrno::DQUOT), "{}", path.display());
    }
    let reading = File::open(path).unwrap();
    assert_eq!(close(reading.into()), Ok(()));
    assert_eq!(std::fs::read(path).unwrap(), b"contents");
}

#[test]
fn close_reports_errors_of_the_file_system_and_of_the_host() {
    let Some(beside) = Mount::new(&late(), &long()) else { return };
    check(&beside.path("f"));
    // The host's file system is that mount: its type is not one of this machine's.
    for writeback in [false, true] {
        let host = Vfs::new(HostFs::new(&beside.at, &HostOptions::default()).unwrap());
        let session = SessionOptions { writeback, ..SessionOptions::default() };
        let mount = Mount::new(&host, &MountOptions { session, ..MountOptions::default() }).unwrap();
        check(&mount.path(if writeback { "written-back" } else { "written" }));
    }
}

/// Loses what is written to it while the flag is set.
struct Lossy(RamFs, Arc<AtomicBool>);

impl Layer for Lossy {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        if self.1.load(Relaxed) { Err(Errno::EIO) } else { self.0.write(request, file, at, data) }
    }
}

#[test]
fn each_open_reports_an_error_of_writing_once() {
    // The host's file system is this mount, whose kernel writes later: it notes that a write was lost for each open file.
    let is_lossy = Arc::<AtomicBool>::default();
    let session = SessionOptions { writeback: true, ..SessionOptions::default() };
    let options = MountOptions { session, ..MountOptions::default() };
    let lossy = Vfs::new(Lossy(RamFs::new(), is_lossy.clone()));
    let Some(beside) = Mount::new(&lossy, &options) else { return };
    File::create(beside.path("f")).unwrap();
    let host = Vfs::new(HostFs::new(&beside.at, &HostOptions::default()).unwrap());
    let context = host.context();
    let open = |flags| context.open(Base::CWD, b"/f", flags, 0).unwrap();
    let (one, two, reader) = (open(OpenFlags::RDWR), open(OpenFlags::WRONLY), open(OpenFlags::RDONLY));
    let synced = |file: &vfs::OpenFile| file.sync(false);
    assert_eq!([&one, &two, &reader].map(synced), [Ok(()); 3]);
    is_lossy.store(true, Relaxed);
    assert_eq!(one.write_at(0, b"lost"), Ok((4, 4)));
    assert_eq!(synced(&one), Err(Errno::EIO));
    is_lossy.store(false, Relaxed);
    assert_eq!(synced(&one), Ok(()), "reported once");
    assert_eq!([&two, &reader].map(synced), [Err(Errno::EIO); 2], "once by each open");
    assert_eq!([&one, &two, &reader, &open(OpenFlags::RDONLY)].map(synced), [Ok(()); 4]);
}
