//! A tree in memory with files of root, and the checks at the end: these files are unchanged, and every other file belongs to
//! the user.

use ramfs::{RamFs, RamLimits, RamOptions};
use std::sync::Arc;
use testkit::{Counting, Counts};
use vfs::{
    Base, Context, DirEntry, MountFlags, OpenFlags, PathAt, S_IFBLK, S_IFCHR, S_IFDIR, S_IFMT, SetAttr, SetXattr, Vfs,
};

/// The limit on bytes in each of the two file systems.
pub(crate) const BYTES: u64 = 1 << 16;
/// The limit on files in each of the two file systems.
pub(crate) const INODES: u64 = 48;

/// Content that only root may read.
pub(crate) const SECRET: &[u8] = b"SECRET-SECRET-16";
/// Content that everyone may read.
const PUBLIC: &[u8] = b"PUBLIC-PUBLIC-16";

/// Returns the content of root's file at `path`.
fn content(path: &str) -> &'static [u8] {
    if matches!(path, "/program" | "/read") { PUBLIC } else { SECRET }
}

/// Files of root, with their modes.
const FILES: [(&str, u32); 5] =
    [("/secret", 0o600), ("/private/x", 0o644), ("/program", 0o4755), ("/read", 0o444), ("/d/kept", 0o640)];
const DIRS: [(&str, u32); 6] =
    [("/private", 0o700), ("/d", 0o1777), ("/open", 0o777), ("/drop", 0o1733), ("/m", 0o755), ("/open/m", 0o755)];

/// Makes a tree with files of root, and returns the tree with the counts of its file system. A
/// second file system, which uses the same inode numbers, is mounted at `/m` and bound at
/// `/open/m`.
pub(crate) fn tree() -> (Vfs, Arc<Counts>) {
    let limits = RamLimits { bytes: Some(BYTES), inodes: Some(INODES), per_user: None };
    let (fs, counts) =
        Counting::of(Box::new(RamFs::with_options(&RamOptions { mode: 0o1777, limits, ..RamOptions::default() })));
    let vfs = Vfs::new(fs);
    let context = vfs.context();
    context.set_umask(0);
    for (path, mode) in DIRS {
        context.mkdir(Base::CWD, path.as_bytes(), mode).expect("a new directory");
    }
    for (path, mode) in FILES {
        let file = context
            .open(Base::CWD, path.as_bytes(), OpenFlags::CREAT.union(OpenFlags::WRONLY), mode)
            .expect("a new file");
        file.write_at(0, content(path)).expect("its content");
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        context.set_attr(Base::CWD, path.as_bytes(), true, &set).expect("its mode");
        context.set_xattr(Base::CWD, path.as_bytes(), true, b"trusted.a", SECRET, SetXattr::Any).expect("an attribute");
    }
    let limits = RamLimits { bytes: Some(BYTES), inodes: Some(INODES), per_user: None };
    let second = RamFs::with_options(&RamOptions { mode: 0o1777, limits, ..RamOptions::default() });
    context.mount(second, Base::CWD, b"/m", MountFlags::default()).expect("a mount");
    context.bind(PathAt::cwd(b"/m"), PathAt::cwd(b"/open/m"), MountFlags::default(), false).expect("a bind");
    (vfs, counts)
}

/// Checks that the files and directories of root are unchanged, and returns their inode numbers.
pub(crate) fn check_roots_files(context: &Context) -> Vec<u64> {
    let mut inodes = Vec::new();
    for (path, mode) in FILES.iter().chain(&DIRS) {
        let attr = context.attr(Base::CWD, path.as_bytes(), false).expect("a file of root");
        // Other file systems are mounted on two of them.
        let mode = if path.ends_with("/m") { 0o1777 } else { *mode };
        assert_eq!((attr.uid, attr.gid, attr.mode & 0o7777), (0, 0, mode), "{path}");
        inodes.push(attr.ino);
    }
    for (path, _) in FILES {
        let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).expect("a file of root");
        let mut buffer = [0; 64];
        let read = file.read_at(0, &mut buffer).expect("its content");
        assert_eq!(&buffer[..read], content(path), "{path}");
        assert_eq!(context.get_xattr(Base::CWD, path.as_bytes(), false, b"trusted.a").as_deref(), Ok(SECRET), "{path}");
    }
    inodes
}

/// Checks every file under `dir`: either the file belongs to the user and is not a device, or its
/// inode number is in `roots`. (The user may give a file of root another name.) So no file of the
/// user has a set-id bit for somebody else.
pub(crate) fn check_others_files(context: &Context, dir: &[u8], roots: &[u64]) {
    for entry in listed(context, dir) {
        let path = [dir, if dir == b"/" { b"" } else { b"/" }, &entry.name].concat();
        let attr = context.attr(Base::CWD, &path, false).expect("a listed name");
        let is_device = attr.mode & S_IFMT == S_IFCHR || attr.mode & S_IFMT == S_IFBLK;
        let is_users = (attr.uid, attr.gid, is_device) == (1001, 1001, false);
        assert!(is_users || roots.contains(&attr.ino), "{:?}: {attr:?}", String::from_utf8_lossy(&path));
        if entry.kind == S_IFDIR {
            // The root of the second file system is root's; its other inode numbers may be those of files in the first.
            let is_mount = path.ends_with(b"/m") && attr.uid == 0;
            check_others_files(context, &path, if is_mount { &[] } else { roots });
        }
    }
}

/// Returns all entries of the directory `dir`, except `.` and `..`.
pub(crate) fn listed(context: &Context, dir: &[u8]) -> Vec<DirEntry> {
    let open = context.open(Base::CWD, dir, OpenFlags::DIRECTORY, 0).expect("a directory");
    let more = || Some(open.next_entries().expect("a listing")).filter(|entries| !entries.is_empty());
    let entries = core::iter::from_fn(more).flatten();
    entries.filter(|entry| *entry.name != *b"." && *entry.name != *b"..").collect()
}
