//! Inode numbers that programs see: the id of a node is its inode number, unless another node has that.

use crate::session::kernel::{DIR, Kernel, PLAIN, SUPER};
use lightfoot_fuse::{Entry, NewMode, ROOT_NODE, SessionOptions};
use ramfs::RamFs;
use std::collections::BTreeSet;
use vfs::{
    Attr, Base, Errno, FileSystem, Inode, MountFlags, NewInode, NextNames, PathAt, Request, S_IFDIR, S_IFREG, SetAttr,
};

/// Checks that all operations show one number for `entry`.
fn check_one_number(kernel: &Kernel, entry: &Entry, label: &str) {
    assert_eq!(entry.attr.ino, entry.node, "{label}: found");
    assert_eq!(kernel.getattr(entry.node).unwrap().0.ino, entry.node, "{label}: looked at");
    let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
    assert_eq!(kernel.setattr(&SUPER, entry.node, &set, None).unwrap().0.ino, entry.node, "{label}: changed");
}

#[test]
fn every_kind_of_file_has_one_number() {
    let kernel = Kernel::new();
    let made = [
        kernel.file("file"),
        kernel.dir("dir"),
        kernel.mknod(&SUPER, ROOT_NODE, b"fifo", NewMode::new(vfs::S_IFIFO | 0o644, 0), 0).unwrap(),
    ];
    for (entry, name) in made.iter().zip(["file", "dir", "fifo"]) {
        check_one_number(&kernel, entry, name);
        kernel.forget(entry.node, 1);
        let again = kernel.look(name).unwrap();
        assert_eq!(again.node, entry.node, "{name}: after it was forgotten");
        kernel.forget(again.node, 1);
    }
    kernel.check_nothing_left("kinds");
}

#[test]
fn mounts_in_one_tree_with_the_same_numbers_have_different_nodes() {
    let kernel = Kernel::new();
    let context = kernel.vfs.context();
    let mut nodes = BTreeSet::new();
    for name in ["a", "b"] {
        let covered = kernel.dir(name);
        context.mount(RamFs::new(), Base::CWD, format!("/{name}").as_bytes(), MountFlags::default()).unwrap();
        let top = kernel.look(name).unwrap();
        assert_ne!(top.node, covered.node, "the mount's root is seen, not what it covers");
        let file = kernel.mknod(&SUPER, top.node, b"f", PLAIN, 0).unwrap();
        let inner = kernel.mkdir(&SUPER, top.node, b"d", DIR).unwrap();
        for (entry, what) in [(&top, "top"), (&file, "file"), (&inner, "directory")] {
            check_one_number(&kernel, entry, &format!("{what} of {name}"));
            assert!(nodes.insert(entry.node), "{what} of {name}");
        }
        for entry in [&covered, &top, &file, &inner] {
            kernel.forget(entry.node, 1);
        }
        // Another lookup finds the same numbers.
        let again = kernel.look(name).unwrap();
        let file_again = kernel.lookup(&SUPER, again.node, b"f").unwrap();
        assert_eq!((again.node, file_again.node), (top.node, file.node));
        kernel.forget(again.node, 1);
        kernel.forget(file_again.node, 1);
    }
    // The mounts hold their roots and the places that they cover.
    assert_eq!((kernel.known_nodes(), kernel.open_handles()), (1, 0));
}

#[test]
fn a_directory_in_two_places_has_a_node_for_each() {
    let kernel = Kernel::new();
    let context = kernel.vfs.context();
    let (a, b) = (kernel.dir("a"), kernel.dir("b"));
    let file = kernel.mknod(&SUPER, a.node, b"f", PLAIN, 0).unwrap();
    context.bind(PathAt::cwd(b"/a"), PathAt::cwd(b"/b"), MountFlags::RDONLY, false).unwrap();
    let seen = kernel.look("b").unwrap();
    assert!(seen.node != a.node && seen.node != b.node);
    check_one_number(&kernel, &a, "first");
    let other = kernel.lookup(&SUPER, seen.node, b"f").unwrap();
    assert_ne!(other.node, file.node);
    assert_eq!((other.attr.ino, kernel.getattr(other.node).unwrap().0.ino), (other.node, other.node));
    // The flags of a mount apply to its place.
    let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    assert_eq!(kernel.setattr(&SUPER, other.node, &set, None).map(drop), Err(Errno::EROFS));
    assert_eq!(kernel.setattr(&SUPER, file.node, &set, None).map(drop), Ok(()));
    // Another lookup finds the same nodes.
    assert_eq!(kernel.look("b").unwrap().node, seen.node);
    assert_eq!(kernel.lookup(&SUPER, seen.node, b"f").unwrap().node, other.node);
    assert_eq!(kernel.lookup(&SUPER, a.node, b"f").unwrap().node, file.node);
    for (entry, lookups) in [(a, 1), (b, 1), (seen, 2), (file, 2), (other, 2)] {
        kernel.forget(entry.node, lookups);
    }
    assert_eq!(kernel.known_nodes(), 1);
}

/// A file system in which the number of a file is the part of its name before the hyphen.
struct Numbers;

impl FileSystem for Numbers {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 9, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 0, attr, ..NewInode::default() }
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let text = str::from_utf8(name).unwrap();
        let ino = text.split('-').next().unwrap().parse().map_err(|_| Errno::ENOENT)?;
        let node = name.iter().fold(1_u64, |node, byte| node.wrapping_mul(131).wrapping_add((*byte).into()));
        let attr = Attr { ino, mode: S_IFREG | 0o644, nlink: 1, ..Attr::default() };
        Ok(NewInode { node, attr, ..NewInode::default() })
    }
}

#[test]
fn nodes_whose_number_is_taken_get_other_ids_and_keep_them() {
    let kernel = Kernel::over(Numbers, SessionOptions::default());
    let other = 1_u64 << 62;
    let names = ["0", "1", "1-again", "5", "5-again", "5-once-more", "9", &other.to_string(), &u64::MAX.to_string()];
    let entries: Vec<Entry> = names.iter().map(|name| kernel.look(name).unwrap()).collect();
    let nodes: BTreeSet<u64> = entries.iter().map(|entry| entry.node).collect();
    assert_eq!(nodes.len(), names.len());
    assert!(!nodes.contains(&0) && !nodes.contains(&ROOT_NODE));
    assert_eq!((entries[3].node, entries[6].node), (5, 9), "the first has its own");
    for (name, entry) in names.iter().zip(&entries) {
        check_one_number(&kernel, entry, name);
        for _ in 0..2 {
            assert_eq!(kernel.look(name).unwrap().node, entry.node, "{name}");
        }
    }
    for (name, entry) in names.iter().zip(&entries) {
        kernel.forget(entry.node, 3);
        assert_eq!(kernel.getattr(entry.node), Err(Errno::ESTALE), "{name}");
    }
    kernel.check_nothing_left("numbers");
    assert_eq!(kernel.getattr(ROOT_NODE).unwrap().0.ino, 9, "the root shows its own");
}
