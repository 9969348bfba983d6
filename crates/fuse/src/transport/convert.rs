//! Conversions between the types of the tree and those of `fuser`.

use crate::session::{Caller, FileLock};
use fuser::{FileAttr, FileType, INodeNo, Request, TimeOrNow};
use std::time::{SystemTime, UNIX_EPOCH};
use vfs::{Attr, Errno, LockKind, SetTime, from_system_time, to_system_time};

/// `st_blksize`, in bytes.
const BLOCK_SIZE: u32 = 4096;

/// `F_RDLCK`, `F_WRLCK` and `F_UNLCK` of `fcntl(2)`.
const RDLCK: i32 = 0;
const WRLCK: i32 = 1;
pub(super) const UNLCK: i32 = 2;

pub(super) fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

pub(super) fn file_attr(attr: &Attr, ino: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: attr.size,
        blocks: attr.blocks,
        atime: to_system_time(attr.atime),
        mtime: to_system_time(attr.mtime),
        ctime: to_system_time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: kind(attr.mode),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}

pub(super) fn kind(mode: u32) -> FileType {
    match mode & vfs::S_IFMT {
        vfs::S_IFDIR => FileType::Directory,
        vfs::S_IFLNK => FileType::Symlink,
        vfs::S_IFIFO => FileType::NamedPipe,
        vfs::S_IFSOCK => FileType::Socket,
        vfs::S_IFCHR => FileType::CharDevice,
        vfs::S_IFBLK => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

pub(super) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(sent_time(time)),
    }
}

/// The time in a request, in nanoseconds. Its seconds are negative before the epoch, and its nanoseconds never are; `fuser`
/// 0.18 takes those off such a time, which this undoes.
fn sent_time(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(_) => from_system_time(time),
        Err(before) => {
            let distance = before.duration();
            let ns = i128::from(distance.subsec_nanos()) - i128::from(distance.as_secs()) * 1_000_000_000;
            i64::try_from(ns).unwrap_or(i64::MIN)
        }
    }
}

/// # Errors
/// `EINVAL`: `lock_type` is not one of `fcntl(2)`.
pub(super) fn file_lock(lock_type: i32, start: u64, end: u64) -> Result<FileLock, Errno> {
    let kind = match lock_type {
        RDLCK => LockKind::Shared,
        WRLCK => LockKind::Exclusive,
        UNLCK => LockKind::Unlock,
        _ => return Err(Errno::EINVAL),
    };
    Ok(FileLock { kind, start, end })
}

pub(super) fn lock_type(kind: LockKind) -> i32 {
    match kind {
        LockKind::Shared => RDLCK,
        LockKind::Exclusive => WRLCK,
        LockKind::Unlock => UNLCK,
    }
}
