//! Attributes that the file system said may be old.

use crate::truth::store::{ROOT, Store};
use lightfoot_vfs::{
    Attr, Base, Context, Credentials, Errno, Fallback, MAY_READ, OpenFile, OpenFlags, PathAt, PathRef, Resolve,
    S_IFDIR, SetAttr, Vfs,
};
use testkit::StoreOptions;

/// A file, its tree, and all by which it can be looked at.
struct Case {
    store: Store,
    node: u64,
    vfs: Vfs,
    context: Context,
    held: PathRef,
    file: OpenFile,
}

impl Case {
    fn new() -> Self {
        let store = Store::new(StoreOptions::default());
        let dir = store.make(ROOT, "d/");
        let node = store.make(dir, "f");
        store.link(ROOT, "g", node);
        let vfs = store.tree();
        let context = vfs.context();
        let held = context.hold(Base::CWD, b"/d/f", true).unwrap();
        let file = context.open(Base::CWD, b"/d/f", OpenFlags::RDWR, 0).unwrap();
        context.attr(Base::CWD, b"/g", true).unwrap();
        Self { store, node, vfs, context, held, file }
    }

    /// Marks the file stale.
    fn mark_stale(&self) {
        self.file.sync(false).unwrap();
    }

    fn asked(&self) -> u32 {
        self.store.log().attribute_requests
    }

    fn fallbacks(&self) -> u64 {
        self.vfs.fallbacks(Fallback::Attributes)
    }
}

/// Looks at the file's attributes.
type Look = fn(&Case) -> Result<Attr, Errno>;

fn many(case: &Case, paths: &[&[u8]]) -> Result<Attr, Errno> {
    let mut all = vec![Err(Errno::EIO); paths.len()];
    case.context.attr_many(Base::CWD, paths, true, |number, found| all[number] = found.map(|(attr, _)| attr.unpack()));
    // Of different answers the one that was asked for last, if something changes meanwhile.
    let first = all[0];
    all.into_iter().rfind(|one| *one != first).unwrap_or(first)
}

const LOOKS: [(&str, Look); 8] = [
    ("path", |case| case.context.attr(Base::CWD, b"/d/f", true)),
    ("its other name", |case| case.context.attr(Base::CWD, b"/g", true)),
    ("path from its directory", |case| {
        let dir = case.context.hold(Base::CWD, b"/d", true)?;
        case.context.attr(Base::at(&dir), b"f", false)
    }),
    ("held", |case| case.held.attr()),
    ("open file", |case| case.file.attr()),
    ("one of many", |case| many(case, &[b"/d/f"])),
    ("many", |case| many(case, &[b"/d/f", b"/g", b"/d/../g", b"/d/f"])),
    ("changed", |case| case.context.set_attr_held(&case.held, &SetAttr { uid: Some(0), ..SetAttr::default() })),
];

#[test]
fn what_is_in_doubt_is_asked_for_once_whichever_way_it_is_looked_at() {
    for (what, look) in LOOKS {
        let case = Case::new();
        case.store.change(case.node, |attr| (attr.size, attr.nlink) = (7, 5));
        assert_eq!(look(&case).map(|attr| (attr.size, attr.nlink)), Ok((0, 2)), "{what}: nobody said so");
        assert_eq!(case.asked(), 0, "{what}");
        case.mark_stale();
        for _ in 0..3 {
            assert_eq!(look(&case).map(|attr| (attr.size, attr.nlink)), Ok((7, 5)), "{what}");
            assert_eq!(case.asked(), 1, "{what}");
        }
        // What was asked for one way is known the others.
        for (other, look) in LOOKS {
            assert_eq!(look(&case).map(|attr| attr.size), Ok(7), "{what}, then {other}");
        }
        assert_eq!(case.asked(), 1, "{what}");
    }
}

#[test]
fn an_error_is_the_answer_and_leaves_the_doubt() {
    for (what, look) in LOOKS {
        let case = Case::new();
        case.store.change(case.node, |attr| attr.size = 7);
        case.mark_stale();
        for errno in [Errno::EIO, Errno::ESTALE, Errno::EIO] {
            case.store.log().attributes_error = Some(errno);
            let before = case.asked();
            assert_eq!(look(&case).map(|attr| attr.size), Err(errno), "{what}");
            // After ESTALE a path is looked up again, with another answer.
            let most = if errno == Errno::ESTALE { 2 } else { 1 };
            // Of many each one asks.
            assert!((1..=most).contains(&(case.asked() - before)) || what == "many", "{what}, {errno:?}");
        }
        case.store.log().attributes_error = None;
        assert_eq!(look(&case).map(|attr| attr.size), Ok(7), "{what}");
    }
}

#[test]
fn a_doubt_that_begins_again_during_the_question_is_not_lost() {
    for (what, look) in LOOKS {
        let case = Case::new();
        case.mark_stale();
        let (store, node) = (case.store.clone(), case.node);
        case.store.once_during(move |inode| {
            store.change(node, |attr| attr.size = 8);
            inode.mark_stale();
        });
        let first = look(&case).map(|attr| attr.size);
        assert!([Ok(0), Ok(8)].contains(&first), "{what}: {first:?}");
        assert_eq!(look(&case).map(|attr| attr.size), Ok(8), "{what}");
    }
}

#[test]
fn an_answer_from_before_a_change_does_not_undo_it() {
    type Change = fn(&Context);
    let changes: [(&str, Change); 4] = [
        ("chmod", |context| {
            let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
            context.set_attr(Base::CWD, b"/d/f", true, &set).unwrap();
        }),
        ("chown", |context| {
            let set = SetAttr { uid: Some(7), ..SetAttr::default() };
            context.set_attr(Base::CWD, b"/d/f", true, &set).unwrap();
        }),
        ("write", |context| {
            let file = context.open(Base::CWD, b"/d/f", OpenFlags::WRONLY, 0).unwrap();
            assert_eq!(file.write_at(0, b"12345"), Ok((5, 5)));
        }),
        ("link", |context| context.link(PathAt::cwd(b"/d/f"), PathAt::cwd(b"/new"), false).unwrap()),
    ];
    for (what, change) in changes {
        for anew in [true, false] {
            let case = Case::new();
            let (vfs, store, node) = (case.vfs.clone(), case.store.clone(), case.node);
            case.store.once_during(move |_| {
                change(&vfs.context());
                // The truth follows what the VFS keeps.
                let now = vfs.context().hold(Base::CWD, b"/g", true).unwrap().attr().unwrap();
                store.change(node, |attr| *attr = now);
            });
            if anew {
                assert!(case.held.attr_anew().is_ok());
            } else {
                case.mark_stale();
                assert!(case.held.attr().is_ok());
            }
            let is = case.held.attr().unwrap();
            let seen = (is.mode & 0o777, is.uid, is.size, is.nlink);
            let changed = match what {
                "chmod" => (0o600, 0, 0, 2),
                "chown" => (0o644, 7, 0, 2),
                "write" => (0o644, 0, 5, 2),
                _ => (0o644, 0, 0, 3),
            };
            assert_eq!(seen, changed, "{what}, anew: {anew}");
        }
    }
}

#[test]
fn attributes_can_be_asked_for_whatever_is_known() {
    let case = Case::new();
    for round in 1..4 {
        case.store.change(case.node, |attr| attr.size = round);
        assert_eq!(case.held.attr().unwrap().size, round - 1);
        assert_eq!(case.held.attr_anew().unwrap().size, round);
        assert_eq!((case.held.attr().unwrap().size, case.asked()), (round, round as u32));
    }
    case.store.log().attributes_error = Some(Errno::EIO);
    assert_eq!(case.held.attr_anew(), Err(Errno::EIO));
    // Attributes that could not be requested stay stale.
    assert_eq!(case.held.attr(), Err(Errno::EIO));
    case.store.log().attributes_error = None;
    assert_eq!(case.held.attr().unwrap().size, 3);
}

#[test]
fn a_walk_leaves_rcu_walk_once_for_a_doubt() {
    let by_path: Vec<_> =
        LOOKS.into_iter().filter(|(what, _)| what.contains("path") || what.contains("name")).collect();
    assert_eq!(by_path.len(), 3);
    for (what, look) in by_path {
        let case = Case::new();
        for round in 1..4 {
            case.mark_stale();
            for _ in 0..3 {
                look(&case).unwrap();
                assert_eq!((case.fallbacks(), case.asked()), (round, round as u32), "{what}");
            }
        }
    }
}

#[test]
fn a_walk_of_cached_names_only_fails_with_eagain_for_stale_attributes() {
    let case = Case::new();
    let cached = Base::CWD.within(Resolve::CACHED);
    assert!(case.context.attr(cached, b"/d/f", true).is_ok());
    case.mark_stale();
    assert_eq!(case.context.attr(cached, b"/d/f", true), Err(Errno::EAGAIN));
    assert_eq!(case.asked(), 0);
    assert!(case.context.attr(Base::CWD, b"/d/f", true).is_ok());
    assert!(case.context.attr(cached, b"/d/f", true).is_ok());
}

#[test]
fn rights_are_those_of_the_attributes_that_are_now() {
    type Try = fn(&Context, &Case) -> Result<(), Errno>;
    let tries: [(&str, Try); 6] = [
        ("access", |user, _| user.access(Base::CWD, b"/d/f", true, MAY_READ)),
        ("access_held", |user, case| user.access_held(&case.held, MAY_READ)),
        ("open", |user, _| user.open(Base::CWD, b"/d/f", OpenFlags::RDONLY, 0).map(drop)),
        ("open or make", |user, _| user.open(Base::CWD, b"/d/f", OpenFlags::CREAT, 0).map(drop)),
        ("open_held", |user, case| user.open_held(&case.held, OpenFlags::RDONLY).map(drop)),
        ("get_xattr", |user, _| match user.get_xattr(Base::CWD, b"/d/f", true, b"user.a") {
            Err(Errno::ENODATA) => Ok(()),
            reply => reply.map(drop),
        }),
    ];
    for (what, attempt) in tries {
        let case = Case::new();
        let user = case.context.fork();
        user.set_credentials(Credentials::user(5, 5, &[]));
        assert_eq!(attempt(&user, &case), Ok(()), "{what}");
        for (mode, answer) in [(0o640, Err(Errno::EACCES)), (0o644, Ok(()))] {
            case.store.change(case.node, |attr| attr.mode = attr.kind() | mode);
            case.mark_stale();
            assert_eq!(attempt(&user, &case), answer, "{what} {mode:o}");
        }
    }
}

#[test]
fn a_directory_s_new_mode_is_obeyed_by_walks_once_it_was_seen() {
    let case = Case::new();
    let dir = case.context.open(Base::CWD, b"/d", OpenFlags::DIRECTORY, 0).unwrap();
    let node = dir.attr().unwrap().ino;
    let user = case.context.fork();
    user.set_credentials(Credentials::user(5, 5, &[]));
    let walk = || user.attr(Base::CWD, b"/d/f", true).map(|attr| attr.ino);
    assert_eq!(walk(), Ok(case.node));
    for (mode, answer) in [(0o700, Err(Errno::EACCES)), (0o711, Ok(case.node)), (0o600, Err(Errno::EACCES))] {
        case.store.change(node, |attr| attr.mode = S_IFDIR | mode);
        dir.sync(false).unwrap();
        assert_eq!(user.attr(Base::CWD, b"/d", true).unwrap().mode, S_IFDIR | mode);
        assert_eq!(walk(), answer, "{mode:o}");
    }
}

#[test]
fn a_file_that_became_something_else_is_stale() {
    let case = Case::new();
    case.store.change(case.node, |attr| attr.mode = S_IFDIR | 0o755);
    case.mark_stale();
    for (what, look) in LOOKS {
        // A path leads to the directory now. What is held or open was a file.
        let is_path = !["held", "open file", "changed"].contains(&what);
        let expected = if is_path { Ok(S_IFDIR | 0o755) } else { Err(Errno::ESTALE) };
        assert_eq!(look(&case).map(|attr| attr.mode), expected, "{what}");
    }
    let Case { store, file, .. } = case;
    drop(file);
    let requests = store.take_file_requests();
    assert_eq!(requests.len(), 2, "an opened file is released: {requests:?}");
}

#[test]
fn a_push_of_an_inode_is_a_doubt() {
    let case = Case::new();
    case.store.change(case.node, |attr| attr.size = 7);
    case.store.invalidator().inode(case.node);
    assert_eq!((case.file.attr().unwrap().size, case.held.attr().unwrap().size), (7, 7));
}
