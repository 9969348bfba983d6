//! A file system that keeps its own names: what the cache asks it, how often, and what it remembers.

use lightfoot_vfs::{
    Attr, Base, Budget, Context, Credentials, Errno, Fallback, FileSystem, Inode, MAY_READ, NewInode, NextNames,
    OpenFlags, PathAt, RenameFlags, Request, S_IFDIR, S_IFREG, SetAttr, Vfs,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use testkit::{Call, Store};

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

/// Lookups of the last name of `path` in its directory, which must exist.
fn asked(store: &Store, path: &str) -> u32 {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    store.lookups_of(store.node(parent), name)
}

/// Sets owner, group and permission bits behind the back of all trees.
fn own(store: &Store, path: &str, owner: u32, mode: u32) {
    store.change(store.node(path), |attr| (attr.uid, attr.gid, attr.mode) = (owner, owner, attr.kind() | mode));
}

fn misses(vfs: &Vfs) -> u64 {
    vfs.fallbacks(Fallback::Miss)
}

/// Ways out of rcu-walk but for misses.
fn other_fallbacks(vfs: &Vfs) -> u64 {
    Fallback::ALL.iter().filter(|reason| **reason != Fallback::Miss).map(|reason| vfs.fallbacks(*reason)).sum()
}

#[test]
fn each_name_is_asked_for_once_and_is_then_found_without_leaving_rcu_walk() {
    let long = "a-name-of-more-than-thirty-two-bytes";
    let store = Store::with_paths(&["a/", "a/b/", "a/b/file", "a/b/sixteen-bytes-16", &format!("a/{long}")]);
    let vfs = store.tree();
    let context = vfs.context();
    let cases = [("/a/b/file", 3), ("a/b/../b/./sixteen-bytes-16", 1), (&format!("/a//{long}"), 1), ("/a/b/", 0)];
    let mut asked = 0;
    for (path, new) in cases {
        for repeat in 0..3 {
            let ino = look(&context, path).unwrap();
            assert_eq!(look(&context, path), Ok(ino));
            asked += if repeat == 0 { new } else { 0 };
            assert_eq!((store.lookups(), misses(&vfs)), (asked, asked.into()), "{path} {repeat}");
        }
    }
    assert_eq!(other_fallbacks(&vfs), 0);
}

#[test]
fn after_a_miss_the_walk_goes_on_from_the_last_good_component() {
    let store = Store::with_paths(&["a/", "a/b/", "a/b/c/", "a/b/c/d/", "a/b/c/d/file"]);
    let vfs = store.tree();
    let context = vfs.context();
    look(&context, "/a/b").unwrap();
    assert_eq!((store.lookups(), misses(&vfs)), (2, 2));
    look(&context, "/a/b/c/d/file").unwrap();
    // One miss for each of c, d and file; a and b were not asked for again, nor did the walk begin again.
    assert_eq!((store.lookups(), misses(&vfs), other_fallbacks(&vfs)), (5, 5, 0));
    for path in ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/file"] {
        assert_eq!(asked(&store, path), 1, "{path}");
    }
}

#[test]
fn a_name_that_is_not_there_is_asked_for_once() {
    let store = Store::with_paths(&["a/"]);
    let vfs = store.tree();
    let context = vfs.context();
    for path in ["/none", "/a/none", "/a/no-such-name-of-more-than-thirty-two-bytes", "/a/none/below", "/a/none/"] {
        for _ in 0..3 {
            assert_eq!(look(&context, path), Err(Errno::ENOENT), "{path}");
        }
    }
    let counts = ["none", "a/none", "a/no-such-name-of-more-than-thirty-two-bytes"].map(|path| asked(&store, path));
    assert_eq!((counts, store.lookups()), ([1; 3], 4));
    assert_eq!((misses(&vfs), other_fallbacks(&vfs)), (4, 0));
    assert_eq!(vfs.stats().live_dentries, 1 + 1 + 3);
}

/// Makes something at a path.
type Make = fn(&Context, &[u8]) -> Result<(), Errno>;

/// Every way to make a name.
fn ways_to_make() -> Vec<(&'static str, Make)> {
    vec![
        ("open", |context, path| {
            context.open(Base::CWD, path, OpenFlags::CREAT.union(OpenFlags::RDWR), 0o644).map(drop)
        }),
        ("mkdir", |context, path| context.mkdir(Base::CWD, path, 0o755)),
        ("mknod", |context, path| context.mknod(Base::CWD, path, 0o644, 0)),
        ("symlink", |context, path| context.symlink(b"other", Base::CWD, path)),
        ("link", |context, path| context.link(PathAt::cwd(b"/other"), PathAt::cwd(path), false)),
        ("rename", |context, path| context.rename(PathAt::cwd(b"/other"), PathAt::cwd(path), RenameFlags::default())),
        ("rename of a directory", |context, path| {
            context.rename(PathAt::cwd(b"/dir"), PathAt::cwd(path), RenameFlags::default())
        }),
    ]
}

#[test]
fn a_negative_entry_dies_when_the_name_is_made() {
    for target in ["d/new", "d/a-new-name-of-more-than-thirty-two-bytes"] {
        for (way, make) in ways_to_make() {
            let store = Store::with_paths(&["other", "d/", "dir/"]);
            let vfs = store.tree();
            let context = vfs.context();
            let path = target.as_bytes();
            let attr = || context.attr(Base::CWD, path, false);
            assert_eq!(attr(), Err(Errno::ENOENT), "{way}");
            make(&context, path).unwrap_or_else(|errno| panic!("{way}: {errno}"));
            let made = attr().unwrap_or_else(|errno| panic!("{way}: {errno}"));
            assert_eq!(asked(&store, target), 1, "{way}");
            // The root, d, what was made in place of the negative entry, and what a link was made from.
            assert_eq!(vfs.stats().live_dentries, 3 + usize::from(way == "link"), "{way}");
            // Gone again, it is asked for once more, since only the file system knows.
            if made.is_dir() {
                context.rmdir(Base::CWD, path).unwrap()
            } else {
                context.unlink(Base::CWD, path).unwrap()
            }
            for _ in 0..3 {
                assert_eq!(attr(), Err(Errno::ENOENT), "{way}");
            }
            assert_eq!(asked(&store, target), 2, "{way}");
        }
    }
}

#[test]
fn a_directory_with_nothing_but_negative_entries_can_be_removed_and_replaced() {
    let store = Store::with_paths(&["d/", "e/", "spare/"]);
    let vfs = store.tree();
    let context = vfs.context();
    for dir in ["/d", "/e"] {
        (0..100).for_each(|number| assert_eq!(look(&context, &format!("{dir}/{number}")), Err(Errno::ENOENT)));
    }
    assert_eq!(vfs.stats().live_dentries, 1 + 2 + 200);
    context.rmdir(Base::CWD, b"/d").unwrap();
    context.rename(PathAt::cwd(b"/spare"), PathAt::cwd(b"/e"), RenameFlags::default()).unwrap();
    assert_eq!(vfs.stats().live_dentries, 1 + 1);
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    context.mknod(Base::CWD, b"/d/5", 0o644, 0).unwrap();
    context.mknod(Base::CWD, b"/e/5", 0o644, 0).unwrap();
    assert!(look(&context, "/d/5").is_ok() && look(&context, "/e/5").is_ok());
    assert_eq!(look(&context, "/d/6"), Err(Errno::ENOENT));
}

#[test]
fn a_directory_whose_names_are_not_cached_is_not_removed() {
    let store = Store::with_paths(&["d/", "d/file", "e/"]);
    let vfs = store.tree();
    let context = vfs.context();
    assert_eq!(context.rmdir(Base::CWD, b"/d"), Err(Errno::ENOTEMPTY));
    assert_eq!(context.rename(PathAt::cwd(b"/e"), PathAt::cwd(b"/d"), RenameFlags::default()), Err(Errno::ENOTEMPTY));
    assert_eq!((look(&context, "/d/file").is_ok(), look(&context, "/e").is_ok()), (true, true));
    assert_eq!(context.attr(Base::CWD, b"/", true).unwrap().nlink, 2 + 2);
}

#[test]
fn negative_entries_are_bounded() {
    const MAX_SCANNED: usize = 4096;
    let store = Store::with_paths(&["d/"]);
    let vfs = Vfs::with_budget(store.clone(), Budget { negatives: 0, ..Budget::default() });
    let context = vfs.context();
    for number in 0..3 * MAX_SCANNED {
        assert_eq!(look(&context, &format!("/d/{number}")), Err(Errno::ENOENT));
        assert!(vfs.stats().negative_bytes <= MAX_SCANNED as u64 * 256);
    }
    // The first have made room for the last.
    let last = 3 * MAX_SCANNED - 1;
    assert_eq!(look(&context, &format!("/d/{last}")), Err(Errno::ENOENT));
    assert_eq!(look(&context, "/d/5"), Err(Errno::ENOENT));
    assert_eq!((asked(&store, &format!("d/{last}")), asked(&store, "d/5")), (1, 2));
    context.rmdir(Base::CWD, b"/d").unwrap();
    assert_eq!((vfs.stats().live_dentries, vfs.stats().negative_bytes), (1, 0));
    assert_eq!((look(&context, "/none"), look(&context, "/none")), (Err(Errno::ENOENT), Err(Errno::ENOENT)));
    assert_eq!((vfs.stats().live_dentries, asked(&store, "none")), (2, 1));
}

#[test]
fn an_error_of_a_lookup_is_the_answer_and_is_not_remembered() {
    let store = Store::with_paths(&["d/", "d/bad/", "d/bad/file"]);
    let vfs = store.tree();
    let context = vfs.context();
    for errno in [Errno::EIO, Errno::EACCES, Errno::ENOTDIR] {
        store.before(move |call| match call {
            Call::Lookup { name: b"bad", .. } => Err(errno),
            _ => Ok(()),
        });
        for path in ["/d/bad", "/d/bad/file", "/d/bad/", "/d/../d/bad/x/y"] {
            assert_eq!(look(&context, path), Err(errno), "{path}");
        }
        assert_eq!(context.mkdir(Base::CWD, b"/d/bad", 0o755), Err(errno));
        assert_eq!(context.unlink(Base::CWD, b"/d/bad"), Err(errno));
        assert_eq!(context.rename(PathAt::cwd(b"/d"), PathAt::cwd(b"/d/bad/x"), RenameFlags::default()), Err(errno));
    }
    assert_eq!(asked(&store, "d/bad"), 3 * 7);
    store.before(|_| Ok(()));
    assert!(look(&context, "/d/bad/file").is_ok());
    assert_eq!(asked(&store, "d/bad"), 3 * 7 + 1);
}

#[test]
fn symbolic_links_are_followed_by_the_bodies_that_lookup_gives() {
    let store = Store::with_paths(&[
        "a/",
        "a/file",
        "a/down -> file",
        "up -> a/down",
        "root -> /a",
        "loop -> loop",
        "to -> none",
    ]);
    let vfs = store.tree();
    let context = vfs.context();
    let ino = look(&context, "/a/file").unwrap();
    for path in ["/up", "/a/down", "/root/file", "/root/../up", "/root/down"] {
        assert_eq!(look(&context, path), Ok(ino), "{path}");
    }
    assert_eq!(context.read_link(Base::CWD, b"/up"), Ok(b"a/down".to_vec()));
    assert_eq!((look(&context, "/loop"), look(&context, "/to")), (Err(Errno::ELOOP), Err(Errno::ENOENT)));
    // A dangling link is made to lead somewhere, and then does.
    context.mknod(Base::CWD, b"/none", 0o644, 0).unwrap();
    assert!(look(&context, "/to").is_ok());
    let (asked, left) = (store.lookups(), misses(&vfs));
    for path in ["/up", "/root/../up", "/root/down", "/to", "/a/down"] {
        look(&context, path).unwrap();
    }
    assert_eq!((store.lookups(), misses(&vfs), other_fallbacks(&vfs)), (asked, left, 0));
}

#[test]
fn a_walk_that_asks_the_file_system_keeps_the_credentials_that_it_began_with() {
    let store = Store::with_paths(&["private/", "private/file"]);
    // User 1 may not read the file, and user 2 may not search its directory.
    own(&store, "private", 1, 0o700);
    own(&store, "private/file", 2, 0o600);
    let users = [1, 2].map(|uid| Credentials::user(uid, uid, &[]));
    let refused = |context: &Context| {
        assert_eq!(context.access(Base::CWD, b"/private/file", true, MAY_READ), Err(Errno::EACCES));
        assert_eq!(context.open(Base::CWD, b"/private/file", OpenFlags::RDONLY, 0).err(), Some(Errno::EACCES));
    };
    for user in &users {
        let context = store.tree().context();
        context.set_credentials(user.clone());
        refused(&context);
    }
    let context = Arc::new(store.tree().context());
    context.set_credentials(users[0].clone());
    let (other, second) = (context.clone(), users[1].clone());
    store.before(move |call| {
        if let Call::Lookup { name: b"file", .. } = call {
            std::thread::scope(|scope| scope.spawn(|| other.set_credentials(second.clone())).join().unwrap());
        }
        Ok(())
    });
    refused(&context);
    assert_eq!(context.credentials(), users[1]);
}

#[test]
fn threads_that_miss_one_name_ask_for_it_once() {
    let paths: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
    let present: Vec<&str> = paths.iter().step_by(2).map(String::as_str).collect();
    let store = Store::with_paths(&present);
    let vfs = store.tree();
    let start = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let context = vfs.context();
                start.wait();
                for (number, path) in paths.iter().enumerate() {
                    assert_eq!(look(&context, path).is_ok(), number % 2 == 0, "{path}");
                }
            });
        }
    });
    paths.iter().for_each(|path| assert_eq!(asked(&store, path), 1, "{path}"));
}

#[test]
fn a_name_that_moves_between_remembered_misses_is_at_one_of_its_places() {
    const ROUNDS: u64 = 6000;
    let store = Store::with_paths(&["d/", "e/", "d/here"]);
    let vfs = store.tree();
    let context = vfs.context();
    let (started, finished) = (&AtomicU64::new(0), &AtomicU64::new(0));
    let (context, paths) = (&context, ["d/here", "e/there"]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                while finished.load(SeqCst) < ROUNDS {
                    let before = finished.load(SeqCst);
                    let seen = [0, 1, 0].map(|which| look(context, paths[which]).is_ok());
                    // With one rename at most on the way, it cannot have evaded all three looks.
                    let overlapping = started.load(SeqCst) - before;
                    assert!(overlapping > 1 || seen.contains(&true), "absent from both places");
                }
            });
        }
        scope.spawn(move || {
            // All rounds whatever comes, since the others wait for the last; then the verdict.
            let results: Vec<_> = (0..ROUNDS)
                .map(|round| {
                    let (old, new) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
                    started.fetch_add(1, SeqCst);
                    let renamed = context.rename(
                        PathAt::cwd(paths[old].as_bytes()),
                        PathAt::cwd(paths[new].as_bytes()),
                        RenameFlags::default(),
                    );
                    finished.fetch_add(1, SeqCst);
                    renamed
                })
                .collect();
            assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
        });
    });
}

#[test]
fn a_cold_cache_answers_as_a_warm_one_whatever_the_path() {
    let parts =
        ["a", "b", "c", "link", "up", "file", "none", ".", "..", "", "\0", &"x".repeat(256), &"y".repeat(255), "loop"];
    let store = Store::with_paths(&[
        "a/",
        "a/b/",
        "a/b/c/",
        "a/b/c/file",
        "a/file",
        "link -> a/b",
        "a/up -> ../link/..",
        "loop -> loop",
    ]);
    let warm = store.tree();
    let warm_context = warm.context();
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..20_000 {
        let mut path =
            (0..=random.usize(..6)).map(|_| parts[random.usize(..parts.len())]).collect::<Vec<_>>().join("/");
        if random.u8(..3) == 0 {
            path.insert(0, '/');
        }
        let answers = |context: &Context| {
            let path = path.as_bytes();
            let all = (
                context.attr(Base::CWD, path, true),
                context.attr(Base::CWD, path, false),
                context.read_link(Base::CWD, path),
            );
            (all, context.access(Base::CWD, path, true, 4), context.canonical(Base::CWD, path))
        };
        let expected = answers(&warm_context);
        let cold = store.tree();
        assert_eq!(answers(&cold.context()), expected, "{path:?}, round {round}");
        if path.contains('\0') {
            assert_eq!(expected.0.0, Err(Errno::EINVAL), "{path:?}");
        }
    }
}

/// A file system that answers `lookup` with a file, or `ENOENT` if it has none, and nothing else of its own.
struct Bare {
    has_file: bool,
}

impl FileSystem for Bare {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..Default::default() }
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        if !self.has_file || name != b"file" {
            return Err(Errno::ENOENT);
        }
        let attr = Attr { ino: 2, mode: S_IFREG | 0o644, nlink: 1, size: 100, ..Attr::default() };
        Ok(NewInode { node: 2, attr, ..Default::default() })
    }
}

#[test]
fn what_a_file_system_does_not_do_is_refused_and_changes_nothing() {
    for (way, make) in ways_to_make() {
        let context = Vfs::new(Bare { has_file: false }).context();
        let expected = if matches!(way, "link") || way.starts_with("rename") { Errno::ENOENT } else { Errno::EPERM };
        assert_eq!(make(&context, b"/new"), Err(expected), "{way}");
        assert_eq!((look(&context, "/new"), look(&context, "/")), (Err(Errno::ENOENT), Ok(1)), "{way}");
    }
    let vfs = Vfs::new(Bare { has_file: true });
    let context = vfs.context();
    assert_eq!(context.link(PathAt::cwd(b"/file"), PathAt::cwd(b"/new"), false), Err(Errno::EPERM));
    assert_eq!(context.rename(PathAt::cwd(b"/file"), PathAt::cwd(b"/new"), RenameFlags::default()), Err(Errno::EPERM));
    assert_eq!(context.unlink(Base::CWD, b"/file"), Err(Errno::EPERM));
    let file = context.open(Base::CWD, b"/file", OpenFlags::RDWR, 0).unwrap();
    assert_eq!(file.read_at(0, &mut [0; 4]), Err(Errno::EINVAL));
    assert_eq!(file.write_at(0, b"data"), Err(Errno::EINVAL));
    assert_eq!(file.set_len(3), Err(Errno::EINVAL));
    assert_eq!(
        context.set_attr(Base::CWD, b"/file", true, &SetAttr { mode: Some(0o600), ..SetAttr::default() }),
        Ok(())
    );
    let attr = context.attr(Base::CWD, b"/file", true).unwrap();
    assert_eq!((attr.ino, attr.nlink, attr.size, attr.mode), (2, 1, 100, S_IFREG | 0o600));
    assert_eq!(look(&context, "/new"), Err(Errno::ENOENT));
}
