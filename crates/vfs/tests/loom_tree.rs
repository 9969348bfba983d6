//! loom models of the tree itself: walks, lookups and holds against renames, removals, reuse of slots and unmounts.
//!
//! The models call the public interface, so that they run over all of the source: `walk`, `dcache`, `mount` and `ops`,
//! with the primitives below them. Only constants differ under loom: fewer buckets, slots and counters. An operation has
//! hundreds of steps, so one preemption is all that can be tried here; the models of the primitives in `crates/sync/tests`
//! have more.
#![cfg(loom)]

use lightfoot_vfs::{
    Attr, Base, Context, Errno, FileSystem, FsTraits, Inode, MountFlags, NewInode, PathAt, Rename, RenameFlags,
    Request, S_IFDIR, S_IFREG, UnmountFlags, Vfs,
};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What a file system of a model counts. loom does not see it: it is not a part of the model.
#[derive(Default)]
struct Counts {
    made: AtomicU64,
    lookups: AtomicU64,
    evicted: AtomicU64,
}

/// Leaves its names to the cache, or has two names, `p` and `q`, of one file.
#[derive(Clone, Default)]
struct Files {
    counts: Arc<Counts>,
    has_names: bool,
}

/// The inode number and node of the file with two names.
const FILE: u64 = 100;

fn dir(ino: u64) -> Attr {
    Attr { ino, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() }
}

impl FileSystem for Files {
    fn root(&self) -> NewInode {
        NewInode { node: 1, attr: dir(1), ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits { names_in_cache: !self.has_names, ..FsTraits::default() }
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        self.counts.lookups.fetch_add(1, SeqCst);
        if name != b"p" && name != b"q" {
            return Err(Errno::ENOENT);
        }
        let attr = Attr { ino: FILE, mode: S_IFREG | 0o644, nlink: 2, ..Attr::default() };
        Ok(NewInode { node: FILE, attr, ..NewInode::default() })
    }

    fn create(&self, _: &Request, _: &Inode, _: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        attr.ino = 2 + self.counts.made.fetch_add(1, SeqCst);
        Ok(attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<(), Errno> {
        Ok(())
    }

    fn rename(&self, _: &Request, _: &Rename<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn evict(&self, inode: &Inode) {
        assert!(inode.data::<u64>().is_none_or(|&ino| ino == inode.attr().ino), "data of another file");
        self.counts.evicted.fetch_add(1, SeqCst);
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

fn make(context: &Context, path: &str) {
    context.mknod(Base::CWD, path.as_bytes(), 0o644, 0).expect("a new name");
}

/// Two threads on a tree that `grow` has grown: `model` on one beside `other` on the second; then `end`, alone.
struct Model<M> {
    has_names: bool,
    grow: fn(&Context),
    other: fn(&Context),
    model: M,
    end: fn(&Context, &Counts),
}

impl<M: Fn(&Context, &Counts) + Sync + Send + 'static> Model<M> {
    /// Checks all orders with one preemption.
    fn check(self) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(1);
        builder.max_branches = 1_000_000;
        builder.check(move || {
            let files = Files { has_names: self.has_names, ..Files::default() };
            let counts = files.counts.clone();
            let vfs = Vfs::new(files);
            let (context, beside) = (vfs.context(), vfs.context());
            (self.grow)(&context);
            let other = self.other;
            let thread = thread::spawn(move || other(&beside));
            (self.model)(&context, &counts);
            thread.join().unwrap();
            vfs.barrier();
            (self.end)(&context, &counts);
            drop(context);
            // No thread of the model frees what the last drops deferred.
            vfs.barrier();
        });
    }
}

#[test]
fn a_name_that_is_there_before_and_after_an_exchange_is_never_missed() {
    let model = Model {
        has_names: false,
        grow: |context| ["/a", "/b"].iter().for_each(|path| make(context, path)),
        other: |context| context.rename(PathAt::cwd(b"/a"), PathAt::cwd(b"/b"), RenameFlags::EXCHANGE).unwrap(),
        model: |context: &Context, _: &Counts| assert!(matches!(look(context, "/a"), Some(2 | 3))),
        end: |context, _| assert_eq!((look(context, "/a"), look(context, "/b")), (Some(3), Some(2))),
    };
    model.check();
}

#[test]
fn a_slot_in_its_next_life_is_not_held_for_the_name_that_it_had() {
    let model = Model {
        has_names: false,
        grow: |context| make(context, "/a"),
        other: |context| {
            context.unlink(Base::CWD, b"/a").unwrap();
            make(context, "/b");
        },
        model: |context: &Context, _: &Counts| match context.hold(Base::CWD, b"/a", true) {
            Ok(held) => assert_eq!(held.attr().unwrap().ino, 2),
            Err(errno) => assert_eq!(errno, Errno::ENOENT),
        },
        end: |context, counts| {
            assert_eq!((look(context, "/a"), look(context, "/b")), (None, Some(3)));
            assert_eq!(counts.evicted.load(SeqCst), 1);
        },
    };
    model.check();
}

#[test]
fn a_held_file_is_never_another_life_and_each_life_ends_once() {
    let model = Model {
        has_names: false,
        grow: |context| make(context, "/a"),
        other: |context| {
            context.unlink(Base::CWD, b"/a").unwrap();
            make(context, "/b");
            context.unlink(Base::CWD, b"/b").unwrap();
        },
        model: |context: &Context, _: &Counts| {
            if let Ok(held) = context.hold(Base::CWD, b"/a", true) {
                assert_eq!(held.attr().unwrap().ino, 2);
            }
        },
        end: |_, counts| assert_eq!(counts.evicted.load(SeqCst), 2),
    };
    model.check();
}

#[test]
fn a_mount_stays_while_a_walk_holds_it_and_goes_when_none_does() {
    let model = Model {
        has_names: false,
        grow: |context| {
            context.mkdir(Base::CWD, b"/m", 0o755).unwrap();
            context.mount(Files::default(), Base::CWD, b"/m", MountFlags::empty()).unwrap();
        },
        other: |context| {
            let unmounted = context.unmount(Base::CWD, b"/m", UnmountFlags::empty());
            assert!(matches!(unmounted, Ok(()) | Err(Errno::EBUSY)), "{unmounted:?}");
        },
        model: |context: &Context, _: &Counts| {
            let held = context.hold(Base::CWD, b"/m", true).unwrap();
            if held.attr().unwrap().ino == 1 {
                let again = context.hold(Base::CWD, b"/m", true).unwrap();
                assert_eq!((again.dev(), again.mount_id()), (held.dev(), held.mount_id()));
            }
        },
        end: |context, _| {
            if look(context, "/m") == Some(1) {
                context.unmount(Base::CWD, b"/m", UnmountFlags::empty()).unwrap();
            }
            assert_eq!(look(context, "/m"), Some(2));
        },
    };
    model.check();
}

#[test]
fn two_that_miss_a_name_look_it_up_once_and_both_find_the_entry() {
    let model = Model {
        has_names: true,
        grow: |_| {},
        other: |context| assert_eq!(look(context, "/p"), Some(FILE)),
        model: |context: &Context, _: &Counts| assert_eq!(look(context, "/p"), Some(FILE)),
        end: |_, counts| assert_eq!(counts.lookups.load(SeqCst), 1),
    };
    model.check();
}

#[test]
fn an_inode_that_ends_beside_a_lookup_of_its_node_ends_once() {
    let model = Model {
        has_names: true,
        grow: |context| assert_eq!(look(context, "/p"), Some(FILE)),
        other: |context| context.unlink(Base::CWD, b"/p").unwrap(),
        model: |context: &Context, _: &Counts| {
            let held = context.hold(Base::CWD, b"/q", true).unwrap();
            assert_eq!(held.attr().unwrap().ino, FILE);
        },
        end: |context, counts| {
            let lives = counts.evicted.load(SeqCst);
            // A life that ended is not taken up again: the file system's answer began the next one.
            let names = context.attr(Base::CWD, b"/q", true).unwrap().nlink;
            assert_eq!(names, if lives == 0 { 1 } else { 2 }, "{lives}");
            context.unlink(Base::CWD, b"/q").unwrap();
            assert!(lives <= 1 && counts.evicted.load(SeqCst) == lives + 1);
        },
    };
    model.check();
}
