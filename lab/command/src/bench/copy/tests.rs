//! That the copies equal the source: names, kinds, modes, link bodies, contents.

use super::*;
use crate::bench::scratch::Scratch;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// All of a tree: path to mode (with type) and to contents or link body.
type Snapshot = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

fn of_directory(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::new();
    let mut to_list = vec![Vec::new()];
    while let Some(dir) = to_list.pop() {
        for entry in fs::read_dir(source_place(root, &dir)).expect("a directory can be listed") {
            let entry = entry.expect("an entry");
            let path = [&dir, &b"/"[..], entry.file_name().as_bytes()].concat();
            let metadata = entry.metadata().expect("an entry has attributes");
            let body = match metadata.file_type() {
                kind if kind.is_symlink() => fs::read_link(entry.path()).expect("a link").as_os_str().as_bytes().into(),
                kind if kind.is_file() => fs::read(entry.path()).expect("a file"),
                _ => Vec::new(),
            };
            if metadata.is_dir() {
                to_list.push(path.clone());
            }
            snapshot.insert(path, (metadata.mode(), body));
        }
    }
    snapshot
}

fn of_ram(ram: &RamCopy) -> Snapshot {
    let context = ram.context();
    let mut snapshot = Snapshot::new();
    let mut to_list = vec![b"/".to_vec()];
    while let Some(dir) = to_list.pop() {
        for entry in context.read_dir(&dir).expect("a directory can be listed") {
            let path = entry.expect("an entry").path().into_os_string().into_encoded_bytes();
            let metadata = context.symlink_metadata(&path).expect("an entry has attributes");
            let body = match metadata.file_type() {
                kind if kind.is_symlink() => context.read_link(&path).expect("a link").as_os_str().as_bytes().into(),
                kind if kind.is_file() => context.read(&path).expect("a file"),
                _ => Vec::new(),
            };
            if metadata.is_dir() {
                to_list.push(path.clone());
            }
            snapshot.insert(path, (metadata.mode(), body));
        }
    }
    snapshot
}

/// Every kind of entry that can be made without privileges, and difficult cases of each.
fn awkward_source() -> Scratch {
    let source = Scratch::make(None).expect("there is a place for temporary files");
    let at = |path: &str| source.path().join(path);
    fs::create_dir_all(at("dir/deeper/deepest")).expect("directories");
    fs::create_dir(at("empty")).expect("a directory");
    fs::write(at("dir/file"), "contents").expect("a file");
    fs::write(at("dir/deeper/none"), "").expect("a file");
    fs::write(at("long"), vec![7; CONTENTS_AT_MOST as usize]).expect("a file");
    fs::write(at("set-id"), "x").expect("a file");
    fs::write(source.path().join(OsStr::from_bytes(b"not \xff UTF-8\n")), "y").expect("a file");
    symlink("nowhere", at("dangling")).expect("a link");
    symlink("loop-b", at("loop-a")).expect("a link");
    symlink("loop-a", at("loop-b")).expect("a link");
    symlink("..", at("dir/up")).expect("a link");
    symlink(OsStr::from_bytes(b"\xfe/\xff"), at("dir/odd")).expect("a link");
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), fifo, rustix::fs::Mode::RUSR, 0).expect("a FIFO");
    for (path, mode) in [("set-id", 0o4711), ("dir/file", 0o400), ("empty", 0o1777), ("dir/deeper", 0o500)] {
        fs::set_permissions(at(path), Permissions::from_mode(mode)).expect("a mode");
    }
    source
}

fn copy_of(source: &Path, room: u64) -> (Tree, RamCopy, KernelCopy) {
    let interrupt = Interrupt::never();
    let mut tree = crate::bench::tree::read(source, &interrupt).expect("the source can be read");
    let ram = RamCopy::new().expect("Lightfoot's side");
    let kernel = KernelCopy::new(Scratch::make(None).expect("a scratch")).expect("the kernel's side");
    copy(&mut tree, &ram, Some(&kernel), room, &interrupt).expect("the copy is made");
    (tree, ram, kernel)
}

#[test]
fn both_copies_equal_the_source() {
    let source = awkward_source();
    let (tree, ram, kernel) = copy_of(source.path(), u64::MAX);
    let expected = of_directory(source.path());
    assert_eq!(of_directory(kernel.scratch().path()), expected, "the kernel's copy");
    assert_eq!(of_ram(&ram), expected, "Lightfoot's copy");
    assert_eq!(tree.entries.len(), expected.len());
    assert_eq!(tree.omitted, crate::bench::tree::Omitted::default());
    assert!(fs::symlink_metadata(kernel.scratch().path().join("fifo")).expect("a FIFO").file_type().is_fifo());
}

#[test]
fn the_root_of_both_copies_has_the_mode_of_the_source() {
    let source = Scratch::make(None).expect("a scratch");
    fs::set_permissions(source.path(), Permissions::from_mode(0o1751)).expect("a mode");
    let (_, ram, kernel) = copy_of(source.path(), u64::MAX);
    assert_eq!(ram.context().metadata("/").expect("a root").mode() & 0o7777, 0o1751);
    assert_eq!(fs::metadata(kernel.scratch().path()).expect("a root").mode() & 0o7777, 0o1751);
}

#[test]
fn contents_are_copied_while_there_is_room() {
    let source = Scratch::make(None).expect("a scratch");
    for name in ["a", "b"] {
        fs::write(source.path().join(name), name).expect("a file");
    }
    let (tree, ram, kernel) = copy_of(source.path(), PAGE);
    assert_eq!(tree.omitted.as_holes, 1);
    for (name, contents) in [("a", b"a"), ("b", b"\0")] {
        assert_eq!(ram.context().read(name).expect("a file"), contents);
        assert_eq!(fs::read(kernel.scratch().path().join(name)).expect("a file"), contents);
    }
}

#[test]
fn a_long_file_becomes_a_hole_of_its_length() {
    let source = Scratch::make(None).expect("a scratch");
    let len = CONTENTS_AT_MOST + 1;
    fs::write(source.path().join("long"), vec![7; len as usize]).expect("a file");
    let (tree, ram, kernel) = copy_of(source.path(), u64::MAX);
    assert_eq!(tree.omitted.as_holes, 1);
    assert_eq!(ram.context().read("/long").expect("a file"), vec![0; len as usize]);
    assert_eq!(fs::read(kernel.scratch().path().join("long")).expect("a file"), vec![0; len as usize]);
}
