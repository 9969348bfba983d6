//! Sequences of operations on one tree, mounts included, by one thread: no panic, and at the end everything adds up.
//!
//! The end: whatever was open is closed and whatever was mounted is unmounted; then nothing is held, each name is one
//! dentry, each file has as many links as names, and the file system counts as many files as can be reached.

use crate::guarded_tree::listed;
use crate::input::Input;
use ramfs::RamFs;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::{Counting, Counts};
use vfs::{
    Base, Context, Credentials, Errno, MountFlags, OpenFile, OpenFlags, PathAt, PathRef, RenameFlags, Resolve, S_IFDIR,
    S_IFIFO, S_IFMT, SetAttr, SetXattr, UnmountFlags, Vfs,
};

/// One run does at most this many operations.
const MAX_STEPS: usize = 96;

/// The longest wait for the end of a file system. An end that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Directories of paths, and names in them.
const DIRS: &[&str] = &["", "/", "/a/", "/b/", "/a/c/", "/m/", "/m/a/", "l/", "../", "a/../b/", "/m/../a/c/", "/a/./"];
const NAMES: &[&str] =
    &["a", "b", "c", "m", "l", "f", "g", "a-name-of-more-than-thirty-two-bytes", ".", "..", "", "h/"];
const BODIES: &[&str] = &["a", "/a", "../b", "l", "/", "/m/a", "a/c/../f"];
const XATTRS: &[&[u8]] = &[
    b"user.a",
    b"user.b",
    b"trusted.a",
    b"security.a",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
    b"user.",
    b"x",
];

struct World {
    vfs: Vfs,
    /// The counts of each file system that was made. The file system of the root is the first.
    systems: Vec<Arc<Counts>>,
    contexts: Vec<Context>,
    current: usize,
    files: [Option<OpenFile>; 4],
    held: [Option<PathRef>; 2],
    pivoted: bool,
}

/// Runs the operations that the input encodes.
pub fn run(data: &[u8]) {
    let (fs, counts) = Counting::of(Box::new(RamFs::new()));
    let systems = vec![counts];
    let vfs = Vfs::new(fs);
    let contexts = vec![vfs.context()];
    for dir in ["/a", "/b", "/a/c", "/m"] {
        contexts[0].mkdir(Base::CWD, dir.as_bytes(), 0o777).expect("a new directory");
    }
    let mut world = World {
        vfs,
        systems,
        contexts,
        current: 0,
        files: Default::default(),
        held: Default::default(),
        pivoted: false,
    };
    let mut input = Input::new(data);
    let mut steps = 0;
    while !input.is_empty() && steps < MAX_STEPS {
        // What an operation answers is other tests' business.
        let _ = world.step(&mut input);
        steps += 1;
    }
    world.end();
}

fn path(input: &mut Input<'_>) -> Vec<u8> {
    [input.pick(DIRS).as_bytes(), input.pick(NAMES).as_bytes()].concat()
}

impl World {
    fn step(&mut self, input: &mut Input<'_>) -> Result<(), Errno> {
        let kind = input.byte();
        let context = &self.contexts[self.current];
        let resolve = Resolve::from_linux(((u32::from(kind) >> 6) * 8) & 24).unwrap_or_default();
        let base = match &self.held[usize::from(kind >> 5) & 1] {
            Some(held) if kind & 0x80 != 0 => Base::at(held).within(resolve),
            _ => Base::CWD,
        };
        let (a, b) = (path(input), input.byte());
        let follow = b & 1 == 0;
        match kind & 31 {
            0 => context.mkdir(base, &a, u32::from(b) << 1)?,
            1 | 2 => {
                let flags = OpenFlags::CREAT.union(OpenFlags::from_bits_retain(u32::from(b) & 3)).bits()
                    | u32::from(b & 0xf8) << 4;
                self.files[usize::from(b >> 2) & 3] =
                    Some(context.open(base, &a, OpenFlags::from_bits_retain(flags), 0o644)?);
            }
            3 => {
                let flags = OpenFlags::from_bits_retain(input.word() << 6 | u32::from(b) & 3);
                self.files[usize::from(b >> 2) & 3] = Some(context.open(base, &a, flags, 0o600)?);
            }
            4 => {
                let flags = OpenFlags::TMPFILE.union(OpenFlags::RDWR);
                self.files[usize::from(b >> 2) & 3] = Some(context.open(base, &a, flags, 0o600)?);
            }
            5 => self.files[usize::from(b) & 3] = None,
            6 | 7 => context.unlink(base, &a)?,
            8 => context.rmdir(base, &a)?,
            9 | 10 => {
                let flags = RenameFlags::from_bits(u32::from(b) & 3).unwrap_or_default();
                context.rename(PathAt::new(base, &a), PathAt::cwd(&path(input)), flags)?;
            }
            11 => context.link(PathAt::new(base, &a), PathAt::cwd(&path(input)), follow)?,
            12 => {
                if let Some(file) = &self.files[usize::from(b) & 3] {
                    context.link(PathAt::new(Base::at(file.held()), b""), PathAt::new(base, &a), true)?;
                }
            }
            13 => context.symlink(BODIES[usize::from(b) % BODIES.len()].as_bytes(), base, &a)?,
            14 => context.mknod(base, &a, S_IFIFO | u32::from(b), 0)?,
            15..=19 => self.attributes(kind & 31, input, &a, b)?,
            20 => self.file(usize::from(b) & 3, b >> 2, input)?,
            21 => self.held[usize::from(b >> 1) & 1] = Some(context.hold(base, &a, follow)?),
            22 => self.held[usize::from(b >> 1) & 1] = None,
            23..=28 => self.mounts(kind & 31, input, &a, b)?,
            _ => self.contexts(kind & 31, &a, b)?,
        }
        Ok(())
    }

    fn attributes(&self, kind: u8, input: &mut Input<'_>, a: &[u8], b: u8) -> Result<(), Errno> {
        let (context, follow) = (&self.contexts[self.current], b & 1 == 0);
        let name = XATTRS[usize::from(b >> 1) % XATTRS.len()];
        match kind {
            15 => context.set_xattr(Base::CWD, a, follow, name, &input.acl_attribute(7), SetXattr::Any),
            16 => context.remove_xattr(Base::CWD, a, follow, name),
            17 => {
                let _ = context.get_xattr(Base::CWD, a, follow, name);
                context.list_xattrs(Base::CWD, a, follow).map(drop)
            }
            18 => {
                let bits = input.word();
                let some = |bit: u32, value: u32| (bits & bit != 0).then_some(value);
                let set = SetAttr {
                    mode: some(1, bits >> 4 & 0o7777),
                    uid: some(2, bits >> 4 & 7),
                    gid: some(4, bits >> 7 & 7),
                    size: some(8, bits >> 2).map(u64::from),
                    ..SetAttr::default()
                };
                context.set_attr(Base::CWD, a, follow, &set)
            }
            _ => {
                let _ = (context.read_link(Base::CWD, a), context.access(Base::CWD, a, follow, u32::from(b >> 1) & 7));
                let _ = (context.statvfs(Base::CWD, a), context.holders(Base::CWD, a));
                context.canonical(Base::CWD, a).map(drop)
            }
        }
    }

    fn file(&self, slot: usize, what: u8, input: &mut Input<'_>) -> Result<(), Errno> {
        let Some(file) = &self.files[slot] else { return Err(Errno::EBADF) };
        match what % 5 {
            0 => file.write_at(input.word().into(), input.take(16)).map(drop),
            1 => file.read_at(input.word().into(), &mut [0; 64]).map(drop),
            2 => file.set_len(input.word().into()),
            3 => file.next_entries().map(drop),
            _ => {
                let _ = self.contexts[self.current].path_of(file.held());
                file.attr().map(drop)
            }
        }
    }

    fn mounts(&mut self, kind: u8, input: &mut Input<'_>, a: &[u8], b: u8) -> Result<(), Errno> {
        let context = &self.contexts[self.current];
        let flags = MountFlags::from_bits(u32::from(b) & 7).unwrap_or_default();
        match kind {
            // Enough is enough: what is mounted doubles with each recursive bind.
            23..=25 if context.mounts().len() > 12 => Ok(()),
            23 => {
                let (fs, counts) = Counting::of(Box::new(RamFs::new()));
                self.systems.push(counts);
                context.mount(fs, Base::CWD, a, flags)
            }
            24 => context.bind(PathAt::cwd(a), PathAt::cwd(&path(input)), flags, b & 0x80 != 0),
            25 => context.move_mount(PathAt::cwd(a), PathAt::cwd(&path(input))),
            26 => {
                let flags = if b & 2 == 0 { UnmountFlags::default() } else { UnmountFlags::DETACH };
                context.unmount(Base::CWD, a, flags)
            }
            27 => context.remount(Base::CWD, a, flags),
            _ => {
                let pivoted = context.pivot_root(a, &path(input));
                self.pivoted |= pivoted.is_ok();
                pivoted
            }
        }
    }

    fn contexts(&mut self, kind: u8, a: &[u8], b: u8) -> Result<(), Errno> {
        let context = &self.contexts[self.current];
        match (kind, b % 5) {
            (29, 0) => context.set_current_dir(a),
            (29, 1) => context.set_root(a),
            (29, 2) => context.current_dir().map(drop),
            (29, _) => {
                let cred = if b & 0x80 == 0 { Credentials::root() } else { Credentials::user(7, 7, &[1]) };
                context.set_credentials(cred);
                Ok(())
            }
            (_, 0) if self.contexts.len() < 4 => {
                self.contexts.push(context.fork());
                Ok(())
            }
            (_, 1) => context.unshare_mounts(),
            (_, 2) if self.contexts.len() > 1 => {
                self.contexts.pop();
                self.current = 0;
                Ok(())
            }
            _ => {
                self.current = usize::from(b >> 3) % self.contexts.len();
                Ok(())
            }
        }
    }

    fn end(self) {
        let Self { vfs, systems, contexts, files, held, pivoted, .. } = self;
        drop((contexts, files, held));
        vfs.barrier();
        let context = vfs.context();
        unmount_all(&context);
        if context.mounts().len() == 1 && !pivoted {
            vfs.barrier();
            assert!(all_end(&systems[1..]), "a file system outlived its mounts");
            check_tree(&vfs, context);
        } else {
            drop(context);
        }
        drop(vfs);
        assert!(all_end(&systems), "a file system outlived its tree");
    }
}

/// Waits at most `PATIENCE` for the end of each file system, and returns whether all of the file
/// systems ended.
fn all_end(systems: &[Arc<Counts>]) -> bool {
    systems.iter().all(|counts| counts.ends_within(PATIENCE))
}

/// Unmounts every mount except the root. Mounts may stay only if a mount lies over the root,
/// because no path leads to the mounts below.
fn unmount_all(context: &Context) {
    loop {
        let mounts = context.mounts();
        let mounted = &mounts[1..];
        for mount in mounted.iter().rev() {
            // The path may lead to another mount over this one: then that goes first, and this in the next round.
            let _ = context.unmount(Base::CWD, mount.mountpoint.as_os_str().as_bytes(), UnmountFlags::NOFOLLOW);
        }
        if context.mounts().len() == mounts.len() {
            let hidden = mounted.iter().any(|mount| mount.mountpoint == Path::new("/"));
            assert!(mounted.is_empty() || hidden, "busy, and nothing is in use: {mounted:?}");
            return;
        }
    }
}

/// The files that names lead to.
#[derive(Default)]
struct Reached {
    names: usize,
    /// The link count and the number of names found, for each inode that is not a directory.
    links: BTreeMap<u64, (u32, u32)>,
    dirs: u64,
}

fn check_tree(vfs: &Vfs, context: Context) {
    let mut reached = Reached::default();
    reach(&context, b"/", &mut reached);
    for (ino, (nlink, names)) in &reached.links {
        assert_eq!(nlink, names, "links of inode {ino}");
    }
    let fs = context.statvfs(Base::CWD, b"/").expect("a root").fs;
    // Each name of a file counts as an inode.
    let files: u64 = reached.links.values().map(|(_, names)| u64::from(*names)).sum();
    assert_eq!(fs.files - fs.files_free, files + reached.dirs, "inodes that no path reaches");
    drop(context);
    vfs.barrier();
    let stats = vfs.stats();
    assert_eq!((stats.held, stats.live_dentries), (0, reached.names + 1));
}

fn reach(context: &Context, dir: &[u8], reached: &mut Reached) {
    reached.dirs += 1;
    let mut subdirs = 0;
    for entry in listed(context, dir) {
        reached.names += 1;
        let path = [dir, b"/", &entry.name].concat();
        let attr = context.attr(Base::CWD, &path, false).expect("a listed name");
        assert_eq!((attr.ino, attr.mode & S_IFMT), (entry.ino, entry.kind));
        if entry.kind == S_IFDIR {
            subdirs += 1;
            reach(context, &path, reached);
        } else {
            let links = reached.links.entry(attr.ino).or_insert((attr.nlink, 0));
            links.1 += 1;
        }
    }
    let links = context.attr(Base::CWD, dir, true).expect("attributes").nlink;
    assert_eq!(links, 2 + subdirs, "links of a directory");
}
