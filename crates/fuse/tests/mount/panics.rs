//! A file system that panics fails single requests, not the mount.

use crate::{Mount, inode, long};
use lightfoot_fuse::{Gauge, MountOptions};
use std::fs;
use vfs::{Errno, FileSystem, Inode, NewInode, NextNames, Request, S_IFDIR, S_IFREG, Vfs};

/// Lookups of names with a `p` first panic.
struct Panicking;

impl FileSystem for Panicking {
    fn root(&self) -> NewInode {
        inode(1, S_IFDIR | 0o755)
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        assert_ne!(name[0], b'p', "on purpose");
        Ok(inode(2, S_IFREG | 0o644))
    }
}

#[test]
fn a_request_that_panics_fails_and_the_mount_goes_on() {
    // With two threads, three panics would end both.
    let options = MountOptions { threads: Some(2), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Panicking), &options) else { return };
    for name in ["p1", "p2", "p3", "p1"] {
        assert_eq!(fs::metadata(mount.path(name)).unwrap_err().raw_os_error(), Some(5), "{name}");
    }
    assert!(fs::metadata(mount.path("file")).is_ok());
    assert!(!mount.mounted().is_over());
    assert!(mount.mounted().session().metrics().get(Gauge::Panics) >= 4);
}
