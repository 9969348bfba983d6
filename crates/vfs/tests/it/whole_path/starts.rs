//! Which paths become entries: their texts, names, links and starts, and what users may see by them.

use lightfoot_vfs::{
    Base, Budget, Context, Credentials, Errno, MountFlags, PathAt, RenameFlags, Resolve, SetAttr, UnmountFlags, Vfs,
};
use testkit::{Store, StoreOptions};

fn tree(paths: &[&str]) -> (Store, Vfs, Context) {
    let store = Store::with_paths(paths);
    let vfs = Vfs::builder().whole_paths(1 << 14).records_every_path(true).build(store.clone());
    let context = vfs.context();
    (store, vfs, context)
}

fn ino(context: &Context, base: Base<'_>, path: &str) -> Result<u64, Errno> {
    context.attr(base, path.as_bytes(), true).map(|attr| attr.ino)
}

/// The answer of lookups of `path`, and whether the table had the last. (The first brings a name into the cache, the second
/// finds it unused, the third records it.)
fn used(vfs: &Vfs, context: &Context, base: Base<'_>, path: &str) -> (Result<u64, Errno>, bool) {
    let first = ino(context, base, path);
    (0..2).for_each(|_| assert_eq!(ino(context, base, path), first, "{path}"));
    let before = vfs.whole_path_stats().misses;
    assert_eq!(ino(context, base, path), first, "{path}");
    (first, vfs.whole_path_stats().misses == before)
}

#[test]
fn a_text_of_names_and_slashes_is_recorded_and_any_other_walked() {
    let (store, vfs, context) = tree(&["a/", "a/b/", "a/b/f", "a/link -> b", "a/end -> b/f", "a/b/up -> ../b/f"]);
    let [a, b, f] = ["a", "a/b", "a/b/f"].map(|path| store.node(path));
    let cases = [
        ("/a/b/f", Ok(f), true),
        ("a/b/f", Ok(f), true),
        ("//a///b//f", Ok(f), true),
        ("/a/b/", Ok(b), true),
        ("a//", Ok(a), true),
        ("/a/b/f/", Err(Errno::ENOTDIR), false),
        ("/a/b/f//", Err(Errno::ENOTDIR), false),
        ("/a/b/f/x", Err(Errno::ENOTDIR), false),
        ("/a/b/none", Err(Errno::ENOENT), true),
        ("/a/b/none/", Err(Errno::ENOENT), true),
        ("/a/b/none//", Err(Errno::ENOENT), true),
        ("/a/b/none/x", Err(Errno::ENOENT), false),
        ("/a/b/none/..", Err(Errno::ENOENT), false),
        ("/a/b/none/.", Err(Errno::ENOENT), false),
        ("/a/./b/f", Ok(f), false),
        ("./a/b/f", Ok(f), false),
        ("/a/b/.", Ok(b), false),
        ("/a/b/..", Ok(a), false),
        ("/a/b/../b/f", Ok(f), false),
        ("/a/b/f/.", Err(Errno::ENOTDIR), false),
        ("/a/b/f/..", Err(Errno::ENOTDIR), false),
        ("/", Ok(Store::ROOT), false),
        ("//", Ok(Store::ROOT), false),
        (".", Ok(Store::ROOT), false),
        ("..", Ok(Store::ROOT), false),
        ("/a/b/f\0", Err(Errno::EINVAL), false),
        ("/a/\0/f", Err(Errno::EINVAL), false),
        ("/a/\0/", Err(Errno::EINVAL), false),
        ("/\0", Err(Errno::EINVAL), false),
        ("/a/link/f", Ok(f), true),
        ("/a/link/", Ok(b), true),
        ("/a/link", Ok(b), true),
        ("/a/end", Ok(f), true),
        ("/a/end/", Err(Errno::ENOTDIR), false),
        ("/a/b/up", Ok(f), true),
        ("a/b/up", Ok(f), true),
    ];
    for (path, answer, is_recorded) in cases {
        assert_eq!(used(&vfs, &context, Base::CWD, path), (answer, is_recorded), "{path:?}");
    }
    // `lstat` of the link and of what it leads to, in turn.
    for _ in 0..3 {
        let link = context.attr(Base::CWD, b"/a/end", false).unwrap();
        assert_eq!((link.ino, ino(&context, Base::CWD, "/a/end")), (store.node("a/end"), Ok(f)));
        assert_eq!(context.read_link(Base::CWD, b"/a/end").unwrap(), b"b/f");
        assert_eq!(context.read_link(Base::CWD, b"/a/b/f"), Err(Errno::EINVAL));
        assert_eq!(context.attr(Base::CWD, b"/a/b/f", false).unwrap().ino, f);
    }
}

#[test]
fn names_and_paths_of_every_length_are_found() {
    let (store, vfs, context) = tree(&[]);
    for len in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255] {
        let name = "n".repeat(len);
        let dir = store.make(Store::ROOT, &format!("{}/", "d".repeat(len)));
        let file = store.make(dir, &name);
        let path = format!("/{}/{name}", "d".repeat(len));
        // (A longer path is walked, and not counted as a miss.)
        assert_eq!(used(&vfs, &context, Base::CWD, &path), (Ok(file), true), "{len}");
        let other = path[..path.len() - 1].to_owned() + "m";
        assert_eq!(ino(&context, Base::CWD, &other), Err(Errno::ENOENT), "{len}");
    }
    // By the byte around the most that the table takes.
    let dir = store.make(Store::ROOT, &format!("{}/", "p".repeat(200)));
    for len in 40..60 {
        let file = store.make(dir, &"q".repeat(len));
        let path = format!("/{}/{}", "p".repeat(200), "q".repeat(len));
        let recorded = vfs.whole_path_stats().recorded;
        assert_eq!(used(&vfs, &context, Base::CWD, &path), (Ok(file), true), "{}", path.len());
        assert_eq!(vfs.whole_path_stats().recorded > recorded, path.len() <= 256, "{}", path.len());
    }
    assert_eq!(ino(&context, Base::CWD, &format!("/{}", "n".repeat(256))), Err(Errno::ENAMETOOLONG));
    assert_eq!(ino(&context, Base::CWD, &"/n".repeat(2048)), Err(Errno::ENAMETOOLONG));
}

#[test]
fn one_text_from_two_starts_leads_to_two_files() {
    let paths = ["a/", "a/d/", "a/d/f", "b/", "b/d/", "b/d/f", "d/", "d/f"];
    let (store, vfs, context) = tree(&paths);
    let [in_root, in_a, in_b] = ["d/f", "a/d/f", "b/d/f"].map(|path| Ok(store.node(path)));
    let [a, b] = [b"/a", b"/b"].map(|path| context.hold(Base::CWD, path, true).unwrap());
    let (root_of_a, in_dir_b) = (context.fork(), context.fork());
    root_of_a.set_root(b"/a").unwrap();
    in_dir_b.set_current_dir(b"/b").unwrap();
    for _ in 0..3 {
        assert_eq!(used(&vfs, &context, Base::CWD, "d/f"), (in_root, true));
        assert_eq!(used(&vfs, &context, Base::at(&a), "d/f"), (in_a, true));
        assert_eq!(used(&vfs, &context, Base::at(&b), "d/f"), (in_b, true));
        assert_eq!(used(&vfs, &context, Base::at(&b), "/d/f"), (in_root, true));
        assert_eq!(used(&vfs, &root_of_a, Base::CWD, "/d/f"), (in_a, true));
        assert_eq!(used(&vfs, &in_dir_b, Base::CWD, "d/f"), (in_b, true));
        assert_eq!(used(&vfs, &in_dir_b, Base::CWD, "/d/f"), (in_root, true));
        assert_eq!(ino(&context, Base::at(&b).within(Resolve::IN_ROOT), "/d/f"), in_b);
        assert_eq!(ino(&context, Base::at(&b).within(Resolve::BENEATH), "/d/f"), Err(Errno::EXDEV));
        assert_eq!(ino(&context, Base::at(&b).within(Resolve::BENEATH), "d/f"), in_b);
        assert_eq!(ino(&context, Base::at(&b).within(Resolve::CACHED), "d/f"), in_b);
        // A file is not a start.
        let file = context.hold(Base::CWD, b"/d/f", true).unwrap();
        assert_eq!(ino(&context, Base::at(&file), "d/f"), Err(Errno::ENOTDIR));
    }
    in_dir_b.set_current_dir(b"/a").unwrap();
    assert_eq!(used(&vfs, &in_dir_b, Base::CWD, "d/f"), (in_a, true));
    // A start that was removed, and the next directory, perhaps in its slot.
    for round in 0..20 {
        context.mkdir(Base::CWD, b"/s", 0o755).unwrap();
        context.mkdir(Base::CWD, b"/s/t", 0o755).unwrap();
        let start = context.hold(Base::CWD, b"/s", true).unwrap();
        let (made, is_hit) = used(&vfs, &context, Base::at(&start), "t");
        assert!(is_hit && made == ino(&context, Base::CWD, "/s/t"), "{round}");
        context.rmdir(Base::CWD, b"/s/t").unwrap();
        context.rmdir(Base::CWD, b"/s").unwrap();
        assert_eq!(ino(&context, Base::at(&start), "t"), Err(Errno::ENOENT));
    }
}

#[test]
fn two_mounts_of_one_directory_give_one_path_two_mounts() {
    let (store, vfs, context) = tree(&["d/", "d/f", "m/"]);
    context.bind(PathAt::cwd(b"/"), PathAt::cwd(b"/m"), MountFlags::RDONLY, false).unwrap();
    let [here, there] = [b"/d".as_slice(), b"/m/d"].map(|path| context.hold(Base::CWD, path, true).unwrap());
    for _ in 0..3 {
        for (start, made) in [(&here, Ok(())), (&there, Err(Errno::EROFS))] {
            assert_eq!(used(&vfs, &context, Base::at(start), "f"), (Ok(store.node("d/f")), true));
            let held = context.hold(Base::at(start), b"f", true).unwrap();
            assert_eq!(held.mount_id(), start.mount_id());
            let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
            assert_eq!(context.set_attr(Base::at(start), b"f", true, &set), made);
        }
    }
}

#[test]
fn a_path_through_a_closed_directory_is_found_by_those_who_may_search_it() {
    let (store, vfs, context) = tree(&["a/", "a/b/", "a/b/c/", "a/b/c/f"]);
    let f = store.node("a/b/c/f");
    let user = context.fork();
    user.set_credentials(Credentials::user(7, 7, &[]));
    let chmod = |mode| {
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        context.set_attr(Base::CWD, b"/a/b", true, &set).unwrap();
    };
    for _ in 0..5 {
        for who in [&context, &user] {
            assert_eq!(used(&vfs, who, Base::CWD, "/a/b/c/f"), (Ok(f), true));
        }
        chmod(0o700);
        for _ in 0..3 {
            assert_eq!(used(&vfs, &context, Base::CWD, "/a/b/c/f"), (Ok(f), true));
            assert_eq!(used(&vfs, &user, Base::CWD, "/a/b/c/f"), (Err(Errno::EACCES), false));
        }
        chmod(0o755);
    }
    // The end's own rights are its reader's matter.
    let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    context.set_attr(Base::CWD, b"/a/b/c/f", true, &set).unwrap();
    for _ in 0..2 {
        assert_eq!(user.access(Base::CWD, b"/a/b/c/f", true, 4), Err(Errno::EACCES));
        assert_eq!(context.access(Base::CWD, b"/a/b/c/f", true, 4), Ok(()));
    }
}

#[test]
fn entries_of_an_evicted_name_are_useless() {
    let store = Store::new(StoreOptions::default());
    let dirs: Vec<u64> = (0..4).map(|dir| store.make(Store::ROOT, &format!("d{dir}/"))).collect();
    let files: Vec<Vec<u64>> =
        dirs.iter().map(|dir| (0..4000).map(|file| store.make(*dir, &format!("f{file}"))).collect()).collect();
    let budget = Budget { entries: 0, negatives: 0, listings: 0 };
    let vfs = Vfs::builder().budget(budget).whole_paths(1 << 20).records_every_path(true).build(store);
    let context = vfs.context();
    let mut random = fastrand::Rng::with_seed(1);
    let lookups = 40_000;
    for n in 0..lookups {
        // Some are hot.
        let (dir, file) = (random.usize(0..4), random.usize(0..if n % 2 == 0 { 100 } else { 4000 }));
        let path = format!("/d{dir}/f{file}");
        assert_eq!(ino(&context, Base::CWD, &path), Ok(files[dir][file]), "{path}");
    }
    let (stats, misses) = (vfs.stats(), vfs.whole_path_stats().misses);
    assert!(stats.evicted > 5_000 && misses < lookups * 3 / 4, "{stats:?}, {misses} misses");
}

/// Dentries of a file system that was unmounted, whose memory is that of the next one.
#[test]
fn a_path_in_a_mount_that_ended_is_not_found_in_the_next_one() {
    let (_, vfs, context) = tree(&["m/"]);
    let (mut starts, mut again) = (std::collections::HashSet::new(), 0);
    for round in 0..300_u64 {
        let store = Store::with_paths(&["d/", "d/f"]);
        for n in 0..round % 3 {
            store.make(store.node("d"), &format!("g{n}"));
        }
        let file = store.make(store.node("d"), "file");
        context.mount(store, Base::CWD, b"/m", MountFlags::default()).unwrap();
        let inside = context.fork();
        inside.set_root(b"/m").unwrap();
        inside.set_current_dir(b"/d").unwrap();
        again += u32::from(!starts.insert(context.hold(Base::CWD, b"/m/d", true).unwrap().identity()));
        let has_gone = ["g1", "/d/g1"].map(|path| ino(&inside, Base::CWD, path).is_ok());
        assert_eq!(has_gone, [round % 3 == 2; 2], "{round}");
        for path in ["file", "/d/file"] {
            assert_eq!(used(&vfs, &inside, Base::CWD, path), (Ok(file), true), "{round}");
        }
        context.unmount(Base::CWD, b"/m", UnmountFlags::DETACH).unwrap();
        assert_eq!(used(&vfs, &inside, Base::CWD, "file"), (Ok(file), true), "{round}: held");
        drop(inside);
        vfs.barrier();
    }
    assert!(again > 100, "{again}: the test shows something only where addresses are used again");
}

#[test]
fn a_path_whose_file_was_replaced_is_found_by_the_table_again() {
    let (_, vfs, context) = tree(&["d/", "d/f", "d/new"]);
    let replace: [fn(&Context); 3] = [
        |context| context.rename(PathAt::cwd(b"/d/f"), PathAt::cwd(b"/d/old"), RenameFlags::default()).unwrap(),
        |context| context.unlink(Base::CWD, b"/d/f").unwrap(),
        |context| context.rename(PathAt::cwd(b"/d/new"), PathAt::cwd(b"/d/f"), RenameFlags::default()).unwrap(),
    ];
    for (number, replace) in replace.iter().enumerate() {
        let (before, is_hit) = used(&vfs, &context, Base::CWD, "/d/f");
        assert!(is_hit, "{number}");
        let recorded = vfs.whole_path_stats().recorded;
        replace(&context);
        let _ = context.mknod(Base::CWD, b"/d/f", 0o644, 0);
        let (after, is_hit) = used(&vfs, &context, Base::CWD, "/d/f");
        // (Not by a lookup that was walked and not counted.)
        assert!(is_hit && after != before && vfs.whole_path_stats().recorded > recorded, "{number}");
    }
}
