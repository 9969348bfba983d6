//! `copy_file_range(2)`: what the calls return is compared with tmpfs.

use crate::support::{HostMount, Mount};
use crate::{ram, session};
use hostfs::HostOptions;
use lightfoot_fuse::{MountOptions, Op, SessionOptions};
use rustix::fs::{Mode, OFlags, copy_file_range, fstat, ioctl_ficlone, open};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vfs::{Copying, FileSystem as _, Layer, Open, Position, Request, Written};

/// Bytes of the source.
const LEN: usize = 3 << 20;

fn contents() -> Vec<u8> {
    (0..LEN).map(|at| (at / 7 % 256) as u8).collect()
}

/// Copies until an error, or until nothing more is copied.
fn copied(from: &Path, (flags, mode): (OFlags, OFlags), to: &Path, (offset, at, len): (u64, u64, usize)) -> String {
    let source = open(from, flags, Mode::empty()).unwrap();
    let target = open(to, OFlags::CREATE | mode, Mode::from_raw_mode(0o644)).unwrap();
    let (mut offset, mut at, mut left) = (offset, at, len);
    let end = loop {
        match copy_file_range(&source, Some(&mut offset), &target, Some(&mut at), left) {
            Ok(0) => break Ok(()),
            Ok(some) => left -= some,
            Err(errno) => break Err(errno),
        }
    };
    format!("{end:?} {} {at} {}", len - left, fstat(&target).unwrap().st_size)
}

/// What the calls return in a new directory.
fn outcomes(at: &Path) -> Vec<String> {
    let path = |name: &str| at.join(name);
    fs::write(path("source"), contents()).unwrap();
    let (r, w, rw) = (OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR);
    let cases: &[(&str, OFlags, &str, OFlags, u64, u64, usize)] = &[
        ("source", r, "all", w, 0, 0, LEN),
        ("source", r, "more than all", w, 0, 0, 2 * LEN),
        ("source", r, "a part", w, 4097, 11, 70_000),
        ("source", r, "behind a hole", rw, 5, 1 << 30, 9000),
        ("source", r, "at the end", w, LEN as u64, 0, 1),
        ("source", rw, "source", rw, 0, 2 * LEN as u64, 5000),
        ("source", rw, "source", rw, 0, 10, 5000),
        ("source", w, "from one that is written", w, 0, 0, 1),
        ("source", r, "source", r, 0, 0, 1),
        ("source", r, "appended", w | OFlags::APPEND, 0, 0, 1),
        ("source", r, "far", w, 0, i64::MAX as u64, 1),
        ("source", r, "too far", w, 0, i64::MAX as u64 + 1, 1),
        ("source", r, "nothing", w, 0, 0, 0),
    ];
    let mut all: Vec<_> = cases
        .iter()
        .map(|&(from, read, to, write, offset, into, len)| {
            format!("{to}: {}", copied(&path(from), (read, write), &path(to), (offset, into, len)))
        })
        .collect();
    assert_eq!(fs::read(path("all")).unwrap(), contents());
    assert_eq!(fs::read(path("a part")).unwrap()[11..], contents()[4097..][..70_000]);
    assert_eq!(fs::read(path("source")).unwrap()[2 * LEN..], contents()[..5000]);
    fs::write(path("program"), "text").unwrap();
    fs::set_permissions(path("program"), fs::Permissions::from_mode(0o6755)).unwrap();
    all.push(copied(&path("source"), (r, w), &path("program"), (0, 0, 3)));
    all.push(format!("{:o}", fs::metadata(path("program")).unwrap().permissions().mode()));
    let dir = open(at, r, Mode::empty()).unwrap();
    let file = open(path("all"), rw, Mode::empty()).unwrap();
    all.push(format!("{:?}", copy_file_range(&dir, Some(&mut 0), &file, Some(&mut 0), 1)));
    all
}

#[test]
fn copies_end_as_on_tmpfs() {
    let beside = Path::new("/dev/shm").join(format!("lightfoot-copies-{}", std::process::id()));
    fs::create_dir(&beside).unwrap();
    let expected = outcomes(&beside);
    fs::remove_dir_all(&beside).unwrap();
    let check = |name: &str, mount: &Mount| {
        // The callers of writes are unknown then, so that root's clear set-id bits, too.
        let is_same =
            |one: &str, other: &str| one == other || name == "no_open" && [one, other] == ["106755", "100755"];
        let found = outcomes(&mount.at);
        let differ: Vec<_> =
            expected.iter().zip(&found).filter(|(expected, found)| !is_same(expected, found)).collect();
        assert!(differ.is_empty(), "{name}: {differ:#?}");
        let ops = mount.mounted().session().metrics().snapshot().ops;
        ops.iter().find(|op| op.name == Op::CopyFileRange.name()).map_or(0, |op| op.count)
    };
    for writeback in [false, true] {
        let options = MountOptions { session: SessionOptions { writeback, ..session() }, ..MountOptions::default() };
        let Some(mount) = Mount::new(&ram(), &options) else { return };
        assert!(check("ram", &mount) > 0, "the kernel has requested copies");
        let Some(mount) = HostMount::new(&HostOptions::default(), &options) else { return };
        assert!(check("a host directory", &mount) > 0);
    }
    let no_open = MountOptions { session: SessionOptions { no_open: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&ram(), &no_open) else { return };
    assert!(check("no_open", &mount) <= 2, "the kernel requests no more after ENOSYS");
    let passthrough =
        MountOptions { session: SessionOptions { passthrough: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = HostMount::new(&HostOptions::default(), &passthrough) else { return };
    check("passthrough", &mount);
}

#[test]
fn a_copy_to_a_full_tree_ends_where_the_room_ends() {
    let limits = ramfs::RamLimits { bytes: Some(1 << 20), ..ramfs::RamLimits::default() };
    let tree = vfs::Vfs::new(ramfs::RamFs::with_limits(limits));
    let options = MountOptions { session: session(), ..MountOptions::default() };
    let Some(mount) = Mount::new(&tree, &options) else { return };
    fs::write(mount.path("from"), vec![7; 700 << 10]).unwrap();
    let source = open(mount.path("from"), OFlags::RDONLY, Mode::empty()).unwrap();
    let target = open(mount.path("to"), OFlags::CREATE | OFlags::RDWR, Mode::from_raw_mode(0o644)).unwrap();
    let copy = |at: &mut u64| copy_file_range(&source, Some(&mut 0), &target, Some(at), 700 << 10);
    let mut end = 0;
    let done = copy(&mut end).unwrap() as u64;
    assert!(done == end && (200 << 10..700 << 10).contains(&done), "{done}");
    assert_eq!(copy(&mut end), Err(Errno::NOSPC));
    assert_eq!(fs::metadata(mount.path("to")).unwrap().len(), done);
}

/// Counts bytes that the file system copies, by sharing their storage, and that it writes.
#[derive(Clone, Default)]
struct Counted {
    ram: Arc<ramfs::RamFs>,
    copied: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Layer for Counted {
    type Inner = ramfs::RamFs;

    fn inner(&self) -> &ramfs::RamFs {
        &self.ram
    }

    fn copy_range(
        &self,
        request: &Request,
        from: (&Open<'_>, u64),
        to: (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, vfs::Errno> {
        let written = self.ram.copy_range(request, from, to, len, how)?;
        self.copied.fetch_add(written.len as u64, Relaxed);
        Ok(written)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, vfs::Errno> {
        self.written.fetch_add(data.len() as u64, Relaxed);
        self.ram.write(request, file, at, data)
    }
}

#[test]
fn cp_in_a_mount_of_a_tree_in_memory_shares_the_storage() {
    let counted = Counted::default();
    let tree = vfs::Vfs::new(counted.clone());
    let options = MountOptions { session: session(), ..MountOptions::default() };
    let Some(mount) = Mount::new(&tree, &options) else { return };
    let data: Vec<u8> = (0..(40 << 20) + 100).map(|at: u32| (at / 7 % 256) as u8).collect();
    fs::write(mount.path("from"), &data).unwrap();
    fs::File::open(mount.path("from")).unwrap().sync_all().unwrap();
    let before = counted.written.load(Relaxed);
    assert!(Command::new("cp").args([mount.path("from"), mount.path("to")]).status().unwrap().success());
    assert_eq!((counted.copied.load(Relaxed), counted.written.load(Relaxed) - before), (40 << 20, 100));
    assert!(fs::read(mount.path("to")).unwrap() == data);
    // A write to one of them.
    fs::write(mount.path("from"), b"short").unwrap();
    assert!(fs::read(mount.path("to")).unwrap() == data);
    // The kernel answers this by itself.
    let [from, to] = ["from", "to"].map(|name| open(mount.path(name), OFlags::RDWR, Mode::empty()).unwrap());
    assert_eq!(ioctl_ficlone(&to, &from), Err(Errno::OPNOTSUPP));
}
