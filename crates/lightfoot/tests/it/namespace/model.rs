//! The reference model: a namespace as simple as it can be, shaped only by what Linux answers.
//!
//! What it is: inodes in a vector, directories as sorted maps, permission checks and error precedence as
//! `path_resolution(7)`, the system calls' manual pages and a tmpfs of Linux 6.18 have them (the kernel test holds it
//! to that). It shares no code with the library and never frees an inode.
//!
//! What it is not: fast, concurrent, or a file system.

mod attributes;
mod extra;
mod files;
mod names;
mod walk;

use super::errno::*;
use super::ops::*;
use super::outcome::{Attr, Outcome, Time};
use super::{Namespace, World};
use std::collections::{BTreeMap, BTreeSet};

type Res<T> = Result<T, Errno>;

/// An inode's place in [`Model::inodes`].
pub(crate) type Id = usize;

const ROOT: Id = 0;

/// Permission bits as `access(2)` counts them.
const READ: u32 = 4;
const WRITE: u32 = 2;
const EXEC: u32 = 1;

#[derive(Clone, Debug)]
struct Inode {
    kind: Kind,
    /// The low twelve bits of the mode.
    perm: u32,
    uid: u32,
    gid: u32,
    nlink: u64,
    atime: i64,
    mtime: i64,
    ctime: i64,
}

#[derive(Clone, Debug)]
enum Kind {
    Dir {
        entries: BTreeMap<Vec<u8>, Id>,
        /// What `..` means here, also after the directory was removed.
        parent: Id,
        removed: bool,
    },
    File {
        data: Vec<u8>,
        /// The 4096-byte pages that were ever written.
        pages: BTreeSet<u64>,
    },
    Symlink(Vec<u8>),
    /// File type and device number.
    Special(u32, (u32, u32)),
}

/// The credentials of the caller.
#[derive(Clone, Debug)]
struct Cred {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Cred {
    fn is_root(&self) -> bool {
        self.uid == 0
    }

    fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// An open file.
#[derive(Clone, Debug)]
struct Handle {
    inode: Id,
    readable: bool,
    writable: bool,
    append: bool,
    offset: u64,
}

/// What a process has for itself.
#[derive(Clone, Debug)]
struct Process {
    root: Id,
    cwd: Id,
    umask: u32,
    /// Its own mounts, if it has them.
    mounts: Option<Vec<(Id, Id)>>,
}

/// The reference model: one tree and one process. Of a second process the model knows as much as the generator needs.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    world: World,
    inodes: Vec<Inode>,
    cred: Cred,
    umask: u32,
    root: Id,
    cwd: Id,
    /// The second process; during its operations the first.
    second: Option<Process>,
    /// Where relative paths start instead, during [`Op::At`].
    base: Option<Id>,
    /// What is mounted on what, the newest last.
    mounts: Vec<(Id, Id)>,
    slots: [Option<Handle>; SLOTS],
    /// Nanoseconds since 1970; moves with every operation.
    clock: i64,
}

impl Model {
    pub(crate) fn new(world: World) -> Self {
        let clock = 1_800_000_000_000_000_000;
        let (uid, gid) = world.owner;
        let root = Kind::Dir { entries: BTreeMap::new(), parent: ROOT, removed: false };
        let root = Inode { kind: root, perm: 0o755, uid, gid, nlink: 2, atime: clock, mtime: clock, ctime: clock };
        let cred = Cred { uid, gid, groups: Vec::new() };
        let slots = [const { None }; SLOTS];
        let (inodes, mounts) = (vec![root], Vec::new());
        Model {
            world,
            inodes,
            cred,
            umask: 0o022,
            root: ROOT,
            cwd: ROOT,
            second: None,
            base: None,
            mounts,
            slots,
            clock,
        }
    }

    pub(crate) fn root(&self) -> Id {
        self.root
    }

    pub(crate) fn cwd(&self) -> Id {
        self.cwd
    }

    /// What a path names, symbolic links in the last place included.
    pub(crate) fn find_path(&self, path: &[u8]) -> Option<Id> {
        self.lookup(path, false).ok()
    }

    /// A directory's names.
    pub(crate) fn entries_of(&self, dir: Id) -> Vec<(Vec<u8>, Id)> {
        self.entries(dir).into_iter().flatten().map(|(name, id)| (name.clone(), self.shown(*id))).collect()
    }

    /// How many names there are in the tree.
    pub(crate) fn objects(&self) -> usize {
        (0..self.inodes.len()).filter_map(|id| self.entries(id).ok()).map(BTreeMap::len).sum()
    }

    fn entries(&self, dir: Id) -> Res<&BTreeMap<Vec<u8>, Id>> {
        match &self.inodes[dir].kind {
            Kind::Dir { entries, .. } => Ok(entries),
            _ => Err(ENOTDIR),
        }
    }

    fn entries_mut(&mut self, dir: Id) -> &mut BTreeMap<Vec<u8>, Id> {
        match &mut self.inodes[dir].kind {
            Kind::Dir { entries, .. } => entries,
            other => panic!("inode {dir} is not a directory but {other:?}"),
        }
    }

    pub(crate) fn is_dir(&self, id: Id) -> bool {
        matches!(self.inodes[id].kind, Kind::Dir { .. })
    }

    fn is_file(&self, id: Id) -> bool {
        matches!(self.inodes[id].kind, Kind::File { .. })
    }

    fn is_removed_dir(&self, id: Id) -> bool {
        matches!(self.inodes[id].kind, Kind::Dir { removed: true, .. })
    }

    /// `inode_permission`: whether the process may use the inode in all of the requested ways.
    fn permission(&self, id: Id, bits: u32) -> Res<()> {
        let inode = &self.inodes[id];
        let shift = match () {
            () if inode.uid == self.cred.uid => 6,
            () if self.cred.in_group(inode.gid) => 3,
            () => 0,
        };
        let granted = bits & !(inode.perm >> shift) == 0;
        let overridden = self.cred.is_root() && (bits & EXEC == 0 || self.is_dir(id) || inode.perm & 0o111 != 0);
        if granted || overridden { Ok(()) } else { Err(EACCES) }
    }

    fn is_owner_or_root(&self, id: Id) -> bool {
        self.cred.is_root() || self.cred.uid == self.inodes[id].uid
    }

    fn in_group_or_root(&self, gid: u32) -> bool {
        self.cred.is_root() || self.cred.in_group(gid)
    }

    fn slot(&self, slot: usize) -> Res<&Handle> {
        self.slots[slot].as_ref().ok_or(EBADF)
    }

    /// Changes of an inode's contents: a directory's entries, a file's data.
    fn touch_modified(&mut self, id: Id) {
        self.inodes[id].mtime = self.clock;
        self.inodes[id].ctime = self.clock;
    }

    fn touch_changed(&mut self, id: Id) {
        self.inodes[id].ctime = self.clock;
    }

    /// Access under `relatime`: moves the access time if it is not ahead of the other two, or older than a day.
    fn touch_accessed(&mut self, id: Id) {
        const DAY: i64 = 24 * 3600 * 1_000_000_000;
        let clock = self.clock;
        let inode = &mut self.inodes[id];
        if inode.mtime >= inode.atime || inode.ctime >= inode.atime || clock - inode.atime >= DAY {
            inode.atime = clock;
        }
    }

    fn attr(&self, id: Id) -> Attr {
        let inode = &self.inodes[id];
        let (kind, size, rdev, blocks) = match &inode.kind {
            Kind::Dir { entries, .. } => (S_IFDIR, 40 + 20 * entries.len(), (0, 0), None),
            Kind::File { data, pages } => (S_IFREG, data.len(), (0, 0), Some(8 * pages.len() as u64)),
            Kind::Symlink(body) => (S_IFLNK, body.len(), (0, 0), None),
            Kind::Special(kind, rdev) => (*kind, 0, *rdev, None),
        };
        Attr {
            mode: kind | inode.perm,
            nlink: inode.nlink,
            uid: inode.uid,
            gid: inode.gid,
            size: size as u64,
            rdev,
            blocks,
            ino: id as u64,
            dev: 0,
            atime: Time::Raw(inode.atime),
            mtime: Time::Raw(inode.mtime),
            ctime: Time::Raw(inode.ctime),
        }
    }

    fn become_user(&mut self, user: usize) {
        let (uid, gid, groups) = USERS[user];
        self.cred = Cred { uid, gid, groups: groups.to_vec() };
    }
}

impl Namespace for Model {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.clock += 1_000_000;
        match op {
            Op::Become(user) => {
                self.become_user(*user);
                Outcome::Done
            }
            Op::Umask(mask) => Outcome::Count(u64::from(std::mem::replace(&mut self.umask, mask & 0o777))),
            Op::Mkdir { path, mode } => self.mkdir(path, *mode).into(),
            Op::Mknod { path, mode, rdev } => self.mknod(path, *mode, *rdev).into(),
            Op::Symlink { body, path } => self.symlink(body, path).into(),
            Op::Link { from, to } => self.link(from, to).into(),
            Op::Unlink { path } => self.unlink(path).into(),
            Op::Rmdir { path } => self.rmdir(path).into(),
            Op::Rename { from, to } => self.rename(from, to).into(),
            Op::Open { slot, path, flags, mode } => self.open(*slot, path, *flags, *mode).into(),
            Op::Close { slot } => self.slots[*slot].take().map(|_| ()).ok_or(EBADF).into(),
            Op::Readlink { path } => self.readlink(path).into(),
            Op::Stat { path } => self.lookup(path, true).map(|id| self.attr(id)).into(),
            Op::Lstat { path } => self.lookup(path, false).map(|id| self.attr(id)).into(),
            Op::ReadDir { path } => self.read_dir(path).into(),
            Op::Chmod { path, mode } => self.lookup(path, true).and_then(|id| self.change_mode(id, *mode)).into(),
            Op::Chown { path, uid, gid, follow } => {
                self.lookup(path, *follow).and_then(|id| self.change_owner(id, *uid, *gid)).into()
            }
            Op::Truncate { path, len } => self.truncate(path, *len).into(),
            Op::Utimens { path, atime, mtime } => self.utimens(path, *atime, *mtime).into(),
            Op::Access { path, bits } => self.lookup(path, true).and_then(|id| self.permission(id, *bits)).into(),
            Op::Chdir { path } => self.chdir(path).into(),
            Op::Getcwd => self.getcwd().into(),
            Op::Write { slot, fill, len } => self.write(*slot, None, *fill, *len).into(),
            Op::Pwrite { slot, offset, fill, len } => self.write(*slot, Some(*offset), *fill, *len).into(),
            Op::Read { slot, len } => self.read(*slot, None, *len).into(),
            Op::Pread { slot, offset, len } => self.read(*slot, Some(*offset), *len).into(),
            Op::Ftruncate { slot, len } => self.ftruncate(*slot, *len).into(),
            Op::Fstat { slot } => self.slot(*slot).map(|handle| self.attr(handle.inode)).into(),
            Op::Fchmod { slot, mode } => {
                self.slot(*slot).map(|h| h.inode).and_then(|id| self.change_mode(id, *mode)).into()
            }
            Op::Lseek { slot, whence, offset } => self.lseek(*slot, *whence, *offset).into(),
            Op::At { slot, op } => self.apply_at(*slot, op),
            Op::Other(op) => self.apply_by_other(op),
            Op::Extra(op) => self.extra(op).into(),
        }
    }
}
