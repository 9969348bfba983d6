//! Storing: `fsync(2)`, restarts, and offsets that are larger than any storage.

use crate::fixture::{DIR, Fixture, MAKE, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, same};
use vfs::{Base, Budget, Errno, OpenFlags};

pub(crate) fn what_was_synced_is_there_after_a_restart(c: &Fixture) -> Outcome {
    c.mkdir("/d").or_fail("mkdir /d")?;
    let file = c.open("/d/file", MAKE).or_fail("making /d/file")?;
    write_all(&file, 0, b"first ")?;
    file.sync(true).or_fail("fdatasync")?;
    write_all(&file, 6, b"second")?;
    file.sync(false).or_fail("fsync")?;
    c.open("/d/file", OpenFlags::RDONLY).or_fail("open")?.sync(false).or_fail("fsync of an open for reading")?;
    c.open("/d", DIR).or_fail("open of /d")?.sync(false).or_fail("fsync of a directory")?;
    let Some(again) = c.restarted(Budget::default()) else { return Ok(()) };
    let found = again.context().open(Base::CWD, b"/d/file", OpenFlags::RDONLY, 0).or_fail("open after a restart")?;
    same("contents after a restart", read_all(&found), Ok(b"first second".to_vec()))
}

pub(crate) fn an_offset_beyond_all_storage_is_refused_or_makes_a_hole(c: &Fixture) -> Outcome {
    const FAR: u64 = 1 << 40;
    const LAST: u64 = i64::MAX as u64;
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    write_all(&file, 0, b"text")?;
    same("a write behind the largest offset", file.write_at(LAST + 1, b"x"), Err(Errno::EINVAL))?;
    same("a read behind it", file.read_at(LAST + 1, &mut [0]), Err(Errno::EINVAL))?;
    // A host has another error for a range that ends there.
    let written = file.write_at(LAST, b"x");
    same("a write there is refused", matches!(written, Err(Errno::EFBIG | Errno::EINVAL)), true)?;
    let read = file.read_at(LAST, &mut [0]);
    same("a read there finds nothing", matches!(read, Ok(0) | Err(Errno::EINVAL)), true)?;
    same("a read before it", file.read_at(LAST - 1, &mut [0]), Ok(0))?;
    let size = match file.write_at(FAR, b"far") {
        Ok((3, _)) => FAR + 3,
        Err(Errno::EFBIG | Errno::ENOSPC) => 4,
        other => {
            return Err(Failure::new(format!("a write at {FAR}: expected 3 bytes, EFBIG or ENOSPC, got {other:?}")));
        }
    };
    c.twice(|| same("the length", c.attr("/file").map(|attr| attr.size), Ok(size)))?;
    let mut buf = [1; 8];
    same("a read before the hole", file.read_at(0, &mut buf[..4]), Ok(4))?;
    same("its bytes", &buf[..4], b"text")?;
    if size != 4 {
        same("a read in the hole", file.read_at(FAR / 2, &mut buf), Ok(8))?;
        same("its bytes", buf, [0; 8])?;
        same("a read over the end", file.read_at(FAR, &mut buf), Ok(3))?;
    }
    match file.set_len(FAR) {
        Ok(()) => c.twice(|| same("the length", c.attr("/file").map(|attr| attr.size), Ok(FAR))),
        Err(Errno::EFBIG | Errno::ENOSPC) => {
            c.twice(|| same("the length", c.attr("/file").map(|attr| attr.size), Ok(4)))
        }
        Err(errno) => {
            Err(Failure::new(format!("a length of {FAR}: expected success, EFBIG or ENOSPC, got {}", errno.name())))
        }
    }
}
