//! loom models of lookups in a sharded directory of a file system that keeps its own names: beside one another, and beside
//! operations that take the directory whole.
//!
//! As in `tree.rs`, the models call the public interface and try one preemption.

use lightfoot_vfs::{
    After, Attr, Base, Context, Errno, FileSystem, Inode, NewInode, NewNode, NextNames, Request, S_IFDIR, S_IFREG, Vfs,
};
use loom::thread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A root with files, and a directory `d` without names. loom does not see it: it is not a part of the model.
struct Files {
    names: Mutex<BTreeMap<Vec<u8>, u64>>,
    lookups: AtomicU64,
    evicted: AtomicU64,
}

const ROOT: u64 = 1;
const DIRECTORY: u64 = 2;
/// The file that has the names `p` and `q`.
const FILE: u64 = 3;
/// The file that is made.
const MADE: u64 = 4;

#[derive(Clone)]
struct Shared(Arc<Files>);

fn inode(ino: u64) -> NewInode {
    let mode = if ino <= DIRECTORY { S_IFDIR | 0o755 } else { S_IFREG | 0o644 };
    NewInode { node: ino, attr: Attr { ino, mode, nlink: 2, ..Attr::default() }, ..NewInode::default() }
}

impl FileSystem for Shared {
    fn root(&self) -> NewInode {
        inode(ROOT)
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.0.lookups.fetch_add(1, SeqCst);
        let names = self.0.names.lock().unwrap();
        names.get(name).filter(|_| dir.node() == ROOT).map(|&ino| inode(ino)).ok_or(Errno::ENOENT)
    }

    fn create(&self, _: &Request, _: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = MADE;
        self.0.names.lock().unwrap().insert(name.unwrap_or_default().to_vec(), MADE);
        Ok(MADE)
    }

    fn unlink(&self, _: &Request, _: &Inode, name: &[u8], _: &Inode) -> Result<After, Errno> {
        self.0.names.lock().unwrap().remove(name);
        Ok(After::NONE)
    }

    fn evict(&self, _: &Inode) {
        self.0.evicted.fetch_add(1, SeqCst);
    }
}

fn look(context: &Context, path: &str) -> Option<u64> {
    match context.attr(Base::CWD, path.as_bytes(), true) {
        Ok(attr) => Some(attr.ino),
        Err(errno) => {
            assert_eq!(errno, Errno::ENOENT, "{path}");
            None
        }
    }
}

/// After `before`, in which a lookup splits the directory, one thread runs `one` and another `two`; then `end`, alone. No
/// reference is lost or left.
fn check(before: fn(&Context), one: fn(&Context), two: fn(&Context), end: fn(&Context, &Files)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_branches = 1_000_000;
    builder.check(move || {
        let names = [("d", DIRECTORY), ("p", FILE), ("q", FILE)].map(|(name, ino)| (name.as_bytes().to_vec(), ino));
        let names = Mutex::new(BTreeMap::from(names));
        let files = Arc::new(Files { names, lookups: AtomicU64::new(0), evicted: AtomicU64::new(0) });
        let vfs = Vfs::builder().shards_every_directory(true).build(Shared(files.clone()));
        let context = vfs.context();
        before(&context);
        let held = vfs.stats().held;
        let beside = context.fork();
        let other = thread::spawn(move || one(&beside));
        two(&context);
        other.join().unwrap();
        vfs.barrier();
        end(&context, &files);
        assert_eq!(vfs.stats().held, held, "references");
        drop(context);
        // No thread of the model frees what the last drops deferred.
        vfs.barrier();
    });
}

#[test]
fn names_of_one_file_that_are_looked_up_at_once_are_names_of_one_file() {
    check(
        |_| {},
        |context| assert_eq!(look(context, "/p"), Some(FILE)),
        |context| assert_eq!(look(context, "/q"), Some(FILE)),
        |context, files| {
            assert_eq!((look(context, "/p"), look(context, "/q")), (Some(FILE), Some(FILE)));
            assert_eq!(files.lookups.load(SeqCst), 2);
            ["/p", "/q"].iter().for_each(|path| context.unlink(Base::CWD, path.as_bytes()).unwrap());
            assert_eq!(files.evicted.load(SeqCst), 1);
        },
    );
}

#[test]
fn a_name_that_is_looked_up_by_two_is_requested_once() {
    check(
        |context| assert_eq!(look(context, "/q"), Some(FILE)),
        |context| assert_eq!(look(context, "/p"), Some(FILE)),
        |context| assert_eq!(look(context, "/p"), Some(FILE)),
        |_, files| assert_eq!(files.lookups.load(SeqCst), 2),
    );
}

#[test]
fn a_lookup_beside_a_removal_leaves_no_name() {
    check(
        |context| assert_eq!(look(context, "/q"), Some(FILE)),
        |context| context.unlink(Base::CWD, b"/p").unwrap(),
        |context| assert!(matches!(look(context, "/p"), None | Some(FILE))),
        |context, _| assert_eq!(look(context, "/p"), None),
    );
}

#[test]
fn a_lookup_beside_a_creation_leaves_no_absence() {
    check(
        |context| assert_eq!(look(context, "/q"), Some(FILE)),
        |context| context.mknod(Base::CWD, b"/n", 0o644, 0).unwrap(),
        |context| assert!(matches!(look(context, "/n"), None | Some(MADE))),
        |context, _| assert_eq!(look(context, "/n"), Some(MADE)),
    );
}

#[test]
fn a_directory_that_is_removed_beside_a_lookup_in_it_ends_once() {
    check(
        |context| assert_eq!(look(context, "/d"), Some(DIRECTORY)),
        |context| context.rmdir(Base::CWD, b"/d").unwrap(),
        |context| assert_eq!(look(context, "/d/x"), None),
        |context, files| {
            assert_eq!(look(context, "/d"), None);
            assert_eq!(files.evicted.load(SeqCst), 1);
        },
    );
}
