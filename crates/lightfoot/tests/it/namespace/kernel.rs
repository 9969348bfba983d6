//! The running kernel, on a fresh tmpfs.
//!
//! As root, each instance is a tmpfs in its own mount namespace: the calling thread takes its file system context and its
//! mounts apart from the process's (`unshare(CLONE_FS | CLONE_NEWNS)`), changes root and working directory into it, and changes
//! its own credentials with raw system calls. Dropping the instance brings the thread back; the namespace ends with its last
//! user, whatever happens before. Otherwise it is a directory in `/dev/shm`, reached through a path prefix, and
//! [`World::confined`] decides that.

#![allow(unsafe_code, reason = "system calls without a safe form")]

mod extra;
mod mounts;
mod second;

use super::errno::*;
use super::ops::*;
use super::outcome::{Attr, Outcome, Time};
use super::{Namespace, World};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self as sys, AtFlags, CWD, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno as SysErrno;
use second::{Identity, Second};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

type Res<T> = Result<T, Errno>;

impl From<SysErrno> for Errno {
    fn from(errno: SysErrno) -> Self {
        Errno(errno.raw_os_error())
    }
}

/// One process on the kernel's tmpfs: the calling thread.
#[derive(Debug)]
pub(crate) struct Kernel {
    slots: [Option<OwnedFd>; SLOTS],
    /// Which of them were listed: their position is a number of the file system's own.
    listed: [bool; SLOTS],
    /// The slot where relative paths start, during [`Op::At`].
    base: Option<usize>,
    second: Option<Second>,
    mount_points: MountPoints,
    /// Copies of mounts that are mounted nowhere.
    kept: Vec<OwnedFd>,
    /// Of [`USERS`].
    user: usize,
    /// In the second process: root and working directory of the first.
    others: Option<[Identity; 2]>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// The thread's root is the tmpfs; here is the way back.
    Root { old_root: OwnedFd, old_cwd: OwnedFd, old_mounts: OwnedFd, old_umask: Mode },
    /// Every absolute path is meant below this directory.
    Below { dir: TempDir, old_cwd: OwnedFd, old_umask: Mode },
    /// The second process, whose thread ends with it.
    Second,
}

impl Kernel {
    /// What holds for every instance in this process.
    pub(crate) fn world() -> World {
        let knob = |name: &str| -> u8 {
            let text = std::fs::read_to_string(format!("/proc/sys/fs/{name}")).unwrap_or_default();
            text.trim().parse().unwrap_or(0)
        };
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        World {
            owner: (uid.as_raw(), gid.as_raw()),
            confined: !uid.is_root(),
            protected_hardlinks: knob("protected_hardlinks") != 0,
            protected_symlinks: knob("protected_symlinks") != 0,
            protected_regular: knob("protected_regular"),
            protected_fifos: knob("protected_fifos"),
        }
    }

    /// A fresh tree. There is at most one on a thread at a time.
    pub(crate) fn new() -> Self {
        // SAFETY: only the file system context is taken apart, no file descriptors.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.expect("unshare(CLONE_FS)");
        let old_cwd = open_dir(".");
        let old_umask = rustix::process::umask(Mode::from_raw_mode(0o022));
        let place = if Self::world().confined {
            let permissions = std::fs::Permissions::from_mode(0o755);
            let dir = tempfile::Builder::new().prefix("lightfoot-").permissions(permissions).tempdir_in("/dev/shm");
            let dir = dir.expect("a directory in /dev/shm");
            rustix::process::chdir(dir.path()).expect("chdir");
            Place::Below { dir, old_cwd, old_umask }
        } else {
            let old_root = open_dir("/");
            let old_mounts = mounts::enter_new_namespace().expect("a mount namespace with a fresh tmpfs for its root");
            Place::Root { old_root, old_cwd, old_mounts, old_umask }
        };
        Self::in_place(place)
    }

    /// A process with nothing open.
    fn in_place(place: Place) -> Self {
        Kernel {
            slots: Default::default(),
            listed: [false; SLOTS],
            base: None,
            second: None,
            mount_points: MountPoints::default(),
            kept: Vec::new(),
            user: 0,
            others: None,
            place,
        }
    }

    /// The path as the kernel must receive it.
    fn at(&self, path: &RawPath) -> Vec<u8> {
        match &self.place {
            Place::Below { dir, .. } if path.starts_with(b"/") => [dir.path().as_os_str().as_bytes(), path].concat(),
            _ => path.to_vec(),
        }
    }

    fn slot(&self, slot: usize) -> Res<&OwnedFd> {
        self.slots[slot].as_ref().ok_or(EBADF)
    }

    fn open(&mut self, slot: usize, path: &RawPath, flags: u32, mode: u32) -> Res<()> {
        let fd = sys::openat(self.base()?, self.at(path), open_flags(flags), Mode::from_raw_mode(mode))?;
        self.keep(slot, fd, flags)
    }

    /// Puts what was opened into its slot.
    fn keep(&mut self, slot: usize, fd: OwnedFd, flags: u32) -> Res<()> {
        let kind = sys::fstat(&fd)?.st_mode & S_IFMT;
        if !matches!(kind, S_IFREG | S_IFDIR) && flags & flags::O_PATH == 0 {
            return Err(ENXIO);
        }
        (self.slots[slot], self.listed[slot]) = (Some(fd), false);
        Ok(())
    }

    /// Where relative paths start.
    fn base(&self) -> Res<BorrowedFd<'_>> {
        match self.base {
            None => Ok(CWD),
            Some(slot) => Ok(self.slot(slot)?.as_fd()),
        }
    }

    fn apply_at(&mut self, slot: usize, op: &Op) -> Res<Outcome> {
        self.slot(slot)?;
        self.base = Some(slot);
        let answer = self.try_apply(op);
        self.base = None;
        answer
    }

    fn read_dir(&self, path: &RawPath) -> Res<Vec<(RawPath, u32)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = sys::openat(self.base()?, self.at(path), flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::uninit(); 16384];
        let mut listing = Vec::new();
        let mut entries = sys::RawDir::new(fd, &mut buffer);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if [b".".as_slice(), b".."].contains(&entry.file_name().to_bytes()) => {}
                Ok(entry) => {
                    listing.push((RawPath::from(entry.file_name().to_bytes()), entry.file_type().as_raw_mode()));
                }
                // A removed directory lists nothing.
                Err(SysErrno::NOENT) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        listing.sort();
        Ok(listing)
    }

    fn getcwd(&self) -> Res<RawPath> {
        let mut path = vec![0; 8192];
        // Not the C library's function, which has ways around ENAMETOOLONG.
        // SAFETY: the kernel writes no more than the length that it receives.
        let len = unsafe { libc::syscall(libc::SYS_getcwd, path.as_mut_ptr(), path.len()) };
        let len = usize::try_from(len).map_err(|_| last_errno())?;
        path.truncate(len - 1);
        Ok(match &self.place {
            Place::Root { .. } | Place::Second => RawPath(path),
            Place::Below { dir, .. } => match path.strip_prefix(dir.path().as_os_str().as_bytes()) {
                Some(b"") => RawPath::from("/"),
                Some(rest) => RawPath::from(rest),
                None => RawPath(path),
            },
        })
    }

    fn link(&self, from: &RawPath, to: &RawPath) -> Res<()> {
        Ok(sys::linkat(self.base()?, self.at(from), self.base()?, self.at(to), AtFlags::empty())?)
    }

    fn symlink(&self, body: &RawPath, path: &RawPath) -> Res<()> {
        Ok(sys::symlinkat(body.to_vec(), self.base()?, self.at(path))?)
    }

    fn mknod(&self, path: &RawPath, mode: u32, rdev: (u32, u32)) -> Res<()> {
        let kind = sys::FileType::from_raw_mode(mode);
        let dev = sys::makedev(rdev.0, rdev.1);
        Ok(sys::mknodat(self.base()?, self.at(path), kind, Mode::from_raw_mode(mode), dev)?)
    }

    fn chown(&self, path: &RawPath, uid: Option<u32>, gid: Option<u32>, follow: bool) -> Res<()> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        Ok(sys::chownat(self.base()?, self.at(path), uid.map(Uid::from_raw), gid.map(Gid::from_raw), flags)?)
    }

    fn truncate(&self, path: &RawPath, len: i64) -> Res<()> {
        let path = CString::new(self.at(path)).map_err(|_| EINVAL)?;
        // rustix has no truncate(2).
        // SAFETY: the path ends with a NUL and outlives the call.
        match unsafe { libc::truncate(path.as_ptr(), len) } {
            0 => Ok(()),
            _ => Err(last_errno()),
        }
    }

    fn utimens(&self, path: &RawPath, atime: Option<i64>, mtime: Option<i64>) -> Res<()> {
        let spec = |nanos: Option<i64>| match nanos {
            Some(nanos) => {
                Timespec { tv_sec: nanos.div_euclid(1_000_000_000), tv_nsec: nanos.rem_euclid(1_000_000_000) }
            }
            None => Timespec { tv_sec: 0, tv_nsec: sys::UTIME_OMIT },
        };
        let times = Timestamps { last_access: spec(atime), last_modification: spec(mtime) };
        Ok(sys::utimensat(self.base()?, self.at(path), &times, AtFlags::empty())?)
    }

    fn lseek(&self, slot: usize, whence: Whence, offset: i64) -> Res<u64> {
        if self.slot(slot).is_ok() && self.listed[slot] {
            return Err(ESPIPE);
        }
        let to = match whence {
            Whence::Start => sys::SeekFrom::Start(offset as u64),
            Whence::Current => sys::SeekFrom::Current(offset),
            Whence::End => sys::SeekFrom::End(offset),
        };
        Ok(sys::seek(self.slot(slot)?, to)?)
    }

    fn read(&self, slot: usize, offset: Option<u64>, len: usize) -> Res<Vec<u8>> {
        let mut data = vec![0; len];
        let fd = self.slot(slot)?;
        let read = match offset {
            Some(offset) => rustix::io::pread(fd, &mut data, offset)?,
            None => rustix::io::read(fd, &mut data)?,
        };
        data.truncate(read);
        Ok(data)
    }

    fn write(&self, slot: usize, offset: Option<u64>, data: &[u8]) -> Res<u64> {
        let fd = self.slot(slot)?;
        Ok(match offset {
            Some(offset) => rustix::io::pwrite(fd, data, offset)?,
            None => rustix::io::write(fd, data)?,
        } as u64)
    }

    fn try_apply(&mut self, op: &Op) -> Res<Outcome> {
        if self.refuses(op) {
            return Err(EBUSY);
        }
        let mode = |mode: u32| Mode::from_raw_mode(mode & 0o7777);
        Ok(match op {
            Op::Become(user) => {
                self.user = *user;
                self.second.iter().for_each(|second| second.become_user(*user));
                become_user(*user)?.into()
            }
            Op::Other(op) => self.apply_by_other(op),
            Op::Umask(mask) => Outcome::Count(rustix::process::umask(mode(*mask)).as_raw_mode().into()),
            Op::Mkdir { path, mode: bits } => sys::mkdirat(self.base()?, self.at(path), mode(*bits))?.into(),
            Op::Mknod { path, mode, rdev } => self.mknod(path, *mode, *rdev)?.into(),
            Op::Symlink { body, path } => self.symlink(body, path)?.into(),
            Op::Link { from, to } => self.link(from, to)?.into(),
            Op::Unlink { path } => sys::unlinkat(self.base()?, self.at(path), AtFlags::empty())?.into(),
            Op::Rmdir { path } => sys::unlinkat(self.base()?, self.at(path), AtFlags::REMOVEDIR)?.into(),
            Op::Rename { from, to } => sys::renameat(self.base()?, self.at(from), self.base()?, self.at(to))?.into(),
            Op::Open { slot, path, flags, mode } => self.open(*slot, path, *flags, *mode)?.into(),
            Op::Close { slot } => self.slots[*slot].take().map(drop).ok_or(EBADF)?.into(),
            Op::Readlink { path } => {
                RawPath(sys::readlinkat(self.base()?, self.at(path), Vec::new())?.into_bytes()).into()
            }
            Op::Stat { path } => attr(&sys::statat(self.base()?, self.at(path), AtFlags::empty())?).into(),
            Op::Lstat { path } => attr(&sys::statat(self.base()?, self.at(path), AtFlags::SYMLINK_NOFOLLOW)?).into(),
            Op::ReadDir { path } => self.read_dir(path)?.into(),
            Op::Chmod { path, mode: bits } => {
                sys::chmodat(self.base()?, self.at(path), mode(*bits), AtFlags::empty())?.into()
            }
            Op::Chown { path, uid, gid, follow } => self.chown(path, *uid, *gid, *follow)?.into(),
            Op::Truncate { path, len } => self.truncate(path, *len)?.into(),
            Op::Utimens { path, atime, mtime } => self.utimens(path, *atime, *mtime)?.into(),
            Op::Access { path, bits } => {
                sys::accessat(self.base()?, self.at(path), sys::Access::from_bits_retain(*bits as _), AtFlags::EACCESS)?
                    .into()
            }
            Op::Chdir { path } => rustix::process::chdir(self.at(path))?.into(),
            Op::Getcwd => self.getcwd()?.into(),
            Op::Write { slot, fill, len } => self.write(*slot, None, &vec![*fill; *len])?.into(),
            Op::Pwrite { slot, offset, fill, len } => self.write(*slot, Some(*offset), &vec![*fill; *len])?.into(),
            Op::Read { slot, len } => self.read(*slot, None, *len)?.into(),
            Op::Pread { slot, offset, len } => self.read(*slot, Some(*offset), *len)?.into(),
            Op::Ftruncate { slot, len } => sys::ftruncate(self.slot(*slot)?, *len)?.into(),
            Op::Fstat { slot } => attr(&sys::fstat(self.slot(*slot)?)?).into(),
            Op::Fchmod { slot, mode: bits } => sys::fchmod(self.slot(*slot)?, mode(*bits))?.into(),
            Op::Lseek { slot, whence, offset } => self.lseek(*slot, *whence, *offset)?.into(),
            Op::At { slot, op } => self.apply_at(*slot, op)?,
            Op::Extra(op) => self.extra(op)?,
        })
    }
}

impl Namespace for Kernel {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.try_apply(op).into()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.slots = Default::default();
        self.second = None;
        match &self.place {
            Place::Root { old_root, old_cwd, old_mounts, old_umask } => {
                let back = become_user(0).and_then(|()| {
                    mounts::enter(old_mounts)?;
                    rustix::process::fchdir(old_root)?;
                    rustix::process::chroot(".")?;
                    rustix::process::fchdir(old_cwd)?;
                    Ok(())
                });
                back.expect("the way back out of the tmpfs");
                rustix::process::umask(*old_umask);
            }
            Place::Below { dir, old_cwd, old_umask } => {
                rustix::process::umask(*old_umask);
                rustix::process::fchdir(old_cwd).expect("fchdir");
                remove_tree(dir.path());
            }
            Place::Second => {}
        }
    }
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().expect("a failed system call says why"))
}

/// Removes a tree whose directories may be closed to their owner.
fn remove_tree(dir: &std::path::Path) {
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        } else {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(dir);
}

fn open_dir(path: &str) -> OwnedFd {
    sys::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("open a directory")
}

/// Nothing waits for the other side of a FIFO.
fn open_flags(flags: u32) -> OFlags {
    let extra = if flags & flags::O_PATH == 0 { OFlags::NONBLOCK } else { OFlags::empty() };
    OFlags::from_bits_retain(flags) | OFlags::CLOEXEC | extra
}

/// Changes the effective credentials of this thread alone. The real and saved ones stay root's, so that there is a
/// way back.
fn become_user(user: usize) -> Res<()> {
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid, groups) = USERS[user];
    let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    set_thread_res_uid(None, Uid::ROOT, None)?;
    set_thread_groups(&groups)?;
    set_thread_res_gid(None, Gid::from_raw(gid), None)?;
    set_thread_res_uid(None, Uid::from_raw(uid), None)?;
    Ok(())
}

fn attr(stat: &Stat) -> Attr {
    let time = |secs: i64, nanos: i64| Time::Raw(secs * 1_000_000_000 + nanos);
    let device = matches!(stat.st_mode & S_IFMT, S_IFCHR | S_IFBLK);
    Attr {
        mode: stat.st_mode,
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u64,
        rdev: if device { (sys::major(stat.st_rdev), sys::minor(stat.st_rdev)) } else { (0, 0) },
        blocks: (stat.st_mode & S_IFMT == S_IFREG).then_some(stat.st_blocks as u64),
        ino: stat.st_ino,
        dev: stat.st_dev,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}
