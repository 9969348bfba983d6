//! loom models of the tree itself: walks, lookups and holds against renames, removals, reuse of slots and unmounts.
//!
//! The models call the public interface, so that they run over all of the source: `walk`, `slots`, `cache`, `mount` and `ops`,
//! with the primitives below them. Only constants differ under loom: fewer buckets, slots, counters and optimistic tries.
//! An operation has hundreds of steps, so the models try one preemption; the models of the primitives in
//! `crates/sync/tests` have more.

use crate::model::{Counts, FILE, Files, Model, look, make, make_dirs, rename};
use lightfoot_vfs::{Base, Context, Errno, MountFlags, RenameFlags, UnmountFlags};
use std::sync::atomic::Ordering::SeqCst;

/// Removes the file `/a` and makes `/b`, which may take its slot.
fn replace(context: &Context) {
    context.unlink(Base::CWD, b"/a").unwrap();
    make(context, "/b");
}

#[test]
fn a_name_that_is_there_before_and_after_an_exchange_is_never_missed() {
    let model = |context: &Context, _: &Counts| assert!(matches!(look(context, "/a"), Some(2 | 3)));
    Model::of_two(
        |context| ["/a", "/b"].iter().for_each(|path| make(context, path)),
        |context| rename(context, "/a", "/b", RenameFlags::EXCHANGE),
        model,
        |context, _| assert_eq!((look(context, "/a"), look(context, "/b")), (Some(3), Some(2))),
    )
    .check();
}

/// A tree with a directory that the other thread moves to another one under another name.
fn beside_a_move(
    model: impl Fn(&Context) + Sync + Send + 'static,
) -> Model<impl Fn(&Context, &Counts) + Sync + Send + 'static> {
    Model::of_two(
        |context| {
            make_dirs(context, &["/x", "/y", "/x/p"]);
            context.set_current_dir(b"/x/p").unwrap();
        },
        |context| rename(context, "/x/p", "/y/q", RenameFlags::default()),
        move |context: &Context, _: &Counts| model(context),
        |context, _| {
            assert_eq!((look(context, "/x/p"), look(context, "/y/q")), (None, Some(4)));
            assert_eq!(context.current_dir().unwrap(), b"/y/q");
        },
    )
}

#[test]
fn no_entry_is_found_under_a_name_and_parent_that_it_had_at_no_one_moment() {
    for path in ["/x/q", "/y/p"] {
        beside_a_move(move |context| assert_eq!(look(context, path), None, "{path}")).check();
    }
}

#[test]
fn a_reverse_path_is_one_that_the_file_had() {
    beside_a_move(|context| {
        let path = context.current_dir().unwrap();
        assert!(path == b"/x/p" || path == b"/y/q", "{}", path.escape_ascii());
    })
    .check();
}

#[test]
fn a_directory_and_a_name_in_it_are_of_one_moment() {
    beside_a_move(|context| {
        let cwd = context.hold(Base::CWD, b".", true).unwrap();
        let (dir, name) = cwd.parent_and_name().unwrap();
        let at = (dir.attr().unwrap().ino, &*name);
        assert!(at == (2, b"p") || at == (3, b"q"), "{at:?}");
    })
    .check();
}

#[test]
fn a_child_of_the_next_life_of_a_directory_is_not_taken() {
    Model::of_two(
        |context| make_dirs(context, &["/d"]),
        |context| {
            context.rmdir(Base::CWD, b"/d").unwrap();
            make_dirs(context, &["/e"]);
            make(context, "/e/f");
        },
        |context: &Context, _: &Counts| assert_eq!(look(context, "/d/f"), None),
        |context, _| assert_eq!((look(context, "/d"), look(context, "/e/f")), (None, Some(4))),
    )
    .check();
}

#[test]
fn a_name_is_not_made_in_the_next_life_of_a_directory() {
    Model::of_two(
        |context| make_dirs(context, &["/d"]),
        |context| {
            // Another thread may have made the name.
            if context.rmdir(Base::CWD, b"/d").is_ok() {
                make_dirs(context, &["/e"]);
            }
        },
        |context: &Context, _: &Counts| {
            let made = context.mknod(Base::CWD, b"/d/f", 0o644, 0);
            assert!(matches!(made, Ok(()) | Err(Errno::ENOENT)), "{made:?}");
        },
        |context, _| {
            assert_eq!(look(context, "/e/f"), None);
            assert_eq!(look(context, "/d/f").is_some(), look(context, "/e").is_none());
        },
    )
    .check();
}

#[test]
fn names_that_come_to_a_split_directory_at_once_are_all_counted() {
    let links = |context: &Context| context.attr(Base::CWD, b"/d", true).unwrap().nlink;
    Model::of_sharded(
        |context| make_dirs(context, &["/d", "/d/w"]),
        |context| make_dirs(context, &["/d/x"]),
        move |context: &Context, _: &Counts| {
            make_dirs(context, &["/d/y"]);
            assert!(matches!(links(context), 4 | 5));
        },
        |context, _| {
            assert_eq!(context.attr(Base::CWD, b"/d", true).unwrap().nlink, 5);
            assert_eq!(context.rmdir(Base::CWD, b"/d"), Err(Errno::ENOTEMPTY));
            for path in [b"/d/w", b"/d/x", b"/d/y"] {
                context.rmdir(Base::CWD, path).unwrap();
            }
            context.rmdir(Base::CWD, b"/d").unwrap();
        },
    )
    .check();
}

#[test]
fn a_name_is_not_made_in_a_split_directory_that_is_removed() {
    Model::of_sharded(
        |context| {
            make_dirs(context, &["/d"]);
            make(context, "/d/e");
            context.unlink(Base::CWD, b"/d/e").unwrap();
        },
        |context| {
            // Another thread may have made the name.
            if context.rmdir(Base::CWD, b"/d").is_ok() {
                make_dirs(context, &["/e"]);
            }
        },
        |context: &Context, _: &Counts| {
            let made = context.mknod(Base::CWD, b"/d/f", 0o644, 0);
            assert!(matches!(made, Ok(()) | Err(Errno::ENOENT)), "{made:?}");
        },
        |context, _| {
            assert_eq!(look(context, "/e/f"), None);
            assert_eq!(look(context, "/d/f").is_some(), look(context, "/e").is_none());
        },
    )
    .check();
}

/// The file `/a` is removed and its slot used again, while others hold it.
fn beside_a_next_life(others: usize) {
    let hold = |context: &Context| match context.hold(Base::CWD, b"/a", true) {
        Ok(held) => assert_eq!(held.attr().unwrap().ino, 2),
        Err(errno) => assert_eq!(errno, Errno::ENOENT),
    };
    let end = |context: &Context, counts: &Counts| {
        assert_eq!((look(context, "/a"), look(context, "/b")), (None, Some(3)));
        assert_eq!(counts.evicted.load(SeqCst), 1);
    };
    if others == 1 {
        Model::of_two(|context| make(context, "/a"), replace, move |context, _| hold(context), end).check();
    } else {
        let two = Model::of_two(
            |context| make(context, "/a"),
            |context| drop(context.hold(Base::CWD, b"/a", true)),
            |context, _| replace(context),
            end,
        );
        Model { others, ..two }.check();
    }
}

#[test]
fn a_slot_in_its_next_life_is_not_held_for_the_name_that_it_had() {
    beside_a_next_life(1);
}

#[test]
fn a_life_that_goes_on_keeps_its_name_s_count_whoever_strays_in() {
    beside_a_next_life(2);
}

#[test]
fn a_held_file_is_never_another_life_and_each_life_ends_once() {
    Model::of_two(
        |context| make(context, "/a"),
        |context| {
            replace(context);
            context.unlink(Base::CWD, b"/b").unwrap();
        },
        |context: &Context, _: &Counts| {
            if let Ok(held) = context.hold(Base::CWD, b"/a", true) {
                assert_eq!(held.attr().unwrap().ino, 2);
            }
        },
        |_, counts| assert_eq!(counts.evicted.load(SeqCst), 2),
    )
    .check();
}

#[test]
fn a_mount_stays_while_a_walk_holds_it_and_goes_when_none_does() {
    Model::of_two(
        |context| {
            make_dirs(context, &["/m"]);
            context.mount(Files::default(), Base::CWD, b"/m", MountFlags::empty()).unwrap();
        },
        |context| {
            let unmounted = context.unmount(Base::CWD, b"/m", UnmountFlags::empty());
            assert!(matches!(unmounted, Ok(()) | Err(Errno::EBUSY)), "{unmounted:?}");
        },
        |context: &Context, _: &Counts| {
            let held = context.hold(Base::CWD, b"/m", true).unwrap();
            if held.attr().unwrap().ino == 1 {
                let again = context.hold(Base::CWD, b"/m", true).unwrap();
                assert_eq!((again.dev(), again.mount_id()), (held.dev(), held.mount_id()));
            }
        },
        |context, _| {
            if look(context, "/m") == Some(1) {
                context.unmount(Base::CWD, b"/m", UnmountFlags::empty()).unwrap();
            }
            assert_eq!(look(context, "/m"), Some(2));
        },
    )
    .check();
}

#[test]
fn walks_that_miss_a_name_look_it_up_once_and_all_find_the_entry() {
    for others in [1, 2] {
        let two = Model::of_names(
            |_| {},
            |context| assert_eq!(look(context, "/p"), Some(FILE)),
            |context: &Context, _: &Counts| assert_eq!(look(context, "/p"), Some(FILE)),
            |_, counts| assert_eq!(counts.lookups.load(SeqCst), 1),
        );
        Model { others, ..two }.check();
    }
}

#[test]
fn an_inode_that_ends_beside_a_lookup_of_its_node_ends_once() {
    Model::of_names(
        // In two directories, whose locks do not order the threads.
        |context| assert_eq!(look(context, "/d/p"), Some(FILE)),
        |context| context.unlink(Base::CWD, b"/d/p").unwrap(),
        |context: &Context, _: &Counts| {
            let held = context.hold(Base::CWD, b"/q", true).unwrap();
            assert_eq!(held.attr().unwrap().ino, FILE);
        },
        |context, counts| {
            let lives = counts.evicted.load(SeqCst);
            // A life that ended is not taken up again: the file system's answer began the next one.
            let names = context.attr(Base::CWD, b"/q", true).unwrap().nlink;
            assert!(names == 1 && lives == 0 || names == 2, "{lives}");
            context.unlink(Base::CWD, b"/q").unwrap();
            assert!(lives <= 1 && counts.evicted.load(SeqCst) == lives + 1);
        },
    )
    .check();
}

#[test]
fn a_lookup_gets_the_node_that_it_wants_even_if_the_slot_is_used_again() {
    Model::of_names(
        |context| assert_eq!(look(context, "/d/p"), Some(FILE)),
        |context| {
            context.unlink(Base::CWD, b"/d/p").unwrap();
            make(context, "/d/n");
        },
        |context: &Context, _: &Counts| assert_eq!(look(context, "/q"), Some(FILE)),
        |context, counts| {
            assert_eq!((look(context, "/q"), look(context, "/d/n")), (Some(FILE), Some(2)));
            ["/q", "/d/n"].iter().for_each(|path| context.unlink(Base::CWD, path.as_bytes()).unwrap());
            assert!(matches!(counts.evicted.load(SeqCst), 2 | 3));
        },
    )
    .check();
}
