//! Handles beside changes: each leads to its own file, or fails with `ESTALE` once that is gone.

use lightfoot_vfs::{Base, Context, Errno, FileHandle, MountFlags, OpenFlags, PathAt, PathRef, RenameFlags, Vfs};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use testkit::{Call, Store};

fn rename(at: &Context, old: &str, new: &str) -> Result<(), Errno> {
    at.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), RenameFlags::default())
}

fn hold(at: &Context, path: &str) -> PathRef {
    at.hold(Base::CWD, path.as_bytes(), false).unwrap()
}

fn handle_of(at: &Context, path: &str) -> FileHandle {
    at.handle_of(&hold(at, path)).unwrap()
}

/// A store, the handle of one of its files, and a tree over the store that has not seen the file.
fn unseen(paths: &[&str], path: &str) -> (Store, FileHandle, Vfs) {
    let store = Store::with_paths(paths);
    let handle = handle_of(&store.tree().context(), path);
    let vfs = store.tree();
    (store, handle, vfs)
}

/// The number of the file that a handle leads to.
fn find(at: &Context, handle: &FileHandle) -> Result<u64, Errno> {
    at.hold_handle(&hold(at, "/"), handle)?.attr().map(|attr| attr.ino)
}

#[test]
fn a_file_that_is_removed_after_the_answer_is_gone() {
    let (store, handle, vfs) = unseen(&["f"], "/f");
    let at = vfs.context();
    let other = vfs.context();
    let is_done = AtomicBool::new(false);
    store.after(move |call| match call {
        // The tree looks the name up, removes it, and evicts the inode again.
        Call::ById { .. } if !is_done.swap(true, Relaxed) => other.unlink(Base::CWD, b"/f"),
        _ => Ok(()),
    });
    assert_eq!(find(&at, &handle), Err(Errno::ESTALE));
}

#[test]
fn a_file_that_changes_after_the_answer_has_its_new_attributes() {
    let (store, handle, vfs) = unseen(&["f"], "/f");
    let at = vfs.context();
    let (node, changed) = (store.node("f"), store.clone());
    let is_done = AtomicBool::new(false);
    store.after(move |call| {
        if matches!(call, Call::ById { .. }) && !is_done.swap(true, Relaxed) {
            changed.write(node, b"longer");
        }
        Ok(())
    });
    let found = at.hold_handle(&hold(&at, "/"), &handle).unwrap();
    assert_eq!(found.attr().unwrap().size, 6);
}

#[test]
fn a_directory_that_moves_while_it_is_connected_is_found() {
    let (store, handle, vfs) = unseen(&["a/", "a/b/", "a/b/c/", "z/"], "/a/b/c");
    let (at, other) = (vfs.context(), vfs.context());
    let is_done = AtomicBool::new(false);
    let node = store.node("a/b/c");
    store.after(move |call| match call {
        Call::Parent { node: asked } if *asked == node && !is_done.swap(true, Relaxed) => {
            rename(&other, "/a/b", "/z/y")
        }
        _ => Ok(()),
    });
    let found = at.hold_handle(&hold(&at, "/"), &handle).unwrap();
    let (above, name) = found.parent_and_name().unwrap();
    assert_eq!((found.attr().unwrap().ino, &*name), (node, &b"c"[..]));
    assert_eq!(above.attr().unwrap().ino, store.node("z/y"));
}

#[test]
fn a_removed_directory_is_gone_even_if_it_is_held() {
    let (_store, handle, vfs) = unseen(&["d/"], "/d");
    let at = vfs.context();
    let held = hold(&at, "/d");
    assert_eq!(find(&at, &handle), held.attr().map(|attr| attr.ino));
    at.rmdir(Base::CWD, b"/d").unwrap();
    assert_eq!(find(&at, &handle), Err(Errno::ESTALE));
}

#[test]
fn a_handle_and_a_name_lead_to_one_inode() {
    let (_store, handle, vfs) = unseen(&["d/", "d/f"], "/d/f");
    let at = vfs.context();
    let root = hold(&at, "/");
    // Without a name first.
    let found = at.hold_handle(&root, &handle).unwrap();
    assert_eq!(found.parent_and_name().map(|(_, name)| name), None);
    assert_eq!(hold(&at, "/d/f").identity(), found.identity());
    let again = at.hold_handle(&root, &handle).unwrap();
    assert_eq!(again.identity(), found.identity());
    at.open_held(&found, OpenFlags::RDWR).unwrap().write_at(0, b"text").unwrap();
    assert_eq!(at.attr(Base::CWD, b"/d/f", false).unwrap().size, 4);
    // And the other way round.
    drop((found, again));
    let named = hold(&at, "/d/f");
    assert_eq!(at.hold_handle(&root, &handle).unwrap().identity(), named.identity());
}

#[test]
fn what_lies_outside_of_the_mount_or_the_root_is_not_found() {
    let paths = &["in/", "in/d/", "in/f", "out/", "out/d/", "out/f", "at/"];
    let (store, _, vfs) = unseen(paths, "/in");
    let all = store.tree().context();
    let handles = paths.map(|path| handle_of(&all, &format!("/{path}")));
    let inside = |at: &Context, from: &PathRef| handles.map(|handle| at.hold_handle(from, &handle).is_ok());
    let at = vfs.context();
    at.bind(PathAt::cwd(b"/in"), PathAt::cwd(b"/at"), MountFlags::RDONLY, false).unwrap();
    let bound = hold(&at, "/at");
    let only_in = [true, true, true, false, false, false, false];
    for cached in ["nothing", "everything"] {
        assert_eq!(inside(&at, &bound), only_in, "a mount of a part, with {cached} in the cache");
        paths.iter().for_each(|path| drop(hold(&at, &format!("/{path}"))));
    }
    let file = at.hold_handle(&bound, &handles[2]).unwrap();
    assert_eq!(at.open_held(&file, OpenFlags::RDWR).map(drop), Err(Errno::EROFS));
    let file = at.hold_handle(&hold(&at, "/"), &handles[2]).unwrap();
    assert!(at.open_held(&file, OpenFlags::RDWR).is_ok(), "the same file through the other mount");

    let jailed = store.tree().context();
    jailed.set_root(b"/in").unwrap();
    assert_eq!(inside(&jailed, &hold(&jailed, "/")), only_in);
}

#[test]
fn threads_that_move_and_hold_find_each_file() {
    let store = Store::with_paths(&["a/", "b/", "a/d/", "a/d/e/", "a/d/e/f", "a/l"]);
    store.link(Store::ROOT, "l", store.node("a/l"));
    let seen = store.tree().context();
    let handles = ["/a/d/e", "/a/d/e/f", "/l"].map(|path| {
        let held = hold(&seen, path);
        (seen.handle_of(&held).unwrap(), held.attr().unwrap().ino)
    });
    let vfs = store.tree();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = vfs.context();
            for _ in 0..2000 {
                rename(&at, "/a/d", "/b/d").unwrap();
                rename(&at, "/b/d/e/f", "/f").unwrap();
                rename(&at, "/b/d", "/a/d").unwrap();
                rename(&at, "/f", "/a/d/e/f").unwrap();
                at.unlink(Base::CWD, b"/l").unwrap();
                at.link(PathAt::cwd(b"/a/l"), PathAt::cwd(b"/l"), false).unwrap();
            }
            is_over.store(true, Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let at = vfs.context();
                while !is_over.load(Relaxed) {
                    for (handle, node) in &handles {
                        // A directory that moves all the time may be stale.
                        match find(&at, handle) {
                            Ok(found) => assert_eq!(found, *node),
                            Err(errno) => assert_eq!((errno, node), (Errno::ESTALE, &handles[0].1)),
                        }
                    }
                }
            });
        }
    });
    let at = vfs.context();
    assert_eq!(handles.map(|(handle, _)| find(&at, &handle)), handles.map(|(_, node)| Ok(node)));
}
