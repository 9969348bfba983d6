//! Paths that cross mount points: which of them the table has, for which contexts, and what ends their entries.
//!
//! Each operation runs in two trees over stores of the same numbers, one without a table: that one has the right answers.

use lightfoot_vfs::{
    Base, Context, Credentials, Errno, MountFlags, PathAt, RenameFlags, Resolve, SetAttr, UnmountFlags, Vfs,
};
use testkit::Store;

/// Through one mount, through two, through a closed directory, and beside them. `/p/m` and `/q/m` show one file system.
const PATHS: [&str; 12] = [
    "/a/f",
    "/p/m/f",
    "/p/m/d/g",
    "/p/m//d//g",
    "/p/m/n/k",
    "/p/m/n/e/k",
    "/q/m/f",
    "/q/m/d/g",
    "/closed/m/k",
    "/closed/m/e/k",
    "/p/m/private/f",
    "/q/x/f",
];

/// Paths of other ends; their answers are compared.
const OTHERS: [&str; 8] = ["/p/m", "/p/m/n", "/p/m/", "/p/m/n/e", "/z/m/f", "/p/x/f", "/p/m/d2/g", "/put/a/f"];

/// The contexts: root, a user, one whose root is `/p`, one with its own mounts.
const WHO: [&str; 4] = ["root", "user", "chroot", "unshared"];

struct World {
    vfs: Vfs,
    root: Context,
    users: Vec<Context>,
}

impl World {
    fn new(table: usize) -> Self {
        let store = Store::with_paths(&[
            "a/",
            "a/f",
            "p/",
            "p/m/",
            "p/x/",
            "q/",
            "q/m/",
            "q/x/",
            "q/x/f",
            "closed/",
            "closed/m/",
            "z/",
            "put/",
        ]);
        let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(store);
        let root = vfs.context();
        let world = Self { vfs, users: Vec::new(), root };
        let first = Store::with_paths(&["f", "d/", "d/g", "n/", "private/", "private/f"]);
        world.mount(first, "/p/m");
        world.bind("/p/m", "/q/m");
        world.mount(Store::with_paths(&["one", "k", "e/", "e/k"]), "/p/m/n");
        world.mount(Store::with_paths(&["one", "two", "k", "e/", "e/k"]), "/closed/m");
        world.chmod("/closed", 0o700);
        world.chmod("/p/m/private", 0o700);
        let users = WHO.map(|who| {
            let context = world.root.fork();
            match who {
                "user" => context.set_credentials(Credentials::user(7, 7, &[])),
                "chroot" => context.set_root(b"/p").unwrap(),
                "unshared" => context.unshare_mounts().unwrap(),
                _ => {}
            }
            context
        });
        Self { users: users.into(), ..world }
    }

    fn mount(&self, fs: Store, path: &str) {
        self.root.mount(fs, Base::CWD, path.as_bytes(), MountFlags::default()).unwrap();
    }

    fn bind(&self, source: &str, target: &str) {
        let (source, target) = (PathAt::cwd(source.as_bytes()), PathAt::cwd(target.as_bytes()));
        self.root.bind(source, target, MountFlags::default(), false).unwrap();
    }

    fn unmount(&self, path: &str) {
        self.root.unmount(Base::CWD, path.as_bytes(), UnmountFlags::default()).unwrap();
    }

    fn detach(&self, path: &str) {
        self.root.unmount(Base::CWD, path.as_bytes(), UnmountFlags::DETACH).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        self.root.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn rename(&self, old: &str, new: &str, flags: RenameFlags) {
        self.root.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
    }

    /// The path of `PATHS` as a context names it.
    fn named(who: usize, path: &str) -> &str {
        if WHO[who] == "chroot" { path.strip_prefix("/p").unwrap_or(path) } else { path }
    }

    /// The file that a path leads to, and the number of its mount.
    fn answer(&self, who: usize, path: &str) -> Result<(u64, u64, u64), Errno> {
        let path = Self::named(who, path).as_bytes();
        let (ino, dev) = self.users[who].attr_as(Base::CWD, path, true, |attr, dev| (attr.unpack().ino, dev))?;
        let held = self.users[who].hold(Base::CWD, path, true)?;
        Ok((ino, dev, held.mount_id()))
    }

    fn is_hit(&self, who: usize, path: &str) -> bool {
        let before = self.vfs.whole_path_stats().misses;
        let _ = self.users[who].attr(Base::CWD, Self::named(who, path).as_bytes(), true);
        self.vfs.whole_path_stats().misses == before
    }
}

fn each<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    (0..WHO.len()).flat_map(move |who| paths.iter().map(move |path| (who, *path)))
}

type Change = fn(&World);

const BELOW_P: [&str; 5] = ["/p/m/f", "/p/m/d/g", "/p/m//d//g", "/p/m/n/k", "/p/m/n/e/k"];
const BELOW_N: [&str; 2] = ["/p/m/n/k", "/p/m/n/e/k"];

/// Operations, and the paths that are not found by the table at once.
const CASES: &[(&str, Change, &[&str])] = &[
    ("nothing", |_| {}, &[]),
    ("unmount of the inner one", |w| w.unmount("/p/m/n"), &BELOW_N),
    ("lazy unmount", |w| w.detach("/p/m"), &BELOW_P),
    (
        "another file system in its place",
        |w| {
            w.unmount("/p/m/n");
            w.mount(Store::with_paths(&["x", "y", "z", "k", "e/", "e/k"]), "/p/m/n");
        },
        &BELOW_N,
    ),
    ("a mount over the mount", |w| w.mount(Store::with_paths(&["x", "f", "d/", "d/g"]), "/p/m"), &BELOW_P),
    (
        "a mount over the mount, and its end",
        |w| {
            w.mount(Store::with_paths(&["x", "f"]), "/p/m");
            w.unmount("/p/m");
        },
        &BELOW_P,
    ),
    ("a mount on a directory inside", |w| w.mount(Store::with_paths(&["x", "g"]), "/p/m/d"), &["/p/m/d/g"]),
    // (It is not a mount point through the other mount of that file system.)
    ("a mount on the other mount's directory", |w| w.mount(Store::with_paths(&["x", "g"]), "/q/m/d"), &["/q/m/d/g"]),
    ("a mount on the directory above", |w| w.mount(Store::with_paths(&["x", "m/", "m/f"]), "/p"), &BELOW_P),
    ("a bind mount over it", |w| w.bind("/q/x", "/p/m"), &BELOW_P),
    ("a bind mount on a file", |w| w.bind("/a/f", "/p/m/f"), &["/p/m/f"]),
    ("a mount that moves away", |w| w.root.move_mount(PathAt::cwd(b"/p/m"), PathAt::cwd(b"/p/x")).unwrap(), &BELOW_P),
    (
        "a mount that moves there and back",
        |w| {
            w.root.move_mount(PathAt::cwd(b"/p/m"), PathAt::cwd(b"/z")).unwrap();
            w.root.move_mount(PathAt::cwd(b"/z"), PathAt::cwd(b"/p/m")).unwrap();
        },
        &BELOW_P,
    ),
    ("rename of the directory above", |w| w.rename("/p", "/z/p", RenameFlags::default()), &BELOW_P),
    ("exchange of those above two mount points", |w| w.rename("/p", "/q", RenameFlags::EXCHANGE), &BELOW_P),
    (
        "rename inside the mounted file system",
        |w| w.rename("/p/m/d", "/p/m/d2", RenameFlags::default()),
        &["/p/m/d/g", "/q/m/d/g"],
    ),
    (
        "rename and back inside it",
        |w| {
            w.rename("/p/m/d", "/p/m/d2", RenameFlags::default());
            w.rename("/p/m/d2", "/p/m/d", RenameFlags::default());
        },
        &["/p/m/d/g", "/q/m/d/g"],
    ),
    ("exchange inside it", |w| w.rename("/p/m/d", "/p/m/private", RenameFlags::EXCHANGE), &["/p/m/d/g"]),
    ("chmod of the mounted root", |w| w.chmod("/p/m", 0o700), &BELOW_P),
    ("chmod inside the mounted file system", |w| w.chmod("/p/m/d", 0o700), &["/p/m/d/g", "/q/m/d/g"]),
    ("chmod of the closed directory", |w| w.chmod("/closed", 0o755), &["/closed/m/k", "/closed/m/e/k"]),
    ("unlink inside", |w| w.root.unlink(Base::CWD, b"/p/m/d/g").unwrap(), &["/p/m/d/g", "/q/m/d/g"]),
    ("rename elsewhere", |w| w.rename("/q/x", "/q/y", RenameFlags::default()), &["/q/x/f"]),
    (
        "pivot_root",
        |w| {
            let context = w.root.fork();
            context.pivot_root(b"/p/m", b"/p/m/private").unwrap();
        },
        &BELOW_P,
    ),
    ("a copy of the namespace", |w| w.root.fork().unshare_mounts().unwrap(), &[]),
    ("read-only", |w| w.root.remount(Base::CWD, b"/p/m", MountFlags::RDONLY).unwrap(), &[]),
];

fn check((name, change, dead): &(&str, Change, &[&str])) {
    let (world, plain) = (World::new(1 << 20), World::new(0));
    for _ in 0..3 {
        for (who, path) in each(&PATHS) {
            assert_eq!(world.answer(who, path), plain.answer(who, path), "{name}: {} {path}", WHO[who]);
        }
    }
    for (who, path) in each(&PATHS) {
        let is_there = plain.answer(who, path).is_ok();
        assert_eq!(world.is_hit(who, path), is_there, "{name}: {} {path}", WHO[who]);
    }
    change(&world);
    change(&plain);
    for path in PATHS {
        let was_hit = world.is_hit(0, path);
        assert!(!was_hit || !dead.contains(&path), "{name}: {path} is found by the table");
    }
    let all: Vec<&str> = PATHS.iter().chain(&OTHERS).copied().collect();
    for round in 0..4 {
        for (who, path) in each(&all) {
            assert_eq!(world.answer(who, path), plain.answer(who, path), "{name}: {} {path} {round}", WHO[who]);
        }
    }
}

#[test]
fn each_change_of_mounts_ends_the_entries_that_cross_them() {
    CASES.iter().for_each(check);
}

#[test]
fn two_starts_in_two_mounts_of_one_directory_find_what_is_mounted_below_each() {
    let world = World::new(1 << 16);
    let [p, q] = [b"/p/m".as_slice(), b"/q/m"].map(|path| world.root.hold(Base::CWD, path, true).unwrap());
    let ino = |base, path: &str| world.root.attr(base, path.as_bytes(), true).map(|attr| attr.ino);
    let k = world.answer(0, "/p/m/n/k").map(|answer| answer.0);
    for _ in 0..4 {
        assert_eq!((ino(Base::at(&p), "n/k"), ino(Base::at(&q), "n/k")), (k, Err(Errno::ENOENT)));
        assert_eq!(ino(Base::at(&p), "d/g"), ino(Base::at(&q), "d/g"));
    }
    world.mount(Store::with_paths(&["1", "2", "3", "k"]), "/q/m/n");
    let other = world.answer(0, "/q/m/n/k").map(|answer| answer.0);
    assert_ne!(k, other);
    for _ in 0..4 {
        assert_eq!((ino(Base::at(&p), "n/k"), ino(Base::at(&q), "n/k")), (k, other));
    }
    let misses = world.vfs.whole_path_stats().misses;
    assert_eq!((ino(Base::at(&p), "n/k"), ino(Base::at(&q), "n/k")), (k, other));
    assert_eq!(world.vfs.whole_path_stats().misses, misses);
}

#[test]
fn a_scope_without_mounts_is_not_left_by_the_table() {
    let world = World::new(1 << 16);
    let start = world.root.hold(Base::CWD, b"/p", true).unwrap();
    let ino = |resolve| world.root.attr(Base::at(&start).within(resolve), b"m/n/k", true).map(|attr| attr.ino);
    for _ in 0..4 {
        let found = ino(Resolve::empty());
        assert!(found.is_ok());
        assert_eq!((ino(Resolve::BENEATH), ino(Resolve::IN_ROOT), ino(Resolve::CACHED)), (found, found, found));
        assert_eq!(ino(Resolve::NO_XDEV), Err(Errno::EXDEV));
        assert_eq!(ino(Resolve::NO_XDEV.union(Resolve::BENEATH)), Err(Errno::EXDEV));
        let many = |resolve| {
            let mut seen = Vec::new();
            let paths: [&[u8]; 2] = [b"m/n/k", b"m/n/e/k"];
            world.root.attr_many(Base::at(&start).within(resolve), &paths, true, |_, attr| seen.push(attr.map(drop)));
            seen
        };
        assert_eq!(many(Resolve::NO_XDEV), [Err(Errno::EXDEV); 2]);
        assert_eq!(many(Resolve::empty()), [Ok(()); 2]);
    }
}

/// Lists of directories whose paths cross mount points are found by their text.
#[test]
fn an_entry_outlives_changes_elsewhere_with_its_list() {
    let world = World::new(1 << 20);
    for _ in 0..3 {
        for path in PATHS {
            let _ = world.answer(0, path);
        }
    }
    let before = world.vfs.whole_path_stats();
    world.rename("/q/x", "/q/y", RenameFlags::default());
    let changes = before.changes;
    // (The rename recorded the way to its directory.)
    let before = world.vfs.whole_path_stats();
    assert!(before.changes > changes);
    for path in BELOW_P {
        assert!(world.is_hit(0, path), "{path}");
    }
    let after = world.vfs.whole_path_stats();
    assert_eq!((after.recorded, after.renewed), (before.recorded, before.renewed + BELOW_P.len() as u64));
}

/// Random changes and lookups.
#[test]
fn in_any_order_of_mounts_and_moves_every_context_sees_what_a_walk_shows() {
    const POINTS: [&str; 6] = ["/p/m", "/p/m/n", "/p/m/d", "/q/m", "/closed/m", "/a"];
    const DIRS: [&str; 6] = ["/p", "/q", "/p/m/d", "/p/m/private", "/q/x", "/closed"];
    for seed in 1..=if cfg!(debug_assertions) { 5 } else { 50 } {
        let mut random = fastrand::Rng::with_seed(seed);
        let worlds = [World::new(1 << 20), World::new(0)];
        let (mut hits, mut done) = (0, 0);
        for step in 0..3000 {
            let (point, other) = (POINTS[random.usize(0..POINTS.len())], POINTS[random.usize(0..POINTS.len())]);
            let (dir, to) = (DIRS[random.usize(0..DIRS.len())], DIRS[random.usize(0..DIRS.len())]);
            let mode = [0o755, 0o700, 0o711][random.usize(0..3)];
            let kind = random.u32(0..150);
            let names: Vec<String> = (0..random.u32(0..4)).map(|n| format!("pad{n}")).collect();
            let made = worlds.each_ref().map(|world| {
                let root = &world.root;
                let (at, from) = (point.as_bytes(), other.as_bytes());
                match kind {
                    0 | 1 => {
                        let mut paths: Vec<&str> = names.iter().map(String::as_str).collect();
                        paths.extend(["f", "k", "n/", "n/k", "d/", "d/g", "e/", "e/k"]);
                        root.mount(Store::with_paths(&paths), Base::CWD, at, MountFlags::default())
                    }
                    2 => root.bind(PathAt::cwd(from), PathAt::cwd(at), MountFlags::default(), random_bit(step)),
                    3 | 4 => root.unmount(Base::CWD, at, UnmountFlags::DETACH),
                    5 => root.unmount(Base::CWD, at, UnmountFlags::default()),
                    6 => root.move_mount(PathAt::cwd(from), PathAt::cwd(at)),
                    7 => root.rename(PathAt::cwd(dir.as_bytes()), PathAt::cwd(to.as_bytes()), RenameFlags::EXCHANGE),
                    8 => {
                        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
                        root.set_attr(Base::CWD, dir.as_bytes(), true, &set)
                    }
                    9 => world.users[3].unshare_mounts(),
                    10 => world.users[2].set_root(dir.as_bytes()),
                    _ => Ok(()),
                }
            });
            assert_eq!(made[0], made[1], "seed {seed}, step {step}");
            done += u32::from(kind < 11 && made[0].is_ok());
            let (who, path) = (random.usize(0..WHO.len()), PATHS[random.usize(0..PATHS.len())]);
            let before = worlds[0].vfs.whole_path_stats().misses;
            let seen = worlds[0].answer(who, path);
            hits += u32::from(worlds[0].vfs.whole_path_stats().misses == before);
            assert_eq!(seen, worlds[1].answer(who, path), "seed {seed}, step {step}: {} {path}", WHO[who]);
        }
        assert!(hits > 300 && done > 20, "seed {seed}: {hits} hits, {done} changes");
    }
}

fn random_bit(step: i32) -> bool {
    step % 2 == 0
}

/// The directory where the path begins is on its way again, by a name that matters there.
#[test]
fn a_path_that_comes_back_to_its_start_by_a_mount_ends_with_a_rename_of_the_start() {
    let store = Store::with_paths(&["x/", "x/m/", "x/f"]);
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(store.clone());
    let context = vfs.context();
    context.bind(PathAt::cwd(b"/"), PathAt::cwd(b"/x/m"), MountFlags::default(), false).unwrap();
    let start = context.hold(Base::CWD, b"/x", true).unwrap();
    let ino = || context.attr(Base::at(&start), b"m/x/f", true).map(|attr| attr.ino);
    for _ in 0..4 {
        assert_eq!(ino(), Ok(store.node("x/f")));
    }
    context.rename(PathAt::cwd(b"/x"), PathAt::cwd(b"/y"), RenameFlags::default()).unwrap();
    assert_eq!(ino(), Err(Errno::ENOENT));
}
