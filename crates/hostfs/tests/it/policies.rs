//! Caching policies: which changes by other programs are seen, and how many requests go to the host.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostFs, HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use testkit::Counting;
use vfs::{Base, Errno, OpenFlags, PathAt, Vfs};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(100_000);

fn options(policy: Revalidate, watch: bool) -> HostOptions {
    HostOptions { policy, watch, ..HostOptions::default() }
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000_000 {
        if holds() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("timeout: {what}");
}

#[test]
fn the_policy_decides_whether_changes_by_others_are_seen() {
    let cases = [
        (Revalidate::Exclusive, false),
        (Revalidate::Ttl(LONG), false),
        (Revalidate::Ttl(Duration::ZERO), true),
        (Revalidate::Ttl(Duration::from_nanos(1)), true),
        (Revalidate::Always, true),
    ];
    for (policy, is_seen) in cases {
        let source = support::temp_dir();
        fs::write(source.path().join("changed"), b"old").unwrap();
        fs::write(source.path().join("removed"), b"old").unwrap();
        let tree = Tree::new(&source, &options(policy, false));
        assert_eq!(tree.attr("/changed").unwrap().size, 3);
        assert_eq!(tree.attr("/removed").unwrap().size, 3);
        assert_eq!(tree.attr("/made").err(), Some(Errno::ENOENT));
        assert_eq!(tree.names("/").unwrap(), ["changed", "removed"]);
        fs::write(source.path().join("changed"), b"longer").unwrap();
        fs::remove_file(source.path().join("removed")).unwrap();
        fs::write(source.path().join("made"), b"new").unwrap();
        let seen =
            (tree.attr("/changed").unwrap().size == 6, tree.attr("/removed").is_err(), tree.attr("/made").is_ok());
        assert_eq!(seen, (is_seen, is_seen, is_seen), "{policy:?}");
        // Listings are cached only if no other program changes anything.
        let listed = if policy == Revalidate::Exclusive { ["changed", "removed"] } else { ["changed", "made"] };
        assert_eq!(tree.names("/").unwrap(), listed, "{policy:?}");
    }
}

#[test]
fn a_kernel_keeps_what_did_not_change_since_the_open_before() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("f"), b"old").unwrap();
    let tree = Tree::new(&source, &options(Revalidate::Ttl(LONG), false));
    let kept = |path: &str| {
        let file = tree.open(path, OpenFlags::RDONLY).unwrap();
        assert_eq!(file.keeps_pages(), file.version().is_some());
        file.version()
    };
    assert_eq!((kept("/f"), kept("/d")), (None, None), "they may change again in this moment");
    until("both are old", || kept("/f").is_some() && kept("/d").is_some());
    let before = (kept("/f"), kept("/d"));
    assert_eq!((kept("/f"), kept("/d")), before);
    let time = |path: &str| fs::metadata(source.path().join(path)).unwrap().modified().unwrap();
    let times = (time("f"), time("d"));
    fs::write(source.path().join("f"), b"new").unwrap();
    fs::write(source.path().join("d/new"), b"").unwrap();
    fs::File::options().write(true).open(source.path().join("f")).unwrap().set_modified(times.0).unwrap();
    fs::File::open(source.path().join("d")).unwrap().set_modified(times.1).unwrap();
    assert_eq!((time("f"), time("d")), times);
    assert_eq!((kept("/f"), kept("/d")), (None, None));
    // Where nothing else changes the directory, everything is kept.
    let tree = Tree::new(&source, &options(Revalidate::Exclusive, false));
    let opened = tree.open("/f", OpenFlags::RDONLY).unwrap();
    assert_eq!((opened.keeps_pages(), opened.version()), (true, None));
}

#[test]
fn the_attributes_of_the_root_follow_the_policy_too() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &options(Revalidate::Always, false));
    let _ = tree.attr("/x");
    fs::create_dir(source.path().join("d")).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o750)).unwrap();
    let _ = tree.attr("/x");
    let root = tree.attr("/").unwrap();
    assert_eq!((root.mode & 0o777, root.nlink), (0o750, 3));
}

#[test]
fn changes_by_others_in_watched_directories_are_seen() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("d/changed"), b"old").unwrap();
    fs::write(source.path().join("d/removed"), b"old").unwrap();
    fs::write(source.path().join("d/moved"), b"old").unwrap();
    let tree = Tree::new(&source, &options(Revalidate::Ttl(LONG), true));
    for name in ["changed", "removed", "moved"] {
        assert_eq!(tree.attr(&format!("/d/{name}")).unwrap().size, 3);
    }
    assert_eq!(tree.attr("/d/made").err(), Some(Errno::ENOENT));
    assert_eq!(tree.attr("/d/moved-to").err(), Some(Errno::ENOENT));
    assert_eq!(tree.names("/d").unwrap(), ["changed", "moved", "removed"]);
    let links = tree.attr("/d").unwrap().nlink;
    assert_eq!(tree.host.stats().watches, 2);
    fs::write(source.path().join("d/changed"), b"longer").unwrap();
    fs::remove_file(source.path().join("d/removed")).unwrap();
    fs::write(source.path().join("d/made"), b"new").unwrap();
    fs::rename(source.path().join("d/moved"), source.path().join("d/moved-to")).unwrap();
    fs::create_dir(source.path().join("d/dir")).unwrap();
    until("a longer file", || tree.attr("/d/changed").is_ok_and(|attr| attr.size == 6));
    until("no file", || tree.attr("/d/removed") == Err(Errno::ENOENT));
    until("a file", || tree.attr("/d/made").is_ok());
    until("a name that went", || tree.attr("/d/moved") == Err(Errno::ENOENT));
    until("a name that came", || tree.attr("/d/moved-to").is_ok());
    until("a listing", || tree.names("/d").unwrap() == ["changed", "dir", "made", "moved-to"]);
    until("links", || tree.attr("/d").unwrap().nlink == links + 1);
    fs::set_permissions(source.path().join("d/made"), fs::Permissions::from_mode(0o600)).unwrap();
    until("a mode", || tree.attr("/d/made").unwrap().mode & 0o777 == 0o600);
    assert!(tree.host.stats().invalidations > 0);
}

#[test]
fn a_warm_tree_that_is_watched_or_exclusive_sends_no_requests() {
    // A directory is watched after the first lookup in it, so one more lookup of the directory itself follows.
    for (policy, watch, again) in [(Revalidate::Exclusive, false, 0), (Revalidate::Ttl(Duration::ZERO), true, 5)] {
        let source = support::temp_dir();
        for number in 0..50 {
            fs::create_dir_all(source.path().join(format!("d{}", number % 5))).unwrap();
            fs::write(source.path().join(format!("d{}/f{number}", number % 5)), b"text").unwrap();
        }
        let (fs, counts) = Counting::of(Box::new(HostFs::new(&source, &options(policy, watch)).unwrap()));
        let tree = Vfs::new(fs);
        let at = tree.context();
        let walk = || {
            for number in 0..50 {
                let path = format!("/d{}/f{number}", number % 5);
                at.attr(Base::CWD, path.as_bytes(), false).unwrap();
                let _ = at.attr(Base::CWD, format!("{path}-none").as_bytes(), false);
            }
        };
        walk();
        let before = (counts.lookups(), counts.revalidations());
        walk();
        assert_eq!((counts.lookups(), counts.revalidations()), before, "{policy:?}");
        assert_eq!(before, (105, again));
    }
}

#[test]
fn watches_end_with_their_directories() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &options(Revalidate::Ttl(LONG), true));
    for number in 0..20 {
        let dir = format!("/d{number}");
        tree.mkdir(&dir).unwrap();
        tree.write(&format!("{dir}/f"), b"").unwrap();
        tree.unlink(&format!("{dir}/f")).unwrap();
    }
    assert_eq!(tree.host.stats().watches, 21);
    for number in 0..20 {
        tree.at.rmdir(Base::CWD, format!("/d{number}").as_bytes()).unwrap();
    }
    tree.vfs.barrier();
    until("the watches' end", || tree.host.stats().watches == 1);
}

#[test]
fn a_lost_event_invalidates_everything() {
    let source = support::temp_dir();
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    fs::write(source.path().join("x"), b"old").unwrap();
    let tree = Tree::new(&source, &options(Revalidate::Ttl(LONG), true));
    assert_eq!(tree.attr("/x").unwrap().size, 3);
    // More events than the queue holds, unless the thread reads fast enough. Events of two files are not merged.
    for _ in 0..most {
        fs::write(source.path().join("a"), b"").unwrap();
        fs::write(source.path().join("b"), b"").unwrap();
    }
    fs::write(source.path().join("x"), b"longer").unwrap();
    until("what changed when events were lost", || tree.attr("/x").unwrap().size == 6);
}

#[test]
fn a_file_with_two_names_is_revalidated_though_its_directory_is_watched() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("x"), b"old").unwrap();
    fs::hard_link(source.path().join("x"), source.path().join("d/y")).unwrap();
    let tree = Tree::new(&source, &options(Revalidate::Ttl(Duration::ZERO), true));
    assert_eq!(tree.attr("/x").unwrap().size, 3);
    // By the other name, whose directory is not watched.
    fs::write(source.path().join("d/y"), b"longer").unwrap();
    assert_eq!(tree.attr("/x").unwrap().size, 6);
}

#[test]
fn attributes_after_a_change_are_those_of_the_host() {
    use std::os::unix::fs::MetadataExt as _;
    let source = support::temp_dir();
    let tree = Tree::new(&source, &options(Revalidate::Exclusive, false));
    tree.mkdir("/d").unwrap();
    let file = tree.open("/d/f", OpenFlags::RDWR.union(OpenFlags::CREAT)).unwrap();
    file.write_at(0, &[1; 10_000]).unwrap();
    tree.at.link(PathAt::cwd(b"/d/f"), PathAt::cwd(b"/d/g"), false).unwrap();
    tree.rename("/d/g", "/h").unwrap();
    tree.mkdir("/d/sub").unwrap();
    for path in ["/", "/d", "/d/f", "/h", "/d/sub"] {
        let (ours, host) = (tree.attr(path).unwrap(), fs::metadata(source.path().join(&path[1..])).unwrap());
        let ns = |seconds: i64, ns: i64| seconds * 1_000_000_000 + ns;
        assert_eq!(
            (ours.ino, ours.mode, ours.nlink, ours.size, ours.blocks),
            (host.ino(), host.mode(), host.nlink() as u32, host.size(), host.blocks()),
            "{path}"
        );
        assert_eq!(ours.mtime, ns(host.mtime(), host.mtime_nsec()), "{path}");
        assert_eq!(ours.ctime, ns(host.ctime(), host.ctime_nsec()), "{path}");
    }
}
