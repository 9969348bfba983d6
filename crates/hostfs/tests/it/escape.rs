//! Containment: no symbolic link, no `..` and no name that another program replaces leads out of the source.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostFs, HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tempfile::TempDir;
use vfs::{Errno, OpenFlags};

const SECRET: &[u8] = b"outside";

/// A source with a secret beside it.
fn with_secret() -> (TempDir, std::path::PathBuf) {
    let dir = support::temp_dir();
    let source = dir.path().join("source");
    fs::create_dir_all(source.join("d")).unwrap();
    fs::create_dir(dir.path().join("outside")).unwrap();
    fs::write(dir.path().join("outside/f"), SECRET).unwrap();
    fs::write(dir.path().join("secret"), SECRET).unwrap();
    (dir, source)
}

#[test]
fn links_and_dot_dots_do_not_lead_outside() {
    let (dir, source) = with_secret();
    symlink("../secret", source.join("relative")).unwrap();
    symlink(dir.path().join("secret"), source.join("absolute")).unwrap();
    symlink("../outside", source.join("to-dir")).unwrap();
    symlink("/proc/self/root", source.join("magic")).unwrap();
    symlink("../../../../../../etc/passwd", source.join("d/deep")).unwrap();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    let paths =
        ["/relative", "/absolute", "/to-dir/f", "/magic/etc/passwd", "/d/deep", "/../secret", "/d/../../secret"];
    for path in paths {
        assert_eq!(tree.read(path), Err(Errno::ENOENT), "{path}");
    }
    // A write through a link makes a file inside.
    for path in ["/relative", "/to-dir/new", "/d/deep"] {
        let _ = tree.write(path, b"inside");
    }
    assert_eq!(fs::read(dir.path().join("secret")).unwrap(), SECRET);
    assert!(!dir.path().join("outside/new").exists());
    assert_eq!(fs::read(source.join("secret")).unwrap(), b"inside");
}

#[test]
fn names_that_are_not_components_are_refused_below_the_vfs_too() {
    let (_dir, source) = with_secret();
    let fs = HostFs::new(&source, &HostOptions::default()).unwrap();
    // The probe needs an inode, so the file system calls itself from a lookup.
    let probe = Probe { fs: HostFs::new(&source, &HostOptions::default()).unwrap() };
    let tree = vfs::Vfs::new(probe);
    for name in ["..", ".", "", "d/../../secret", "../secret"] {
        let asked = tree.context().attr(vfs::Base::CWD, format!("/ask{}", name.replace('/', "%")).as_bytes(), false);
        assert_eq!(asked, Err(Errno::ENOENT), "{name:?}");
    }
    drop(fs);
}

/// Forwards to a host directory; looks up the part of a name that follows `ask`, with `%` for `/`.
struct Probe {
    fs: HostFs,
}

impl vfs::Layer for Probe {
    type Inner = HostFs;

    fn inner(&self) -> &HostFs {
        &self.fs
    }

    fn lookup(
        &self,
        request: &vfs::Request,
        dir: &vfs::Inode,
        name: &[u8],
        next: &mut vfs::NextNames<'_>,
    ) -> Result<vfs::NewInode, Errno> {
        let asked: Vec<u8> = name[3..].iter().map(|byte| if *byte == b'%' { b'/' } else { *byte }).collect();
        vfs::FileSystem::lookup(&self.fs, request, dir, &asked, next)
    }
}

/// Swaps `d` between a directory and a symbolic link to the outside, and `f` between a file and a link to the secret,
/// while `read` reads `d/f` or `f`. Returns how many times `read` got the secret.
fn race(source: &Path, read: impl Fn(usize) -> Option<Vec<u8>>) -> usize {
    for (name, target) in [("d", "../outside"), ("f", "../secret")] {
        if name == "f" {
            fs::write(source.join("f"), b"inside").unwrap();
        }
        symlink(target, source.join(format!("{name}-link"))).unwrap();
    }
    fs::write(source.join("d/f"), b"inside").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cwd = rustix::fs::CWD;
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !done.load(Relaxed) {
                for name in ["d", "f"] {
                    let link = source.join(format!("{name}-link"));
                    rustix::fs::renameat_with(cwd, source.join(name), cwd, link, exchange).unwrap();
                }
            }
        });
        let (mut secrets, mut insides) = (0, 0);
        // Until both were seen, so that there was a race.
        for round in 0.. {
            match read(round) {
                Some(text) if text == SECRET => secrets += 1,
                Some(text) if text == b"inside" => insides += 1,
                Some(text) => panic!("{text:?}"),
                None => {}
            }
            if round >= 10_000 && insides > 10 {
                break;
            }
        }
        done.store(true, Relaxed);
        secrets
    })
}

#[test]
fn a_name_that_becomes_a_link_while_it_is_opened_does_not_lead_outside() {
    let (_dir, source) = with_secret();
    for number in 0..10 {
        fs::create_dir(source.join(format!("other{number}"))).unwrap();
    }
    let options = HostOptions { policy: Revalidate::Always, max_fds: 8, ..HostOptions::default() };
    let tree = Tree::new(&source, &options);
    let read = |round: usize| {
        // Opening other directories evicts its descriptor, so that it is opened by its name again. The descriptor for writing
        // was closed.
        for number in 0..10 {
            let _ = tree.attr(&format!("/other{number}/x"));
        }
        let path = if round.is_multiple_of(2) { "/d/f" } else { "/f" };
        tree.open(path, OpenFlags::RDWR).and_then(|file| support::read_all(&file)).ok()
    };
    assert_eq!(race(&source, read), 0);
    // The control: by the path, the host itself reaches the secret.
    let (_dir, source) = with_secret();
    assert!(race(&source, |round| fs::read(source.join(["d/f", "f"][round % 2])).ok()) > 0);
}

#[test]
fn a_file_that_is_made_while_its_directory_becomes_a_link_is_made_inside() {
    let (dir, source) = with_secret();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    let made = std::cell::Cell::new(0);
    race(&source, |_| {
        let number = made.get();
        made.set(number + 1);
        let _ = tree.write(&format!("/d/new{number}"), b"inside");
        let _ = tree.open(&format!("/d/new{number}"), OpenFlags::RDONLY);
        let _ = tree.unlink(&format!("/d/new{number}"));
        tree.read("/d/f").ok()
    });
    let outside: Vec<_> =
        fs::read_dir(dir.path().join("outside")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside, ["f"]);
}
