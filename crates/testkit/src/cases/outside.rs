//! Changes that do not go through the tree. Nothing to do without a hand that makes them.

use crate::context::{Context, OrFail, Outcome, same};
use vfs::Errno;

pub(crate) fn what_appears_outside_is_found(c: &Context) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.mkdir("/d").or_fail("mkdir /d")?;
    for path in ["/x", "/d/x"] {
        same("what is not there yet", c.read(path), Err(Errno::ENOENT))?;
        outside.write(&path.as_bytes()[1..], b"text");
        same(format_args!("contents of {path}"), c.read(path), Ok(b"text".to_vec()))?;
    }
    c.twice(|| same("names in /d", c.names("/d"), Ok(vec!["x".into()])))
}

pub(crate) fn what_vanishes_outside_is_gone(c: &Context) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.mkdir("/d").or_fail("mkdir /d")?;
    c.write("/d/x", b"text")?;
    same("contents", c.read("/d/x"), Ok(b"text".to_vec()))?;
    outside.remove(b"d/x");
    same("what is gone", c.read("/d/x"), Err(Errno::ENOENT))?;
    same("removing what is gone", c.unlink("/d/x"), Err(Errno::ENOENT))?;
    c.rmdir("/d").or_fail("rmdir of what became empty")
}

pub(crate) fn what_changes_outside_is_seen(c: &Context) -> Outcome {
    let Some(outside) = c.outside() else { return Ok(()) };
    c.write("/x", b"text")?;
    for contents in [&b"a longer text"[..], b"short", b""] {
        outside.write(b"x", contents);
        same("length", c.attr("/x").map(|attr| attr.size), Ok(contents.len() as u64))?;
        same("contents", c.read("/x"), Ok(contents.to_vec()))?;
    }
    Ok(())
}
