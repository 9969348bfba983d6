//! Operations on places that are held, and what they are called.

use crate::truth::store::{ROOT, Store};
use lightfoot_vfs::{
    Attr, Base, Context, Credentials, Errno, MAY_EXEC, MAY_READ, MAY_WRITE, MountFlags, OpenFlags, PathAt, PathRef,
    RenameFlags, SetAttr, SetXattr,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use testkit::StoreOptions;

/// An operation on `/f`, by its path and held.
type Pair = (&'static str, fn(&Context) -> Result<Vec<u8>, Errno>, fn(&Context, &PathRef) -> Result<Vec<u8>, Errno>);

fn mode(attr: Attr) -> Vec<u8> {
    attr.mode.to_le_bytes().to_vec()
}

const CHMOD: SetAttr = SetAttr { mode: Some(0o604), uid: None, gid: None, size: None, atime: None, mtime: None };
const CUT: SetAttr = SetAttr { mode: None, uid: None, gid: None, size: Some(2), atime: None, mtime: None };
const A: &[u8] = b"user.a";

const PAIRS: [Pair; 16] = [
    ("open", |c| opened(c, OpenFlags::RDONLY), |c, held| open(c, held, OpenFlags::RDONLY)),
    ("open to write", |c| opened(c, OpenFlags::RDWR), |c, held| open(c, held, OpenFlags::RDWR)),
    ("open to cut", |c| opened(c, OpenFlags::TRUNC), |c, held| open(c, held, OpenFlags::TRUNC)),
    ("open directory", |c| opened(c, OpenFlags::DIRECTORY), |c, held| open(c, held, OpenFlags::DIRECTORY)),
    ("open place", |c| opened(c, OpenFlags::PATH), |c, held| open(c, held, OpenFlags::PATH)),
    ("open without atime", |c| opened(c, OpenFlags::NOATIME), |c, held| open(c, held, OpenFlags::NOATIME)),
    ("may read", |c| may(c, MAY_READ), |c, held| c.access_held(held, MAY_READ).map(|()| vec![])),
    ("may write", |c| may(c, MAY_WRITE), |c, held| c.access_held(held, MAY_WRITE).map(|()| vec![])),
    ("may execute", |c| may(c, MAY_EXEC), |c, held| c.access_held(held, MAY_EXEC).map(|()| vec![])),
    ("is there", |c| may(c, 0), |c, held| c.access_held(held, 0).map(|()| vec![])),
    (
        "chmod",
        |c| c.set_attr(Base::CWD, b"/f", false, &CHMOD).and_then(|()| c.attr(Base::CWD, b"/f", false)).map(mode),
        |c, held| c.set_attr_held(held, &CHMOD).map(mode),
    ),
    (
        "cut",
        |c| c.set_attr(Base::CWD, b"/f", false, &CUT).and_then(|()| c.attr(Base::CWD, b"/f", false)).map(mode),
        |c, held| c.set_attr_held(held, &CUT).map(mode),
    ),
    ("read_link", |c| c.read_link(Base::CWD, b"/f"), Context::read_link_held),
    (
        "set and get xattr",
        |c| {
            c.set_xattr(Base::CWD, b"/f", false, A, b"v", SetXattr::Any)?;
            c.get_xattr(Base::CWD, b"/f", false, A).map(Vec::from)
        },
        |c, held| {
            c.set_xattr_held(held, A, b"v", SetXattr::Any)?;
            c.get_xattr_held(held, A).map(Vec::from)
        },
    ),
    (
        "remove xattr",
        |c| c.remove_xattr(Base::CWD, b"/f", false, A).map(|()| vec![]),
        |c, held| c.remove_xattr_held(held, A).map(|()| vec![]),
    ),
    (
        "list xattrs",
        |c| c.list_xattrs(Base::CWD, b"/f", false).map(|all| all.concat()),
        |c, held| c.list_xattrs_held(held).map(|all| all.concat()),
    ),
];

fn opened(context: &Context, flags: OpenFlags) -> Result<Vec<u8>, Errno> {
    context.open(Base::CWD, b"/f", flags.union(OpenFlags::NOFOLLOW), 0).map(|file| mode(file.attr().unwrap()))
}

fn open(context: &Context, held: &PathRef, flags: OpenFlags) -> Result<Vec<u8>, Errno> {
    context.open_held(held, flags).map(|file| mode(file.attr().unwrap()))
}

fn may(context: &Context, mask: u32) -> Result<Vec<u8>, Errno> {
    context.access(Base::CWD, b"/f", false, mask).map(|()| vec![])
}

/// A tree whose `/f` is a file, a directory or a symbolic link, of a mode and with an attribute.
fn case(kind: &str, mode: u32, flags: MountFlags) -> Context {
    let store = Store::new(StoreOptions::default());
    let node = store.make(ROOT, &format!("f{kind}"));
    store.change(node, |attr| (attr.mode, attr.uid, attr.gid, attr.size) = (attr.kind() | mode, 5, 5, 3));
    let context = store.tree().context();
    if kind != " -> body" {
        context.set_xattr(Base::CWD, b"/f", false, A, b"before", SetXattr::Any).unwrap();
    }
    context.remount(Base::CWD, b"/", flags).unwrap();
    context
}

#[test]
fn what_can_be_done_by_path_can_be_done_with_what_is_held_and_the_same_is_refused() {
    for (what, by_path, by_held) in PAIRS {
        for kind in ["", "/", " -> body"] {
            for mode in [0o644, 0o200, 0o000, 0o777] {
                for flags in [MountFlags::default(), MountFlags::RDONLY, MountFlags::NOEXEC] {
                    for user in [0, 5, 6] {
                        let [one, other] = [case(kind, mode, flags), case(kind, mode, flags)];
                        for context in [&one, &other] {
                            context.set_credentials(Credentials::user(user, user, &[]));
                        }
                        let held = other.hold(Base::CWD, b"/f", false).unwrap();
                        let (expected, got) = (by_path(&one), by_held(&other, &held));
                        assert_eq!(got, expected, "{what} of \"f{kind}\" {mode:o} on {flags:?} by {user}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_held_is_worked_on_wherever_its_name_went() {
    let gone: [fn(&Context); 2] = [
        |context| context.rename(PathAt::cwd(b"/f"), PathAt::cwd(b"/g"), RenameFlags::default()).unwrap(),
        |context| context.unlink(Base::CWD, b"/f").unwrap(),
    ];
    for go in gone {
        for (what, by_path, by_held) in PAIRS {
            let [one, other] = [0, 1].map(|_| case("", 0o644, MountFlags::default()));
            let held = other.hold(Base::CWD, b"/f", false).unwrap();
            go(&other);
            assert_eq!(by_held(&other, &held), by_path(&one), "{what}");
        }
    }
}

fn called(held: &PathRef) -> Option<(u64, String)> {
    let (parent, name) = held.parent_and_name()?;
    Some((parent.attr().unwrap().ino, String::from_utf8(name.into()).unwrap()))
}

#[test]
fn a_place_knows_its_directory_and_name_of_now() {
    let store = Store::new(StoreOptions::default());
    let (a, b) = (store.make(ROOT, "a/"), store.make(ROOT, "b/"));
    let node = store.make(a, "x");
    store.link(b, "a-name-of-more-than-thirty-two-bytes", node);
    let context = store.tree().context();
    let hold = |path: &str| context.hold(Base::CWD, path.as_bytes(), false).unwrap();
    let (x, long) = (hold("/a/x"), hold("/b/a-name-of-more-than-thirty-two-bytes"));
    let name = |name: &str| name.to_owned();
    assert_eq!(called(&hold("/")), None);
    assert_eq!(called(&hold("/a")), Some((ROOT, name("a"))));
    assert_eq!(called(&x), Some((a, name("x"))));
    // Of a file's names it is the one that was followed.
    assert_eq!(called(&long), Some((b, name("a-name-of-more-than-thirty-two-bytes"))));
    assert_eq!((x.identity(), x.mount_id()), (long.identity(), long.mount_id()));
    context.rename(PathAt::cwd(b"/a/x"), PathAt::cwd(b"/b/y"), RenameFlags::default()).unwrap();
    assert_eq!(called(&x), Some((b, name("y"))));
    context.rename(PathAt::cwd(b"/b"), PathAt::cwd(b"/a/b"), RenameFlags::default()).unwrap();
    assert_eq!(called(&x), Some((b, name("y"))));
    context.unlink(Base::CWD, b"/a/b/y").unwrap();
    assert_eq!(called(&x), None);
    assert_eq!(x.identity(), long.identity());
}

#[test]
fn what_a_mount_shows_first_has_no_name_there() {
    let (store, upper) = (Store::new(StoreOptions::default()), Store::new(StoreOptions::default()));
    let m = store.make(ROOT, "m/");
    store.make(m, "f");
    store.make(ROOT, "n/");
    upper.make(ROOT, "f");
    let context = store.tree().context();
    let hold = |path: &str| context.hold(Base::CWD, path.as_bytes(), false).unwrap();
    let below = hold("/m/f");
    context.mount((*upper).clone(), Base::CWD, b"/m", MountFlags::default()).unwrap();
    context.bind(PathAt::cwd(b"/m"), PathAt::cwd(b"/n"), MountFlags::default(), false).unwrap();
    assert_eq!((called(&hold("/m")), called(&hold("/n"))), (None, None));
    let (one, other) = (hold("/m/f"), hold("/n/f"));
    assert_eq!((called(&one), called(&other)), (Some((ROOT, "f".into())), Some((ROOT, "f".into()))));
    // One inode seen through two mounts; another that has its number.
    assert_eq!(one.identity(), other.identity());
    assert_ne!(one.mount_id(), other.mount_id());
    let covered = below.parent_and_name().unwrap().0;
    assert_eq!((covered.attr().unwrap().ino, covered.mount_id()), (m, hold("/").mount_id()));
    assert_ne!(below.identity(), one.identity());
}

/// Asks for the name of `watched` all the while `from` and `to` change places; it must be one of `places`.
fn check_moving(context: &Context, watched: &str, (from, to): (&str, &str), places: &[(u64, String)]) {
    const MOVES: usize = 20_000;
    let held = context.hold(Base::CWD, watched.as_bytes(), false).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let found = called(&held).expect("it always has a name");
                    assert!(places.contains(&found), "{found:?}");
                }
            });
        }
        for number in 0..MOVES {
            let (from, to) = if number % 2 == 0 { (from, to) } else { (to, from) };
            let (from, to) = (PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()));
            assert_eq!(context.rename(from, to, RenameFlags::default()), Ok(()));
        }
        is_over.store(true, Relaxed);
    });
    assert_eq!(called(&held), Some(places[0].clone()));
}

#[test]
fn a_name_that_moves_all_the_time_is_never_torn_and_never_missing() {
    let long = "in-b-where-the-name-takes-more-than-thirty-two-bytes";
    let store = Store::new(StoreOptions { names_in_cache: true, ..StoreOptions::default() });
    let context = store.tree().context();
    for dir in ["/a", "/b"] {
        context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
    }
    context.mknod(Base::CWD, b"/a/in-a", 0o644, 0).unwrap();
    let ino = |path: &str| context.attr(Base::CWD, path.as_bytes(), true).unwrap().ino;
    let places = [(ino("/a"), "in-a".to_owned()), (ino("/b"), long.to_owned())];
    check_moving(&context, "/a/in-a", ("/a/in-a", &format!("/b/{long}")), &places);
    // That the directory moves changes nothing.
    check_moving(&context, "/a/in-a", ("/a", "/b/elsewhere"), &places[..1]);
}
