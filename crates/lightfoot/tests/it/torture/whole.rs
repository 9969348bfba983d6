//! What must hold of a tree after its last change.

use std::collections::BTreeMap;
use vfs::{Base, Context, DirEntry, OpenFlags, S_IFDIR, Vfs};

/// The entries of a directory.
pub(crate) fn list(context: &Context, path: &str) -> Vec<DirEntry> {
    let dir = context.open(Base::CWD, path.as_bytes(), OpenFlags::DIRECTORY, 0).unwrap();
    let mut all = Vec::new();
    loop {
        let entries = dir.next_entries().unwrap();
        if entries.is_empty() {
            return all;
        }
        all.extend(entries);
    }
}

/// Looks at all that is below the root: listings, names and attributes agree, files have as many links as names, directories as
/// their sub-directories require. Returns the number of names.
pub(crate) fn check(context: &Context) -> usize {
    let mut dirs = vec![String::new()];
    let mut files: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    let mut names = 0;
    while let Some(dir) = dirs.pop() {
        let mut subdirs = 0;
        for entry in list(context, &format!("{dir}/")) {
            let path = format!("{dir}/{}", String::from_utf8(entry.name.into_vec()).unwrap());
            let attr = context.attr(Base::CWD, path.as_bytes(), false).unwrap();
            assert_eq!((attr.ino, attr.kind()), (entry.ino, entry.kind), "{path}");
            names += 1;
            if attr.is_dir() {
                subdirs += 1;
                dirs.push(path);
            } else {
                let (links, found) = files.entry(attr.ino).or_insert((attr.nlink, 0));
                assert_eq!(*links, attr.nlink, "{path}");
                *found += 1;
            }
        }
        let attr = context.attr(Base::CWD, format!("{dir}/").as_bytes(), true).unwrap();
        assert_eq!((attr.nlink, attr.mode & S_IFDIR), (2 + subdirs, S_IFDIR), "{dir}/: sub-directories");
    }
    for (ino, (links, found)) in files {
        assert_eq!(links, found, "inode {ino}: links, and names");
    }
    names
}

/// Lets the last context go, and looks whether nothing is held and nothing waits to be freed. Gives how many dentries are left.
pub(crate) fn check_released(vfs: &Vfs, context: Context) -> usize {
    drop(context);
    vfs.barrier();
    let (stats, rcu) = (vfs.stats(), vfs.rcu_stats());
    assert_eq!(stats.held, 0, "held at the end");
    assert_eq!((rcu.deferred_callbacks, rcu.deferred_bytes), (0, 0), "deferred after a barrier");
    stats.live_dentries
}
