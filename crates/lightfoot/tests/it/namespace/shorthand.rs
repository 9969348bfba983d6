//! Short ways to write operations down.

use super::ops::flags::*;
use super::ops::*;

macro_rules! of_a_path {
    ($($name:ident: $op:ident),*) => {
        $(pub(crate) fn $name(path: impl AsRef<[u8]>) -> Op {
            Op::$op { path: path.into() }
        })*
    };
}

of_a_path!(unlink: Unlink, rmdir: Rmdir, readlink: Readlink, stat: Stat, lstat: Lstat, read_dir: ReadDir, chdir: Chdir);

pub(crate) fn become_user(user: usize) -> Op {
    Op::Become(user)
}

pub(crate) fn mkdir(path: impl AsRef<[u8]>) -> Op {
    mkdir_mode(path, 0o755)
}

pub(crate) fn mkdir_mode(path: impl AsRef<[u8]>, mode: u32) -> Op {
    Op::Mkdir { path: path.into(), mode }
}

/// Makes a regular file.
pub(crate) fn file(path: impl AsRef<[u8]>) -> Op {
    node(path, S_IFREG | 0o644)
}

pub(crate) fn node(path: impl AsRef<[u8]>, mode: u32) -> Op {
    Op::Mknod { path: path.into(), mode, rdev: (241, 3) }
}

pub(crate) fn symlink(body: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Op {
    Op::Symlink { body: body.into(), path: path.into() }
}

pub(crate) fn link(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Op {
    Op::Link { from: from.into(), to: to.into() }
}

pub(crate) fn rename(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Op {
    Op::Rename { from: from.into(), to: to.into() }
}

/// Opens into slot 0.
pub(crate) fn open(path: impl AsRef<[u8]>, flags: u32) -> Op {
    Op::Open { slot: 0, path: path.into(), flags, mode: 0o644 }
}

/// Opens for writing into slot 0, making the file if there is none.
pub(crate) fn create(path: impl AsRef<[u8]>) -> Op {
    open(path, O_WRONLY | O_CREAT)
}

pub(crate) fn create_new(path: impl AsRef<[u8]>) -> Op {
    open(path, O_WRONLY | O_CREAT | O_EXCL)
}

pub(crate) fn close() -> Op {
    Op::Close { slot: 0 }
}

pub(crate) fn write(len: usize) -> Op {
    Op::Write { slot: 0, fill: b'w', len }
}

pub(crate) fn read(len: usize) -> Op {
    Op::Read { slot: 0, len }
}

pub(crate) fn seek(whence: Whence, offset: i64) -> Op {
    Op::Lseek { slot: 0, whence, offset }
}

pub(crate) fn ftruncate(len: u64) -> Op {
    Op::Ftruncate { slot: 0, len }
}

pub(crate) fn fchmod(mode: u32) -> Op {
    Op::Fchmod { slot: 0, mode }
}

pub(crate) fn fstat() -> Op {
    Op::Fstat { slot: 0 }
}

pub(crate) fn chmod(path: impl AsRef<[u8]>, mode: u32) -> Op {
    Op::Chmod { path: path.into(), mode }
}

pub(crate) fn chown(path: impl AsRef<[u8]>, uid: Option<u32>, gid: Option<u32>) -> Op {
    Op::Chown { path: path.into(), uid, gid, follow: true }
}

pub(crate) fn lchown(path: impl AsRef<[u8]>, uid: Option<u32>, gid: Option<u32>) -> Op {
    Op::Chown { path: path.into(), uid, gid, follow: false }
}

pub(crate) fn truncate(path: impl AsRef<[u8]>, len: i64) -> Op {
    Op::Truncate { path: path.into(), len }
}

pub(crate) fn utimens(path: impl AsRef<[u8]>) -> Op {
    Op::Utimens { path: path.into(), atime: Some(super::outcome::EXPLICIT_TIMES[1]), mtime: None }
}

pub(crate) fn access(path: impl AsRef<[u8]>, bits: u32) -> Op {
    Op::Access { path: path.into(), bits }
}

pub(crate) fn getcwd() -> Op {
    Op::Getcwd
}
