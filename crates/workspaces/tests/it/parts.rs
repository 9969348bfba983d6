//! Forks that show a directory of the tree alone.

use crate::publish::host;
use crate::tree::{fill, memory, read, seen, write};
use lightfoot_workspaces::{BASE, Commit, CommitOptions, ForkLimits, ForkOptions, WorkspaceError, Workspaces};
use std::fs;
use tempfile::TempDir;
use vfs::{Base, Context, Errno, PathAt};

fn fork(spaces: &Workspaces, from: &str, name: &str) -> Result<(), WorkspaceError> {
    spaces.fork(from, name, ForkLimits::default())
}

fn changes(spaces: &Workspaces, name: &str) -> Vec<String> {
    spaces.changes(name).expect("changes").iter().map(ToString::to_string).collect()
}

fn commit(spaces: &Workspaces, name: &str) -> Vec<String> {
    match spaces.commit(name, CommitOptions::default()).expect("a commit") {
        Commit::Done(changes) => changes.iter().map(ToString::to_string).collect(),
        Commit::Conflicts(conflicts) => conflicts.iter().map(ToString::to_string).collect(),
    }
}

/// Changes the directory `a` of the test's tree, which is at a path.
fn change(context: &Context, at: &str) {
    write(context, &format!("{at}/f"), 0, b"new").expect("a write");
    context.unlink(Base::CWD, format!("{at}/g").as_bytes()).expect("a removal");
    let paths = ["b", "moved"].map(|name| format!("{at}/{name}"));
    let [from, to] = [&paths[0], &paths[1]].map(|path| PathAt::cwd(path.as_bytes()));
    context.rename(from, to, vfs::RenameFlags::default()).expect("a rename");
}

const CHANGES: [&str; 3] = ["M f", "D g", "R b -> moved"];

#[test]
fn a_fork_of_a_directory_shows_it_alone_and_commits_into_its_place() {
    let dirs = [(); 2].map(|()| TempDir::new().expect("a directory"));
    fill(&host(dirs[0].path()).context());
    let open = || Workspaces::durable(host(dirs[0].path()).context(), false, dirs[1].path()).expect("forks");
    let mut spaces = open();
    fork(&spaces, "base/a", "part").expect("a fork");
    fork(&spaces, "part", "same").expect("a fork");
    fork(&spaces, "part/b/", "below").expect("a fork");
    for at in 0..2 {
        let context = spaces.tree().context();
        let above = |path: &str| context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino);
        assert_eq!(above("/w/part/../part/f"), above("/w/part/f"));
        for missing in ["/w/part/c", "/w/part/a", "/w/below/f/..", "/w/below/../g"] {
            assert!(above(missing).is_err(), "{missing}");
        }
        assert_eq!(read(&context, "/w/below/d/f").map(|bytes| bytes.len()), Ok(15_000));
        if at == 0 {
            change(&context, "/w/part");
        }
        assert_eq!(changes(&spaces, "part"), CHANGES);
        assert_eq!(changes(&spaces, "same"), [""; 0]);
        assert_eq!(spaces.list().iter().map(|fork| &*fork.dir).collect::<Vec<_>>(), ["a/b", "a", "a"]);
        drop(context);
        drop(spaces);
        spaces = open();
    }
    assert_eq!(commit(&spaces, "part").len(), CHANGES.len());
    assert_eq!(fs::read(dirs[0].path().join("a/f")).expect("a file")[..3], *b"new");
    assert!(dirs[0].path().join("a/moved/d/f").exists() && !dirs[0].path().join("a/g").exists());
    assert!(dirs[0].path().join("c/g").exists());
    let context = spaces.tree().context();
    write(&context, "/w/same/f", 0, b"x").expect("a write");
    write(&context, "/w/below/d/f", 0, b"x").expect("a write");
    assert_eq!(commit(&spaces, "below"), ["M d/f"]);
    write(&context, "/w/part/moved/d/f", 0, b"y").expect("a write");
    write(&context, "/w/below/d/f", 0, b"z").expect("a write");
    assert_eq!(commit(&spaces, "below"), ["C d/f: the contents were changed here and in the parent"]);
}

#[test]
fn other_paths_and_other_directories_are_refused() {
    let base = memory();
    fill(&base);
    base.symlink(b"a", Base::CWD, b"/link").expect("a link");
    let spaces = Workspaces::over(base, true).expect("a tree");
    for dir in ["link", "f", "missing", "a/..", "../w", ".", "a/missing", "f/x"] {
        let refused = fork(&spaces, &format!("base/{dir}"), "x");
        assert_eq!(refused, Err(WorkspaceError::NoDirectory(dir.into())), "{dir}");
    }
    fork(&spaces, BASE, "all").expect("a fork");
    fork(&spaces, "all/a", "part").expect("a fork");
    fork(&spaces, "all/a", "twin").expect("a fork");
    assert_eq!(spaces.changes_since("part", "all"), Err(WorkspaceError::OtherDirectory("all".into())));
    assert_eq!(spaces.roll_back("part", Some("all")), Err(WorkspaceError::OtherDirectory("all".into())));
    let context = spaces.tree().context();
    change(&context, "/w/part");
    let since: Vec<_> =
        spaces.changes_since("part", "twin").expect("changes").iter().map(ToString::to_string).collect();
    assert_eq!(since, changes(&spaces, "part"));
    // The beginning of a part is a part.
    let origin = ForkOptions { of_origin: true, ..ForkOptions::default() };
    spaces.fork_with("part", "then", origin).expect("a fork");
    assert_eq!(context.attr(Base::CWD, b"/w/then/c", true).map(drop), Err(Errno::ENOENT));
    assert_eq!(spaces.fork_with("part/b", "x", origin), Err(WorkspaceError::Missing("part/b".into())));
    spaces.roll_back("part", Some("twin")).expect("a rollback");
    assert_eq!(changes(&spaces, "part"), [""; 0]);
    // A merge into the whole tree.
    change(&context, "/w/twin");
    assert_eq!(commit(&spaces, "twin").len(), CHANGES.len());
    let at = |path: &str| {
        let context = spaces.tree().context();
        context.set_root(path.as_bytes()).and_then(|()| context.set_current_dir(b"/")).expect("a fork");
        seen(&context)
    };
    assert!(at("/w/all/a") == at("/w/twin"));
    spaces.discard("all", false).expect("no open files");
    assert!(context.attr(Base::CWD, b"/w/part/f", true).is_ok());
}
