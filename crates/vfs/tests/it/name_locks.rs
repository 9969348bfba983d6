//! Changes in a remote file system reserve names: no directory is locked during a call.

use lightfoot_vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, S_IFREG, Valid, Vfs, Want};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use testkit::{Call, Gate, Store, StoreOptions};

/// A timeout that ends while a call is held.
const LITTLE_NS: u64 = 20_000_000;

fn slow(valid: Valid, paths: &[&str]) -> Store {
    Store::with_options(StoreOptions { remote: true, valid, ..StoreOptions::default() }, paths)
}

fn at(path: &str) -> PathAt<'_> {
    PathAt { base: Base::CWD, path: path.as_bytes() }
}

fn mknod(context: &Context, path: &str) -> Result<(), Errno> {
    context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0)
}

fn unlink(context: &Context, path: &str) -> Result<(), Errno> {
    context.unlink(Base::CWD, path.as_bytes())
}

fn rmdir(context: &Context, path: &str) -> Result<(), Errno> {
    context.rmdir(Base::CWD, path.as_bytes())
}

fn rename(context: &Context, old: &str, new: &str) -> Result<(), Errno> {
    context.rename(at(old), at(new), RenameFlags::empty())
}

fn look(context: &Context, path: &str) -> Option<u64> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino).ok()
}

fn list(context: &Context, path: &str) -> BTreeSet<String> {
    let dir = context.open(Base::CWD, path.as_bytes(), OpenFlags::DIRECTORY, 0).expect("a directory");
    let mut names = BTreeSet::new();
    let taken = dir.entries_after(0, Want::NAMES, &mut |entry, _| {
        names.insert(String::from_utf8_lossy(&entry.name).into_owned());
        true
    });
    taken.expect("a listing");
    names
}

/// A context whose operations end after a little time.
fn hasty(vfs: &Vfs) -> Context {
    let context = vfs.context();
    context.set_timeout_ns(Some(LITTLE_NS));
    context
}

/// Whether the call changes, or looks up, the name `held` or `held2`.
fn is_held(call: &Call<'_>, lookups: bool) -> bool {
    let is = |name: &[u8]| name.starts_with(b"held");
    match call {
        Call::Lookup { name, .. } => lookups && is(name),
        Call::Create { name, .. } => !lookups && name.is_some_and(is),
        Call::Link { name, .. } | Call::Unlink { name, .. } => !lookups && is(name),
        Call::Rename(rename) => !lookups && (is(rename.old_name) || is(rename.new_name)),
        _ => false,
    }
}

/// A gate that holds these calls inside of the store.
fn gate(store: &Store, lookups: bool) -> Gate {
    let gate = Gate::default();
    let at_gate = gate.clone();
    store.before(move |call| {
        if is_held(call, lookups) {
            at_gate.pass();
        }
        Ok(())
    });
    gate
}

type Change = fn(&Context) -> Result<(), Errno>;

/// Each change of the name `held` of `/d`, the paths that must exist before, and whether the call that hangs is the lookup before it.
const CHANGES: &[(&str, &[&str], Change, bool)] = &[
    ("mknod", &[], |context| mknod(context, "/d/held"), false),
    ("mkdir", &[], |context| context.mkdir(Base::CWD, b"/d/held", 0o755), false),
    ("symlink", &[], |context| context.symlink(b"body", Base::CWD, b"/d/held"), false),
    (
        "open",
        &[],
        |context| context.open(Base::CWD, b"/d/held", OpenFlags::CREAT | OpenFlags::WRONLY, 0o644).map(drop),
        false,
    ),
    ("link", &[], |context| context.link(at("/d/a"), at("/d/held"), false), false),
    ("unlink", &["d/held"], |context| unlink(context, "/d/held"), false),
    ("rmdir", &["d/held/"], |context| rmdir(context, "/d/held"), false),
    ("rename from", &["d/held"], |context| rename(context, "/d/held", "/d/held2"), false),
    ("rename to", &["d/from"], |context| rename(context, "/d/from", "/d/held"), false),
    ("rename over", &["d/from/", "d/held/"], |context| rename(context, "/d/from", "/d/held"), false),
    ("rename out", &["d/held", "e/"], |context| rename(context, "/d/held", "/e/x"), false),
    ("rename of a directory", &["d/held/", "e/"], |context| rename(context, "/d/held", "/e/x"), false),
    ("lookup", &[], |context| mknod(context, "/d/held"), true),
];

#[test]
fn a_change_that_hangs_delays_changes_of_its_name_alone() {
    for &(what, paths, change, lookups) in CHANGES {
        for valid in [Valid::UntilInvalidated, Valid::For(0)] {
            let store = slow(valid, &["d/", "d/a", "d/cold"]);
            for path in paths {
                let (dir, name) = path.trim_end_matches('/').split_once('/').unwrap_or(("", path));
                let kind = if path.ends_with('/') && !name.ends_with('/') { "/" } else { "" };
                store.make(store.node(dir), &format!("{name}{kind}"));
            }
            let gate = gate(&store, lookups);
            let vfs = store.tree();
            gate.close();
            thread::scope(|scope| {
                let changing = scope.spawn(|| change(&vfs.context()));
                gate.wait_for(1);
                let context = vfs.context();
                assert!(look(&context, "/d/cold").is_some(), "{what}");
                assert_eq!(look(&context, "/d/none"), None, "{what}");
                mknod(&context, "/d/new").unwrap();
                assert!(list(&context, "/d").is_superset(&BTreeSet::from(["a".into(), "cold".into(), "new".into()])));
                rename(&context, "/d/new", "/d/newer").unwrap();
                context.link(at("/d/newer"), at("/d/other"), false).unwrap();
                unlink(&context, "/d/newer").unwrap();
                context.mkdir(Base::CWD, b"/d/dir", 0o755).unwrap();
                rmdir(&context, "/d/dir").unwrap();
                let hasty = hasty(&vfs);
                assert_eq!(mknod(&hasty, "/d/held"), Err(Errno::ETIMEDOUT), "{what}");
                assert_eq!(unlink(&hasty, "/d/held"), Err(Errno::ETIMEDOUT), "{what}");
                assert_eq!(rename(&hasty, "/d/a", "/d/held"), Err(Errno::ETIMEDOUT), "{what}");
                // The directory is closed until the deadline, and open afterwards.
                assert_eq!(rmdir(&hasty, "/d"), Err(Errno::ETIMEDOUT), "{what}");
                mknod(&context, "/d/newest").unwrap();
                gate.open();
                assert_eq!(changing.join().unwrap(), Ok(()), "{what}");
            });
            let context = vfs.context();
            let found = store.find(store.node("d"), b"held");
            assert_eq!(look(&context, "/d/held").is_some(), found.is_some() && what != "symlink", "{what}");
            assert_eq!(list(&context, "/d"), store.names(store.node("d")).into_iter().collect(), "{what}");
        }
    }
}

#[test]
fn a_directory_is_removed_when_its_name_locks_are_given_back() {
    for replaces in [false, true] {
        let store = slow(Valid::UntilInvalidated, &["d/", "e/"]);
        let gate = Gate::default();
        let at_gate = gate.clone();
        store.before(move |call| {
            if is_held(call, false) {
                at_gate.pass();
                return Err(Errno::ENOSPC);
            }
            Ok(())
        });
        let vfs = store.tree();
        gate.close();
        let is_removed = AtomicBool::new(false);
        thread::scope(|scope| {
            let making = scope.spawn(|| mknod(&vfs.context(), "/d/held"));
            gate.wait_for(1);
            let removing = scope.spawn(|| {
                let context = vfs.context();
                let done = if replaces { rename(&context, "/e", "/d") } else { rmdir(&context, "/d") };
                is_removed.store(true, SeqCst);
                done
            });
            // From the moment at which the directory closes, new names wait there.
            while unlink(&hasty(&vfs), "/d/late") != Err(Errno::ETIMEDOUT) {
                thread::yield_now();
            }
            let late = scope.spawn(|| mknod(&vfs.context(), "/d/late"));
            assert!(!is_removed.load(SeqCst));
            gate.open();
            assert_eq!(making.join().unwrap(), Err(Errno::ENOSPC));
            assert_eq!(removing.join().unwrap(), Ok(()));
            // It waited in the old directory; by path it may find the new one.
            let late = late.join().unwrap();
            assert_eq!(late, if replaces { Ok(()) } else { Err(Errno::ENOENT) });
        });
    }
}

#[test]
fn a_change_that_waits_for_a_name_finds_what_the_first_one_made() {
    let store = slow(Valid::UntilInvalidated, &["d/"]);
    let gate = Gate::default();
    let at_gate = gate.clone();
    store.after(move |call| {
        if is_held(call, false) {
            at_gate.pass();
        }
        Ok(())
    });
    let vfs = store.tree();
    gate.close();
    thread::scope(|scope| {
        let first = scope.spawn(|| mknod(&vfs.context(), "/d/held"));
        gate.wait_for(1);
        let second = scope.spawn(|| mknod(&vfs.context(), "/d/held"));
        let third = scope.spawn(|| unlink(&vfs.context(), "/d/held"));
        // The file system has the name already, so a lookup may enter it before the change does.
        store.invalidator().entry(store.node("d"), b"held");
        assert!(look(&vfs.context(), "/d/held").is_some());
        gate.open();
        assert_eq!(first.join().unwrap(), Ok(()));
        // In either order.
        assert!(matches!(second.join().unwrap(), Ok(()) | Err(Errno::EEXIST)));
        assert_eq!(third.join().unwrap(), Ok(()));
    });
    let there = store.find(store.node("d"), b"held");
    assert_eq!(look(&vfs.context(), "/d/held"), there);
}

#[test]
fn a_directory_that_is_replaced_in_the_cache_during_a_call_shows_what_the_call_did() {
    for removes in [false, true] {
        let store = slow(Valid::UntilInvalidated, &["d/", "d/held"]);
        let dir = store.node("d");
        if !removes {
            store.remove(dir, "held");
        }
        let gate = gate(&store, false);
        let vfs = store.tree();
        gate.close();
        thread::scope(|scope| {
            let context = vfs.context();
            let change = scope
                .spawn(|| if removes { unlink(&vfs.context(), "/d/held") } else { mknod(&vfs.context(), "/d/held") });
            gate.wait_for(1);
            // The name leads elsewhere, and back: the cache drops the old directory, and finds it again.
            let other = store.make(Store::ROOT, "d/");
            store.invalidator().entry(Store::ROOT, b"d");
            assert_eq!(look(&context, "/d"), Some(other));
            store.link(Store::ROOT, "d", dir);
            store.invalidator().entry(Store::ROOT, b"d");
            assert_eq!(look(&context, "/d/held").is_some(), removes);
            gate.open();
            assert_eq!(change.join().unwrap(), Ok(()));
            assert_eq!(look(&context, "/d/held").is_some(), !removes);
        });
    }
}

#[test]
fn an_entry_that_a_change_removes_is_no_mount_point_meanwhile() {
    let store = slow(Valid::UntilInvalidated, &["held/"]);
    let gate = gate(&store, false);
    let vfs = store.tree();
    gate.close();
    thread::scope(|scope| {
        let removing = scope.spawn(|| rmdir(&vfs.context(), "/held"));
        gate.wait_for(1);
        let mount = || vfs.context().mount(Store::with_paths(&[]), Base::CWD, b"/held", Default::default());
        assert_eq!(mount(), Err(Errno::EBUSY));
        gate.open();
        assert_eq!(removing.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_listing_that_hangs_delays_no_change_and_its_answers_are_not_used_after_one() {
    let options =
        StoreOptions { remote: true, lists_attributes: true, keeps_listings: true, ..StoreOptions::default() };
    let store = Store::with_options(options, &["d/", "d/a", "d/b", "d/c"]);
    let gate = Gate::default();
    let at_gate = gate.clone();
    store.after(move |call| {
        if matches!(call, Call::ReadDir { .. }) {
            at_gate.pass();
        }
        Ok(())
    });
    let vfs = store.tree();
    gate.close();
    thread::scope(|scope| {
        let listing = scope.spawn(|| {
            let dir = vfs.context().open(Base::CWD, b"/d", OpenFlags::DIRECTORY, 0).expect("a directory");
            dir.entries_after(0, Want::ATTRIBUTES, &mut |_, _| true)
        });
        gate.wait_for(1);
        let context = vfs.context();
        unlink(&context, "/d/a").unwrap();
        rename(&context, "/d/b", "/d/x").unwrap();
        mknod(&context, "/d/y").unwrap();
        gate.open();
        assert_eq!(listing.join().unwrap(), Ok(()));
    });
    agree(&store, &vfs.context(), Store::ROOT, "");
}

/// Waits a random little time.
fn dawdle(random: &mut fastrand::Rng) {
    if random.u32(..8) == 0 {
        thread::yield_now();
    }
}

#[test]
fn renames_to_and_fro_do_not_wait_in_a_circle() {
    const ROUNDS: u32 = 300;
    let store = slow(Valid::UntilInvalidated, &["p/", "q/", "p/a", "q/b", "p/s/", "q/t/", "p/s/x/", "q/t/y/"]);
    store.before(|_| {
        thread::yield_now();
        Ok(())
    });
    let vfs = store.tree();
    // Files to and fro, directories over one another and out of one another, creation of the targets, and removal of what is between.
    let moves: &[&[(&str, &str)]] = &[
        &[("/p/a", "/q/b"), ("/q/b", "/p/a")],
        &[("/q/b", "/p/a"), ("/p/a", "/q/b")],
        &[("/p/s/x", "/q/t"), ("/q/t", "/p/s/x")],
        &[("/q/t/y", "/p/s"), ("/p/s", "/q/t/y")],
        &[("/p/s", "/p/u"), ("/p/u", "/p/s")],
    ];
    thread::scope(|scope| {
        for moves in moves {
            let context = vfs.context();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let (old, new) = moves[round as usize % moves.len()];
                    let _ = rename(&context, old, new);
                }
            });
        }
        let context = vfs.context();
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                let _ = mknod(&context, "/q/b");
                let _ = context.mkdir(Base::CWD, b"/q/t", 0o755);
                let _ = context.mkdir(Base::CWD, b"/p/s", 0o755);
                let _ = context.mkdir(Base::CWD, b"/p/s/x", 0o755);
                let _ = context.mkdir(Base::CWD, b"/q/t/y", 0o755);
                let _ = rmdir(&context, "/q/t");
            }
        });
    });
    agree(&store, &vfs.context(), Store::ROOT, "");
}

/// Compares the cache with the store, at and below a directory.
fn agree(store: &Store, context: &Context, dir: u64, path: &str) {
    let names: BTreeSet<String> = store.names(dir).into_iter().collect();
    let listed = list(context, if path.is_empty() { "/" } else { path });
    assert_eq!(listed, names, "{path}");
    for name in names.iter().map(String::as_str).chain(["a", "b", "c", "d", "e", "f"]) {
        let below = format!("{path}/{name}");
        let there = store.find(dir, name.as_bytes());
        assert_eq!(look(context, &below), there, "{below}");
        if let Some(there) =
            there.filter(|_| context.attr(Base::CWD, below.as_bytes(), true).is_ok_and(|attr| attr.is_dir()))
        {
            agree(store, context, there, &below);
        }
    }
}

/// Lists a directory, if it is one, with attributes.
fn list_all(context: &Context, path: &str) {
    if let Ok(dir) = context.open(Base::CWD, path.as_bytes(), OpenFlags::DIRECTORY, 0) {
        let _ = dir.entries_after(0, Want::ATTRIBUTES, &mut |_, _| true);
    }
}

/// One random operation in a tree of few names.
fn random_operation(context: &Context, random: &mut fastrand::Rng, store: &Store) {
    let path = |random: &mut fastrand::Rng| -> String {
        (0..=random.u32(..3)).map(|_| format!("/{}", ["a", "b", "c", "d", "e", "f"][random.usize(..6)])).collect()
    };
    let (one, two) = (path(random), path(random));
    let (one, two) = (one.as_str(), two.as_str());
    // (Most of them fail.)
    match random.u32(..13) {
        0 | 1 => drop(mknod(context, one)),
        2 | 3 => drop(context.mkdir(Base::CWD, one.as_bytes(), 0o755)),
        4 => drop(unlink(context, one)),
        5 => drop(rmdir(context, one)),
        6 | 7 => drop(rename(context, one, two)),
        8 => drop(context.rename(at(one), at(two), RenameFlags::EXCHANGE)),
        9 => drop(context.link(at(one), at(two), false)),
        10 => drop(context.open(Base::CWD, one.as_bytes(), OpenFlags::CREAT | OpenFlags::WRONLY, 0o644)),
        11 => list_all(context, one),
        _ => drop(look(context, one)),
    }
    if random.u32(..40) == 0 {
        store.invalidator().all();
    }
}

#[test]
fn after_random_changes_by_threads_the_cache_agrees_with_the_file_system() {
    const THREADS: u64 = 4;
    const OPERATIONS: u32 = 400;
    let valid = [Valid::UntilInvalidated, Valid::For(0), Valid::For(200_000)];
    for (valid, is_rich) in valid.into_iter().flat_map(|valid| [(valid, false), (valid, true)]) {
        let options = StoreOptions {
            remote: true,
            valid,
            keeps_listings: is_rich,
            lists_attributes: is_rich,
            answers_ahead: is_rich,
            ..StoreOptions::default()
        };
        let seed = fastrand::u64(..);
        println!("seed {seed} {valid:?}");
        let store = Store::with_options(options, &["a/", "b/", "a/a/", "b/b/"]);
        let pause = |_: &Call<'_>| {
            dawdle(&mut fastrand::Rng::new());
            Ok(())
        };
        store.before(pause);
        store.after(pause);
        let vfs = store.tree();
        let held = vfs.stats().held;
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (vfs, store) = (&vfs, &store);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed + number);
                    let contexts = [vfs.context(), hasty(vfs)];
                    for _ in 0..OPERATIONS {
                        random_operation(&contexts[random.usize(..2)], &mut random, store);
                    }
                });
            }
        });
        store.before(|_| Ok(()));
        store.after(|_| Ok(()));
        agree(&store, &vfs.context(), Store::ROOT, "");
        // Once more, by the file system alone.
        store.invalidator().all();
        agree(&store, &vfs.context(), Store::ROOT, "");
        // Lookups go on after the deadlines of their callers.
        let is_left = (0..10_000).all(|_| {
            thread::yield_now();
            vfs.stats().held != held
        });
        assert!(!is_left, "{} references", vfs.stats().held);
    }
}
