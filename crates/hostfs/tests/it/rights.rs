//! With whose rights the host is changed. Needs a root process; other users skip it.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Ownership, Revalidate};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use vfs::{Base, Capabilities, Credentials, Errno, OpenFlags, PathAt, SetAttr, SetTime, SetXattr};

const USER: u32 = 1001;
const OTHER: u32 = 1002;
const GROUP: u32 = 2001;
const TEAM: u32 = 3001;

/// A cache that no test outlives.
const LONG: Revalidate = Revalidate::Ttl(Duration::from_secs(100_000));

fn skipped(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED {test}: needs root");
    }
    !is_root
}

fn user(uid: u32, groups: &[u32]) -> Credentials {
    Credentials::user(uid, GROUP, groups)
}

/// As the FUSE session gives to a caller whom the kernel has checked.
fn checked(uid: u32, groups: &[u32]) -> Credentials {
    let mut cred = user(uid, groups);
    cred.capabilities = Capabilities::all().without(Capabilities::FSETID.union(Capabilities::SYS_RESOURCE));
    cred
}

fn tree(source: &TempDir, policy: Revalidate) -> Tree {
    Tree::new(source, &HostOptions { policy, ..HostOptions::default() })
}

/// A directory that only the group [`TEAM`] may use.
fn team_dir(source: &TempDir) {
    let dir = source.path().join("d");
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(0), Some(TEAM)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
}

fn put(path: &Path, owner: u32, mode: u32) {
    fs::write(path, b"text").unwrap();
    chown(path, Some(owner), Some(GROUP)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Makes one file of each type.
fn make_all(tree: &Tree, dir: &str) -> [Result<(), Errno>; 5] {
    let cwd = Base::CWD;
    let path = |name: &str| format!("{dir}/{name}").into_bytes();
    [
        tree.write(&format!("{dir}/file"), b"text"),
        tree.mkdir(&format!("{dir}/dir")),
        tree.at.symlink(b"body", cwd, &path("link")),
        tree.at.mknod(cwd, &path("fifo"), vfs::S_IFIFO | 0o640, 0),
        tree.open(dir, OpenFlags::TMPFILE.union(OpenFlags::RDWR)).map(drop),
    ]
}

#[test]
fn what_a_member_of_a_supplementary_group_makes_is_never_given_to_it_afterwards() {
    if skipped("what_a_member_of_a_supplementary_group_makes_is_never_given_to_it_afterwards") {
        return;
    }
    let source = support::temp_dir();
    team_dir(&source);
    let tree = tree(&source, Revalidate::Always);
    tree.at.set_credentials(user(USER, &[TEAM]));
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, source.path().join("d"), WatchFlags::CREATE | WatchFlags::ATTRIB).unwrap();
    assert_eq!(make_all(&tree, "/d"), [Ok(()); 5]);
    let (mut buf, mut made, mut changed) = ([MaybeUninit::uninit(); 4096], 0, 0);
    let mut events = inotify::Reader::new(&watch, &mut buf);
    while let Ok(event) = events.next() {
        made += usize::from(event.events().contains(ReadFlags::CREATE));
        changed += usize::from(event.events().contains(ReadFlags::ATTRIB));
    }
    assert_eq!(
        (made, changed),
        (4, 0),
        "a change of attributes after the creation is one of a name that others exchange"
    );
    for name in ["file", "dir", "link", "fifo"] {
        let made = fs::symlink_metadata(source.path().join("d").join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (USER, GROUP), "{name}");
    }
}

#[test]
fn nobody_gets_a_file_by_exchanging_names_while_directories_are_made() {
    if skipped("nobody_gets_a_file_by_exchanging_names_while_directories_are_made") {
        return;
    }
    let source = support::temp_dir();
    team_dir(&source);
    let dir = source.path().join("d");
    put(&dir.join("secret"), 0, 0o600);
    let tree = tree(&source, Revalidate::Always);
    tree.at.set_credentials(user(USER, &[TEAM]));
    let is_over = AtomicBool::new(false);
    let at = fs::File::open(&dir).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                // One call: the secret is where the directory was made.
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(&at, "new", &at, "secret", flags);
            }
        });
        for _ in 0..3000 {
            let _ = tree.mkdir("/d/new");
            for name in ["new", "secret"] {
                let _ = fs::remove_dir(dir.join(name));
            }
            let _ = rustix::fs::renameat_with(&at, "new", &at, "secret", rustix::fs::RenameFlags::NOREPLACE);
        }
        is_over.store(true, Relaxed);
    });
    let found = ["new", "secret"].map(|name| fs::metadata(dir.join(name)));
    let secret = found.into_iter().flatten().find(fs::Metadata::is_file).unwrap();
    assert_eq!((secret.uid(), secret.mode() & 0o7777), (0, 0o600));
}

#[test]
fn a_switch_that_the_host_refuses_fails_the_change() {
    if skipped("a_switch_that_the_host_refuses_fails_the_change") {
        return;
    }
    for lost in [CapabilitySet::SETGID, CapabilitySet::SETUID] {
        let source = support::temp_dir();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
        put(&source.path().join("own"), USER, 0o644);
        let tree = tree(&source, Revalidate::Always);
        tree.at.set_credentials(user(USER, &[TEAM]));
        // The thread ends with the capability that it gives up.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let sets = rustix::thread::capabilities(None).unwrap();
                let (effective, permitted) = (sets.effective - lost, sets.permitted - lost);
                rustix::thread::set_capabilities(None, CapabilitySets { effective, permitted, ..sets }).unwrap();
                assert_eq!(make_all(&tree, "/"), [Err(Errno::EPERM); 5], "{lost:?}");
                let chmod = SetAttr { mode: Some(0o600), ..SetAttr::default() };
                assert_eq!(tree.at.set_attr(Base::CWD, b"/own", false, &chmod), Err(Errno::EPERM), "{lost:?}");
                assert_eq!(tree.unlink("/own"), Err(Errno::EPERM), "{lost:?}");
            });
            thread.join().unwrap();
        });
        let left: Vec<_> = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["own"], "{lost:?}");
        // The thread had its own rights back after each try, so others continue.
        assert_eq!(tree.unlink("/own"), Ok(()));
    }
}

#[test]
fn a_former_owner_changes_nothing_though_the_cache_shows_the_file_as_its_own() {
    if skipped("a_former_owner_changes_nothing_though_the_cache_shows_the_file_as_its_own") {
        return;
    }
    let source = support::temp_dir();
    let path = source.path().join("program");
    put(&path, USER, 0o755);
    fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
    let tree = tree(&source, LONG);
    for cred in [user(USER, &[TEAM]), checked(USER, &[TEAM])] {
        put(&path, USER, 0o755);
        tree.at.set_credentials(cred);
        let file = tree.open("/program", OpenFlags::RDWR).unwrap();
        chown(&path, Some(0), Some(0)).unwrap();
        let changes = [
            SetAttr { mode: Some(0o4755), ..SetAttr::default() },
            SetAttr { gid: Some(TEAM), ..SetAttr::default() },
            SetAttr { mtime: Some(SetTime::At(0)), ..SetAttr::default() },
        ];
        for set in changes {
            assert_eq!(file.set_attr(&set), Err(Errno::EPERM), "{set:?}");
        }
        assert_eq!(file.set_xattr(b"user.x", b"1", SetXattr::Any), Err(Errno::EACCES));
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (0, 0, 0o755));
        assert_ne!(now.mtime(), 0);
    }
}

#[test]
fn a_write_clears_set_id_bits_that_the_cache_does_not_show() {
    if skipped("a_write_clears_set_id_bits_that_the_cache_does_not_show") {
        return;
    }
    for ownership in [Ownership::Caller, Ownership::Daemon] {
        let source = support::temp_dir();
        let path = source.path().join("program");
        let tree = Tree::new(&source, &HostOptions { ownership, policy: LONG, ..HostOptions::default() });
        put(&path, 0, 0o777);
        type Change = fn(&vfs::OpenFile) -> Result<(), Errno>;
        let changes: [(&str, Change); 3] = [
            ("write", |file| file.write_at(0, b"other").map(drop)),
            ("truncate", |file| file.set_len(2)),
            ("allocate", |file| file.allocate(vfs::Allocate::Zero, false, 0, 4096)),
        ];
        let mut without = Credentials::root();
        without.capabilities = Capabilities::all().without(Capabilities::FSETID);
        for cred in [user(USER, &[]), checked(USER, &[]), without.clone()] {
            for (what, change) in changes {
                tree.at.set_credentials(cred.clone());
                fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
                let file = tree.open("/program", OpenFlags::RDWR).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
                change(&file).unwrap();
                assert_eq!(mode(&path), 0o777, "{what} {cred:?} {ownership:?}");
            }
        }
        // Root's own writes keep them.
        tree.at.set_credentials(Credentials::root());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
        tree.open("/program", OpenFlags::RDWR).unwrap().write_at(0, b"root's").unwrap();
        assert_eq!(mode(&path), 0o6777, "{ownership:?}");
    }
}

#[test]
fn the_process_gives_no_set_id_bits_to_what_it_makes_or_changes_for_others() {
    if skipped("the_process_gives_no_set_id_bits_to_what_it_makes_or_changes_for_others") {
        return;
    }
    let source = support::temp_dir();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
    let options = HostOptions { ownership: Ownership::Daemon, policy: LONG, ..HostOptions::default() };
    let tree = Tree::new(&source, &options);
    tree.at.set_credentials(user(USER, &[]));
    let create = OpenFlags::RDWR.union(OpenFlags::CREAT);
    drop(tree.at.open(Base::CWD, b"/made", create, 0o6755).unwrap());
    tree.at.mknod(Base::CWD, b"/node", vfs::S_IFREG | 0o6755, 0).unwrap();
    put(&source.path().join("own"), USER, 0o755);
    let chmod = SetAttr { mode: Some(0o6755), ..SetAttr::default() };
    tree.at.set_attr(Base::CWD, b"/own", false, &chmod).unwrap();
    for name in ["made", "node", "own"] {
        assert_eq!(mode(&source.path().join(name)), 0o755, "{name}");
    }
    // Root may.
    tree.at.set_credentials(Credentials::root());
    tree.at.set_attr(Base::CWD, b"/made", false, &chmod).unwrap();
    assert_eq!(mode(&source.path().join("made")), 0o6755);
}

#[test]
fn names_go_only_where_the_host_lets_the_caller_remove_them() {
    if skipped("names_go_only_where_the_host_lets_the_caller_remove_them") {
        return;
    }
    let source = support::temp_dir();
    team_dir(&source);
    let dir = source.path().join("d");
    put(&dir.join("a"), OTHER, 0o644);
    let tree = tree(&source, LONG);
    tree.at.set_credentials(user(USER, &[TEAM]));
    assert!(tree.attr("/d/a").is_ok());
    // The cache does not know of this change.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(tree.unlink("/d/a"), Err(Errno::EACCES));
    assert_eq!(tree.rename("/d/a", "/d/b"), Err(Errno::EACCES));
    assert_eq!(tree.at.link(PathAt::cwd(b"/d/a"), PathAt::cwd(b"/d/b"), false), Err(Errno::EACCES));
    assert!(dir.join("a").exists() && !dir.join("b").exists());
}
