//! Listings by cookie: from names that live in the cache, from a file system that lists, and from a listing that is kept.

use crate::truth::store::Store;
use lightfoot_vfs::{Base, Context, Errno, OpenFile, OpenFlags, PathAt, RenameFlags, Valid, Vfs, Want};
use std::collections::{BTreeMap, BTreeSet};
use testkit::StoreOptions;

/// Entries of one call of the file system.
const FETCH_BATCH: usize = 1024;

const OPTIONS: [(&str, StoreOptions); 3] = [
    ("names in the cache", options(true, false)),
    ("a file system that lists", options(false, false)),
    ("listings that are kept", options(false, true)),
];

const fn options(names_in_cache: bool, keeps_listings: bool) -> StoreOptions {
    StoreOptions {
        remote: false,
        names_in_cache,
        keeps_listings,
        reports_attributes: false,
        returns_attributes: false,
        lists_attributes: true,
        answers_ahead: true,
        valid: Valid::UntilInvalidated,
        quota: None,
    }
}

/// Around the length of a batch of the cache, which is 64.
const LENGTHS: [usize; 8] = [0, 1, 2, 63, 64, 65, 128, 200];

type Listed = Vec<(String, u64)>;

struct Case {
    store: Store,
    vfs: Vfs,
    context: Context,
}

impl Case {
    fn new(options: StoreOptions, entries: usize) -> Self {
        let store = Store::new(options);
        let vfs = store.tree();
        let context = vfs.context();
        context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
        let case = Self { store, vfs, context };
        (0..entries).for_each(|number| case.make(&format!("n{number}")));
        case
    }

    fn make(&self, name: &str) {
        self.context.mknod(Base::CWD, format!("/d/{name}").as_bytes(), 0o644, 0).unwrap();
    }

    fn remove(&self, name: &str) {
        self.context.unlink(Base::CWD, format!("/d/{name}").as_bytes()).unwrap();
    }

    fn rename(&self, name: &str, new: &str) {
        let (from, to) = (format!("/d/{name}"), format!("/d/{new}"));
        self.context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), RenameFlags::default()).unwrap();
    }

    fn open(&self) -> OpenFile {
        self.context.open(Base::CWD, b"/d", OpenFlags::DIRECTORY, 0).unwrap()
    }
}

/// Up to `most` entries after `cookie`.
fn after(dir: &OpenFile, cookie: u64, most: usize) -> Listed {
    let mut all = Vec::new();
    dir.entries_after(cookie, Want::NAMES, &mut |entry, cookie| {
        if all.len() == most {
            return false;
        }
        all.push((String::from_utf8(entry.name.to_vec()).unwrap(), cookie));
        true
    })
    .unwrap();
    all
}

#[test]
fn every_cookie_leads_to_what_follows_it_wherever_the_listing_stopped() {
    for (what, options) in OPTIONS {
        for length in LENGTHS {
            let case = Case::new(options, length);
            let whole = after(&case.open(), 0, usize::MAX);
            let names: BTreeSet<_> = whole.iter().map(|(name, _)| name).collect();
            let cookies: BTreeSet<_> = whole.iter().map(|(_, cookie)| cookie).collect();
            assert_eq!((names.len(), cookies.len(), whole.len()), (length, length, length), "{what}");
            assert!(!cookies.contains(&0), "{what}: the start's own cookie");
            let used = case.open();
            for at in 0..=length {
                let cookie = at.checked_sub(1).map_or(0, |at| whole[at].1);
                let label = format!("{what}, {length}, after {at}");
                assert_eq!(after(&case.open(), cookie, usize::MAX), whole[at..], "{label}");
                // From where an earlier call ended, one after the other, and somewhere else in between.
                for most in [0, 1, 64, usize::MAX] {
                    assert_eq!(after(&used, cookie, most), whole[at..length.min(at.saturating_add(most))], "{label}");
                }
            }
            for step in [1, 2, 63, 64, 65] {
                let (dir, mut all) = (case.open(), Vec::new());
                loop {
                    let next = after(&dir, all.last().map_or(0, |(_, cookie): &(String, u64)| *cookie), step);
                    if next.is_empty() {
                        break;
                    }
                    all.extend(next);
                }
                assert_eq!(all, whole, "{what}, {length} by {step}");
            }
        }
    }
}

#[test]
fn going_on_where_the_last_call_ended_asks_the_file_system_no_more_than_once_a_batch() {
    let case = Case::new(OPTIONS[1].1, 2100);
    let dir = case.open();
    let mut cookie = 0;
    for number in 1..=2100 {
        let next = after(&dir, cookie, 1);
        cookie = next[0].1;
        assert_eq!(case.store.log().listings, 1 + number / FETCH_BATCH as u32, "{number}");
    }
}

#[test]
fn a_listing_that_is_kept_answers_further_ones_and_each_cookie_still_leads_on() {
    let case = Case::new(OPTIONS[2].1, 150);
    let whole = after(&case.open(), 0, usize::MAX);
    let asked = case.store.log().listings;
    assert_eq!(after(&case.open(), 0, usize::MAX), whole);
    assert_eq!(case.store.log().listings, asked, "the second comes from what was kept");
    let dir = case.open();
    for stop in [0, 1, 63, 64, 65, 149, 150] {
        assert_eq!(after(&dir, 0, stop), whole[..stop]);
        assert_eq!(after(&dir, stop.checked_sub(1).map_or(0, |at| whole[at].1), usize::MAX), whole[stop..]);
    }
    // What changes meanwhile ends it for those that begin now.
    case.remove("n3");
    case.make("other");
    let now: BTreeSet<String> = after(&case.open(), 0, usize::MAX).into_iter().map(|(name, _)| name).collect();
    assert!(!now.contains("n3") && now.contains("other") && now.len() == 150);
}

#[test]
fn the_two_ways_of_listing_go_on_from_one_another() {
    for (what, options) in OPTIONS {
        let batch = if options.names_in_cache { 64 } else { FETCH_BATCH };
        for length in LENGTHS.into_iter().chain([batch, batch + 1]) {
            for first in [0, 1, 5, 63, 64, 65, 100, batch] {
                let case = Case::new(options, length);
                let whole = after(&case.open(), 0, usize::MAX);
                let names: Vec<_> = whole.iter().map(|(name, _)| name.as_str()).collect();
                let dir = case.open();
                let label = format!("{what}, {length}, {first}");
                // Some by cookie, then the others without.
                let given = after(&dir, 0, first).len();
                let mut rest = next_names(&dir);
                let mut at = given + rest.len();
                assert_eq!(rest, names[given..at], "{label}");
                // Then by cookie again, from the last, or from anywhere.
                let cookie = at.checked_sub(1).map_or(0, |at| whole[at].1);
                assert_eq!(after(&dir, cookie, 3), whole[at..length.min(at + 3)], "{label}");
                at = length.min(at + 3);
                while !rest.is_empty() {
                    rest = next_names(&dir);
                    assert_eq!(rest, names[at..at + rest.len()], "{label}");
                    at += rest.len();
                }
                assert_eq!(at, length, "{label}: to the end");
                assert_eq!(next_names(&dir), [""; 0], "{label}: and no further");
                dir.rewind();
                assert_eq!(next_names(&dir), names[..length.min(batch)], "{label}");
                dir.rewind();
                assert_eq!(after(&dir, 0, usize::MAX), whole, "{label}");
            }
        }
    }
}

fn next_names(dir: &OpenFile) -> Vec<String> {
    let next = dir.next_entries().unwrap();
    next.into_iter().map(|entry| String::from_utf8(entry.name.into_vec()).unwrap()).collect()
}

/// Lists a directory that changes between the calls.
fn check_beside_changes(what: &str, options: StoreOptions, seed: u64) {
    let label = format!("{what}, seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let length = random.usize(..if seed.is_multiple_of(6) { 2500 } else { 250 });
    let case = Case::new(options, length);
    let before = case.vfs.stats().held;
    let dir = case.open();
    // Present from the first call to the last so far; and all that are there now.
    let mut stayed: BTreeSet<String> = (0..length).map(|number| format!("n{number}")).collect();
    let mut there = stayed.clone();
    let mut given: BTreeMap<String, u32> = BTreeMap::new();
    let (mut cookie, mut fresh) = (0, 0);
    let mut cookies = BTreeMap::new();
    loop {
        let dir = if random.usize(..4) == 0 { &case.open() } else { &dir };
        let most = 1 + random.usize(..100);
        let next = after(dir, cookie, most);
        for (name, at) in &next {
            *given.entry(name.clone()).or_default() += 1;
            assert_eq!(*cookies.entry(name.clone()).or_insert(*at), *at, "{label}: {name} keeps its cookie");
        }
        let Some((_, last)) = next.last() else { break };
        cookie = *last;
        for _ in 0..random.usize(..12) {
            fresh += 1;
            let pick = there.iter().nth(random.usize(..there.len().max(1))).cloned();
            match (random.usize(..3), pick) {
                (0, Some(name)) => {
                    case.remove(&name);
                    stayed.remove(&name);
                    there.remove(&name);
                }
                (1, Some(name)) => {
                    let new = format!("renamed{fresh}");
                    case.rename(&name, &new);
                    stayed.remove(&name);
                    there.remove(&name);
                    there.insert(new);
                }
                _ => {
                    case.make(&format!("fresh{fresh}"));
                    there.insert(format!("fresh{fresh}"));
                }
            }
        }
    }
    for name in &stayed {
        assert_eq!(given.get(name), Some(&1), "{label}: {name}");
    }
    assert!(given.values().all(|times| *times == 1), "{label}: {given:?}");
    drop(dir);
    assert_eq!(case.vfs.stats().held, before, "{label}: an end lets go of all");
}

#[test]
fn an_entry_that_stays_is_given_exactly_once_whatever_comes_and_goes_beside_it() {
    for (what, options) in OPTIONS {
        for round in 1..=60_u64 {
            check_beside_changes(what, options, round);
        }
    }
}

#[test]
fn who_is_given_an_entry_may_do_with_the_tree_what_it_likes() {
    for (what, options) in OPTIONS {
        let case = Case::new(options, 100);
        let (dir, mut given) = (case.open(), 0);
        dir.entries_after(0, Want::NAMES, &mut |entry, cookie| {
            given += 1;
            let name = String::from_utf8(entry.name.to_vec()).unwrap();
            let other = case.context.fork();
            other.set_credentials(lightfoot_vfs::Credentials::user(5, 5, &[]));
            case.rename(&name, &format!("seen-{name}"));
            // The same directory too, which is a listing of its own then.
            assert!(!after(&dir, cookie, 1).is_empty() || given >= 100);
            given < 100
        })
        .unwrap();
        assert!(given >= 100, "{what}: {given}");
    }
}

#[test]
fn what_is_no_directory_or_no_open_file_is_not_listed() {
    for (what, options) in OPTIONS {
        let case = Case::new(options, 1);
        let cases = [
            ("/d/n0", OpenFlags::RDONLY, Errno::ENOTDIR),
            ("/d", OpenFlags::PATH, Errno::EBADF),
            ("/d/n0", OpenFlags::PATH, Errno::EBADF),
        ];
        for (path, flags, errno) in cases {
            let file = case.context.open(Base::CWD, path.as_bytes(), flags, 0).unwrap();
            assert_eq!(file.entries_after(0, Want::NAMES, &mut |_, _| true), Err(errno), "{what} {path}");
            assert_eq!(file.next_entries(), Err(errno), "{what} {path}");
        }
    }
}
