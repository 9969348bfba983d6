//! loom models of answers about names that nobody looked up, which come with the answer about their directory (`NextNames`),
//! beside operations that change that directory.
//!
//! As in `tree.rs`, the models call the public interface and try one preemption. That of a removal fails if
//! `prime::learn_in` does not compare the directory's moment with that at which it began; in the others an entry of the name, which
//! it also looks for, is there by then.

use lightfoot_vfs::{
    After, Attr, Base, Context, Errno, FileSystem, Inode, NewInode, NewNode, NextNames, PathAt, Rename, RenameFlags,
    Request, S_IFDIR, S_IFREG, Vfs,
};
use loom::thread;
use std::sync::{Arc, Mutex};

const ROOT: u64 = 1;
/// The directory `d` of the root.
const DIRECTORY: u64 = 2;
/// The one file, in the directory.
const FILE: u64 = 3;

/// The name of the file, if it has one. loom does not see it: it is not a part of the model.
#[derive(Clone)]
struct Ahead(Arc<Mutex<Option<Vec<u8>>>>);

impl Ahead {
    fn has(&self, name: &[u8]) -> bool {
        self.0.lock().unwrap().as_deref() == Some(name)
    }
}

fn inode(ino: u64) -> NewInode {
    let mode = if ino == FILE { S_IFREG | 0o644 } else { S_IFDIR | 0o755 };
    NewInode { node: ino, attr: Attr { ino, mode, nlink: 1, ..Attr::default() }, ..NewInode::default() }
}

impl FileSystem for Ahead {
    fn root(&self) -> NewInode {
        inode(ROOT)
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        match dir.node() {
            ROOT if name == b"d" => {
                if let Some(name) = next.names().next() {
                    if self.has(name) { next.found(inode(FILE)) } else { next.absent() }
                }
                Ok(inode(DIRECTORY))
            }
            DIRECTORY if self.has(name) => Ok(inode(FILE)),
            _ => Err(Errno::ENOENT),
        }
    }

    fn create(&self, _: &Request, _: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = FILE;
        *self.0.lock().unwrap() = Some(name.unwrap_or_default().to_vec());
        Ok(FILE)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        *self.0.lock().unwrap() = None;
        Ok(After::NONE)
    }

    fn rename(&self, _: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        *self.0.lock().unwrap() = Some(rename.new_name.to_vec());
        Ok(After::NONE)
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

/// One thread looks `/d/p` up, which brings the directory into the cache, and another runs `change`; then `end`, alone. The file
/// begins with the name `name`.
fn check(name: Option<&'static str>, change: fn(&Context), end: fn(&Context)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_branches = 1_000_000;
    builder.check(move || {
        let vfs = Vfs::new(Ahead(Arc::new(Mutex::new(name.map(|name| name.as_bytes().to_vec())))));
        let context = vfs.context();
        let beside = context.fork();
        let other = thread::spawn(move || change(&beside));
        assert!(matches!(look(&context, "/d/p"), None | Some(FILE)));
        other.join().unwrap();
        vfs.barrier();
        end(&context);
        drop(context);
        // No thread of the model frees what the last drops deferred.
        vfs.barrier();
    });
}

#[test]
fn an_answer_from_before_a_removal_leaves_no_name() {
    check(
        Some("p"),
        |context| context.unlink(Base::CWD, b"/d/p").unwrap(),
        |context| assert_eq!(look(context, "/d/p"), None),
    );
}

#[test]
fn an_answer_from_before_a_rename_leaves_no_old_name() {
    check(
        Some("p"),
        |context| context.rename(PathAt::cwd(b"/d/p"), PathAt::cwd(b"/d/q"), RenameFlags::default()).unwrap(),
        |context| assert_eq!((look(context, "/d/p"), look(context, "/d/q")), (None, Some(FILE))),
    );
}

#[test]
fn an_answer_from_before_a_creation_leaves_no_absence() {
    check(
        None,
        |context| context.mknod(Base::CWD, b"/d/p", 0o644, 0).unwrap(),
        |context| assert_eq!(look(context, "/d/p"), Some(FILE)),
    );
}
