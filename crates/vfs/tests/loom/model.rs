//! The file system and the threads of the models.

use lightfoot_vfs::{
    After, Attr, Base, CachedNames, Context, Errno, FileSystem, FsTraits, Inode, NameStore, NewInode, NewNode,
    NextNames, PathAt, Rename, RenameFlags, Request, S_IFDIR, S_IFREG, Vfs,
};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What a file system of a model counts. loom does not see it: it is not a part of the model.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) made: AtomicU64,
    pub(crate) lookups: AtomicU64,
    pub(crate) evicted: AtomicU64,
}

/// Leaves its names to the cache, or has in each directory the names `p` and `q` of one file, and a directory `d`.
#[derive(Clone, Default)]
pub(crate) struct Files {
    counts: Arc<Counts>,
    has_names: bool,
    is_sharded: bool,
    /// Whether it never waits, so that names change in the sections of walks.
    never_waits: bool,
}

/// The inode number and node of the file with two names.
pub(crate) const FILE: u64 = 100;

/// Those of the directory.
const DIRECTORY: u64 = 101;

fn dir(ino: u64) -> Attr {
    Attr { ino, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() }
}

impl FileSystem for Files {
    fn root(&self) -> NewInode {
        NewInode { node: 1, attr: dir(1), ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        if self.has_names {
            return FsTraits::default();
        }
        let (never_waits, changes_in_parallel) = (self.never_waits, self.is_sharded);
        let names = CachedNames { never_waits, changes_in_parallel, ..CachedNames::default() };
        FsTraits { names: NameStore::Cache(names), ..FsTraits::default() }
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.counts.lookups.fetch_add(1, SeqCst);
        let attr = match name {
            b"p" | b"q" => Attr { ino: FILE, mode: S_IFREG | 0o644, nlink: 2, ..Attr::default() },
            b"d" => dir(DIRECTORY),
            _ => return Err(Errno::ENOENT),
        };
        Ok(NewInode { node: attr.ino, attr, ..NewInode::default() })
    }

    fn create(&self, _: &Request, _: &Inode, _: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = 2 + self.counts.made.fetch_add(1, SeqCst);
        Ok(new.attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], inode: &Inode) -> Result<After, Errno> {
        inode.data_or(|| inode.attr().ino);
        Ok(After::NONE)
    }

    fn rename(&self, _: &Request, _: &Rename<'_>) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    fn evict(&self, inode: &Inode) {
        assert!(inode.data::<u64>().is_none_or(|&ino| ino == inode.attr().ino), "data of another file");
        self.counts.evicted.fetch_add(1, SeqCst);
    }
}

pub(crate) fn look(context: &Context, path: &str) -> Option<u64> {
    match context.attr(Base::CWD, path.as_bytes(), true) {
        Ok(attr) => Some(attr.ino),
        Err(errno) => {
            assert_eq!(errno, Errno::ENOENT, "{path}");
            None
        }
    }
}

pub(crate) fn make(context: &Context, path: &str) {
    context.mknod(Base::CWD, path.as_bytes(), 0o644, 0).expect("a new name");
}

pub(crate) fn make_dirs(context: &Context, paths: &[&str]) {
    paths.iter().for_each(|path| context.mkdir(Base::CWD, path.as_bytes(), 0o755).expect("a new name"));
}

pub(crate) fn rename(context: &Context, old: &str, new: &str, flags: RenameFlags) {
    context.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
}

/// A thread on a tree that `grow` has grown runs `model` beside others that run `other`; then `end`, alone.
pub(crate) struct Model<M> {
    pub(crate) has_names: bool,
    pub(crate) is_sharded: bool,
    pub(crate) never_waits: bool,
    pub(crate) grow: fn(&Context),
    pub(crate) other: fn(&Context),
    pub(crate) others: usize,
    pub(crate) model: M,
    pub(crate) end: fn(&Context, &Counts),
}

impl<M: Fn(&Context, &Counts) + Sync + Send + 'static> Model<M> {
    /// A model of two threads, over names that only the cache has.
    pub(crate) fn of_two(grow: fn(&Context), other: fn(&Context), model: M, end: fn(&Context, &Counts)) -> Self {
        Self { has_names: false, is_sharded: false, never_waits: false, grow, other, others: 1, model, end }
    }

    /// The same over [`Files`] with names.
    pub(crate) fn of_names(grow: fn(&Context), other: fn(&Context), model: M, end: fn(&Context, &Counts)) -> Self {
        Self { has_names: true, ..Self::of_two(grow, other, model, end) }
    }

    /// The same over names that only the cache has, in sharded directories.
    pub(crate) fn of_sharded(grow: fn(&Context), other: fn(&Context), model: M, end: fn(&Context, &Counts)) -> Self {
        Self { is_sharded: true, ..Self::of_two(grow, other, model, end) }
    }

    /// Checks all orders with one preemption.
    pub(crate) fn check(self) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(1);
        builder.max_branches = 1_000_000;
        builder.check(move || {
            let (has_names, is_sharded, never_waits) = (self.has_names, self.is_sharded, self.never_waits);
            let files = Files { has_names, is_sharded, never_waits, ..Files::default() };
            let counts = files.counts.clone();
            let vfs = Vfs::builder().shards_every_directory(self.is_sharded).build(files);
            let context = vfs.context();
            (self.grow)(&context);
            let spawn = |_| {
                let (beside, other) = (context.fork(), self.other);
                thread::spawn(move || other(&beside))
            };
            let others: Vec<_> = (0..self.others).map(spawn).collect();
            (self.model)(&context, &counts);
            others.into_iter().for_each(|other| other.join().unwrap());
            vfs.barrier();
            (self.end)(&context, &counts);
            drop(context);
            // No thread of the model frees what the last drops deferred.
            vfs.barrier();
        });
    }
}
