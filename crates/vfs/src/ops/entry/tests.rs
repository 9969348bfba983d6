//! Which operations call a file system in a walk's read section.

use crate::base::access::acl::{Acl, AclEntry, AclKind, AclTag};
use crate::base::attr::{Attr, S_IFDIR, S_IFREG};
use crate::base::errno::Errno;
use crate::fs::layer::Layer;
use crate::fs::{After, CachedNames, FileSystem, FsTraits, NameStore, NewInode, NewNode, Request, SetXattr};
use crate::mount::place::Base;
use crate::slots::inode::Inode;
use crate::{Context, Vfs};
use prim::shared::PlainArc as Arc;
use std::sync::OnceLock;
use sync::Mutex;

/// A file system that notes in which calls its caller was in a read section.
#[derive(Default)]
struct Noting {
    names: NameStore,
    notes: Arc<Mutex<Vec<bool>>>,
    is_reading: Arc<OnceLock<Box<dyn Fn() -> bool + Send + Sync>>>,
}

impl Noting {
    fn note(&self) {
        let is_reading = self.is_reading.get().expect("set before the first call");
        self.notes.lock().push(is_reading());
    }
}

impl FileSystem for Noting {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits { names: self.names, acls: true, ..FsTraits::default() }
    }

    fn create(&self, _: &Request, _: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        self.note();
        new.attr.ino = 2;
        new.attr.blocks = if name == Some(b"large") { 4096 } else { 0 };
        Ok(2)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        self.note();
        Ok(After::NONE)
    }

    fn set_xattr(&self, _: &Request, _: &Inode, _: &[u8], _: &[u8], _: SetXattr) -> Result<(), Errno> {
        Ok(())
    }
}

/// A layer that changes nothing.
struct Around(Noting);

impl Layer for Around {
    type Inner = Noting;

    fn inner(&self) -> &Noting {
        &self.0
    }
}

/// Runs `run` on a file system with this store of names, inside a layer if `has_layer`. Returns, for each call, whether the
/// calling thread was in a read section.
fn notes(names: NameStore, has_layer: bool, run: fn(&Context)) -> Vec<bool> {
    let fs = Noting { names, ..Noting::default() };
    let (notes, is_reading) = (fs.notes.clone(), fs.is_reading.clone());
    let vfs = if has_layer { Vfs::new(Around(fs)) } else { Vfs::new(fs) };
    let context = vfs.context();
    let tree = context.shared_tree().clone();
    assert!(is_reading.set(Box::new(move || tree.domain.is_reading())).is_ok());
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    notes.lock().clear();
    run(&context);
    core::mem::take(&mut *notes.lock())
}

fn make(context: &Context, path: &[u8]) {
    context.mknod(Base::CWD, path, S_IFREG | 0o644, 0).unwrap();
}

/// A name, the place of the file system's names, whether a layer is around it, the operations, and which of its calls are in a section.
type Case<'a> = (&'a str, NameStore, bool, fn(&Context), &'a [bool]);

#[test]
fn names_come_and_go_in_the_walk_s_section_unless_that_might_wait() {
    let quick = NameStore::Cache(CachedNames { never_waits: true, ..CachedNames::default() });
    let waiting = NameStore::Cache(CachedNames::default());
    let make_and_remove = |context: &Context| {
        make(context, b"/d/f");
        context.unlink(Base::CWD, b"/d/f").unwrap();
    };
    let remove_large = |context: &Context| {
        make(context, b"/d/large");
        context.unlink(Base::CWD, b"/d/large").unwrap();
    };
    let inherit = |context: &Context| {
        let entry = |tag| AclEntry { tag, perm: 5 };
        let acl = Acl::new(&[AclTag::UserObj, AclTag::GroupObj, AclTag::Other].map(entry)).unwrap().to_xattr();
        context.set_xattr(Base::CWD, b"/d", true, AclKind::Default.xattr_name(), &acl, SetXattr::Any).unwrap();
        make(context, b"/d/f");
    };
    let remove_dir = |context: &Context| context.rmdir(Base::CWD, b"/d").unwrap();
    let cases: [Case<'_>; 6] = [
        ("a file", quick, false, make_and_remove, &[true, true]),
        ("a long file", quick, false, remove_large, &[true, false]),
        ("a default ACL", quick, false, inherit, &[false]),
        ("a directory", quick, false, remove_dir, &[false]),
        ("a layer", quick, true, make_and_remove, &[false, false]),
        ("may wait", waiting, false, make_and_remove, &[false, false]),
    ];
    for (what, names, has_layer, run, want) in cases {
        assert_eq!(notes(names, has_layer, run), want, "{what}");
    }
}
