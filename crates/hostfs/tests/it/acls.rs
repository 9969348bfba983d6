//! ACLs of the host: obeyed, renewed, inherited, set. Needs a root process and ACLs on the file system of the temporary
//! directory; otherwise prints SKIPPED.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostAcls, HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use vfs::{Acl, AclEntry, AclKind, AclTag, Base, Credentials, Errno, OpenFlags, SetAttr, SetXattr};

const USER: u32 = 12_345;
const TEAM: u32 = 34_567;

/// An ACL: owner, group, others; one more user and one more group; the mask.
fn acl([owner, user, group, team, mask, other]: [u16; 6]) -> Acl {
    let entries = [
        (AclTag::UserObj, owner),
        (AclTag::User(USER), user),
        (AclTag::GroupObj, group),
        (AclTag::Group(TEAM), team),
        (AclTag::Mask, mask),
        (AclTag::Other, other),
    ];
    Acl::new(&entries.map(|(tag, perm)| AclEntry { tag, perm })).unwrap()
}

/// Everybody may do everything, except for members of [`TEAM`].
fn not_the_team() -> Acl {
    acl([7, 7, 7, 0, 7, 7])
}

fn set(path: &Path, kind: AclKind, acl: &Acl) -> bool {
    rustix::fs::setxattr(path, kind.xattr_name(), &acl.to_xattr(), rustix::fs::XattrFlags::empty()).is_ok()
}

fn get(path: &Path, kind: AclKind) -> Option<Acl> {
    let mut value = [0; 1024];
    let len = rustix::fs::getxattr(path, kind.xattr_name(), &mut value[..]).ok()?;
    Acl::from_xattr(&value[..len]).unwrap()
}

/// `None`, with the line SKIPPED, where these tests show nothing.
fn source(test: &str) -> Option<TempDir> {
    let source = support::temp_dir();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(source.path().join("probe"), b"").unwrap();
    let can =
        rustix::process::geteuid().is_root() && set(&source.path().join("probe"), AclKind::Access, &not_the_team());
    if !can {
        println!("SKIPPED {test}: needs root and ACLs");
    }
    can.then_some(source)
}

fn tree(source: &TempDir, policy: Revalidate) -> Tree {
    Tree::new(source, &HostOptions { policy, ..HostOptions::default() })
}

fn member() -> Credentials {
    Credentials::user(1, 1, &[TEAM])
}

/// Whether a member of [`TEAM`] can read a file, once the attributes of the root were read again.
fn member_reads(tree: &Tree, path: &str) -> bool {
    let _ = (tree.attr("/none"), tree.attr("/"));
    tree.at.set_credentials(member());
    let read = tree.read(path);
    tree.at.set_credentials(Credentials::root());
    assert!(matches!(read, Ok(_) | Err(Errno::EACCES)), "{read:?}");
    read.is_ok()
}

#[test]
fn by_default_a_member_of_a_denied_group_reads_nothing() {
    let Some(source) = source("by_default_a_member_of_a_denied_group_reads_nothing") else { return };
    fs::create_dir(source.path().join("d")).unwrap();
    fs::set_permissions(source.path().join("d"), fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["f", "d/f"] {
        fs::write(source.path().join(name), b"text").unwrap();
    }
    assert!(set(&source.path().join("f"), AclKind::Access, &not_the_team()));
    assert!(set(&source.path().join("d"), AclKind::Access, &not_the_team()));
    for policy in [Revalidate::Exclusive, Revalidate::Always, Revalidate::Ttl(Duration::from_secs(1))] {
        let tree = tree(&source, policy);
        for _ in 0..3 {
            assert!(!member_reads(&tree, "/f"), "{policy:?}");
            assert!(!member_reads(&tree, "/d/f"), "a directory that the ACL closes, {policy:?}");
        }
    }
    // As a front end's kernel checks, or because nobody wants them.
    for acls in [HostAcls::Store, HostAcls::Refuse] {
        assert!(member_reads(&Tree::new(&source, &HostOptions { acls, ..HostOptions::default() }), "/f"));
    }
}

#[test]
fn acls_that_change_on_the_host_are_renewed_like_attributes() {
    let Some(source) = source("acls_that_change_on_the_host_are_renewed_like_attributes") else { return };
    fs::create_dir(source.path().join("d")).unwrap();
    fs::set_permissions(source.path().join("d"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(source.path().join("d/f"), b"text").unwrap();
    fs::set_permissions(source.path().join("d/f"), fs::Permissions::from_mode(0o666)).unwrap();
    let tree = tree(&source, Revalidate::Always);
    let all = acl([7, 7, 7, 7, 7, 7]);
    for place in ["d/f", "d", ""] {
        let path = source.path().join(place);
        assert!(member_reads(&tree, "/d/f"), "{place}");
        assert!(set(&path, AclKind::Access, &not_the_team()));
        assert!(!member_reads(&tree, "/d/f"), "taken from {place:?}");
        assert!(set(&path, AclKind::Access, &all));
        assert!(member_reads(&tree, "/d/f"), "given to {place:?}");
        assert!(set(&path, AclKind::Access, &not_the_team()));
        assert!(!member_reads(&tree, "/d/f"), "taken again from {place:?}");
        rustix::fs::removexattr(&path, AclKind::Access.xattr_name()).unwrap();
        assert!(member_reads(&tree, "/d/f"), "removed from {place:?}");
    }
}

#[test]
fn the_root_starts_with_its_acl() {
    let Some(source) = source("the_root_starts_with_its_acl") else { return };
    fs::write(source.path().join("f"), b"text").unwrap();
    fs::set_permissions(source.path().join("f"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(set(source.path(), AclKind::Access, &not_the_team()));
    assert!(!member_reads(&tree(&source, Revalidate::Exclusive), "/f"));
}

#[test]
fn what_is_set_through_the_tree_is_on_the_host_and_obeyed_at_once() {
    let Some(source) = source("what_is_set_through_the_tree_is_on_the_host_and_obeyed_at_once") else { return };
    let path = source.path().join("f");
    fs::write(&path, b"text").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let tree = tree(&source, Revalidate::Exclusive);
    assert!(member_reads(&tree, "/f"));
    let (name, value) = (AclKind::Access.xattr_name(), not_the_team().to_xattr());
    tree.at.set_xattr(Base::CWD, b"/f", false, name, &value, SetXattr::Any).unwrap();
    assert_eq!(get(&path, AclKind::Access), Some(not_the_team()));
    assert!(!member_reads(&tree, "/f"));
    assert_eq!(&*tree.at.get_xattr(Base::CWD, b"/f", false, name).unwrap(), value);
    // A change of the mode changes the mask, on the host and in the cache.
    tree.at.set_attr(Base::CWD, b"/f", false, &SetAttr { mode: Some(0o640), ..SetAttr::default() }).unwrap();
    assert_eq!(get(&path, AclKind::Access), Some(acl([6, 7, 7, 0, 4, 0])));
    assert_eq!(tree.attr("/f").unwrap().mode & 0o777, 0o640);
    tree.at.remove_xattr(Base::CWD, b"/f", false, name).unwrap();
    assert_eq!(get(&path, AclKind::Access), None);
    // Nobody but the owner.
    tree.at.set_credentials(Credentials::user(USER, 1, &[]));
    assert_eq!(tree.at.set_xattr(Base::CWD, b"/f", false, name, &value, SetXattr::Any), Err(Errno::EPERM));
}

#[test]
fn new_files_inherit_the_default_acl_and_not_the_umask() {
    let Some(source) = source("new_files_inherit_the_default_acl_and_not_the_umask") else { return };
    let dir = source.path().join("d");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    for acls in [HostAcls::Apply, HostAcls::Store, HostAcls::Refuse] {
        // Both caches are older than the default ACL.
        let options = HostOptions { acls, policy: Revalidate::Exclusive, ..HostOptions::default() };
        let tree = Tree::new(&source, &options);
        tree.at.set_umask(0o077);
        tree.write("/d/masked", b"text").unwrap();
        assert_eq!(fs::metadata(dir.join("masked")).unwrap().mode() & 0o777, 0o600);
        assert!(set(&dir, AclKind::Default, &not_the_team()));
        tree.write("/d/file", b"text").unwrap();
        tree.mkdir("/d/dir").unwrap();
        tree.at.mknod(Base::CWD, b"/d/fifo", vfs::S_IFIFO | 0o666, 0).unwrap();
        let unnamed = tree.at.open(Base::CWD, b"/d", OpenFlags::TMPFILE.union(OpenFlags::RDWR), 0o666).unwrap();
        assert_eq!(unnamed.attr().unwrap().mode & 0o777, 0o666);
        for (name, mode) in [("file", 0o644), ("dir", 0o755), ("fifo", 0o666)] {
            let host = fs::metadata(dir.join(name)).unwrap().mode() & 0o777;
            assert_eq!((host, tree.attr(&format!("/d/{name}")).unwrap().mode & 0o777), (mode, mode), "{name} {acls:?}");
        }
        assert_eq!(get(&dir.join("file"), AclKind::Access), Some(acl([6, 7, 7, 0, 4, 4])));
        assert_eq!(get(&dir.join("dir"), AclKind::Default), Some(not_the_team()));
        assert_eq!(member_reads(&tree, "/d/file"), acls != HostAcls::Apply, "the cache has the new file's ACL");
        drop((unnamed, tree));
        for name in ["masked", "file", "fifo"] {
            fs::remove_file(dir.join(name)).unwrap();
        }
        fs::remove_dir(dir.join("dir")).unwrap();
        rustix::fs::removexattr(&dir, AclKind::Default.xattr_name()).unwrap();
    }
}

#[test]
fn without_the_option_acls_can_be_read_and_not_set() {
    let Some(source) = source("without_the_option_acls_can_be_read_and_not_set") else { return };
    let options = HostOptions { acls: HostAcls::Refuse, ..HostOptions::default() };
    let tree = Tree::new(&source, &options);
    let (name, value) = (AclKind::Access.xattr_name(), not_the_team().to_xattr());
    assert_eq!(&*tree.at.get_xattr(Base::CWD, b"/probe", false, name).unwrap(), value);
    let refused = tree.at.set_xattr(Base::CWD, b"/probe", false, name, &value, SetXattr::Any);
    assert_eq!(refused, Err(Errno::EOPNOTSUPP));
}
