//! Mounts of the calling thread's own namespace.

use super::second::places;
use super::{Kernel, Res, last_errno};
use crate::namespace::errno::{EBUSY, EINVAL, ENOTDIR};
use crate::namespace::ops::{Extra, Op, RawPath, S_IFDIR, S_IFMT};
use crate::namespace::outcome::Outcome;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self as sys, AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno as SysErrno;
use rustix::mount::{self, FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::ffi::CString;

/// Where the tmpfs is mounted before it becomes the root: any directory that all machines have.
const MOUNT_POINT: &str = "/tmp";

/// `struct mount_attr` of `mount_setattr(2)`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// `ST_*` flags and the `MOUNT_ATTR_*` that stand for them. (`NOATIME` is a value of a field; the others are bits.)
const ATTRIBUTES: [(u32, u64); 7] = [(1, 1), (2, 2), (4, 4), (8, 8), (1024, 0x10), (2048, 0x80), (0x2000, 0x20_0000)];

/// All attributes, and the field of access times.
const ALL_ATTRIBUTES: u64 = 1 | 2 | 4 | 8 | 0x70 | 0x80 | 0x20_0000;

/// Goes into a new mount namespace and takes a fresh tmpfs in it for root and working directory. Gives the old namespace.
pub(super) fn enter_new_namespace() -> rustix::io::Result<OwnedFd> {
    let old = sys::open("/proc/thread-self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: only mounts are taken apart, no file descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let tmpfs = fresh_tmpfs(0)?;
    mount::move_mount(tmpfs.as_fd(), "", CWD, MOUNT_POINT, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    rustix::process::fchdir(&tmpfs)?;
    // The tmpfs becomes the root of the namespace: a way by `..` out of a changed root ends there.
    rustix::process::pivot_root(".", ".")?;
    mount::unmount(".", mount::UnmountFlags::DETACH)?;
    Ok(old)
}

/// Goes back to a mount namespace.
pub(super) fn enter(old: &OwnedFd) -> rustix::io::Result<()> {
    // Threads that this one started meanwhile share its root, and keep it where it is.
    // SAFETY: only the file system context is taken apart, no file descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?;
    rustix::thread::move_into_link_name_space(old.as_fd(), Some(LinkNameSpaceType::Mount))
}

/// A tmpfs that is mounted nowhere yet.
fn fresh_tmpfs(flags: u32) -> rustix::io::Result<OwnedFd> {
    let context = mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    mount::fsconfig_set_string(context.as_fd(), "mode", "755")?;
    mount::fsconfig_create(context.as_fd())?;
    let flags = MountAttrFlags::from_bits_retain(attributes(flags) as u32);
    mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn attributes(flags: u32) -> u64 {
    ATTRIBUTES.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, attribute)| attribute).sum()
}

/// `mount_setattr(2)`: these flags and no others. rustix does not have it.
fn set_flags(dir: BorrowedFd<'_>, path: &[u8], at: i32, flags: u32) -> Res<()> {
    let path = CString::new(path).map_err(|_| EINVAL)?;
    let attr = MountAttr { set: attributes(flags), clear: ALL_ATTRIBUTES, propagation: 0, user_namespace: 0 };
    let (dir, size) = (dir.as_raw_fd(), size_of::<MountAttr>());
    // SAFETY: the path ends with a NUL, and both it and the structure outlive the call.
    match unsafe { libc::syscall(libc::SYS_mount_setattr, dir, path.as_ptr(), at, &raw const attr, size) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

impl Kernel {
    pub(super) fn mounts(&mut self, op: &Extra) -> Res<Outcome> {
        match op {
            Extra::Unmount { path, .. } | Extra::Mount { path, .. } if self.is_root(path)? => return Err(EBUSY),
            Extra::Bind { to, .. } if self.is_root(to)? => return Err(EBUSY),
            Extra::MoveMount { from, to } if self.is_root(from)? || self.is_root(to)? => return Err(EBUSY),
            Extra::Mount { path, flags } => {
                let tree = fresh_tmpfs(*flags)?;
                // Keeps the file system, and so its number, which another would have later.
                let how = mount::OpenTreeFlags::OPEN_TREE_CLONE
                    | mount::OpenTreeFlags::OPEN_TREE_CLOEXEC
                    | mount::OpenTreeFlags::AT_EMPTY_PATH;
                self.kept.push(mount::open_tree(&tree, "", how)?);
                self.attach(&tree, path)?;
            }
            Extra::Bind { from, to, flags, recursive } => {
                let recursive =
                    if *recursive { mount::OpenTreeFlags::AT_RECURSIVE } else { mount::OpenTreeFlags::empty() };
                let copy = mount::OpenTreeFlags::OPEN_TREE_CLONE | mount::OpenTreeFlags::OPEN_TREE_CLOEXEC;
                let tree = mount::open_tree(self.base()?, self.at(from), copy | recursive)?;
                set_flags(tree.as_fd(), b"", libc::AT_EMPTY_PATH, *flags)?;
                self.attach(&tree, to)?;
            }
            Extra::MoveMount { from, to } => {
                let follow = MoveMountFlags::MOVE_MOUNT_F_SYMLINKS | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
                mount::move_mount(self.base()?, self.at(from), self.base()?, self.at(to), follow)?;
            }
            Extra::Remount { path, flags } => {
                set_flags(self.base()?, &self.at(path), 0, *flags)?;
            }
            Extra::Unmount { path, detach } => {
                let flags = if *detach { mount::UnmountFlags::DETACH } else { mount::UnmountFlags::empty() };
                mount::unmount(self.at(path), flags)?;
            }
            other => unreachable!("{other:?} is about no mount"),
        }
        Ok(Outcome::Done)
    }

    /// See [`MountPoints`].
    pub(super) fn refuses(&mut self, op: &Op) -> bool {
        let mut points = std::mem::take(&mut self.mount_points);
        let answer = points.refuses(op, |path, follow| {
            let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
            let stat = sys::statat(self.base().ok()?, self.at(path), flags).ok()?;
            Some((stat.st_dev, stat.st_ino))
        });
        self.mount_points = points;
        answer
    }

    fn attach(&self, tree: &OwnedFd, path: &RawPath) -> Res<()> {
        let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        match mount::move_mount(tree.as_fd(), "", self.base()?, self.at(path), how) {
            // That one is a directory and the other is not: mount(2) checks that.
            Err(SysErrno::INVAL) if self.is_dir(path)? != is_dir(&sys::fstat(tree)?) => Err(ENOTDIR),
            done => Ok(done?),
        }
    }

    fn is_dir(&self, path: &RawPath) -> Res<bool> {
        Ok(is_dir(&sys::statat(self.base()?, self.at(path), AtFlags::empty())?))
    }

    /// Whether `pivot_root(2)` with these paths would mount on the root, or with a directory that was removed.
    pub(super) fn refuses_pivot(&self, new_root: &RawPath, put_old: &RawPath) -> Res<bool> {
        let stat = |path| -> Res<Stat> { Ok(sys::statat(self.base()?, self.at(path), AtFlags::empty())?) };
        let (new, old) = (stat(new_root)?, stat(put_old)?);
        Ok(new.st_nlink == 0 || old.st_nlink == 0 || (new.st_dev, new.st_ino) == (old.st_dev, old.st_ino))
    }

    /// Whether the path leads to the root or the working directory of one of the processes. What that is to mounts depends on
    /// how the process came to its root, so no check is made.
    fn is_root(&self, path: &RawPath) -> Res<bool> {
        let place = sys::statat(self.base()?, self.at(path), AtFlags::empty())?;
        let (ours, others) = (places(), self.other_places());
        let mut taken = ours.iter().chain(others.iter().flatten());
        Ok(taken.any(|taken| *taken == (place.st_dev, place.st_ino)))
    }
}

fn is_dir(stat: &Stat) -> bool {
    stat.st_mode & S_IFMT == S_IFDIR
}
