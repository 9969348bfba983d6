//! Every operation against the entries of the table: which are useless after it, and which are found by the table still.
//!
//! Each operation runs in two trees over two stores of the same numbers, one without a table: that one has the right answers.

use crate::whole_path::is_hit;
use lightfoot_vfs::{
    Acl, AclEntry, AclKind, AclTag, Attr, Base, Context, Errno, MountFlags, OpenFlags, PathAt, RenameFlags, SetAttr,
    SetTime, SetXattr, UnmountFlags, Vfs,
};
use testkit::{Store, StoreOptions};

/// The paths that are recorded before an operation. So `/`, `/a`, `/a/b`, `/a/b/c`, `/a/o`, `/z` and `/z/y` are marked;
/// `/a/b/e`, `/quiet` and `/a/loose` are not.
const PATHS: [&str; 14] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/b/c/f",
    "/a/b/c/g",
    "/a/b/c/h1",
    "/a/b/e",
    "/a/o",
    "/a/o/h2",
    "/a/o/p",
    "/z",
    "/z/y",
    "/z/y/c/f",
    "/z/y/w",
];

/// Paths that exist only after some of the operations; their answers are compared.
const OTHERS: [&str; 16] = [
    "/n/b/c/f",
    "/a/d/c/f",
    "/a/d",
    "/c/f",
    "/z/x/w",
    "/a/quiet",
    "/quiet/c/f",
    "/quiet/q",
    "/a/b/c/f2",
    "/z/b/c/f",
    "/a/b/c/f/s",
    "/a/b/q",
    "/a/b/e/q",
    "/a/b/e/s",
    "/a/o/p/c/f",
    "/z/s",
];

/// A tree, with a table or without, and its store.
struct World {
    store: Store,
    vfs: Vfs,
    context: Context,
}

impl World {
    fn new(names_in_cache: bool, table: usize) -> Self {
        let store = Store::new(StoreOptions { names_in_cache, ..StoreOptions::default() });
        let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(store.clone());
        let context = vfs.context();
        for dir in ["/a", "/a/b", "/a/b/c", "/a/b/e", "/a/o", "/a/loose", "/z", "/z/y", "/z/y/c", "/quiet"] {
            context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
        }
        for file in ["/a/b/c/f", "/a/b/c/g", "/a/b/c/h1", "/a/o/p", "/z/y/c/f", "/z/y/w", "/quiet/q"] {
            context.mknod(Base::CWD, file.as_bytes(), 0o644, 0).unwrap();
        }
        context.link(PathAt::cwd(b"/a/b/c/h1"), PathAt::cwd(b"/a/o/h2"), false).unwrap();
        Self { store, vfs, context }
    }

    /// What a user sees of `path`: but for times, which differ between two trees.
    fn answer(&self, path: &str) -> Result<(u64, u32, u32, u32), Errno> {
        let Attr { ino, mode, nlink, uid, .. } = self.context.attr(Base::CWD, path.as_bytes(), true)?;
        Ok((ino, mode, nlink, uid))
    }

    fn rename(&self, old: &str, new: &str) {
        self.move_to(old, new, RenameFlags::default());
    }

    fn exchange(&self, old: &str, new: &str) {
        self.move_to(old, new, RenameFlags::EXCHANGE);
    }

    fn move_to(&self, old: &str, new: &str, flags: RenameFlags) {
        self.context.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
    }

    fn set(&self, path: &str, set: SetAttr) {
        self.context.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        self.set(path, SetAttr { mode: Some(mode), ..SetAttr::default() });
    }

    fn make(&self, path: &str) {
        self.context.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap();
    }

    fn make_dir(&self, path: &str) {
        self.context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
    }

    fn unlink(&self, path: &str) {
        self.context.unlink(Base::CWD, path.as_bytes()).unwrap();
    }

    fn rmdir(&self, path: &str) {
        self.context.rmdir(Base::CWD, path.as_bytes()).unwrap();
    }

    fn put_acl(&self, path: &str) {
        let entry = |tag, perm| AclEntry { tag, perm };
        let entries = [
            entry(AclTag::UserObj, 7),
            entry(AclTag::User(7), 0),
            entry(AclTag::GroupObj, 5),
            entry(AclTag::Mask, 5),
            entry(AclTag::Other, 5),
        ];
        let (acl, name) = (Acl::new(&entries).unwrap(), AclKind::Access.xattr_name());
        self.context.set_xattr(Base::CWD, path.as_bytes(), true, name, &acl.to_xattr(), SetXattr::Any).unwrap();
    }

    fn mount(&self, path: &str) {
        let fs = Store::with_paths(&["c/", "c/f"]);
        self.context.mount(fs, Base::CWD, path.as_bytes(), MountFlags::default()).unwrap();
    }

    fn bind(&self, source: &str, target: &str) {
        let (source, target) = (PathAt::cwd(source.as_bytes()), PathAt::cwd(target.as_bytes()));
        self.context.bind(source, target, MountFlags::default(), false).unwrap();
    }

    fn unmount(&self, path: &str) {
        self.context.unmount(Base::CWD, path.as_bytes(), UnmountFlags::default()).unwrap();
    }
}

/// What happens to the recorded paths.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// All are found by the table still.
    AllStay,
    /// These are not, and the others are.
    OnlyDie(&'static [&'static str]),
    /// These are not, and the others may be: a counted change.
    Die(&'static [&'static str]),
}

use Fate::{AllStay, Die, OnlyDie};

/// All that lead through or to `/a/b`.
const AT_B: Fate = Die(&["/a/b", "/a/b/c", "/a/b/c/f", "/a/b/c/g", "/a/b/c/h1", "/a/b/e"]);
const BELOW_B: Fate = Die(&["/a/b/c", "/a/b/c/f", "/a/b/c/g", "/a/b/c/h1", "/a/b/e"]);
const BELOW_A: Fate = Die(&["/a/b", "/a/b/c", "/a/b/c/f", "/a/b/e", "/a/o", "/a/o/p", "/a/o/h2"]);
const BELOW_C: Fate = Die(&["/a/b/c/f", "/a/b/c/g", "/a/b/c/h1"]);

type Change = fn(&World);

/// The operations, by name. That a set of paths *dies* means that none of them may be found by the table once more.
const CASES: &[(&str, Change, Fate)] = &[
    ("nothing", |_| {}, AllStay),
    ("rename of a directory on the path", |w| w.rename("/a/b", "/a/d"), AT_B),
    ("to another directory", |w| w.rename("/a/b", "/z/b"), AT_B),
    ("rename of an ancestor", |w| w.rename("/a", "/n"), BELOW_A),
    ("rename of the last directory", |w| w.rename("/a/b/c", "/c"), BELOW_C),
    ("rename and back", |w| [("/a/b", "/a/d"), ("/a/d", "/a/b")].iter().for_each(|(a, b)| w.rename(a, b)), AT_B),
    (
        "another one in its place",
        |w| [("/a/b", "/a/d"), ("/z/y", "/a/b")].iter().for_each(|(a, b)| w.rename(a, b)),
        AT_B,
    ),
    (
        "exchange of two",
        |w| w.exchange("/a/b", "/z/y"),
        Die(&["/a/b", "/a/b/c", "/a/b/c/f", "/z/y", "/z/y/c/f", "/z/y/w"]),
    ),
    ("exchange of an ancestor with one below another", |w| w.exchange("/a", "/z/y"), BELOW_A),
    ("exchange of a directory with a file", |w| w.exchange("/a/b", "/a/o/p"), AT_B),
    ("exchange of a directory with an unmarked one", |w| w.exchange("/a/b", "/quiet"), AT_B),
    ("rename of an unrelated marked directory", |w| w.rename("/z/y", "/z/x"), Die(&["/z/y", "/z/y/c/f", "/z/y/w"])),
    ("rename of an unmarked directory", |w| w.rename("/quiet", "/a/quiet"), AllStay),
    ("exchange of unmarked directories", |w| w.exchange("/quiet", "/a/loose"), AllStay),
    ("rename over the file", |w| w.rename("/quiet/q", "/a/b/c/f"), OnlyDie(&["/a/b/c/f"])),
    ("rename of the file", |w| w.rename("/a/b/c/f", "/a/b/c/f2"), OnlyDie(&["/a/b/c/f"])),
    ("rename of the file over another", |w| w.rename("/a/b/c/f", "/a/b/c/g"), OnlyDie(&["/a/b/c/f", "/a/b/c/g"])),
    ("exchange of two files", |w| w.exchange("/a/b/c/f", "/a/b/c/g"), OnlyDie(&["/a/b/c/f", "/a/b/c/g"])),
    ("exchange of two hard links", |w| w.exchange("/a/b/c/f", "/a/o/h2"), OnlyDie(&["/a/b/c/f", "/a/o/h2"])),
    ("unlink", |w| w.unlink("/a/b/c/f"), OnlyDie(&["/a/b/c/f"])),
    ("unlink of one of two names", |w| w.unlink("/a/b/c/h1"), OnlyDie(&["/a/b/c/h1"])),
    ("unlink of an open file", unlink_open, OnlyDie(&["/a/b/c/f"])),
    (
        "unlink and create",
        |w| [World::unlink, World::make].iter().for_each(|f| f(w, "/a/b/c/f")),
        OnlyDie(&["/a/b/c/f"]),
    ),
    ("rmdir", |w| w.rmdir("/a/b/e"), OnlyDie(&["/a/b/e"])),
    ("rmdir and mkdir", |w| [World::rmdir, World::make_dir].iter().for_each(|f| f(w, "/a/b/e")), OnlyDie(&["/a/b/e"])),
    ("rename of a directory over the end", |w| w.rename("/a/loose", "/a/b/e"), OnlyDie(&["/a/b/e"])),
    ("rename of a directory at the end", |w| w.rename("/a/b/e", "/a/d"), OnlyDie(&["/a/b/e"])),
    ("a directory emptied and removed", remove_dir, Die(&["/a/b/c", "/a/b/c/f", "/a/b/c/g", "/a/b/c/h1"])),
    // (The walk to the new file's directory recorded that again.)
    ("a directory emptied and made again", make_dir_again, Die(&["/a/b/c/f", "/a/b/c/g", "/a/b/c/h1"])),
    ("replacement by a link", replace_by_link, OnlyDie(&["/a/b/c/f"])),
    (
        "a directory replaced by a link to it",
        |w| {
            w.rename("/a/b", "/a/d");
            w.context.symlink(b"d", Base::CWD, b"/a/b").unwrap();
        },
        AT_B,
    ),
    ("create beside", |w| w.make("/a/b/c/f2"), AllStay),
    ("mkdir beside", |w| w.make_dir("/a/d"), AllStay),
    ("link", |w| w.context.link(PathAt::cwd(b"/a/b/c/f"), PathAt::cwd(b"/a/b/q"), false).unwrap(), AllStay),
    ("chmod of the file", |w| w.chmod("/a/b/c/f", 0), AllStay),
    ("chmod of a directory at the end", |w| w.chmod("/a/b/e", 0), AllStay),
    ("chmod that keeps a directory open", |w| w.chmod("/a/b", 0o711), AllStay),
    ("chmod that closes a directory", |w| w.chmod("/a/b", 0o700), BELOW_B),
    ("chmod that closes it to the group", |w| w.chmod("/a/b", 0o745), BELOW_B),
    ("chmod that closes the root", |w| w.chmod("/", 0o700), Die(&PATHS)),
    ("chmod that closes and opens", |w| [0o700, 0o755].iter().for_each(|mode| w.chmod("/a/b", *mode)), BELOW_B),
    ("chmod that closes an unmarked directory", |w| w.chmod("/quiet", 0o700), AllStay),
    ("chown of a directory", |w| w.set("/a/b", SetAttr { uid: Some(5), ..SetAttr::default() }), AllStay),
    ("chown of the file", |w| w.set("/a/b/c/f", SetAttr { uid: Some(5), ..SetAttr::default() }), AllStay),
    ("times", |w| w.set("/a/b", SetAttr { mtime: Some(SetTime::At(5)), ..SetAttr::default() }), AllStay),
    ("an ACL on a directory", |w| w.put_acl("/a/b"), BELOW_B),
    ("an ACL on a directory at the end", |w| w.put_acl("/a/b/e"), AllStay),
    ("an ACL on the file", |w| w.put_acl("/a/b/c/f"), AllStay),
    ("a mount on a directory", |w| w.mount("/a/b"), AT_B),
    ("a mount on a directory at the end", |w| w.mount("/a/b/e"), OnlyDie(&["/a/b/e"])),
    (
        "a mount and its end",
        |w| {
            w.mount("/a/b");
            w.unmount("/a/b");
        },
        BELOW_B,
    ),
    ("a mount on an unmarked directory", |w| w.mount("/quiet"), AllStay),
    ("a bind mount of the directory", |w| w.bind("/a/b", "/quiet"), AllStay),
    ("a bind mount on the directory", |w| w.bind("/quiet", "/a/b"), AT_B),
    ("a bind mount on the file", |w| w.bind("/a/o/p", "/a/b/c/f"), OnlyDie(&["/a/b/c/f"])),
    (
        "a mount that moves onto the directory",
        |w| {
            w.mount("/quiet");
            w.context.move_mount(PathAt::cwd(b"/quiet"), PathAt::cwd(b"/a/b")).unwrap();
        },
        AT_B,
    ),
    ("a name by a recorded parent", |w| w.make("/a/b/e/q"), AllStay),
];

fn unlink_open(w: &World) {
    let file = w.context.open(Base::CWD, b"/a/b/c/f", OpenFlags::RDONLY, 0).unwrap();
    w.unlink("/a/b/c/f");
    assert_eq!(w.answer("/a/b/c/f"), Err(Errno::ENOENT));
    drop(file);
}

fn remove_dir(w: &World) {
    ["/a/b/c/f", "/a/b/c/g", "/a/b/c/h1"].iter().for_each(|path| w.unlink(path));
    w.rmdir("/a/b/c");
}

fn make_dir_again(w: &World) {
    remove_dir(w);
    w.make_dir("/a/b/c");
    ["/a/b/c/g", "/a/b/c/f"].iter().for_each(|path| w.make(path));
}

fn replace_by_link(w: &World) {
    w.unlink("/a/b/c/f");
    w.context.symlink(b"g", Base::CWD, b"/a/b/c/f").unwrap();
}

/// Records [`PATHS`]; then all are found by the table.
fn record(world: &World) {
    PATHS.iter().for_each(|path| record_one(world, path));
    for path in PATHS {
        assert!(is_hit(&world.vfs, &world.context, path), "{path}");
    }
}

/// Looks `path` up until it is found by the table: the first lookup brings it into the cache, the second finds it unused.
fn record_one(world: &World, path: &str) {
    for _ in 0..3 {
        let _ = world.answer(path);
    }
}

/// Checks a change: the fates, and that all answers are those of the tree without a table, at once and later.
fn check(name: &str, change: impl Fn(&World), fate: Fate, names_in_cache: bool) {
    let (world, plain) = (World::new(names_in_cache, 1 << 14), World::new(names_in_cache, 0));
    record(&world);
    for path in PATHS {
        let _ = plain.answer(path);
    }
    change(&world);
    change(&plain);
    let (dead, others_stay): (&[&str], _) = match fate {
        AllStay => (&[], true),
        OnlyDie(dead) => (dead, true),
        Die(dead) => (dead, false),
    };
    for path in PATHS {
        let before = world.vfs.whole_path_stats().misses;
        assert_eq!(world.answer(path), plain.answer(path), "{name}: {path}");
        let was_hit = world.vfs.whole_path_stats().misses == before;
        assert!(!(dead.contains(&path) && was_hit), "{name}: {path} is found by the table");
        assert!(dead.contains(&path) || was_hit || !others_stay, "{name}: {path} is not found by the table");
    }
    for round in 0..3 {
        for path in PATHS.iter().chain(&OTHERS) {
            assert_eq!(world.answer(path), plain.answer(path), "{name}: {path}, round {round}");
        }
    }
}

#[test]
fn each_operation_makes_the_entries_useless_that_it_must_and_no_file_s_change_any_other() {
    for (name, change, fate) in CASES {
        for names_in_cache in [true, false] {
            check(name, change, *fate, names_in_cache);
        }
    }
}

#[test]
fn what_a_file_system_invalidates_is_not_found_by_the_table() {
    let cases: [(&str, Change, Fate); 6] = [
        ("the name of a directory", |w| w.store.invalidator().entry(w.store.node("a"), b"b"), AT_B),
        ("the name of the file", |w| w.store.invalidator().entry(w.store.node("a/b/c"), b"f"), OnlyDie(&["/a/b/c/f"])),
        ("a directory", |w| w.store.invalidator().inode(w.store.node("a/b")), AT_B),
        ("the file", |w| w.store.invalidator().inode(w.store.node("a/b/c/f")), OnlyDie(&["/a/b/c/f"])),
        (
            "a file of two names",
            |w| w.store.invalidator().inode(w.store.node("a/o/h2")),
            OnlyDie(&["/a/o/h2", "/a/b/c/h1"]),
        ),
        ("all", |w| w.store.invalidator().all(), Die(&PATHS)),
    ];
    for (name, change, fate) in cases {
        check(name, change, fate, false);
    }
}

#[test]
fn a_directory_that_changed_behind_the_cache_is_another_one_after_the_invalidation() {
    let world = World::new(false, 1 << 14);
    record(&world);
    let store = &world.store;
    let (a, b) = (store.node("a"), store.node("a/b"));
    store.remove(a, "b");
    let new = store.make(a, "b/");
    let c = store.make(new, "c/");
    let f = store.make(c, "f");
    store.invalidator().inode(b);
    for _ in 0..3 {
        assert_eq!(world.answer("/a/b/c/f").map(|answer| answer.0), Ok(f));
        assert_eq!(world.answer("/a/b/c/g"), Err(Errno::ENOENT));
    }
    // Closed behind the cache.
    record_one(&world, "/a/b/c/f");
    store.change(c, |attr| attr.mode = attr.kind() | 0o700);
    store.invalidator().inode(c);
    let user = world.context.fork();
    user.set_credentials(lightfoot_vfs::Credentials::user(7, 7, &[]));
    assert_eq!(user.attr(Base::CWD, b"/a/b/c/f", true), Err(Errno::EACCES));
}

/// Operations other than `attr` that may go by the table: their ends are those of the tree without one.
#[test]
fn operations_by_a_recorded_path_reach_what_a_walk_reaches() {
    let changes: [Change; 4] = [
        |_| {},
        |w| w.exchange("/a/b", "/z/y"),
        |w| [("/a/b/c", "/a/d"), ("/z/y/c", "/a/b/c")].iter().for_each(|(a, b)| w.rename(a, b)),
        |w| w.chmod("/a/b", 0o700),
    ];
    for change in changes {
        let (world, plain) = (World::new(true, 1 << 14), World::new(true, 0));
        record(&world);
        // The directories themselves, with a slash too: what the walk to a parent asks for.
        ["/a/b/", "/a/b/c/", "/z/y/c/"].iter().for_each(|path| record_one(&world, path));
        let seen = [&world, &plain].map(|w| {
            change(w);
            let at = |path: &'static str| (Base::CWD, path.as_bytes());
            let ((cwd, file), (_, link)) = (at("/a/b/c/f"), at("/a/b/c/link"));
            let mut seen = Vec::new();
            for _ in 0..2 {
                let open = w.context.open(cwd, file, OpenFlags::RDONLY, 0).and_then(|open| open.attr());
                seen.push(open.map(|attr| attr.ino));
                seen.push(w.context.hold(cwd, file, true).and_then(|held| held.attr()).map(|attr| attr.ino));
                seen.push(w.context.access(cwd, file, true, 4).map(|()| 0));
                seen.push(w.context.read_link(cwd, file).map(|body| body.len() as u64));
                seen.push(w.context.symlink(b"body", cwd, link).map(|()| 0));
                seen.push(w.context.read_link(cwd, link).map(|body| body.len() as u64));
                seen.push(w.context.mkdir(cwd, b"/a/b/c/dir", 0o755).map(|()| 0));
                seen.push(w.context.attr(cwd, b"/a/b/c/dir", true).map(|attr| attr.ino));
                seen.push(w.context.mknod(cwd, b"/a/b/c/dir/n", 0o644, 0).map(|()| 0));
                seen.push(w.context.unlink(cwd, b"/a/b/c/dir/n").map(|()| 0));
                seen.push(w.context.rmdir(cwd, b"/a/b/c/dir/").map(|()| 0));
                seen.push(w.context.unlink(cwd, b"/a/b/c").map(|()| 0));
                seen.push(w.context.rmdir(cwd, b"/a/b/c").map(|()| 0));
                seen.push(w.context.canonical(cwd, file).map(|path| path.len() as u64));
                seen.push(w.context.open(cwd, b"/a/b/c/new", OpenFlags::CREAT, 0o644).map(|_| 0));
            }
            let made = ["/a/b/c/new", "/a/b/c/link", "/z/y/c/new", "/a/d/new"];
            let answers: Vec<_> = PATHS.iter().chain(&OTHERS).chain(&made).map(|path| w.answer(path)).collect();
            (seen, answers)
        });
        let [with, without] = seen;
        assert_eq!(with, without);
    }
}
