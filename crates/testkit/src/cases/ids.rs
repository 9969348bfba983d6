//! Files found by their handles: after moves, after a restart, after eviction, and not after their removal.

use crate::fixture::{DIR, Fixture, MAKE, entries, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, needs, same};
use fastrand::Rng;
use vfs::{
    Base, Budget, Context, Credentials, Errno, FileHandle, OpenFlags, PathAt, PathRef, RenameFlags, S_IFREG, Vfs,
};

/// Changes that make the random tree.
const CHANGES: usize = 300;

/// Names that leave nothing else in the smallest cache.
const FILLING: usize = 4600;

/// A file of the tree.
struct Known {
    path: String,
    ino: u64,
    mode: u32,
    contents: Vec<u8>,
    handle: FileHandle,
}

/// One tree of the file system.
struct Tree<'t> {
    at: &'t Context,
    root: PathRef,
}

impl<'t> Tree<'t> {
    fn new(at: &'t Context) -> Result<Self, Failure> {
        Ok(Self { at, root: at.hold(Base::CWD, b"/", true).or_fail("holding the root")? })
    }

    /// Makes, moves and links files at random.
    fn grow(&self, c: &Fixture, random: &mut Rng) -> Outcome {
        let mut dirs = vec![String::new()];
        for number in 0..CHANGES {
            let dir = dirs[random.usize(..dirs.len())].clone();
            let path = format!("{dir}/n{number}");
            let at = Base::CWD;
            match random.u8(..8) {
                0 | 1 => {
                    self.at.mkdir(at, path.as_bytes(), 0o755).or_fail("mkdir")?;
                    dirs.push(path);
                }
                2 if c.features().symlinks => self.at.symlink(b"nowhere", at, path.as_bytes()).or_fail("symlink")?,
                3 if c.features().hard_links => {
                    let first = format!("{path}-");
                    self.write(&first, b"two names")?;
                    let names = (PathAt::cwd(first.as_bytes()), PathAt::cwd(path.as_bytes()));
                    self.at.link(names.0, names.1, false).or_fail("link")?;
                    if random.bool() {
                        self.at.unlink(at, first.as_bytes()).or_fail("unlink of a first name")?;
                    }
                }
                _ => self.write(&path, path.as_bytes())?,
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, contents: &[u8]) -> Outcome {
        let file = self.at.open(Base::CWD, path.as_bytes(), MAKE, 0o644).or_fail("making a file")?;
        write_all(&file, 0, contents)
    }

    /// Returns all files below a directory, with their handles.
    fn list(&self, dir: &str, all: &mut Vec<Known>) -> Outcome {
        let open = self.at.open(Base::CWD, format!("{dir}/").as_bytes(), DIR, 0).or_fail("opening a directory")?;
        for entry in entries(&open).or_fail("listing")? {
            let path = format!("{dir}/{}", entry.name.escape_ascii());
            let held = self.at.hold(Base::CWD, path.as_bytes(), false).or_fail("holding a file")?;
            let attr = held.attr().or_fail("attributes")?;
            let handle = self.at.handle_of(&held).or_fail(format_args!("the handle of {path}"))?;
            let contents = if attr.kind() == S_IFREG { self.contents(&held)? } else { Vec::new() };
            all.push(Known { path: path.clone(), ino: attr.ino, mode: attr.mode, contents, handle });
            if attr.is_dir() {
                self.list(&path, all)?;
            }
        }
        Ok(())
    }

    fn contents(&self, held: &PathRef) -> Result<Vec<u8>, Failure> {
        self.at.open_held(held, OpenFlags::RDONLY).and_then(|file| read_all(&file)).or_fail("reading a held file")
    }

    /// Finds each file, by the bytes of its handle.
    fn find_all(&self, all: &[Known], when: &str) -> Outcome {
        for known in all {
            let handle = FileHandle::from_bytes(&known.handle.to_bytes()).or_fail("the bytes of a handle")?;
            let what = format!("{} {when}", known.path);
            let held = self.at.hold_handle(&self.root, &handle).or_fail(&what)?;
            let attr = held.attr().or_fail(&what)?;
            same(&what, (attr.ino, attr.mode), (known.ino, known.mode))?;
            if attr.kind() == S_IFREG {
                same(&what, self.contents(&held)?, known.contents.clone())?;
            }
            if attr.is_dir() {
                let above = self.at.attr(Base::at(&held), b"..", false).or_fail(format_args!("above {what}"))?;
                let name = self.at.attr(Base::CWD, format!("{}/..", known.path).as_bytes(), true);
                same(format_args!("the directory above {what}"), Ok(above.ino), name.map(|attr| attr.ino))?;
            }
            // It may differ from the first one.
            let again = self.at.handle_of(&held).and_then(|handle| self.at.hold_handle(&self.root, &handle)?.attr());
            same(format_args!("by its new handle, {what}"), again.map(|attr| attr.ino), Ok(known.ino))?;
        }
        Ok(())
    }

    /// Moves directories and files to other names.
    fn move_some(&self, all: &mut [Known], random: &mut Rng) -> Outcome {
        for number in 0..all.len() / 4 {
            let at = random.usize(..all.len());
            let (old, new) = (all[at].path.clone(), format!("/moved{number}"));
            let names = (PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()));
            self.at.rename(names.0, names.1, RenameFlags::default()).or_fail(format_args!("rename of {old}"))?;
            for known in all.iter_mut() {
                if let Some(rest) =
                    known.path.strip_prefix(&old).filter(|rest| rest.is_empty() || rest.starts_with('/'))
                {
                    known.path = format!("{new}{rest}");
                }
            }
        }
        Ok(())
    }

    /// Removes everything, deepest names first; each file is freed with its last name.
    fn remove_all(&self, mut all: Vec<Known>) -> Outcome {
        all.sort_by_key(|known| core::cmp::Reverse(known.path.matches('/').count()));
        while let Some(known) = (!all.is_empty()).then(|| all.remove(0)) {
            let path = known.path.as_bytes();
            let is_dir = self.at.attr(Base::CWD, path, false).or_fail(&known.path)?.is_dir();
            let removed = if is_dir { self.at.rmdir(Base::CWD, path) } else { self.at.unlink(Base::CWD, path) };
            removed.or_fail(format_args!("removing {}", known.path))?;
            let has_other_name = all.iter().any(|other| other.ino == known.ino);
            let found = self.at.hold_handle(&self.root, &known.handle);
            let expected = if has_other_name { Ok(known.ino) } else { Err(Errno::ESTALE) };
            let found = found.and_then(|held| held.attr()).map(|attr| attr.ino);
            same(format_args!("{} after its removal", known.path), found, expected)?;
        }
        Ok(())
    }
}

/// Uses so many other names that nothing else stays in the cache.
fn evict(vfs: &Vfs, tree: &Tree<'_>) -> Outcome {
    tree.at.mkdir(Base::CWD, b"/filling", 0o755).or_fail("mkdir")?;
    let before = vfs.stats().evicted;
    for number in 0..FILLING {
        let path = format!("/filling/{number}");
        tree.at.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).or_fail("mknod")?;
    }
    let evicted = vfs.stats().evicted - before;
    if evicted < CHANGES as u64 {
        return Err(Failure::new(format!("expected many evictions, got {evicted}")));
    }
    Ok(())
}

pub(crate) fn each_file_of_a_random_tree_is_found_by_its_handle(c: &Fixture) -> Outcome {
    let tree = Tree::new(c.at())?;
    if !c.features().ids {
        return same("a handle", tree.at.handle_of(&tree.root).err(), Some(Errno::EOPNOTSUPP));
    }
    let mut random = Rng::with_seed(7);
    tree.grow(c, &mut random)?;
    let mut all = Vec::new();
    tree.list("", &mut all)?;
    tree.find_all(&all, "in the same tree")?;
    if c.features().rename {
        tree.move_some(&mut all, &mut random)?;
        tree.find_all(&all, "after moves")?;
    }
    let Some(vfs) = c.restarted(Budget { entries: 0, ..Budget::default() }) else { return tree.remove_all(all) };
    let context = vfs.context();
    let again = Tree::new(&context)?;
    // Deep directories first, none of which is cached.
    all.reverse();
    again.find_all(&all, "after a restart")?;
    evict(&vfs, &again)?;
    again.find_all(&all, "after eviction")?;
    again.remove_all(all)
}

pub(crate) fn a_handle_needs_the_capability_and_its_own_bytes(c: &Fixture) -> Outcome {
    needs!(c.features().ids);
    c.mkdir("/d").or_fail("mkdir")?;
    let tree = Tree::new(c.at())?;
    let handle = c.at().hold(Base::CWD, b"/d", true).and_then(|held| c.at().handle_of(&held)).or_fail("a handle")?;
    let user = c.vfs().context();
    user.set_credentials(Credentials::user(1000, 1000, &[]));
    same("without the capability", user.hold_handle(&tree.root, &handle).err(), Some(Errno::EPERM))?;
    let bytes = handle.to_bytes();
    for len in 0..bytes.len() {
        if let Ok(cut) = FileHandle::from_bytes(&bytes[..len]) {
            same(format_args!("{len} bytes"), tree.at.hold_handle(&tree.root, &cut).err(), Some(Errno::ESTALE))?;
        }
    }
    let longer = FileHandle::from_bytes(&[&bytes[..], b"+"].concat()).or_fail("a longer handle")?;
    same("one byte more", tree.at.hold_handle(&tree.root, &longer).err(), Some(Errno::ESTALE))?;
    same("no handle", FileHandle::from_bytes(&[1; FileHandle::MAX + 1]).err(), Some(Errno::EINVAL))
}
