//! What a file begins with: a file system that stores all of it in the call that makes the file is asked once.

use lightfoot_vfs::{
    Acl, AclEntry, AclKind, AclTag, Base, Context, Credentials, Errno, FileSystem, Inode, Layer, NewNode, OpenFlags,
    Request, SetAttr, SetXattr, Vfs,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use testkit::{Call, Store};

/// A store that leaves ACLs to the VFS, as one does whose files and attributes are stored by two calls.
struct Apart(Store);

impl Layer for Apart {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.0
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let mut plain = NewNode::new(new.attr);
        plain.link_body = new.link_body;
        let node = FileSystem::create(&self.0, request, dir, name, &mut plain)?;
        new.attr = plain.attr;
        Ok(node)
    }
}

/// `u::rwx`, `u:7:r-x`, `g::r-x`, `m::rwx`, `o::---`.
fn acl() -> Acl {
    let entry = |tag, perm| AclEntry { tag, perm };
    Acl::new(&[
        entry(AclTag::UserObj, 7),
        entry(AclTag::User(7), 5),
        entry(AclTag::GroupObj, 5),
        entry(AclTag::Mask, 7),
        entry(AclTag::Other, 0),
    ])
    .unwrap()
}

/// The store with the directory `/d`, which has a default ACL, and a tree over it.
fn store() -> (Store, Context) {
    let store = Store::with_paths(&["d/"]);
    let context = store.tree().context();
    let name = AclKind::Default.xattr_name();
    context.set_xattr(Base::CWD, b"/d", false, name, &acl().to_xattr(), SetXattr::Any).unwrap();
    (store, context)
}

/// The ACLs of a file, access and default.
fn acls(context: &Context, path: &[u8]) -> [Option<Acl>; 2] {
    [AclKind::Access, AclKind::Default].map(|kind| match context.get_xattr(Base::CWD, path, false, kind.xattr_name()) {
        Ok(value) => Acl::from_xattr(&value).unwrap(),
        Err(errno) => {
            assert_eq!(errno, Errno::ENODATA);
            None
        }
    })
}

#[test]
fn no_snapshot_shows_a_file_without_its_acls() {
    let (store, context) = store();
    let (snapshots, seen) = (store.clone(), Arc::new(Mutex::new(Vec::new())));
    let (asked, notes) = (Arc::new(AtomicU32::new(0)), seen.clone());
    let xattrs = asked.clone();
    store.after(move |call| {
        match call {
            // A new tree sees what a crash leaves at this moment: the creating tree has not got the answer yet.
            Call::Create { name: Some(name), .. } => {
                let path = [b"/d/", *name].concat();
                notes.lock().unwrap().push(acls(&snapshots.tree().context(), &path));
            }
            Call::Xattr { .. } => drop(xattrs.fetch_add(1, SeqCst)),
            _ => {}
        }
        Ok(())
    });
    context.mkdir(Base::CWD, b"/d/dir", 0o777).unwrap();
    context.mknod(Base::CWD, b"/d/file", 0o666, 0).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(asked.load(SeqCst), 3, "the snapshots' requests: two ACLs of a directory, one of a file");
    let [dir, file] = &seen[..] else { panic!("two files") };
    assert_eq!(dir[1], Some(acl()));
    assert!(dir[0].is_some() && file[0].is_some() && file[1].is_none());
    assert_eq!((acls(&context, b"/d/dir"), acls(&context, b"/d/file")), (dir.clone(), file.clone()));
}

#[test]
fn the_vfs_sets_the_acls_that_a_file_system_did_not_store_with_the_file() {
    let (store, context) = store();
    let apart = Vfs::new(Apart(store.clone())).context();
    for (context, names) in [(&context, ["a", "b"]), (&apart, ["c", "d"])] {
        let [dir, file] = names.map(|name| format!("/d/{name}").into_bytes());
        context.mkdir(Base::CWD, &dir, 0o777).unwrap();
        context.mknod(Base::CWD, &file, 0o666, 0).unwrap();
    }
    let fresh = store.tree().context();
    for (one, other) in [("/d/a", "/d/c"), ("/d/b", "/d/d")] {
        let [one, other] = [one, other].map(str::as_bytes);
        assert_eq!(acls(&fresh, one), acls(&fresh, other));
        assert_eq!(acls(&fresh, other), acls(&apart, other));
        let modes = [one, other].map(|path| fresh.attr(Base::CWD, path, false).unwrap().mode);
        assert_eq!(modes[0], modes[1]);
    }
    assert!(acls(&fresh, b"/d/c").iter().all(Option::is_some));
}

#[test]
fn a_file_without_a_name_begins_with_its_acl() {
    let (store, context) = store();
    let flags = OpenFlags::RDWR.union(OpenFlags::TMPFILE);
    for context in [&context, &Vfs::new(Apart(store)).context()] {
        let file = context.open(Base::CWD, b"/d", flags, 0o666).unwrap();
        let value = context.get_xattr_held(file.held(), AclKind::Access.xattr_name()).unwrap();
        assert_eq!(Acl::from_xattr(&value).unwrap().map(|acl| acl.mode_bits()), Some(0o660));
    }
}

#[test]
fn only_the_user_that_the_acl_names_enters_a_new_directory() {
    let (_store, context) = store();
    context.mkdir(Base::CWD, b"/d/dir", 0o750).unwrap();
    context.set_attr(Base::CWD, b"/d", false, &SetAttr { mode: Some(0o755), ..SetAttr::default() }).unwrap();
    for (uid, entered) in [(7, Err(Errno::ENOENT)), (8, Err(Errno::EACCES))] {
        context.set_credentials(Credentials::user(uid, uid, &[]));
        assert_eq!(context.attr(Base::CWD, b"/d/dir/x", false).map(drop), entered, "{uid}");
    }
}
