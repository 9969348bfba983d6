//! Reflinks: files that share storage until one of them changes.

use crate::cases::threads::on_threads;
use crate::fixture::{Fixture, MAKE, pattern, read_all, write_all};
use crate::outcome::{OrFail, Outcome, needs, same};
use vfs::{Allocate, Errno, OpenFlags};

/// Bytes of whole blocks, whatever their size.
const BLOCKS: u64 = 64 << 10;

/// The length of the source, whose last block is not full.
const LEN: u64 = 3 * BLOCKS + 100;

pub(crate) fn files_share_storage_until_one_changes(c: &Fixture) -> Outcome {
    let (from, to) = (c.open("/from", MAKE).or_fail("making /from")?, c.open("/to", MAKE).or_fail("making /to")?);
    let source = pattern(0, LEN as usize);
    write_all(&from, 0, &source)?;
    let all = from.clone_to(0, &to, 0, 0);
    if !c.features().reflinks {
        return same("a reflink", all, Err(Errno::EOPNOTSUPP));
    }
    all.or_fail("a reflink of all")?;
    c.twice(|| same("the whole reflink", c.read("/to"), Ok(source.clone())))?;
    // Each change is seen in one file only.
    write_all(&from, 10, b"source")?;
    write_all(&to, BLOCKS + 10, b"target")?;
    let (mut expected_from, mut expected) = (source.clone(), source);
    expected_from[10..16].copy_from_slice(b"source");
    expected[BLOCKS as usize + 10..][..6].copy_from_slice(b"target");
    from.set_len(2 * BLOCKS + 5).or_fail("a truncation")?;
    from.set_len(LEN).or_fail("an extension")?;
    expected_from[2 * BLOCKS as usize + 5..].fill(0);
    c.twice(|| same("the source after changes", c.read("/from"), Ok(expected_from.clone())))?;
    c.twice(|| same("the reflink after changes", c.read("/to"), Ok(expected.clone())))?;
    // A part, behind the end; and a part of one file in its place.
    from.clone_to(0, &to, 5 * BLOCKS, 2 * BLOCKS).or_fail("a reflink of a part")?;
    expected.resize(7 * BLOCKS as usize, 0);
    expected[5 * BLOCKS as usize..].copy_from_slice(&expected_from[..2 * BLOCKS as usize]);
    to.clone_to(BLOCKS, &to, 3 * BLOCKS, BLOCKS).or_fail("a reflink within a file")?;
    expected.copy_within(BLOCKS as usize..2 * BLOCKS as usize, 3 * BLOCKS as usize);
    if c.features().allocate {
        to.allocate(Allocate::PunchHole, true, BLOCKS - 5, 10).or_fail("a hole")?;
        expected[BLOCKS as usize - 5..][..10].fill(0);
        from.allocate(Allocate::Zero, true, 0, LEN).or_fail("zeros")?;
        expected_from.fill(0);
    }
    c.unlink("/from").or_fail("unlink")?;
    same("the source without a name", read_all(&from), Ok(expected_from))?;
    drop(from);
    c.vfs().barrier();
    c.twice(|| same("the reflink after the end of its source", c.read("/to"), Ok(expected.clone())))
}

pub(crate) fn a_reflink_of_a_wrong_range_is_refused(c: &Fixture) -> Outcome {
    let (from, to) = (c.open("/from", MAKE).or_fail("making /from")?, c.open("/to", MAKE).or_fail("making /to")?);
    let source = pattern(0, LEN as usize);
    write_all(&from, 0, &source)?;
    write_all(&to, 0, &source)?;
    let open = |path, flags| c.open(path, flags).or_fail("an open");
    let append = open("/to", OpenFlags::RDWR.union(OpenFlags::APPEND))?;
    same("a target that is appended to", from.clone_to(0, &append, 0, 0), Err(Errno::EBADF))?;
    same("a target that is read", from.clone_to(0, &open("/to", OpenFlags::RDONLY)?, 0, 0), Err(Errno::EBADF))?;
    same("a source that is written", open("/from", OpenFlags::WRONLY)?.clone_to(0, &to, 0, 0), Err(Errno::EBADF))?;
    same("a directory", open("/", OpenFlags::RDONLY)?.clone_to(0, &to, 0, 0), Err(Errno::EISDIR))?;
    if !c.features().reflinks {
        return same("a reflink", from.clone_to(0, &to, 0, 0), Err(Errno::EOPNOTSUPP));
    }
    let far = (i64::MAX as u64 >> 20) << 20;
    let cases = [
        ("a source that begins inside a block", 1, 0, BLOCKS),
        ("a target that begins inside a block", 0, 1, BLOCKS),
        ("an end inside a block", 0, 0, BLOCKS + 1),
        ("a range beyond the end", 0, 0, LEN + 1),
        ("whole blocks beyond the end", BLOCKS, 0, 3 * BLOCKS),
        ("a start behind the end", 4 * BLOCKS, 0, 0),
        ("an end that lies inside the target", 3 * BLOCKS, 0, 100),
        ("the end of all, which lies inside the target", 3 * BLOCKS, BLOCKS, 0),
        ("an end that no file can have", 0, far, BLOCKS * 16),
        ("an offset that there is not", u64::MAX, 0, 0),
        ("a length that there is not", 0, 0, u64::MAX),
    ];
    for (what, offset, at, len) in cases {
        same(what, from.clone_to(offset, &to, at, len), Err(Errno::EINVAL))?;
    }
    same("ranges that overlap", to.clone_to(0, &to, BLOCKS, 2 * BLOCKS), Err(Errno::EINVAL))?;
    same("a file onto itself", to.clone_to(0, &to, 0, 0), Err(Errno::EINVAL))?;
    c.twice(|| same("the target", c.read("/to"), Ok(source.clone())))?;
    c.twice(|| same("the source", c.read("/from"), Ok(source.clone())))?;
    let empty = c.open("/empty", MAKE).or_fail("making /empty")?;
    same("a reflink of nothing", empty.clone_to(0, &to, 1, 0), Ok(()))?;
    same("the last block, in its place", from.clone_to(3 * BLOCKS, &to, 3 * BLOCKS, 100), Ok(()))?;
    c.twice(|| same("the target after that", c.read("/to"), Ok(source.clone())))
}

/// Checks that no block of a reflink contains two different bytes, while each thread fills its own block of the source with one
/// byte and then makes a reflink of the whole file.
pub(crate) fn threads_write_files_that_share_storage(c: &Fixture) -> Outcome {
    needs!(c.features().reflinks);
    const ROUNDS: u8 = 40;
    let from = c.open("/from", MAKE).or_fail("making /from")?;
    write_all(&from, 0, &vec![0; 4 * BLOCKS as usize])?;
    on_threads(|thread| {
        let (name, at) = (format!("/to{thread}"), thread as u64 * BLOCKS);
        let to = c.open(&name, MAKE).or_fail("making a target")?;
        for round in 1..=ROUNDS {
            write_all(&from, at, &vec![round; BLOCKS as usize])?;
            from.clone_to(0, &to, 0, 0).or_fail("a reflink")?;
            let read = read_all(&to).or_fail("reading a target")?;
            same("the length", read.len(), 4 * BLOCKS as usize)?;
            for (number, block) in read.chunks(BLOCKS as usize).enumerate() {
                let is_one = block.iter().all(|byte| *byte == block[0]);
                same(format_args!("thread {thread}, round {round}, block {number} has one byte"), is_one, true)?;
            }
            same("the own block", read[at as usize], round)?;
            // Only the target changes.
            write_all(&to, 0, &vec![u8::MAX; 4 * BLOCKS as usize])?;
        }
        Ok(())
    })?;
    same("the source", c.read("/from"), Ok(vec![ROUNDS; 4 * BLOCKS as usize]))
}
