//! Conversions between the types of the tree and the types of the protocol.

use crate::session::{Caller, Entry, FileLock, LockFamily, Who};
use fusedev::wire::Request;
use fusedev::wire::abi::statx::{BASIC_STATS, BTIME};
use fusedev::wire::abi::{self, EntryOut, InHeader, LK_FLOCK, LkIn, SetattrIn, Statx, StatxOut, SxTime, fattr};
use std::time::Duration;
use vfs::{Attr, Errno, LockKind, SetAttr, SetTime};

/// `st_blksize`, in bytes.
const BLOCK_SIZE: u32 = 4096;

/// `F_RDLCK`, `F_WRLCK` and `F_UNLCK` of `fcntl(2)`.
const RDLCK: u32 = 0;
const WRLCK: u32 = 1;
pub(super) const UNLCK: u32 = 2;

const NS: i64 = 1_000_000_000;

pub(super) fn caller(request: &Request<'_>) -> Caller {
    Caller { who: who(request), pid: request.header.pid, group: request.extensions.group }
}

/// Returns the user that the header of a request names.
pub(super) fn who(request: &Request<'_>) -> Who {
    let InHeader { uid, gid, .. } = request.header;
    Who::of(uid, gid)
}

/// Returns an offset or length of a file, as `off_t` has it.
///
/// # Errors
/// `EINVAL`: it is negative as a signed number.
pub(super) fn offset(number: u64) -> Result<u64, Errno> {
    if i64::try_from(number).is_ok() { Ok(number) } else { Err(Errno::EINVAL) }
}

pub(super) fn attr(attr: &Attr, ino: u64) -> abi::Attr {
    let ((atime, atimensec), (mtime, mtimensec)) = (split(attr.atime), split(attr.mtime));
    let (ctime, ctimensec) = split(attr.ctime);
    abi::Attr {
        ino,
        size: attr.size,
        blocks: attr.blocks,
        atime,
        mtime,
        ctime,
        atimensec,
        mtimensec,
        ctimensec,
        mode: attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}

pub(super) fn entry(found: &Entry) -> EntryOut {
    EntryOut {
        nodeid: found.node,
        generation: found.generation,
        entry_valid: found.entry_ttl.as_secs(),
        attr_valid: found.attr_ttl.as_secs(),
        entry_valid_nsec: found.entry_ttl.subsec_nanos(),
        attr_valid_nsec: found.attr_ttl.subsec_nanos(),
        attr: attr(&found.attr, found.node),
    }
}

/// Returns the attributes, how long the kernel may cache them, and when the file was made.
pub(super) fn statx((found, ttl, birth): &(Attr, Duration, Option<i64>)) -> StatxOut {
    let time = |ns| {
        let (tv_sec, tv_nsec) = split(ns);
        SxTime { tv_sec, tv_nsec, reserved: 0 }
    };
    let stat = Statx {
        mask: BASIC_STATS | if birth.is_some() { BTIME } else { 0 },
        blksize: BLOCK_SIZE,
        nlink: found.nlink,
        uid: found.uid,
        gid: found.gid,
        mode: found.mode as u16,
        ino: found.ino,
        size: found.size,
        blocks: found.blocks,
        atime: time(found.atime),
        btime: birth.map_or(SxTime::default(), time),
        ctime: time(found.ctime),
        mtime: time(found.mtime),
        rdev_major: rustix::fs::major(found.rdev.into()),
        rdev_minor: rustix::fs::minor(found.rdev.into()),
        ..Statx::default()
    };
    StatxOut { attr_valid: ttl.as_secs(), attr_valid_nsec: ttl.subsec_nanos(), stat, ..StatxOut::default() }
}

/// Returns the answer that the name does not exist. The kernel may cache this answer for `ttl`.
pub(super) fn absent(ttl: Duration) -> EntryOut {
    EntryOut { entry_valid: ttl.as_secs(), entry_valid_nsec: ttl.subsec_nanos(), ..EntryOut::default() }
}

/// Returns the seconds and nanoseconds of a time; the seconds are signed.
fn split(ns: i64) -> (u64, u32) {
    (ns.div_euclid(NS) as u64, ns.rem_euclid(NS) as u32)
}

/// Returns a time of a request, or the nearest one that fits.
fn joined(secs: u64, ns: u32) -> i64 {
    let whole = i128::from(secs as i64) * i128::from(NS) + i128::from(ns);
    whole.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

pub(super) fn set_attr(set: &SetattrIn) -> SetAttr {
    let has = |flag: u32| set.valid & flag != 0;
    let time = |is_set, is_now, secs, ns| {
        let at = if has(is_now) { SetTime::Now } else { SetTime::At(joined(secs, ns)) };
        has(is_set).then_some(at)
    };
    SetAttr {
        mode: has(fattr::MODE).then_some(set.mode & 0o7777),
        uid: has(fattr::UID).then_some(set.uid),
        gid: has(fattr::GID).then_some(set.gid),
        size: has(fattr::SIZE).then_some(set.size),
        atime: time(fattr::ATIME, fattr::ATIME_NOW, set.atime, set.atimensec),
        mtime: time(fattr::MTIME, fattr::MTIME_NOW, set.mtime, set.mtimensec),
    }
}

/// # Errors
/// `EINVAL`: its kind is not one of `fcntl(2)`.
pub(super) fn file_lock(request: &LkIn) -> Result<FileLock, Errno> {
    let lock = &request.lk;
    let kind = match lock.kind {
        RDLCK => LockKind::Shared,
        WRLCK => LockKind::Exclusive,
        UNLCK => LockKind::Unlock,
        _ => return Err(Errno::EINVAL),
    };
    let family = if request.lk_flags & LK_FLOCK == 0 { LockFamily::Ranges } else { LockFamily::Whole };
    Ok(FileLock { kind, start: lock.start, end: lock.end, family, pid: lock.pid })
}

pub(super) fn lock_type(kind: LockKind) -> u32 {
    match kind {
        LockKind::Shared => RDLCK,
        LockKind::Exclusive => WRLCK,
        LockKind::Unlock => UNLCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_and_at_the_ends_come_back() {
        for ns in [0, 1, -1, NS, -NS, -NS - 1, -NS + 1, i64::MAX, i64::MIN] {
            let (secs, nanos) = split(ns);
            assert!(nanos < NS as u32 && joined(secs, nanos) == ns, "{ns}");
        }
        assert_eq!(joined(i64::MIN as u64, 0), i64::MIN, "the first time that a user can set");
        assert_eq!(joined(i64::MAX as u64, 999_999_999), i64::MAX);
    }

    #[test]
    fn only_attributes_that_are_valid_are_set() {
        let all =
            SetattrIn { mode: 0o100_644, uid: 1, gid: 2, size: 3, atime: 4, mtimensec: 5, ..SetattrIn::default() };
        assert_eq!(set_attr(&all), SetAttr::default());
        let set = set_attr(&SetattrIn { valid: fattr::MODE | fattr::ATIME | fattr::MTIME | fattr::MTIME_NOW, ..all });
        let expected = SetAttr {
            mode: Some(0o644),
            atime: Some(SetTime::At(4 * NS)),
            mtime: Some(SetTime::Now),
            ..SetAttr::default()
        };
        assert_eq!(set, expected);
    }
}
