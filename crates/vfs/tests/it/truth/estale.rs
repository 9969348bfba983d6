//! Operations on paths whose files or directories another client has replaced.

use crate::truth::store::ROOT;
use lightfoot_vfs::{
    After, Base, Context, Errno, FileSystem, Layer, MAY_READ, OpenFlags, PathAt, Rename, RenameFlags, Request, S_IFIFO,
    SetAttr, SetXattr, Valid, Vfs,
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use testkit::{Call, Store, StoreOptions};

/// The inodes that a request is about.
fn nodes(call: &Call<'_>) -> Vec<u64> {
    match *call {
        Call::Lookup { dir, .. } | Call::ReadDir { dir, .. } | Call::Create { dir, .. } => vec![dir.node()],
        Call::Link { dir, inode, .. } | Call::Unlink { dir, inode, .. } => vec![dir.node(), inode.node()],
        Call::Rename(Rename { old_dir, inode, new_dir, target, .. }) => {
            [old_dir, inode, new_dir].into_iter().chain(target).map(|inode| inode.node()).collect()
        }
        Call::SetAttr { inode, .. }
        | Call::Attributes { inode }
        | Call::Open { inode, .. }
        | Call::SetLen { inode, .. }
        | Call::Xattr { inode } => vec![inode.node()],
        _ => Vec::new(),
    }
}

/// What the tree has, parents first.
const PATHS: [&str; 6] = ["d/", "d/e/", "d/e/f", "d/e/s/", "d/e/g", "l -> d/e/f"];

/// A store whose tree under `d` was replaced by another client, and a tree that has the old one in its cache. Requests about files that
/// are gone fail with `ESTALE`.
fn replaced(options: StoreOptions) -> (Store, Context) {
    let store = Store::with_options(options, &PATHS);
    let gone = Arc::new(Mutex::new(Vec::new()));
    let of_hook = gone.clone();
    store.before(move |call| {
        let gone = of_hook.lock().unwrap();
        if nodes(call).iter().any(|node| gone.contains(node)) { Err(Errno::ESTALE) } else { Ok(()) }
    });
    let context = store.tree().context();
    for path in ["/d/e/f", "/d/e/s", "/d/e/g", "/l"] {
        context.attr(Base::CWD, path.as_bytes(), true).unwrap();
    }
    gone.lock().unwrap().extend(["d", "d/e", "d/e/f", "d/e/s", "d/e/g"].map(|path| store.node(path)));
    let (dir, inner) = (store.node("d"), store.node("d/e"));
    ["f", "s", "g"].iter().for_each(|name| store.remove(inner, name));
    store.remove(dir, "e");
    store.remove(ROOT, "d");
    let inner = store.make(store.make(ROOT, "d/"), "e/");
    ["f", "s/", "g", "new"].iter().for_each(|name| _ = store.make(inner, name));
    (store, context)
}

type Run = fn(&Context) -> Result<(), Errno>;

/// An operation, and whether the store has its effect.
type Operation = (&'static str, Run, fn(&Store) -> bool);

fn has(store: &Store, name: &str) -> bool {
    store.find(store.node("d/e"), name.as_bytes()).is_some()
}

fn at(path: &str) -> PathAt<'_> {
    PathAt::cwd(path.as_bytes())
}

fn open(context: &Context, path: &str, flags: OpenFlags) -> Result<(), Errno> {
    context.open(Base::CWD, path.as_bytes(), flags, 0o600).map(drop)
}

const EXCL: OpenFlags = OpenFlags::WRONLY.union(OpenFlags::CREAT).union(OpenFlags::EXCL);

const OPERATIONS: [Operation; 22] = [
    ("attr", |context| context.attr(Base::CWD, b"/d/e/new", true).map(drop), |_| true),
    ("access", |context| context.access(Base::CWD, b"/d/e/new", true, MAY_READ), |_| true),
    ("hold", |context| context.hold(Base::CWD, b"/d/e/new", true).map(drop), |_| true),
    (
        "set_current_dir",
        |context| context.set_current_dir(b"/d/e/new/..").or(context.set_current_dir(b"/d/e")),
        |_| true,
    ),
    ("mkdir", |context| context.mkdir(Base::CWD, b"/d/e/x", 0o755), |store| has(store, "x")),
    ("mknod", |context| context.mknod(Base::CWD, b"/d/e/x", S_IFIFO | 0o600, 0), |store| has(store, "x")),
    ("symlink", |context| context.symlink(b"f", Base::CWD, b"/d/e/x"), |store| has(store, "x")),
    ("link", |context| context.link(at("/d/e/f"), at("/d/e/x"), true), |store| has(store, "x")),
    ("link by a link", |context| context.link(at("/l"), at("/d/e/x"), true), |store| has(store, "x")),
    ("link elsewhere", |context| context.link(at("/d/e/f"), at("/x"), true), |store| store.find(ROOT, b"x").is_some()),
    ("unlink", |context| context.unlink(Base::CWD, b"/d/e/f"), |store| !has(store, "f")),
    ("rmdir", |context| context.rmdir(Base::CWD, b"/d/e/s"), |store| !has(store, "s")),
    (
        "rename",
        |context| context.rename(at("/d/e/f"), at("/d/e/x"), RenameFlags::default()),
        |store| has(store, "x") && !has(store, "f"),
    ),
    (
        "rename over a file",
        |context| context.rename(at("/d/e/f"), at("/d/e/g"), RenameFlags::default()),
        |store| has(store, "g") && !has(store, "f"),
    ),
    (
        "rename elsewhere",
        |context| context.rename(at("/d/e/f"), at("/x"), RenameFlags::default()),
        |store| store.find(ROOT, b"x").is_some() && !has(store, "f"),
    ),
    ("open and make", |context| open(context, "/d/e/x", EXCL), |store| has(store, "x")),
    ("open", |context| open(context, "/l", OpenFlags::WRONLY.union(OpenFlags::TRUNC)), |_| true),
    (
        "chmod",
        |context| context.set_attr(Base::CWD, b"/d/e/f", true, &SetAttr { mode: Some(0o611), ..SetAttr::default() }),
        |_| true,
    ),
    (
        "truncate",
        |context| context.set_attr(Base::CWD, b"/l", true, &SetAttr { size: Some(7), ..SetAttr::default() }),
        |_| true,
    ),
    ("setxattr", |context| context.set_xattr(Base::CWD, b"/d/e/f", true, b"user.a", b"1", SetXattr::Any), |_| true),
    ("listxattr", |context| context.list_xattrs(Base::CWD, b"/d/e/f", true).map(drop), |_| true),
    (
        "removexattr",
        |context| match context.remove_xattr(Base::CWD, b"/l", true, b"user.a") {
            Err(Errno::ENODATA) => Ok(()),
            done => done,
        },
        |_| true,
    ),
];

fn every_kind() -> [StoreOptions; 3] {
    let options = StoreOptions::default();
    [options, StoreOptions { remote: true, ..options }, StoreOptions { reports_attributes: true, ..options }]
}

#[test]
fn an_operation_on_a_path_that_another_client_replaced_is_done_on_the_new_files() {
    for options in every_kind() {
        for (what, operation, is_done) in OPERATIONS {
            let (store, context) = replaced(options);
            assert_eq!(operation(&context), Ok(()), "{what}, {options:?}");
            assert!(is_done(&store), "{what}, {options:?}");
            // The cache leads to the new files from then on.
            let seen = context.attr(Base::CWD, b"/d/e/s/..", true).map(|attr| attr.ino);
            assert!(seen == Ok(store.node("d/e")) || what == "rmdir", "{what}: {seen:?}");
        }
    }
}

#[test]
fn attributes_in_doubt_of_a_file_that_another_client_replaced_are_those_of_the_new_one() {
    let looks: [Run; 3] = [
        |context| context.attr(Base::CWD, b"/d/e/f", true).map(drop),
        |context| context.attr(Base::CWD, b"/l", true).map(drop),
        |context| context.access(Base::CWD, b"/d/e/f", false, MAY_READ),
    ];
    for look in looks {
        let (store, context) = replaced(StoreOptions { reports_attributes: true, ..StoreOptions::default() });
        let held = context.hold(Base::CWD, b"/d/e/f", true).unwrap();
        held.mark_stale();
        assert_eq!(look(&context), Ok(()));
        assert_eq!(context.attr(Base::CWD, b"/d/e/f", true).map(|attr| attr.ino), Ok(store.node("d/e/f")));
        assert_eq!(held.attr(), Err(Errno::ESTALE), "what is held has no path");
    }
}

#[test]
fn an_operation_that_stays_stale_ends() {
    for options in every_kind() {
        // Without those that request nothing that fails here.
        for (what, operation, _) in &OPERATIONS[4..] {
            let store = Store::with_options(options, &PATHS);
            let calls = Arc::new(AtomicU32::new(0));
            let context = store.tree().context();
            let of_hook = calls.clone();
            store.before(move |call| match call {
                Call::Lookup { .. } | Call::Attributes { .. } | Call::Release { .. } | Call::Evict { .. } => Ok(()),
                _ => {
                    of_hook.fetch_add(1, Relaxed);
                    Err(Errno::ESTALE)
                }
            });
            assert_eq!(operation(&context), Err(Errno::ESTALE), "{what}");
            // The first try, and one after all names were looked up again. A link has two paths.
            assert!((2..=4).contains(&calls.load(Relaxed)), "{what}: {} calls", calls.load(Relaxed));
        }
    }
}

/// Renames names, whichever file has them, as the host of a directory does.
struct ByName(Store);

impl Layer for ByName {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.0
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        if rename.old_name == rename.new_name { Ok(After::NONE) } else { FileSystem::rename(&self.0, request, rename) }
    }
}

/// The VFS looks the name up once for each end of the rename, and the second answer removes the entry that the first one made.
#[test]
fn a_rename_of_a_name_to_itself_meets_another_client_that_replaces_the_file() {
    for (remote, flags) in [false, true].iter().flat_map(|&remote| {
        [RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE].map(|flags| (remote, flags))
    }) {
        let options = StoreOptions { valid: Valid::For(0), remote, ..StoreOptions::default() };
        let store = Store::with_options(options, &["d/", "d/f"]);
        let (dir, left) = (store.node("d"), Arc::new(AtomicU32::new(0)));
        let (of_hook, replacements) = (store.clone(), left.clone());
        store.before(move |call| {
            let is_replaced = matches!(call, Call::Lookup { name: b"f", .. })
                && replacements.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            if is_replaced {
                of_hook.remove(dir, "f");
                of_hook.make(dir, "f");
            }
            Ok(())
        });
        let context = Vfs::new(ByName(store.clone())).context();
        for count in 1..6 {
            context.attr(Base::CWD, b"/d/f", true).unwrap();
            left.store(count, Relaxed);
            let path = PathAt::cwd(b"/d/f");
            let done = context.rename(path, path, flags);
            let expected = if flags == RenameFlags::NOREPLACE { Err(Errno::EEXIST) } else { Ok(()) };
            assert_eq!(done, expected, "{remote} {flags:?} {count}");
            left.store(0, Relaxed);
            let shown = context.attr(Base::CWD, b"/d/f", true).unwrap();
            assert_eq!(shown.ino, store.node("d/f"), "{remote} {flags:?} {count}");
        }
        context.unlink(Base::CWD, b"/d/f").unwrap();
        assert_eq!(context.attr(Base::CWD, b"/d/f", true), Err(Errno::ENOENT));
        assert_eq!(context.rmdir(Base::CWD, b"/d"), Ok(()));
    }
}

/// The replaced directory, above the moved file, expires during the search for the file, and is another one by then. To remove it
/// from the cache, with everything below it, would take the lock that the rename has.
#[test]
fn a_rename_over_a_directory_above_does_not_wait_for_itself_if_that_expires_meanwhile() {
    let store = Store::with_options(StoreOptions::default(), &["t/", "t/d/", "t/d/m"]);
    let (top, file) = (store.node("t"), store.node("t/d/m"));
    let context = Vfs::new(store.clone()).context();
    context.attr(Base::CWD, b"/t/d/m", true).unwrap();
    let is_armed = Arc::new(AtomicU32::new(0));
    let (of_hook, armed) = (store.clone(), is_armed.clone());
    store.before(move |call| {
        if matches!(call, Call::Lookup { name: b"m", .. }) && armed.swap(0, Relaxed) == 1 {
            of_hook.invalidator().inode(top);
            of_hook.remove(ROOT, "t");
            of_hook.make(ROOT, "t/");
        }
        Ok(())
    });
    store.invalidator().inode(file);
    is_armed.store(1, Relaxed);
    let done = context.rename(PathAt::cwd(b"/t/d/m"), PathAt::cwd(b"/t"), RenameFlags::empty());
    assert_eq!((done, is_armed.load(Relaxed)), (Err(Errno::ENOTEMPTY), 0));
}
