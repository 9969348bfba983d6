//! Changes from outside of the tree. Skipped if the subject cannot make them.

use crate::fixture::Fixture;
use crate::outcome::{OrFail, Outcome, same};
use vfs::Errno;

pub(crate) fn a_file_made_outside_is_found(c: &Fixture) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.mkdir("/d").or_fail("mkdir /d")?;
    for path in ["/x", "/d/x"] {
        same("a missing file", c.read(path), Err(Errno::ENOENT))?;
        outside.write(&path.as_bytes()[1..], b"text");
        same(format_args!("contents of {path}"), c.read(path), Ok(b"text".to_vec()))?;
    }
    c.twice(|| same("names in /d", c.names("/d"), Ok(vec!["x".into()])))
}

pub(crate) fn a_file_removed_outside_is_gone(c: &Fixture) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.mkdir("/d").or_fail("mkdir /d")?;
    c.write("/d/x", b"text")?;
    same("contents", c.read("/d/x"), Ok(b"text".to_vec()))?;
    outside.remove(b"d/x");
    same("a removed file", c.read("/d/x"), Err(Errno::ENOENT))?;
    same("unlink of a removed file", c.unlink("/d/x"), Err(Errno::ENOENT))?;
    c.rmdir("/d").or_fail("rmdir of a directory that became empty")
}

pub(crate) fn a_change_outside_is_seen(c: &Fixture) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.write("/x", b"text")?;
    for contents in [&b"a longer text"[..], b"short", b""] {
        outside.write(b"x", contents);
        same("length", c.attr("/x").map(|attr| attr.size), Ok(contents.len() as u64))?;
        same("contents", c.read("/x"), Ok(contents.to_vec()))?;
    }
    Ok(())
}
