//! Nodes: their lookup counts, names that change meanwhile, and their end.

use crate::session::kernel::{DIR, Kernel, PLAIN, RDONLY, RDWR, SUPER, WRONLY};
use lightfoot_fuse::{Entry, FileLock, Gauge, Listed, LockFamily, LockOwner, NameIn, ROOT_NODE, SessionOptions, Ttls};
use std::time::Duration;
use vfs::{Errno, LockKind, SetAttr};

#[test]
fn a_node_goes_when_all_its_lookups_are_forgotten() {
    let kernel = Kernel::new();
    let made = kernel.file("f");
    for lookups in 2..5 {
        let found = kernel.look("f").unwrap();
        assert_eq!((found.node, found.generation), (made.node, made.generation));
        assert_eq!((kernel.known_nodes(), kernel.gauge(Gauge::Lookups)), (2, lookups));
    }
    kernel.forget(made.node, 3);
    assert!(kernel.getattr(made.node).is_ok());
    kernel.forget(made.node, 1);
    assert_eq!(kernel.getattr(made.node), Err(Errno::ESTALE));
    kernel.check_nothing_left("all forgotten");
    // The same file has the same number again, and the same generation, by which the kernel knows its handles.
    let again = kernel.look("f").unwrap();
    assert_eq!((again.node, again.attr.ino), (made.node, made.attr.ino));
    assert_eq!(again.generation, made.generation);
    kernel.forget(again.node, 1);
    kernel.check_nothing_left("again");
}

#[test]
fn a_forgotten_node_is_found_by_its_number_until_the_file_is_gone() {
    let kernel = Kernel::new();
    let dir = kernel.mkdir(&SUPER, ROOT_NODE, b"dir", DIR).unwrap();
    let file = kernel.mknod(&SUPER, dir.node, b"file", PLAIN, 0).unwrap();
    for entry in [&dir, &file] {
        kernel.forget(entry.node, 1);
        for _ in 0..2 {
            let again = kernel.lookup(&SUPER, entry.node, b".").unwrap();
            let known = (entry.node, entry.generation, entry.attr.ino, entry.attr.mode);
            assert_eq!((again.node, again.generation, again.attr.ino, again.attr.mode), known);
        }
        kernel.forget(entry.node, 2);
    }
    let above = kernel.lookup(&SUPER, dir.node, b"..").unwrap();
    assert_eq!((above.node, above.generation), (ROOT_NODE, 0));
    let dir_again = kernel.lookup(&SUPER, dir.node, b".").unwrap();
    kernel.unlink(&SUPER, dir_again.node, b"file").unwrap();
    for gone in [file.node, 4711, 1 << 62, u64::MAX] {
        assert_eq!(kernel.lookup(&SUPER, gone, b".").map(|entry| entry.node), Err(Errno::ESTALE), "{gone}");
    }
    let root = kernel.lookup(&SUPER, ROOT_NODE, b".").unwrap();
    assert_eq!((root.node, root.generation), (ROOT_NODE, 0));
    kernel.forget(dir.node, 1);
    kernel.check_nothing_left("by numbers");
}

#[test]
fn a_forget_in_excess_removes_the_node_and_is_counted() {
    let kernel = Kernel::new();
    let made = kernel.file("f");
    kernel.forget(made.node, 3);
    kernel.forget(4711, 1);
    assert_eq!((kernel.known_nodes(), kernel.gauge(Gauge::ExcessForgets)), (1, 3));
    // The root is not counted.
    kernel.forget(ROOT_NODE, 100);
    assert!(kernel.getattr(ROOT_NODE).is_ok());
    assert_eq!(kernel.gauge(Gauge::ExcessForgets), 3);
}

#[test]
fn each_operation_that_returns_a_node_counts_one_lookup() {
    type Way = fn(&Kernel, u64) -> Entry;
    let ways: [(&str, Way); 7] = [
        ("lookup", |k, dir| k.lookup(&SUPER, dir, b"old").unwrap()),
        ("mknod", |k, dir| k.mknod(&SUPER, dir, b"new", PLAIN, 0).unwrap()),
        ("mkdir", |k, dir| k.mkdir(&SUPER, dir, b"new", DIR).unwrap()),
        ("symlink", |k, dir| k.symlink(&SUPER, dir, b"new", b"body", &[]).unwrap()),
        ("link", |k, dir| {
            let old = k.lookup(&SUPER, dir, b"old").unwrap();
            let new = k.link(&SUPER, old.node, dir, b"new").unwrap();
            k.forget(old.node, 1);
            assert_eq!((new.node, new.attr.nlink), (old.node, 2));
            new
        }),
        ("create", |k, dir| {
            let (entry, opened) = k.create(&SUPER, dir, b"new", PLAIN, RDWR).unwrap();
            k.release(opened.handle);
            entry
        }),
        ("listing", |k, dir| {
            let handle = k.opendir(&SUPER, dir).unwrap();
            let old = Listed { name: b"old", ino: 0, kind: 0, cookie: 0 };
            let entry = k.listed_entry(&SUPER, handle, &old).unwrap();
            k.releasedir(handle);
            entry
        }),
    ];
    for (what, way) in ways {
        let kernel = Kernel::new();
        let dir = kernel.dir("d");
        kernel.forget(kernel.mknod(&SUPER, dir.node, b"old", PLAIN, 0).unwrap().node, 1);
        let before = kernel.gauge(Gauge::Lookups);
        let entry = way(&kernel, dir.node);
        assert_eq!((kernel.known_nodes(), kernel.gauge(Gauge::Lookups)), (3, before + 1), "{what}");
        assert_eq!(kernel.getattr(entry.node).unwrap().0, entry.attr, "{what}");
        kernel.forget(entry.node, 1);
        kernel.forget(dir.node, 1);
        kernel.check_nothing_left(what);
    }
}

#[test]
fn an_operation_that_fails_counts_no_lookup() {
    type Way = fn(&Kernel) -> Result<Entry, Errno>;
    let ways: [(&str, Way, Errno); 10] = [
        ("lookup", |k| k.look("none"), Errno::ENOENT),
        ("lookup in a file", |k| k.lookup(&SUPER, k.look("f")?.node, b"x"), Errno::ENOTDIR),
        ("mknod", |k| k.mknod(&SUPER, ROOT_NODE, b"f", PLAIN, 0), Errno::EEXIST),
        ("mkdir", |k| k.mkdir(&SUPER, ROOT_NODE, b"f", DIR), Errno::EEXIST),
        ("symlink", |k| k.symlink(&SUPER, ROOT_NODE, b"f", b"x", &[]), Errno::EEXIST),
        ("link of a directory", |k| k.link(&SUPER, ROOT_NODE, ROOT_NODE, b"x"), Errno::EPERM),
        ("link", |k| k.link(&SUPER, k.look("f")?.node, ROOT_NODE, b"f"), Errno::EEXIST),
        ("create", |k| k.create(&SUPER, ROOT_NODE, b"f", PLAIN, 0o200).map(|(entry, _)| entry), Errno::EEXIST),
        (
            "create of what is there",
            |k| k.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDONLY).map(|(entry, _)| entry),
            Errno::ESTALE,
        ),
        (
            "create of a directory",
            |k| k.create(&SUPER, ROOT_NODE, b"d", PLAIN, RDWR).map(|(entry, _)| entry),
            Errno::ESTALE,
        ),
    ];
    for (what, way, errno) in ways {
        let kernel = Kernel::new();
        let file = kernel.file("f");
        kernel.forget(kernel.dir("d").node, 1);
        assert_eq!(way(&kernel).map(|entry| entry.node), Err(errno), "{what}");
        // One lookup is that of the file itself.
        kernel.forget(file.node, kernel.gauge(Gauge::Lookups));
        kernel.check_nothing_left(what);
    }
}

#[test]
fn a_file_lives_as_long_as_it_is_open_or_known() {
    let kernel = Kernel::new();
    let live = kernel.vfs.stats().live_dentries;
    for forgotten_first in [false, true] {
        let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
        assert_eq!(kernel.write(entry.node, opened.handle, 0, b"contents"), Ok(8));
        kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
        assert_eq!(kernel.look("f").map(drop), Err(Errno::ENOENT));
        let (attr, _) = kernel.getattr(entry.node).unwrap();
        assert_eq!((attr.nlink, attr.size, attr.ino), (0, 8, entry.node));
        let set = SetAttr { mode: Some(0o600), size: Some(3), ..SetAttr::default() };
        let (attr, _) = kernel.setattr(&SUPER, entry.node, &set, Some(opened.handle)).unwrap();
        assert_eq!((attr.mode & 0o777, attr.size), (0o600, 3));
        let second = kernel.open(&SUPER, entry.node, RDONLY).unwrap();
        let mut buf = [0; 8];
        assert_eq!((kernel.read(entry.node, second.handle, 0, &mut buf), &buf[..3]), (Ok(3), &b"con"[..]));
        // A new file with its name is another node.
        let other = kernel.file("f");
        assert_ne!(other.node, entry.node);
        if forgotten_first {
            kernel.forget(entry.node, 1);
            assert_eq!(kernel.read(entry.node, second.handle, 0, &mut buf), Ok(3));
        }
        kernel.release(opened.handle);
        kernel.release(second.handle);
        kernel.forget(entry.node, u64::from(!forgotten_first));
        kernel.forget(other.node, 1);
        kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
        kernel.check_nothing_left("closed and forgotten");
        kernel.vfs.barrier();
        assert_eq!(kernel.vfs.stats().live_dentries, live);
    }
}

#[test]
fn a_node_stays_the_same_file_when_names_move() {
    let kernel = Kernel::new();
    let (a, b) = (kernel.dir("a"), kernel.dir("b"));
    let (x, y) = [b"x", b"y"].map(|name| kernel.mknod(&SUPER, a.node, name, PLAIN, 0).unwrap()).into();
    let ino = |dir: &Entry, name: &[u8]| {
        kernel.lookup(&SUPER, dir.node, name).map(|entry| {
            kernel.forget(entry.node, 1);
            entry.node
        })
    };
    let gone = Err(Errno::ENOENT);
    kernel.rename(&SUPER, NameIn::new(a.node, b"x"), NameIn::new(b.node, b"z"), 0).unwrap();
    assert_eq!((ino(&a, b"x"), ino(&b, b"z")), (gone, Ok(x.node)));
    // Nodes of a directory that moves, and of files in it, work on.
    kernel.rename(&SUPER, NameIn::new(ROOT_NODE, b"b"), NameIn::new(a.node, b"b"), 0).unwrap();
    assert_eq!((ino(&b, b"z"), ino(&a, b"b")), (Ok(x.node), Ok(b.node)));
    // `RENAME_NOREPLACE`, `RENAME_EXCHANGE`, and no flag.
    assert_eq!(kernel.rename(&SUPER, NameIn::new(a.node, b"y"), NameIn::new(b.node, b"z"), 1), Err(Errno::EEXIST));
    kernel.rename(&SUPER, NameIn::new(a.node, b"y"), NameIn::new(b.node, b"z"), 2).unwrap();
    assert_eq!((ino(&a, b"y"), ino(&b, b"z")), (Ok(x.node), Ok(y.node)));
    kernel.rename(&SUPER, NameIn::new(a.node, b"y"), NameIn::new(b.node, b"z"), 0).unwrap();
    assert_eq!((ino(&a, b"y"), ino(&b, b"z")), (gone, Ok(x.node)));
    assert_eq!(kernel.getattr(y.node).unwrap().0.nlink, 0);
    assert_eq!(kernel.rename(&SUPER, NameIn::new(a.node, b"b"), NameIn::new(b.node, b"b"), 0), Err(Errno::EINVAL));
    assert_eq!(kernel.rename(&SUPER, NameIn::new(a.node, b"b"), NameIn::new(a.node, b"c"), 8), Err(Errno::EINVAL));
    for entry in [a, b, x, y] {
        kernel.forget(entry.node, 1);
    }
    kernel.check_nothing_left("moved");
}

#[test]
fn every_operation_on_an_unknown_node_fails_with_estale() {
    type Ask = fn(&Kernel, u64) -> Result<(), Errno>;
    const LOCK: FileLock = FileLock { kind: LockKind::Shared, start: 0, end: 9, family: LockFamily::Ranges, pid: 0 };
    let asks: [(&str, Ask); 24] = [
        ("lookup", |k, n| k.lookup(&SUPER, n, b"x").map(drop)),
        ("getattr", |k, n| k.getattr(n).map(drop)),
        ("setattr", |k, n| k.setattr(&SUPER, n, &SetAttr::default(), None).map(drop)),
        ("readlink", |k, n| k.readlink(n).map(drop)),
        ("mknod", |k, n| k.mknod(&SUPER, n, b"x", PLAIN, 0).map(drop)),
        ("mkdir", |k, n| k.mkdir(&SUPER, n, b"x", DIR).map(drop)),
        ("symlink", |k, n| k.symlink(&SUPER, n, b"x", b"y", &[]).map(drop)),
        ("link of it", |k, n| k.link(&SUPER, n, ROOT_NODE, b"x").map(drop)),
        ("link in it", |k, n| k.link(&SUPER, ROOT_NODE, n, b"x").map(drop)),
        ("unlink", |k, n| k.unlink(&SUPER, n, b"x")),
        ("rmdir", |k, n| k.rmdir(&SUPER, n, b"x")),
        ("rename from", |k, n| k.rename(&SUPER, NameIn::new(n, b"x"), NameIn::new(ROOT_NODE, b"x"), 0)),
        ("rename to", |k, n| k.rename(&SUPER, NameIn::new(ROOT_NODE, b"x"), NameIn::new(n, b"x"), 0)),
        ("open", |k, n| k.open(&SUPER, n, RDONLY).map(drop)),
        ("create", |k, n| k.create(&SUPER, n, b"x", PLAIN, WRONLY).map(drop)),
        ("opendir", |k, n| k.opendir(&SUPER, n).map(drop)),
        ("access", |k, n| k.access(&SUPER, n, 4)),
        ("statfs", |k, n| k.statfs(n).map(drop)),
        ("getxattr", |k, n| k.getxattr(&SUPER, n, b"user.a").map(drop)),
        ("setxattr", |k, n| k.setxattr(&SUPER, n, b"user.a", b"v", 0)),
        ("listxattr", |k, n| k.listxattr(&SUPER, n).map(drop)),
        ("removexattr", |k, n| k.removexattr(&SUPER, n, b"user.a")),
        ("getlk", |k, n| k.getlk(&SUPER, LockOwner { node: n, owner: 1, handle: 0 }, LOCK).map(drop)),
        ("setlk", |k, n| k.setlk(&SUPER, LockOwner { node: n, owner: 1, handle: 0 }, LOCK)),
    ];
    let kernel = Kernel::with(SessionOptions { locks: true, ..SessionOptions::default() });
    let entry = kernel.file("f");
    kernel.forget(entry.node, 1);
    for node in [entry.node, 0, u64::MAX, 1 << 62] {
        for (what, ask) in asks {
            assert_eq!(ask(&kernel, node), Err(Errno::ESTALE), "{what} {node:#x}");
        }
    }
    kernel.check_nothing_left("stale");
}

#[test]
fn replies_have_the_times_to_live_of_the_options() {
    let seconds = Duration::from_secs;
    let ttls = Ttls { entry: seconds(1), attr: seconds(2), negative: seconds(3) };
    for (ttls, keeps) in [(ttls, true), (Ttls::all(Duration::ZERO), false), (Ttls::LONG, true)] {
        let kernel = Kernel::with(SessionOptions { ttls, ..SessionOptions::default() });
        let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
        assert_eq!((entry.entry_ttl, entry.attr_ttl), (ttls.entry, ttls.attr));
        assert_eq!(kernel.getattr(entry.node).unwrap().1, ttls.attr);
        assert_eq!(kernel.setattr(&SUPER, entry.node, &SetAttr::default(), None).unwrap().1, ttls.attr);
        assert_eq!((kernel.negative_ttl(ROOT_NODE), opened.keep_cache), (ttls.negative, keeps));
    }
}
