//! The steps of a commit to the base, and the journal by which a crash completes or undoes them.
//!
//! # What it is
//! A step exchanges or moves objects on one file system, so it has happened or not. It names the object by its inode number, so a
//! repeated step finds that it is done. New objects are prepared in the directory [`STAGING`] of the base; replaced
//! objects go there.
//!
//! | file in the directory | the commit |
//! |---|---|
//! | none of these | had not begun: remove the directory |
//! | `journal` | had begun: complete all steps, or, if one fails, undo them |
//! | `undo` | had failed: undo all steps |
//! | `done`, `undone` | is done, or undone: remove the directory, and this file last |
//!
//! # What it is not
//! Isolation: another program may see some of the steps before others.

use crate::lower::Lower;
use crate::record::Xattrs;
use crate::store::Fork;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vfs::{Attr, Base, Errno, OpenFile, OpenFlags, PathAt, RenameFlags, S_IFDIR, SetAttr, SetTime, SetXattr, Want};

/// The name in the base's root directory under which a commit prepares its files.
pub(crate) const STAGING: &[u8] = b".lightfoot-commit";

const JOURNAL: &[u8] = b"journal";
const UNDO: &[u8] = b"undo";
const DONE: &[u8] = b"done";
const UNDONE: &[u8] = b"undone";

/// A path from the root of the base, without a slash at the start.
pub(super) type Path = Vec<u8>;

/// Mode, owner, group, modification time and extended attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) mtime: i64,
    /// `None`: they stay.
    pub(super) xattrs: Option<Xattrs>,
}

impl Attributes {
    /// Returns the attributes of a file of the base.
    pub(super) fn of(attr: &Attr, xattrs: Option<Xattrs>) -> Self {
        Self { mode: attr.mode, owner: (attr.uid, attr.gid), mtime: attr.mtime, xattrs }
    }
}

/// The file that a step finds: inode number, length, modification time.
pub(super) type Found = (u64, u64, i64);

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// Moves the object to a name that does not exist.
    Move { from: Path, to: Path, found: Found },
    /// Exchanges a prepared file with the file at a path.
    Swap { staged: Path, at: Path, ino: u64, found: Found },
    /// Replaces the contents of a file that has several names.
    Overwrite { from: Path, at: Path, before: Path, found: Found },
    /// Changes attributes of the file with this inode number.
    Change { at: Path, ino: u64, new: Attributes, old: Attributes },
    /// Makes a directory writable, before its files move away. To undo it restores the attributes, also of a new directory there.
    Empty { at: Path, ino: u64, old: Attributes },
    /// Removes an empty directory.
    Rmdir { at: Path, ino: u64 },
}

/// Why a step fails: the path in the base, if there is one, and the error.
pub(super) type Failed = (Path, Errno);

impl Step {
    /// Returns the path in the base at which another program may have changed something.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Move { from, to: at, .. } if is_staged(from) => at,
            Self::Move { from: at, .. }
            | Self::Swap { at, .. }
            | Self::Overwrite { at, .. }
            | Self::Change { at, .. }
            | Self::Empty { at, .. }
            | Self::Rmdir { at, .. } => at,
        }
    }
}

/// Joins a path and a name.
pub(super) fn join(dir: &[u8], name: &[u8]) -> Path {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// Returns a path in the directory of the commit.
pub(super) fn staged(name: &str) -> Path {
    join(STAGING, name.as_bytes())
}

fn is_staged(path: &[u8]) -> bool {
    path.strip_prefix(STAGING).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Copies the first `len` bytes of a file to another. Returns the number of bytes: fewer if the file ends before.
pub(super) fn copy_bytes(from: &OpenFile, to: &OpenFile, len: u64) -> Result<u64, Errno> {
    let mut done = 0;
    while done < len {
        match from.copy_to(done, to, done, len - done)? {
            0 => break,
            copied => done += copied,
        }
    }
    Ok(done)
}

/// Writes all of `bytes` at `offset`.
pub(super) fn write_all(to: &OpenFile, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        done += to.write_at(offset + done as u64, &bytes[done..])?.0;
    }
    Ok(())
}

/// The base as a commit changes it: by paths from its root, without links and other file systems.
#[derive(Clone, Copy)]
pub(super) struct Target<'t>(pub(super) &'t Lower);

impl<'t> Target<'t> {
    pub(super) fn base(self) -> Base<'t> {
        self.0.base()
    }

    pub(super) fn attr(self, path: &[u8]) -> Result<Attr, Errno> {
        self.0.at(path)?.attr_anew()
    }

    /// Returns the inode number of the file at a path, if there is one.
    fn ino_at(self, path: &[u8]) -> Result<Option<u64>, Errno> {
        match self.attr(path) {
            Ok(attr) => Ok(Some(attr.ino)),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn is_at(self, path: &[u8], ino: u64) -> Result<bool, Errno> {
        Ok(self.ino_at(path)? == Some(ino))
    }

    pub(super) fn rename(self, from: &[u8], to: &[u8], flags: RenameFlags) -> Result<(), Errno> {
        self.0.context.rename(PathAt::new(self.base(), from), PathAt::new(self.base(), to), flags)
    }

    /// Gives a held file another name.
    pub(super) fn link(self, file: &vfs::PathRef, to: &[u8]) -> Result<(), Errno> {
        self.0.context.link(PathAt::new(Base::at(file), b""), PathAt::new(self.base(), to), false)
    }

    pub(super) fn make_dir(self, path: &[u8]) -> Result<(), Errno> {
        self.0.context.mkdir(self.base(), path, 0o700)
    }

    /// Makes a file.
    pub(super) fn create(self, path: &[u8]) -> Result<OpenFile, Errno> {
        let flags = OpenFlags::WRONLY.union(OpenFlags::CREAT).union(OpenFlags::EXCL);
        self.0.context.open(self.base(), path, flags, 0o600)
    }

    pub(super) fn open(self, path: &[u8], flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.0.context.open(self.base(), path, flags, 0)
    }

    /// Makes the names in a directory durable.
    fn sync_dir(self, path: &[u8]) -> Result<(), Errno> {
        self.open(if path.is_empty() { b"." } else { path }, OpenFlags::RDONLY.union(OpenFlags::DIRECTORY))?.sync(false)
    }

    /// Sets attributes; what they are already is not set, since it may need a privilege.
    pub(super) fn set(self, path: &[u8], new: &Attributes) -> Result<(), Errno> {
        let (held, context) = (self.0.at(path)?, &self.0.context);
        let now = held.attr_anew()?;
        if (now.uid, now.gid) != new.owner {
            let set = SetAttr { uid: Some(new.owner.0), gid: Some(new.owner.1), ..SetAttr::default() };
            context.set_attr_held(&held, &set)?;
        }
        if let Some(xattrs) = &new.xattrs {
            let old = self.0.xattrs(&held)?;
            for name in old.keys().filter(|name| !xattrs.contains_key(*name)) {
                context.remove_xattr_held(&held, name)?;
            }
            for (name, value) in xattrs.iter().filter(|(name, value)| old.get(*name) != Some(value)) {
                context.set_xattr_held(&held, name, value, SetXattr::Any)?;
            }
        }
        let mode = (now.kind() != vfs::S_IFLNK).then_some(new.mode & 0o7777);
        let set = SetAttr { mode, mtime: Some(SetTime::At(new.mtime)), ..SetAttr::default() };
        context.set_attr_held(&held, &set).map(drop)
    }

    /// Copies all contents of a file over another.
    pub(super) fn copy(self, from: &[u8], to: &OpenFile) -> Result<(), Errno> {
        let source = self.open(from, OpenFlags::RDONLY)?;
        let len = source.attr()?.size;
        to.set_len(0)?;
        copy_bytes(&source, to, len)?;
        to.set_len(len)?;
        to.sync(false)
    }

    /// Removes a file, or a directory with all that is in it.
    fn remove(self, path: &[u8]) -> Result<(), Errno> {
        let context = &self.0.context;
        match self.attr(path) {
            Ok(attr) if attr.is_dir() => {}
            Ok(_) => return context.unlink(self.base(), path),
            Err(Errno::ENOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        // A directory without the right to write may be among them.
        context.set_attr(self.base(), path, false, &SetAttr { mode: Some(0o700), ..SetAttr::default() })?;
        let mut names = self.names(path)?;
        // These come last: they say whether the commit was done.
        names.sort_by_key(|name| matches!(&**name, DONE | UNDONE));
        for name in names {
            self.remove(&join(path, &name))?;
        }
        context.rmdir(self.base(), path)
    }

    /// Returns the names in a directory.
    pub(super) fn names(self, path: &[u8]) -> Result<Vec<Path>, Errno> {
        let mut names: Vec<Path> = Vec::new();
        let dir = self.open(path, OpenFlags::RDONLY.union(OpenFlags::DIRECTORY))?;
        dir.entries_after(0, Want::NAMES, &mut |entry, _| {
            if !matches!(&*entry.name, b"." | b"..") {
                names.push(entry.name.to_vec());
            }
            true
        })?;
        Ok(names)
    }

    /// Begins a commit: makes its directory.
    ///
    /// # Errors
    /// `EBUSY`: another commit has it.
    pub(super) fn begin(self) -> Result<(), Errno> {
        match self.make_dir(STAGING) {
            Err(Errno::EEXIST) => {}
            made => return made,
        }
        // The removal after a commit may have failed.
        if !self.has(DONE)? && !self.has(UNDONE)? {
            return Err(Errno::EBUSY);
        }
        self.remove(STAGING)?;
        self.make_dir(STAGING)
    }

    /// Ends a commit, unless steps must be completed or undone.
    pub(super) fn end_if_settled(self) -> Result<(), Errno> {
        if self.has(JOURNAL)? || self.has(UNDO)? { Ok(()) } else { self.remove(STAGING) }
    }

    fn has(self, name: &[u8]) -> Result<bool, Errno> {
        match self.attr(&join(STAGING, name)) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn turn(self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        self.rename(&join(STAGING, from), &join(STAGING, to), RenameFlags::default())?;
        self.sync_dir(STAGING)
    }

    /// Writes the journal, and takes all steps. If one fails, undoes those before it.
    pub(super) fn run(self, steps: &[Step]) -> Result<(), Failed> {
        if let Err(errno) = self.write(steps) {
            // There is nothing to complete, if it has its name already.
            let _undone = self.turn(JOURNAL, UNDONE);
            return Err((Path::new(), errno));
        }
        self.redo(steps)
    }

    fn write(self, steps: &[Step]) -> Result<(), Errno> {
        let steps = postcard::to_allocvec(steps).map_err(|_| Errno::ENOMEM)?;
        let bytes = postcard::to_allocvec(&(crc32fast::hash(&steps), &*steps)).map_err(|_| Errno::ENOMEM)?;
        let file = self.create(&staged("journal.new"))?;
        write_all(&file, 0, &bytes)?;
        file.sync(false)?;
        self.turn(b"journal.new", JOURNAL)
    }

    fn read(self, name: &[u8]) -> Result<Vec<Step>, Errno> {
        let file = self.open(&join(STAGING, name), OpenFlags::RDONLY)?;
        let mut bytes = vec![0; usize::try_from(file.attr()?.size).map_err(|_| Errno::EFBIG)?];
        file.read_full_at(0, &mut bytes)?;
        let (crc, steps): (u32, &[u8]) = postcard::from_bytes(&bytes).map_err(|_| Errno::EIO)?;
        let is_right = crc32fast::hash(steps) == crc;
        is_right.then(|| postcard::from_bytes(steps).ok()).flatten().ok_or(Errno::EIO)
    }

    fn redo(self, steps: &[Step]) -> Result<(), Failed> {
        let take = |step: &Step| {
            self.0.progress.step();
            self.take(step).map_err(|errno| (step.path().clone(), errno))
        };
        let settle = |()| self.settle(steps, JOURNAL).map_err(|errno| (Path::new(), errno));
        let Err(failed) = steps.iter().try_for_each(take).and_then(settle) else { return Ok(()) };
        if self.has(DONE) == Ok(true) {
            return Ok(());
        }
        // The first failure is the one to report.
        let _undone = self.turn(JOURNAL, UNDO).and_then(|()| self.undo(steps));
        Err(failed)
    }

    /// Undoes all steps that were taken.
    fn undo(self, steps: &[Step]) -> Result<(), Errno> {
        for step in steps.iter().rev() {
            match step {
                // A file that another program exchanged at that moment belongs back, too.
                Step::Move { from, to, found }
                    if self.is_at(to, found.0)? || is_staged(to) && self.ino_at(to)?.is_some() =>
                {
                    self.rename(to, from, RenameFlags::NOREPLACE)?;
                }
                Step::Swap { staged, at, ino, .. } if self.is_at(at, *ino)? => {
                    self.rename(staged, at, RenameFlags::EXCHANGE)?;
                }
                Step::Overwrite { at, before, found, .. } if self.is_at(at, found.0)? => {
                    let file = self.open(at, OpenFlags::WRONLY)?;
                    self.copy(before, &file)?;
                    file.set_attr(&SetAttr { mtime: Some(SetTime::At(found.2)), ..SetAttr::default() })?;
                }
                Step::Change { at, ino, old, .. } if self.is_at(at, *ino)? => self.set(at, old)?,
                Step::Empty { at, old, .. } if self.ino_at(at)?.is_some() => self.set(at, old)?,
                Step::Rmdir { at, .. } if self.ino_at(at)?.is_none() => self.make_dir(at)?,
                _ => {}
            }
        }
        self.settle(steps, UNDO)
    }

    /// Makes the steps durable, and notes that nothing has to be done any more.
    fn settle(self, steps: &[Step], journal: &[u8]) -> Result<(), Errno> {
        let mut dirs: BTreeSet<&[u8]> = BTreeSet::new();
        let above = |path: &'_ Path| path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        for step in steps {
            match step {
                Step::Move { from, to, .. } => dirs.extend([&from[..above(from)], &to[..above(to)]]),
                Step::Swap { at, .. } | Step::Rmdir { at, .. } => dirs.extend([&at[..above(at)]]),
                _ => {}
            }
        }
        for dir in dirs {
            match self.sync_dir(dir) {
                // Another object has the name now.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) | Ok(()) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.turn(journal, if journal == JOURNAL { DONE } else { UNDONE })
    }

    /// Takes a step, unless it was taken.
    ///
    /// # Errors
    /// `ESTALE`: another program has changed the file.
    fn take(self, step: &Step) -> Result<(), Errno> {
        match step {
            Step::Move { from, to, found } => {
                if self.is_at(to, found.0)? {
                    return Ok(());
                }
                self.check(from, *found)?;
                self.rename(from, to, RenameFlags::NOREPLACE)?;
                // Another program may have exchanged it since the check.
                self.check(to, *found)
            }
            Step::Swap { staged, at, ino, found } => {
                if self.is_at(at, *ino)? {
                    return Ok(());
                }
                self.rename(staged, at, RenameFlags::EXCHANGE)?;
                // Only now no program reaches it by its name any more.
                self.check(staged, *found)
            }
            Step::Overwrite { from, at, found, .. } => {
                if !self.is_at(at, found.0)? {
                    return Err(Errno::ESTALE);
                }
                self.copy(from, &self.open(at, OpenFlags::WRONLY)?)
            }
            Step::Change { at, ino, new, .. } if self.is_at(at, *ino)? => self.set(at, new),
            Step::Change { .. } => Err(Errno::ESTALE),
            Step::Empty { at, ino, old } if self.is_at(at, *ino)? => {
                self.set(at, &Attributes { mode: old.mode | 0o700, xattrs: None, ..*old })
            }
            Step::Rmdir { at, ino } if self.is_at(at, *ino)? => {
                let removed = self.0.context.rmdir(self.base(), at);
                // Another program has made a file in it.
                removed.map_err(|errno| if errno == Errno::ENOTEMPTY { Errno::ESTALE } else { errno })
            }
            // The directory has been removed.
            Step::Empty { .. } | Step::Rmdir { .. } => Ok(()),
        }
    }

    fn check(self, path: &[u8], expected: Found) -> Result<(), Errno> {
        if found(&self.attr(path)?) == expected { Ok(()) } else { Err(Errno::ESTALE) }
    }
}

/// Returns what a step finds of a file. The length and the time of a directory do not matter.
pub(super) fn found(attr: &Attr) -> Found {
    if attr.kind() == S_IFDIR { (attr.ino, 0, 0) } else { (attr.ino, attr.size, attr.mtime) }
}

/// The end of a commit that was cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// No commit was cut off.
    Nothing,
    /// The base has all changes of the commit.
    Completed,
    /// The base has no change of the commit.
    Undone,
}

impl Fork {
    /// Completes or undoes a commit to the base that was cut off, by a crash for example. To be called before the first fork is
    /// made, while no other process has forks of the base.
    ///
    /// # Errors
    /// `EIO`: the journal of the commit cannot be read; the errors of the base.
    pub fn recover(&self) -> Result<Recovered, Errno> {
        let target = Target(&self.0.shared.lower);
        if !target.has(b".")? {
            return Ok(Recovered::Nothing);
        }
        let recovered = if target.has(JOURNAL)? {
            match target.redo(&target.read(JOURNAL)?) {
                Ok(()) => Recovered::Completed,
                Err(_) if target.has(UNDONE)? => Recovered::Undone,
                Err((_, errno)) => return Err(errno),
            }
        } else if target.has(UNDO)? {
            target.undo(&target.read(UNDO)?)?;
            Recovered::Undone
        } else if target.has(DONE)? {
            Recovered::Completed
        } else if target.names(STAGING)?.is_empty() {
            Recovered::Nothing
        } else {
            Recovered::Undone
        };
        target.remove(STAGING)?;
        Ok(recovered)
    }
}
