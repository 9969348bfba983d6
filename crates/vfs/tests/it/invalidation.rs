//! What is cached of a file system that others change too: for how long it is good, and what a push does.

use lightfoot_vfs::{
    Attr, Base, Context, DirEntry, Errno, Fallback, MountFlags, OpenFlags, PathAt, RenameFlags, SetAttr, UnmountFlags,
    Valid, Vfs, Want,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use testkit::{Call, Gate, Store, StoreOptions};

const ROOT: u64 = Store::ROOT;

fn store(valid: Valid) -> Store {
    Store::new(StoreOptions { valid, ..StoreOptions::default() })
}

/// Closes a gate at which lookups wait, after they have their answer.
fn hold_lookups(fs: &Store) -> Gate {
    let gate = Gate::default();
    gate.close();
    let passed = gate.clone();
    fs.after(move |call| {
        if let Call::Lookup { .. } = call {
            passed.pass();
        }
        Ok(())
    });
    gate
}

fn attr(context: &Context, path: &str) -> Result<Attr, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true)
}

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    attr(context, path).map(|attr| attr.ino)
}

fn size(context: &Context, path: &str) -> Result<u64, Errno> {
    attr(context, path).map(|attr| attr.size)
}

fn revalidated(vfs: &Vfs) -> u64 {
    vfs.fallbacks(Fallback::Revalidate)
}

#[test]
fn what_is_good_until_told_is_asked_again_only_when_told() {
    let fs = store(Valid::UntilInvalidated);
    let node = fs.make(ROOT, "f");
    let vfs = fs.tree();
    let context = vfs.context();
    assert_eq!(size(&context, "/f"), Ok(0));
    fs.change(node, |attr| attr.size = 7);
    assert_eq!((size(&context, "/f"), fs.lookups_of(ROOT, "f"), revalidated(&vfs)), (Ok(0), 1, 0));
    fs.invalidator().inode(node);
    for _ in 0..3 {
        assert_eq!((size(&context, "/f"), fs.lookups_of(ROOT, "f"), revalidated(&vfs)), (Ok(7), 2, 1));
    }
    fs.change(node, |attr| attr.size = 8);
    fs.invalidator().entry(ROOT, b"f");
    assert_eq!((size(&context, "/f"), fs.lookups_of(ROOT, "f"), revalidated(&vfs)), (Ok(8), 3, 2));
}

#[test]
fn what_is_good_for_no_time_is_asked_each_time() {
    let fs = store(Valid::For(0));
    let dir = fs.make(ROOT, "d/");
    let node = fs.make(dir, "f");
    let vfs = fs.tree();
    let context = vfs.context();
    for round in 0..5 {
        fs.change(node, |attr| attr.size = round);
        assert_eq!(size(&context, "/d/f"), Ok(round));
        // One for the directory and one for the file; the first time they are not there yet. The root, whose attributes
        // are requested each time, sends the walk to ref-walk, which looks at the directory.
        assert_eq!((fs.lookups(), revalidated(&vfs)), (2 * (round as u32 + 1), round));
    }
    assert_eq!(look(&context, "/d/x"), Err(Errno::ENOENT));
    let made = fs.make(dir, "x");
    assert_eq!(look(&context, "/d/x"), Ok(made));
    fs.remove(dir, "x");
    assert_eq!(look(&context, "/d/x"), Err(Errno::ENOENT));
    fs.remove(ROOT, "d");
    assert_eq!(look(&context, "/d/f"), Err(Errno::ENOENT));
}

#[test]
fn what_is_good_for_a_time_is_not_asked_before_that_and_is_after() {
    for (ns, asks) in [(u64::MAX, false), (1, true)] {
        let fs = store(Valid::For(ns));
        let node = fs.make(ROOT, "f");
        let vfs = fs.tree();
        let context = vfs.context();
        assert_eq!((size(&context, "/f"), look(&context, "/x")), (Ok(0), Err(Errno::ENOENT)));
        fs.change(node, |attr| attr.size = 7);
        let made = fs.make(ROOT, "x");
        if asks {
            while size(&context, "/f") != Ok(7) || look(&context, "/x") != Ok(made) {}
            assert!(fs.lookups() >= 4);
        } else {
            assert_eq!((size(&context, "/f"), look(&context, "/x")), (Ok(0), Err(Errno::ENOENT)));
            assert_eq!((fs.lookups(), revalidated(&vfs)), (2, 0));
            fs.invalidator().all();
            assert_eq!((size(&context, "/f"), look(&context, "/x")), (Ok(7), Ok(made)));
            // The first walk requests the root's attributes, and then stays in ref-walk for the name.
            assert_eq!((fs.lookups(), revalidated(&vfs)), (4, 1));
            assert_eq!(vfs.fallbacks(Fallback::Attributes), 1);
        }
    }
}

#[test]
fn two_names_with_one_node_are_one_inode() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let node = fs.make(ROOT, "f");
    fs.link(dir, "g", node);
    let vfs = fs.tree();
    let context = vfs.context();
    assert_eq!(attr(&context, "/f"), attr(&context, "/d/g"));
    context.set_attr(Base::CWD, b"/d/g", true, &SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    assert_eq!(attr(&context, "/f").unwrap().mode & 0o777, 0o600);
    context.link(PathAt::cwd(b"/f"), PathAt::cwd(b"/h"), false).unwrap();
    context.unlink(Base::CWD, b"/f").unwrap();
    for path in ["/d/g", "/h"] {
        assert_eq!(attr(&context, path).map(|attr| (attr.ino, attr.nlink)), Ok((node, 2)), "{path}");
    }
}

#[test]
fn a_push_of_an_inode_reaches_all_its_names() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let node = fs.make(dir, "a");
    fs.link(dir, "b", node);
    fs.link(ROOT, "c", node);
    let context = fs.tree().context();
    let paths = ["/d/a", "/d/b", "/c"];
    for round in 1..4 {
        for path in paths {
            assert!(look(&context, path).is_ok());
        }
        fs.change(node, |attr| attr.size = round);
        fs.invalidator().inode(node);
        let asked = fs.lookups();
        for path in paths {
            assert_eq!(size(&context, path), Ok(round), "{path}");
        }
        assert_eq!(fs.lookups(), asked + 3, "each name is asked about once");
    }
    // The name that the inode was first met by goes; the others are reached all the same.
    context.unlink(Base::CWD, b"/d/a").unwrap();
    fs.change(node, |attr| attr.size = 9);
    fs.invalidator().inode(node);
    assert_eq!((size(&context, "/c"), size(&context, "/d/b")), (Ok(9), Ok(9)));
}

#[test]
fn a_negative_entry_that_is_pushed_is_asked_about_again() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let vfs = fs.tree();
    let context = vfs.context();
    type Push = fn(&Store, u64);
    let pushes: [Push; 2] = [|fs, dir| fs.invalidator().entry(dir, b"x"), |fs, _| fs.invalidator().all()];
    for push in pushes {
        assert_eq!(look(&context, "/d/x"), Err(Errno::ENOENT));
        let node = fs.make(dir, "x");
        assert_eq!(look(&context, "/d/x"), Err(Errno::ENOENT));
        push(&fs, dir);
        assert_eq!(look(&context, "/d/x"), Ok(node));
        fs.remove(dir, "x");
        push(&fs, dir);
    }
    // Making a name asks first, too: it is there by now.
    assert_eq!(look(&context, "/d/x"), Err(Errno::ENOENT));
    let node = fs.make(dir, "x");
    fs.invalidator().entry(dir, b"x");
    assert_eq!(context.mkdir(Base::CWD, b"/d/x", 0o755), Err(Errno::EEXIST));
    assert_eq!(look(&context, "/d/x"), Ok(node));
}

#[test]
fn a_name_that_leads_to_another_inode_now_is_followed_there_and_open_files_stay() {
    let fs = store(Valid::UntilInvalidated);
    let old = fs.make(ROOT, "f");
    fs.write(old, &[old as u8]);
    let context = fs.tree().context();
    let file = context.open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    let new = fs.make(ROOT, "f");
    fs.invalidator().entry(ROOT, b"f");
    assert_eq!((look(&context, "/f"), file.attr().unwrap().ino), (Ok(new), old));
    let mut buf = [0];
    assert_eq!((file.read_at(0, &mut buf), buf), (Ok(1), [old as u8]));
    // A file that became a directory, and the other way.
    fs.remove(ROOT, "f");
    let dir = fs.make(ROOT, "f/");
    let below = fs.make(dir, "below");
    fs.invalidator().entry(ROOT, b"f");
    assert_eq!(look(&context, "/f/below"), Ok(below));
    fs.remove(ROOT, "f");
    let again = fs.make(ROOT, "f");
    fs.invalidator().entry(ROOT, b"f");
    assert_eq!((look(&context, "/f/below"), look(&context, "/f")), (Err(Errno::ENOTDIR), Ok(again)));
    assert_eq!(file.write_at(0, b"x"), Ok((1, 1)));
}

#[test]
fn a_directory_that_vanished_takes_along_what_was_cached_below_and_open_files_stay() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let sub = fs.make(dir, "sub/");
    let node = fs.make(sub, "open");
    fs.write(node, &[node as u8]);
    (0..50).for_each(|number| assert!(fs.make(sub, &format!("f{number}")) > ROOT));
    let vfs = fs.tree();
    let context = vfs.context();
    (0..60).for_each(|number| assert_eq!(look(&context, &format!("/d/sub/f{number}")).is_ok(), number < 50));
    let file = context.open(Base::CWD, b"/d/sub/open", OpenFlags::RDWR, 0).unwrap();
    let inside = context.fork();
    inside.set_current_dir(b"/d/sub").unwrap();
    fs.remove(ROOT, "d");
    fs.invalidator().entry(ROOT, b"d");
    for path in ["/d", "/d/sub", "/d/sub/f1", "/d/sub/open"] {
        assert_eq!(look(&context, path), Err(Errno::ENOENT), "{path}");
    }
    let mut buf = [0];
    assert_eq!((file.read_at(0, &mut buf), buf, file.attr().unwrap().ino), (Ok(1), [node as u8], node));
    assert_eq!(look(&inside, "f1"), Err(Errno::ENOENT));
    assert_eq!(inside.mkdir(Base::CWD, b"new", 0o755), Err(Errno::ENOENT));
    assert_eq!(look(&inside, "."), Ok(sub));
    let other = fs.make(ROOT, "d/");
    fs.invalidator().entry(ROOT, b"d");
    assert_eq!(look(&context, "/d"), Ok(other));
    drop((file, inside));
    vfs.barrier();
    // The root and the new directory.
    assert_eq!(vfs.stats().live_dentries, 2);
}

#[test]
fn what_is_mounted_on_a_vanished_name_stays_until_it_is_unmounted() {
    let (fs, upper) = (store(Valid::UntilInvalidated), store(Valid::UntilInvalidated));
    let dir = fs.make(ROOT, "d/");
    fs.make(dir, "m/");
    upper.make(ROOT, "f");
    let context = fs.tree().context();
    context.mount(upper.clone(), Base::CWD, b"/d/m", MountFlags::default()).unwrap();
    assert!(look(&context, "/d/m/f").is_ok());
    fs.remove(dir, "m");
    fs.invalidator().entry(dir, b"m");
    assert!(look(&context, "/d/m/f").is_ok());
    context.unmount(Base::CWD, b"/d/m", UnmountFlags::default()).unwrap();
    assert_eq!(look(&context, "/d/m"), Err(Errno::ENOENT));
}

#[test]
fn a_push_while_the_file_system_is_asked_is_not_lost() {
    type Push = fn(&Store, u64);
    let pushes: [(&str, Push); 3] = [
        ("inode", |fs, node| fs.invalidator().inode(node)),
        ("entry", |fs, _| fs.invalidator().entry(ROOT, b"f")),
        ("all", |fs, _| fs.invalidator().all()),
    ];
    for (what, push) in pushes {
        // The name is not cached yet, or it is and stale.
        for is_cached in [false, true] {
            let fs = store(Valid::UntilInvalidated);
            let node = fs.make(ROOT, "f");
            let vfs = fs.tree();
            let context = vfs.context();
            if is_cached {
                assert_eq!(size(&context, "/f"), Ok(0));
                fs.invalidator().all();
            }
            let gate = hold_lookups(&fs);
            thread::scope(|scope| {
                let asker = scope.spawn(|| size(&vfs.context(), "/f"));
                gate.wait_for(1);
                fs.change(node, |attr| attr.size = 7);
                push(&fs, node);
                gate.open();
                assert!(asker.join().unwrap().is_ok());
            });
            assert_eq!(size(&context, "/f"), Ok(7), "{what}, cached: {is_cached}");
        }
    }
}

#[test]
fn a_push_while_a_change_asks_about_its_name_is_not_lost() {
    let fs = store(Valid::UntilInvalidated);
    let node = fs.make(ROOT, "f");
    let vfs = fs.tree();
    let context = vfs.context();
    assert_eq!(size(&context, "/f"), Ok(0));
    fs.invalidator().all();
    let gate = hold_lookups(&fs);
    thread::scope(|scope| {
        // It asks with the directory's lock held.
        let maker = scope.spawn(|| vfs.context().mkdir(Base::CWD, b"/f", 0o755));
        gate.wait_for(1);
        fs.change(node, |attr| attr.size = 7);
        fs.invalidator().inode(node);
        fs.invalidator().entry(ROOT, b"f");
        gate.open();
        assert_eq!(maker.join().unwrap(), Err(Errno::EEXIST));
    });
    assert_eq!(size(&context, "/f"), Ok(7));
}

#[test]
fn pushes_from_inside_of_calls_do_not_wait_for_what_the_calls_hold() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let node = fs.make(dir, "f");
    let context = fs.tree().context();
    let invalidator = fs.invalidator().clone();
    // In each call that changes something, and in lookups.
    fs.after(move |call| {
        if !matches!(call, Call::Read { .. } | Call::Open { .. } | Call::Release { .. } | Call::Attributes { .. }) {
            invalidator.entry(ROOT, b"d");
            invalidator.entry(dir, b"f");
            invalidator.inode(dir);
            invalidator.inode(node);
            invalidator.all();
        }
        Ok(())
    });
    // A walk that is pushed at by each answer comes to its end, since what was asked just now is taken.
    for _ in 0..3 {
        let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
        let file = context.open(Base::CWD, b"/d/new", flags, 0o644).unwrap();
        assert_eq!(file.write_at(0, b"x"), Ok((1, 1)));
        context.set_attr(Base::CWD, b"/d/f", true, &SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
        context.link(PathAt::cwd(b"/d/f"), PathAt::cwd(b"/d/g"), false).unwrap();
        context.rename(PathAt::cwd(b"/d/new"), PathAt::cwd(b"/other"), RenameFlags::default()).unwrap();
        context.rename(PathAt::cwd(b"/d"), PathAt::cwd(b"/e"), RenameFlags::default()).unwrap();
        context.rename(PathAt::cwd(b"/e"), PathAt::cwd(b"/d"), RenameFlags::default()).unwrap();
        context.unlink(Base::CWD, b"/other").unwrap();
        context.unlink(Base::CWD, b"/d/g").unwrap();
        assert_eq!(attr(&context, "/d/f").map(|attr| (attr.ino, attr.nlink)), Ok((node, 1)));
    }
}

#[test]
fn pushes_from_other_threads_reach_walks_that_run() {
    const ROUNDS: u64 = 2000;
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    let node = fs.make(dir, "f");
    fs.link(ROOT, "g", node);
    let vfs = fs.tree();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for path in ["/d/f", "/g", "/d/x"] {
            let (vfs, is_over) = (&vfs, &is_over);
            scope.spawn(move || {
                let (context, mut last) = (vfs.context(), 0);
                while !is_over.load(SeqCst) {
                    let now = size(&context, path).unwrap_or(0);
                    assert!(now >= last || path == "/d/x", "{path} went back from {last} to {now}");
                    last = now;
                }
            });
        }
        for round in 1..=ROUNDS {
            fs.change(node, |attr| attr.size = round);
            match round % 3 {
                0 => fs.invalidator().inode(node),
                1 => fs.invalidator().entry(dir, b"f"),
                _ => fs.invalidator().all(),
            }
        }
        fs.invalidator().inode(node);
        is_over.store(true, SeqCst);
    });
    let context = vfs.context();
    assert_eq!((size(&context, "/d/f"), size(&context, "/g")), (Ok(ROUNDS), Ok(ROUNDS)));
}

#[test]
fn a_push_after_the_tree_has_gone_does_nothing() {
    let fs = store(Valid::UntilInvalidated);
    let node = fs.make(ROOT, "f");
    let vfs = fs.tree();
    assert!(look(&vfs.context(), "/f").is_ok());
    drop(vfs);
    fs.invalidator().inode(node);
    fs.invalidator().entry(ROOT, b"f");
    fs.invalidator().all();
}

#[test]
fn what_is_mounted_below_a_vanished_directory_stays_reachable_and_goes_with_its_unmounting() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "d/");
    fs.make(dir, "m/");
    fs.make(dir, "f");
    let vfs = fs.tree();
    let context = vfs.context();
    let other = store(Valid::UntilInvalidated);
    let inside = other.make(ROOT, "inside");
    context.mount(other.clone(), Base::CWD, b"/d/m", MountFlags::default()).unwrap();
    assert!(look(&context, "/d/f").is_ok());
    fs.remove(dir, "m");
    fs.remove(dir, "f");
    fs.remove(ROOT, "d");
    fs.invalidator().all();
    assert_eq!(look(&context, "/d/m/inside"), Ok(inside));
    context.unmount(Base::CWD, b"/d/m", UnmountFlags::default()).unwrap();
    fs.invalidator().all();
    assert_eq!((look(&context, "/d/m"), look(&context, "/d")), (Err(Errno::ENOENT), Err(Errno::ENOENT)));
    assert_eq!(context.mounts().len(), 1);
}

#[test]
fn a_directory_that_moved_behind_the_cache_is_no_longer_found_by_its_old_name() {
    let fs = store(Valid::UntilInvalidated);
    let dir = fs.make(ROOT, "a/");
    fs.make(dir, "f");
    let vfs = fs.tree();
    let context = vfs.context();
    assert!(look(&context, "/a/f").is_ok());
    fs.link(ROOT, "b", dir);
    fs.remove(ROOT, "a");
    fs.invalidator().entry(ROOT, b"b");
    // Met under its new name: the old one is stale without an invalidation.
    assert_eq!(look(&context, "/b"), Ok(dir));
    assert_eq!(look(&context, "/a"), Err(Errno::ENOENT));
    fs.change(dir, |attr| attr.mtime = 77);
    fs.invalidator().inode(dir);
    assert_eq!(attr(&context, "/b").map(|attr| attr.mtime), Ok(77));
}

/// The names of the root with their cookies, each listed from the cookie of the one before it, after a push of everything.
fn listed(context: &Context, fs: &Store) -> Vec<(Vec<u8>, u64)> {
    let mut names = Vec::new();
    loop {
        fs.invalidator().all();
        let (dir, last) = (context.open(Base::CWD, b"/", OpenFlags::DIRECTORY, 0).unwrap(), names.last().cloned());
        let (mut next, after) = (None, last.map_or(0, |(_, cookie)| cookie));
        let mut take = |entry: &DirEntry, cookie| {
            let is_first = next.is_none();
            next.get_or_insert_with(|| (entry.name.to_vec(), cookie));
            is_first
        };
        dir.entries_after(after, Want::NAMES, &mut take).unwrap();
        match next {
            Some(next) if names.len() < 9 => names.push(next),
            _ => return names,
        }
    }
}

#[test]
fn a_push_leaves_names_that_only_the_cache_has_in_their_places() {
    for valid in [Valid::UntilInvalidated, Valid::For(0)] {
        let fs = Store::new(StoreOptions { names_in_cache: true, valid, ..StoreOptions::default() });
        let context = fs.tree().context();
        let paths = ["/a", "/b", "/c", "/d", "/e"];
        paths.iter().for_each(|path| context.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap());
        let names = listed(&context, &fs);
        assert!(paths.iter().all(|path| look(&context, path).is_ok()));
        assert_eq!((names.len(), listed(&context, &fs)), (5, names), "{valid:?}");
    }
}
