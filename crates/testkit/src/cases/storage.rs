//! Storage: limits, reservations, holes.

use crate::fixture::{Fixture, MAKE, pattern, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, same};
use vfs::{Allocate, Base, Errno, OpenFlags, SeekFor};

/// An offset so large that a hole before it covers a block of any size.
const FAR: u64 = 1 << 21;

pub(crate) fn statfs_reports_free_space(c: &Fixture) -> Outcome {
    let stat = c.at().statvfs(Base::CWD, b"/");
    if !c.features().statfs {
        return same("statfs", stat.err(), Some(Errno::ENOSYS));
    }
    let fs = stat.or_fail("statfs")?.fs;
    same(
        "free blocks and inodes are no more than all",
        (fs.blocks_free <= fs.blocks, fs.files_free <= fs.files),
        (true, true),
    )?;
    same("available blocks are no more than free ones", fs.blocks_available <= fs.blocks_free, true)?;
    same("a block has bytes", fs.block_size > 0, true)?;
    same("names may have a byte", fs.name_max > 0, true)
}

pub(crate) fn a_full_file_system_refuses_and_recovers(c: &Fixture) -> Outcome {
    let Some(room) = c.features().room else { return Ok(()) };
    c.write("/small", b"text")?;
    let file = c.open("/large", MAKE).or_fail("making /large")?;
    let data = vec![5; 4096];
    let mut end = 0;
    let refusal = loop {
        match file.write_at(end, &data) {
            Ok((0, _)) => return Err(Failure::new("a write to a full file system: expected ENOSPC, got 0 bytes")),
            Ok((_, after)) => end = after,
            Err(errno) => break errno,
        }
        if end > room {
            return Err(Failure::new(format!("expected room for {room} bytes, got a write up to {end}")));
        }
    };
    same("a write to a full file system", refusal, Errno::ENOSPC)?;
    same("length of what was written", file.attr().map(|attr| attr.size), Ok(end))?;
    same("contents", read_all(&file).map(|all| all.iter().all(|byte| *byte == 5)), Ok(true))?;
    c.twice(|| same("the other file", c.read("/small"), Ok(b"text".to_vec())))?;
    drop(file);
    c.unlink("/large").or_fail("unlink")?;
    c.vfs().barrier();
    c.write("/again", &vec![6; 4096])?;
    c.twice(|| same("contents that were written to freed storage", c.read("/again"), Ok(vec![6; 4096])))
}

pub(crate) fn storage_is_reserved_and_freed(c: &Fixture) -> Outcome {
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    write_all(&file, 0, &[8; 20_000])?;
    let reserved = file.allocate(Allocate::Reserve, false, 0, 30_000);
    if !c.features().allocate {
        return same("fallocate", reserved, Err(Errno::EOPNOTSUPP));
    }
    reserved.or_fail("fallocate")?;
    let mut expected = vec![8; 20_000];
    expected.resize(30_000, 0);
    same("contents after a reservation", read_all(&file), Ok(expected.clone()))?;
    file.allocate(Allocate::PunchHole, true, 5000, 10_000).or_fail("a hole")?;
    expected[5000..15_000].fill(0);
    same("contents with a hole", read_all(&file), Ok(expected.clone()))?;
    file.allocate(Allocate::Zero, true, 100, 50).or_fail("zeros")?;
    expected[100..150].fill(0);
    c.twice(|| same("contents with zeros", c.read("/file"), Ok(expected.clone())))
}

pub(crate) fn data_and_holes_are_found(c: &Fixture) -> Outcome {
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    write_all(&file, FAR, b"data")?;
    let end = FAR + 4;
    let seek = |what, offset| file.seek_for(what, offset);
    same("data at the end", seek(SeekFor::Data, end), Err(Errno::ENXIO))?;
    same("a hole at the end", seek(SeekFor::Hole, end), Err(Errno::ENXIO))?;
    same("the hole after the data", seek(SeekFor::Hole, FAR), Ok(end))?;
    same("data where there is data", seek(SeekFor::Data, FAR + 1), Ok(FAR + 1))?;
    if !c.features().holes {
        same("data at the start", seek(SeekFor::Data, 0), Ok(0))?;
        return same("the first hole", seek(SeekFor::Hole, 0), Ok(end));
    }
    same("the hole at the start", seek(SeekFor::Hole, 0), Ok(0))?;
    let data = seek(SeekFor::Data, 0).or_fail("the first data")?;
    // A block may begin before the data.
    same(
        format_args!("the first data, found at {data}, is at most a block before {FAR}"),
        data > FAR / 2 && data <= FAR,
        true,
    )
}

pub(crate) fn ranges_are_copied_between_files(c: &Fixture) -> Outcome {
    let source = pattern(0, 200_000);
    let (from, to) = (c.open("/from", MAKE).or_fail("making /from")?, c.open("/to", MAKE).or_fail("making /to")?);
    write_all(&from, 0, &source)?;
    write_all(&to, 0, b"start")?;
    // Less may be copied at once.
    let mut done = 0;
    while done < 150_000 {
        match from.copy_to(1000 + done, &to, 10 + done, 150_000 - done).or_fail("a copy")? {
            0 => return Err(Failure::new(format!("a copy ended after {done} bytes"))),
            copied => done += copied,
        }
    }
    let mut expected = b"start".to_vec();
    expected.resize(10, 0);
    expected.extend_from_slice(&source[1000..151_000]);
    same("the length of the copy", to.attr().map(|attr| attr.size), Ok(150_010))?;
    c.twice(|| same("the copy", c.read("/to"), Ok(expected.clone())))?;
    same("a copy of the last bytes", from.copy_to(199_990, &to, 0, 100), Ok(10))?;
    same("a copy at the end", from.copy_to(200_000, &to, 0, 100), Ok(0))?;
    expected[..10].copy_from_slice(&source[199_990..]);
    same("a copy within a file", to.copy_to(0, &to, 20, 10), Ok(10))?;
    expected.copy_within(..10, 20);
    c.twice(|| same("what was copied then", c.read("/to"), Ok(expected.clone())))?;
    same("the source", c.read("/from"), Ok(source))?;
    same("ranges that overlap", to.copy_to(0, &to, 5, 10), Err(Errno::EINVAL))?;
    same("beyond the last offset", from.copy_to(0, &to, u64::MAX >> 1, 1), Err(Errno::EOVERFLOW))?;
    same("an offset that there is not", from.copy_to(u64::MAX, &to, 0, 1), Err(Errno::EINVAL))?;
    let open = |flags| c.open("/to", flags).or_fail("an open of /to");
    same("a target that is read", from.copy_to(0, &open(OpenFlags::RDONLY)?, 0, 1), Err(Errno::EBADF))?;
    let append = OpenFlags::RDWR.union(OpenFlags::APPEND);
    same("a target that is appended to", from.copy_to(0, &open(append)?, 0, 1), Err(Errno::EBADF))?;
    same("a source that is written", open(OpenFlags::WRONLY)?.copy_to(0, &from, 0, 1), Err(Errno::EBADF))?;
    let dir = c.open("/", OpenFlags::RDONLY).or_fail("an open of /")?;
    same("a directory", dir.copy_to(0, &to, 0, 1), Err(Errno::EISDIR))
}
