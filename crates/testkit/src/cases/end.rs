//! Evictions of inodes. After every case, the end of its tree checks that each inode was evicted once; this case evicts
//! them in every way.

use crate::fixture::{Fixture, MAKE};
use crate::outcome::{Failure, OrFail, Outcome, same};

pub(crate) fn each_inode_is_evicted_once(c: &Fixture) -> Outcome {
    c.mkdir("/d").or_fail("mkdir /d")?;
    for number in 0..50 {
        c.write(format!("/d/f{number}"), b"text")?;
    }
    let before = c.counts().evictions();
    for number in 0..10 {
        c.unlink(format!("/d/f{number}")).or_fail("unlink")?;
    }
    c.vfs().barrier();
    same("inodes that were evicted with their names", c.counts().evictions() - before, 10)?;
    // An open file is evicted when it is closed.
    let file = c.open("/d/f10", MAKE).or_fail("open")?;
    c.unlink("/d/f10").or_fail("unlink of an open file")?;
    c.vfs().barrier();
    same("inodes that were evicted while one was open", c.counts().evictions() - before, 10)?;
    drop(file);
    c.vfs().barrier();
    same("inodes that were evicted when it was closed", c.counts().evictions() - before, 11)?;
    if c.features().rename {
        c.rename("/d/f11", "/d/f12").or_fail("rename over a file")?;
        c.vfs().barrier();
        same("inodes that were evicted when one was replaced", c.counts().evictions() - before, 12)?;
    }
    if c.features().hard_links {
        c.link("/d/f13", "/other").or_fail("link")?;
        c.unlink("/d/f13").or_fail("unlink of one name")?;
        c.vfs().barrier();
        let evicted = c.counts().evictions() - before;
        same(
            "inodes that were evicted when one of two names went",
            evicted,
            if c.features().rename { 12 } else { 11 },
        )?;
    }
    match c.counts().evicted_twice().as_slice() {
        [] => Ok(()),
        nodes => Err(Failure::new(format!("expected one eviction of each inode, got more of the nodes {nodes:?}"))),
    }
}
