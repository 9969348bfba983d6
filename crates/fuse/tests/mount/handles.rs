//! `name_to_handle_at(2)` and `open_by_handle_at(2)` on mounts, after the kernel has forgotten the files.

use crate::support::{HostMount, Mount, wait_for};
use crate::{long, ram};
use hostfs::HostOptions;
use prim::file_handle::{name_to_handle, open_by_handle};
use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

type Handle = (i32, Vec<u8>);

fn handle(path: &Path) -> Result<Handle, Errno> {
    name_to_handle(File::open(path).unwrap().as_fd())
}

fn open(at: &File, (kind, bytes): &Handle, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_by_handle(at.as_fd(), (*kind, bytes), flags)
}

/// Makes the kernel forget all nodes but the root, as it does when it needs memory.
fn forget(mount: &Mount) {
    wait_for("the kernel forgets the nodes", || {
        fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
        mount.mounted().session().known_nodes() == 1
    });
}

#[test]
fn a_file_in_memory_is_opened_by_its_handle_after_the_kernel_forgot_it() {
    let Some(mount) = Mount::new(&ram(), &long()) else { return };
    let at = File::open(&mount.at).unwrap();
    fs::create_dir_all(mount.path("a/b/c")).unwrap();
    fs::write(mount.path("a/b/c/file"), b"contents").unwrap();
    fs::write(mount.path("other"), b"other").unwrap();
    let paths = ["a/b/c", "a/b/c/file", "other"].map(|name| mount.path(name));
    let numbers =
        paths.clone().map(|path| fs::metadata(path).map(|found| std::os::unix::fs::MetadataExt::ino(&found)).unwrap());
    let handles = paths.map(|path| handle(&path).unwrap());
    let check = |what: &str| {
        for (number, handle) in numbers.iter().zip(&handles) {
            forget(&mount);
            let found = open(&at, handle, OFlags::RDONLY).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(fstat(&found).unwrap().st_ino, *number, "{what}");
        }
        forget(&mount);
        let mut text = String::new();
        File::from(open(&at, &handles[1], OFlags::RDONLY).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "contents", "{what}");
    };
    check("after eviction");
    fs::rename(mount.path("a/b"), mount.path("moved")).unwrap();
    fs::rename(mount.path("moved/c/file"), mount.path("file")).unwrap();
    check("after moves");
    // A directory is connected again: its path is known.
    forget(&mount);
    let dir = open(&at, &handles[0], OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
    let path = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&dir))).unwrap();
    assert_eq!(path, mount.path("moved/c"));
    drop(dir);
    // What is gone stays gone, also when new files are made.
    fs::remove_file(mount.path("file")).unwrap();
    fs::remove_dir(mount.path("moved/c")).unwrap();
    fs::write(mount.path("new"), b"new").unwrap();
    forget(&mount);
    for gone in &handles[..2] {
        assert_eq!(open(&at, gone, OFlags::PATH).map(drop), Err(Errno::STALE));
    }
    assert!(open(&at, &handles[2], OFlags::RDONLY).is_ok());
}

#[test]
fn a_host_directory_gives_no_handles() {
    let Some(mount) = HostMount::new(&HostOptions::default(), &long()) else { return };
    fs::write(mount.host("file"), b"text").unwrap();
    assert_eq!(handle(&mount.path("file")), Err(Errno::OPNOTSUPP));
}
