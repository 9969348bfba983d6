//! Commits to another fork, and rollbacks under open files.

use crate::model::Act;
use crate::tree::{Seen, fill, memory, read, seen, write};
use lightfoot_workspaces::{Commit, CommitOptions, Fork, ForkLimits};
use std::collections::{BTreeMap, BTreeSet};
use vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

struct Tree {
    fork: Fork,
    context: Context,
}

impl Tree {
    fn of(fork: Fork) -> Self {
        let context = Vfs::new(fork.file_system()).context();
        Self { fork, context }
    }

    fn fork(&self) -> Self {
        Self::of(self.fork.fork(ForkLimits::default()).expect("a fork"))
    }

    fn commit(&self) -> Result<Vec<String>, Vec<String>> {
        match self.fork.commit(CommitOptions::default()).expect("a commit") {
            Commit::Done(changes) => Ok(changes.iter().map(ToString::to_string).collect()),
            Commit::Conflicts(conflicts) => Err(conflicts.iter().map(ToString::to_string).collect()),
        }
    }
}

/// Returns a fork, and two forks of it.
fn family() -> (Tree, Tree, Tree) {
    let base = memory();
    fill(&base);
    let parent = Tree::of(Fork::over(base, true).expect("a trunk").fork(ForkLimits::default()).expect("a fork"));
    let (one, two) = (parent.fork(), parent.fork());
    (parent, one, two)
}

#[test]
fn changes_that_commute_are_merged() {
    let (parent, one, two) = family();
    // All is in the parent's cache.
    let _ = seen(&parent.context);
    write(&one.context, "/f", 0, b"one").expect("a write");
    write(&one.context, "/a/new1", 0, b"new one").expect("a file");
    one.context.mkdir(Base::CWD, b"/a/dir1", 0o755).expect("a directory");
    write(&two.context, "/a/new2", 0, b"new two").expect("a file");
    two.context.mkdir(Base::CWD, b"/a/dir2", 0o755).expect("a directory");
    two.context.unlink(Base::CWD, b"/a/g").expect("a removal");
    two.context.rename(PathAt::cwd(b"/a/b"), PathAt::cwd(b"/moved"), RenameFlags::default()).expect("a rename");
    assert_eq!(one.commit(), Ok(sorted(["M f", "A a/dir1", "A a/new1"].map(String::from).to_vec())));
    assert_eq!(one.fork.changes(), Ok(Vec::new()));
    assert!(two.commit().is_ok());
    for (path, bytes) in [("/f", &b"one"[..]), ("/a/new1", b"new one"), ("/a/new2", b"new two")] {
        assert_eq!(read(&parent.context, path).as_deref(), Ok(bytes), "{path}");
    }
    assert_eq!(read(&parent.context, "/a/g"), Err(Errno::ENOENT));
    assert!(read(&parent.context, "/moved/d/f").is_ok());
    // `a` had `b`, and has two others now.
    assert_eq!(parent.context.attr(Base::CWD, b"/a", true).map(|attr| attr.nlink), Ok(4));
    let fresh = Vfs::new(parent.fork.file_system()).context();
    assert!(seen(&fresh) == seen(&parent.context), "the cache shows the new tree");
    // A write in the fork after the commit stays there.
    write(&one.context, "/f", 0, b"two").expect("a write");
    write(&one.context, "/a/new1", 0, b"NEW").expect("a write");
    assert_eq!(read(&parent.context, "/f").as_deref(), Ok(&b"one"[..]));
    assert_eq!(read(&parent.context, "/a/new1").as_deref(), Ok(&b"new one"[..]));
    assert_eq!(one.commit(), Ok(["M a/new1", "M f"].map(String::from).to_vec()));
    assert_eq!(read(&parent.context, "/a/new1").as_deref(), Ok(&b"NEW one"[..]));
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_by_key(|line| line[2..].to_string());
    lines
}

#[test]
fn a_directory_that_both_sides_removed_stays_removed_while_it_is_open() {
    let (parent, ..) = family();
    parent.context.mkdir(Base::CWD, b"/x", 0o755).expect("a directory");
    parent.context.mkdir(Base::CWD, b"/x/y", 0o755).expect("a directory");
    let fork = parent.fork();
    let open = parent.context.open(Base::CWD, b"/x", OpenFlags::RDONLY, 0).expect("it exists");
    for side in [&parent, &fork] {
        side.context.rmdir(Base::CWD, b"/x/y").expect("it is empty");
        side.context.rmdir(Base::CWD, b"/x").expect("it is empty");
    }
    assert_eq!(fork.commit().map(|_| ()), Ok(()));
    let links = |path: &[u8]| parent.context.attr(Base::CWD, path, true).map(|attr| attr.nlink);
    assert_eq!(parent.fork.changes().expect("changes"), [], "nothing is left of it");
    assert_eq!(open.attr().map(|attr| attr.nlink), Ok(0));
    drop(open);
    assert_eq!(links(b"/x"), Err(Errno::ENOENT));
    assert_eq!(links(b"/"), fork.context.attr(Base::CWD, b"/", true).map(|attr| attr.nlink));
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn a_conflict_changes_nothing_and_has_its_path_and_kind() {
    type Change = fn(&Context) -> Result<(), Errno>;
    let cases: [(Change, Change, &[&str]); 9] = [
        (
            |one| write(one, "/f", 0, b"one"),
            |two| write(two, "/f", 0, b"two"),
            &["C f: the contents were changed here and in the parent"],
        ),
        (
            |one| write(one, "/new", 0, b"one"),
            |two| write(two, "/new", 0, b"two"),
            &["C new: changed or replaced here and in the parent"],
        ),
        (
            |one| one.unlink(Base::CWD, b"/a/g"),
            |two| write(two, "/a/g", 0, b"two"),
            &["C a/g: changed on one side and removed on the other"],
        ),
        (
            |one| write(one, "/a/g", 0, b"one"),
            |two| two.unlink(Base::CWD, b"/a/g"),
            &["C a/g: changed on one side and removed on the other"],
        ),
        (
            |one| one.rename(PathAt::cwd(b"/a"), PathAt::cwd(b"/c/a"), RenameFlags::default()),
            |two| two.rename(PathAt::cwd(b"/c"), PathAt::cwd(b"/a/c"), RenameFlags::default()),
            &[
                "C a/c: changed on one side and removed on the other",
                "C c/a: changed on one side and removed on the other",
            ],
        ),
        (
            |one| write(one, "/a/b/d/new", 0, b"one"),
            |two| {
                for path in [&b"/a/b/d/f"[..], b"/a/b/f"] {
                    two.unlink(Base::CWD, path)?;
                }
                two.rmdir(Base::CWD, b"/a/b/d")?;
                two.rmdir(Base::CWD, b"/a/b")
            },
            &["C a/b/d/new: changed on one side and removed on the other"],
        ),
        (
            |one| {
                for path in [&b"/a/b/d/f"[..], b"/a/b/f"] {
                    one.unlink(Base::CWD, path)?;
                }
                one.rmdir(Base::CWD, b"/a/b/d")?;
                one.rmdir(Base::CWD, b"/a/b")
            },
            |two| write(two, "/a/b/d/new", 0, b"two"),
            &["C a/b/d/new: changed on one side and removed on the other"],
        ),
        (
            |one| one.set_attr(Base::CWD, b"/f", true, &SetAttr { mode: Some(0o600), ..SetAttr::default() }),
            |two| two.set_attr(Base::CWD, b"/f", true, &SetAttr { mode: Some(0o640), ..SetAttr::default() }),
            &["C f: mode, owner or attributes were changed here and in the parent"],
        ),
        (
            |one| one.rename(PathAt::cwd(b"/f"), PathAt::cwd(b"/one"), RenameFlags::default()),
            |two| two.rename(PathAt::cwd(b"/f"), PathAt::cwd(b"/two"), RenameFlags::default()),
            &["C f: changed or replaced here and in the parent"],
        ),
    ];
    for (number, (first, second, expected)) in cases.into_iter().enumerate() {
        let (parent, one, two) = family();
        second(&two.context).expect("a change");
        assert!(two.commit().is_ok(), "{number}");
        first(&one.context).expect("a change");
        let before = (seen(&parent.context), parent.fork.usage(), seen(&one.context));
        let conflicts = one.commit().expect_err("conflicts");
        for line in expected {
            assert!(conflicts.iter().any(|conflict| conflict == line), "{number}: {conflicts:?}");
        }
        let after = (seen(&parent.context), parent.fork.usage(), seen(&one.context));
        assert!(before == after, "{number}");
    }
}

#[test]
fn a_commit_has_the_changes_of_both_sides_or_none() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let moves = seed % 2 == 0;
        let (parent, one, _) = family();
        let then = seen(&parent.context);
        let steps = 2 + random.usize(..20);
        for step in 0..steps {
            let side = if random.usize(..3) == 0 { &parent } else { &one };
            if let Some(act) = Act::random(&side.context, &mut random, step).filter(|act| moves || !act.is_move()) {
                let _ = act.run(&side.context);
            }
        }
        let (theirs, ours) = (seen(&parent.context), seen(&one.context));
        match one.fork.commit(CommitOptions::default()).expect("a commit") {
            Commit::Done(_) => done += 1,
            Commit::Conflicts(conflicts) => {
                assert_ne!(conflicts, []);
                refused += 1;
                assert!(seen(&parent.context) == theirs, "seed {seed}: a refused commit changed the parent");
                continue;
            }
        }
        let merged = seen(&parent.context);
        let fresh = Vfs::new(parent.fork.file_system()).context();
        assert!(seen(&fresh) == merged, "seed {seed}: the cache shows another tree");
        assert!(seen(&one.context) == ours, "seed {seed}: the fork has changed");
        if theirs == then {
            assert!(merged == ours, "seed {seed}");
        }
        let paths: BTreeSet<&String> = [&then, &theirs, &ours, &merged].into_iter().flat_map(BTreeMap::keys).collect();
        for path in paths.into_iter().filter(|_| !moves) {
            let is_dir = merged.get(path).is_some_and(|seen| seen.0 & vfs::S_IFMT == vfs::S_IFDIR);
            let is_linked =
                [&then, &theirs, &ours, &merged].iter().any(|tree| tree.get(path).is_some_and(|it| it.1 > 1));
            if is_dir || is_linked {
                let [then, theirs, ours, merged] = [&then, &theirs, &ours, &merged].map(|tree| tree.contains_key(path));
                assert_eq!(merged, if ours == then { theirs } else { ours }, "seed {seed}: {path}");
                continue;
            }
            // Mode and contents are two changes.
            for part in [(|seen: &Seen| (seen.0, seen.1, 0, Vec::new())) as fn(&Seen) -> Seen, |seen: &Seen| {
                (0, seen.1, seen.2, seen.3.clone())
            }] {
                let [then, theirs, ours, merged] =
                    [&then, &theirs, &ours, &merged].map(|tree| tree.get(path).map(part));
                assert!(merged == if ours == then { theirs } else { ours }, "seed {seed}: {path}");
            }
        }
    }
    assert!(done > 50 && refused > 20, "{done} {refused}");
}

#[test]
fn a_rollback_keeps_files_open_and_frees_the_others() {
    let (parent, one, _) = family();
    let before = one.fork.usage();
    write(&one.context, "/new", 0, &[1; 9000]).expect("a file");
    write(&one.context, "/closed", 0, &[1; 9000]).expect("a file");
    write(&one.context, "/f", 0, b"changed").expect("a write");
    let new = one.context.open(Base::CWD, b"/new", OpenFlags::RDONLY, 0).expect("a file");
    let old = one.context.open(Base::CWD, b"/f", OpenFlags::RDONLY, 0).expect("a file");
    one.fork.roll_back(None).expect("a rollback");
    let mut bytes = [0; 8];
    assert_eq!((new.read_at(0, &mut bytes), bytes), (Ok(8), [1; 8]));
    assert_eq!(new.attr().map(|attr| attr.nlink), Ok(0));
    // The open file is the file of the base again, which is empty.
    assert_eq!(old.read_at(0, &mut bytes), Ok(0));
    assert!(seen(&one.context) == seen(&parent.context));
    assert!(one.fork.usage().0 > before.0 + 9000);
    drop(new);
    // The walk drops the name from the cache, and with it the file.
    assert_eq!(read(&one.context, "/new"), Err(Errno::ENOENT));
    assert_eq!(one.fork.usage(), before);
    assert_eq!(one.fork.changes(), Ok(Vec::new()));
}

#[test]
fn commits_need_a_parent_and_its_space() {
    let (parent, one, two) = family();
    let small = parent.fork.fork(ForkLimits { bytes: 1 << 20, inodes: 2 }).expect("a fork");
    let below = Tree::of(small.fork(ForkLimits::default()).expect("a fork"));
    for number in 0..3 {
        write(&below.context, &format!("/n{number}"), 0, b"x").expect("a file");
    }
    assert_eq!(below.fork.commit(CommitOptions::default()), Err(Errno::ENOSPC));
    assert_eq!(small.changes(), Ok(Vec::new()));
    drop(small);
    assert_eq!(below.fork.commit(CommitOptions::default()), Err(Errno::ESTALE));
    write(&one.context, "/n", 0, b"x").expect("a file");
    let check = CommitOptions { check_only: true, ..CommitOptions::default() };
    assert!(matches!(one.fork.commit(check), Ok(Commit::Done(changes)) if changes.len() == 1));
    assert_eq!(read(&parent.context, "/n"), Err(Errno::ENOENT));
    drop(two);
}
