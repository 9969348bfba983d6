//! Handles of files of the host: none leads out of the source, each leads to its own file.

use crate::support;
use lightfoot_hostfs::{HostFs, HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use vfs::{Base, Context, Errno, FileHandle, OpenFlags, PathRef, Vfs};

/// Whether the process may open files by handles.
fn may_open() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: only root opens files by handles");
    }
    is_root
}

fn tree(source: &Path) -> Vfs {
    let options = HostOptions { policy: Revalidate::Always, ..HostOptions::default() };
    Vfs::new(HostFs::new(source, &options).unwrap())
}

fn hold(at: &Context, path: &str) -> PathRef {
    at.hold(Base::CWD, path.as_bytes(), false).unwrap()
}

fn handle(at: &Context, path: &str) -> FileHandle {
    at.handle_of(&hold(at, path)).unwrap()
}

/// The inode number of what a handle leads to in a new tree over the source.
fn find(source: &Path, handle: &FileHandle) -> Result<u64, Errno> {
    let vfs = tree(source);
    let at = vfs.context();
    let found = at.hold_handle(&hold(&at, "/"), handle)?;
    found.attr().map(|attr| attr.ino)
}

#[test]
fn a_handle_does_not_lead_out_of_the_source() {
    if !may_open() {
        return;
    }
    let outer = support::dir_in(&std::env::temp_dir());
    let source = outer.path().join("source");
    fs::create_dir_all(source.join("in")).unwrap();
    fs::create_dir(outer.path().join("out")).unwrap();
    fs::write(source.join("in/file"), b"in").unwrap();
    fs::write(outer.path().join("out/file"), b"out").unwrap();
    symlink("x", outer.path().join("out/link")).unwrap();
    // Made by a tree that shows all of it: valid handles of the host's file system.
    let all = tree(outer.path());
    let at = all.context();
    let files = ["/source/in", "/source/in/file", "/out", "/out/file", "/out/link", "/"];
    let handles = files.map(|path| handle(&at, path));
    let numbers = handles.map(|handle| find(&source, &handle));
    let ino = |path: &str| fs::metadata(outer.path().join(path)).unwrap().ino();
    let stale = Err(Errno::ESTALE);
    assert_eq!(numbers, [Ok(ino("source/in")), Ok(ino("source/in/file")), stale, stale, stale, stale]);
    // What moves out cannot be found any more, by a tree that had it either.
    let vfs = tree(&source);
    let at = vfs.context();
    let (dir, file) = (handle(&at, "/in"), handle(&at, "/in/file"));
    fs::rename(source.join("in"), outer.path().join("moved")).unwrap();
    assert_eq!([find(&source, &dir), find(&source, &file)], [stale, stale]);
    fs::rename(outer.path().join("moved"), source.join("back")).unwrap();
    assert_eq!([find(&source, &dir), find(&source, &file)], [Ok(ino("source/back")), Ok(ino("source/back/file"))]);
    // A file with a name inside is inside.
    fs::hard_link(outer.path().join("out/file"), source.join("back/second")).unwrap();
    assert_eq!(find(&source, &handles[3]), Ok(ino("out/file")));
}

#[test]
fn a_file_that_moved_far_or_lost_a_name_is_found() {
    if !may_open() {
        return;
    }
    let source = support::dir_in(&std::env::temp_dir());
    let path = |name: &str| source.path().join(name);
    fs::create_dir_all(path("a/b/c")).unwrap();
    fs::create_dir_all(path("z/y/x")).unwrap();
    fs::write(path("a/b/c/file"), b"text").unwrap();
    fs::hard_link(path("a/b/c/file"), path("z/y/x/other")).unwrap();
    let vfs = tree(source.path());
    let known = handle(&vfs.context(), "/a/b/c/file");
    let ino = fs::metadata(path("a/b/c/file")).unwrap().ino();
    // It is open, so the kernel's cache has the name that was removed.
    let open = fs::File::open(path("a/b/c/file")).unwrap();
    fs::remove_file(path("a/b/c/file")).unwrap();
    assert_eq!(find(source.path(), &known), Ok(ino));
    fs::remove_file(path("z/y/x/other")).unwrap();
    assert_eq!(find(source.path(), &known), Err(Errno::ESTALE), "it has no name, though it is open");
    drop(open);
    assert_eq!(find(source.path(), &known), Err(Errno::ESTALE));
}

#[test]
fn a_number_that_the_host_uses_again_is_another_file() {
    if !may_open() {
        return;
    }
    let source = support::dir_in(&std::env::temp_dir());
    let path = source.path().join("file");
    fs::write(&path, b"first").unwrap();
    let first = handle(&tree(source.path()).context(), "/file");
    let ino = fs::metadata(&path).unwrap().ino();
    for _ in 0..1000 {
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"next").unwrap();
        if fs::metadata(&path).unwrap().ino() == ino {
            break;
        }
    }
    assert_eq!(find(source.path(), &first), Err(Errno::ESTALE));
}

#[test]
fn a_file_found_by_its_handle_is_used_when_its_name_moves_on_the_host() {
    if !may_open() {
        return;
    }
    let source = support::dir_in(&std::env::temp_dir());
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("d/file"), b"text").unwrap();
    let known = handle(&tree(source.path()).context(), "/d/file");
    let vfs = tree(source.path());
    let at = vfs.context();
    let found = at.hold_handle(&hold(&at, "/"), &known).unwrap();
    fs::rename(source.path().join("d/file"), source.path().join("moved")).unwrap();
    let file = at.open_held(&found, OpenFlags::RDWR).unwrap();
    file.write_at(0, b"TEXT").unwrap();
    assert_eq!(fs::read(source.path().join("moved")).unwrap(), b"TEXT");
    assert_eq!(hold(&at, "/moved").identity(), found.identity());
}
