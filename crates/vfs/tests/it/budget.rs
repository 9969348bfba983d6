//! Budgets of bytes: what the cache of a file system that keeps its own names holds at most, what stays, and what it costs.
//!
//! Costs are counted in slots that were looked at, not in time.

use lightfoot_vfs::{
    Attr, Base, Budget, Context, DirEntry, Errno, FileSystem, FsTraits, Inode, Listed, NameStore, NewInode, NewNode,
    NextNames, Open, OwnNames, PathAt, PathRef, RenameFlags, Request, S_IFDIR, S_IFREG, Vfs, Want,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use testkit::Store;

mod shared;

/// A file system where names are numbers: those that begin with `f` are files, `d` directories, anything else is not there. Each
/// directory has all of them. Counts what it is asked.
#[derive(Default)]
struct Numbers {
    lookups: AtomicU64,
    listings: AtomicU64,
    evicted: AtomicU64,
    /// Names that listings have.
    listed: Mutex<Vec<String>>,
}

struct Shared(Arc<Numbers>);

fn number(name: &[u8]) -> Option<(bool, u64)> {
    let (&first, digits) = name.split_first()?;
    let is_dir = match first {
        b'f' => false,
        b'd' => true,
        _ => return None,
    };
    let digits = std::str::from_utf8(digits).ok()?.trim_start_matches('-');
    Some((is_dir, digits.parse().ok()?))
}

fn inode(ino: u64, is_dir: bool) -> NewInode {
    let mode = if is_dir { S_IFDIR | 0o755 } else { S_IFREG | 0o644 };
    let attr = Attr { ino, mode, nlink: if is_dir { 2 } else { 1 }, ..Attr::default() };
    NewInode { node: ino, attr, ..NewInode::default() }
}

impl FileSystem for Shared {
    fn root(&self) -> NewInode {
        inode(1, true)
    }

    fn traits(&self) -> FsTraits {
        let names = OwnNames { keeps_listings: true, ..OwnNames::default() };
        FsTraits { names: NameStore::FileSystem(names), ..FsTraits::default() }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.0.lookups.fetch_add(1, Relaxed);
        let (is_dir, number) = number(name).ok_or(Errno::ENOENT)?;
        Ok(inode(dir.node().wrapping_mul(0x1_0000_01b3) ^ (number + 2) << 1 | u64::from(is_dir), is_dir))
    }

    fn read_dir(
        &self,
        _: &Request,
        _: &Open<'_>,
        after: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        self.0.listings.fetch_add(1, Relaxed);
        let listed = self.0.listed.lock().unwrap();
        for (at, name) in listed.iter().enumerate().skip(after as usize) {
            let entry = DirEntry { name: name.as_bytes().into(), ino: at as u64 + 2, kind: S_IFREG };
            if !emit(Listed::new(entry, at as u64 + 1)) {
                break;
            }
        }
        Ok(())
    }

    fn create(&self, _: &Request, _: &Inode, _: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = 7;
        Ok(7)
    }

    fn evict(&self, _: &Inode) {
        self.0.evicted.fetch_add(1, Relaxed);
    }
}

fn tree(budget: Budget) -> (Vfs, Context, Arc<Numbers>) {
    tree_of(budget, false)
}

fn tree_of(budget: Budget, is_sharded: bool) -> (Vfs, Context, Arc<Numbers>) {
    let numbers = Arc::new(Numbers::default());
    let vfs = Vfs::builder().shards_every_directory(is_sharded).budget(budget).build(Shared(numbers.clone()));
    let context = vfs.context();
    (vfs, context, numbers)
}

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

const SMALL: Budget = Budget { entries: 4 << 20, negatives: 2 << 20, listings: 1 << 20 };

/// Walks a great many names once, with a small set of others over and over in between, and checks that the budget holds, that
/// the small set stays, and that no call looks at more than a bounded number of slots.
fn scan(names: u64, path_of: impl Fn(u64) -> String, hot_of: impl Fn(u64) -> String, found: bool) {
    scan_in(tree(SMALL), names, path_of, hot_of, found);
}

fn scan_in(
    (vfs, context, numbers): (Vfs, Context, Arc<Numbers>),
    names: u64,
    path_of: impl Fn(u64) -> String,
    hot_of: impl Fn(u64) -> String,
    found: bool,
) {
    let hot: Vec<String> = (0..500).map(hot_of).collect();
    let touch_hot = || hot.iter().for_each(|path| assert_eq!(look(&context, path).is_ok(), found, "{path}"));
    // Twice, so that they are known for being used.
    (0..3).for_each(|_| touch_hot());
    let mut asked_again = 0;
    for i in 0..names {
        assert_eq!(look(&context, &path_of(i)).is_ok(), found);
        if i % 1_000 == 0 {
            let before = numbers.lookups.load(Relaxed);
            touch_hot();
            asked_again += numbers.lookups.load(Relaxed) - before;
        }
        if i % 100_000 == 0 {
            let stats = vfs.stats();
            assert!(stats.entry_bytes <= SMALL.entries && stats.negative_bytes <= SMALL.negatives, "{stats:?}");
            assert!(stats.slot_bytes as u64 <= SMALL.entries + SMALL.negatives + (64 << 10), "{stats:?}");
        }
    }
    let stats = vfs.stats();
    assert!(stats.evicted > names / 2, "{stats:?}");
    assert_eq!(asked_again, 0, "of the hot names, over {} rounds", names / 1_000);
    assert!(stats.longest_look <= 64, "one call looked at {} slots", stats.longest_look);
    let mean = stats.looked as f64 / names as f64;
    assert!(mean <= 34.0, "{mean} slots were looked at for each name");
    assert_eq!(stats.held, 2);
    println!("{names} names: {stats:?}");
}

#[test]
fn names_go_through_split_directories_as_through_others() {
    let split = || tree_of(SMALL, true);
    scan_in(split(), 200_000, |i| format!("/d{}/f{}", i / 50_000, i), |i| format!("/d99999999/f{i}"), true);
    scan_in(split(), 100_000, |i| format!("/d1/n{i}"), |i| format!("/d1/absent{i}"), false);
}

#[test]
fn ten_million_names_go_through_a_small_budget_and_the_hot_ones_stay() {
    scan(10_000_000, |i| format!("/d{}/f{}", i / 1_000, i % 1_000), |i| format!("/d99999999/f{i}"), true);
}

#[test]
fn names_that_are_not_there_keep_to_a_budget_of_their_own_and_those_that_are_asked_for_stay() {
    scan(1_000_000, |i| format!("/none{i}"), |i| format!("/hot{i}"), false);
}

#[test]
fn long_names_count_with_their_bytes() {
    let (vfs, context, _) = tree(SMALL);
    for i in 0..100_000u64 {
        look(&context, &format!("/f{}{i}", "-".repeat(200))).unwrap();
    }
    let stats = vfs.stats();
    assert!(stats.entry_bytes <= SMALL.entries, "{stats:?}");
    assert!((stats.live_dentries as u64) < SMALL.entries / (256 + 200), "{stats:?}");
    vfs.barrier();
}

#[test]
fn what_is_held_stays_and_when_all_is_held_a_further_name_is_refused() {
    let (vfs, context, _) = tree(Budget { entries: 0, ..SMALL });
    let mut held = Vec::new();
    let refused = loop {
        match context.hold(Base::CWD, format!("/f{}", held.len()).as_bytes(), true) {
            Ok(one) => held.push(one),
            Err(errno) => break errno,
        }
        assert!(held.len() < 10_000);
    };
    assert_eq!(refused, Errno::ENOMEM);
    assert!(held.len() >= 4_000, "the least budget is one for 4,096 entries, and {} were held", held.len());
    // The names that are held are still there, and still the same.
    let first = context.path_of(&held[0]);
    assert_eq!(first, b"/f0");
    held.truncate(100);
    assert!(look(&context, "/f999999").is_ok());
    assert!(vfs.stats().entry_bytes <= 4096 * 256);
}

/// A tree whose cache of 65,536 entries is full, and the places that hold them.
fn large_and_full() -> (Vfs, Context, Vec<PathRef>) {
    let (vfs, context, _) = tree(Budget { entries: 16 << 20, ..SMALL });
    let mut held = Vec::new();
    while let Ok(one) = context.hold(Base::CWD, format!("/f{}", held.len()).as_bytes(), true) {
        held.push(one);
    }
    assert!(held.len() > 60_000, "{}", held.len());
    (vfs, context, held)
}

/// The most slots that one call may look at.
const MAX_SCANNED: u64 = 16_384;

#[test]
fn a_name_that_finds_no_room_costs_a_bounded_number_of_looks() {
    let (vfs, context, mut held) = large_and_full();
    assert!(vfs.stats().longest_look <= MAX_SCANNED, "{:?}", vfs.stats());
    let looks = |path: &str| {
        let before = vfs.stats().looked;
        let found = look(&context, path);
        (found.is_ok(), vfs.stats().looked - before)
    };
    for number in 0..10 {
        assert_eq!(looks(&format!("/f{}", 1_000_000 + number)), (false, MAX_SCANNED));
    }
    // The hand goes on where it stopped, so wherever one is given back, it is found after a round at most.
    for number in [60_000, 30_000, 0] {
        drop(held.swap_remove(number));
        let rounds = held.len() as u64 / MAX_SCANNED + 2;
        let path = format!("/f{}", 2_000_000 + number);
        let tries = (1..=rounds).find(|_| looks(&path).0);
        assert!(tries.is_some(), "no room after {rounds} tries");
        held.push(context.hold(Base::CWD, path.as_bytes(), true).unwrap());
    }
    assert!(vfs.stats().entry_bytes <= 16 << 20 && vfs.stats().longest_look <= MAX_SCANNED);
}

#[test]
fn names_that_were_all_used_and_are_not_held_make_room() {
    let (vfs, context, held) = large_and_full();
    let names: Vec<_> = held.iter().map(|held| context.path_of(held)).collect();
    drop(held);
    names.iter().for_each(|name| assert!(context.attr(Base::CWD, name, true).is_ok()));
    for number in 0..1_000 {
        assert!(look(&context, &format!("/f{}", 3_000_000 + number)).is_ok());
    }
    assert!(vfs.stats().longest_look <= MAX_SCANNED, "{:?}", vfs.stats());
}

#[test]
fn a_directory_goes_after_what_is_below_it_and_comes_again() {
    let (vfs, context, numbers) = tree(SMALL);
    let deep = "/d1/d2/d3/d4/d5/f6";
    let ino = look(&context, deep).unwrap();
    for i in 0..100_000 {
        look(&context, &format!("/f{i}")).unwrap();
    }
    let before = numbers.lookups.load(Relaxed);
    assert_eq!(look(&context, deep), Ok(ino));
    assert_eq!(numbers.lookups.load(Relaxed) - before, 6, "all of the path had gone");
    drop(context);
    let stats = vfs.stats();
    assert_eq!(stats.held, 0);
    drop(vfs);
}

#[test]
fn many_threads_share_a_small_budget() {
    let (vfs, context, _) = tree(SMALL);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let context = &context;
            scope.spawn(move || {
                for i in 0..100_000u64 {
                    let path = format!("/d{}/f{}", (i * 7 + thread) % 50, i % 5_000 + thread * 3_000);
                    look(context, &path).unwrap();
                    if i % 100 == 0 {
                        let held = context.hold(Base::CWD, path.as_bytes(), true).unwrap();
                        assert_eq!(context.path_of(&held), path.as_bytes());
                    }
                }
            });
        }
    });
    let stats = vfs.stats();
    // Each thread has 5,000 names. How often each of them came and went depends on how the threads take turns.
    assert!(stats.entry_bytes <= SMALL.entries && stats.evicted + stats.entries as u64 >= 20_000, "{stats:?}");
    assert_eq!(stats.held, 2);
}

#[test]
fn a_whole_listing_answers_further_listings_and_misses_until_the_directory_changes() {
    let (vfs, context, numbers) = tree(SMALL);
    *numbers.listed.lock().unwrap() = (0..1_000).map(|i| format!("f{i}")).collect();
    let list = || {
        let dir = context.open(Base::CWD, b"/", lightfoot_vfs::OpenFlags::DIRECTORY, 0).unwrap();
        std::iter::from_fn(|| Some(dir.next_entries().unwrap()).filter(|some| !some.is_empty())).flatten().count()
    };
    assert_eq!(list(), 1_000);
    let (listings, lookups) = (numbers.listings.load(Relaxed), numbers.lookups.load(Relaxed));
    assert_eq!(list(), 1_000);
    for i in 0..100 {
        assert_eq!(look(&context, &format!("/none{i}")), Err(Errno::ENOENT));
    }
    assert_eq!((numbers.listings.load(Relaxed), numbers.lookups.load(Relaxed)), (listings, lookups));
    assert_eq!(vfs.stats().answered_by_listing, 100);
    assert!(vfs.stats().listing_bytes > 0);
    context.mknod(Base::CWD, b"/new", S_IFREG | 0o644, 0).unwrap();
    assert_eq!(list(), 1_000);
    assert!(numbers.listings.load(Relaxed) > listings);
}

#[test]
fn a_thread_sees_whether_a_file_system_was_asked_for_a_name() {
    let (vfs, context, _) = tree(SMALL);
    let cases = [("/f1", 1), ("/f1", 0), ("/d2/f3", 2), ("/d2/f4", 1), ("/none", 1), ("/none", 0), ("/f1/f2", 0)];
    for (path, expected) in cases {
        let before = vfs.names_asked_here();
        let _ = look(&context, path);
        assert_eq!(vfs.names_asked_here() - before, expected, "{path}");
    }
    // A change asks under the directory's lock.
    let before = vfs.names_asked_here();
    assert_eq!(context.mkdir(Base::CWD, b"/d5", 0o755), Err(Errno::EEXIST));
    assert_eq!(vfs.names_asked_here() - before, 1);
    let elsewhere = std::thread::scope(|s| s.spawn(|| vfs.names_asked_here()).join().expect("it only reads"));
    assert_eq!(elsewhere, 0, "another thread has asked nothing");
}

#[test]
fn each_file_system_of_a_tree_has_its_figures_and_its_budget() {
    let (vfs, context, _) = tree(SMALL);
    let other = Budget { entries: 2 << 20, ..SMALL };
    let numbers = Shared(Arc::default());
    let flags = lightfoot_vfs::MountFlags::default();
    context.mount_with(numbers, Base::CWD, b"/d1", flags, other).unwrap();
    let own = Store::new(testkit::StoreOptions { names_in_cache: true, ..Default::default() });
    context.mount(own, Base::CWD, b"/d2", flags).unwrap();
    for i in 0..50 {
        look(&context, &format!("/d1/f{i}")).unwrap();
    }
    let of = |at: &str| {
        let mounts = context.mounts();
        let mount = mounts.iter().find(|mount| mount.mountpoint == std::path::Path::new(at)).unwrap();
        vfs.stats_of(mount.dev).unwrap()
    };
    let entries = |stats: lightfoot_vfs::CacheStats| stats.budget.map(|budget| budget.entries);
    assert_eq!((of("/").live_dentries, of("/d1").live_dentries, of("/d2").live_dentries), (3, 51, 1));
    assert_eq!((entries(of("/")), entries(of("/d1")), entries(of("/d2"))), (Some(SMALL.entries), Some(2 << 20), None));
    assert_eq!(of("/").live_dentries, vfs.stats().live_dentries);
    assert_eq!(vfs.stats_of(u64::MAX), None);
}

#[test]
fn listings_keep_to_their_budget() {
    let (vfs, context, numbers) = tree(SMALL);
    *numbers.listed.lock().unwrap() = (0..500).map(|i| format!("f{i}")).collect();
    for i in 0..200 {
        let dir = context.open(Base::CWD, format!("/d{i}").as_bytes(), lightfoot_vfs::OpenFlags::DIRECTORY, 0).unwrap();
        while !dir.next_entries().unwrap().is_empty() {}
        assert!(vfs.stats().listing_bytes <= SMALL.listings);
    }
    assert!(vfs.stats().listing_bytes > SMALL.listings / 2);
}

/// A tree whose cache is full of held entries, but for `free` of them.
fn full(store: &Store, free: usize) -> (Vfs, Context, Vec<PathRef>) {
    let vfs = Vfs::with_budget(store.clone(), Budget { entries: 0, negatives: 0, listings: 0 });
    let context = vfs.context();
    let hold = |path: &str| context.hold(Base::CWD, path.as_bytes(), true);
    let mut held = vec![hold("/d").unwrap()];
    held.extend((0..5_000).map_while(|number| hold(&format!("/held/{number}")).ok()));
    assert_eq!(hold(&format!("/held/{}", held.len())).unwrap_err(), Errno::ENOMEM);
    held.truncate(held.len() - free);
    (vfs, context, held)
}

#[test]
fn a_rename_in_a_full_cache_does_what_it_says() {
    let mut paths = vec!["d/".to_owned(), "held/".to_owned()];
    paths.extend((0..5_000).map(|number| format!("held/{number}")));
    paths.extend((0..64).flat_map(|number| [format!("d/old{number}"), format!("d/new{number}")]));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for (free, flags) in [
        (1, RenameFlags::default()),
        (2, RenameFlags::default()),
        (3, RenameFlags::default()),
        (1, RenameFlags::EXCHANGE),
        (2, RenameFlags::EXCHANGE),
    ] {
        let store = Store::with_paths(&paths);
        let (_vfs, context, _held) = full(&store, free);
        for number in 0..64 {
            let (old, new) = (format!("d/old{number}"), format!("d/new{number}"));
            let before = (store.node(&old), store.node(&new));
            let done = context.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags);
            // There is room for the entries of both names, or not.
            let expected = if free == 1 { Err(Errno::ENOMEM) } else { Ok(()) };
            assert_eq!(done, expected, "{old} with room for {free}, {flags:?}");
            let moves = done.is_ok();
            assert_eq!(
                store.node(&new),
                if moves { before.0 } else { before.1 },
                "{old} with room for {free}, {flags:?}"
            );
        }
    }
}
