//! loom models of renames in sharded directories: beside one another, beside lookups and creations, and beside removals of the
//! directory; in the sections of the walks, and outside.
//!
//! As in `tree.rs`, the models call the public interface and try one preemption.

use crate::model::{Counts, Model, look, make, make_dirs, rename};
use lightfoot_vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags};
use std::sync::atomic::Ordering::SeqCst;

/// Renames a file of a sharded directory over another one, beside a thread that renames that one over it and makes a name.
fn beside_a_rename_the_other_way(never_waits: bool, other: fn(&Context), model: fn(&Context)) {
    let two = Model::of_sharded(
        |context| {
            make_dirs(context, &["/d"]);
            ["/d/a", "/d/b", "/d/c"].iter().for_each(|path| make(context, path));
        },
        other,
        move |context, _| model(context),
        |context, counts| {
            let inos = ["/d/a", "/d/b", "/d/c"].map(|path| look(context, path));
            // One of two files is left, under the name that it was renamed to last: its first one.
            let is_left = |k: usize| inos[k].is_none_or(|ino| ino == 3 + k as u64);
            assert!((0..3).all(is_left) && inos.iter().flatten().count() == 2, "{inos:?}");
            assert_eq!((look(context, "/d/e"), counts.evicted.load(SeqCst)), (Some(6), 1));
            let dir = context.open(Base::CWD, b"/d", OpenFlags::RDONLY, 0).unwrap();
            assert_eq!(dir.next_entries().unwrap().len(), 3);
            drop(dir);
            assert_eq!(context.rmdir(Base::CWD, b"/d"), Err(Errno::ENOTEMPTY));
            for (path, ino) in ["/d/a", "/d/b", "/d/c", "/d/e"].into_iter().zip([inos[0], inos[1], inos[2], Some(6)]) {
                assert_eq!(context.unlink(Base::CWD, path.as_bytes()).is_ok(), ino.is_some(), "{path}");
            }
            context.rmdir(Base::CWD, b"/d").unwrap();
        },
    );
    Model { never_waits, ..two }.check();
}

#[test]
fn renames_in_a_split_directory_in_opposite_directions_leave_one_file() {
    for never_waits in [false, true] {
        beside_a_rename_the_other_way(
            never_waits,
            |context| {
                rename(context, "/d/b", "/d/a", RenameFlags::default());
                make(context, "/d/e");
            },
            |context| rename(context, "/d/a", "/d/b", RenameFlags::default()),
        );
        beside_a_rename_the_other_way(
            never_waits,
            |context| rename(context, "/d/c", "/d/a", RenameFlags::default()),
            |context| {
                rename(context, "/d/a", "/d/c", RenameFlags::default());
                make(context, "/d/e");
            },
        );
    }
}

#[test]
fn a_name_that_is_renamed_over_in_a_split_directory_is_never_missed() {
    for never_waits in [false, true] {
        let two = Model::of_sharded(
            |context| {
                make_dirs(context, &["/d", "/x"]);
                ["/d/b", "/x/a"].iter().for_each(|path| make(context, path));
            },
            |context| rename(context, "/x/a", "/d/b", RenameFlags::default()),
            |context: &Context, _: &Counts| assert!(matches!(look(context, "/d/b"), Some(4 | 5))),
            |context, _| {
                assert_eq!((look(context, "/d/b"), look(context, "/x/a")), (Some(5), None));
                context.rmdir(Base::CWD, b"/x").unwrap();
            },
        );
        Model { never_waits, ..two }.check();
    }
}

/// Renames `/d/a` beside a thread that makes the new name: one of them is first.
fn beside_a_creation(never_waits: bool, other: fn(&Context), model: fn(&Context), end: fn(&Context, &Counts)) {
    let grow: fn(&Context) = |context| {
        make_dirs(context, &["/d"]);
        make(context, "/d/a");
    };
    Model { never_waits, ..Model::of_sharded(grow, other, move |context: &Context, _: &Counts| model(context), end) }
        .check();
}

#[test]
fn a_file_renamed_in_a_split_directory_has_its_new_name_alone() {
    fn make_or_find(context: &Context, path: &str) {
        let made = context.mknod(Base::CWD, path.as_bytes(), 0o644, 0);
        assert!(matches!(made, Ok(()) | Err(Errno::EEXIST)), "{made:?}");
    }
    fn end(context: &Context, path: &str) {
        assert_eq!((look(context, path), look(context, "/d/a")), (Some(3), None));
        context.unlink(Base::CWD, path.as_bytes()).unwrap();
        assert_eq!(look(context, path), None, "a second entry of the name");
        context.rmdir(Base::CWD, b"/d").unwrap();
    }
    macro_rules! check {
        ($($name:literal)*) => {$(
            for never_waits in [false, true] {
                beside_a_creation(
                    never_waits,
                    |context| rename(context, "/d/a", $name, RenameFlags::default()),
                    |context| make_or_find(context, $name),
                    |context, _| end(context, $name),
                );
            }
        )*};
    }
    // Names of both shards.
    check!("/d/b" "/d/c" "/d/e" "/d/f");
}

#[test]
fn a_file_renamed_in_a_split_directory_has_one_of_its_names() {
    for never_waits in [false, true] {
        let two = Model::of_sharded(
            |context| {
                make_dirs(context, &["/d"]);
                make(context, "/d/a");
            },
            |context| assert!(look(context, "/d/a").or_else(|| look(context, "/d/b")).is_some()),
            |context: &Context, _: &Counts| rename(context, "/d/a", "/d/b", RenameFlags::default()),
            |context, _| assert_eq!((look(context, "/d/a"), look(context, "/d/b")), (None, Some(3))),
        );
        Model { never_waits, ..two }.check();
    }
}

#[test]
fn a_file_is_not_moved_to_a_split_directory_that_is_removed() {
    for never_waits in [false, true] {
        let two = Model::of_sharded(
            |context| {
                make_dirs(context, &["/d", "/x"]);
                ["/d/e", "/x/f"].iter().for_each(|path| make(context, path));
                context.unlink(Base::CWD, b"/d/e").unwrap();
            },
            |context| {
                // Another thread may have moved the file there.
                if context.rmdir(Base::CWD, b"/d").is_ok() {
                    make_dirs(context, &["/e"]);
                }
            },
            |context: &Context, _: &Counts| {
                let moved = context.rename(PathAt::cwd(b"/x/f"), PathAt::cwd(b"/d/f"), RenameFlags::default());
                assert!(matches!(moved, Ok(()) | Err(Errno::ENOENT)), "{moved:?}");
            },
            |context, _| {
                assert_eq!(look(context, "/e/f"), None);
                assert_eq!(look(context, "/d/f").is_some(), look(context, "/e").is_none());
                assert_eq!(look(context, "/d/f").is_some(), look(context, "/x/f").is_none());
            },
        );
        Model { never_waits, ..two }.check();
    }
}
