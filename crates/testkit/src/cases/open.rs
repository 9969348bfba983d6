//! Open files whose names are removed or renamed, and files without names.

use crate::fixture::{Fixture, MAKE, read_all, write_all};
use crate::outcome::{OrFail, Outcome, needs, same};
use vfs::{Base, Errno, OpenFile, OpenFlags, PathAt};

/// Checks an open file without a name.
fn check_nameless(c: &Fixture, file: &OpenFile, contents: &[u8]) -> Outcome {
    if !c.features().open_unlinked {
        same("a read of a file without a name", file.read_at(0, &mut [0; 4]), Err(Errno::ESTALE))?;
        return same("a write to a file without a name", file.write_at(0, b"x"), Err(Errno::ESTALE));
    }
    same("contents of a file without a name", read_all(file), Ok(contents.to_vec()))?;
    write_all(file, contents.len() as u64, b"more")?;
    same("contents after a write", read_all(file), Ok([contents, b"more"].concat()))?;
    file.set_len(1).or_fail("cut of a file without a name")?;
    same("contents after a cut", read_all(file), Ok(contents[..1].to_vec()))?;
    same("links", file.attr().map(|attr| attr.nlink), Ok(0))
}

pub(crate) fn an_open_file_outlives_its_name(c: &Fixture) -> Outcome {
    let lone = c.open("/lone", MAKE).or_fail("making /lone")?;
    write_all(&lone, 0, b"lone")?;
    c.unlink("/lone").or_fail("unlink")?;
    check_nameless(c, &lone, b"lone")?;
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    write_all(&file, 0, b"text")?;
    c.unlink("/file").or_fail("unlink")?;
    c.mark_stale();
    // Another file by the same name is another file.
    c.write("/file", b"another")?;
    check_nameless(c, &file, b"text")?;
    c.twice(|| same("the other file", c.read("/file"), Ok(b"another".to_vec())))?;
    drop(file);
    c.twice(|| same("the other file", c.read("/file"), Ok(b"another".to_vec())))
}

pub(crate) fn an_open_file_moves_with_its_name(c: &Fixture) -> Outcome {
    needs!(c.features().rename);
    c.make_dirs(["/a", "/a/b"])?;
    let file = c.open("/a/b/file", MAKE).or_fail("making the file")?;
    write_all(&file, 0, b"one")?;
    c.rename("/a/b/file", "/a/b/other").or_fail("rename of the file")?;
    c.rename("/a/b", "/b").or_fail("rename of its directory")?;
    c.mark_stale();
    write_all(&file, 3, b"two")?;
    same("contents by the handle", read_all(&file), Ok(b"onetwo".to_vec()))?;
    c.twice(|| same("contents by the path", c.read("/b/other"), Ok(b"onetwo".to_vec())))
}

pub(crate) fn a_replaced_file_stays_open(c: &Fixture) -> Outcome {
    needs!(c.features().rename);
    let old = c.open("/target", MAKE).or_fail("making /target")?;
    write_all(&old, 0, b"old")?;
    c.write("/file", b"new")?;
    c.rename("/file", "/target").or_fail("rename over an open file")?;
    c.mark_stale();
    check_nameless(c, &old, b"old")?;
    c.twice(|| same("contents by the path", c.read("/target"), Ok(b"new".to_vec())))
}

pub(crate) fn a_file_can_be_made_without_a_name(c: &Fixture) -> Outcome {
    c.mkdir("/d").or_fail("mkdir /d")?;
    let opened = c.open("/d", OpenFlags::TMPFILE.union(OpenFlags::RDWR));
    if !c.features().unnamed {
        return same("O_TMPFILE", opened.err(), Some(Errno::EOPNOTSUPP));
    }
    let file = opened.or_fail("O_TMPFILE")?;
    write_all(&file, 0, b"text")?;
    same("its contents and links", (read_all(&file), file.attr().map(|a| a.nlink)), (Ok(b"text".to_vec()), Ok(0)))?;
    c.twice(|| same("names in its directory", c.names("/d"), Ok(Vec::new())))?;
    if c.features().hard_links {
        let base = Base::at(file.held());
        c.at().link(PathAt::new(base, b""), PathAt::cwd(b"/d/name"), false).or_fail("giving it a name")?;
        drop(file);
        c.twice(|| {
            same("contents by its name", c.read("/d/name"), Ok(b"text".to_vec()))?;
            same("links", c.attr("/d/name").map(|attr| attr.nlink), Ok(1))
        })?;
    }
    let lost = c.open("/d", OpenFlags::TMPFILE.union(OpenFlags::RDWR)).or_fail("a second O_TMPFILE")?;
    write_all(&lost, 0, b"lost")
}
