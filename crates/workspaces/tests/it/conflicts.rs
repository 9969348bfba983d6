//! Commits in which one side wins: each file is as a merge by paths has it.

use crate::publish::{host, touch_later};
use crate::tree::{memory, read, seen, write};
use fastrand::Rng;
use hostfs::{HostFs, HostOptions, Revalidate};
use lightfoot_workspaces::{Commit, CommitOptions, Fork, ForkLimits, OnConflict};
use std::collections::BTreeMap;
use std::path::Path;
use vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

/// The contents of each file.
type Files = BTreeMap<String, Vec<u8>>;

/// Node numbers of files that a fork has made begin here.
const MADE: u64 = 1 << 40;

/// The last one is made by a fork.
const DIRS: [&str; 3] = ["/p", "/q", "/r"];

fn files(context: &Context) -> Files {
    seen(context).into_iter().filter(|(path, _)| path.matches('/').count() > 1).map(|(path, of)| (path, of.3)).collect()
}

/// Changes a file in one of four ways.
fn change(context: &Context, random: &mut Rng, bytes: &[u8]) -> Result<(), Errno> {
    let path = format!("{}/{}", DIRS[random.usize(..3)], random.usize(..6));
    let (path, new) = (path.as_bytes(), format!("{path}.new"));
    match random.usize(..5) {
        0 | 1 => {
            context.set_attr(Base::CWD, path, true, &SetAttr { size: Some(0), ..SetAttr::default() })?;
            write(context, core::str::from_utf8(path).expect("text"), 0, bytes)
        }
        2 => context.unlink(Base::CWD, path),
        3 => {
            write(context, &new, 0, bytes)?;
            context.rename(PathAt::cwd(new.as_bytes()), PathAt::cwd(path), RenameFlags::default())
        }
        _ => {
            let flags = OpenFlags::WRONLY.union(OpenFlags::CREAT).union(OpenFlags::EXCL);
            context.open(Base::CWD, path, flags, 0o644)?.write_at(0, bytes).map(drop)
        }
    }
}

/// Makes some changes. `side` and a number are in all contents.
fn changes(context: &Context, random: &mut Rng, side: &str) {
    for number in 0..random.usize(1..9) {
        let bytes = format!("{side} {number} ").repeat(1 + random.usize(..3) * 700);
        match change(context, random, bytes.as_bytes()) {
            Ok(()) | Err(Errno::ENOENT | Errno::EEXIST) => {}
            Err(errno) => panic!("{errno}"),
        }
    }
}

fn start(context: &Context, dirs: &[&str], step: usize) {
    for dir in dirs {
        let _ = context.mkdir(Base::CWD, dir.as_bytes(), 0o755);
        for number in (0..4).step_by(step) {
            write(context, &format!("{dir}/{number}"), 0, format!("{step}: {dir} {number}").as_bytes())
                .expect("a file");
        }
    }
}

/// Returns the merge by paths, and the paths that both sides have changed.
fn merged(origin: &Files, ours: &Files, theirs: &Files, how: OnConflict) -> (Files, Vec<String>) {
    let (mut merged, mut both) = (Files::new(), Vec::new());
    for path in origin.keys().chain(ours.keys()).chain(theirs.keys()) {
        let [then, our, their] = [origin, ours, theirs].map(|side| side.get(path));
        let taken = match (our == then, their == then) {
            (true, _) => their,
            (_, true) => our,
            _ if our == their => our,
            _ => {
                both.push(path.clone());
                if how == OnConflict::Mine { our } else { their }
            }
        };
        if let Some(bytes) = taken {
            merged.insert(path.clone(), bytes.clone());
        }
    }
    (merged, both)
}

fn commit(fork: &Fork, how: OnConflict, check_only: bool) -> Commit {
    fork.commit(CommitOptions { conflicts: how, check_only, ..CommitOptions::default() }).expect("a commit")
}

/// Commits, and compares the parent with the merge. `parent` is a view of it.
fn check(
    fork: &Fork,
    how: OnConflict,
    [origin, ours, theirs]: [&Files; 3],
    parent: &dyn Fn() -> Files,
    seed: u64,
    between: &dyn Fn(),
) {
    let (expected, both) = merged(origin, ours, theirs, how);
    let refused = commit(fork, OnConflict::Refuse, false);
    assert_eq!(matches!(refused, Commit::Conflicts(_)), !both.is_empty(), "seed {seed}: {both:?} {refused:?}");
    if both.is_empty() {
        assert!(parent() == expected, "seed {seed}: without a conflict");
        return;
    }
    let possible = commit(fork, how, true);
    let states = both.iter().map(|path| [origin, ours, theirs].map(|side| side.get(path).map(|bytes| bytes.len())));
    let states: Vec<_> = states.collect();
    assert!(matches!(possible, Commit::Done(_)), "seed {seed}, {how:?}: {both:?} {states:?} {possible:?} {refused:?}");
    assert!(parent() == *theirs, "seed {seed}: a check changes nothing");
    between();
    let done = commit(fork, how, false);
    assert!(matches!(done, Commit::Done(_)), "seed {seed}: {both:?} {done:?}");
    let found = parent();
    for path in expected.keys().chain(found.keys()) {
        let brief = |side: &Files| {
            side.get(path).map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(9)]).into_owned())
        };
        assert_eq!(brief(&found), brief(&expected), "seed {seed}, {how:?}: {path} {both:?}");
    }
    assert!(found == expected, "seed {seed}, {how:?}: {both:?}");
    assert_eq!(fork.changes(), Ok(Vec::new()), "seed {seed}");
}

#[test]
fn one_side_of_two_forks_wins() {
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let how = [OnConflict::Mine, OnConflict::Theirs][random.usize(..2)];
        let base = memory();
        start(&base, &DIRS[..2], 1);
        let parent = Fork::over(base, true).expect("a trunk").fork(ForkLimits::default()).expect("a fork");
        let view = |fork: &Fork| Vfs::new(fork.file_system()).context();
        let parent_view = view(&parent);
        if random.bool() {
            start(&parent_view, &DIRS, 2);
        }
        let fork = parent.fork(ForkLimits::default()).expect("a fork");
        let fork_view = view(&fork);
        let origin = files(&fork_view);
        changes(&fork_view, &mut random, "ours");
        changes(&parent_view, &mut random, "theirs");
        let (ours, theirs) = (files(&fork_view), files(&parent_view));
        let open: Vec<_> = theirs
            .keys()
            .chain(["/p".into()].iter())
            .map(|path| parent_view.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).expect("it exists"))
            .collect();
        check(&fork, how, [&origin, &ours, &theirs], &|| files(&parent_view), seed, &|| ());
        for file in &open[..open.len() - 1] {
            assert!(file.read_at(0, &mut [0; 100]).is_ok(), "seed {seed}: an open file");
        }
        drop(open);
        let fresh = view(&parent);
        assert!(seen(&fresh) == seen(&parent_view), "seed {seed}: the cache shows the new tree");
        assert!(seen(&view(&fork)) == seen(&fork_view), "seed {seed}: the cache of the fork shows its tree");
        assert!(seen(&fresh).iter().all(|(path, of)| of.1 == 1 || DIRS.contains(&&**path)), "seed {seed}: links");
        if let Ok(attr) = fresh.attr(Base::CWD, b"/r", true) {
            let names = crate::tree::names(&fresh, "/r").expect("a listing").len() as u64;
            assert_eq!(attr.size, 20 * (2 + names), "seed {seed}: the length of a directory that a fork made");
        }
        // Nothing is in use but the files that the tree has.
        let made = crate::tree::walk(&fresh).iter().filter(|(_, attr)| attr.ino >= MADE).count() as u64;
        drop((fresh, parent_view));
        assert_eq!(parent.usage().1, made, "seed {seed}: inodes in use");
    }
}

/// Makes the changes that a program on the host makes.
fn host_changes(dir: &Path, random: &mut Rng) {
    changes(&host(dir).context(), random, "theirs");
}

#[test]
fn one_side_of_a_fork_and_its_directory_wins() {
    for seed in 0..80 {
        let mut random = Rng::with_seed(seed);
        let how = [OnConflict::Mine, OnConflict::Theirs][random.usize(..2)];
        let dir = tempfile::tempdir().expect("a directory");
        let probe = tempfile::NamedTempFile::new().expect("a file");
        start(&host(dir.path()).context(), &DIRS[..2], 1);
        let options = HostOptions { policy: Revalidate::Always, ..HostOptions::default() };
        let base = Vfs::new(HostFs::new(dir.path(), &options).expect("a directory"));
        let fork = Fork::over(base.context(), false).expect("a trunk").fork(ForkLimits::default()).expect("a fork");
        let view = Vfs::new(fork.file_system()).context();
        let origin = files(&view);
        changes(&view, &mut random, "ours");
        let ours = files(&view);
        // A change of the host must have a later time.
        touch_later(probe.path());
        host_changes(dir.path(), &mut random);
        let host_files = || files(&host(dir.path()).context());
        let theirs = host_files();
        // A file in the way of the commit's own: a commit that fails leaves a fork whose cache shows its tree.
        let fail = || {
            let in_the_way = dir.path().join(".lightfoot-commit");
            std::fs::write(&in_the_way, "").expect("a file");
            let failed = fork.commit(CommitOptions { conflicts: how, ..CommitOptions::default() });
            assert!(failed.is_err() || matches!(failed, Ok(Commit::Done(_))), "seed {seed}: {failed:?}");
            std::fs::remove_file(&in_the_way).expect("it is there");
            let fresh = Vfs::new(fork.file_system()).context();
            assert!(files(&fresh) == files(&view), "seed {seed}: the cache of the fork after an error");
        };
        check(&fork, how, [&origin, &ours, &theirs], &host_files, seed, &fail);
        let fresh = Vfs::new(fork.file_system()).context();
        let (shown, found) = (files(&fresh), host_files());
        let differs = |path: &&String| shown.get(*path) != found.get(*path);
        assert_eq!(shown.keys().chain(found.keys()).find(differs), None, "seed {seed}: the fork shows its directory");
    }
}

#[test]
fn rights_of_one_side_win_and_contents_of_both_stay() {
    for (how, mode) in [(OnConflict::Mine, 0o600), (OnConflict::Theirs, 0o640)] {
        let base = memory();
        start(&base, &DIRS[..2], 1);
        let parent = Fork::over(base, true).expect("a trunk").fork(ForkLimits::default()).expect("a fork");
        let fork = parent.fork(ForkLimits::default()).expect("a fork");
        let [ours, theirs] = [&fork, &parent].map(|fork| Vfs::new(fork.file_system()).context());
        let chmod = |context: &Context, mode| {
            context.set_attr(Base::CWD, b"/p/1", true, &SetAttr { mode: Some(mode), ..SetAttr::default() })
        };
        chmod(&ours, 0o600).expect("changed");
        chmod(&theirs, 0o640).expect("changed");
        write(&theirs, "/p/1", 0, b"THEIRS").expect("written");
        assert!(matches!(commit(&fork, how, false), Commit::Done(_)));
        let found = (theirs.attr(Base::CWD, b"/p/1", true).map(|attr| attr.mode & 0o7777), read(&theirs, "/p/1"));
        assert_eq!(found.0, Ok(mode));
        assert!(found.1.expect("contents").starts_with(b"THEIRS"));
    }
}

#[test]
fn a_conflict_of_directories_or_of_links_is_reported_for_each_side() {
    type Change = fn(&Context) -> Result<(), Errno>;
    let cases: [(Change, Change); 3] = [
        (|one| one.mkdir(Base::CWD, b"/p/new", 0o755), |two| two.mkdir(Base::CWD, b"/p/new", 0o755)),
        (
            |one| one.rename(PathAt::cwd(b"/p/0"), PathAt::cwd(b"/p/x"), RenameFlags::default()),
            |two| two.rename(PathAt::cwd(b"/p/0"), PathAt::cwd(b"/p/y"), RenameFlags::default()),
        ),
        (
            |one| {
                one.link(PathAt::cwd(b"/p/0"), PathAt::cwd(b"/p/x"), false)
                    .and_then(|()| one.unlink(Base::CWD, b"/p/0"))
            },
            |two| write(two, "/p/0", 0, b"two"),
        ),
    ];
    for (number, (first, second)) in cases.into_iter().enumerate() {
        for how in [OnConflict::Mine, OnConflict::Theirs] {
            let base = memory();
            start(&base, &DIRS[..2], 1);
            let parent = Fork::over(base, true).expect("a trunk").fork(ForkLimits::default()).expect("a fork");
            let fork = parent.fork(ForkLimits::default()).expect("a fork");
            let [ours, theirs] = [&fork, &parent].map(|fork| Vfs::new(fork.file_system()).context());
            first(&ours).expect("a change");
            second(&theirs).expect("a change");
            let before = [seen(&ours), seen(&theirs)];
            if let Commit::Conflicts(conflicts) = commit(&fork, how, false) {
                assert!(!conflicts.is_empty());
                assert!([seen(&ours), seen(&theirs)] == before, "{number} {how:?}: nothing changes");
            } else {
                assert_eq!(number, 2, "{how:?}");
            }
        }
    }
}
