//! Paths with symbolic links: which of them the table has, and what ends their entries.
//!
//! Each operation runs in two trees over stores of the same numbers, one without a table: that one has the right answers.

use crate::whole_path::operations::Fate::{self, AllStay, Die, OnlyDie};
use lightfoot_vfs::{
    Base, Budget, Context, Credentials, Errno, MountFlags, OpenFlags, PathAt, RenameFlags, SetAttr, UnmountFlags, Vfs,
};
use testkit::{Store, StoreOptions};

/// Paths through links, to links, and one without.
const PATHS: [&str; 21] = [
    "/a/to/f",
    "/a/to//g",
    "/a/to",
    "/a/to/",
    "/a/to/none",
    "/a/end",
    "/a/abs/f",
    "/a/b/up",
    "/a/b/here",
    "/a/b/self/self/f",
    "/a/chain/g",
    "/a/chain",
    "/top/b/f",
    "/top/to/f",
    "/dead",
    "/m/d/rel",
    "/m/in/f",
    "/into/f",
    "/into",
    "/a/b/f",
    "/z/f",
];

/// Paths that are walked, and paths that exist only after some of the operations.
const OTHERS: [&str; 12] = [
    "/loop",
    "/loop/f",
    "/m/d/out",
    "a/abs/f",
    "/a/to/../z/f",
    "/a/end/",
    "/a/end/f",
    "/a/d/f",
    "/z/to/f",
    "/a/out/f",
    "/dead/x",
    "/a/self/f",
];

/// Without the directory `/a/b`.
const BELOW_B: [&str; 13] = [
    "/a/to/f",
    "/a/to//g",
    "/a/to/none",
    "/a/end",
    "/a/abs/f",
    "/a/b/up",
    "/a/b/here",
    "/a/b/self/self/f",
    "/a/chain/g",
    "/top/b/f",
    "/top/to/f",
    "/a/b/f",
    "/a/to/",
];

/// Through the link `/a/to`.
const BY_TO: [&str; 8] =
    ["/a/to/f", "/a/to//g", "/a/to", "/a/to/", "/a/to/none", "/a/chain/g", "/a/chain", "/top/to/f"];

/// Those whose end is `/a/b/f`.
const AT_F: Fate =
    OnlyDie(&["/a/to/f", "/a/end", "/a/abs/f", "/a/b/up", "/a/b/self/self/f", "/top/b/f", "/top/to/f", "/a/b/f"]);

struct World {
    store: Store,
    vfs: Vfs,
    root: Context,
    user: Context,
    /// Its root is `/a`.
    inner: Context,
}

impl World {
    fn new(names_in_cache: bool, table: usize, budget: Budget) -> Self {
        let store = Store::new(StoreOptions { names_in_cache, ..StoreOptions::default() });
        let vfs = Vfs::builder().budget(budget).whole_paths(table).records_every_path(true).build(store.clone());
        let root = vfs.context();
        for dir in ["/a", "/a/b", "/z", "/m"] {
            root.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
        }
        for file in ["/a/b/f", "/a/b/g", "/z/f"] {
            root.mknod(Base::CWD, file.as_bytes(), 0o644, 0).unwrap();
        }
        let mount = Store::with_paths(&["d/", "d/f", "d/rel -> f", "d/out -> /a/b/f", "in -> d"]);
        root.mount(mount, Base::CWD, b"/m", MountFlags::default()).unwrap();
        let (user, inner) = (root.fork(), root.fork());
        user.set_credentials(Credentials::user(7, 7, &[]));
        inner.set_root(b"/a").unwrap();
        let world = Self { store, vfs, root, user, inner };
        for (link, body) in [
            ("/a/to", "b"),
            ("/a/end", "b/f"),
            ("/a/abs", "/a/b"),
            ("/a/b/up", "../b/f"),
            ("/a/b/here", "./g"),
            ("/a/b/self", "."),
            ("/a/chain", "to"),
            ("/top", "a"),
            ("/dead", "a/nothing"),
            ("/into", "m/d"),
            ("/loop", "loop"),
            ("/a/out", "../z"),
            ("/z/unused", "f"),
            ("/z/other", "../z"),
        ] {
            world.symlink(body, link);
        }
        world
    }

    fn symlink(&self, body: &str, link: &str) {
        self.root.symlink(body.as_bytes(), Base::CWD, link.as_bytes()).unwrap();
    }

    fn rename(&self, old: &str, new: &str) {
        self.move_to(old, new, RenameFlags::default());
    }

    fn exchange(&self, old: &str, new: &str) {
        self.move_to(old, new, RenameFlags::EXCHANGE);
    }

    fn move_to(&self, old: &str, new: &str, flags: RenameFlags) {
        self.root.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
    }

    fn unlink(&self, path: &str) {
        self.root.unlink(Base::CWD, path.as_bytes()).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        self.root.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn mount(&self, path: &str) {
        let fs = Store::with_paths(&["f", "b/", "b/f"]);
        self.root.mount(fs, Base::CWD, path.as_bytes(), MountFlags::default()).unwrap();
    }

    fn answers(&self, path: &str) -> Vec<Result<u64, Errno>> {
        let path = path.as_bytes();
        let look = |context: &Context, follow| context.attr(Base::CWD, path, follow).map(|attr| attr.ino);
        vec![
            look(&self.root, true),
            look(&self.root, false),
            look(&self.user, true),
            look(&self.inner, true),
            look(&self.inner, false),
            self.root.access(Base::CWD, path, false, 0).map(|()| 0),
            self.root.read_link(Base::CWD, path).map(|body| body.len() as u64),
            self.root.hold(Base::CWD, path, true).map(|held| held.mount_id() + held.attr().unwrap().ino),
            self.root.open(Base::CWD, path, OpenFlags::RDONLY, 0).map(|file| file.attr().unwrap().ino),
            self.root.open(Base::CWD, path, OpenFlags::NOFOLLOW, 0).map(|file| file.attr().unwrap().ino),
        ]
    }

    fn is_hit(&self, path: &str) -> bool {
        let before = self.vfs.whole_path_stats().misses;
        let _ = self.root.attr(Base::CWD, path.as_bytes(), true);
        self.vfs.whole_path_stats().misses == before
    }
}

type Change = fn(&World);

/// Operations, and what becomes of the paths.
const CASES: &[(&str, Change, Fate)] = &[
    ("nothing", |_| {}, AllStay),
    ("another link in its place", |w| w.rename("/z/other", "/a/to"), Die(&BY_TO)),
    ("a file in its place", |w| w.rename("/z/f", "/a/to"), Die(&BY_TO)),
    (
        "unlink and another link",
        |w| {
            w.unlink("/a/to");
            w.symlink("../z", "/a/to");
        },
        Die(&BY_TO),
    ),
    (
        "unlink and the same link",
        |w| {
            w.unlink("/a/to");
            w.symlink("b", "/a/to");
        },
        Die(&BY_TO),
    ),
    ("unlink", |w| w.unlink("/a/to"), Die(&BY_TO)),
    ("rename of the link", |w| w.rename("/a/to", "/z/to"), Die(&BY_TO)),
    (
        "rename and back",
        |w| [("/a/to", "/z/to"), ("/z/to", "/a/to")].iter().for_each(|(a, b)| w.rename(a, b)),
        Die(&BY_TO),
    ),
    ("exchange of two links", |w| w.exchange("/a/to", "/a/out"), Die(&BY_TO)),
    ("exchange of a link and a directory", |w| w.exchange("/a/to", "/z"), Die(&BY_TO)),
    ("exchange of a link and its target", |w| w.exchange("/a/to", "/a/b"), Die(&BY_TO)),
    ("unlink of a link at the end", |w| w.unlink("/a/end"), Die(&["/a/end"])),
    ("a file in place of a link at the end", |w| w.rename("/z/f", "/a/end"), Die(&["/a/end", "/z/f"])),
    ("unlink of a link without a path", |w| w.unlink("/z/unused"), AllStay),
    ("rename of a link without a path", |w| w.rename("/z/unused", "/a/unused"), AllStay),
    ("a link beside", |w| w.symlink("f", "/a/b/new"), AllStay),
    ("rename of the target", |w| w.rename("/a/b", "/a/d"), Die(&BELOW_B)),
    ("rename of the target away", |w| w.rename("/a/b", "/z/b"), Die(&BELOW_B)),
    ("rename of the directory above", |w| w.rename("/a", "/n"), Die(&BELOW_B)),
    ("another directory as the target", |w| w.exchange("/a/b", "/z"), Die(&BELOW_B)),
    ("unlink of the file", |w| w.unlink("/a/b/f"), AT_F),
    ("rename over the file", |w| w.rename("/a/b/g", "/a/b/f"), Die(&["/a/to/f", "/a/end", "/a/b/up", "/a/b/here"])),
    ("the name that a link missed", |w| w.root.mknod(Base::CWD, b"/a/nothing", 0o644, 0).unwrap(), OnlyDie(&["/dead"])),
    ("chmod of the target", |w| w.chmod("/a/b", 0o700), Die(&BELOW_B)),
    ("chmod of the directory of the link", |w| w.chmod("/a", 0o700), Die(&BY_TO)),
    ("a mount on the target", |w| w.mount("/a/b"), Die(&BELOW_B)),
    ("a mount on the directory of the link", |w| w.mount("/a"), Die(&BELOW_B)),
    (
        "unmount",
        |w| w.root.unmount(Base::CWD, b"/m", UnmountFlags::DETACH).unwrap(),
        Die(&["/m/d/rel", "/m/in/f", "/into/f"]),
    ),
    (
        "a mount that follows no links any more",
        |w| w.root.remount(Base::CWD, b"/", MountFlags::NOSYMFOLLOW).unwrap(),
        Die(&["/a/to/f", "/a/end", "/dead", "/into/f", "/top/b/f"]),
    ),
    (
        "another mount that follows no links any more",
        |w| w.root.remount(Base::CWD, b"/m", MountFlags::NOSYMFOLLOW).unwrap(),
        Die(&["/m/d/rel", "/m/in/f"]),
    ),
];

/// Of a file system that keeps its own names.
const BEHIND: &[(&str, Change, Fate)] = &[
    ("an invalidated link", |w| w.store.invalidator().entry(w.store.node("a"), b"to"), Die(&BY_TO)),
    ("an invalidated link's inode", |w| w.store.invalidator().inode(w.store.node("a/to")), Die(&BY_TO)),
    ("all", |w| w.store.invalidator().all(), Die(&BELOW_B)),
    ("replaced behind the cache", |w| replace_behind(w, "b", "../z"), Die(&BY_TO)),
    ("replaced behind the cache by the same", |w| replace_behind(w, "b", "b"), Die(&BY_TO)),
];

fn replace_behind(w: &World, _old: &str, body: &str) {
    let a = w.store.node("a");
    w.store.remove(a, "to");
    w.store.make(a, &format!("to -> {body}"));
    w.store.invalidator().entry(a, b"to");
}

fn check((name, change, fate): &(&str, Change, Fate), names_in_cache: bool) {
    let (dead, others_stay): (&[&str], _) = match fate {
        AllStay => (&[], true),
        OnlyDie(dead) => (dead, true),
        Die(dead) => (dead, false),
    };
    let world = World::new(names_in_cache, 1 << 22, Budget::default());
    let plain = World::new(names_in_cache, 0, Budget::default());
    for _ in 0..4 {
        for path in PATHS {
            assert_eq!(world.answers(path), plain.answers(path), "{name}: {path}");
        }
    }
    // (Where the names are in the cache, it has no entry of a name that does not exist.)
    let is_absent = |path| plain.answers(path)[0] == Err(Errno::ENOENT);
    for path in PATHS {
        assert_eq!(world.is_hit(path), !(names_in_cache && is_absent(path)), "{name}: {path}");
    }
    let walked: Vec<_> = PATHS.into_iter().filter(|path| names_in_cache && is_absent(path)).collect();
    change(&world);
    change(&plain);
    for path in PATHS {
        let was_hit = world.is_hit(path);
        assert!(!was_hit || !dead.contains(&path), "{name}: {path} is found by the table");
        let may_miss = dead.contains(&path) || !others_stay || walked.contains(&path);
        assert!(was_hit || may_miss, "{name}: {path} is not found by the table");
    }
    for round in 0..4 {
        for path in PATHS.iter().chain(&OTHERS) {
            assert_eq!(world.answers(path), plain.answers(path), "{name}: {path} {round}");
        }
    }
}

#[test]
fn each_operation_on_a_link_or_its_target_ends_the_entries_that_it_must() {
    for case in CASES {
        for names_in_cache in [true, false] {
            check(case, names_in_cache);
        }
    }
    BEHIND.iter().for_each(|case| check(case, false));
}

/// A lookup of the link and one of its target, in turn.
#[test]
fn a_link_and_its_target_have_one_path_and_two_answers() {
    let world = World::new(true, 1 << 22, Budget::default());
    let ino = |follow| world.root.attr(Base::CWD, b"/a/end", follow).map(|attr| attr.ino);
    let [link, file] = ["a/end", "a/b/f"].map(|path| Ok(world.store.node(path)));
    for _ in 0..6 {
        assert_eq!((ino(true), ino(false)), (file, link));
        assert_eq!(world.root.read_link(Base::CWD, b"/a/end").unwrap(), b"b/f");
        assert!(world.is_hit("/a/end"));
    }
    // A link at the end that a slash follows is followed by both.
    let dir = |path: &[u8], follow| world.root.attr(Base::CWD, path, follow).map(|attr| attr.ino);
    for _ in 0..4 {
        let [to, b] = ["a/to", "a/b"].map(|path| Ok(world.store.node(path)));
        assert_eq!([dir(b"/a/to", true), dir(b"/a/to", false)], [b, to]);
        assert_eq!([dir(b"/a/to/", true), dir(b"/a/to/", false)], [b, b]);
    }
}

/// An absolute link leads to the root of the walk, which the key of a path that is not absolute does not have.
#[test]
fn a_link_to_the_root_leads_each_context_to_its_own() {
    let paths = ["d/", "d/f", "c/", "c/d/", "c/d/f", "c/abs -> /d", "c/one -> /d/f"];
    let store = Store::with_paths(&paths);
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(store.clone());
    let (outer, inner) = (vfs.context(), vfs.context());
    [&outer, &inner].iter().for_each(|context| context.set_current_dir(b"/c").unwrap());
    inner.set_root(b"/c").unwrap();
    for _ in 0..4 {
        for (context, file) in [(&outer, "d/f"), (&inner, "c/d/f")] {
            let ino = |path: &[u8]| context.attr(Base::CWD, path, true).map(|attr| attr.ino);
            let file = Ok(store.node(file));
            assert_eq!([ino(b"abs/f"), ino(b"./abs/f"), ino(b"one"), ino(b"one")], [file; 4]);
            let above = if core::ptr::eq(context, &raw const outer) { "/c" } else { "" };
            assert_eq!([ino(format!("{above}/abs/f").as_bytes()), ino(format!("{above}/one").as_bytes())], [file; 2]);
        }
    }
}

/// What the cache evicts is not found by the invalidation that follows.
#[test]
fn a_link_that_was_evicted_and_replaced_is_another_one() {
    let budget = Budget { entries: 0, negatives: 0, listings: 0 };
    let world = World::new(false, 1 << 20, budget);
    let z = world.store.node("z");
    (0..6000).for_each(|n| assert_ne!(world.store.make(z, &format!("n{n}")), 0));
    for round in 0..4 {
        let (body, file) = if round % 2 == 0 { ("../z", "z/f") } else { ("b", "a/b/f") };
        for n in 0..6000 {
            assert!(world.root.attr(Base::CWD, format!("/z/n{n}").as_bytes(), true).is_ok());
            if n % 1000 == 0 {
                let old = if round % 2 == 0 { "a/b/f" } else { "z/f" };
                let ino = world.root.attr(Base::CWD, b"/a/to/f", true).map(|attr| attr.ino);
                assert_eq!(ino, Ok(world.store.node(old)), "{round} {n}");
            }
        }
        replace_behind(&world, "", body);
        for _ in 0..3 {
            let ino = world.root.attr(Base::CWD, b"/a/to/f", true).map(|attr| attr.ino);
            assert_eq!(ino, Ok(world.store.node(file)), "{round}");
        }
    }
    assert!(world.vfs.stats().evicted > 6000);
}
