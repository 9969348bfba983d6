//! Offsets, lengths and times at their limits, from the kernel and from a transport that checks nothing.

use crate::{Mount, long, ram};
use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{Caller, NewMode, ROOT_NODE, Session, SessionOptions};
use ramfs::{RamFs, RamLimits};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, SeekFrom, Timespec, Timestamps};
use rustix::io::Errno as HostErrno;
use std::os::fd::OwnedFd;
use std::path::Path;
use vfs::{Base, Errno, SetAttr, Vfs, Want};

const SUPER: Caller = Caller::of(0, 0);

/// The longest file.
const MAX: u64 = i64::MAX as u64;

/// The length of a file, in bytes.
const LEN: u64 = 5000;

#[test]
fn any_offset_and_length_has_a_reply() {
    const EDGES: [u64; 8] = [0, 1, 4096, MAX - 1, MAX, MAX + 1, u64::MAX - 1, u64::MAX];
    let limits = RamLimits { bytes: Some(1 << 20), ..RamLimits::default() };
    let vfs = Vfs::new(RamFs::with_limits(limits));
    let session = Session::new(&vfs, SessionOptions::default()).unwrap();
    let (entry, opened) = session.create(&SUPER, ROOT_NODE, b"f", NewMode::new(0o644, 0), 2).unwrap();
    let (node, handle) = (entry.node, opened.handle);
    let resize =
        |size| session.setattr(&SUPER, node, &SetAttr { size: Some(size), ..SetAttr::default() }, Some(handle));
    let dir = session.opendir(&SUPER, ROOT_NODE).unwrap();
    for offset in EDGES {
        resize(0).unwrap();
        let is_negative = offset > MAX;
        let read = session.read(node, handle, offset, &mut [0; 3]);
        assert_eq!(read, if is_negative { Err(Errno::EINVAL) } else { Ok(0) }, "read at {offset:#x}");
        let expected = match offset {
            MAX => Err(Errno::EFBIG),
            _ if is_negative => Err(Errno::EINVAL),
            _ => Ok(3_usize.min(usize::try_from(MAX - offset).unwrap())),
        };
        assert_eq!(session.write(node, handle, offset, b"abc"), expected, "write at {offset:#x}");
        let resized = resize(offset).map(|(attr, _)| attr.size);
        assert_eq!(resized, if is_negative { Err(Errno::EINVAL) } else { Ok(offset) }, "a length of {offset:#x}");
        let size = session.getattr(node).unwrap().0.size;
        for whence in [3, 4] {
            let found = session.lseek(node, handle, offset, whence);
            assert!(found.map_or_else(|errno| errno == Errno::ENXIO, |at| (offset..=size).contains(&at)), "{found:?}");
        }
        assert!(session.readdir(dir, offset, Want::NAMES, &mut |_| true).is_ok(), "a listing from {offset:#x}");
        for len in EDGES {
            let end = offset.checked_add(len).filter(|&end| end <= MAX);
            for (mode, reserves) in [(0, true), (1, true), (3, false), (16, true), (17, true)] {
                let expected = match end {
                    _ if len == 0 || len > MAX || is_negative => Err(Errno::EINVAL),
                    None => Err(Errno::EFBIG),
                    Some(_) if reserves && len > 4096 => Err(Errno::ENOSPC),
                    Some(_) => Ok(()),
                };
                let done = session.fallocate(&SUPER, node, handle, mode, (offset, len));
                assert_eq!(done, expected, "mode {mode}, {len:#x} bytes at {offset:#x}");
            }
        }
    }
}

/// What calls at the limits return, each with the length of the file after it.
fn outcomes(dir: &Path, first_len: u64) -> Vec<(String, Result<u64, HostErrno>, u64)> {
    const OFFSETS: [u64; 10] = [0, 1, 4096, LEN - 1, LEN, 1 << 32, MAX - 4096, MAX - 4095, MAX - 1, MAX];
    const HOLE: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    let path = dir.join("f");
    let mut all = Vec::new();
    let mut note = |what: String, call: &dyn Fn(&OwnedFd) -> Result<u64, HostErrno>| {
        let file = rustix::fs::open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC, Mode::from(0o644)).unwrap();
        rustix::io::pwrite(&file, &[1; LEN as usize], 0).unwrap();
        rustix::fs::ftruncate(&file, first_len).unwrap();
        rustix::fs::seek(&file, SeekFrom::Start(1)).unwrap();
        let done = call(&file);
        all.push((what, done, rustix::fs::fstat(&file).unwrap().st_size as u64));
    };
    for at in OFFSETS {
        note(format!("pread {at:#x}"), &|f| rustix::io::pread(f, &mut [0_u8; 10][..], at).map(|read| read as u64));
        note(format!("pwrite {at:#x}"), &|f| rustix::io::pwrite(f, &[2; 10], at).map(|len| len as u64));
        note(format!("ftruncate {at:#x}"), &|f| rustix::fs::ftruncate(f, at).map(|()| 0));
        let signed = at as i64;
        let seeks = [SeekFrom::Start(at), SeekFrom::Data(at), SeekFrom::Hole(at)];
        let seeks = seeks
            .into_iter()
            .chain([signed, -signed].into_iter().flat_map(|by| [SeekFrom::Current(by), SeekFrom::End(by)]));
        for to in seeks {
            note(format!("lseek {to:?}"), &|f| rustix::fs::seek(f, to));
        }
        for len in [0, 1, 4096, MAX - 1, MAX] {
            for flags in [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE, HOLE] {
                note(format!("fallocate {flags:?} {at:#x} {len:#x}"), &|f| {
                    rustix::fs::fallocate(f, flags, at, len).map(|()| 0)
                });
            }
            let most = usize::try_from(len).unwrap().min(1 << 20);
            note(format!("copy_file_range {at:#x} {most:#x}"), &|f| {
                let (mut from, mut to) = (0, at);
                // Into the same file, so that overlaps fail too.
                rustix::fs::copy_file_range(f, Some(&mut from), f, Some(&mut to), most).map(|len| len as u64)
            });
        }
    }
    all
}

#[test]
fn calls_at_the_limits_end_as_on_tmpfs() {
    let tmpfs = Path::new("/dev/shm");
    if rustix::fs::statfs(tmpfs).map(|stat| stat.f_type) != Ok(0x0102_1994) {
        println!("SKIPPED: /dev/shm is not a tmpfs");
        return;
    }
    let [beside, source] =
        ["beside", "source"].map(|name| tmpfs.join(format!("lightfoot-{name}-{}", std::process::id())));
    for dir in [&beside, &source] {
        std::fs::create_dir(dir).unwrap();
    }
    let trees: [(&str, &dyn Fn() -> Vfs); 2] =
        [("ram", &ram), ("host", &|| Vfs::new(HostFs::new(&source, &HostOptions::default()).unwrap()))];
    for (name, tree) in trees {
        let Some(mount) = Mount::new(&tree(), &long()) else { break };
        for len in [LEN, MAX] {
            let (expected, found) = (outcomes(&beside, len), outcomes(&mount.at, len));
            let differ: Vec<_> = expected.iter().zip(&found).filter(|(expected, found)| expected != found).collect();
            assert!(differ.is_empty(), "{name}, {len} bytes: {differ:#?}");
        }
    }
    for dir in [beside, source] {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn times_at_the_limits_are_kept_and_end_no_mount() {
    const SECOND: i64 = 1_000_000_000;
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    std::fs::write(mount.path("f"), "").unwrap();
    let cases = [
        ((0, 1), 1),
        ((-1, 999_999_999), -1),
        ((-2, 500_000_000), -3 * SECOND / 2),
        ((-3, 0), -3 * SECOND),
        ((i64::MAX / SECOND, 0), i64::MAX / SECOND * SECOND),
        ((i64::MAX, 999_999_999), i64::MAX),
        ((i64::MIN + 1, 5), i64::MIN),
        ((i64::MIN, 5), i64::MIN),
    ];
    for ((tv_sec, tv_nsec), expected) in cases {
        let time = Timespec { tv_sec, tv_nsec };
        let times = Timestamps { last_access: time, last_modification: time };
        let set = rustix::fs::utimensat(CWD, mount.path("f"), &times, rustix::fs::AtFlags::empty());
        assert_eq!(set, Ok(()), "{tv_sec} s, {tv_nsec} ns");
        let attr = vfs.context().attr(Base::CWD, b"/f", false).unwrap();
        assert_eq!((attr.mtime, attr.atime), (expected, expected), "{tv_sec} s, {tv_nsec} ns");
    }
}
