//! Listings of directories.

use crate::fixture::{DIR, Fixture, MAKE, entries};
use crate::outcome::{OrFail, Outcome, same};
use std::collections::BTreeMap;

/// Names of the large directory.
const MANY: usize = 5000;

fn make_many(c: &Fixture, dir: &str, count: usize) -> Outcome {
    c.mkdir(dir).or_fail("mkdir")?;
    for number in 0..count {
        c.open(format!("{dir}/name-{number}"), MAKE).or_fail(format_args!("making name {number}"))?;
    }
    Ok(())
}

pub(crate) fn a_listing_has_each_of_many_names_once(c: &Fixture) -> Outcome {
    make_many(c, "/d", MANY)?;
    let mut expected: Vec<_> = (0..MANY).map(|number| format!("name-{number}")).collect();
    expected.sort_unstable();
    c.twice(|| {
        let names = c.names("/d").or_fail("listing")?;
        same("names listed", names.len(), MANY)?;
        let differs = names.iter().zip(&expected).find(|(got, expected)| got != expected);
        same("the first that differs", differs, None)
    })
}

pub(crate) fn a_listing_beside_changes_has_each_name_once(c: &Fixture) -> Outcome {
    const COUNT: usize = 1000;
    make_many(c, "/d", COUNT)?;
    c.mark_stale();
    let dir = c.open("/d", DIR).or_fail("open of the directory")?;
    let mut seen: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    // Names whose number is a multiple of three are removed during the listing, and new ones are made.
    for round in 0.. {
        let entries = dir.next_entries().or_fail("listing")?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            *seen.entry(entry.name.into_vec()).or_default() += 1;
        }
        for number in (round * 48..(round + 1) * 48).step_by(3).filter(|number| *number < COUNT) {
            c.unlink(format!("/d/name-{number}")).or_fail(format_args!("unlink of name {number}"))?;
        }
        c.write(format!("/d/new-{round}"), b"")?;
        c.mark_stale();
    }
    for number in (0..COUNT).filter(|number| number % 3 != 0) {
        let name = format!("name-{number}");
        same(format_args!("times that {name} was listed"), seen.get(name.as_bytes()).copied(), Some(1))?;
    }
    let doubled = seen.iter().find(|(_, times)| **times > 1).map(|(name, _)| name.escape_ascii().to_string());
    same("a name that is listed twice", doubled, None)
}

pub(crate) fn a_listing_can_begin_again(c: &Fixture) -> Outcome {
    make_many(c, "/d", 150)?;
    let dir = c.open("/d", DIR).or_fail("open of the directory")?;
    let first = dir.next_entries().or_fail("the first entries")?;
    dir.next_entries().or_fail("the second entries")?;
    dir.rewind();
    same("the first entries again", dir.next_entries(), Ok(first))?;
    while !dir.next_entries().or_fail("further entries")?.is_empty() {}
    same("entries after the last", dir.next_entries(), Ok(Vec::new()))?;
    c.write("/d/late", b"")?;
    dir.rewind();
    let late = entries(&dir).or_fail("entries")?.iter().filter(|entry| *entry.name == *b"late").count();
    same("times that a later name is listed", late, 1)
}

pub(crate) fn a_listing_has_types_and_inode_numbers(c: &Fixture) -> Outcome {
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    c.write("/file", b"")?;
    if c.features().symlinks {
        c.symlink("file", "/link").or_fail("symlink")?;
    }
    c.twice(|| {
        for entry in c.list("/").or_fail("listing")? {
            let name = entry.name.escape_ascii().to_string();
            let attr = c.attr(format!("/{name}")).or_fail(&name)?;
            same(format_args!("type and number of {name}"), (entry.kind, entry.ino), (attr.kind(), attr.ino))?;
        }
        Ok(())
    })
}
