//! Invalidations that observers get.

use crate::truth::store::{ROOT, Store};
use lightfoot_vfs::{Base, Context, Errno, FileSystem, Identity, Inode, Layer, Observer, PathRef, Vfs};
use std::sync::{Arc, Mutex};
use testkit::StoreOptions;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Entry(Identity, Vec<u8>, Option<Identity>),
    Removed(Identity, Vec<u8>, Identity),
    Inode(Identity),
    All,
}

/// Writes down what it hears, where the test can read it when this has gone.
struct Ear(Arc<Mutex<Vec<Heard>>>);

impl Observer for Ear {
    fn entry(&self, dir: &Identity, name: &[u8], inode: Option<&Identity>) {
        self.0.lock().unwrap().push(Heard::Entry(*dir, name.into(), inode.copied()));
    }

    fn removed(&self, dir: &Identity, name: &[u8], inode: &Identity) {
        self.0.lock().unwrap().push(Heard::Removed(*dir, name.into(), *inode));
    }

    fn inode(&self, inode: &Identity) {
        self.0.lock().unwrap().push(Heard::Inode(*inode));
    }

    fn all(&self) {
        self.0.lock().unwrap().push(Heard::All);
    }
}

fn identity(context: &Context, path: &str) -> Identity {
    let held = context.hold(Base::CWD, path.as_bytes(), false).unwrap();
    let attr = held.attr().unwrap();
    Identity { inode: held.identity(), ino: attr.ino, dev: held.dev(), is_dir: attr.is_dir() }
}

#[test]
fn observers_hear_of_what_the_cache_knows_and_of_nothing_after_their_end() {
    let store = Store::new(StoreOptions::default());
    let dir = store.make(ROOT, "d/");
    let node = store.make(dir, "f");
    let unknown = store.make(dir, "unknown");
    let vfs = store.tree();
    let context = vfs.context();
    let heard: Vec<_> = (0..2).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
    let mut ears: Vec<_> = heard.iter().map(|heard| Arc::new(Ear(heard.clone()))).collect();
    ears.iter().for_each(|ear| vfs.observe(ear));
    let (root, d, f) = (identity(&context, "/"), identity(&context, "/d"), identity(&context, "/d/f"));
    let tell = store.invalidator();
    type Push<'t> = Box<dyn Fn() + 't>;
    let pushes: Vec<(Push<'_>, Vec<Heard>)> = vec![
        (Box::new(|| tell.entry(ROOT, b"d")), vec![Heard::Entry(root, b"d".into(), Some(d))]),
        (Box::new(|| tell.entry(dir, b"f")), vec![Heard::Entry(d, b"f".into(), Some(f))]),
        (Box::new(|| tell.removed(dir, b"f")), vec![Heard::Removed(d, b"f".into(), f)]),
        (Box::new(|| tell.removed(ROOT, b"d")), vec![Heard::Entry(root, b"d".into(), Some(d))]),
        (Box::new(|| tell.removed(dir, b"unknown")), vec![Heard::Entry(d, b"unknown".into(), None)]),
        (
            // The second time the entry is stale.
            Box::new(|| [0; 2].iter().for_each(|_| tell.removed(dir, b"f"))),
            vec![Heard::Removed(d, b"f".into(), f), Heard::Entry(d, b"f".into(), Some(f))],
        ),
        // The observer may know a name that the cache has not.
        (Box::new(|| tell.entry(dir, b"never asked for")), vec![Heard::Entry(d, b"never asked for".into(), None)]),
        (Box::new(|| tell.entry(77, b"x")), vec![]),
        (Box::new(|| tell.inode(node)), vec![Heard::Inode(f)]),
        (Box::new(|| tell.inode(dir)), vec![Heard::Inode(d)]),
        (Box::new(|| tell.inode(unknown)), vec![]),
        (Box::new(|| tell.all()), vec![Heard::All]),
    ];
    for left in [2, 1, 0] {
        ears.truncate(left);
        for (number, (push, expected)) in pushes.iter().enumerate() {
            // So that the cache knows it, whatever the last push did.
            context.attr(Base::CWD, b"/d/f", true).unwrap();
            push();
            for (ear, heard) in heard.iter().enumerate() {
                let heard = core::mem::take(&mut *heard.lock().unwrap());
                assert_eq!(
                    heard,
                    if ear < left { expected.as_slice() } else { &[] },
                    "push {number}, ear {ear} of {left}"
                );
            }
        }
    }
}

#[test]
fn a_push_of_a_file_with_several_names_is_heard() {
    let store = Store::new(StoreOptions::default());
    let node = store.make(ROOT, "a");
    store.link(ROOT, "b", node);
    let vfs = store.tree();
    let context = vfs.context();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::new(Ear(heard.clone()));
    vfs.observe(&ear);
    let (a, b) = (identity(&context, "/a"), identity(&context, "/b"));
    assert_eq!(a, b);
    store.invalidator().inode(node);
    let heard = heard.lock().unwrap();
    assert!(!heard.is_empty() && heard.iter().all(|one| *one == Heard::Inode(a)), "{heard:?}");
}

#[test]
fn a_push_of_a_file_that_lost_its_name_is_heard_as_long_as_it_is_held() {
    let store = Store::new(StoreOptions::default());
    let node = store.make(ROOT, "a");
    let vfs = store.tree();
    let context = vfs.context();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::new(Ear(heard.clone()));
    vfs.observe(&ear);
    let held = context.hold(Base::CWD, b"/a", true).unwrap();
    let a = identity(&context, "/a");
    context.unlink(Base::CWD, b"/a").unwrap();
    store.change(node, |attr| attr.size = 7);
    store.invalidator().inode(node);
    assert_eq!(*heard.lock().unwrap(), [Heard::Inode(a)]);
    assert_eq!(held.attr().unwrap().size, 7);
}

#[test]
fn observers_that_went_leave_nothing_in_the_tree_and_none_stays_after_it() {
    let store = Store::new(StoreOptions::default());
    let vfs = store.tree();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let stays = Arc::new(Ear(heard.clone()));
    vfs.observe(&stays);
    for round in 0..100 {
        let goes = Arc::new(Ear(heard.clone()));
        let weak = Arc::downgrade(&goes);
        vfs.observe(&goes);
        drop(goes);
        // Forgotten at the next invalidation, or by the next observer.
        if round % 2 == 0 {
            store.invalidator().all();
            assert_eq!(weak.weak_count(), 0);
        }
    }
    assert_eq!(Arc::weak_count(&stays), 1);
    drop(vfs);
    assert_eq!(Arc::weak_count(&stays), 0, "the tree has gone");
}

/// Has the last use of a file, and drops it when it hears of it.
struct Holder(Mutex<Option<PathRef>>);

impl Observer for Holder {
    fn entry(&self, _: &Identity, _: &[u8], _: Option<&Identity>) {
        let last = self.0.lock().unwrap().take();
        drop(last);
    }

    fn inode(&self, _: &Identity) {}

    fn all(&self) {}
}

/// A file system that invalidates a name when an inode ends, as one does whose directories are watched.
struct Invalidating(testkit::Store);

impl Layer for Invalidating {
    type Inner = testkit::Store;

    fn inner(&self) -> &testkit::Store {
        &self.0
    }

    fn evict(&self, inode: &Inode) {
        self.0.invalidator().entry(ROOT, b"gone");
        self.0.evict(inode);
    }
}

#[test]
fn an_observer_may_drop_the_last_use_of_a_file_whose_end_is_an_invalidation() {
    let store = testkit::Store::new(StoreOptions::default());
    store.make(ROOT, "file");
    let vfs = Vfs::new(Invalidating(store.clone()));
    let context = vfs.context();
    let held = context.hold(Base::CWD, b"/file", false).unwrap();
    store.remove(ROOT, "file");
    store.invalidator().entry(ROOT, b"file");
    assert_eq!(context.attr(Base::CWD, b"/file", false), Err(Errno::ENOENT));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (holder, ear) = (Arc::new(Holder(Mutex::new(Some(held)))), Arc::new(Ear(heard.clone())));
    vfs.observe(&holder);
    vfs.observe(&ear);
    store.invalidator().entry(ROOT, b"another");
    assert!(heard.lock().unwrap().iter().any(|one| matches!(one, Heard::Entry(_, name, _) if name == b"gone")));
}
