//! Mounts without opens: what the kernel reads by node.

use crate::{Mount, ram, session};
use lightfoot_fuse::{MountOptions, OpStats, SessionOptions};
use std::collections::BTreeSet;
use std::fs;

const FILES: usize = 3000;

/// Requests of this operation.
fn of(mount: &Mount, name: &str) -> OpStats {
    let ops = mount.mounted().session().metrics().snapshot().ops;
    ops.into_iter().find(|op| op.name == name).unwrap_or_default()
}

#[test]
fn directories_are_listed_without_opens_and_from_the_kernels_cache() {
    let session = SessionOptions { no_open: true, ..session() };
    let Some(mount) = Mount::new(&ram(), &MountOptions { session, ..MountOptions::default() }) else { return };
    let dir = mount.path("dir");
    fs::create_dir(&dir).unwrap();
    let mut expected: BTreeSet<String> = (0..FILES).map(|number| format!("name{number}")).collect();
    expected.iter().for_each(|name| fs::write(dir.join(name), b"").unwrap());
    let listed = || -> BTreeSet<String> {
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(listed(), expected);
    if of(&mount, "opendir").errnos != [("ENOSYS".to_owned(), 1)] {
        return println!("SKIPPED: the kernel opens directories: before Linux 5.1");
    }
    assert_eq!(listed(), expected);
    let requests = || of(&mount, "readdir").count + of(&mount, "readdirplus").count;
    let before = requests();
    assert_eq!(listed(), expected);
    assert_eq!(requests(), before, "the kernel has it");
    // Changes reach the listing.
    fs::write(dir.join("new"), b"").unwrap();
    expected.insert("new".into());
    assert_eq!(listed(), expected);
    for number in (0..FILES).step_by(2) {
        let name = format!("name{number}");
        fs::remove_file(dir.join(&name)).unwrap();
        expected.remove(&name);
    }
    assert_eq!(listed(), expected);
    fs::File::open(&dir).unwrap().sync_all().unwrap();
    assert_eq!((of(&mount, "opendir").count, of(&mount, "releasedir").count), (1, 0));
    assert_eq!(mount.mounted().session().open_handles(), 0);
    fs::remove_dir_all(&dir).unwrap();
}
