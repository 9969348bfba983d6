//! Listings that come with inodes: what the cache learns from them, and what it must not.

use lightfoot_vfs::{
    Attr, Base, Budget, Context, DirEntry, Errno, Layer, Listed, NewInode, Open, OpenFile, OpenFlags, PathRef, Request,
    S_IFREG, Valid, Vfs, Want,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use testkit::{Call, Store, StoreOptions};

const ROOT: u64 = Store::ROOT;

fn options(valid: Valid) -> StoreOptions {
    StoreOptions { lists_attributes: true, valid, ..StoreOptions::default() }
}

/// Calls by name: all but those at the end of an open file or an inode.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Calls {
    fn of(store: &Store) -> Self {
        let calls = Self::default();
        let own = calls.clone();
        store.before(move |call| {
            let name = match call {
                Call::Lookup { .. } => "lookup",
                Call::ReadDir { .. } => "read_dir",
                Call::Open { .. } | Call::Release { .. } | Call::Evict { .. } => return Ok(()),
                _ => "other",
            };
            *own.0.lock().unwrap().entry(name).or_default() += 1;
            Ok(())
        });
        calls
    }

    /// The calls since the last time.
    fn take(&self) -> Vec<(&'static str, u32)> {
        core::mem::take(&mut *self.0.lock().unwrap()).into_iter().collect()
    }
}

fn open(context: &Context, path: &str) -> OpenFile {
    context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).unwrap()
}

fn list(context: &Context, path: &str, want: Want) -> Vec<String> {
    let dir = open(context, path);
    let batches = std::iter::from_fn(|| Some(dir.next_entries_with(want).unwrap()).filter(|some| !some.is_empty()));
    batches.flatten().map(|entry| String::from_utf8(entry.name.into_vec()).unwrap()).collect()
}

fn attr(context: &Context, path: &str) -> Result<Attr, Errno> {
    context.attr(Base::CWD, path.as_bytes(), false)
}

fn size(context: &Context, path: &str) -> u64 {
    attr(context, path).unwrap().size
}

/// 100 directories of 100 files.
fn large(options: StoreOptions) -> Store {
    let store = Store::new(options);
    for dir in 0..100 {
        let dir = store.make(ROOT, &format!("d{dir}/"));
        for file in 0..100 {
            let file = store.make(dir, &format!("a file with the number {file}"));
            store.change(file, |attr| attr.size = file);
        }
    }
    store
}

/// Lists each directory, and requests the attributes of all that it lists.
fn status(context: &Context, store: &Store, want: Want) -> usize {
    let mut seen = 0;
    for dir in list(context, "/", want) {
        for file in list(context, &format!("/{dir}"), want) {
            let path = format!("{dir}/{file}");
            assert_eq!(size(context, &path), store.node(&path), "{path}");
            seen += 1;
        }
    }
    seen
}

#[test]
fn the_status_of_all_listed_names_takes_one_call_for_each_directory() {
    for valid in [Valid::UntilInvalidated, Valid::For(u64::MAX)] {
        for keeps_listings in [false, true] {
            let store = large(StoreOptions { keeps_listings, ..options(valid) });
            let vfs = store.tree();
            let context = vfs.context();
            let calls = Calls::of(&store);
            assert_eq!(status(&context, &store, Want::ATTRIBUTES), 10_000);
            assert_eq!(calls.take(), [("read_dir", 101)], "{valid:?} {keeps_listings}");
            assert_eq!(status(&context, &store, Want::ATTRIBUTES), 10_000);
            // What has no time of validity may be kept as a listing, too.
            let again =
                if keeps_listings && valid == Valid::UntilInvalidated { vec![] } else { vec![("read_dir", 101)] };
            assert_eq!(calls.take(), again, "{valid:?} {keeps_listings}");
            // All have expired, the root too, whose attributes are requested.
            store.invalidator().all();
            assert_eq!(status(&context, &store, Want::ATTRIBUTES), 10_000);
            assert_eq!(calls.take(), [("other", 1), ("read_dir", 101)], "{valid:?} {keeps_listings}");
        }
    }
}

#[test]
fn a_caller_that_uses_names_alone_leaves_the_cache_as_it_was() {
    let store = large(options(Valid::UntilInvalidated));
    let vfs = store.tree();
    let context = vfs.context();
    let before = vfs.stats().entries;
    assert_eq!(list(&context, "/", Want::NAMES).len(), 100);
    assert_eq!(vfs.stats().entries, before);
    let calls = Calls::of(&store);
    assert_eq!(status(&context, &store, Want::NAMES), 10_000);
    assert_eq!(calls.take(), [("lookup", 10_100), ("read_dir", 101)]);
}

#[test]
fn a_kept_listing_serves_only_while_the_cache_has_what_it_lists() {
    let store = large(StoreOptions { keeps_listings: true, ..options(Valid::UntilInvalidated) });
    let vfs = store.tree();
    let context = vfs.context();
    list(&context, "/d1", Want::NAMES);
    let calls = Calls::of(&store);
    for (want, made) in [(Want::NAMES, 0), (Want::ATTRIBUTES, 1), (Want::ATTRIBUTES, 0), (Want::NAMES, 0)] {
        assert_eq!(list(&context, "/d1", want).len(), 100);
        assert_eq!(calls.take().iter().map(|(_, count)| count).sum::<u32>(), made, "{want:?}");
    }
    // A file system that has no attributes is not called for them again.
    let store =
        large(StoreOptions { lists_attributes: false, keeps_listings: true, ..options(Valid::UntilInvalidated) });
    let vfs = store.tree();
    let context = vfs.context();
    let calls = Calls::of(&store);
    for round in 0..3 {
        list(&context, "/", Want::ATTRIBUTES);
        assert_eq!(calls.take(), [("read_dir", 1)][..usize::from(round == 0)], "{round}");
    }
}

#[test]
fn what_is_invalidated_during_the_listing_is_looked_up() {
    type Push = fn(&Store, u64, u64);
    let cases: [(&str, Push); 3] = [
        ("entry", |store, dir, _| store.invalidator().entry(dir, b"f")),
        ("inode", |store, _, node| store.invalidator().inode(node)),
        ("all", |store, _, _| store.invalidator().all()),
    ];
    for (what, push) in cases {
        for is_cached in [false, true] {
            let store = Store::new(options(Valid::UntilInvalidated));
            let dir = store.make(ROOT, "d/");
            let node = store.make(dir, "f");
            let vfs = store.tree();
            let context = vfs.context();
            if is_cached {
                size(&context, "/d/f");
            }
            let own = store.clone();
            store.after(move |call| {
                if let Call::ReadDir { .. } = call {
                    // After the answer was made.
                    own.change(node, |attr| attr.size = 7);
                    push(&own, dir, node);
                }
                Ok(())
            });
            assert_eq!(list(&context, "/d", Want::ATTRIBUTES), ["f"]);
            assert_eq!(size(&context, "/d/f"), 7, "{what} {is_cached}");
        }
    }
}

#[test]
fn a_file_that_is_written_during_the_listing_keeps_its_newer_attributes() {
    // The name that is listed; whether it has expired before.
    for (listed, expired) in [("f", false), ("f", true), ("g", false)] {
        let store = Store::with_options(options(Valid::UntilInvalidated), &["d/", "d/f", "other/"]);
        let node = store.node("d/f");
        let vfs = store.tree();
        let context = vfs.context();
        let file = Arc::new(context.open(Base::CWD, b"/d/f", OpenFlags::RDWR, 0).unwrap());
        if listed == "g" {
            store.link(store.node("other"), "g", node);
        }
        if expired {
            store.invalidator().entry(store.node("d"), b"f");
        }
        let written = file.clone();
        store.after(move |call| {
            if let Call::ReadDir { .. } = call {
                // The writer holds the file's lock alone. (It is this thread, which has the directory locked.)
                assert_eq!(written.write_at(0, b"hello").map(|(len, _)| len), Ok(5));
            }
            Ok(())
        });
        let dir = if listed == "g" { "/other" } else { "/d" };
        assert_eq!(list(&context, dir, Want::ATTRIBUTES), [listed]);
        assert_eq!(file.attr().unwrap().size, 5, "{listed} {expired}");
        assert_eq!(size(&context, "/d/f"), 5, "{listed} {expired}");
    }
}

#[test]
fn a_name_that_was_absent_is_found_by_the_listing() {
    let store = Store::with_options(options(Valid::UntilInvalidated), &["d/"]);
    let vfs = store.tree();
    let context = vfs.context();
    assert_eq!(attr(&context, "/d/f").map(drop), Err(Errno::ENOENT));
    let node = store.make(store.node("d"), "f");
    list(&context, "/d", Want::ATTRIBUTES);
    let calls = Calls::of(&store);
    assert_eq!(attr(&context, "/d/f").unwrap().ino, node);
    assert_eq!(calls.take(), []);
}

#[test]
fn an_expired_name_that_leads_elsewhere_is_looked_up() {
    let store = Store::with_options(options(Valid::UntilInvalidated), &["d/", "d/f"]);
    let vfs = store.tree();
    let context = vfs.context();
    let old = attr(&context, "/d/f").unwrap().ino;
    let dir = store.node("d");
    store.remove(dir, "f");
    let new = store.make(dir, "f");
    store.invalidator().entry(dir, b"f");
    list(&context, "/d", Want::ATTRIBUTES);
    assert_ne!(old, new);
    assert_eq!(attr(&context, "/d/f").unwrap().ino, new);
}

#[test]
fn what_is_valid_for_no_time_is_not_cached() {
    let store = Store::with_options(options(Valid::For(0)), &["d/", "d/f"]);
    let vfs = store.tree();
    let context = vfs.context();
    let dir = open(&context, "/d");
    let before = vfs.stats().entries;
    assert_eq!(dir.next_entries_with(Want::ATTRIBUTES).unwrap().len(), 1);
    assert_eq!(vfs.stats().entries, before);
    store.change(store.node("d/f"), |attr| attr.size = 9);
    assert_eq!(size(&context, "/d/f"), 9);
}

/// Lists names that no path can have, with inodes.
struct Wild(Store);

impl Layer for Wild {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.0
    }

    fn read_dir(
        &self,
        _: &Request,
        _: &Open<'_>,
        _: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        let long = [b'x'; 256];
        for (at, name) in (100..).zip([b"".as_slice(), b".", b"..", b"a/b", b"a\0b", &long, b"good"]) {
            let attr = Attr { ino: at, mode: S_IFREG | 0o644, nlink: 1, ..Attr::default() };
            if !emit(Listed::with_inode(name, at, NewInode { node: at, attr, ..NewInode::default() })) {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn names_that_no_path_can_have_are_not_cached() {
    let vfs = Vfs::new(Wild(Store::with_paths(&[])));
    let context = vfs.context();
    let before = vfs.stats().entries;
    assert_eq!(list(&context, "/", Want::ATTRIBUTES).len(), 7);
    assert_eq!(vfs.stats().entries - before, 1);
    assert_eq!(attr(&context, "/good").unwrap().ino, 106);
    assert_eq!(attr(&context, "/..").unwrap().ino, ROOT);
}

fn hold(context: &Context, path: &str) -> Option<PathRef> {
    context.hold(Base::CWD, path.as_bytes(), false).ok()
}

#[test]
fn the_budget_holds_and_a_full_cache_refuses_no_listing() {
    let store = Store::new(options(Valid::UntilInvalidated));
    let names = 20_000;
    (0..names).for_each(|number| _ = store.make(ROOT, &format!("f{number}")));
    let budget = Budget { entries: 0, ..Budget::default() };
    let vfs = Vfs::builder().budget(budget).build(store.clone());
    let context = vfs.context();
    let check = || {
        let stats = vfs.stats();
        assert!(stats.entry_bytes <= stats.budget.unwrap().entries, "{stats:?}");
    };
    assert_eq!(list(&context, "/", Want::ATTRIBUTES).len(), names);
    check();
    // Every entry is held.
    let held: Vec<_> = (0..names).map_while(|number| hold(&context, &format!("f{number}"))).collect();
    assert!(held.len() < names);
    check();
    assert_eq!(list(&context, "/", Want::ATTRIBUTES).len(), names);
    check();
    drop(held);
    assert_eq!(size(&context, "/f19999"), 0);
}

#[test]
fn a_listing_beside_lookups_shows_each_name_once() {
    let store = Store::new(options(Valid::UntilInvalidated));
    (0..3000).for_each(|number| _ = store.make(ROOT, &format!("f{number}")));
    let vfs = store.tree();
    let found = OnceLock::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let context = vfs.context();
            (0..3000).for_each(|number| assert!(attr(&context, &format!("/f{number}")).is_ok()));
        });
        found.set(list(&vfs.context(), "/", Want::ATTRIBUTES)).unwrap();
    });
    let mut names = found.into_inner().unwrap();
    assert_eq!(names.len(), 3000);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 3000);
    let entries: Vec<DirEntry> = open(&vfs.context(), "/").next_entries().unwrap();
    assert_eq!(entries.len(), 1024);
}
