//! Comparisons of forks with their origins, limits, and forks by name.

use crate::tree::{fill, memory, names, read, seen, write};
use lightfoot_workspaces::{CommitOptions, Fork, ForkLimits, ForkOptions, OnConflict, WorkspaceError, Workspaces};
use std::sync::{Arc, Mutex};
use vfs::{Base, Context, Errno, Identity, Observer, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

fn fork_of_files(limits: ForkLimits) -> (Fork, Context) {
    let base = memory();
    fill(&base);
    let fork = Fork::over(base, true).expect("a trunk").fork(limits).expect("a fork");
    let context = Vfs::new(fork.file_system()).context();
    (fork, context)
}

fn changes(fork: &Fork) -> Vec<String> {
    fork.changes().expect("changes").iter().map(ToString::to_string).collect()
}

#[test]
fn changes_have_the_paths_and_kinds_that_a_user_sees() {
    let (fork, context) = fork_of_files(ForkLimits::default());
    assert_eq!(changes(&fork), [""; 0]);
    // Reading changes nothing.
    let _ = seen(&context);
    assert_eq!(changes(&fork), [""; 0]);
    write(&context, "/a/f", 5, b"new").expect("a write");
    write(&context, "/new", 0, b"new").expect("a write");
    context.unlink(Base::CWD, b"/a/g").expect("a removal");
    context.rename(PathAt::cwd(b"/a/b"), PathAt::cwd(b"/moved"), RenameFlags::default()).expect("a rename");
    context.unlink(Base::CWD, b"/a/l").expect("a removal");
    context.symlink(b"other", Base::CWD, b"/a/l").expect("a link");
    let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
    context.set_attr(Base::CWD, b"/c", true, &set).expect("a mode");
    // A file that was made and removed is not a change.
    write(&context, "/brief", 0, b"x").expect("a write");
    context.unlink(Base::CWD, b"/brief").expect("a removal");
    assert_eq!(changes(&fork), ["M a/f", "D a/g", "M a/l", "M c", "R a/b -> moved", "A new"]);
    // A fork of the fork has no change yet, and then its own only.
    let child = fork.fork(ForkLimits::default()).expect("a fork");
    assert_eq!(changes(&child), [""; 0]);
    let below = Vfs::new(child.file_system()).context();
    write(&below, "/moved/f", 0, b"x").expect("a write");
    write(&below, "/new", 0, b"x").expect("a write");
    assert_eq!(changes(&child), ["M moved/f", "M new"]);
    assert_eq!(read(&context, "/new").as_deref(), Ok(&b"new"[..]));
    let since = |one: &Fork, other: &Fork| -> Vec<String> {
        one.changes_since(other).expect("changes").iter().map(ToString::to_string).collect()
    };
    assert_eq!(since(&child, &fork), ["M moved/f", "M new"]);
    assert_eq!(since(&fork, &child), ["M moved/f", "M new"]);
    // Directories that one of two forks has made.
    below.mkdir(Base::CWD, b"/dir", 0o755).expect("a directory");
    write(&below, "/dir/f", 0, b"x").expect("a write");
    assert_eq!(since(&child, &fork), ["A dir", "A dir/f", "M moved/f", "M new"]);
    assert_eq!(since(&fork, &child), ["D dir", "M moved/f", "M new"]);
}

#[test]
fn a_fork_keeps_within_its_limits_and_removal_always_works() {
    let limits = ForkLimits { bytes: 64 << 10, inodes: 5 };
    let (fork, context) = fork_of_files(limits);
    let file = context.open(Base::CWD, b"/big", OpenFlags::WRONLY.union(OpenFlags::CREAT), 0o644).expect("a file");
    let (mut written, data) = (0, vec![1; 10_000]);
    let full = loop {
        match file.write_at(written, &data) {
            Ok((len, _)) => written += len as u64,
            Err(errno) => break errno,
        }
    };
    assert_eq!(full, Errno::ENOSPC);
    assert!(written > 40_000 && fork.usage().0 <= limits.bytes, "{written} {:?}", fork.usage());
    for path in [&b"/a/g"[..], b"/a/f", b"/f"] {
        context.unlink(Base::CWD, path).expect("a removal");
    }
    drop(file);
    context.unlink(Base::CWD, b"/big").expect("a removal");
    assert!(fork.usage().0 < 10_000, "{:?}", fork.usage());
    for number in 0..5 {
        write(&context, &format!("/n{number}"), 0, b"").expect("an inode");
    }
    assert_eq!(write(&context, "/n5", 0, b""), Err(Errno::ENOSPC));
    // The child has what its parent uses.
    let child = fork.fork(limits).expect("a fork");
    assert_eq!(child.usage(), fork.usage());
    assert_eq!(write(&Vfs::new(child.file_system()).context(), "/n5", 0, b""), Err(Errno::ENOSPC));
}

#[test]
fn an_open_file_without_a_name_is_not_in_a_new_fork() {
    let (fork, context) = fork_of_files(ForkLimits::default());
    let file = context.open(Base::CWD, b"/x", OpenFlags::RDWR.union(OpenFlags::CREAT), 0o644).expect("a file");
    file.write_at(0, &[1; 8192]).expect("a write");
    context.unlink(Base::CWD, b"/x").expect("a removal");
    let child = fork.fork(ForkLimits::default()).expect("a fork");
    assert!(child.usage().0 + 8192 <= fork.usage().0, "{:?} {:?}", child.usage(), fork.usage());
    file.write_at(0, b"still").expect("a write");
    drop(file);
    assert!(fork.usage().0 < 8192, "{:?}", fork.usage());
}

#[test]
fn forks_have_names_in_one_tree() {
    let base = memory();
    fill(&base);
    let spaces = Workspaces::over(base, true).expect("a tree");
    let (limits, context) = (ForkLimits::default(), spaces.tree().context());
    let fork = |from: &str, name: &str| spaces.fork(from, name, limits);
    assert_eq!(fork("base", "a"), Ok(()));
    assert_eq!(fork("a", "b"), Ok(()));
    assert_eq!(fork("c", "d"), Err(WorkspaceError::Missing("c".into())));
    assert_eq!(fork("base", "b"), Err(WorkspaceError::Exists("b".into())));
    for name in ["", ".", "..", "base", "a/b", &"x".repeat(256)] {
        assert_eq!(fork("base", name), Err(WorkspaceError::BadName(name.into())));
    }
    assert_eq!(write(&context, "/base/f", 0, b"x"), Err(Errno::EROFS));
    write(&context, "/w/a/f", 0, b"a").expect("a write");
    write(&context, "/w/b/f", 0, b"b").expect("a write");
    for (path, expected) in [("/base/f", &b""[..]), ("/w/a/f", b"a"), ("/w/b/f", b"b")] {
        assert_eq!(read(&context, path).as_deref(), Ok(expected));
    }
    let across = context.rename(PathAt::cwd(b"/w/a/f"), PathAt::cwd(b"/w/b/g"), RenameFlags::default());
    assert_eq!(across, Err(Errno::EXDEV));
    assert_eq!(spaces.changes("a").expect("changes").len(), 1);
    let open = context.open(Base::CWD, b"/w/a/f", OpenFlags::RDONLY, 0).expect("a file");
    assert_eq!(spaces.discard("a", false), Err(WorkspaceError::Busy("a".into())));
    assert_eq!(spaces.discard("a", true), Ok(()));
    let mut buf = [0; 1];
    assert_eq!((open.read_at(0, &mut buf), buf), (Ok(1), *b"a"));
    assert_eq!(spaces.discard("a", false), Err(WorkspaceError::Missing("a".into())));
    assert_eq!(names(&context, "/w"), Ok(vec!["b".to_owned()]));
    let list = spaces.list();
    assert_eq!(list.iter().map(|info| (&*info.name, &*info.parent)).collect::<Vec<_>>(), [("b", "a")]);
    assert_eq!(read(&context, "/w/b/f").as_deref(), Ok(&b"b"[..]));
}

/// Notes the names that changed.
#[derive(Default)]
struct Names(Mutex<Vec<Vec<u8>>>);

impl Observer for Names {
    fn entry(&self, _: &Identity, name: &[u8], _: Option<&Identity>) {
        self.0.lock().expect("no panic").push(name.to_vec());
    }

    fn removed(&self, _: &Identity, _: &[u8], _: &Identity) {}

    fn inode(&self, _: &Identity) {}

    fn all(&self) {}
}

#[test]
fn observers_are_notified_when_a_name_leads_to_a_fork() {
    let spaces = Workspaces::over(memory(), true).expect("a tree");
    let seen = Arc::new(Names::default());
    spaces.tree().observe_changes(&seen);
    spaces.fork("base", "a", ForkLimits::default()).expect("a fork");
    // The directory was made, and then the fork was mounted on it.
    assert_eq!(*seen.0.lock().expect("no panic"), [b"a", b"a"]);
    spaces.discard("a", false).expect("no user");
    assert_eq!(seen.0.lock().expect("no panic").len(), 3);
}

#[test]
fn a_write_that_is_refused_takes_no_space_and_changes_nothing() {
    for is_fixed in [true, false] {
        let base = memory();
        write(&base, "/large", 0, &[1; 20 * 4096]).expect("a file");
        let limits = ForkLimits { bytes: 10 * 4096, inodes: 5 };
        let fork = Fork::over(base, is_fixed).expect("a trunk").fork(limits).expect("a fork");
        let context = Vfs::new(fork.file_system()).context();
        let file = context.open(Base::CWD, b"/large", OpenFlags::WRONLY, 0).expect("a file");
        let written = file.write_at(0, &[2; 20 * 4096]);
        // Without a fixed base the fork would have to copy all of it.
        assert_eq!(written.map(|(len, _)| len > 0), if is_fixed { Ok(true) } else { Err(Errno::ENOSPC) });
        assert!(fork.usage().0 <= limits.bytes, "{:?}", fork.usage());
        if !is_fixed {
            assert_eq!((changes(&fork), fork.usage()), (vec![], (0, 0)));
            assert_eq!(read(&context, "/large").map(|bytes| bytes == [1; 20 * 4096]), Ok(true));
            file.set_len(0).expect("an empty file");
            write(&context, "/large", 0, b"x").expect("a write");
        }
    }
}

#[test]
fn a_mount_in_the_base_is_not_entered() {
    let base = memory();
    base.mkdir(Base::CWD, b"/inner", 0o755).expect("a directory");
    base.mount(ramfs::RamFs::new(), Base::CWD, b"/inner", vfs::MountFlags::default()).expect("a mount");
    let fork = Fork::over(base, true).expect("a trunk");
    let context = Vfs::new(fork.file_system()).context();
    assert_eq!(context.attr(Base::CWD, b"/inner", true).map(drop), Err(Errno::EXDEV));
}

#[test]
fn a_fork_of_the_beginning_shows_what_the_fork_began_with() {
    let spaces = Workspaces::over(memory(), true).expect("a tree");
    let context = spaces.tree().context();
    let limits = ForkLimits::default();
    spaces.fork("base", "a", limits).expect("a fork");
    write(&context, "/w/a/f", 0, b"one").expect("a write");
    spaces.fork("a", "b", limits).expect("a fork");
    write(&context, "/w/b/f", 0, b"two").expect("a write");
    write(&context, "/w/a/f", 0, b"new").expect("a write");
    let options = ForkOptions { of_origin: true, is_read_only: true, limits };
    spaces.fork_with("b", "then", options).expect("a fork");
    assert_eq!(read(&context, "/w/then/f").as_deref(), Ok(&b"one"[..]));
    assert_eq!(write(&context, "/w/then/f", 0, b"x"), Err(Errno::EROFS));
    assert_eq!(spaces.changes_since("b", "then"), spaces.changes("b"));
    assert_eq!(spaces.changes("then"), Ok(Vec::new()));
    let info = spaces.list().into_iter().find(|fork| fork.name == "then").expect("it is there");
    assert_eq!(info.parent, "a");
    let from_base = spaces.fork_with("base", "none", options);
    assert_eq!(from_base, Err(WorkspaceError::Missing("base".into())));
}

#[test]
fn a_commit_changes_no_fork_that_is_read_only() {
    let spaces = Workspaces::over(memory(), true).expect("a tree");
    let context = spaces.tree().context();
    spaces.fork("base", "a", ForkLimits::default()).expect("a fork");
    write(&context, "/w/a/f", 0, b"one").expect("a write");
    let fixed = ForkOptions { is_read_only: true, ..ForkOptions::default() };
    spaces.fork_with("a", "fixed", fixed).expect("a fork");
    spaces.fork("fixed", "below", ForkLimits::default()).expect("a fork");
    write(&context, "/w/below/f", 0, b"two").expect("a write");
    let refused = Err(WorkspaceError::ReadOnly("fixed".into()));
    for check_only in [false, true] {
        assert_eq!(spaces.commit("below", CommitOptions { check_only, ..CommitOptions::default() }), refused);
    }
    // A rollback changes it, and a commit that drops its side would.
    spaces.roll_back("fixed", Some("below")).expect("a rollback");
    write(&context, "/w/a/f", 0, b"three").expect("a write");
    assert_eq!(
        spaces.commit("fixed", CommitOptions { conflicts: OnConflict::Theirs, ..CommitOptions::default() }),
        refused
    );
    assert_eq!(read(&context, "/w/fixed/f").as_deref(), Ok(&b"two"[..]));
    let mine = CommitOptions { conflicts: OnConflict::Mine, ..CommitOptions::default() };
    spaces.commit("fixed", mine).expect("a commit");
    assert_eq!(read(&context, "/w/a/f").as_deref(), Ok(&b"two"[..]));
}

#[test]
fn a_changed_file_that_got_a_further_name_is_two_changes() {
    let (fork, context) = fork_of_files(ForkLimits::default());
    write(&context, "/f", 0, b"new").expect("a write");
    context.link(PathAt::cwd(b"/f"), PathAt::cwd(b"/a/second"), false).expect("a link");
    write(&context, "/a/g", 0, b"new").expect("a write");
    context.rename(PathAt::cwd(b"/a/g"), PathAt::cwd(b"/moved"), RenameFlags::default()).expect("a rename");
    context.link(PathAt::cwd(b"/a/b/f"), PathAt::cwd(b"/third"), false).expect("a link");
    assert_eq!(changes(&fork), ["A a/second", "M f", "M moved", "R a/g -> moved", "A third"]);
    context.unlink(Base::CWD, b"/f").expect("a removal");
    assert_eq!(changes(&fork), ["M a/second", "R f -> a/second", "M moved", "R a/g -> moved", "A third"]);
}

#[test]
fn a_program_that_renames_each_file_that_it_lists_comes_to_the_end() {
    const FILES: usize = 300;
    let (_fork, context) = fork_of_files(ForkLimits::default());
    context.mkdir(Base::CWD, b"/dir", 0o755).expect("a directory");
    (0..FILES).for_each(|file| write(&context, &format!("/dir/{file}"), 0, b"x").expect("a file"));
    for dir in ["/dir", "/a"] {
        let all = names(&context, dir).expect("names").len();
        let open = context
            .open(Base::CWD, dir.as_bytes(), OpenFlags::RDONLY.union(OpenFlags::DIRECTORY), 0)
            .expect("it exists");
        for round in 0..2 {
            let (mut seen, mut after) = (0, 0);
            loop {
                // As a kernel does: some names, and the others later.
                let mut some = Vec::new();
                let mut last = after;
                open.entries_after(after, vfs::Want::NAMES, &mut |entry, cookie| {
                    some.push(entry.name.to_vec());
                    last = cookie;
                    some.len() < 7
                })
                .expect("names");
                after = last;
                if some.is_empty() {
                    break;
                }
                for name in some.iter().filter(|name| !matches!(&***name, b"." | b"..")) {
                    seen += 1;
                    assert!(seen < 2 * all, "{dir}, round {round}");
                    let path = [dir.as_bytes(), b"/", name].concat();
                    for (from, to) in [(&path, &b"/brief".to_vec()), (&b"/brief".to_vec(), &path)] {
                        context.rename(PathAt::cwd(from), PathAt::cwd(to), RenameFlags::default()).expect("a rename");
                    }
                }
            }
            assert!(seen >= all, "{dir}, round {round}: {seen} of {all}");
        }
    }
}
