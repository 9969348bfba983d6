//! Mount points below the source. Skipped without the right to mount.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, MountPoints, Revalidate};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use vfs::{Base, Errno};

/// A mount; dropping this unmounts it.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn tmpfs(at: PathBuf) -> Option<Mounted> {
    fs::create_dir_all(&at).unwrap();
    mount("none", &at, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>).ok()?;
    Some(Mounted(at))
}

fn options(mount_points: MountPoints) -> HostOptions {
    HostOptions { mount_points, policy: Revalidate::Always, ..HostOptions::default() }
}

#[test]
fn mount_points_are_entered_only_with_the_option() {
    let source = support::temp_dir();
    let Some(mounted) = tmpfs(source.path().join("m")) else { return };
    fs::write(mounted.0.join("f"), b"below").unwrap();
    fs::create_dir(mounted.0.join("d")).unwrap();
    let tree = Tree::new(&source, &options(MountPoints::Stay));
    assert_eq!(tree.attr("/m").err(), Some(Errno::EXDEV));
    assert_eq!(tree.read("/m/f"), Err(Errno::EXDEV));
    assert_eq!(tree.mkdir("/m"), Err(Errno::EXDEV));
    assert_eq!(tree.at.rmdir(Base::CWD, b"/m"), Err(Errno::EXDEV));
    assert_eq!(tree.names("/").unwrap(), ["m"]);
    let tree = Tree::new(&source, &options(MountPoints::Cross));
    assert_eq!(tree.read("/m/f").unwrap(), b"below");
    tree.write("/m/d/g", b"made").unwrap();
    assert_eq!(fs::read(mounted.0.join("d/g")).unwrap(), b"made");
    assert_eq!(tree.rename("/m/f", "/f"), Err(Errno::EXDEV));
    // Inode numbers there differ from those of the source, and listings have the same numbers.
    let ino = tree.attr("/m/d").unwrap().ino;
    assert_ne!(ino, fs::metadata(mounted.0.join("d")).unwrap().ino());
    let dir = tree.open("/m", vfs::OpenFlags::DIRECTORY).unwrap();
    let listed: Vec<_> = dir.next_entries().unwrap().into_iter().map(|entry| (entry.name, entry.ino)).collect();
    assert!(listed.contains(&(Box::from(*b"d"), ino)), "{listed:?} {ino}");
}

#[test]
fn a_bind_mount_on_the_same_device_is_a_mount_point() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("d/f"), b"text").unwrap();
    fs::create_dir(source.path().join("m")).unwrap();
    if mount_bind(source.path(), source.path().join("m")).is_err() {
        return;
    }
    let _mounted = Mounted(source.path().join("m"));
    let tree = Tree::new(&source, &options(MountPoints::Stay));
    assert_eq!(tree.attr("/m/d").err(), Some(Errno::EXDEV));
    assert_eq!(tree.read("/d/f").unwrap(), b"text");
    // A bind mount of a file.
    fs::write(source.path().join("d/g"), b"covered").unwrap();
    mount_bind(source.path().join("d/f"), source.path().join("d/g")).unwrap();
    let _file = Mounted(source.path().join("d/g"));
    assert_eq!(tree.read("/d/g"), Err(Errno::EXDEV));
}

#[test]
fn an_excluded_device_is_not_entered() {
    let source = support::temp_dir();
    let Some(mounted) = tmpfs(source.path().join("m")) else { return };
    fs::write(mounted.0.join("f"), b"below").unwrap();
    for mount_points in [MountPoints::Stay, MountPoints::Cross] {
        let tree = Tree::new(&source, &options(mount_points));
        tree.host.exclude_dev(fs::metadata(&mounted.0).unwrap().dev());
        assert_eq!(tree.attr("/m").err(), Some(Errno::ELOOP));
        assert_eq!(tree.read("/m/f"), Err(Errno::ELOOP));
    }
}

#[test]
fn a_mount_that_appears_while_a_tree_is_used_is_recognised() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("m")).unwrap();
    fs::write(source.path().join("m/f"), b"covered").unwrap();
    let tree = Tree::new(&source, &options(MountPoints::Stay));
    assert_eq!(tree.read("/m/f").unwrap(), b"covered");
    let Some(mounted) = tmpfs(source.path().join("m")) else { return };
    assert_eq!(tree.read("/m/f"), Err(Errno::EXDEV));
    drop(mounted);
    assert_eq!(tree.read("/m/f").unwrap(), b"covered");
}
