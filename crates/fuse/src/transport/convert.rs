//! Between what the tree says and what `fuser` says.

use crate::session::Caller;
use fuser::{Errno as Answer, FileAttr, FileType, INodeNo, Request, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vfs::{Attr, Errno, SetTime};

/// Bytes in which reading and writing is most efficient: `st_blksize`.
const BLOCK: u32 = 4096;

pub(super) fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

pub(super) fn answer(errno: Errno) -> Answer {
    Answer::from_i32(errno.raw())
}

pub(super) fn file_attr(attr: &Attr, ino: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: attr.size,
        blocks: attr.blocks,
        atime: time(attr.atime),
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: kind(attr.mode),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: BLOCK,
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

/// Nanoseconds since the epoch, before it too.
fn time(ns: i64) -> SystemTime {
    let span = Duration::from_nanos(ns.unsigned_abs());
    if ns >= 0 { UNIX_EPOCH + span } else { UNIX_EPOCH - span }
}

pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

pub(super) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(nanoseconds(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_there_and_back() {
        for ns in [0, 1, -1, 1_700_000_000_123_456_789, -5_000_000_001] {
            assert_eq!(nanoseconds(time(ns)), ns);
        }
    }
}
