//! loom models of the table of whole paths over the whole source: a thread that records a path and looks it up, beside one
//! that renames a directory of the path, or the path's end. As in `loom_tree.rs`, one preemption. `tools/loom-whole-path` runs
//! them.
#![cfg(loom)]

use lightfoot_vfs::{
    Attr, Base, Context, Errno, FileSystem, FsTraits, Inode, NewInode, PathAt, Rename, RenameFlags, Request, S_IFDIR,
    Vfs,
};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Leaves its names to the cache; its files have the numbers from 2 on.
#[derive(Default)]
struct Files(AtomicU64);

impl FileSystem for Files {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits { names_in_cache: true, ..FsTraits::default() }
    }

    fn create(&self, _: &Request, _: &Inode, _: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        attr.ino = 2 + self.0.fetch_add(1, SeqCst);
        Ok(attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<(), Errno> {
        Ok(())
    }

    fn rename(&self, _: &Request, _: &Rename<'_>) -> Result<(), Errno> {
        Ok(())
    }
}

fn look(context: &Context, base: Base<'_>, path: &str) -> Result<u64, Errno> {
    context.attr(base, path.as_bytes(), true).map(|attr| attr.ino)
}

fn make_dirs(context: &Context, paths: &[&str]) {
    paths.iter().for_each(|path| context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap());
}

fn make(context: &Context, path: &str) {
    context.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap();
}

fn rename(context: &Context, old: &str, new: &str, flags: RenameFlags) {
    context.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
}

/// Executions of each model. There are more than 75,000, which take several minutes: `LOOM_MAX_PERMUTATIONS=1000000` runs more. loom
/// changes the last choices first, so these are the ones in which the other thread begins late.
const EXECUTIONS: usize = 4000;

/// On a tree that `grow` has grown, `model` runs beside a thread that runs `other`; then `end`, alone.
fn check(grow: fn(&Context), other: fn(&Context), model: fn(&Context), end: fn(&Context)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_branches = 1_000_000;
    builder.max_permutations.get_or_insert(EXECUTIONS);
    let executions = Arc::new(AtomicU64::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, SeqCst);
        let vfs = Vfs::builder().whole_paths(1).records_every_path(true).build(Files::default());
        let context = vfs.context();
        grow(&context);
        let beside = context.fork();
        let thread = thread::spawn(move || other(&beside));
        model(&context);
        thread.join().unwrap();
        end(&context);
        drop(context);
        vfs.barrier();
    });
    assert!(executions.load(SeqCst) as usize >= EXECUTIONS, "a model with few executions tries nothing");
}

#[test]
fn a_path_whose_directory_moves_is_found_by_the_table_only_where_it_is() {
    check(
        |context| {
            make_dirs(context, &["/a"]);
            make(context, "/a/f");
        },
        |context| rename(context, "/a", "/b", RenameFlags::default()),
        |context| {
            // The first records, the second may find what it recorded; what is gone stays gone.
            let seen = [(); 2].map(|()| look(context, Base::CWD, "/a/f"));
            assert!(seen.iter().all(|seen| matches!(seen, Ok(3) | Err(Errno::ENOENT))), "{seen:?}");
            assert!(seen.is_sorted_by_key(Result::is_err), "{seen:?}");
        },
        |context| {
            assert_eq!(look(context, Base::CWD, "/a/f"), Err(Errno::ENOENT));
            assert_eq!(look(context, Base::CWD, "/b/f"), Ok(3));
        },
    );
}

#[test]
fn two_directories_that_exchange_their_names_exchange_their_paths() {
    check(
        |context| {
            make_dirs(context, &["/a", "/b"]);
            ["/a/f", "/b/f"].iter().for_each(|path| make(context, path));
        },
        |context| rename(context, "/a", "/b", RenameFlags::EXCHANGE),
        |context| {
            let seen = [(); 2].map(|()| look(context, Base::CWD, "/a/f"));
            assert!([[Ok(4), Ok(4)], [Ok(4), Ok(5)], [Ok(5), Ok(5)]].contains(&seen), "{seen:?}");
        },
        |context| assert_eq!(["/a/f", "/b/f"].map(|path| look(context, Base::CWD, path)), [Ok(5), Ok(4)]),
    );
}

#[test]
fn a_file_that_moves_is_found_by_the_table_only_where_it_is() {
    check(
        |context| ["/f", "/g"].iter().for_each(|path| make(context, path)),
        |context| rename(context, "/f", "/g", RenameFlags::EXCHANGE),
        |context| {
            let seen = [(); 2].map(|()| look(context, Base::CWD, "/f"));
            assert!([[Ok(2), Ok(2)], [Ok(2), Ok(3)], [Ok(3), Ok(3)]].contains(&seen), "{seen:?}");
        },
        |context| assert_eq!(["/f", "/g"].map(|path| look(context, Base::CWD, path)), [Ok(3), Ok(2)]),
    );
}
