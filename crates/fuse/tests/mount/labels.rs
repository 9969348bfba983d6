//! Labels of security modules: what the kernel sends where no module gives one.

use crate::{Mount, ram, session};
use lightfoot_fuse::{MountOptions, SessionOptions};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn files_of_each_kind_are_made_with_labels_on() {
    let options = MountOptions { session: SessionOptions { labels: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&ram(), &options) else { return };
    fs::write(mount.path("file"), b"x").unwrap();
    fs::create_dir(mount.path("dir")).unwrap();
    symlink("x", mount.path("link")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, mount.path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(fs::read_dir(&mount.at).unwrap().count(), 4);
    assert_eq!(
        mount.mounted().session().metrics().snapshot().ops.iter().map(|op| op.failures().count()).sum::<usize>(),
        0
    );
}
