//! loom models of the end of an inode: of the holders of its names, the last one ends it, after what all others did.
//!
//! They run over the source, as `tree.rs` does, but the threads do less in them, and have more preemptions. What the
//! holders of a file read lies in a tracked cell that the end of the file writes: to loom, an end that does not follow all
//! uses is a data race.
#![allow(unsafe_code, reason = "tracked cells are read and written through raw pointers")]

use lightfoot_vfs::{
    After, Attr, Base, Context, Errno, FileSystem, FsTraits, Inode, NewInode, NextNames, PathRef, Request, S_IFDIR,
    S_IFREG, Vfs,
};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The inode number and node of the one file; each name is one of it, apart from `d`, a directory.
const FILE: u64 = 100;

/// What the file system has of the file.
#[derive(Default)]
struct Data {
    /// Which life of the file it is of.
    life: UnsafeCell<u64>,
    /// Ends; loom does not see it: it is not a part of the model.
    ends: AtomicU64,
}

// SAFETY: users of the file read the cell, and its end writes it; loom checks that they are in order.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    fn life(&self) -> u64 {
        // SAFETY: see `Sync` above.
        self.life.with(|life| unsafe { *life })
    }

    fn end(&self) {
        // SAFETY: see `Sync` above.
        self.life.with_mut(|life| unsafe { *life += 1 });
        self.ends.fetch_add(1, SeqCst);
    }
}

#[derive(Clone, Default)]
struct Names(Arc<Data>);

fn dir(ino: u64) -> Attr {
    Attr { ino, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() }
}

impl FileSystem for Names {
    fn root(&self) -> NewInode {
        NewInode { node: 1, attr: dir(1), ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits::default()
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let file = Attr { ino: FILE, mode: S_IFREG | 0o644, nlink: 3, ..Attr::default() };
        let attr = if name == b"d" { dir(FILE + 1) } else { file };
        Ok(NewInode { node: attr.ino, attr, ..NewInode::default() })
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    fn evict(&self, inode: &Inode) {
        if inode.attr().ino == FILE {
            self.0.end();
        }
    }
}

/// The held file of a name that is then removed.
fn removed(context: &Context, path: &str) -> PathRef {
    let held = context.hold(Base::CWD, path.as_bytes(), true).expect("a name");
    context.unlink(Base::CWD, path.as_bytes()).expect("a name");
    held
}

/// Removed names of one file, each with a holder that uses the file and goes, in a thread each.
fn holders_go(paths: &'static [&'static str], preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(move || {
        let files = Names::default();
        let data = files.0.clone();
        let vfs = Vfs::new(files);
        let context = vfs.context();
        let mut held: Vec<PathRef> = paths.iter().map(|path| removed(&context, path)).collect();
        let use_and_drop = |held: PathRef, data: &Data| {
            assert_eq!(data.life(), 0);
            drop(held);
        };
        let own = held.pop().expect("a name");
        let spawn = |held| {
            let data = data.clone();
            thread::spawn(move || use_and_drop(held, &data))
        };
        let others: Vec<_> = held.into_iter().map(spawn).collect();
        use_and_drop(own, &data);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!((data.life(), data.ends.load(SeqCst)), (1, 1));
        drop(context);
        // No thread of the model frees what the last drops deferred.
        vfs.barrier();
    });
}

#[test]
fn an_inode_ends_once_and_after_the_last_use_by_the_holder_of_each_name() {
    holders_go(&["/d/p", "/q"], 3);
}

#[test]
fn of_three_names_the_last_one_that_goes_ends_the_inode() {
    holders_go(&["/d/p", "/q", "/r"], 1);
}
