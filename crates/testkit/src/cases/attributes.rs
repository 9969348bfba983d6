//! Attributes: modes, owners, times, link counts of directories.

use crate::fixture::{Fixture, write_all};
use crate::outcome::{OrFail, Outcome, same};
use vfs::{Base, Errno, OpenFlags, SetAttr, SetTime};

pub(crate) fn modes_owners_and_times_are_kept(c: &Fixture) -> Outcome {
    c.write("/file", b"text")?;
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    for path in ["/file", "/dir"] {
        let set = |set: SetAttr| c.at().set_attr(Base::CWD, path.as_bytes(), true, &set);
        let mode = set(SetAttr { mode: Some(0o1750), ..SetAttr::default() });
        if !c.features().keeps_attributes {
            same(format_args!("chmod {path}"), mode, Err(Errno::EPERM))?;
            continue;
        }
        mode.or_fail(format_args!("chmod {path}"))?;
        set(SetAttr { uid: Some(1000), gid: Some(2000), ..SetAttr::default() })
            .or_fail(format_args!("chown {path}"))?;
        let (atime, mtime) = (Some(SetTime::At(1_000_000_007)), Some(SetTime::At(2_000_000_009)));
        set(SetAttr { atime, mtime, ..SetAttr::default() }).or_fail(format_args!("utimens {path}"))?;
        c.twice(|| {
            let attr = c.attr(path).or_fail(path)?;
            same(format_args!("mode of {path}"), attr.mode & 0o7777, 0o1750)?;
            same(format_args!("owner and group of {path}"), (attr.uid, attr.gid), (1000, 2000))?;
            same(format_args!("times of {path}"), (attr.atime, attr.mtime), (1_000_000_007, 2_000_000_009))
        })?;
    }
    c.twice(|| same("contents", c.attr("/file").map(|attr| attr.size), Ok(4)))
}

pub(crate) fn directories_count_their_subdirectories(c: &Fixture) -> Outcome {
    c.mkdir("/d").or_fail("mkdir /d")?;
    let check = |root: u32, dir: u32| {
        c.twice(|| {
            let links = ["/", "/d"].map(|path| c.attr(path).map(|attr| attr.nlink));
            same("links of / and /d", links, c.links([root, dir]))
        })
    };
    check(3, 2)?;
    c.write("/d/file", b"")?;
    c.make_dirs(["/d/a", "/d/b"])?;
    check(3, 4)?;
    if c.features().rename {
        c.rename("/d/a", "/a").or_fail("rename out of the directory")?;
        check(4, 3)?;
        c.rename("/a", "/d/a").or_fail("rename into the directory")?;
        check(3, 4)?;
    }
    c.rmdir("/d/a").or_fail("rmdir /d/a")?;
    c.unlink("/d/file").or_fail("unlink /d/file")?;
    check(3, 3)
}

pub(crate) fn a_write_changes_length_and_times(c: &Fixture) -> Outcome {
    c.write("/file", b"")?;
    let made = c.attr("/file").or_fail("/file")?;
    same("length of a new file", made.size, 0)?;
    let file = c.open("/file", OpenFlags::RDWR).or_fail("open")?;
    write_all(&file, 0, &[7; 5000])?;
    let written = file.attr().or_fail("fstat")?;
    same("length after a write", written.size, 5000)?;
    same("mtime and ctime did not go back", (written.mtime >= made.mtime, written.ctime >= made.ctime), (true, true))?;
    file.set_len(100).or_fail("ftruncate")?;
    drop(file);
    c.twice(|| same("length after a cut", c.attr("/file").map(|attr| attr.size), Ok(100)))?;
    c.at()
        .set_attr(Base::CWD, b"/file", true, &SetAttr { size: Some(9000), ..SetAttr::default() })
        .or_fail("truncate to more")?;
    c.twice(|| same("length after it grew", c.attr("/file").map(|attr| attr.size), Ok(9000)))
}
