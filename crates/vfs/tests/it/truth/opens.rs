//! Opens and releases that the file system gets, and the writers that a mount counts.

use crate::truth::store::{FileRequest, ROOT, Store};
use lightfoot_vfs::{Base, Context, Errno, MountFlags, OpenFile, OpenFlags};
use testkit::StoreOptions;

const NOFOLLOW: OpenFlags = OpenFlags::NOFOLLOW;

/// Opens with flags.
type Open = fn(&Context, OpenFlags) -> Result<OpenFile, Errno>;

/// Ways to open a file, and the flags of the way.
const WAYS: [(&str, Open, OpenFlags); 6] = [
    ("path", |context, flags| context.open(Base::CWD, b"/f", flags, 0), OpenFlags::RDONLY),
    ("link", |context, flags| context.open(Base::CWD, b"/l", flags, 0), OpenFlags::RDONLY),
    ("held", |context, flags| context.open_held(&context.hold(Base::CWD, b"/f", true)?, flags), OpenFlags::RDONLY),
    ("path, made if not there", |context, flags| context.open(Base::CWD, b"/f", flags, 0o644), OpenFlags::CREAT),
    ("made", |context, flags| context.open(Base::CWD, b"/new", flags, 0o644), OpenFlags::CREAT),
    (
        "made anew",
        |context, flags| context.open(Base::CWD, b"/new", flags, 0o644),
        OpenFlags::CREAT.union(OpenFlags::EXCL),
    ),
];

/// Flags that a file is opened with.
const FLAGS: [OpenFlags; 6] = [
    OpenFlags::RDONLY,
    OpenFlags::WRONLY,
    OpenFlags::RDWR,
    OpenFlags::RDONLY.union(OpenFlags::TRUNC),
    OpenFlags::RDWR.union(OpenFlags::TRUNC),
    OpenFlags::WRONLY.union(OpenFlags::APPEND),
];

fn case() -> (Store, Context) {
    let store = Store::new(StoreOptions::default());
    store.make(ROOT, "f");
    store.make(ROOT, "d/");
    let context = store.tree().context();
    context.symlink(b"f", Base::CWD, b"/l").unwrap();
    (store, context)
}

/// Whether nobody has anything open for writing.
fn has_no_writer(context: &Context) -> bool {
    let done = context.remount(Base::CWD, b"/", MountFlags::RDONLY);
    assert!(matches!(done, Ok(()) | Err(Errno::EBUSY)), "{done:?}");
    context.remount(Base::CWD, b"/", MountFlags::default()).unwrap();
    done.is_ok()
}

#[test]
fn each_open_that_is_reported_is_followed_by_one_release_with_its_flags() {
    for (what, open, with) in WAYS {
        for flags in FLAGS {
            let (store, context) = case();
            let flags = flags.union(with);
            let file = open(&context, flags).unwrap();
            let node = file.attr().unwrap().ino;
            assert_eq!(store.take_file_requests(), [FileRequest::Opened(node, flags)], "{what} {flags:?}");
            let again = context.open_held(file.held(), OpenFlags::RDONLY).unwrap();
            assert_eq!(store.take_file_requests(), [FileRequest::Opened(node, OpenFlags::RDONLY)], "{what} {flags:?}");
            assert_eq!(has_no_writer(&context), !flags.can_write(), "{what} {flags:?}");
            drop(file);
            assert_eq!(store.take_file_requests(), [FileRequest::Released(node, flags)], "{what} {flags:?}");
            assert!(has_no_writer(&context), "{what} {flags:?}");
            drop(again);
            assert_eq!(
                store.take_file_requests(),
                [FileRequest::Released(node, OpenFlags::RDONLY)],
                "{what} {flags:?}"
            );
        }
    }
}

#[test]
fn an_open_that_the_file_system_refuses_leaves_nothing() {
    for (what, open, with) in WAYS {
        for flags in FLAGS {
            for errno in [Errno::EACCES, Errno::EIO] {
                let (store, context) = case();
                store.log().open_error = Some(errno);
                let flags = flags.union(with);
                assert_eq!(open(&context, flags).map(drop), Err(errno), "{what} {flags:?}");
                assert_eq!(store.take_file_requests(), [], "{what} {flags:?}");
                assert!(has_no_writer(&context), "{what} {flags:?}");
                // And is no reason to refuse the next.
                store.log().open_error = None;
                if !flags.contains(OpenFlags::EXCL) {
                    drop(open(&context, flags).unwrap());
                    assert_eq!(store.take_file_requests().len(), 2, "{what} {flags:?}");
                }
            }
        }
    }
}

#[test]
fn an_open_whose_cut_fails_is_released() {
    for (what, open, with) in WAYS.into_iter().filter(|(what, ..)| !what.starts_with("made")) {
        for flags in FLAGS.into_iter().filter(|flags| flags.contains(OpenFlags::TRUNC)) {
            let (store, context) = case();
            store.change(2, |attr| attr.size = 5);
            store.log().set_len_error = Some(Errno::EIO);
            let flags = flags.union(with);
            assert_eq!(open(&context, flags).map(drop), Err(Errno::EIO), "{what} {flags:?}");
            assert_eq!(
                store.take_file_requests(),
                [FileRequest::Opened(2, flags), FileRequest::Released(2, flags)],
                "{what} {flags:?}"
            );
            assert!(has_no_writer(&context), "{what} {flags:?}");
        }
    }
}

#[test]
fn what_is_refused_before_it_is_opened_is_not_reported() {
    let cases = [
        ("/d", OpenFlags::RDWR, Errno::EISDIR),
        ("/d", OpenFlags::CREAT, Errno::EISDIR),
        ("/f", OpenFlags::DIRECTORY, Errno::ENOTDIR),
        ("/f", OpenFlags::CREAT.union(OpenFlags::EXCL), Errno::EEXIST),
        ("/l", NOFOLLOW, Errno::ELOOP),
        ("/none", OpenFlags::RDWR, Errno::ENOENT),
    ];
    for (path, flags, errno) in cases {
        let (store, context) = case();
        assert_eq!(context.open(Base::CWD, path.as_bytes(), flags, 0).map(drop), Err(errno), "{path} {flags:?}");
        assert_eq!(store.take_file_requests(), [], "{path} {flags:?}");
        assert!(has_no_writer(&context), "{path} {flags:?}");
    }
    let (store, context) = case();
    context.remount(Base::CWD, b"/", MountFlags::RDONLY).unwrap();
    for (what, open, with) in WAYS {
        for flags in [OpenFlags::WRONLY, OpenFlags::RDWR.union(OpenFlags::TRUNC)] {
            assert!(open(&context, flags.union(with)).is_err(), "{what} {flags:?}");
            assert_eq!(store.take_file_requests(), [], "{what} {flags:?}");
        }
    }
    context.remount(Base::CWD, b"/", MountFlags::default()).unwrap();
    assert!(has_no_writer(&context));
}

#[test]
fn places_are_not_reported() {
    let (store, context) = case();
    let opened = [
        context.open(Base::CWD, b"/f", OpenFlags::PATH, 0),
        context.open(Base::CWD, b"/f", OpenFlags::PATH.union(OpenFlags::RDWR).union(OpenFlags::TRUNC), 0),
        context.open(Base::CWD, b"/l", OpenFlags::PATH.union(NOFOLLOW), 0),
        context.open(Base::CWD, b"/d", OpenFlags::PATH.union(OpenFlags::DIRECTORY), 0),
        context.open_held(&context.hold(Base::CWD, b"/f", true).unwrap(), OpenFlags::PATH),
    ];
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    assert!(has_no_writer(&context));
    drop(opened);
    assert_eq!(store.take_file_requests(), []);
}

#[test]
fn a_directory_is_reported_too() {
    let (store, context) = case();
    let open = |flags| context.open(Base::CWD, b"/d", flags, 0);
    let directory = open(OpenFlags::DIRECTORY).unwrap();
    let node = directory.attr().unwrap().ino;
    assert_eq!(store.take_file_requests(), [FileRequest::Opened(node, OpenFlags::DIRECTORY)]);
    drop(directory);
    assert_eq!(store.take_file_requests(), [FileRequest::Released(node, OpenFlags::DIRECTORY)]);
    store.log().open_error = Some(Errno::EMFILE);
    assert_eq!(open(OpenFlags::RDONLY).map(drop), Err(Errno::EMFILE));
    assert_eq!(store.take_file_requests(), []);
}

#[test]
fn a_file_without_a_name_is_reported_too() {
    let (store, context) = case();
    for refusal in [None, Some(Errno::EMFILE)] {
        store.log().open_error = refusal;
        let flags = OpenFlags::TMPFILE.union(OpenFlags::RDWR);
        let file = context.open(Base::CWD, b"/d", flags, 0o600);
        assert_eq!(file.as_ref().err().copied(), refusal);
        drop(file);
        let requests = store.take_file_requests();
        let is_balanced =
            matches!(requests[..], [FileRequest::Opened(a, f), FileRequest::Released(b, g)] if a == b && f == g);
        assert!(is_balanced == refusal.is_none() && requests.len() == if is_balanced { 2 } else { 0 }, "{requests:?}");
        assert!(has_no_writer(&context));
    }
}

/// `/d/e/f` and `/link` to it, which the cache has, and a store in which an open of a file that was removed fails with `ESTALE`.
fn case_with_stale_opens() -> (Store, Context) {
    let (store, context) = case();
    let deep = store.make(store.make(store.node("d"), "e/"), "f");
    context.symlink(b"d/e/f", Base::CWD, b"/link").unwrap();
    for path in ["/f", "/l", "/link"] {
        assert!(context.attr(Base::CWD, path.as_bytes(), true).is_ok());
    }
    let old = [store.node("f"), deep];
    store.log().stale = old.into();
    (store, context)
}

#[test]
fn an_open_of_a_file_that_others_replaced_opens_the_new_one() {
    for (path, node_of) in [("/f", "f"), ("/l", "f"), ("/d/e/f", "d/e/f"), ("/link", "d/e/f")] {
        for flags in [OpenFlags::RDONLY, OpenFlags::WRONLY | OpenFlags::TRUNC, OpenFlags::WRONLY | OpenFlags::CREAT] {
            let (store, context) = case_with_stale_opens();
            store.remove(ROOT, "f");
            store.make(ROOT, "f");
            // The directories, too.
            let dir = store.node("d");
            store.remove(store.node("d/e"), "f");
            store.remove(dir, "e");
            store.remove(ROOT, "d");
            store.make(store.make(store.make(ROOT, "d/"), "e/"), "f");
            let opened = context.open(Base::CWD, path.as_bytes(), flags, 0o644).and_then(|file| file.attr());
            assert_eq!(opened.map(|attr| attr.ino), Ok(store.node(node_of)), "{path}, {flags:?}");
            // The cache leads there from now on.
            let seen = context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino);
            assert_eq!(seen, Ok(store.node(node_of)), "{path}");
        }
    }
}

#[test]
fn an_open_of_a_file_that_is_gone_fails_as_if_it_had_never_been_there() {
    let (store, context) = case_with_stale_opens();
    store.remove(ROOT, "f");
    let held = context.hold(Base::CWD, b"/f", true).unwrap();
    assert_eq!(context.open_held(&held, OpenFlags::RDONLY).map(drop), Err(Errno::ESTALE), "a held file has no other");
    assert_eq!(context.open(Base::CWD, b"/f", OpenFlags::RDONLY, 0).map(drop), Err(Errno::ENOENT));
    let made = context.open(Base::CWD, b"/f", OpenFlags::WRONLY | OpenFlags::CREAT, 0o600).and_then(|file| file.attr());
    assert_eq!(made.map(|attr| attr.ino), Ok(store.node("f")));
}

#[test]
fn an_open_that_stays_stale_is_tried_twice() {
    let (store, context) = case_with_stale_opens();
    let opens = || store.take_file_requests().len();
    opens();
    assert_eq!(context.open(Base::CWD, b"/f", OpenFlags::RDONLY, 0).map(drop), Err(Errno::ESTALE));
    assert_eq!(opens(), 2);
}
