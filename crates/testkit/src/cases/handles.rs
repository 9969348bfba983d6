//! Opens: the state that a file system keeps for each, their ends, appended data, and errors of
//! writing.
//!
//! After every case the [ledger](crate::ledger) is checked, which is around each file system.

use super::threads::on_threads;
use crate::fixture::{Fixture, MAKE, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, same};
use std::collections::BTreeMap;
use vfs::{Base, Errno, OpenFile, OpenFlags};

const APPEND: OpenFlags = OpenFlags::WRONLY.union(OpenFlags::APPEND).union(OpenFlags::CREAT);

/// Checks the numbers of opens and releases that `act` makes.
fn counted<T>(
    c: &Fixture,
    what: &str,
    expected: (u64, u64),
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let before = c.opens().counts();
    let done = act()?;
    let after = c.opens().counts();
    same(format_args!("opens and releases: {what}"), (after.0 - before.0, after.1 - before.1), expected)?;
    Ok(done)
}

pub(crate) fn each_open_is_released_once(c: &Fixture) -> Outcome {
    let open = |flags| c.open("/file", flags).or_fail("open");
    counted(c, "a new file", (1, 1), || c.write("/file", b"text"))?;
    let first = counted(c, "a file that stays open", (1, 0), || open(OpenFlags::RDONLY))?;
    counted(c, "others beside it", (3, 3), || {
        let (write, cut) = (open(OpenFlags::WRONLY)?, open(OpenFlags::RDWR.union(OpenFlags::TRUNC))?);
        drop(open(APPEND)?);
        drop((cut, write));
        Ok(())
    })?;
    counted(c, "a place", (0, 0), || open(OpenFlags::PATH).map(drop))?;
    counted(c, "a removal", (0, 0), || c.unlink("/file").or_fail("unlink"))?;
    counted(c, "the end of a file without a name", (0, 1), || {
        drop(first);
        Ok(())
    })?;
    c.write("/shared", b"shared")?;
    let shared = c.open("/shared", OpenFlags::RDWR).or_fail("open")?;
    counted(c, "opens of many threads", (800, 800), || {
        on_threads(|_| {
            for round in 0..200 {
                let own = c.open("/shared", if round % 2 == 0 { OpenFlags::RDONLY } else { APPEND }).or_fail("open")?;
                same("a read by a shared open", shared.read_at(0, &mut [0; 4]), Ok(4))?;
                drop(own);
            }
            Ok(())
        })
    })
}

pub(crate) fn an_open_that_fails_is_not_released(c: &Fixture) -> Outcome {
    c.write("/file", b"text")?;
    c.mkdir("/d").or_fail("mkdir /d")?;
    let fails = |path: &str, flags, errno| same(path, c.open(path, flags).map(drop), Err(errno));
    counted(c, "what the tree refuses", (0, 0), || {
        fails("/none", OpenFlags::RDONLY, Errno::ENOENT)?;
        fails("/file", MAKE.union(OpenFlags::EXCL), Errno::EEXIST)?;
        fails("/file", OpenFlags::DIRECTORY, Errno::ENOTDIR)?;
        fails("/d", OpenFlags::RDWR, Errno::EISDIR)
    })?;
    let contents = |expected: &[u8]| same("contents", c.read("/file"), Ok(expected.to_vec()));
    c.opens().refuse(Some(Errno::EMFILE));
    counted(c, "what the file system refuses", (0, 0), || {
        for flags in [OpenFlags::RDONLY, MAKE, OpenFlags::RDWR.union(OpenFlags::TRUNC), APPEND] {
            fails("/file", flags, Errno::EMFILE)?;
        }
        fails("/new", MAKE, Errno::EMFILE)
    })?;
    c.opens().refuse(None);
    contents(b"text")?;
    // As on Linux, the name is there: the file was made before its open failed.
    c.twice(|| same("the file that could not be opened", c.read("/new"), Ok(Vec::new())))?;
    // A mount that is busy because of a refused open could not be made read-only.
    c.at().remount(Base::CWD, b"/", vfs::MountFlags::RDONLY).or_fail("remount")?;
    fails("/file", OpenFlags::WRONLY, Errno::EROFS)
}

pub(crate) fn each_open_of_a_directory_has_its_own_listing(c: &Fixture) -> Outcome {
    const NAMES: usize = 1100;
    c.mkdir("/d").or_fail("mkdir /d")?;
    for number in 0..NAMES {
        c.write(format!("/d/f{number}"), b"")?;
    }
    c.mark_stale();
    let open = || c.open("/d", OpenFlags::DIRECTORY).or_fail("open of /d");
    counted(c, "directories", (2, 0), || {
        let mut lists = [open()?, open()?].map(|dir| (dir, Vec::new()));
        // By turns, and the first one from the start again after its second turn.
        for turn in 0.. {
            let mut is_over = true;
            for (at, (dir, names)) in lists.iter_mut().enumerate() {
                if (turn, at) == (2, 0) {
                    dir.rewind();
                    names.clear();
                }
                let next = dir.next_entries().or_fail("listing")?;
                is_over &= next.is_empty();
                names.extend(next.into_iter().map(|entry| entry.name));
            }
            if is_over {
                break;
            }
        }
        for (_, names) in &mut lists {
            names.sort_unstable();
            names.dedup();
        }
        same("names of each listing", lists.each_ref().map(|(_, names)| names.len()), [NAMES; 2])?;
        Ok(lists)
    })
    .map(drop)?;
    let dir = open()?;
    c.mkdir("/gone").or_fail("mkdir /gone")?;
    counted(c, "a directory that is removed while it is open", (1, 1), || {
        let gone = c.open("/gone", OpenFlags::DIRECTORY).or_fail("open of /gone")?;
        c.rmdir("/gone").or_fail("rmdir")?;
        drop(gone);
        Ok(())
    })?;
    same("fsync of a directory", dir.sync(false), Ok(()))
}

pub(crate) fn data_of_several_writers_are_appended(c: &Fixture) -> Outcome {
    const RECORDS: usize = 100;
    let (one, two) = (c.open("/log", APPEND).or_fail("open")?, c.open("/log", APPEND).or_fail("open")?);
    same("the first record", one.write_at(7, b"one."), Ok((4, 4)))?;
    same("another's", two.write_at(0, b"two."), Ok((4, 8)))?;
    let over = c.open("/log", OpenFlags::RDWR).or_fail("open")?;
    same("a write to its offset", over.write_at(0, b"ONE"), Ok((3, 3)))?;
    same("the next record", one.write_at(0, b"three."), Ok((6, 14)))?;
    over.set_len(5).or_fail("cut")?;
    same("a record after a cut", two.write_at(1 << 20, b"four"), Ok((4, 9)))?;
    same("contents", read_all(&over), Ok(b"ONE.tfour".to_vec()))?;
    over.set_len(0).or_fail("cut")?;
    on_threads(|thread| {
        let own = c.open("/log", APPEND).or_fail("open")?;
        for number in 0..RECORDS {
            let file = if number % 2 == 0 { &own } else { &one };
            write_all(file, 0, format!("{thread} {number:0>6}\n").as_bytes())?;
        }
        Ok(())
    })?;
    let text = read_all(&over).or_fail("read")?;
    let mut next = BTreeMap::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let at = next.entry(line[0]).or_insert(0);
        same("a record", line, format!("{} {at:0>6}\n", char::from(line[0])).as_bytes())?;
        *at += 1;
    }
    same("records of each thread", next.into_values().collect::<Vec<_>>(), vec![RECORDS; 4])
}

pub(crate) fn an_error_of_writing_is_reported_once_by_each_open(c: &Fixture) -> Outcome {
    let open = |path: &str, flags| c.open(path, flags).or_fail(path);
    c.write("/file", b"text")?;
    let (one, two) = (open("/file", OpenFlags::RDWR)?, open("/file", OpenFlags::WRONLY)?);
    let other = open("/other", MAKE)?;
    let reader = open("/file", OpenFlags::RDONLY)?;
    c.opens().fail_writing(Errno::EIO);
    let later = open("/file", OpenFlags::RDWR)?;
    let synced =
        |what: &str, file: &OpenFile, expected| same(format_args!("fsync: {what}"), file.sync(false), expected);
    synced("another file", &other, Ok(()))?;
    synced("an open after the error", &later, Ok(()))?;
    synced("the first open", &one, Err(Errno::EIO))?;
    synced("the first open again", &one, Ok(()))?;
    // A reader's close reports nothing; its fsync does.
    same("close of a reader", reader.flush(), Ok(()))?;
    synced("a reader", &reader, Err(Errno::EIO))?;
    same("close of the second open", two.flush(), Err(Errno::EIO))?;
    same("close of the second open again", two.flush(), Ok(()))?;
    synced("the second open after its close", &two, Ok(()))
}
