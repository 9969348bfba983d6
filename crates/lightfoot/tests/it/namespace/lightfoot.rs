//! Lightfoot, on its RAM file system, through `vfs::Context`: what the `lightfoot` crate puts around that is not compared here.
//!
//! A file's position is this module's own.

mod extra;

use super::errno::*;
use super::ops::*;
use super::outcome::{Attr, Outcome, Time};
use super::{Namespace, World};
use hostfs::{HostFs, HostOptions};
use ramfs::RamFs;
use tempfile::TempDir;
use vfs::{Base, Builder, Context, Credentials, OpenFile, OpenFlags, PathAt, Policy, Resolve, SetAttr, SetTime, Vfs};
use workspaces::{Fork, ForkLimits};

type Res<T> = Result<T, Errno>;

impl From<vfs::Errno> for Errno {
    fn from(errno: vfs::Errno) -> Self {
        Errno(errno.raw())
    }
}

/// An open file and its position.
#[derive(Debug)]
pub(super) struct Slot {
    file: OpenFile,
    position: u64,
    /// See the kernel's.
    listed: bool,
}

/// One process on its own Lightfoot tree.
#[derive(Debug)]
pub(crate) struct Lightfoot {
    vfs: Vfs,
    pub(super) context: Context,
    /// That of the second process; during [`Op::Other`] that of the first.
    pub(super) other: Option<Context>,
    mount_points: MountPoints,
    pub(super) slots: [Option<Slot>; SLOTS],
    /// The slot where relative paths start, during [`Op::At`].
    base: Option<usize>,
    /// The directory of the host that is the base.
    _host: Option<TempDir>,
}

impl Lightfoot {
    /// A fresh tree; its root directory belongs to the world's owner, as whom the process acts.
    pub(crate) fn new(world: World) -> Self {
        Self::with_table(world, 0)
    }

    /// The same with a table of whole paths of so many bytes, which records every path.
    pub(crate) fn with_table(world: World, bytes: usize) -> Self {
        Self::with_options(world, Vfs::builder().whole_paths(bytes).records_every_path(true))
    }

    /// The same with every directory sharded.
    pub(crate) fn split(world: World) -> Self {
        Self::with_options(world, Vfs::builder().shards_every_directory(true))
    }

    /// A fork of a fork. The first of `ops` were applied to the base, a tree in memory, and the others to the first fork.
    pub(crate) fn forked(world: World, ops: &[Vec<Op>; 2]) -> Self {
        Self::forked_of(Self::new(world), true, world, ops)
    }

    /// As [`forked`](Self::forked), over a directory of a tmpfs.
    pub(crate) fn forked_of_host(world: World, ops: &[Vec<Op>; 2], is_fixed: bool) -> Self {
        let dir = TempDir::new_in("/dev/shm").expect("a directory in /dev/shm");
        let host = HostFs::new(dir.path(), &HostOptions::default()).expect("a host directory");
        let base = Self::with_vfs(world, Vfs::new(host));
        base.context.set_attr(Base::CWD, b"/", true, &chmod(0o755)).expect("the mode of the root");
        Lightfoot { _host: Some(dir), ..Self::forked_of(base, is_fixed, world, ops) }
    }

    fn forked_of(mut base: Self, is_fixed: bool, world: World, ops: &[Vec<Op>; 2]) -> Self {
        let [older, newer] = ops;
        base.fill(older);
        let fork = Fork::over(base.vfs.context(), is_fixed).and_then(|trunk| trunk.fork(ForkLimits::default()));
        let fork = fork.expect("a fork");
        Self::with_vfs(world, Vfs::new(fork.file_system())).fill(newer);
        let fork = fork.fork(ForkLimits::default()).expect("a fork of a fork");
        Self::with_vfs(world, Vfs::new(fork.file_system()))
    }

    fn with_options(world: World, builder: Builder) -> Self {
        let (uid, gid) = world.owner;
        Self::with_vfs(world, builder.build(RamFs::with_root(0o755, uid, gid)))
    }

    fn with_vfs(world: World, vfs: Vfs) -> Self {
        let context = vfs.context();
        context.set_policy(Policy {
            protected_symlinks: world.protected_symlinks,
            protected_hardlinks: world.protected_hardlinks,
            protected_regular: world.protected_regular > 0,
            protected_fifos: world.protected_fifos > 0,
        });
        if world.owner != (0, 0) {
            context.set_credentials(Credentials::user(world.owner.0, world.owner.1, &[]));
        }
        let (mount_points, slots) = Default::default();
        Lightfoot { vfs, context, other: None, mount_points, slots, base: None, _host: None }
    }

    fn slot(&self, slot: usize) -> Res<&Slot> {
        self.slots[slot].as_ref().ok_or(EBADF)
    }

    fn file(&self, slot: usize) -> Res<&OpenFile> {
        self.slot(slot).map(|slot| &slot.file)
    }

    /// Where relative paths start.
    fn base(&self) -> Res<Base<'_>> {
        match self.base {
            None => Ok(Base::CWD),
            Some(slot) => Ok(Base::at(self.file(slot)?.held())),
        }
    }

    fn open(&mut self, slot: usize, path: &[u8], flags: u32, mode: u32, resolve: Resolve) -> Res<()> {
        let base = self.base()?.within(resolve);
        let file = self.context.open(base, path, OpenFlags::from_bits_retain(flags), mode)?;
        self.slots[slot] = Some(Slot { file, position: 0, listed: false });
        Ok(())
    }

    fn apply_at(&mut self, slot: usize, op: &Op) -> Res<Outcome> {
        self.slot(slot)?;
        self.base = Some(slot);
        let answer = self.try_apply(op);
        self.base = None;
        answer
    }

    fn read_dir(&self, path: &[u8]) -> Res<Vec<(RawPath, u32)>> {
        let dir = self.context.open(self.base()?, path, OpenFlags::DIRECTORY, 0)?;
        let mut listing = Vec::new();
        loop {
            let entries = dir.next_entries()?;
            if entries.is_empty() {
                break;
            }
            listing.extend(entries.into_iter().map(|entry| (RawPath(entry.name.into_vec()), entry.kind)));
        }
        listing.sort();
        Ok(listing)
    }

    /// The path of the working directory, which `getcwd(2)` gives only up to the longest path.
    fn getcwd(&self) -> Res<RawPath> {
        let path = self.context.current_dir()?;
        if path.len() < 4096 { Ok(RawPath(path)) } else { Err(ENAMETOOLONG) }
    }

    fn set(&self, path: &[u8], follow: bool, set: SetAttr) -> Res<()> {
        Ok(self.context.set_attr(self.base()?, path, follow, &set)?)
    }

    fn truncate(&self, path: &[u8], len: i64) -> Res<()> {
        // A length below zero cannot be said.
        let size = u64::try_from(len).map_err(|_| EINVAL)?;
        self.set(path, true, SetAttr { size: Some(size), ..SetAttr::default() })
    }

    fn utimens(&self, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Res<()> {
        // Without a time to set, Linux does not even look.
        if atime.is_none() && mtime.is_none() {
            return Ok(());
        }
        let (atime, mtime) = (atime.map(SetTime::At), mtime.map(SetTime::At));
        self.set(path, true, SetAttr { atime, mtime, ..SetAttr::default() })
    }

    fn stat(&self, path: &[u8], follow: bool) -> Res<Attr> {
        let answer: Result<Attr, vfs::Errno> = self.context.attr_as(self.base()?, path, follow, attr);
        Ok(answer?)
    }

    fn fstat(&self, slot: usize) -> Res<Attr> {
        let file = self.file(slot)?;
        Ok(attr(vfs::PackedAttr::from(&file.attr()?), file.dev()))
    }

    fn read(&mut self, slot: usize, offset: Option<u64>, len: usize) -> Res<Vec<u8>> {
        let Slot { file, position, .. } = self.slots[slot].as_mut().ok_or(EBADF)?;
        let mut data = vec![0; len];
        let read = file.read_at(offset.unwrap_or(*position), &mut data)?;
        if offset.is_none() {
            *position += read as u64;
        }
        data.truncate(read);
        Ok(data)
    }

    fn write(&mut self, slot: usize, offset: Option<u64>, data: &[u8]) -> Res<u64> {
        let Slot { file, position, .. } = self.slots[slot].as_mut().ok_or(EBADF)?;
        let (written, end) = file.write_at(offset.unwrap_or(*position), data)?;
        if offset.is_none() {
            *position = end;
        }
        Ok(written as u64)
    }

    fn lseek(&mut self, slot: usize, whence: Whence, offset: i64) -> Res<u64> {
        let Slot { file, position, listed } = self.slots[slot].as_mut().ok_or(EBADF)?;
        if *listed {
            return Err(ESPIPE);
        }
        if file.flags().contains(OpenFlags::PATH) {
            return Err(EBADF);
        }
        let attr = file.attr()?;
        let from = match whence {
            Whence::Start => 0,
            Whence::Current => *position,
            // A directory has no end to count from.
            Whence::End if attr.is_dir() => return Err(EINVAL),
            Whence::End => attr.size,
        };
        *position = from.checked_add_signed(offset).filter(|to| i64::try_from(*to).is_ok()).ok_or(EINVAL)?;
        Ok(*position)
    }

    /// `linkat(2)` without `AT_EMPTY_PATH`.
    fn link(&self, from: &[u8], follow: bool, to: &[u8]) -> Res<()> {
        if from.is_empty() {
            return Err(ENOENT);
        }
        Ok(self.context.link(PathAt::new(self.base()?, from), PathAt::new(self.base()?, to), follow)?)
    }

    fn become_user(&self, user: usize) {
        let (uid, gid, groups) = USERS[user];
        for context in [Some(&self.context), self.other.as_ref()].into_iter().flatten() {
            context.set_credentials(Credentials::user(uid, gid, groups));
        }
    }

    /// Carries out an operation by the second process, if there is one.
    fn apply_by_other(&mut self, op: &Op) -> Outcome {
        let Some(other) = &mut self.other else { return Outcome::Done };
        std::mem::swap(&mut self.context, other);
        let outcome = self.apply(op);
        std::mem::swap(&mut self.context, self.other.as_mut().expect("the operation has not ended it"));
        outcome
    }

    fn mknod(&self, path: &[u8], mode: u32, (major, minor): (u32, u32)) -> Res<()> {
        // What has no device has no number of one.
        let device = matches!(mode & S_IFMT, S_IFCHR | S_IFBLK);
        let rdev = if device { major << 20 | minor } else { 0 };
        Ok(self.context.mknod(self.base()?, path, mode, rdev)?)
    }

    fn try_apply(&mut self, op: &Op) -> Res<Outcome> {
        if self.refuses(op) {
            return Err(EBUSY);
        }
        let context = &self.context;
        Ok(match op {
            Op::Become(user) => {
                self.become_user(*user);
                Outcome::Done
            }
            Op::Other(op) => self.apply_by_other(op),
            Op::Umask(mask) => Outcome::Count(context.set_umask(*mask).into()),
            Op::Mkdir { path, mode } => context.mkdir(self.base()?, path, *mode)?.into(),
            Op::Mknod { path, mode, rdev } => self.mknod(path, *mode, *rdev)?.into(),
            Op::Symlink { body, path } => context.symlink(body, self.base()?, path)?.into(),
            Op::Link { from, to } => self.link(from, false, to)?.into(),
            Op::Unlink { path } => context.unlink(self.base()?, path)?.into(),
            Op::Rmdir { path } => context.rmdir(self.base()?, path)?.into(),
            Op::Rename { from, to } => context
                .rename(PathAt::new(self.base()?, from), PathAt::new(self.base()?, to), vfs::RenameFlags::default())?
                .into(),
            Op::Open { slot, path, flags, mode } => self.open(*slot, path, *flags, *mode, Resolve::default())?.into(),
            Op::Close { slot } => self.slots[*slot].take().map(drop).ok_or(EBADF)?.into(),
            Op::Readlink { path } => RawPath(context.read_link(self.base()?, path)?).into(),
            Op::Stat { path } => self.stat(path, true)?.into(),
            Op::Lstat { path } => self.stat(path, false)?.into(),
            Op::ReadDir { path } => self.read_dir(path)?.into(),
            Op::Chmod { path, mode } => self.set(path, true, chmod(*mode))?.into(),
            Op::Chown { path, uid, gid, follow } => {
                self.set(path, *follow, SetAttr { uid: *uid, gid: *gid, ..SetAttr::default() })?.into()
            }
            Op::Truncate { path, len } => self.truncate(path, *len)?.into(),
            Op::Utimens { path, atime, mtime } => self.utimens(path, *atime, *mtime)?.into(),
            Op::Access { path, bits } => context.access(self.base()?, path, true, *bits)?.into(),
            Op::Chdir { path } => context.set_current_dir(path)?.into(),
            Op::Getcwd => self.getcwd()?.into(),
            Op::Write { slot, fill, len } => self.write(*slot, None, &vec![*fill; *len])?.into(),
            Op::Pwrite { slot, offset, fill, len } => self.write(*slot, Some(*offset), &vec![*fill; *len])?.into(),
            Op::Read { slot, len } => self.read(*slot, None, *len)?.into(),
            Op::Pread { slot, offset, len } => self.read(*slot, Some(*offset), *len)?.into(),
            Op::Ftruncate { slot, len } => self.file(*slot)?.set_len(*len)?.into(),
            Op::Fstat { slot } => self.fstat(*slot)?.into(),
            Op::Fchmod { slot, mode } => self.file(*slot)?.set_attr(&chmod(*mode))?.into(),
            Op::Lseek { slot, whence, offset } => self.lseek(*slot, *whence, *offset)?.into(),
            Op::At { slot, op } => self.apply_at(*slot, op)?,
            Op::Extra(op) => self.extra(op)?,
        })
    }
}

impl Namespace for Lightfoot {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.try_apply(op).into()
    }
}

fn chmod(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode & 0o7777), ..SetAttr::default() }
}

fn attr(attr: vfs::PackedAttr, dev: u64) -> Attr {
    let attr = attr.unpack();
    Attr {
        mode: attr.mode,
        nlink: attr.nlink.into(),
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        rdev: (attr.rdev >> 20, attr.rdev & 0xf_ffff),
        blocks: (attr.kind() == S_IFREG).then_some(attr.blocks),
        ino: attr.ino,
        dev,
        atime: Time::Raw(attr.atime),
        mtime: Time::Raw(attr.mtime),
        ctime: Time::Raw(attr.ctime),
    }
}
