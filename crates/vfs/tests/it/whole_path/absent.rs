//! Paths to names that do not exist: the table has them where the cache has negative entries.
//!
//! Each operation runs in two trees over stores of the same numbers, one without a table: that one has the right answers.

use crate::whole_path::operations::Fate::{self, AllStay, Die, OnlyDie};
use lightfoot_vfs::{
    Base, Budget, Context, Credentials, Errno, MountFlags, OpenFlags, PathAt, RenameFlags, SetAttr, UnmountFlags, Vfs,
};
use testkit::Store;

/// Names in an open directory, in a closed one, in one that is mounted, and in an empty one.
const PATHS: [&str; 7] = ["/a/b/none", "/a/b/none/", "/a/b/no", "/closed/none", "/m/d/none", "/a/b/f", "/empty/none"];

/// What becomes of the paths when `/a/b/none` is made.
const NONE: Fate = OnlyDie(&["/a/b/none", "/a/b/none/"]);

/// Paths whose answers are compared.
const OTHERS: [&str; 8] =
    ["/a/b/none/x", "/a/b/no/", "/a/c/none", "/z/none", "/m/none", "/a/b/./none", "/a/b", "/none"];

struct World {
    store: Store,
    vfs: Vfs,
    root: Context,
    user: Context,
}

impl World {
    fn new(table: usize, budget: Budget) -> Self {
        let store =
            Store::with_paths(&["a/", "a/b/", "a/b/f", "a/c/", "a/c/none", "closed/", "empty/", "m/", "z/", "z/file"]);
        let vfs = Vfs::builder().budget(budget).whole_paths(table).records_every_path(true).build(store.clone());
        let root = vfs.context();
        root.mount(Store::with_paths(&["d/", "d/f"]), Base::CWD, b"/m", MountFlags::default()).unwrap();
        let user = root.fork();
        user.set_credentials(Credentials::user(7, 7, &[]));
        let world = Self { store, vfs, root, user };
        world.chmod("/closed", 0o700);
        world
    }

    fn chmod(&self, path: &str, mode: u32) {
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        self.root.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn rename(&self, old: &str, new: &str, flags: RenameFlags) {
        self.root.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
    }

    fn make(&self, path: &str) {
        self.root.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap();
    }

    fn answers(&self, path: &str) -> [Result<u64, Errno>; 3] {
        let path = path.as_bytes();
        let look = |context: &Context| context.attr(Base::CWD, path, true).map(|attr| attr.ino);
        [look(&self.root), look(&self.user), self.root.access(Base::CWD, path, false, 0).map(|()| 0)]
    }

    fn is_hit(&self, path: &str) -> bool {
        let before = self.vfs.whole_path_stats().misses;
        let _ = self.root.attr(Base::CWD, path.as_bytes(), true);
        self.vfs.whole_path_stats().misses == before
    }
}

type Change = fn(&World);

/// Operations, and the paths that are not found by the table at once.
const CASES: &[(&str, Change, Fate)] = &[
    ("nothing", |_| {}, AllStay),
    ("create", |w| w.make("/a/b/none"), NONE),
    (
        "create and unlink",
        |w| {
            w.make("/a/b/none");
            w.root.unlink(Base::CWD, b"/a/b/none").unwrap();
        },
        NONE,
    ),
    ("open that creates", |w| drop(w.root.open(Base::CWD, b"/a/b/none", OpenFlags::CREAT, 0o644).unwrap()), NONE),
    ("mkdir", |w| w.root.mkdir(Base::CWD, b"/a/b/none", 0o755).unwrap(), NONE),
    (
        "mkdir and rmdir",
        |w| {
            w.root.mkdir(Base::CWD, b"/a/b/none/", 0o755).unwrap();
            w.root.rmdir(Base::CWD, b"/a/b/none").unwrap();
        },
        NONE,
    ),
    ("symlink", |w| w.root.symlink(b"f", Base::CWD, b"/a/b/none").unwrap(), NONE),
    ("symlink to nothing", |w| w.root.symlink(b"no", Base::CWD, b"/a/b/none").unwrap(), NONE),
    ("link", |w| w.root.link(PathAt::cwd(b"/a/b/f"), PathAt::cwd(b"/a/b/none"), false).unwrap(), NONE),
    ("rename to it", |w| w.rename("/z/file", "/a/b/none", RenameFlags::default()), NONE),
    ("rename to it if it is free", |w| w.rename("/z/file", "/a/b/none", RenameFlags::NOREPLACE), NONE),
    (
        "rename to it and away",
        |w| {
            w.rename("/z/file", "/a/b/none", RenameFlags::default());
            w.rename("/a/b/none", "/z/file", RenameFlags::default());
        },
        NONE,
    ),
    ("rename of a directory to it", |w| w.rename("/z", "/a/b/none", RenameFlags::default()), NONE),
    (
        "rename within the directory",
        |w| w.rename("/a/b/f", "/a/b/none", RenameFlags::default()),
        OnlyDie(&["/a/b/none", "/a/b/none/", "/a/b/f"]),
    ),
    (
        "an exchange with it, which fails",
        |w| {
            let [file, none] = ["/a/b/f", "/a/b/none"].map(|path| PathAt::cwd(path.as_bytes()));
            assert_eq!(w.root.rename(file, none, RenameFlags::EXCHANGE), Err(Errno::ENOENT));
        },
        AllStay,
    ),
    ("create beside", |w| w.make("/a/b/other"), AllStay),
    ("unlink beside", |w| w.root.unlink(Base::CWD, b"/a/b/f").unwrap(), OnlyDie(&["/a/b/f"])),
    (
        "a directory that has the name",
        |w| w.rename("/a/b", "/a/c", RenameFlags::EXCHANGE),
        Die(&["/a/b/none", "/a/b/none/", "/a/b/no"]),
    ),
    ("rename of the directory", |w| w.rename("/a/b", "/z/b", RenameFlags::default()), Die(&["/a/b/none", "/a/b/no"])),
    ("chmod of the directory", |w| w.chmod("/a/b", 0o700), Die(&["/a/b/none", "/a/b/no", "/a/b/none/"])),
    ("chmod of the closed directory", |w| w.chmod("/closed", 0o755), Die(&["/closed/none"])),
    ("rmdir", |w| w.root.rmdir(Base::CWD, b"/empty").unwrap(), OnlyDie(&["/empty/none"])),
    (
        "rmdir and mkdir",
        |w| {
            w.root.rmdir(Base::CWD, b"/empty").unwrap();
            w.root.mkdir(Base::CWD, b"/empty", 0o755).unwrap();
        },
        OnlyDie(&["/empty/none"]),
    ),
    (
        "rename of a directory over it",
        |w| w.rename("/a/c", "/empty", RenameFlags::default()),
        OnlyDie(&["/empty/none"]),
    ),
    (
        "a mount that has the name",
        |w| {
            w.root.mount(Store::with_paths(&["none"]), Base::CWD, b"/a/b", MountFlags::default()).unwrap();
        },
        Die(&["/a/b/none", "/a/b/none/", "/a/b/no"]),
    ),
    (
        "a bind mount of a directory that has the name",
        |w| w.root.bind(PathAt::cwd(b"/a/c"), PathAt::cwd(b"/empty"), MountFlags::default(), false).unwrap(),
        Die(&["/empty/none"]),
    ),
    ("unmount", |w| w.root.unmount(Base::CWD, b"/m", UnmountFlags::DETACH).unwrap(), Die(&["/m/d/none"])),
    ("create in the mount", |w| w.make("/m/d/none"), OnlyDie(&["/m/d/none"])),
    (
        "created behind the cache",
        |w| {
            let dir = w.store.node("a/b");
            w.store.make(dir, "none");
            w.store.invalidator().entry(dir, b"none");
        },
        NONE,
    ),
    (
        "created behind the cache, and the directory invalidated",
        |w| {
            let dir = w.store.node("a/b");
            w.store.make(dir, "none");
            w.store.invalidator().inode(dir);
        },
        Die(&["/a/b/none", "/a/b/none/"]),
    ),
    (
        "created behind the cache, and all invalidated",
        |w| {
            w.store.make(w.store.node("a/b"), "none");
            w.store.invalidator().all();
        },
        Die(&["/a/b/none", "/closed/none", "/empty/none"]),
    ),
];

fn check((name, change, fate): &(&str, Change, Fate)) {
    let (dead, others_stay): (&[&str], _) = match fate {
        AllStay => (&[], true),
        OnlyDie(dead) => (dead, true),
        Die(dead) => (dead, false),
    };
    let budget = Budget::default();
    let (world, plain) = (World::new(1 << 18, budget), World::new(0, budget));
    for _ in 0..4 {
        for path in PATHS {
            assert_eq!(world.answers(path), plain.answers(path), "{name}: {path}");
        }
    }
    PATHS.iter().for_each(|path| assert!(world.is_hit(path), "{name}: {path}"));
    change(&world);
    change(&plain);
    for path in PATHS {
        let was_hit = world.is_hit(path);
        assert!(!was_hit || !dead.contains(&path), "{name}: {path} is found by the table");
        assert!(was_hit || dead.contains(&path) || !others_stay, "{name}: {path} is not found by the table");
    }
    for round in 0..4 {
        for path in PATHS.iter().chain(&OTHERS) {
            assert_eq!(world.answers(path), plain.answers(path), "{name}: {path} {round}");
        }
    }
}

#[test]
fn each_way_to_make_a_name_ends_the_entry_of_its_absence() {
    CASES.iter().for_each(check);
}

#[test]
fn an_absence_that_is_used_by_the_table_alone_is_evicted_as_any() {
    let budget = Budget { entries: 0, negatives: 0, listings: 0 };
    let world = World::new(1 << 20, budget);
    for round in 0..3 {
        for n in 0..6000 {
            let path = format!("/a/b/none{n}");
            assert_eq!(world.answers(&path)[0], Err(Errno::ENOENT), "{round}");
            assert_eq!(world.answers("/a/b/none")[0], Err(Errno::ENOENT), "{round}");
        }
    }
    world.make("/a/b/none77");
    world.make("/a/b/none");
    assert!(world.answers("/a/b/none77")[0].is_ok() && world.answers("/a/b/none")[0].is_ok());
}

/// Random operations on few names.
#[test]
fn in_any_order_of_creations_and_removals_every_absence_is_seen() {
    const NAMES: [&str; 6] = ["/a/b/none", "/a/b/no", "/a/c/none", "/closed/none", "/m/d/none", "/z/none"];
    for seed in 1..=if cfg!(debug_assertions) { 5 } else { 50 } {
        let mut random = fastrand::Rng::with_seed(seed);
        let worlds = [World::new(1 << 18, Budget::default()), World::new(0, Budget::default())];
        let mut hits = 0;
        for step in 0..3000 {
            let [name, other] = [0; 2].map(|_| NAMES[random.usize(0..NAMES.len())]);
            let kind = random.u32(0..60);
            let made = worlds.each_ref().map(|world| match kind {
                0 => world.root.mknod(Base::CWD, name.as_bytes(), 0o644, 0),
                1 | 2 => world.root.unlink(Base::CWD, name.as_bytes()),
                3 => world.root.rename(
                    PathAt::cwd(name.as_bytes()),
                    PathAt::cwd(other.as_bytes()),
                    RenameFlags::default(),
                ),
                4 => world.root.rename(PathAt::cwd(b"/a/b"), PathAt::cwd(b"/a/c"), RenameFlags::EXCHANGE),
                5 => world.root.link(PathAt::cwd(name.as_bytes()), PathAt::cwd(other.as_bytes()), false),
                _ => Ok(()),
            });
            assert_eq!(made[0], made[1], "seed {seed}, step {step}");
            let path = NAMES[random.usize(0..NAMES.len())];
            let before = worlds[0].vfs.whole_path_stats().misses;
            let seen = worlds[0].answers(path);
            hits += u32::from(worlds[0].vfs.whole_path_stats().misses == before);
            assert_eq!(seen, worlds[1].answers(path), "seed {seed}, step {step}: {path}");
        }
        assert!(hits > 300, "seed {seed}: {hits} hits");
    }
}
