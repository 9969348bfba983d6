//! Attributes that changes return ([`lightfoot_vfs::After`]): no request follows, and they are those of the file system.

use crate::truth::store::once;
use lightfoot_vfs::{Attr, Base, Context, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, SetTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use testkit::{Call, Store, StoreOptions};

const PATHS: [&str; 9] = ["/", "/a", "/a/f", "/a/g", "/b", "/b/h", "/b/also_f", "/b/dir", "/b/new"];

/// A tree whose attributes are all in the cache, and a count of the requests for attributes.
struct Case {
    store: Store,
    context: Context,
    requests: Arc<AtomicU32>,
}

impl Case {
    fn new(remote: bool) -> Self {
        let options =
            StoreOptions { reports_attributes: true, returns_attributes: true, remote, ..StoreOptions::default() };
        let store = Store::with_options(options, &["a/", "a/f", "a/g", "b/", "b/h", "b/dir/"]);
        store.link(store.node("b"), "also_f", store.node("a/f"));
        let requests = Arc::new(AtomicU32::new(0));
        let count = requests.clone();
        store.before(move |call| {
            if matches!(call, Call::Attributes { .. }) {
                count.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        let case = Self { context: store.tree().context(), store, requests };
        case.seen();
        case.requests.store(0, Relaxed);
        case
    }

    /// What the cache shows, and what the store has.
    fn seen(&self) -> [Vec<Result<Attr, Errno>>; 2] {
        let shown = PATHS.map(|path| self.context.attr(Base::CWD, path.as_bytes(), true));
        let requests = self.requests.load(Relaxed);
        let stored = PATHS.map(|path| self.context.hold(Base::CWD, path.as_bytes(), true)?.attr_anew());
        self.requests.store(requests, Relaxed);
        [shown.into(), stored.into()]
    }

    /// Checks that the cache shows what the store has; returns how many requests that took.
    fn check(&self, what: &str) -> u32 {
        let [shown, stored] = self.seen();
        for ((shown, stored), path) in shown.into_iter().zip(stored).zip(PATHS) {
            assert_eq!(shown, stored, "{what}: {path}");
        }
        self.requests.swap(0, Relaxed)
    }
}

type Change = fn(&Context) -> Result<(), Errno>;

fn set(context: &Context, path: &str, set: SetAttr) -> Result<(), Errno> {
    context.set_attr(Base::CWD, path.as_bytes(), true, &set)
}

fn rename(context: &Context, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
    context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags)
}

fn write(context: &Context, flags: OpenFlags) -> Result<(), Errno> {
    let file = context.open(Base::CWD, b"/a/f", flags, 0)?;
    file.write_at(0, b"some data").map(drop)
}

const CHANGES: [(&str, Change); 20] = [
    ("mknod", |context| context.mknod(Base::CWD, b"/b/new", 0o640, 0)),
    ("mkdir", |context| context.mkdir(Base::CWD, b"/b/new", 0o750)),
    ("symlink", |context| context.symlink(b"h", Base::CWD, b"/b/new")),
    ("create", |context| context.open(Base::CWD, b"/b/new", OpenFlags::WRONLY | OpenFlags::CREAT, 0o600).map(drop)),
    ("link", |context| context.link(PathAt::cwd(b"/a/f"), PathAt::cwd(b"/b/new"), false)),
    ("unlink", |context| context.unlink(Base::CWD, b"/a/g")),
    ("unlink one of two names", |context| context.unlink(Base::CWD, b"/b/also_f")),
    ("rmdir", |context| context.rmdir(Base::CWD, b"/b/dir")),
    ("rename in one directory", |context| rename(context, "/b/h", "/b/new", RenameFlags::default())),
    ("rename", |context| rename(context, "/a/g", "/b/new", RenameFlags::default())),
    ("rename of a directory", |context| rename(context, "/b/dir", "/a/g_dir", RenameFlags::default())),
    ("rename over one of two names", |context| rename(context, "/a/g", "/b/also_f", RenameFlags::default())),
    ("exchange", |context| rename(context, "/a/g", "/b/dir", RenameFlags::EXCHANGE)),
    ("exchange in one directory", |context| rename(context, "/b/h", "/b/dir", RenameFlags::EXCHANGE)),
    ("chmod", |context| set(context, "/b", SetAttr { mode: Some(0o711), ..SetAttr::default() })),
    ("chown", |context| set(context, "/a/f", SetAttr { uid: Some(7), gid: Some(8), ..SetAttr::default() })),
    ("utimes", |context| set(context, "/a/f", SetAttr { mtime: Some(SetTime::At(5)), ..SetAttr::default() })),
    ("truncate", |context| set(context, "/a/f", SetAttr { size: Some(5000), ..SetAttr::default() })),
    ("write", |context| write(context, OpenFlags::WRONLY)),
    ("append", |context| write(context, OpenFlags::WRONLY | OpenFlags::APPEND)),
];

#[test]
fn after_a_change_nobody_requests_attributes() {
    for remote in [false, true] {
        for (what, change) in CHANGES {
            let case = Case::new(remote);
            assert_eq!(change(&case.context), Ok(()), "{what}");
            assert_eq!(case.check(what), 0, "{what}, remote: {remote}");
        }
    }
}

#[test]
fn after_two_changes_at_once_the_attributes_are_requested() {
    type During = fn(&Context) -> Result<(), Errno>;
    let during: [(&str, &str, During); 3] = [
        ("chown", "/a/f", |context| set(context, "/a/f", SetAttr { uid: Some(3), ..SetAttr::default() })),
        ("utimes", "/b", |context| set(context, "/b", SetAttr { mtime: Some(SetTime::At(1)), ..SetAttr::default() })),
        ("chmod", "/b/also_f", |context| set(context, "/a/f", SetAttr { mode: Some(0), ..SetAttr::default() })),
    ];
    for (other, path, during) in during {
        for (what, change) in CHANGES {
            let case = Case::new(true);
            let context = case.context.fork();
            let is_change = |call: &Call<'_>| {
                !matches!(
                    call,
                    Call::Lookup { .. }
                        | Call::Attributes { .. }
                        | Call::Open { .. }
                        | Call::Release { .. }
                        | Call::Evict { .. }
                )
            };
            once(&case.store, is_change, move || assert_eq!(during(&context), Ok(()), "{path}"));
            assert_eq!(change(&case.context), Ok(()), "{what}");
            case.check(&format!("{what}, meanwhile {other}"));
        }
    }
}

#[test]
fn an_invalidation_during_a_change_is_newer_than_its_reply() {
    for (what, change) in CHANGES {
        let case = Case::new(true);
        let (store, nodes) = (case.store.clone(), ["a", "a/f", "b", "b/h"].map(|path| case.store.node(path)));
        let is_change = |call: &Call<'_>| {
            matches!(
                call,
                Call::Create { .. }
                    | Call::Link { .. }
                    | Call::Unlink { .. }
                    | Call::Rename(_)
                    | Call::SetAttr { .. }
                    | Call::SetLen { .. }
                    | Call::Write { .. }
            )
        };
        once(&case.store, is_change, move || {
            for node in nodes {
                store.change(node, |attr| attr.atime = 77);
                store.invalidator().inode(node);
            }
        });
        assert_eq!(change(&case.context), Ok(()), "{what}");
        case.check(what);
    }
}

#[test]
fn changes_by_two_threads_leave_the_attributes_of_the_store() {
    for round in 0..40 {
        let case = Case::new(round % 2 == 0);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let context = case.context.fork();
                scope.spawn(move || {
                    for step in 0..50 {
                        // (Some fail, as their names are gone.)
                        let (_, change) = CHANGES[(step * 7 + thread * 5 + round) % CHANGES.len()];
                        let _ = change(&context);
                    }
                });
            }
        });
        case.check("after all changes");
    }
}

#[test]
fn where_attributes_are_the_vfss_what_changes_return_is_ignored() {
    let store = Store::new(StoreOptions { returns_attributes: true, ..StoreOptions::default() });
    store.make(Store::ROOT, "f");
    let context = store.tree().context();
    let node = store.node("f");
    assert_eq!(context.attr(Base::CWD, b"/f", true).map(|attr| attr.uid), Ok(0));
    store.change(node, |attr| attr.uid = 9);
    set(&context, "/f", SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    assert_eq!(context.attr(Base::CWD, b"/f", true).map(|attr| (attr.uid, attr.mode & 0o777)), Ok((0, 0o600)));
}
