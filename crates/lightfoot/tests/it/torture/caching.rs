//! A file system that keeps its own names, and invalidates what is cached of it again and again.

use crate::namespace::rng::Rng;
use crate::races::race::Race;
use crate::torture::own::{Able, Own};
use crate::torture::whole;
use crate::tree_kind::TreeKind;
use std::sync::Mutex;
use testkit::Counting;
use vfs::{Base, Context, Errno, Invalidator, PathAt, PathRef, RenameFlags};

/// Operations of each thread.
const STEPS: u64 = 10_000;

/// Directories, which all threads move.
const DIRS: [&str; 3] = ["one", "two", "a-directory-of-more-than-sixteen"];

fn mark_stale(invalidator: &Invalidator, dirs: &[u64], rng: &mut Rng) {
    let dir = rng.pick(dirs);
    match rng.below(3) {
        0 => invalidator.entry(dir, format!("own-{}-{}", rng.below(4), rng.below(6)).as_bytes()),
        1 => invalidator.inode(dir),
        _ => invalidator.all(),
    }
}

/// Lets two directories change places, or moves one.
fn wander(context: &Context, rng: &mut Rng) {
    let mut pick = || format!("{}/{}", rng.pick(&["", "/home"]), rng.pick(&DIRS)).into_bytes();
    let (from, to) = (pick(), pick());
    let moved = context.rename(PathAt::cwd(&from), PathAt::cwd(&to), RenameFlags::NOREPLACE);
    assert!(matches!(moved, Ok(()) | Err(Errno::ENOENT | Errno::EEXIST)), "{moved:?}");
}

pub(crate) fn no_name_is_lost_while_all_that_is_cached_is_in_doubt(kind: TreeKind) {
    let paths: Vec<String> = DIRS.iter().map(|dir| format!("{dir}/")).chain(["home/".into()]).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (fs, counts) = Counting::of(Box::new(testkit::Store::with_paths(&paths)));
    let vfs = crate::torture::new_tree(kind, fs);
    let context = vfs.context();
    let invalidator = counts.invalidator().expect("told when it was mounted");
    let dirs: Vec<PathRef> = DIRS.iter().map(|dir| context.hold(Base::CWD, dir.as_bytes(), true).unwrap()).collect();
    let nodes: Vec<u64> =
        DIRS.iter().map(|dir| context.attr(Base::CWD, dir.as_bytes(), true).unwrap().ino).chain([1]).collect();
    let finished = Mutex::new(Vec::new());
    {
        let (context, dirs, nodes, finished) = (&context, &dirs[..], &nodes, &finished);
        let mut race = Race::default();
        for thread in 0..4 {
            let mut own = Some(Own::new(context, dirs, thread, Able::Basics));
            race = race.writer(STEPS, move |round, rng| {
                if let Some(own) = &mut own {
                    own.step(rng);
                }
                if rng.chance(10) {
                    wander(context, rng);
                }
                if round + 1 == STEPS {
                    finished.lock().unwrap().extend(own.take());
                }
            });
        }
        race.reader(move |rng| mark_stale(invalidator, nodes, rng)).run();
    }
    let finished = finished.into_inner().unwrap();
    assert_eq!(finished.len(), 4);
    finished.iter().for_each(Own::check_all);
    drop(finished);
    drop(dirs);
    whole::check_released(&vfs, context);
}
