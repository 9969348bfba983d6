//! What threads do with the tree of a file system that keeps its own names, and what must hold for it.

use super::roles::{create, ino, rename, unlink};
use super::{ROUNDS, Stage};
use testkit_sim::{Call, Store};
use vfs_sim::{Errno, Inode, Rename, Vfs};

/// Names that are looked up before the threads begin: nearly as many as there is room for.
const FILLED: u64 = 3830;

/// Bytes of the least budget.
pub(crate) const LEAST: u64 = 4096 * 256;

/// The directories `d1`, `d2` and `many`. Each request takes some virtual time after the store was read or changed, so that
/// others come between.
pub(crate) fn store() -> Store {
    let store = Store::with_paths(&["d1/", "d2/", "many/"]);
    let checked = store.clone();
    store.before(move |call| {
        check_known(&checked, call);
        Ok(())
    });
    store.after(|call| {
        match call {
            Call::Lookup { .. } => sim::cost(1500),
            Call::Create { .. } | Call::Unlink { .. } | Call::Rename(_) => sim::cost(300),
            _ => {}
        }
        Ok(())
    });
    let many = store.node("many");
    for number in 0..FILLED {
        store.make(many, &format!("n{number}"));
    }
    store
}

/// What the cache removes, moves and replaces must be there.
fn check_known(store: &Store, call: &Call<'_>) {
    let check = |dir: &Inode, name, inode: Option<&Inode>| {
        assert_eq!(store.find(dir.node(), name), inode.map(Inode::node), "{call:?}");
    };
    match *call {
        Call::Unlink { dir, name, inode } => check(dir, name, Some(inode)),
        Call::Rename(&Rename { old_dir, old_name, inode, new_dir, new_name, target, .. }) => {
            check(old_dir, old_name, Some(inode));
            check(new_dir, new_name, target);
        }
        _ => {}
    }
}

/// Ends the hooks: the one that checks holds the store.
pub(crate) fn let_go(store: &Store) {
    store.before(|_| Ok(()));
}

pub(crate) fn fill(kept: &Vfs) {
    let context = kept.context();
    for number in 0..FILLED {
        ino(&context, &format!("/many/n{number}")).expect("every number is there");
    }
}

/// `d1/p`: created and removed behind the cache, which is notified. It exists in odd states.
pub(crate) fn change_behind_the_cache(stage: &Stage, _: u64) {
    let (context, store, history) = (stage.kept.context(), &stage.store, &stage.histories.kept_pushed);
    let invalidator = store.invalidator();
    let [d1, d2] = ["d1", "d2"].map(|name| store.node(name));
    for round in 0..3 * ROUNDS {
        history.change(|number| {
            if number % 2 == 1 {
                store.make(d1, "p");
            } else {
                store.remove(d1, "p");
            }
            invalidator.entry(d1, b"p");
        });
        if round % 2 == 0 {
            look_pushed(stage, &context);
        } else {
            // The next invalidation comes while other threads look up.
            sim::idle(round * 977 % 9000);
        }
        match round {
            3 => invalidator.inode(d1),
            5 => invalidator.inode(d2),
            9 | 13 => invalidator.all(),
            _ => {}
        }
    }
}

fn look_pushed(stage: &Stage, context: &vfs_sim::Context) {
    let look = || is_there(ino(context, "/d1/p"));
    stage.histories.kept_pushed.look_pushed("/d1/p", look, |number| number % 2 == 1);
}

/// Whether it is there; any error but `ENOENT` is a failure.
fn is_there(found: Result<u64, Errno>) -> bool {
    match found {
        Ok(_) => true,
        Err(Errno::ENOENT) => false,
        Err(errno) => panic!("neither there nor not: {errno:?}"),
    }
}

/// `r` moves from `d1` to `d2` and back; odd states have it in `d2`, and state 0 nowhere. Private files come and go
/// beside it.
pub(crate) fn move_between_directories(stage: &Stage, _: u64) {
    let (context, history) = (stage.kept.context(), &stage.histories.kept_moved);
    history.change(|_| create(&context, "/d2/r"));
    for round in 0..4 * ROUNDS {
        history.change(|number| {
            let (from, to) = if number % 2 == 0 { ("/d2/r", "/d1/r") } else { ("/d1/r", "/d2/r") };
            rename(&context, from, to);
        });
        if round % 4 < 3 {
            // The next move comes while other threads look up.
            sim::idle(round * 977 % 9000);
            continue;
        }
        look_moved(stage, &context);
        let (first, second) = (format!("/d1/own{round}"), format!("/d2/own{round}"));
        create(&context, &first);
        rename(&context, &first, &second);
        assert_eq!(ino(&context, &first), Err(Errno::ENOENT), "{first} was moved");
        ino(&context, &second).expect("where it was moved to");
        unlink(&context, &second);
        assert_eq!(ino(&context, &second), Err(Errno::ENOENT), "{second} was removed");
    }
}

fn look_moved(stage: &Stage, context: &vfs_sim::Context) {
    let history = &stage.histories.kept_moved;
    history.look("/d1/r", || is_there(ino(context, "/d1/r")), |number| number > 0 && number % 2 == 0);
    history.look("/d2/r", || is_there(ino(context, "/d2/r")), |number| number % 2 == 1);
}

pub(crate) fn observe(stage: &Stage, _: u64) {
    let context = stage.kept.context();
    while stage.is_changing() {
        look_pushed(stage, &context);
        look_moved(stage, &context);
        assert_eq!(ino(&context, "/d1/none"), Err(Errno::ENOENT));
    }
}

/// Looks up names that no thread removes, more than there is room for, so that others are evicted.
pub(crate) fn scan(stage: &Stage, _: u64) {
    let context = stage.kept.context();
    let many = stage.store.node("many");
    let mut number = FILLED - 60;
    while stage.is_changing() {
        number += 1;
        if number >= FILLED {
            stage.store.make(many, &format!("n{number}"));
        }
        let path = format!("/many/n{number}");
        let held = context.hold(vfs_sim::Base::CWD, path.as_bytes(), true).expect("every number is there");
        look_pushed(stage, &context);
        // It is held, so it is not evicted meanwhile.
        assert_eq!(ino(&context, &path).ok(), held.attr().map(|attr| attr.ino).ok(), "{path} is held");
        assert_eq!(context.path_of(&held), path.as_bytes());
        ino(&context, "/many/n7").expect("every number is there");
    }
}
