//! Forks that a directory keeps: after a crash of the process, and after a loss of power.

use crate::directories::Lowest;
use crate::model::Act;
use crate::publish::{fail_at_with, host};
use crate::tree::{Seen, fill, read, seen, write};
use lightfoot_workspaces::{
    BASE, Commit, CommitOptions, Fork, ForkLimits, ForkOptions, OnConflict, UpperError, WorkspaceError, Workspaces,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use testkit::Faults;
use vfs::{Base, Context, Errno, OpenFlags, S_IFDIR, S_IFMT, Vfs};

const PAGE: usize = 4096;

/// A fork as a user sees it: parent, use, files, changes.
type Shown = (String, (u64, u64), BTreeMap<String, Seen>, Vec<String>);

fn open(base: &Path, upper: &Path, is_fixed: bool) -> Result<Workspaces, UpperError> {
    Workspaces::durable(host(base).context(), is_fixed, upper)
}

/// Returns a directory with some files.
fn base() -> TempDir {
    let base = TempDir::new().expect("a directory");
    fill(&host(base.path()).context());
    base
}

fn at(spaces: &Workspaces, fork: &str) -> Context {
    let (context, path) = (spaces.tree().context(), format!("/w/{fork}"));
    context.set_root(path.as_bytes()).expect("a fork");
    context.set_current_dir(b"/").expect("a fork");
    context
}

fn shown(spaces: &Workspaces) -> BTreeMap<String, Shown> {
    spaces.tree().barrier();
    let fork = |info: lightfoot_workspaces::ForkInfo| {
        let files = seen(&at(spaces, &info.name));
        // Which name of a changed file with several is reported depends on the lookups so far.
        let is_one = |path: &str| files.get(path).is_none_or(|file| file.1 == 1 || file.0 & S_IFMT == S_IFDIR);
        let changes = spaces.changes(&info.name).expect("changes").into_iter().map(|change| change.to_string());
        let changes = changes.filter(|change| change.strip_prefix("M ").is_none_or(|path| is_one(&format!("/{path}"))));
        let changes = changes.collect();
        let of = (info.parent, (info.bytes, info.inodes), files, changes);
        (info.name, of)
    };
    spaces.list().into_iter().map(fork).collect()
}

fn check(expected: &BTreeMap<String, Shown>, found: &BTreeMap<String, Shown>, note: &str) {
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{note}: the forks");
    for (name, (parent, used, files, changes)) in expected {
        let of = &found[name];
        for (path, seen) in files {
            let brief = |seen: &Seen| (seen.0, seen.1, seen.2, seen.3.len(), seen.3.first().copied());
            assert!(
                of.2.get(path) == Some(seen),
                "{note}: {name}{path}: {:?} {:?}",
                brief(seen),
                of.2.get(path).map(brief)
            );
        }
        assert_eq!(files.len(), of.2.len(), "{note}: {name}: paths that were not there");
        assert_eq!((parent, changes), (&of.0, &of.3), "{note}: {name}");
        // The cache may still have files without names.
        assert!(of.1.0 <= used.0 && of.1.1 <= used.1, "{note}: {name}: {used:?}, {:?}", of.1);
    }
}

/// Copies the files of a directory.
fn copy(from: &Path) -> TempDir {
    let to = TempDir::new().expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::copy(entry.path(), to.path().join(entry.file_name())).expect("a copy");
    }
    to
}

/// Makes a random change of a fork, or of the forks.
fn change(spaces: &Workspaces, random: &mut fastrand::Rng, step: usize) {
    let names: Vec<String> = spaces.list().into_iter().map(|fork| fork.name).collect();
    let from = random.choice(&names).cloned().unwrap_or_else(|| BASE.into());
    let new = format!("f{step}");
    match random.usize(..40) {
        0 | 1 if names.len() < 6 => spaces.fork(&from, &new, ForkLimits::default()).expect("a fork"),
        2 if names.len() < 6 => spaces.fork(BASE, &new, ForkLimits::default()).expect("a fork"),
        3 if names.len() < 6 && from != BASE => {
            spaces.fork_with(&from, &new, ForkOptions { of_origin: true, ..ForkOptions::default() }).expect("a fork");
        }
        4 if names.len() > 3 => spaces.discard(&from, false).expect("a discard"),
        5 if from != BASE => spaces.roll_back(&from, None).expect("a rollback"),
        // A commit to the base changes what other forks see of it.
        6 if spaces.list().iter().any(|fork| fork.name == from && fork.parent != BASE) => {
            let conflicts =
                random.choice([OnConflict::Refuse, OnConflict::Mine, OnConflict::Theirs]).expect("one of three");
            let _ = spaces.commit(&from, CommitOptions { conflicts, ..CommitOptions::default() });
        }
        _ if from != BASE => {
            let context = at(spaces, &from);
            Act::some(&context, random, step..step + 3);
        }
        _ => {}
    }
}

/// Returns the seeds of a test; `LIGHTFOOT_SEEDS` sets their number.
fn seeds(usual: u64) -> core::ops::Range<u64> {
    0..std::env::var("LIGHTFOOT_SEEDS").map_or(usual, |seeds| seeds.parse().expect("a number"))
}

#[test]
fn a_crash_loses_nothing() {
    // 79: a file of the base without a name in the fork after which an image begins another. 163: a file left a removed directory.
    for seed in seeds(8).chain([79, 163]) {
        let (base, upper) = (base(), TempDir::new().unwrap());
        let mut random = fastrand::Rng::with_seed(seed);
        let mut spaces = open(base.path(), upper.path(), seed % 2 == 0).unwrap();
        for step in 0..120 {
            change(&spaces, &mut random, step);
            if step % 6 == 5 {
                // A process that was killed leaves these files behind.
                let expected = shown(&spaces);
                let crashed = copy(upper.path());
                let again = open(base.path(), crashed.path(), seed % 2 == 0).unwrap();
                check(&expected, &shown(&again), &format!("seed {seed}, step {step}"));
                assert_eq!(again.lost(), Vec::<String>::new());
                if step % 12 == 11 {
                    // The rest runs on the recovered directory, so that images and logs follow each other.
                    drop(again);
                    drop(spaces);
                    spaces = open(base.path(), upper.path(), seed % 2 == 0).unwrap();
                    check(&expected, &shown(&spaces), &format!("seed {seed}, step {step}, again"));
                }
            }
        }
    }
}

#[test]
fn a_crash_after_a_commit_to_the_base_loses_nothing() {
    crash_after_commits(|base, upper| open(base, upper, false).unwrap());
}

#[test]
fn a_crash_after_a_commit_to_a_base_whose_directories_stay_loses_nothing() {
    crash_after_commits(|base, upper| Workspaces::durable(Vfs::new(Lowest::of(base)).context(), false, upper).unwrap());
}

fn crash_after_commits(open: fn(&Path, &Path) -> Workspaces) {
    // 128: a directory that moves and returns, while another cannot move.
    for seed in seeds(25).chain([128]) {
        let (base, upper) = (base(), TempDir::new().unwrap());
        let mut random = fastrand::Rng::with_seed(seed);
        let mut spaces = open(base.path(), upper.path());
        spaces.fork(BASE, "a", ForkLimits::default()).unwrap();
        for round in 0..6 {
            let context = at(&spaces, "a");
            let steps = random.usize(..20);
            Act::some(&context, &mut random, 0..steps);
            drop(context);
            if random.bool() {
                let done = spaces.commit("a", CommitOptions::default());
                assert!(matches!(done, Ok(Commit::Done(_))), "seed {seed}, round {round}: {done:?}");
            }
            let (expected, crashed) = (shown(&spaces), copy(upper.path()));
            let again = open(base.path(), crashed.path());
            check(&expected, &shown(&again), &format!("seed {seed}, round {round}"));
            drop(again);
            if random.bool() {
                drop(spaces);
                spaces = open(base.path(), upper.path());
            }
        }
    }
}

/// The base fails from one call of a commit on, and the files of the upper directory are as they were then.
#[test]
fn a_crash_in_a_commit_to_the_base_leaves_each_fork_as_it_was() {
    let mut ends = BTreeSet::new();
    for seed in 0..3 {
        for number in 0.. {
            let (base, upper) = (base(), TempDir::new().unwrap());
            let fs = hostfs::HostFs::new(base.path(), &hostfs::HostOptions::default()).expect("a directory");
            let (fs, plan) = Faults::of(Box::new(fs));
            let spaces = Workspaces::durable(Vfs::new(fs).context(), false, upper.path()).unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            for name in ["a", "same"] {
                spaces.fork(BASE, name, ForkLimits::default()).unwrap();
            }
            let context = at(&spaces, "a");
            Act::some(&context, &mut random, 0..20);
            let (expected, original) = (seen(&context), seen(&host(base.path()).context()));
            let (crashed, from) = (Arc::new(OnceLock::new()), upper.path().to_path_buf());
            let at_crash = crashed.clone();
            fail_at_with(&plan, number, false, move || {
                at_crash.get_or_init(|| copy(&from));
            });
            let result = spaces.commit("a", CommitOptions::default());
            plan.set(|_| None);
            let Some(crashed) = crashed.get() else {
                assert!(matches!(result, Ok(Commit::Done(_))), "seed {seed}, call {number}: {result:?}");
                break;
            };
            let recovered = Fork::over(host(base.path()).context(), false).unwrap().recover().unwrap();
            let again = open(base.path(), crashed.path(), false).unwrap();
            let (is_lost, base) = (!again.lost().is_empty(), seen(&host(base.path()).context()));
            ends.insert((format!("{recovered:?}"), is_lost));
            let note = format!("seed {seed}, call {number}: {recovered:?}, {:?}", again.lost());
            // A fork that lacks files was committed: the base has all that it had.
            assert!(if is_lost { base == expected } else { seen(&at(&again, "a")) == expected }, "{note}");
            assert!(base == expected || base == original, "{note}");
            assert!(seen(&at(&again, "same")) == base, "{note}");
        }
    }
    assert!(ends.len() >= 4, "{ends:?}");
}

/// Makes a copy of what a disk may have after a loss of power: all that was durable at the mark `then`, and any part of what was
/// written since.
fn powerless(then: &Path, now: &Path, random: &mut fastrand::Rng) -> TempDir {
    let disk = copy(now);
    for entry in fs::read_dir(disk.path()).expect("a directory").flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let text = name.to_string_lossy().into_owned();
        let old = fs::read(then.join(&name)).unwrap_or_default();
        let mut bytes = fs::read(&path).expect("a file");
        if text.starts_with("log-") {
            let len = random.usize(old.len()..=bytes.len());
            bytes.truncate(len);
            // A file may have its length before its bytes.
            let torn = random.usize(old.len()..=len);
            bytes[torn..].fill(0);
        } else if text == "pages" {
            for (number, page) in bytes.chunks_mut(PAGE).enumerate() {
                if random.bool() {
                    let old = old.get(number * PAGE..).unwrap_or_default();
                    page.fill(0);
                    let len = old.len().min(page.len());
                    page[..len].copy_from_slice(&old[..len]);
                }
            }
        } else if text == "format" {
            bytes = String::from_utf8(bytes).expect("text").replace("boot ", "boot of-before-").into_bytes();
        }
        fs::write(&path, bytes).expect("a copy");
    }
    disk
}

#[test]
fn a_loss_of_power_loses_nothing_that_fsync_covered() {
    for seed in 0..12 {
        let (base, upper) = (base(), TempDir::new().unwrap());
        let mut random = fastrand::Rng::with_seed(100 + seed);
        let spaces = open(base.path(), upper.path(), true).unwrap();
        spaces.fork(BASE, "kept", ForkLimits::default()).unwrap();
        for step in 0..60 {
            // A commit to the base would change it under the disk.
            let names: Vec<String> = spaces.list().into_iter().map(|fork| fork.name).collect();
            let name = random.choice(&names).cloned().unwrap();
            let context = at(&spaces, &name);
            match random.usize(..12) {
                0 if names.len() < 5 => spaces.fork(&name, &format!("f{step}"), ForkLimits::default()).unwrap(),
                1 if name != "kept" => spaces.discard(&name, false).unwrap(),
                2 => spaces.roll_back(&name, None).unwrap(),
                _ => {
                    Act::some(&context, &mut random, step..step + 4);
                }
            }
            if step % 10 == 4 {
                let root = at(&spaces, "kept").open(Base::CWD, b"/", OpenFlags::RDONLY, 0).unwrap();
                root.sync(false).unwrap();
                drop(root);
                let (expected, then) = (shown(&spaces), copy(upper.path()));
                for later in 0..6 {
                    change_files(&spaces, &mut random, later);
                }
                let disk = powerless(then.path(), upper.path(), &mut random);
                let again = open(base.path(), disk.path(), true).unwrap();
                check(&expected, &shown(&again), &format!("seed {seed}, step {step}"));
            }
        }
    }
}

/// Changes files of all forks.
fn change_files(spaces: &Workspaces, random: &mut fastrand::Rng, step: usize) {
    for fork in spaces.list() {
        let context = at(spaces, &fork.name);
        Act::some(&context, random, step..step + 1);
        let _ = write(&context, "/same", 0, &vec![step as u8; 3 * PAGE]);
    }
}

#[test]
fn a_directory_has_one_user_one_base_and_no_other_files() {
    let (base, upper) = (base(), TempDir::new().unwrap());
    let dir = upper.path().to_path_buf();
    let spaces = open(base.path(), &dir, true).unwrap();
    for entry in fs::read_dir(&dir).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
    assert_eq!(open(base.path(), &dir, true).err(), Some(UpperError::Used(dir.clone())));
    spaces.fork(BASE, "a", ForkLimits::default()).unwrap();
    drop(spaces);
    let other = TempDir::new().unwrap();
    assert_eq!(open(other.path(), &dir, true).err(), Some(UpperError::OtherBase(dir.clone())));
    let format = fs::read_to_string(dir.join("format")).unwrap();
    fs::write(dir.join("format"), format.replace("upper 3", "upper 4")).unwrap();
    assert_eq!(open(base.path(), &dir, true).err(), Some(UpperError::NotUpper(dir.clone())));
    fs::write(dir.join("format"), format).unwrap();
    assert_eq!(open(base.path(), &dir, true).unwrap().list().len(), 1);
    let image =
        fs::read_dir(&dir).unwrap().flatten().find(|entry| entry.file_name().to_string_lossy().starts_with("image"));
    let image = image.unwrap().path();
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(b"?", file.metadata().unwrap().len() / 2).unwrap();
    assert_eq!(open(base.path(), &dir, true).err(), Some(UpperError::Damaged(image)));
    let full = TempDir::new().unwrap();
    fs::write(full.path().join("thesis"), "text").unwrap();
    let path = full.path().to_path_buf();
    assert_eq!(open(base.path(), &path, true).err(), Some(UpperError::NotUpper(path.clone())));
    assert_eq!(fs::read_dir(path).unwrap().flatten().filter(|entry| entry.file_name() == "thesis").count(), 1);
}

#[test]
fn a_fork_without_its_base_is_read_only() {
    let (base, upper) = (base(), TempDir::new().unwrap());
    let spaces = open(base.path(), upper.path(), false).unwrap();
    for name in ["a", "b"] {
        spaces.fork(BASE, name, ForkLimits::default()).unwrap();
    }
    at(&spaces, "a").rename(vfs::PathAt::cwd(b"/a/g"), vfs::PathAt::cwd(b"/moved"), Default::default()).unwrap();
    write(&at(&spaces, "b"), "/new", 0, b"text").unwrap();
    drop(spaces);
    fs::remove_file(base.path().join("a/g")).unwrap();
    let spaces = open(base.path(), upper.path(), false).unwrap();
    assert_eq!(spaces.lost(), ["a"]);
    assert_eq!(read(&at(&spaces, "a"), "/moved"), Err(Errno::ESTALE));
    assert_eq!(write(&at(&spaces, "a"), "/other", 0, b"text"), Err(Errno::EROFS));
    write(&at(&spaces, "b"), "/other", 0, b"text").unwrap();
    spaces.fork("a", "c", ForkLimits::default()).unwrap();
    drop(spaces);
    let spaces = open(base.path(), upper.path(), false).unwrap();
    assert_eq!(spaces.lost(), ["a", "c"]);
    for name in ["a", "c"] {
        assert_eq!(spaces.commit(name, CommitOptions::default()), Err(WorkspaceError::Lost(name.into())));
        spaces.discard(name, false).unwrap();
    }
    assert!(matches!(spaces.commit("b", CommitOptions::default()), Ok(Commit::Done(_))));
    drop(spaces);
    assert_eq!(open(base.path(), upper.path(), false).unwrap().lost(), Vec::<String>::new());
}

#[test]
fn damage_in_the_middle_of_a_log_is_refused_and_a_cut_end_is_not() {
    let (base, upper) = (base(), TempDir::new().unwrap());
    let spaces = open(base.path(), upper.path(), true).unwrap();
    spaces.fork(BASE, "a", ForkLimits::default()).unwrap();
    for name in ["/one", "/two"] {
        write(&at(&spaces, "a"), name, 0, b"text").unwrap();
    }
    let log_of = |dir: &Path| {
        let logs = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
        logs.filter(|path| path.to_string_lossy().contains("/log-")).max().unwrap()
    };
    let crashed = copy(upper.path());
    let file = fs::OpenOptions::new().write(true).open(log_of(crashed.path())).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - 3).unwrap();
    assert_eq!(open(base.path(), crashed.path(), true).unwrap().list().len(), 1, "a crash cut the last call");

    for is_same_boot in [true, false] {
        // A mark covers all so far.
        at(&spaces, "a").open(Base::CWD, b"/two", OpenFlags::RDONLY, 0).unwrap().sync(false).unwrap();
        let crashed = copy(upper.path());
        let log = log_of(crashed.path());
        let (mut bytes, middle) = (fs::read(&log).unwrap(), usize::try_from(len / 2).unwrap());
        bytes[middle] ^= 1;
        fs::write(&log, &bytes).unwrap();
        if !is_same_boot {
            let format = fs::read_to_string(crashed.path().join("format")).unwrap();
            let before = format.lines().take_while(|line| !line.starts_with("boot")).collect::<Vec<_>>().join("\n");
            fs::write(crashed.path().join("format"), before + "\nboot other\n").unwrap();
        }
        assert_eq!(
            open(base.path(), crashed.path(), true).err(),
            Some(UpperError::Damaged(log.clone())),
            "{is_same_boot}"
        );
        assert_eq!(fs::read(&log).unwrap(), bytes, "nothing is lost");
    }
}

#[test]
fn the_longest_files_are_kept() {
    let (base, upper) = (base(), TempDir::new().unwrap());
    let spaces = open(base.path(), upper.path(), false).unwrap();
    spaces.fork(BASE, "a", ForkLimits::default()).unwrap();
    let longest = i64::MAX as u64;
    let context = at(&spaces, "a");
    for (path, len) in [("/new", longest), ("/f", longest), ("/a/g", longest / 2 + 1)] {
        write(&context, path, 0, b"begin").unwrap();
        let set = vfs::SetAttr { size: Some(len), ..vfs::SetAttr::default() };
        context.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
        write(&context, path, len - 3, b"end").unwrap();
    }
    let shown = |spaces: &Workspaces| {
        let context = at(spaces, "a");
        ["/new", "/f", "/a/g"].map(|path| {
            let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).unwrap();
            let (len, mut parts) = (file.attr().unwrap().size, [[0; 3]; 2]);
            file.read_at(0, &mut parts[0]).unwrap();
            file.read_at(len - 3, &mut parts[1]).unwrap();
            (len, parts)
        })
    };
    let expected = shown(&spaces);
    assert_eq!(expected[0], (longest, [*b"beg", *b"end"]));
    drop((context, spaces));
    // The log, and then an image.
    for _ in 0..2 {
        let spaces = open(base.path(), upper.path(), false).unwrap();
        assert_eq!(shown(&spaces), expected);
    }
}

#[test]
fn a_mount_waits_for_the_end_of_the_last_one() {
    let (base, upper) = (base(), TempDir::new().unwrap());
    let spaces = open(base.path(), upper.path(), true).unwrap();
    std::thread::scope(|scope| {
        let again = scope.spawn(|| open(base.path(), upper.path(), true).map(drop));
        drop(spaces);
        assert_eq!(again.join().unwrap(), Ok(()));
    });
}
