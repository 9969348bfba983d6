//! Nothing leads out of the source: no symbolic link, no `..`, no name that becomes something else meanwhile.

mod support;

use hostfs::{HostFs, HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use support::{TempDir, Tree};
use vfs::{Errno, OpenFlags};

const SECRET: &[u8] = b"outside";

/// A source with a secret beside it.
fn with_secret() -> (TempDir, std::path::PathBuf) {
    let dir = TempDir::new();
    let source = dir.join("source");
    fs::create_dir_all(source.join("d")).unwrap();
    fs::create_dir(dir.join("outside")).unwrap();
    fs::write(dir.join("outside/f"), SECRET).unwrap();
    fs::write(dir.join("secret"), SECRET).unwrap();
    (dir, source)
}

#[test]
fn links_and_dot_dots_lead_to_no_place_outside() {
    let (dir, source) = with_secret();
    symlink("../secret", source.join("relative")).unwrap();
    symlink(dir.join("secret"), source.join("absolute")).unwrap();
    symlink("../outside", source.join("to-dir")).unwrap();
    symlink("/proc/self/root", source.join("magic")).unwrap();
    symlink("../../../../../../etc/passwd", source.join("d/deep")).unwrap();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    let paths =
        ["/relative", "/absolute", "/to-dir/f", "/magic/etc/passwd", "/d/deep", "/../secret", "/d/../../secret"];
    for path in paths {
        assert_eq!(tree.read(path), Err(Errno::ENOENT), "{path}");
    }
    // What a write through a link makes, it makes inside.
    for path in ["/relative", "/to-dir/new", "/d/deep"] {
        let _ = tree.write(path, b"inside");
    }
    assert_eq!(fs::read(dir.join("secret")).unwrap(), SECRET);
    assert!(!dir.join("outside/new").exists());
    assert_eq!(fs::read(source.join("secret")).unwrap(), b"inside");
}

#[test]
fn names_that_are_no_components_are_refused_below_the_vfs_too() {
    let (_dir, source) = with_secret();
    let fs = HostFs::new(&source, &HostOptions::default()).unwrap();
    // An inode to ask with: that of a tree over the same directory would do as well, so the file system asks itself.
    let probe = Probe { fs: HostFs::new(&source, &HostOptions::default()).unwrap() };
    let tree = vfs::Vfs::new(probe);
    for name in ["..", ".", "", "d/../../secret", "../secret"] {
        let asked = tree.context().attr(vfs::Base::CWD, format!("/ask{}", name.replace('/', "%")).as_bytes(), false);
        assert_eq!(asked, Err(Errno::ENOENT), "{name:?}");
    }
    drop(fs);
}

/// Asks a host directory for what follows `ask` in a name, with `%` for `/`.
struct Probe {
    fs: HostFs,
}

impl vfs::FileSystem for Probe {
    fn root(&self) -> vfs::NewInode {
        self.fs.root()
    }

    fn lookup(&self, request: &vfs::Request, dir: &vfs::Inode, name: &[u8]) -> Result<vfs::NewInode, Errno> {
        let asked: Vec<u8> = name[3..].iter().map(|byte| if *byte == b'%' { b'/' } else { *byte }).collect();
        self.fs.lookup(request, dir, &asked)
    }
}

/// Swaps `d` between a directory and a symbolic link to the outside, and `f` between a file and a link to the secret,
/// while `read` reads `d/f` or `f`; how often it got the secret.
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
        // Until both were met, so that the race is one.
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
fn what_becomes_a_link_while_it_is_opened_leads_to_no_place_outside() {
    let (_dir, source) = with_secret();
    for number in 0..10 {
        fs::create_dir(source.join(format!("other{number}"))).unwrap();
    }
    let options = HostOptions { policy: Revalidate::Always, max_fds: 8, ..HostOptions::default() };
    let tree = Tree::new(&source, &options);
    let read = |round: usize| {
        // Other directories take its descriptor, so that it is opened by its name again; what was open to be written to
        // was closed.
        for number in 0..10 {
            let _ = tree.attr(&format!("/other{number}/x"));
        }
        let path = if round.is_multiple_of(2) { "/d/f" } else { "/f" };
        tree.open(path, OpenFlags::RDWR).and_then(|file| support::read_all(&file)).ok()
    };
    assert_eq!(race(&source, read), 0);
    // The control: by its path, the host does get there.
    let (_dir, source) = with_secret();
    assert!(race(&source, |round| fs::read(source.join(["d/f", "f"][round % 2])).ok()) > 0);
}

#[test]
fn what_is_made_while_a_directory_becomes_a_link_is_made_inside() {
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
    let outside: Vec<_> = fs::read_dir(dir.join("outside")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside, ["f"]);
}
