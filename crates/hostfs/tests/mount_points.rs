//! What is mounted below the source. Nothing to do without the right to mount.

mod support;

use hostfs::{HostOptions, MountPoints, Revalidate};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use support::{TempDir, Tree};
use vfs::{Base, Errno};

/// Something that is mounted as long as this is there.
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
fn what_is_mounted_below_is_not_entered_unless_it_may_be() {
    let source = TempDir::new();
    let Some(mounted) = tmpfs(source.join("m")) else { return };
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
    // Numbers there are not those of the source, and listings say the same.
    let told = tree.attr("/m/d").unwrap().ino;
    assert_ne!(told, fs::metadata(mounted.0.join("d")).unwrap().ino());
    let dir = tree.open("/m", vfs::OpenFlags::DIRECTORY).unwrap();
    let listed: Vec<_> = dir.next_entries().unwrap().into_iter().map(|entry| (entry.name, entry.ino)).collect();
    assert!(listed.contains(&(Box::from(*b"d"), told)), "{listed:?} {told}");
}

#[test]
fn what_is_bound_below_is_a_mount_point_though_its_device_is_the_same() {
    let source = TempDir::new();
    fs::create_dir(source.join("d")).unwrap();
    fs::write(source.join("d/f"), b"text").unwrap();
    fs::create_dir(source.join("m")).unwrap();
    if mount_bind(&*source, source.join("m")).is_err() {
        return;
    }
    let _mounted = Mounted(source.join("m"));
    let tree = Tree::new(&source, &options(MountPoints::Stay));
    assert_eq!(tree.attr("/m/d").err(), Some(Errno::EXDEV));
    assert_eq!(tree.read("/d/f").unwrap(), b"text");
    // A file over a file.
    fs::write(source.join("d/g"), b"covered").unwrap();
    mount_bind(source.join("d/f"), source.join("d/g")).unwrap();
    let _file = Mounted(source.join("d/g"));
    assert_eq!(tree.read("/d/g"), Err(Errno::EXDEV));
}

#[test]
fn a_device_that_is_kept_out_is_not_entered_in_any_way() {
    let source = TempDir::new();
    let Some(mounted) = tmpfs(source.join("m")) else { return };
    fs::write(mounted.0.join("f"), b"below").unwrap();
    for mount_points in [MountPoints::Stay, MountPoints::Cross] {
        let tree = Tree::new(&source, &options(mount_points));
        tree.host.exclude_dev(fs::metadata(&mounted.0).unwrap().dev());
        assert_eq!(tree.attr("/m").err(), Some(Errno::ELOOP));
        assert_eq!(tree.read("/m/f"), Err(Errno::ELOOP));
    }
}

#[test]
fn what_is_mounted_while_a_tree_is_used_is_seen_as_such() {
    let source = TempDir::new();
    fs::create_dir(source.join("m")).unwrap();
    fs::write(source.join("m/f"), b"covered").unwrap();
    let tree = Tree::new(&source, &options(MountPoints::Stay));
    assert_eq!(tree.read("/m/f").unwrap(), b"covered");
    let Some(mounted) = tmpfs(source.join("m")) else { return };
    assert_eq!(tree.read("/m/f"), Err(Errno::EXDEV));
    drop(mounted);
    assert_eq!(tree.read("/m/f").unwrap(), b"covered");
}
