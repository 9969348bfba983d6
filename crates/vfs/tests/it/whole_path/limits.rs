//! What limits the links of a walk: their number, `openat2(2)`'s flags, the policy for sticky directories. And random operations on
//! links, under lookups of random paths.
//!
//! Each operation runs in two trees over stores of the same numbers, one without a table: that one has the right answers.

use lightfoot_vfs::{
    Base, Context, Credentials, Errno, MountFlags, OpenFlags, PathAt, Policy, RenameFlags, Resolve, SetAttr, Vfs,
};
use testkit::{Store, StoreOptions};

struct World {
    vfs: Vfs,
    root: Context,
}

impl World {
    fn new(names_in_cache: bool, table: usize) -> Self {
        let store = Store::new(StoreOptions { names_in_cache, ..StoreOptions::default() });
        let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(store);
        Self { root: vfs.context(), vfs }
    }

    /// One with a table, and one without.
    fn two(names_in_cache: bool) -> [Self; 2] {
        [1 << 22, 0].map(|table| Self::new(names_in_cache, table))
    }

    fn mkdir(&self, path: &str) {
        self.root.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
    }

    fn make(&self, path: &str) {
        self.root.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap();
    }

    fn symlink(&self, body: &str, link: &str) {
        self.root.symlink(body.as_bytes(), Base::CWD, link.as_bytes()).unwrap();
    }

    fn set(&self, path: &str, set: SetAttr) {
        self.root.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn misses(&self) -> u64 {
        self.vfs.whole_path_stats().misses
    }
}

fn ino(context: &Context, base: Base<'_>, path: &str, follow: bool) -> Result<u64, Errno> {
    context.attr(base, path.as_bytes(), follow).map(|attr| attr.ino)
}

#[test]
fn the_links_of_the_table_count_as_those_of_the_walk_do() {
    for names_in_cache in [true, false] {
        let worlds = World::two(names_in_cache);
        for world in &worlds {
            ["/s", "/t"].iter().for_each(|dir| world.mkdir(dir));
            ["/s/f", "/t/f"].iter().for_each(|file| world.make(file));
            world.symlink(".", "/s/x");
            // `/t/l5` is six links away from the file.
            world.symlink("f", "/t/l0");
            (1..45).for_each(|n| world.symlink(&format!("l{}", n - 1), &format!("/t/l{n}")));
        }
        let through = |links: usize| format!("/s{}/f", "/x".repeat(links));
        for _ in 0..4 {
            for links in [0, 1, 2, 3, 10, 39, 40, 41, 45] {
                let expected = worlds.each_ref().map(|world| ino(&world.root, Base::CWD, &through(links), true));
                assert_eq!(expected[0].is_ok(), links <= 40, "{links}");
                assert_eq!(expected[0], expected[1], "{links}");
                let chain = format!("/t/l{}", links.min(44));
                let found = worlds.each_ref().map(|world| ino(&world.root, Base::CWD, &chain, true));
                assert_eq!(found[0], found[1], "{chain}");
            }
        }
        let misses = worlds[0].misses();
        assert!([1, 3, 40].iter().all(|links| ino(&worlds[0].root, Base::CWD, &through(*links), true).is_ok()));
        // (A list has room for ten links, and a path of the same link for any number.)
        assert_eq!(worlds[0].misses(), misses);
        // A link at the end that `O_CREAT` follows counts after those of its directory.
        for (round, links) in [38, 39, 40, 41, 38, 39, 40, 41, 38, 39, 40, 41].into_iter().enumerate() {
            let made = worlds.each_ref().map(|world| {
                if round == 0 {
                    world.symlink("made", "/s/make");
                }
                let path = format!("/s{}/make", "/x".repeat(links));
                world.root.open(Base::CWD, path.as_bytes(), OpenFlags::CREAT, 0o644).map(drop)
            });
            assert_eq!(made, [if links < 40 { Ok(()) } else { Err(Errno::ELOOP) }; 2], "{links} {round}");
        }
        // Those of `O_CREAT`, which goes on after a link: one more than the path has.
        for (number, links) in [38, 39, 40, 37].into_iter().enumerate() {
            let body = format!("/s{}/new{number}", "/x".repeat(links));
            for _ in 0..3 {
                let made = worlds.each_ref().map(|world| {
                    let _ = world.root.symlink(body.as_bytes(), Base::CWD, b"/to-new");
                    let _ = ino(&world.root, Base::CWD, &body[..body.len() - 5], true);
                    let made = world.root.open(Base::CWD, b"/to-new", OpenFlags::CREAT, 0o644).map(drop);
                    world.root.unlink(Base::CWD, b"/to-new").unwrap();
                    made
                });
                assert_eq!(made, [if links < 40 { Ok(()) } else { Err(Errno::ELOOP) }; 2], "{links}");
            }
        }
    }
}

#[test]
fn a_walk_with_limits_does_not_take_the_way_of_one_without() {
    const PATHS: [&str; 12] = [
        "a/to/f",
        "a/end",
        "a/abs/f",
        "/a/abs/f",
        "/a/to/f",
        "/a/end",
        "b/up/z",
        "a/out/f",
        "m/in/f",
        "into/f",
        "a/to",
        "a/to/none",
    ];
    let worlds = World::two(false);
    let flags = [
        Resolve::default(),
        Resolve::NO_SYMLINKS,
        Resolve::BENEATH,
        Resolve::IN_ROOT,
        Resolve::NO_XDEV,
        Resolve::NO_MAGICLINKS,
        Resolve::CACHED,
    ];
    for world in &worlds {
        ["/a", "/a/b", "/m", "/z", "/b", "/c", "/c/a", "/c/a/b"].iter().for_each(|dir| world.mkdir(dir));
        ["/a/b/f", "/z/f", "/c/a/b/f"].iter().for_each(|file| world.make(file));
        let links = [
            ("b", "/a/to"),
            ("b/f", "/a/end"),
            ("/a/b", "/a/abs"),
            ("../z", "/a/out"),
            ("..", "/b/up"),
            ("m/d", "/into"),
            ("b", "/c/a/to"),
            ("/a/b", "/c/a/abs"),
            ("../../z", "/c/a/out"),
        ];
        links.iter().for_each(|(body, link)| world.symlink(body, link));
        let mount = Store::with_paths(&["d/", "d/f", "in -> d"]);
        world.root.mount(mount, Base::CWD, b"/m", MountFlags::default()).unwrap();
    }
    for round in 0..8 {
        for dir in ["/", "/c", "/a"] {
            for resolve in flags {
                // (What a walk of the cache alone finds depends on what is there.)
                if resolve == Resolve::CACHED && round < 4 {
                    continue;
                }
                for path in PATHS {
                    for follow in [true, false] {
                        let answers = worlds.each_ref().map(|world| {
                            let held = world.root.hold(Base::CWD, dir.as_bytes(), true).unwrap();
                            ino(&world.root, Base::at(&held).within(resolve), path, follow)
                        });
                        assert_eq!(answers[0], answers[1], "{dir} {resolve:?} {path} {follow} {round}");
                    }
                }
            }
        }
    }
}

#[test]
fn links_in_sticky_directories_are_protected_from_the_table_too() {
    let worlds = World::two(true);
    let set = |mode, uid| SetAttr { mode: Some(mode), uid: Some(uid), ..SetAttr::default() };
    let users = worlds.each_ref().map(|world| {
        ["/tmp", "/d"].iter().for_each(|dir| world.mkdir(dir));
        world.make("/d/f");
        let (ann, bob) = (world.root.fork(), world.root.fork());
        ann.set_credentials(Credentials::user(7, 7, &[]));
        bob.set_credentials(Credentials::user(8, 8, &[]));
        world.set("/tmp", set(0o1777, 0));
        ann.symlink(b"/d/f", Base::CWD, b"/tmp/file").unwrap();
        ann.symlink(b"../d", Base::CWD, b"/tmp/dir").unwrap();
        [world.root.fork(), ann, bob]
    });
    let mut refused = 0;
    for round in 0..24 {
        let is_protected = round % 4 != 0;
        // Both modes let everyone search it.
        let (mode, uid) = ([0o1777, 0o755, 0o1777][round / 4 % 3], [0, 7][round / 12]);
        for (world, users) in worlds.iter().zip(&users) {
            world.set("/tmp", set(mode, uid));
            users.iter().for_each(|user| {
                user.set_policy(Policy { protected_symlinks: is_protected, ..Policy::default() });
            });
        }
        for user in 0..3 {
            for path in ["/tmp/file", "/tmp/dir", "/tmp/dir/", "/tmp/dir/f"] {
                for follow in [true, false] {
                    let [found, expected] = users.each_ref().map(|users| ino(&users[user], Base::CWD, path, follow));
                    assert_eq!(found, expected, "{path} {user} {follow} {round}");
                    refused += u32::from(found == Err(Errno::EACCES));
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// Names of two directories and below, as links, directories and files.
#[test]
fn in_any_order_of_changes_a_path_by_links_leads_where_a_walk_leads() {
    const NAMES: [&str; 8] = ["/a/x", "/a/y", "/b/x", "/b/y", "/a/d", "/b/d", "/a/d/x", "/b/d/y"];
    const BODIES: [&str; 16] = [
        "x", "y", "d", "../b/x", "../a/d", "/a/y", "/b", "..", ".", "d/x", "/", "y/", "../../a", "x/../y", "none/x",
        "./d/./y",
    ];
    const PARTS: [&str; 7] = ["a", "b", "x", "y", "d", "f", "none"];
    for seed in 1..=if cfg!(debug_assertions) { 12 } else { 120 } {
        let mut random = fastrand::Rng::with_seed(seed);
        let worlds = World::two(seed % 2 == 0);
        let contexts = worlds.each_ref().map(|world| {
            ["/a", "/b", "/a/d", "/b/d"].iter().for_each(|dir| world.mkdir(dir));
            ["/a/f", "/b/f", "/a/d/f", "/b/d/f"].iter().for_each(|file| world.make(file));
            let (user, inner) = (world.root.fork(), world.root.fork());
            user.set_credentials(Credentials::user(7, 7, &[]));
            user.set_current_dir(b"/a").unwrap();
            inner.set_root(b"/a").unwrap();
            inner.set_current_dir(b"/").unwrap();
            [world.root.fork(), user, inner]
        });
        let mut hits = 0;
        for step in 0..4000 {
            let [name, other] = [0; 2].map(|_| NAMES[random.usize(0..NAMES.len())]);
            let body = BODIES[random.usize(0..BODIES.len())];
            let (kind, mode) = (random.u32(0..80), if random.bool() { 0o755 } else { 0o700 });
            let done = worlds.each_ref().map(|World { root, .. }| {
                let (path, other) = (name.as_bytes(), other.as_bytes());
                match kind {
                    0..=3 => root.symlink(body.as_bytes(), Base::CWD, path),
                    4 | 5 => root.unlink(Base::CWD, path),
                    6 => root.rename(PathAt::cwd(path), PathAt::cwd(other), RenameFlags::default()),
                    7 => root.rename(PathAt::cwd(path), PathAt::cwd(other), RenameFlags::EXCHANGE),
                    8 => root.mkdir(Base::CWD, path, 0o755),
                    9 => root.rmdir(Base::CWD, path),
                    10 => {
                        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
                        root.set_attr(Base::CWD, &path[..4], true, &set)
                    }
                    11 => root.mknod(Base::CWD, path, 0o644, 0),
                    _ => Ok(()),
                }
            });
            assert_eq!(done[0], done[1], "seed {seed}, step {step}: {kind} {name} {other} {body}");
            // Few paths, so that each is used again.
            let mut path = String::from(if random.bool() { "/" } else { "" });
            let mut choice = fastrand::Rng::with_seed(random.u64(0..60));
            (0..choice.usize(1..5)).for_each(|_| {
                path += PARTS[choice.usize(0..PARTS.len())];
                path += "/";
            });
            path.truncate(path.len() - usize::from(choice.u8(0..5) != 0));
            let (user, follow) = (random.usize(0..3), random.u8(0..3) != 0);
            let before = worlds[0].misses();
            let found = contexts.each_ref().map(|contexts| ino(&contexts[user], Base::CWD, &path, follow));
            hits += u32::from(worlds[0].misses() == before);
            assert_eq!(found[0], found[1], "seed {seed}, step {step}: {path} {user} {follow}");
        }
        assert!(hits > 100, "seed {seed}: {hits} hits");
    }
}
