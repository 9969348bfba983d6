//! Renames beside lookups and listings.

use crate::cases::threads::on_threads;
use crate::fixture::Fixture;
use crate::outcome::{OrFail, Outcome, needs, same};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vfs::Errno;

/// Renames of the first thread.
const ROUNDS: usize = 300;

/// Runs `change` on one thread for some rounds, and `check` on the others meanwhile.
fn beside(change: impl Fn(usize) -> Outcome + Sync, check: impl Fn() -> Outcome + Sync) -> Outcome {
    let is_over = AtomicBool::new(false);
    on_threads(|thread| {
        if thread == 0 {
            let changed = (0..ROUNDS).try_for_each(&change);
            is_over.store(true, Relaxed);
            return changed;
        }
        while !is_over.load(Relaxed) {
            check()?;
        }
        Ok(())
    })
}

pub(crate) fn a_name_that_is_renamed_over_is_never_missed(c: &Fixture) -> Outcome {
    needs!(c.features().rename);
    c.mkdir("/d").or_fail("mkdir /d")?;
    c.write("/d/name", b"whole")?;
    let replace = |round| {
        let new = format!("/d/new{round}");
        c.write(&new, b"whole")?;
        c.rename(&new, "/d/name").or_fail(format_args!("rename of {new}"))
    };
    beside(replace, || {
        c.attr("/d/name").or_fail("stat of a name that is renamed over")?;
        match c.read("/d/name") {
            // Another file has replaced the one that was looked up, or opened.
            Err(Errno::ESTALE) if !c.features().open_unlinked || !c.features().open_replaced => Ok(()),
            read => same("its contents", read, Ok(b"whole".to_vec())),
        }
    })?;
    c.twice(|| same("names", c.names("/d"), Ok(vec!["name".into()])))
}

pub(crate) fn a_listing_beside_renames_has_each_other_name_once(c: &Fixture) -> Outcome {
    const COUNT: usize = 100;
    needs!(c.features().rename);
    c.make_dirs(["/d", "/e"])?;
    (0..COUNT).try_for_each(|number| c.write(format!("/d/name-{number:0>3}"), b""))?;
    c.write("/d/moving", b"")?;
    let places = ["/d/moving", "/d/a", "/e/moving", "/d/z"];
    let rename = |round: usize| {
        let (old, new) = (places[round % 4], places[(round + 1) % 4]);
        c.rename(old, new).or_fail(format_args!("rename of {old} to {new}"))
    };
    let expected: Vec<_> = (0..COUNT).map(|number| format!("name-{number:0>3}")).collect();
    beside(rename, || {
        let mut names = c.names("/d").or_fail("listing")?;
        names.retain(|name| name.starts_with("name-"));
        let differs = names.iter().zip(&expected).find(|(got, expected)| got != expected);
        same("the first name that differs, and their number", (differs, names.len()), (None, COUNT))
    })?;
    c.twice(|| same("names at the end", c.names("/d").map(|names| names.len()), Ok(COUNT + 1)))
}
