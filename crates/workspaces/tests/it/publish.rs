//! Commits to the base.

use crate::model::Act;
use crate::tree::{fill, read, seen, write};
use core::ops::Range;
use lightfoot_workspaces::{Commit, CommitOptions, Fork, ForkLimits, Recovered};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::{Fault, Faults, Plan};
use vfs::{Base, Context, Errno, FileSystem, PathAt, RenameFlags, S_IFCHR, SetAttr, Vfs};

pub(crate) fn host(dir: &Path) -> Vfs {
    Vfs::new(hostfs::HostFs::new(dir, &hostfs::HostOptions::default()).expect("a directory"))
}

pub(crate) fn fork_of(base: &Vfs, is_fixed: bool) -> (Fork, Context) {
    let trunk = Fork::over(base.context(), is_fixed).expect("a trunk");
    let fork = trunk.fork(ForkLimits::default()).expect("a fork");
    let context = Vfs::new(fork.file_system()).context();
    (fork, context)
}

pub(crate) fn commit(fork: &Fork) -> Result<usize, Vec<String>> {
    match fork.commit(CommitOptions::default()).expect("a commit") {
        Commit::Done(changes) => Ok(changes.len()),
        Commit::Conflicts(conflicts) => Err(conflicts.iter().map(ToString::to_string).collect()),
    }
}

/// Makes random changes in a fork, and commits them, some times.
pub(crate) fn run(base: &Vfs, is_fixed: bool, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (fork, context) = fork_of(base, is_fixed);
    for round in 0..4 {
        let mut acts = Vec::new();
        for step in 0..random.usize(..30) {
            if let Some(act) = Act::random(&context, &mut random, step) {
                let done = act.run(&context);
                acts.push((act, done));
            }
        }
        let expected = seen(&context);
        let done = commit(&fork);
        assert!(done.is_ok(), "seed {seed}, round {round}: {done:?} {acts:?}");
        for (tree, found) in [("base", seen(&base.context())), ("fork", seen(&context))] {
            for path in expected.keys().chain(found.keys()) {
                let brief = |tree: &std::collections::BTreeMap<String, crate::tree::Seen>| {
                    tree.get(path).map(|seen| (seen.0, seen.1, seen.2, seen.3.first().copied()))
                };
                assert_eq!(brief(&found), brief(&expected), "seed {seed}, round {round}, {tree}: {path} {acts:?}");
            }
            assert!(found == expected, "seed {seed}, round {round}, {tree}: contents {acts:?}");
        }
        assert_eq!(fork.changes(), Ok(Vec::new()));
        let (_, fresh) = fork_of(base, is_fixed);
        assert!(seen(&fresh) == expected, "seed {seed}, round {round}: a new fork differs");
    }
}

#[test]
fn a_tree_in_memory_gets_the_changes_of_its_fork() {
    for seed in 0..100 {
        let base = Vfs::new(ramfs::RamFs::new());
        fill(&base.context());
        run(&base, seed % 2 == 0, seed);
    }
}

#[test]
fn a_host_directory_gets_the_changes_of_its_fork() {
    for seed in 0..60 {
        let dir = tempfile::tempdir().expect("a directory");
        let base = host(dir.path());
        fill(&base.context());
        run(&base, seed % 2 == 0, seed);
        assert!(!dir.path().join(".lightfoot-commit").exists());
        // The host has the same as the base's cache.
        assert!(seen(&host(dir.path()).context()) == seen(&base.context()), "seed {seed}");
    }
}

/// Makes a directory with files, and a fork of it with random changes, whose base fails as the plan says.
fn faulty(dir: &Path, seed: u64) -> (Fork, Context, Arc<Plan>) {
    fill(&host(dir).context());
    let fs = hostfs::HostFs::new(dir, &hostfs::HostOptions::default()).expect("a directory");
    faulty_of(Box::new(fs), seed)
}

/// As [`faulty`], of any base.
pub(crate) fn faulty_of<F: FileSystem>(base: Box<F>, seed: u64) -> (Fork, Context, Arc<Plan>) {
    let (fs, plan) = Faults::of(base);
    let (fork, context) = fork_of(&Vfs::new(fs), false);
    let mut random = fastrand::Rng::with_seed(seed);
    Act::some(&context, &mut random, 0..20);
    (fork, context, plan)
}

/// The calls that change the base.
const CHANGES: [&str; 12] = [
    "create",
    "link",
    "unlink",
    "rename",
    "set_attr",
    "write",
    "set_len",
    "copy_range",
    "sync",
    "set_xattr",
    "remove_xattr",
    "allocate",
];

/// Fails changing calls from the one with this number on; only that one, if `is_once`.
pub(crate) fn fail_at(plan: &Plan, number: u64, is_once: bool) {
    fail_at_with(plan, number, is_once, || {});
}

/// As [`fail_at`]; calls `failed` before each call that fails.
pub(crate) fn fail_at_with(plan: &Plan, number: u64, is_once: bool, failed: impl Fn() + Send + Sync + 'static) {
    let count = AtomicU64::new(0);
    plan.set(move |call| {
        let now = if CHANGES.contains(&call.method) {
            count.fetch_add(1, Ordering::Relaxed)
        } else {
            count.load(Ordering::Relaxed).wrapping_sub(1)
        };
        let is_dead = if is_once {
            now == number && CHANGES.contains(&call.method)
        } else {
            now.wrapping_add(1) > number && now != u64::MAX
        };
        is_dead.then(|| {
            failed();
            Fault::Fail(Errno::EIO)
        })
    });
}

#[test]
fn a_commit_that_is_cut_off_is_completed_or_undone() {
    cut_off(0..3, faulty);
}

/// Makes a fork of a directory with random changes from a seed.
type Make = fn(&Path, u64) -> (Fork, Context, Arc<Plan>);

/// Fails all calls from each one on, and starts again.
pub(crate) fn cut_off(seeds: Range<u64>, make: Make) {
    let mut seen_states = std::collections::BTreeSet::new();
    for seed in seeds {
        for number in 0.. {
            let dir = tempfile::tempdir().expect("a directory");
            let (fork, context, plan) = make(dir.path(), seed);
            let (before, after) = (seen(&host(dir.path()).context()), seen(&context));
            fail_at(&plan, number, false);
            let result = fork.commit(CommitOptions::default());
            plan.set(|_| None);
            drop((fork, context));
            let base = host(dir.path());
            let recovered = Fork::over(base.context(), false).expect("a trunk").recover().expect("a recovery");
            seen_states.insert(format!("{recovered:?}"));
            let found = seen(&base.context());
            match recovered {
                Recovered::Completed => assert!(found == after, "seed {seed}, call {number}"),
                Recovered::Undone => assert!(found == before, "seed {seed}, call {number}"),
                // The base may have failed after the last step.
                Recovered::Nothing => {
                    let is_before = result.is_err() && found == before;
                    assert!(is_before || found == after, "seed {seed}, call {number}: {result:?}");
                }
            }
            assert!(!dir.path().join(".lightfoot-commit").exists());
            if result.is_ok() {
                break;
            }
        }
    }
    assert_eq!(seen_states.len(), 3, "{seen_states:?}");
}

#[test]
fn a_commit_with_one_error_changes_all_or_nothing() {
    one_error(0..3, faulty);
}

/// Fails each call alone.
pub(crate) fn one_error(seeds: Range<u64>, make: Make) {
    for seed in seeds {
        for number in 0.. {
            let dir = tempfile::tempdir().expect("a directory");
            let (fork, context, plan) = make(dir.path(), seed);
            let (before, after) = (seen(&host(dir.path()).context()), seen(&context));
            fail_at(&plan, number, true);
            let result = fork.commit(CommitOptions::default());
            let was_injected = plan.injected() > 0;
            plan.set(|_| None);
            let found = || seen(&host(dir.path()).context());
            match result {
                Ok(Commit::Done(_)) => {
                    // An error of the removal leaves links of old files.
                    fork.recover().expect("a recovery");
                    assert!(found() == after, "seed {seed}, call {number}");
                }
                Ok(Commit::Conflicts(conflicts)) => panic!("seed {seed}, call {number}: {conflicts:?}"),
                Err(errno) => {
                    fork.recover().expect("a recovery");
                    assert!(found() == before, "seed {seed}, call {number}: {errno}");
                    let done = commit(&fork);
                    assert!(done.is_ok() && found() == after, "seed {seed}, call {number}: {done:?}");
                }
            }
            if !was_injected {
                break;
            }
        }
    }
}

#[test]
fn what_others_changed_in_the_base_is_a_conflict() {
    type Change = fn(&Path);
    type Act = fn(&Context) -> Result<(), Errno>;
    let cases: [(Act, Change, &str); 8] = [
        (|fork| write(fork, "/f", 0, b"x"), |dir| std::fs::write(dir.join("f"), "other").unwrap(), "C f: the contents"),
        (
            |fork| write(fork, "/new", 0, b"x"),
            |dir| std::fs::write(dir.join("new"), "other").unwrap(),
            "C new: changed or replaced",
        ),
        (
            |fork| fork.unlink(Base::CWD, b"/a/g"),
            |dir| std::fs::rename(dir.join("f"), dir.join("a/g")).unwrap(),
            "C a/g: changed or replaced",
        ),
        (
            |fork| write(fork, "/a/g", 0, b"x"),
            |dir| std::fs::remove_file(dir.join("a/g")).unwrap(),
            "C a/g: changed on one side",
        ),
        (
            |fork| write(fork, "/c/new", 0, b"x"),
            |dir| std::fs::remove_dir_all(dir.join("c")).unwrap(),
            "C c/new: changed on one side",
        ),
        (
            |fork| fork.set_attr(Base::CWD, b"/f", true, &SetAttr { mode: Some(0o600), ..SetAttr::default() }),
            |dir| std::fs::set_permissions(dir.join("f"), PermissionsExt::from_mode(0o640)).unwrap(),
            "C f: mode, owner",
        ),
        (|fork| fork.mknod(Base::CWD, b"/null", S_IFCHR | 0o666, 0x103), |_| (), "C null: set-user-ID"),
        (
            |fork| fork.mkdir(Base::CWD, b"/.lightfoot-commit", 0o755),
            |_| (),
            "C .lightfoot-commit: the name is reserved",
        ),
    ];
    for (number, (act, change, expected)) in cases.into_iter().enumerate() {
        let dir = tempfile::tempdir().expect("a directory");
        let base = host(dir.path());
        fill(&base.context());
        let (fork, context) = fork_of(&base, false);
        act(&context).expect("a change");
        change(dir.path());
        base.context().hold(Base::CWD, b"/", true).expect("the root").mark_stale();
        let before = seen(&host(dir.path()).context());
        let conflicts = commit(&fork).expect_err(expected);
        assert!(conflicts.iter().any(|line| line.starts_with(expected)), "{number}: {conflicts:?}");
        assert!(seen(&host(dir.path()).context()) == before, "{number}");
        let check = CommitOptions { check_only: true, ..CommitOptions::default() };
        // The base's cache may have an absent name for a second.
        assert!(number == 1 || matches!(fork.commit(check), Ok(Commit::Conflicts(_))), "{number}");
    }
}

/// Changes a file until its time shows that it changed after this call began.
pub(crate) fn touch_later(path: &Path) {
    let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let time = || std::fs::metadata(path).map(|data| (data.ctime() as u64, data.ctime_nsec() as u32)).unwrap();
    while time() <= (began.as_secs(), began.subsec_nanos()) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o640)).unwrap();
    }
}

#[test]
fn what_others_changed_after_its_removal_is_not_removed() {
    type Act = fn(&Context) -> Result<(), Errno>;
    let remove_tree: Act = |fork| {
        for path in [&b"/a/b/d/f"[..], b"/a/b/f"] {
            fork.unlink(Base::CWD, path)?;
        }
        fork.rmdir(Base::CWD, b"/a/b/d")?;
        fork.rmdir(Base::CWD, b"/a/b")
    };
    let cases: [(Act, &str, &str); 4] = [
        (|fork| fork.unlink(Base::CWD, b"/a/g"), "a/g", "C a/g: "),
        (|fork| fork.rename(PathAt::cwd(b"/f"), PathAt::cwd(b"/a/g"), RenameFlags::default()), "a/g", "C a/g: "),
        (remove_tree, "a/b/d/f", "C a/b: "),
        (remove_tree, "a/b/d", "C a/b: "),
    ];
    for (number, (act, path, expected)) in cases.into_iter().enumerate() {
        for is_changed in [true, false] {
            let dir = tempfile::tempdir().expect("a directory");
            let base = host(dir.path());
            fill(&base.context());
            let (fork, context) = fork_of(&base, false);
            act(&context).expect("a change");
            if is_changed {
                touch_later(&dir.path().join(path));
                let conflicts = commit(&fork).expect_err("a conflict");
                assert!(conflicts.iter().any(|line| line.starts_with(expected)), "{number}: {conflicts:?}");
                assert!(dir.path().join(path).exists(), "{number}");
            } else {
                assert!(commit(&fork).is_ok(), "{number}");
            }
        }
    }
}

#[test]
fn other_forks_see_a_commit_where_they_changed_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = host(dir.path());
    fill(&base.context());
    let trunk = Fork::over(base.context(), false).expect("a trunk");
    let [(one, first), (two, second)] = [(); 2].map(|()| {
        let fork = trunk.fork(ForkLimits::default()).expect("a fork");
        let context = Vfs::new(fork.file_system()).context();
        (fork, context)
    });
    let _ = (seen(&first), seen(&second));
    write(&second, "/a/g", 0, b"second").expect("a write");
    write(&first, "/a/g", 0, b"first").expect("a write");
    write(&first, "/f", 0, b"first").expect("a write");
    first.rename(PathAt::cwd(b"/c"), PathAt::cwd(b"/moved"), RenameFlags::default()).expect("a rename");
    let ino = std::fs::metadata(dir.path().join("c")).unwrap().ino();
    assert_eq!(commit(&one), Ok(3));
    assert_eq!(std::fs::metadata(dir.path().join("moved")).unwrap().ino(), ino, "a directory is not copied");
    assert_eq!(read(&second, "/f").as_deref(), Ok(&b"first"[..]));
    assert!(read(&second, "/moved/g").is_ok());
    assert_eq!(read(&second, "/a/g").map(|bytes| bytes[..6].to_vec()).as_deref(), Ok(&b"second"[..]));
    // Both have changed this file.
    assert!(commit(&two).is_err());
    assert!(matches!(trunk.commit(CommitOptions::default()), Err(Errno::EINVAL)));
}

#[test]
fn a_check_finds_a_name_that_another_program_has_just_made_or_removed() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let base = host(dir.path());
    write(&base.context(), "/old", 0, b"old").expect("a file");
    let (fork, context) = fork_of(&base, false);
    // The base's cache has both answers.
    assert!(context.attr(Base::CWD, b"/new", true).is_err());
    write(&context, "/old", 0, b"mine").expect("a write");
    std::fs::write(dir.path().join("new"), "theirs").expect("a file");
    std::fs::remove_file(dir.path().join("old")).expect("a removal");
    write(&context, "/new", 0, b"mine").expect("a file");
    let check = CommitOptions { check_only: true, ..CommitOptions::default() };
    let Commit::Conflicts(conflicts) = fork.commit(check).expect("a check") else { panic!("no conflict") };
    let conflicts: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        conflicts,
        ["C new: changed or replaced here and in the parent", "C old: changed on one side and removed on the other"]
    );
}

#[test]
fn a_failed_commit_undoes_attributes_of_files_in_a_renamed_directory() {
    one_error(0..1, |dir, _| {
        let (fork, context, plan) = faulty(dir, 0);
        fork.roll_back(None).expect("a rollback");
        let rename = |from: &[u8], to: &[u8]| context.rename(PathAt::cwd(from), PathAt::cwd(to), RenameFlags::EXCHANGE);
        rename(b"/a", b"/c").expect("a rename");
        let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        context.set_attr(Base::CWD, b"/c/g", true, &set).expect("a mode");
        (fork, context, plan)
    });
}

#[test]
fn a_new_file_with_the_inode_number_of_a_replaced_file_is_another_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fill(&host(dir.path()).context());
    (0..1100).for_each(|number| std::fs::write(at(&format!("m{number}")), "").expect("a file"));
    let old = std::fs::metadata(at("f")).unwrap().ino();
    let base = host(dir.path());
    let (fork, context) = fork_of(&base, false);
    write(&context, "/f", 0, b"new").expect("a write");
    assert_eq!(commit(&fork), Ok(1));
    // The fork holds files that were in use lately.
    drop(context);
    let _ = seen(&Vfs::new(fork.file_system()).context());
    let context = Vfs::new(fork.file_system()).context();
    for number in 0..5000 {
        let name = format!("n{number}");
        std::fs::write(at(&name), "other").expect("a file");
        if std::fs::metadata(at(&name)).unwrap().ino() == old {
            assert_eq!(read(&context, &format!("/{name}")).as_deref(), Ok(&b"other"[..]));
            return;
        }
    }
    println!("SKIPPED: the file system does not use inode numbers again");
}

#[test]
fn a_damaged_journal_is_refused() {
    let damaged = (0..).find_map(|number| {
        let dir = tempfile::tempdir().expect("a directory");
        let (fork, context, plan) = faulty(dir.path(), 0);
        fail_at(&plan, number, false);
        assert!(fork.commit(CommitOptions::default()).is_err(), "there is a call after the journal is written");
        drop((fork, context));
        dir.path().join(".lightfoot-commit/journal").exists().then_some(dir)
    });
    let dir = damaged.expect("a directory");
    let journal = dir.path().join(".lightfoot-commit/journal");
    let whole = std::fs::read(&journal).expect("a journal");
    let recover = || Fork::over(host(dir.path()).context(), false).expect("a trunk").recover();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&journal, bytes).expect("a journal");
        assert_eq!(recover(), Err(Errno::EIO), "{at}");
    }
    std::fs::write(&journal, whole).expect("a journal");
    assert_eq!(recover(), Ok(Recovered::Completed));
}
