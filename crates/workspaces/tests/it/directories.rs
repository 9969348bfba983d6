//! Commits to a base that renames no directory but those made through it, as overlayfs with a lower layer.

use crate::model::Act;
use crate::publish::{commit, cut_off, faulty_of, host, one_error, run};
use crate::tree::{fill, read, seen, write};
use hostfs::HostFs;
use lightfoot_workspaces::{Fork, ForkLimits};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use testkit::Plan;
use vfs::{After, Base, Context, Errno, Inode, Layer, NewNode, PathAt, Rename, RenameFlags, Request, SetXattr, Vfs};

/// A host directory whose directories stay.
pub(crate) struct Lowest {
    inner: HostFs,
    made: Mutex<HashSet<u64>>,
    /// Called once, after an old file has moved.
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
    calls: AtomicU64,
}

impl Lowest {
    pub(crate) fn of(dir: &Path) -> Self {
        let inner = HostFs::new(dir, &hostfs::HostOptions::default()).expect("a directory");
        Self { inner, made: Mutex::default(), meanwhile: None, calls: AtomicU64::new(0) }
    }
}

impl Layer for Lowest {
    type Inner = HostFs;

    fn inner(&self) -> &HostFs {
        &self.inner
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let number = vfs::FileSystem::create(&self.inner, request, dir, name, new)?;
        self.made.lock().unwrap().insert(number);
        Ok(number)
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        let is_old = |inode: &Inode| !self.made.lock().unwrap().contains(&inode.node());
        let stays = |inode: &Inode| inode.attr().is_dir() && is_old(inode);
        if stays(rename.inode) || rename.target.is_some_and(stays) {
            return Err(Errno::EXDEV);
        }
        let after = vfs::FileSystem::rename(&self.inner, request, rename)?;
        if is_old(rename.inode) && self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            self.meanwhile.iter().for_each(|call| call());
        }
        Ok(after)
    }
}

fn try_rename(context: &Context, from: &str, to: &str) -> Result<(), Errno> {
    context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), RenameFlags::default())
}

fn rename(context: &Context, from: &str, to: &str) {
    try_rename(context, from, to).expect("a rename");
}

/// Makes a directory with files, and a fork of it with random changes: some move or remove directories.
fn faulty(dir: &Path, seed: u64) -> (Fork, Context, Arc<Plan>) {
    fill(&host(dir).context());
    host(dir).context().mkdir(Base::CWD, b"/x", 0o755).expect("a directory");
    let (fork, context, plan) = faulty_of(Box::new(Lowest::of(dir)), seed);
    // The base fails once to rename a directory.
    rename(&context, "/x", "/y");
    assert!(commit(&fork).is_ok());
    let moved = [("/a/b", "/moved"), ("/c", "/a"), ("/a", "/c"), ("/moved/d", "/d")];
    for (from, to) in moved {
        let _ = try_rename(&context, from, to);
    }
    Act::some(&context, &mut fastrand::Rng::with_seed(seed + 100), 0..10);
    (fork, context, plan)
}

#[test]
fn a_base_whose_directories_stay_gets_the_changes_of_its_fork() {
    for seed in 0..100 {
        let dir = tempfile::tempdir().expect("a directory");
        fill(&host(dir.path()).context());
        let base = Vfs::new(Lowest::of(dir.path()));
        run(&base, seed % 2 == 0, seed);
        assert!(!dir.path().join(".lightfoot-commit").exists());
        assert!(seen(&host(dir.path()).context()) == seen(&base.context()), "seed {seed}");
    }
}

#[test]
fn a_commit_with_directories_that_stay_is_completed_or_undone_after_it_is_cut_off() {
    cut_off(0..3, faulty);
}

#[test]
fn a_commit_with_directories_that_stay_and_one_error_changes_all_or_nothing() {
    one_error(0..3, faulty);
}

#[test]
fn a_directory_that_is_made_anew_has_the_attributes_and_other_forks_follow_it() {
    let dir = tempfile::tempdir().expect("a directory");
    fill(&host(dir.path()).context());
    let at = |path: &str| dir.path().join(path);
    fs::set_permissions(at("a/b"), PermissionsExt::from_mode(0o1750)).expect("a mode");
    host(dir.path())
        .context()
        .set_xattr(Base::CWD, b"/a/b", true, b"user.name", b"value", SetXattr::Any)
        .expect("an attribute");
    let (files, mode) = (["b/f", "b/d/f"], |path: &str| fs::metadata(at(path)).unwrap().mode());
    let time = |path: &str| fs::metadata(at(path)).and_then(|data| data.modified()).unwrap();
    let (inodes, times) =
        (files.map(|file| fs::metadata(at("a").join(file)).unwrap().ino()), ["a/b", "a/b/d"].map(time));

    let base = Vfs::new(Lowest::of(dir.path()));
    let trunk = Fork::over(base.context(), false).expect("a trunk");
    let [(one, first), (_two, second)] = [(); 2].map(|()| {
        let fork = trunk.fork(ForkLimits::default()).expect("a fork");
        let context = Vfs::new(fork.file_system()).context();
        (fork, context)
    });
    write(&second, "/a/b/d/new", 0, b"second").expect("a file");
    write(&second, "/a/b/f", 0, b"second").expect("a write");
    let opened = first.hold(Base::CWD, b"/a/b/d", true).expect("a directory");
    rename(&first, "/a/b", "/c/moved");
    assert_eq!(commit(&one), Ok(1));

    assert!(!at("a/b").exists());
    assert_eq!(files.map(|file| fs::metadata(at("c/moved").join(&file[2..])).unwrap().ino()), inodes, "files stay");
    assert_eq!((mode("c/moved"), ["c/moved", "c/moved/d"].map(time)), (0o41750, times));
    assert_eq!(
        host(dir.path()).context().get_xattr(Base::CWD, b"/c/moved", true, b"user.name").as_deref(),
        Ok(&b"value"[..])
    );
    assert_eq!(first.path_of(&opened), b"/c/moved/d");
    assert!(first.open(Base::at(&opened), b"f", vfs::OpenFlags::RDONLY, 0).is_ok(), "a held directory is the new one");
    assert_eq!(read(&second, "/c/moved/d/new").as_deref(), Ok(&b"second"[..]));
    assert!(read(&second, "/c/moved/d/f").is_ok());
    assert_eq!(read(&second, "/c/moved/f").map(|bytes| bytes[..6].to_vec()).as_deref(), Ok(&b"second"[..]));
}

#[test]
fn a_directory_in_which_another_program_makes_a_file_is_not_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    fill(&host(dir.path()).context());
    let new = dir.path().join("a/b/new");
    let make = move || fs::write(&new, "other").expect("a file");
    let base = Vfs::new(Lowest { meanwhile: Some(Box::new(make)), ..Lowest::of(dir.path()) });
    let trunk = Fork::over(base.context(), false).expect("a trunk");
    let fork = trunk.fork(ForkLimits::default()).expect("a fork");
    let context = Vfs::new(fork.file_system()).context();
    rename(&context, "/a/b", "/c/moved");
    let mut expected = seen(&host(dir.path()).context());
    let conflicts = commit(&fork).expect_err("a conflict");
    assert!(conflicts[0].starts_with("C a/b: "), "{conflicts:?}");
    let mut found = seen(&host(dir.path()).context());
    assert_eq!(found.remove("/a/b/new").map(|new| new.3).as_deref(), Some(&b"other"[..]));
    // Their sizes differ.
    for path in ["/a/b", "/a"] {
        assert!(found.remove(path).is_some() && expected.remove(path).is_some());
    }
    assert!(found == expected);
    assert_eq!(commit(&fork), Ok(1), "the new file moves along");
    assert!(dir.path().join("c/moved/new").exists());
}
