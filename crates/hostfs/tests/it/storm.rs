//! A tree and another program change one directory at the same time, with few descriptors. No operation fails in an
//! unexpected way, and afterwards the tree shows the state of the host. `LIGHTFOOT_SEED` replays the operations of each
//! thread, not their interleaving.

use crate::support::{self, Tree};
use fastrand::Rng;
use lightfoot_hostfs::{HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use vfs::{Base, Errno, OpenFlags, PathAt};

const STEPS: usize = 3000;

fn path(rng: &mut Rng) -> String {
    (0..rng.usize(1..4)).map(|_| format!("/{}", ["a", "b", "c", "d", "e"][rng.usize(..5)])).collect()
}

/// Errors that are expected while names appear and disappear.
const ALLOWED: [Errno; 10] = [
    Errno::ENOENT,
    Errno::EEXIST,
    Errno::ENOTDIR,
    Errno::EISDIR,
    Errno::ENOTEMPTY,
    Errno::ESTALE,
    Errno::EINVAL,
    Errno::ELOOP,
    Errno::EPERM,
    Errno::EBUSY,
];

fn by_the_tree(tree: &Tree, mut rng: Rng) {
    for step in 0..STEPS {
        let (path, other) = (path(&mut rng), path(&mut rng));
        let cwd = Base::CWD;
        let what = rng.u32(..11);
        let done = match what {
            0 => tree.mkdir(&path),
            1 => tree.write(&path, path.as_bytes()),
            2 => tree.read(&path).map(drop),
            3 => tree.unlink(&path),
            4 => tree.at.rmdir(cwd, path.as_bytes()),
            5 => tree.rename(&path, &other),
            6 => tree.at.link(PathAt::new(cwd, path.as_bytes()), PathAt::new(cwd, other.as_bytes()), false),
            7 => tree.at.symlink(b"a/b", cwd, path.as_bytes()),
            8 => tree.names(&path).map(drop),
            9 => tree.open(&path, OpenFlags::RDWR).and_then(|file| {
                let _ = tree.unlink(&path);
                file.write_at(0, b"more")?;
                support::read_all(&file).map(drop)
            }),
            _ => tree.attr(&path).map(drop),
        };
        let is_fine = done.is_ok() || done.is_err_and(|errno| ALLOWED.contains(&errno));
        assert!(is_fine, "step {step}: {what} {path} {other}: {done:?}");
    }
}

fn by_others(source: &Path, mut rng: Rng) {
    for _ in 0..STEPS {
        let (path, other) = (source.join(&path(&mut rng)[1..]), source.join(&path(&mut rng)[1..]));
        let _ = match rng.u32(..7) {
            0 => fs::create_dir(path),
            1 => fs::write(path, b"of others"),
            2 => fs::remove_file(path),
            3 => fs::remove_dir(path),
            4 => fs::rename(path, other),
            5 => fs::hard_link(path, other),
            _ => std::os::unix::fs::symlink("c", path),
        };
    }
}

/// Compares all files of the tree with the host and returns a difference.
///
/// It looks up every name, also after a difference: a name that another program gave to a file in a directory that was not
/// watched yet caused no event, and its first lookup corrects the link count of the file's other names.
fn difference(tree: &Tree, source: &Path) -> Option<String> {
    let mut difference = None;
    let mut open = vec![String::new()];
    while let Some(dir) = open.pop() {
        let mut names = Vec::new();
        for entry in fs::read_dir(source.join(dir.trim_start_matches('/'))).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{dir}/{name}");
            let host = fs::symlink_metadata(source.join(&path[1..])).unwrap();
            let expected = (host.ino(), host.mode(), host.nlink(), host.size());
            let came = tree.attr(&path).map(|attr| (attr.ino, attr.mode, u64::from(attr.nlink), attr.size));
            if came != Ok(expected) {
                difference = Some(format!("{path}: expected {expected:?}, came {came:?}"));
            } else if host.is_file() && tree.read(&path).ok() != fs::read(source.join(&path[1..])).ok() {
                difference = Some(format!("contents of {path}"));
            }
            if host.is_dir() {
                open.push(path);
            }
            names.push(name);
        }
        names.sort_unstable();
        let path = if dir.is_empty() { "/" } else { &dir };
        let came = tree.names(path);
        if came.as_ref() != Ok(&names) {
            difference = Some(format!("names in {path}: expected {names:?}, came {came:?}"));
        }
    }
    difference
}

fn storm(options: &HostOptions, seed: u64) -> (TempDir, Tree) {
    eprintln!("LIGHTFOOT_SEED={seed} {options:?}");
    let source = support::memory_dir();
    let tree = Tree::new(&source, options);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let tree = &tree;
            scope.spawn(move || by_the_tree(tree, Rng::with_seed(seed + thread)));
        }
        let source = source.path();
        scope.spawn(move || by_others(source, Rng::with_seed(seed + 100)));
    });
    (source, tree)
}

#[test]
fn a_tree_that_always_revalidates_shows_the_host_after_a_storm() {
    let options = HostOptions { policy: Revalidate::Always, max_fds: 8, ..HostOptions::default() };
    for round in 0..4 {
        let (source, tree) = storm(&options, support::seed() + round * 1000);
        assert_eq!(difference(&tree, source.path()), None);
    }
}

#[test]
fn a_watched_tree_shows_the_host_after_a_storm() {
    // The time applies to files with several names, which may change by a name that was never looked up.
    let policy = Revalidate::Ttl(Duration::from_millis(10));
    let options = HostOptions { policy, watch: true, max_fds: 64, ..HostOptions::default() };
    for round in 0..4 {
        let (source, tree) = storm(&options, support::seed() + round * 1000);
        let mut last = None;
        for _ in 0..5_000 {
            last = difference(&tree, source.path());
            if last.is_none() {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(last, None);
    }
}

#[test]
fn a_storm_leaves_nothing_behind() {
    let options = HostOptions { policy: Revalidate::Always, max_fds: 16, ..HostOptions::default() };
    let (source, tree) = storm(&options, support::seed());
    for entry in fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(tree.attr(&format!("/{name}")).err(), Some(Errno::ENOENT));
    }
    tree.vfs.barrier();
    let stats = tree.host.stats();
    // The records evicted last are kept for a while without descriptors, and so are streams of listings.
    assert!(stats.nodes <= 1024 + 64 && stats.open_fds <= 4, "{stats:?}");
}

#[test]
fn a_rename_over_a_former_ancestor_does_not_wait_for_itself() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    tree.mkdir("/a").unwrap();
    tree.mkdir("/a/b").unwrap();
    tree.write("/a/b/x", b"").unwrap();
    let held = tree.at.hold(Base::CWD, b"/a/b", true).unwrap();
    fs::rename(source.path().join("a"), source.path().join("moved")).unwrap();
    fs::write(source.path().join("a"), b"a file now").unwrap();
    let moved = tree.at.rename(PathAt::new(Base::from(&held), b"x"), PathAt::cwd(b"/a"), vfs::RenameFlags::default());
    assert_eq!(moved, Err(Errno::ENOTEMPTY));
}

/// What one thread has looked up, another thread replaces before it is opened: the open finds the file that was looked up.
#[test]
fn a_file_that_is_replaced_after_its_lookup_can_be_opened() {
    let dir = support::memory_dir();
    let tree = Tree::new(dir.path(), &HostOptions::default());
    tree.write("/name", b"first").expect("a file");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let read = || {
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            let held = tree.at.hold(Base::CWD, b"/name", true).expect("the name always exists");
            let file = tree.at.open_held(&held, OpenFlags::RDONLY).expect("the file that was looked up");
            assert_ne!(support::read_all(&file).expect("its contents"), b"");
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for number in 0..STEPS {
            tree.write("/temporary", number.to_string().as_bytes()).expect("a new file");
            tree.rename("/temporary", "/name").expect("replaces the name");
            if readers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
