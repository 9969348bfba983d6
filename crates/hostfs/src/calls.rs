//! System calls that change the host.
//!
//! # What it is
//! One function for each call. Each takes an [`Acting`], so no thread changes the host without the decision with whose
//! rights. No other module calls these functions of the host (`tests/it/guarded.rs`).
//!
//! # Where it comes from
//! The pages of section 2 of the manual that the functions name.

use crate::caller::Acting;
use crate::host::{Opening, ProcPath, several_times};
use crate::system::{Call, call, restarted};
use prim::descriptor;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Gid, IFlags, Mode, OFlags, RenameFlags, Timestamps, Uid, XattrFlags,
};
use rustix::io::{Errno as HostErrno, ReadWriteFlags};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Permission bits.
const PERMISSIONS: u32 = 0o7777;

type Done = Result<(), HostErrno>;

type Made = Result<OwnedFd, HostErrno>;

/// A name in a directory.
type Named<'a> = (BorrowedFd<'a>, &'a [u8]);

/// A file, and an offset.
type FileAt<'a> = (&'a OwnedFd, u64);

impl Acting<'_> {
    /// Makes a regular file, which must not exist: `open(2)` with `O_CREAT` and `O_EXCL`.
    pub(crate) fn make_file(&self, opening: &Opening, (dir, name): Named<'_>, mode: u32) -> Made {
        self.make(opening, (dir, name), OFlags::CREATE | OFlags::EXCL | OFlags::NOCTTY, mode)
    }

    /// Makes a regular file without a name: `open(2)` with `O_TMPFILE`.
    pub(crate) fn make_unnamed(&self, opening: &Opening, dir: BorrowedFd<'_>, mode: u32) -> Made {
        self.make(opening, (dir, b"."), OFlags::TMPFILE, mode)
    }

    fn make(&self, opening: &Opening, (dir, name): Named<'_>, flags: OFlags, mode: u32) -> Made {
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(self.allowed(mode) & PERMISSIONS);
        match opening.resolve() {
            None => call(Call::Make, || rustix::fs::openat(dir, name, flags, mode)),
            Some(resolve) => {
                several_times(|| call(Call::Make, || rustix::fs::openat2(dir, name, flags, mode, resolve)))
            }
        }
    }

    /// Calls `mkdirat(2)`.
    pub(crate) fn make_dir(&self, dir: BorrowedFd<'_>, name: &[u8], mode: u32) -> Done {
        call(Call::Mkdir, || rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode & PERMISSIONS)))
    }

    /// Calls `symlinkat(2)`.
    pub(crate) fn make_link(&self, dir: BorrowedFd<'_>, name: &[u8], body: &[u8]) -> Done {
        call(Call::Symlink, || rustix::fs::symlinkat(body, dir, name))
    }

    /// Calls `mknodat(2)`, of the type in `mode`.
    pub(crate) fn make_node(&self, dir: BorrowedFd<'_>, name: &[u8], mode: u32, rdev: u32) -> Done {
        let bits = Mode::from_raw_mode(self.allowed(mode) & PERMISSIONS);
        call(Call::Mknod, || rustix::fs::mknodat(dir, name, FileType::from_raw_mode(mode), bits, rdev.into()))
    }

    /// Gives the file of a descriptor a further name: `linkat(2)`.
    pub(crate) fn link(&self, file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> Done {
        let path = ProcPath::new(file);
        call(Call::Link, || rustix::fs::linkat(CWD, path.bytes(), dir, name, AtFlags::SYMLINK_FOLLOW))
    }

    /// Calls `unlinkat(2)`.
    pub(crate) fn unlink(&self, dir: BorrowedFd<'_>, name: &[u8], is_dir: bool) -> Done {
        let flags = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        call(Call::Unlink, || rustix::fs::unlinkat(dir, name, flags))
    }

    /// Calls `renameat2(2)`; `renameat(2)` without flags.
    pub(crate) fn rename(&self, (from, old): Named<'_>, (to, new): Named<'_>, flags: u32) -> Done {
        call(Call::Rename, || match flags {
            0 => rustix::fs::renameat(from, old, to, new),
            flags => rustix::fs::renameat_with(from, old, to, new, RenameFlags::from_bits_retain(flags)),
        })
    }

    /// Changes the owner of a descriptor's file: `fchownat(2)`.
    pub(crate) fn chown(&self, fd: &OwnedFd, uid: Option<Uid>, gid: Option<Gid>) -> Done {
        restarted(Call::Chown, || rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH))
    }

    /// Changes the mode of a descriptor's file, whose type is in `mode`: `chmod(2)`.
    pub(crate) fn chmod(&self, fd: impl AsFd, mode: u32) -> Done {
        let bits = Mode::from_raw_mode(self.allowed(mode) & PERMISSIONS);
        let path = ProcPath::new(fd);
        restarted(Call::Chmod, || rustix::fs::chmod(path.bytes(), bits))
    }

    /// Changes the times of a descriptor's file: `utimensat(2)`.
    pub(crate) fn set_times(&self, fd: &OwnedFd, times: &Timestamps) -> Done {
        restarted(Call::Utimens, || rustix::fs::utimensat(fd, c"", times, AtFlags::EMPTY_PATH))
    }

    /// Calls `setxattr(2)`.
    pub(crate) fn set_xattr(&self, fd: &OwnedFd, name: &[u8], value: &[u8], flags: XattrFlags) -> Done {
        let path = ProcPath::new(fd);
        call(Call::Setxattr, || rustix::fs::setxattr(path.bytes(), name, value, flags))
    }

    /// Calls `removexattr(2)`.
    pub(crate) fn remove_xattr(&self, fd: &OwnedFd, name: &[u8]) -> Done {
        let path = ProcPath::new(fd);
        call(Call::Removexattr, || rustix::fs::removexattr(path.bytes(), name))
    }

    /// Calls `ioctl(2)` with `FS_IOC_SETFLAGS`.
    pub(crate) fn set_inode_flags(&self, fd: &OwnedFd, flags: u32) -> Done {
        restarted(Call::Setflags, || rustix::fs::ioctl_setflags(fd, IFlags::from_bits_retain(flags)))
    }

    /// Calls `pwrite(2)`.
    pub(crate) fn write(&self, fd: &OwnedFd, data: &[u8], offset: u64) -> Result<usize, HostErrno> {
        restarted(Call::Pwrite, || rustix::io::pwrite(fd, data, offset))
    }

    /// Writes at the end of the file, wherever that is: `pwritev2(2)` with `RWF_APPEND`.
    pub(crate) fn append(&self, fd: &OwnedFd, data: &[u8]) -> Result<usize, HostErrno> {
        // The offset has no effect; one of -1 would move the position of the descriptor.
        restarted(Call::Pwrite, || rustix::io::pwritev2(fd, &[IoSlice::new(data)], 0, ReadWriteFlags::APPEND))
    }

    /// Calls `copy_file_range(2)`.
    pub(crate) fn copy(
        &self,
        (from, mut offset): FileAt<'_>,
        (to, mut at): FileAt<'_>,
        len: usize,
    ) -> Result<usize, HostErrno> {
        restarted(Call::Copy, || rustix::fs::copy_file_range(from, Some(&mut offset), to, Some(&mut at), len))
    }

    /// Shares the storage of a range: `ioctl(2)` with `FICLONERANGE`.
    pub(crate) fn clone(&self, (from, offset): FileAt<'_>, (to, at): FileAt<'_>, len: u64) -> Done {
        restarted(Call::Clone, || descriptor::clone_range((from.as_fd(), offset), (to.as_fd(), at), len))
    }

    /// Calls `ftruncate(2)`.
    pub(crate) fn truncate(&self, fd: &OwnedFd, len: u64) -> Done {
        restarted(Call::Ftruncate, || rustix::fs::ftruncate(fd, len))
    }

    /// Calls `fallocate(2)`.
    pub(crate) fn allocate(&self, fd: &OwnedFd, flags: FallocateFlags, offset: u64, len: u64) -> Done {
        restarted(Call::Fallocate, || rustix::fs::fallocate(fd, flags, offset, len))
    }
}
