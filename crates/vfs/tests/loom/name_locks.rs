//! loom models of locked names: a change of a name beside another one of it, and beside the removal of its directory.
//!
//! As in `tree.rs`, the models call the public interface and try one preemption. The file system lets other threads run during
//! each change, so a model shows what happens beside one that hangs. It checks nothing itself: the VFS must have checked that a
//! directory that is removed has no names and gets none.

use lightfoot_vfs::{
    After, Attr, Base, Context, Errno, FileSystem, FsTraits, Inode, NameStore, NewInode, NewNode, NextNames, OwnNames,
    PathAt, Rename, RenameFlags, Request, S_IFDIR, S_IFREG, Vfs,
};
use loom::thread;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// loom does not see it: it is not a part of the model.
#[derive(Default)]
struct Names {
    found: BTreeMap<(u64, Vec<u8>), u64>,
    /// The names in flight.
    busy: Vec<(u64, Vec<u8>)>,
    removed: Vec<u64>,
    made: u64,
}

const ROOT: u64 = 1;
const D: u64 = 2;
const E: u64 = 3;
/// The nodes of files begin here.
const FILES: u64 = 10;

#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Names>>);

fn inode(ino: u64) -> NewInode {
    let mode = if ino < FILES { S_IFDIR | 0o755 } else { S_IFREG | 0o644 };
    NewInode { node: ino, attr: Attr { ino, mode, nlink: 2, ..Attr::default() }, ..NewInode::default() }
}

impl Slow {
    /// Has the names `d` and `e`, two directories.
    fn new() -> Self {
        let slow = Self::default();
        let names = [(b"d", D), (b"e", E)].map(|(name, ino)| ((ROOT, name.to_vec()), ino));
        slow.0.lock().unwrap().found.extend(names);
        slow
    }

    /// Changes names while other threads run.
    fn change(&self, names: &[(&Inode, &[u8])], change: impl FnOnce(&mut Names)) {
        let names: Vec<_> = names.iter().map(|(dir, name)| (dir.node(), name.to_vec())).collect();
        {
            let mut all = self.0.lock().unwrap();
            for name in &names {
                assert!(!all.busy.contains(name), "two changes of one name");
                assert!(!all.removed.contains(&name.0), "a change in a directory that was removed");
            }
            all.busy.extend_from_slice(&names);
        }
        thread::yield_now();
        let mut all = self.0.lock().unwrap();
        change(&mut all);
        all.busy.retain(|name| !names.contains(name));
    }
}

impl Names {
    /// Notes that the directory `ino` is gone.
    fn remove(&mut self, ino: u64) {
        assert!(!self.busy.iter().any(|name| name.0 == ino), "a name in flight in a directory that is removed");
        assert!(!self.found.keys().any(|name| name.0 == ino), "a name in a directory that is removed");
        self.removed.push(ino);
    }
}

impl FileSystem for Slow {
    fn root(&self) -> NewInode {
        inode(ROOT)
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            names: NameStore::FileSystem(OwnNames { remote: true, ..OwnNames::default() }),
            ..FsTraits::default()
        }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let found = self.0.lock().unwrap().found.get(&(dir.node(), name.to_vec())).copied();
        found.map(inode).ok_or(Errno::ENOENT)
    }

    fn create(&self, _: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let (node, name) = (dir.node(), name.ok_or(Errno::EOPNOTSUPP)?);
        self.change(&[(dir, name)], |all| {
            all.made += 1;
            new.attr.ino = FILES + all.made;
            assert!(all.found.insert((node, name.to_vec()), new.attr.ino).is_none(), "a name is made twice");
        });
        Ok(new.attr.ino)
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let (dir_node, node) = (dir.node(), inode.node());
        self.change(&[(dir, name)], |all| {
            assert_eq!(all.found.remove(&(dir_node, name.to_vec())), Some(node));
            all.remove(node);
        });
        Ok(After::NONE)
    }

    fn rename(&self, _: &Request, moved: &Rename<'_>) -> Result<After, Errno> {
        let (old_dir, new_dir, node) = (moved.old_dir.node(), moved.new_dir.node(), moved.inode.node());
        let target = moved.target.map(Inode::node);
        self.change(&[(moved.old_dir, moved.old_name), (moved.new_dir, moved.new_name)], |all| {
            assert_eq!(all.found.remove(&(old_dir, moved.old_name.to_vec())), Some(node));
            assert_eq!(all.found.insert((new_dir, moved.new_name.to_vec()), node), target);
            target.into_iter().for_each(|target| all.remove(target));
        });
        Ok(After::NONE)
    }
}

type Change = fn(&Context) -> Result<(), Errno>;

fn mknod(context: &Context, path: &str) -> Result<(), Errno> {
    context.mknod(Base::CWD, path.as_bytes(), 0o644, 0)
}

fn rename(context: &Context, old: &str, new: &str) -> Result<(), Errno> {
    context.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), RenameFlags::default())
}

/// One thread does `one`, another `two`; `end` gets both results, and the names are the file system's.
fn check(one: Change, two: Change, end: fn(Result<(), Errno>, Result<(), Errno>)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_branches = 1_000_000;
    builder.check(move || {
        let slow = Slow::new();
        let vfs = Vfs::builder().build(slow.clone());
        let context = vfs.context();
        // In the cache before.
        ["/d", "/e"].iter().for_each(|path| assert!(context.attr(Base::CWD, path.as_bytes(), true).is_ok()));
        let held = vfs.stats().held;
        let beside = context.fork();
        let other = thread::spawn(move || one(&beside));
        let done = two(&context);
        let other = other.join().unwrap();
        vfs.barrier();
        for path in ["/d", "/e", "/d/n", "/e/n", "/n"] {
            let mut at = Some(ROOT);
            for name in path[1..].split('/') {
                let all = slow.0.lock().unwrap();
                at = at.and_then(|dir| all.found.get(&(dir, name.as_bytes().to_vec())).copied());
            }
            assert_eq!(context.attr(Base::CWD, path.as_bytes(), true).ok().map(|attr| attr.ino), at, "{path}");
        }
        end(other, done);
        assert_eq!(vfs.stats().held, held, "references");
        drop(context);
        // No thread of the model frees what the last drops deferred.
        vfs.barrier();
    });
}

#[test]
fn a_directory_is_removed_before_a_name_in_it_is_locked_or_after_its_change() {
    check(
        |context| mknod(context, "/d/n"),
        |context| context.rmdir(Base::CWD, b"/d"),
        |made, removed| {
            let both = [(Ok(()), Err(Errno::ENOTEMPTY)), (Err(Errno::ENOENT), Ok(()))];
            assert!(both.contains(&(made, removed)), "{made:?} {removed:?}");
        },
    );
}

#[test]
fn a_directory_is_replaced_before_a_name_in_it_is_locked_or_after_its_change() {
    check(
        |context| mknod(context, "/d/n"),
        |context| rename(context, "/e", "/d"),
        |made, replaced| {
            // In the old directory, or in the new one.
            let both = [(Ok(()), Err(Errno::ENOTEMPTY)), (Ok(()), Ok(()))];
            assert!(both.contains(&(made, replaced)), "{made:?} {replaced:?}");
        },
    );
}

#[test]
fn a_name_is_made_by_one_of_two() {
    check(
        |context| mknod(context, "/n"),
        |context| mknod(context, "/n"),
        |one, two| {
            let both = [(Ok(()), Err(Errno::EEXIST)), (Err(Errno::EEXIST), Ok(()))];
            assert!(both.contains(&(one, two)), "{one:?} {two:?}");
        },
    );
}

#[test]
fn renames_to_and_fro_end() {
    check(
        |context| rename(context, "/d", "/e"),
        |context| rename(context, "/e", "/d"),
        |one, two| {
            let both = [(Ok(()), Ok(())), (Ok(()), Err(Errno::ENOENT)), (Err(Errno::ENOENT), Ok(()))];
            assert!(both.contains(&(one, two)), "{one:?} {two:?}");
        },
    );
}
