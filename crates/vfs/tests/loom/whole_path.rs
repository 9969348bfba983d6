//! loom models of whole paths: when a path that was recorded may be used.
//!
//! They compile the files with the protocol (`whole_path.rs`, `lists.rs`, `object_word.rs`, `recorded.rs`) beside a dentry that
//! has no more than these use, so that loom tries every execution. What a change stores is a word that no ordering
//! protects.
//!
//! weaken-orderings: also slots
#![allow(dead_code, unreachable_pub, reason = "the files have more than the models use")]

#[path = "../../src/slots/object.rs"]
pub(crate) mod object;
#[path = "../../src/slots/object_word.rs"]
mod object_word;
#[allow(unsafe_code, reason = "the file says why")]
#[path = "../../src/slots/slot/recorded.rs"]
mod recorded;
#[path = "../../src/slots/whole_path.rs"]
pub(crate) mod whole_path;

/// What the files import, by the names that it has in the crate.
pub(crate) mod base {
    pub(crate) mod access {
        pub(crate) mod credentials {
            #[derive(Clone, PartialEq, Eq, Debug)]
            pub(crate) struct Credentials {
                pub(crate) uid: u32,
                pub(crate) gid: u32,
            }
        }
    }

    pub(crate) mod attr {
        pub(crate) const S_IFMT: u32 = 0o170_000;
        pub(crate) const S_IFDIR: u32 = 0o040_000;
        pub(crate) const S_IFLNK: u32 = 0o120_000;
    }
}

pub(crate) mod slots {
    pub(crate) use crate::whole_path::{object, whole_path};

    pub(crate) mod inode {
        pub(crate) struct Inode;

        impl Inode {
            pub(crate) fn has_acl(&self) -> bool {
                false
            }
        }

        pub(crate) struct InodeRef<'a>(&'a Inode);

        impl core::ops::Deref for InodeRef<'_> {
            type Target = Inode;

            fn deref(&self) -> &Inode {
                self.0
            }
        }
    }

    pub(crate) mod dentry {
        use crate::whole_path::object::{Object, ObjectFlags};
        use crate::whole_path::object_word::ObjectWord;
        use prim::atomic::AtomicU64;
        use std::sync::Arc;
        use sync::SeqCount;

        /// A directory, or a file in one.
        #[repr(align(64))]
        pub(crate) struct Dentry {
            pub(crate) seq: SeqCount,
            pub(crate) object: ObjectWord,
            /// Where it is: what a move changes.
            pub(crate) place: AtomicU64,
            parent: Option<Arc<Dentry>>,
        }

        impl Dentry {
            pub(crate) fn new(parent: Option<Arc<Dentry>>) -> Self {
                let open = Object::NEGATIVE.with(ObjectFlags::DIR | ObjectFlags::HASHED | ObjectFlags::SEARCH_ALL);
                Self { seq: SeqCount::new(), object: ObjectWord::new(open), place: AtomicU64::new(0), parent }
            }

            pub(crate) fn link() -> Self {
                let object = ObjectWord::new(Object::NEGATIVE.with(ObjectFlags::LINK | ObjectFlags::HASHED));
                Self { object, ..Self::new(None) }
            }

            pub(crate) fn object(&self) -> Object {
                self.object.load()
            }

            pub(crate) fn is_passed(&self) -> bool {
                self.object.is_passed()
            }

            pub(crate) fn parent(&self) -> Option<&Self> {
                self.parent.as_deref()
            }
        }
    }
}

use loom::thread;
use object::{Object, ObjectFlags};
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use slots::dentry::Dentry;
use std::sync::Arc;
use sync::SeqCount;
use whole_path::lists::Pair;
use whole_path::{Kind, List, Lists, Moving, Options, WholePaths};

fn paths() -> Arc<WholePaths> {
    Arc::new(WholePaths::new(Options::default()))
}

/// With a table, whose lists are one block.
fn paths_with_lists() -> Arc<WholePaths> {
    Arc::new(WholePaths::new(Options { bytes: 1, admits_all: true, ..Options::default() }))
}

fn lists(paths: &WholePaths) -> &Lists {
    &paths.table().expect("a table").lists
}

fn word() -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(0))
}

/// What a lookup has between its reads and its look at the stamp.
fn end_of_reads() {
    let _ = SeqCount::new().retry(0);
}

/// A thread that counts a change, and stores to `data` during it.
fn change_beside(paths: &Arc<WholePaths>, data: &Arc<AtomicU64>) -> thread::JoinHandle<()> {
    let (paths, data) = (paths.clone(), data.clone());
    thread::spawn(move || {
        let _change = paths.change(Kind::Soft);
        data.store(1, Relaxed);
    })
}

fn move_to(paths: &WholePaths, dentry: &Dentry, place: u64) {
    let moving = Moving::begin(paths, dentry);
    moving.place.store(place, Relaxed);
}

/// Where a directory is and with which sequence, if it did not move meanwhile; marks it, as a recorder does.
fn pass(dir: &Dentry) -> Option<(u64, u32)> {
    let seq = dir.seq.raw_begin();
    let place = dir.place.load(Relaxed);
    (dir.object.pass().is_open_dir() && !dir.seq.retry(seq)).then_some((place, seq))
}

#[test]
fn a_lookup_that_read_any_of_a_change_sees_that_it_began() {
    loom::model(|| {
        let (paths, data) = (paths(), word());
        let changer = change_beside(&paths, &data);
        let seen = data.load(Relaxed);
        end_of_reads();
        assert!(seen == 0 || paths.stamp() == 1);
        changer.join().unwrap();
    });
}

#[test]
fn a_walk_is_recorded_only_if_all_that_it_read_is_of_the_moment_of_its_stamp() {
    loom::model(|| {
        let (paths, data) = (paths(), word());
        let changer = change_beside(&paths, &data);
        if let Some((stamp, seen)) = paths.unchanged(|stamp| Some((stamp, data.load(Relaxed)))) {
            assert_eq!(
                u64::from(stamp),
                seen,
                "what it read is from before the change, and so is the stamp, or neither"
            );
        }
        changer.join().unwrap();
    });
}

#[test]
fn a_walk_beside_two_changes_is_recorded_only_if_none_is_under_way() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let paths = paths();
        let data = [word(), word()];
        let changers = [0, 1].map(|at: usize| change_beside(&paths, &data[at]));
        let read = || data.iter().map(|word| word.load(Relaxed)).sum::<u64>();
        if let Some((stamp, seen)) = paths.unchanged(|stamp| Some((stamp, read()))) {
            assert_eq!(u64::from(stamp), seen);
        }
        changers.into_iter().for_each(|changer| changer.join().unwrap());
    });
}

#[test]
fn a_thread_that_counts_a_change_sees_what_came_before_it() {
    loom::model(|| {
        let (paths, data) = (paths(), word());
        let counter = {
            let (paths, data) = (paths.clone(), data.clone());
            thread::spawn(move || {
                let now = paths.stamps();
                assert_eq!(now.is_soft_since(0), now.begun == 0);
                assert!(now.begun == 0 || data.load(Relaxed) == 1);
            })
        };
        data.store(1, Relaxed);
        drop(paths.change(Kind::Hard));
        counter.join().unwrap();
    });
}

#[test]
fn of_a_change_and_a_mark_one_sees_the_other() {
    loom::model(|| {
        let (dir, data) = (Arc::new(Dentry::new(None)), word());
        let changer = {
            let (dir, data) = (dir.clone(), data.clone());
            thread::spawn(move || {
                data.store(1, Relaxed);
                dir.is_passed()
            })
        };
        // Of two recorders, one may find the mark of the other.
        let other = {
            let dir = dir.clone();
            thread::spawn(move || dir.object.pass().is_open_dir())
        };
        let _ = dir.object.pass();
        let seen = data.load(Relaxed);
        other.join().unwrap();
        let is_counted = changer.join().unwrap();
        assert!(is_counted || seen == 1);
    });
}

#[test]
fn a_path_that_was_recorded_beside_a_move_is_right_as_long_as_its_stamp_is_that_of_today() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (paths, dir) = (paths(), Arc::new(Dentry::new(None)));
        let mover = {
            let (paths, dir) = (paths.clone(), dir.clone());
            thread::spawn(move || move_to(&paths, &dir, 1))
        };
        let recorded = paths.unchanged(|stamp| Some((stamp, pass(&dir)?)));
        mover.join().unwrap();
        if let Some((stamp, (place, _))) = recorded {
            assert!(stamp != paths.stamp() || place == 1);
        }
    });
}

#[test]
fn a_path_that_was_recorded_beside_the_end_of_its_link_is_not_used_after_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (paths, link) = (paths(), Arc::new(Dentry::link()));
        let remover = {
            let (paths, link) = (paths.clone(), link.clone());
            thread::spawn(move || {
                let leaving = Moving::leave(&paths, &link);
                leaving.object.update(|object| object.without(ObjectFlags::HASHED));
            })
        };
        let recorded = paths.unchanged(|stamp| {
            let seq = link.seq.raw_begin();
            (link.object.pass().is_hashed() && !link.seq.retry(seq)).then_some(stamp)
        });
        remover.join().unwrap();
        assert!(recorded.is_none_or(|stamp| stamp != paths.stamp()));
    });
}

#[test]
fn a_path_that_was_recorded_beside_a_closing_is_not_used_after_it() {
    loom::model(|| {
        let (paths, dir) = (paths(), Arc::new(Dentry::new(None)));
        let closer = {
            let (paths, dir) = (paths.clone(), dir.clone());
            let closed = ObjectFlags::SEARCH_ALL;
            thread::spawn(move || dir.object.update_dir(&paths, |object| object.without(closed)))
        };
        let recorded = paths.unchanged(|stamp| Some((stamp, pass(&dir)?)));
        closer.join().unwrap();
        let now = paths.stamps();
        assert!(recorded.is_none_or(|(stamp, _)| stamp != now.begun && !now.is_soft_since(stamp)));
    });
}

/// A file in a directory that a path from `start` passed, when the directory was at place 0; and the list of then.
struct Recorded {
    paths: Arc<WholePaths>,
    /// (The list is found by its address.)
    start: Arc<Dentry>,
    dir: Arc<Dentry>,
    file: Dentry,
}

impl Recorded {
    fn new() -> Self {
        let dir = Arc::new(Dentry::new(None));
        let file = Dentry::new(Some(dir.clone()));
        let recorded = Self { paths: paths_with_lists(), start: Arc::new(Dentry::new(None)), dir, file };
        recorded.record(0, pass(&recorded.dir).expect("nothing moves"));
        recorded
    }

    fn record(&self, stamp: u32, (_, seq): (u64, u32)) {
        let (lists, mut list) = (lists(&self.paths), List::new(stamp));
        assert!(list.push(lists, core::ptr::from_ref::<Dentry>(&self.dir).expose_provenance(), seq));
        lists.put(Pair::of(&self.start, &self.dir), &list);
    }

    /// Whether a lookup finds the path that was recorded at first.
    fn is_found(&self) -> bool {
        let (now, table) = (self.paths.stamps(), self.paths.table().expect("a table"));
        let is_right = now.is_soft_since(0) && table.is_unmoved(&self.start, &self.file, 0, now);
        let place = self.dir.place.load(Relaxed);
        end_of_reads();
        let is_found = is_right && self.paths.stamp() == now.begun;
        assert!(!is_found || place == 0, "it read what a move stored");
        is_found
    }
}

/// `is_kept`: a lookup of the same thread compared the list before, and kept the result.
fn find_beside_a_move(is_kept: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let recorded = Arc::new(Recorded::new());
        assert!(!is_kept || recorded.is_found());
        let mover = {
            let recorded = recorded.clone();
            thread::spawn(move || move_to(&recorded.paths, &recorded.dir, 1))
        };
        let is_found = recorded.is_found();
        assert!(!recorded.is_found() || is_found, "nothing moves back");
        mover.join().unwrap();
        assert!(!recorded.is_found());
    });
}

#[test]
fn a_path_is_found_by_its_list_until_its_directory_moves() {
    find_beside_a_move(false);
}

#[test]
fn a_list_that_was_found_right_is_used_until_its_directory_moves() {
    find_beside_a_move(true);
}

#[test]
fn a_list_that_is_made_after_a_move_does_not_make_older_paths_right() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let recorded = Arc::new(Recorded::new());
        let mover = {
            let recorded = recorded.clone();
            thread::spawn(move || move_to(&recorded.paths, &recorded.dir, 1))
        };
        // By another path, which passes the directory where it is by then.
        if let Some((stamp, passed)) = recorded.paths.unchanged(|stamp| Some((stamp, pass(&recorded.dir)?))) {
            recorded.record(stamp, passed);
        }
        mover.join().unwrap();
        assert!(!recorded.is_found());
    });
}

#[test]
fn a_word_of_an_object_brings_what_came_before_it() {
    let changes: [fn(&WholePaths, &Dentry); 3] = [
        |_, dir| dir.object.store(Object::NEGATIVE),
        |_, dir| dir.object.update(|_| Object::NEGATIVE),
        |paths, dir| dir.object.update_dir(paths, |_| Object::NEGATIVE),
    ];
    for change in changes {
        loom::model(move || {
            let (paths, dir, data) = (paths(), Arc::new(Dentry::new(None)), word());
            let walker = {
                let (dir, data) = (dir.clone(), data.clone());
                thread::spawn(move || assert!(dir.object().is_open_dir() || data.load(Relaxed) == 1))
            };
            data.store(1, Relaxed);
            change(&paths, &dir);
            walker.join().unwrap();
        });
    }
}

fn pair(paths: &WholePaths, start: usize) -> Pair {
    let table = paths.table().expect("a table");
    Pair::of_text(table.entries.sign(start as u64, b"a").expect("a short path"))
}

fn put(paths: &WholePaths, start: usize, number: usize) {
    let (lists, mut list) = (lists(paths), List::new(number as u32));
    assert!(list.push(lists, number * 64, 2) && list.push(lists, number * 128, 2));
    lists.put(pair(paths, start), &list);
}

/// The number with which the list of a pair was put. All its words are of that.
fn find(paths: &WholePaths, start: usize) -> Option<usize> {
    let list = lists(paths).find(pair(paths, start))?;
    let number = list.stamp as usize;
    assert_eq!(list.dirs(), [number * 64, number * 128]);
    Some(number)
}

#[test]
fn a_list_is_found_whole_or_not_at_all_beside_two_threads_that_put_others() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let paths = paths_with_lists();
        put(&paths, 64, 1);
        let writers = [2, 3].map(|number| {
            let paths = paths.clone();
            thread::spawn(move || put(&paths, 64, number))
        });
        let seen = find(&paths, 64);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let last = find(&paths, 64);
        assert!(last.is_some_and(|number| number > 1) && (seen.is_none() || seen >= Some(1)), "{seen:?} {last:?}");
    });
}

#[test]
fn a_list_of_another_pair_is_not_found() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let paths = paths_with_lists();
        put(&paths, 64, 1);
        let writer = {
            let paths = paths.clone();
            thread::spawn(move || put(&paths, 128, 2))
        };
        let seen = [find(&paths, 64), find(&paths, 128)];
        assert!([[Some(1), None], [None, Some(2)], [None, None], [Some(1), Some(2)]].contains(&seen), "{seen:?}");
        writer.join().unwrap();
        assert_eq!([find(&paths, 64), find(&paths, 128)], [None, Some(2)]);
    });
}
