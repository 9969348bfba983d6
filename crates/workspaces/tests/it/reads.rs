//! Commits that check the reads of the fork.

use crate::publish::host;
use crate::tree::{memory, names, read, write};
use lightfoot_workspaces::{BASE, Commit, CommitOptions, ForkLimits, OnConflict, WorkspaceError, Workspaces};
use std::collections::BTreeMap;
use tempfile::TempDir;
use vfs::{Base, Context, Vfs};

const CHECKED: CommitOptions =
    CommitOptions { check_only: false, conflicts: OnConflict::Refuse, privileged: false, reads: true };

fn fork(spaces: &Workspaces, from: &str, name: &str) {
    spaces.fork(from, name, ForkLimits::default()).expect("a fork");
}

/// Returns the conflicts of a commit.
fn commit(spaces: &Workspaces, name: &str, options: CommitOptions) -> Vec<String> {
    match spaces.commit(name, options).expect("a commit") {
        Commit::Done(_) => Vec::new(),
        Commit::Conflicts(conflicts) => conflicts.iter().map(ToString::to_string).collect(),
    }
}

/// A program in the fork reads, the other side changes a file, and the fork makes a file.
fn seen_by(read_it: fn(&Context, &str), change: &dyn Fn(&Context, &str), is_of_base: bool) -> Vec<String> {
    let dir = TempDir::new().expect("a directory");
    let base = host(dir.path());
    let at = base.context();
    at.mkdir(Base::CWD, b"/d", 0o755).expect("a directory");
    ["/d/f", "/g"].iter().for_each(|path| write(&at, path, 0, b"one").expect("a file"));
    let spaces = Workspaces::over(base.context(), false).expect("a tree");
    spaces.note_reads();
    let context = spaces.tree().context();
    let parent = if is_of_base { BASE } else { "p" };
    fork(&spaces, BASE, "p");
    fork(&spaces, parent, "c");
    read_it(&context, "/w/c");
    write(&context, "/w/c/own", 0, b"own").expect("a file");
    if is_of_base {
        change(&Vfs::new(hostfs::HostFs::new(dir.path(), &hostfs::HostOptions::default()).unwrap()).context(), "");
    } else {
        change(&context, "/w/p");
    }
    let check = CommitOptions { check_only: true, ..CHECKED };
    let conflicts = commit(&spaces, "c", CHECKED);
    assert_eq!(commit(&spaces, "c", check), conflicts);
    // No side wins: the fork depends on what it has read.
    assert_eq!(commit(&spaces, "c", CommitOptions { conflicts: OnConflict::Mine, ..check }), conflicts);
    assert_eq!(commit(&spaces, "c", CommitOptions::default()), [""; 0], "without a check");
    // Its own commits are not changes of the other side.
    for text in [b"own", b"new"] {
        if conflicts.is_empty() && is_of_base {
            write(&context, "/w/c/d/f", 0, text).expect("a write");
            assert_eq!(commit(&spaces, "c", CHECKED), [""; 0]);
        }
    }
    conflicts
}

#[test]
fn a_commit_finds_what_has_changed_since_it_was_read() {
    let f = |at: &Context, dir: &str| drop(read(at, &format!("{dir}/d/f")).expect("contents"));
    let missing = |at: &Context, dir: &str| assert!(read(at, &format!("{dir}/d/new")).is_err());
    let list = |at: &Context, dir: &str| drop(names(at, &format!("{dir}/d")).expect("names"));
    let put = |path: &'static str| {
        move |at: &Context, dir: &str| write(at, &format!("{dir}{path}"), 1, b"two").expect("a write")
    };
    let mode = |at: &Context, dir: &str| {
        let set = vfs::SetAttr { mode: Some(0o600), ..vfs::SetAttr::default() };
        at.set_attr(Base::CWD, format!("{dir}/d/f").as_bytes(), true, &set).expect("a mode");
    };
    let remove = |at: &Context, dir: &str| at.unlink(Base::CWD, format!("{dir}/d/f").as_bytes()).expect("a removal");
    let conflict = |path: &str| vec![format!("C {path}: read here, and changed in the parent since")];
    for is_of_base in [false, true] {
        let seen_by = |read_it, change: &dyn Fn(&Context, &str)| seen_by(read_it, change, is_of_base);
        assert_eq!(seen_by(f, &put("/d/f")), conflict("d/f"));
        assert_eq!(seen_by(f, &mode), conflict("d/f"));
        assert_eq!(seen_by(f, &remove), conflict("d/f"));
        assert_eq!(seen_by(missing, &put("/d/new")), conflict("d/new"));
        let listed = if is_of_base { "d" } else { "d/new" };
        assert_eq!(seen_by(list, &put("/d/new")), conflict(listed));
        for unread in ["/g", "/h"] {
            assert_eq!(seen_by(f, &put(unread)), [""; 0]);
            assert_eq!(seen_by(missing, &put(unread)), [""; 0]);
            assert_eq!(seen_by(list, &put(unread)), [""; 0]);
        }
        assert_eq!(seen_by(missing, &put("/d/f")), [""; 0]);
    }
}

#[test]
fn reads_that_were_not_noted_are_an_error() {
    let dirs = [(); 2].map(|()| TempDir::new().expect("a directory"));
    let open = || Workspaces::durable(host(dirs[0].path()).context(), false, dirs[1].path()).expect("forks");
    let spaces = open();
    fork(&spaces, BASE, "early");
    spaces.note_reads();
    fork(&spaces, BASE, "noted");
    let unknown = |name: &str| Err(WorkspaceError::ReadsUnknown(name.into()));
    assert_eq!(spaces.commit("early", CHECKED), unknown("early"));
    assert_eq!(commit(&spaces, "noted", CHECKED), [""; 0]);
    drop(spaces);
    let spaces = open();
    spaces.note_reads();
    assert_eq!(spaces.commit("noted", CHECKED), unknown("noted"));
    assert_eq!(commit(&spaces, "noted", CommitOptions::default()), [""; 0]);
}

/// Each fork sums two files into a third. The result is as if each fork had run at the moment of its commit.
#[test]
fn commits_that_check_reads_are_serializable() {
    const FILES: usize = 5;
    let value = |context: &Context, dir: &str, file: usize| -> u64 {
        let bytes = read(context, &format!("{dir}/{file}")).unwrap_or_default();
        String::from_utf8(bytes).expect("text").parse().unwrap_or(1)
    };
    let mut seen = [0, 0];
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let dir = TempDir::new().expect("a directory");
        let is_of_base = seed % 2 == 0;
        let base = if is_of_base { host(dir.path()).context() } else { memory() };
        let spaces = Workspaces::over(base, false).expect("a tree");
        spaces.note_reads();
        let context = spaces.tree().context();
        fork(&spaces, BASE, "p");
        let (parent, at) = if is_of_base { (BASE, "/base") } else { ("p", "/w/p") };
        let mut model = BTreeMap::new();
        for round in 0..10 {
            let forks: Vec<String> = (0..3).map(|fork| format!("{round}-{fork}")).collect();
            let mut sums = Vec::new();
            for name in &forks {
                fork(&spaces, parent, name);
                let [one, two, to] = [(); 3].map(|()| random.usize(..FILES));
                let dir = format!("/w/{name}");
                let (read_of, sum) = ((one, two), value(&context, &dir, one) + value(&context, &dir, two) + 1);
                let path = format!("{dir}/{to}");
                let _ = context.unlink(Base::CWD, path.as_bytes());
                write(&context, &path, 0, sum.to_string().as_bytes()).expect("a write");
                sums.push((read_of, to, sum));
            }
            let mut order = [0, 1, 2];
            random.shuffle(&mut order);
            for index in order {
                let conflicts = commit(&spaces, &forks[index], CHECKED);
                seen[usize::from(conflicts.is_empty())] += 1;
                if conflicts.is_empty() {
                    let ((one, two), to, sum) = sums[index];
                    let now = |file| model.get(&file).copied().unwrap_or(1);
                    assert_eq!(sum, now(one) + now(two) + 1, "seed {seed}, round {round}");
                    model.insert(to, sum);
                }
            }
            for file in 0..FILES {
                assert_eq!(value(&context, at, file), model.get(&file).copied().unwrap_or(1), "seed {seed}");
            }
            forks.iter().for_each(|name| spaces.discard(name, true).expect("a fork"));
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn a_fork_that_has_read_too_many_names_has_to_be_made_anew() {
    let spaces = Workspaces::over(memory(), true).expect("a tree");
    spaces.note_reads();
    fork(&spaces, BASE, "a");
    fork(&spaces, BASE, "b");
    let context = spaces.tree().context();
    for number in 0..=1 << 18 {
        assert!(context.attr(Base::CWD, format!("/w/a/{number}").as_bytes(), true).is_err());
    }
    assert_eq!(spaces.commit("a", CHECKED), Err(WorkspaceError::ReadsUnknown("a".into())));
    assert_eq!(commit(&spaces, "b", CHECKED), [""; 0]);
}
