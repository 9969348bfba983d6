//! Differential test of the flags of inodes against the running kernel: each operation on a file and on a directory that has
//! them fails, or does not, as on its tmpfs.
//!
//! Needs root, and a tmpfs with flags (Linux 6.6): without them a test prints that and ends.

use crate::answers::{number, raw};
use crate::namespace::ops::flags::*;
use rustix::fs as sys;
use rustix::fs::{AtFlags, CWD, FallocateFlags, IFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use vfs::{
    Allocate, Base, Context, Errno, InodeFlags, MAY_WRITE, OpenFile, OpenFlags, PathAt, RenameFlags, S_IFREG, SetAttr,
    SetTime, SetXattr, Vfs,
};

/// The names that an operation works with. Those with the flags are `f` and `d`; each is there once for each operation.
const FILES: [&str; 5] = ["f", "other", "d/in", "e/in", "source"];
const DIRS: [&str; 3] = ["d", "d/sub", "e"];

/// An operation: its name, and what it returns on either side. The open files are of `f`, opened before it had flags, to read and
/// write, and of `source`.
type Operation = (&'static str, fn(&Kernel) -> i32, fn(&Ours) -> i32);

struct Kernel {
    dir: PathBuf,
    open: File,
    source: File,
}

struct Ours {
    context: Context,
    open: OpenFile,
    source: OpenFile,
}

impl Kernel {
    /// `None` if the kernel's answers cannot be had here.
    fn new(dir: &Path, flagged: &str, flags: u32) -> Option<Self> {
        let at = |name: &str| dir.join(name);
        DIRS.iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        FILES.iter().for_each(|name| std::fs::write(at(name), "contents").unwrap());
        for name in ["f", "d"] {
            sys::setxattr(at(name), "trusted.old", b"", XattrFlags::empty()).unwrap();
        }
        let open = |name| File::options().read(true).write(true).open(at(name)).unwrap();
        let kernel = Self { dir: dir.into(), open: open("f"), source: open("source") };
        kernel.set(flagged, flags).then_some(kernel)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn set(&self, name: &str, flags: u32) -> bool {
        let file = File::open(self.at(name)).unwrap();
        sys::ioctl_setflags(file, IFlags::from_bits_retain(flags)).is_ok()
    }

    fn open(&self, name: &str, flags: u32) -> i32 {
        number(sys::open(self.at(name), OFlags::from_bits_retain(flags), Mode::empty()))
    }

    fn rename(&self, from: &str, to: &str, flags: u32) -> i32 {
        let flags = sys::RenameFlags::from_bits_retain(flags);
        number(sys::renameat_with(CWD, self.at(from), CWD, self.at(to), flags))
    }

    fn times(&self, name: &str, atime: i64, mtime: i64) -> i32 {
        let time = |tv_nsec| Timespec { tv_sec: 7, tv_nsec };
        let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
        number(sys::utimensat(CWD, self.at(name), &times, AtFlags::empty()))
    }

    fn allocate(&self, flags: FallocateFlags) -> i32 {
        number(sys::fallocate(&self.open, flags, 0, 4096))
    }
}

impl Ours {
    fn new(flagged: &str, flags: u32) -> Self {
        let context = Vfs::new(ramfs::RamFs::new()).context();
        DIRS.iter().for_each(|name| context.mkdir(Base::CWD, name.as_bytes(), 0o755).unwrap());
        let open = |name: &str| context.open(Base::CWD, name.as_bytes(), OpenFlags::RDWR, 0).unwrap();
        for name in FILES {
            context.mknod(Base::CWD, name.as_bytes(), S_IFREG | 0o644, 0).unwrap();
            open(name).write_at(0, b"contents").unwrap();
        }
        for name in ["f", "d"] {
            context.set_xattr(Base::CWD, name.as_bytes(), true, b"trusted.old", b"", SetXattr::Any).unwrap();
        }
        let (open, source) = (open("f"), open("source"));
        let ours = Self { context, open, source };
        let held = ours.context.hold(Base::CWD, flagged.as_bytes(), true).unwrap();
        ours.context.set_inode_flags_held(&held, InodeFlags::from_bits_retain(flags)).unwrap();
        ours
    }

    fn open(&self, name: &str, flags: u32) -> i32 {
        raw(self.context.open(Base::CWD, name.as_bytes(), OpenFlags::from_bits_retain(flags), 0))
    }

    fn rename(&self, from: &str, to: &str, flags: u32) -> i32 {
        let flags = RenameFlags::from_bits_retain(flags);
        raw(self.context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags))
    }

    fn set(&self, name: &str, set: SetAttr) -> i32 {
        raw(self.context.set_attr(Base::CWD, name.as_bytes(), true, &set))
    }

    fn times(&self, name: &str, atime: Option<SetTime>, mtime: Option<SetTime>) -> i32 {
        self.set(name, SetAttr { atime, mtime, ..SetAttr::default() })
    }
}

const OPERATIONS: &[Operation] = &[
    ("read", |k| k.open("f", O_RDONLY), |o| o.open("f", O_RDONLY)),
    ("write", |k| k.open("f", O_WRONLY), |o| o.open("f", O_WRONLY)),
    ("append", |k| k.open("f", O_WRONLY | O_APPEND), |o| o.open("f", O_WRONLY | O_APPEND)),
    ("cut and append", |k| k.open("f", O_RDWR | O_APPEND | O_TRUNC), |o| o.open("f", O_RDWR | O_APPEND | O_TRUNC)),
    ("create that exists", |k| k.open("f", O_WRONLY | O_CREAT), |o| o.open("f", O_WRONLY | O_CREAT)),
    ("cut", |k| k.open("f", O_RDONLY | O_TRUNC), |o| o.open("f", O_TRUNC)),
    (
        "access",
        |k| number(sys::access(k.at("f"), sys::Access::WRITE_OK)),
        |o| raw(o.context.access(Base::CWD, b"f", true, MAY_WRITE)),
    ),
    (
        "chmod",
        |k| number(sys::chmod(k.at("f"), Mode::from_raw_mode(0o600))),
        |o| o.set("f", SetAttr { mode: Some(0o600), ..SetAttr::default() }),
    ),
    (
        "chown",
        |k| number(sys::chownat(CWD, k.at("d"), Some(sys::Uid::from_raw(7)), None, AtFlags::empty())),
        |o| o.set("d", SetAttr { uid: Some(7), ..SetAttr::default() }),
    ),
    ("times", |k| k.times("f", 1, 2), |o| o.times("f", Some(SetTime::At(1)), Some(SetTime::At(2)))),
    (
        "touch",
        |k| k.times("f", sys::UTIME_NOW, sys::UTIME_NOW),
        |o| o.times("f", Some(SetTime::Now), Some(SetTime::Now)),
    ),
    ("one time", |k| k.times("d", sys::UTIME_NOW, sys::UTIME_OMIT), |o| o.times("d", Some(SetTime::Now), None)),
    ("unlink", |k| number(sys::unlink(k.at("f"))), |o| raw(o.context.unlink(Base::CWD, b"f"))),
    ("unlink in", |k| number(sys::unlink(k.at("d/in"))), |o| raw(o.context.unlink(Base::CWD, b"d/in"))),
    ("rmdir in", |k| number(sys::rmdir(k.at("d/sub"))), |o| raw(o.context.rmdir(Base::CWD, b"d/sub"))),
    ("rmdir", |k| number(sys::rmdir(k.at("d"))), |o| raw(o.context.rmdir(Base::CWD, b"d"))),
    (
        "mkdir in",
        |k| number(sys::mkdir(k.at("d/new"), Mode::RWXU)),
        |o| raw(o.context.mkdir(Base::CWD, b"d/new", 0o700)),
    ),
    ("create in", |k| k.open("d/new", O_CREAT | O_RDWR), |o| o.open("d/new", O_CREAT | O_RDWR)),
    (
        "link in",
        |k| number(sys::link(k.at("other"), k.at("d/new"))),
        |o| raw(o.context.link(PathAt::cwd(b"other"), PathAt::cwd(b"d/new"), false)),
    ),
    (
        "link",
        |k| number(sys::link(k.at("f"), k.at("new"))),
        |o| raw(o.context.link(PathAt::cwd(b"f"), PathAt::cwd(b"new"), false)),
    ),
    ("rename", |k| k.rename("f", "new", 0), |o| o.rename("f", "new", 0)),
    ("rename directory", |k| k.rename("d", "e/d", 0), |o| o.rename("d", "e/d", 0)),
    ("rename over", |k| k.rename("other", "f", 0), |o| o.rename("other", "f", 0)),
    ("exchange", |k| k.rename("other", "f", RENAME_EXCHANGE), |o| o.rename("other", "f", RENAME_EXCHANGE)),
    ("rename in", |k| k.rename("d/in", "d/new", 0), |o| o.rename("d/in", "d/new", 0)),
    ("move into", |k| k.rename("e/in", "d/new", 0), |o| o.rename("e/in", "d/new", 0)),
    ("move out of", |k| k.rename("d/in", "e/new", 0), |o| o.rename("d/in", "e/new", 0)),
    (
        "attribute",
        |k| number(sys::setxattr(k.at("f"), "trusted.new", b"", XattrFlags::empty())),
        |o| raw(o.context.set_xattr(Base::CWD, b"f", true, b"trusted.new", b"", SetXattr::Any)),
    ),
    (
        "no attribute",
        |k| number(sys::removexattr(k.at("d"), "trusted.old")),
        |o| raw(o.context.remove_xattr(Base::CWD, b"d", true, b"trusted.old")),
    ),
    (
        "ACL",
        |k| number(sys::setxattr(k.at("f"), "system.posix_acl_access", ACL, XattrFlags::empty())),
        |o| raw(o.context.set_xattr(Base::CWD, b"f", true, b"system.posix_acl_access", ACL, SetXattr::Any)),
    ),
    ("open file: write", |k| number_of(k.open.write_at(b"x", 0)), |o| raw(o.open.write_at(0, b"x"))),
    ("open file: cut", |k| number(sys::ftruncate(&k.open, 3)), |o| raw(o.open.set_len(3))),
    (
        "open file: chmod",
        |k| number(sys::fchmod(&k.open, Mode::from_raw_mode(0o600))),
        |o| raw(o.open.set_attr(&SetAttr { mode: Some(0o600), ..SetAttr::default() })),
    ),
    (
        "open file: reserve",
        |k| k.allocate(FallocateFlags::empty()),
        |o| raw(o.open.allocate(Allocate::Reserve, false, 0, 4096)),
    ),
    (
        "open file: punch",
        |k| k.allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE),
        |o| raw(o.open.allocate(Allocate::PunchHole, true, 0, 4096)),
    ),
    (
        "open file: copy into",
        |k| number(sys::copy_file_range(&k.source, Some(&mut 0), &k.open, Some(&mut 0), 4)),
        |o| raw(o.source.copy_to(0, &o.open, 0, 4)),
    ),
];

/// An ACL equal to mode 0640.
const ACL: &[u8] = &[
    2, 0, 0, 0, //
    1, 0, 6, 0, 255, 255, 255, 255, //
    4, 0, 4, 0, 255, 255, 255, 255, //
    32, 0, 0, 0, 255, 255, 255, 255,
];

fn number_of<T>(result: std::io::Result<T>) -> i32 {
    result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |_| 0)
}

#[test]
fn operations_on_files_with_flags_fail_as_on_tmpfs() {
    let (i, a, d, no_atime) = (0x10, 0x20, 0x40, 0x80);
    let mut refused = 0;
    for (flagged, flags) in
        [("f", 0), ("f", i), ("f", a), ("f", i | a), ("f", d | no_atime), ("d", i), ("d", a), ("d", d)]
    {
        for &(name, kernel, ours) in OPERATIONS {
            let dir = tempfile::Builder::new().prefix("lightfoot-flags-").tempdir_in("/dev/shm");
            let side = dir.as_ref().ok().filter(|_| rustix::process::geteuid().is_root());
            let Some(side) = side.and_then(|dir| Kernel::new(dir.path(), flagged, flags)) else {
                eprintln!("skipped: needs root and a tmpfs with flags at /dev/shm");
                return;
            };
            let expected = kernel(&side);
            for name in [flagged, "new", "e/d", "other"].into_iter().filter(|name| side.at(name).exists()) {
                side.set(name, 0);
            }
            assert_eq!(ours(&Ours::new(flagged, flags)), expected, "{name}: {flagged} has {flags:#x}");
            refused += i32::from(expected != 0);
        }
    }
    assert!(refused > 80, "{refused}");
}

/// `truncate(2)`. Tests have no `unsafe`, without which it cannot be called here, so this test does not run it on tmpfs: the expected
/// errors are those of `vfs_truncate` in Linux.
#[test]
fn a_file_that_may_only_grow_is_not_cut_by_its_path() {
    let cut = SetAttr { size: Some(3), ..SetAttr::default() };
    for (flags, expected) in [(0, 0), (0x10, Errno::EPERM.raw()), (0x20, Errno::EPERM.raw()), (0x40, 0)] {
        assert_eq!(Ours::new("f", flags).set("f", cut), expected, "{flags:#x}");
    }
}

#[test]
fn a_file_with_the_flag_keeps_its_access_time() {
    for (flags, is_kept) in [(0, false), (0x80, true)] {
        let ours = Ours::new("f", 0);
        assert_eq!(ours.times("f", Some(SetTime::At(5)), None), 0);
        let held = ours.context.hold(Base::CWD, b"f", true).unwrap();
        ours.context.set_inode_flags_held(&held, InodeFlags::from_bits_retain(flags)).unwrap();
        ours.open.read_at(0, &mut [0]).unwrap();
        assert_eq!(ours.open.attr().unwrap().atime == 5, is_kept, "{flags:#x}");
    }
}
