//! The files of the old and of the new state of a fork, at the paths that changed.

use super::CompareError;
use crate::signals::Signals;
use crate::workspaces::WorkspacesError;
use crate::workspaces_server::{ChangeLine, Reply, Request};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The bits of an inode number that name the file; the others name the fork.
const FILE: u64 = (1 << 41) - 1;

/// The largest file in a patch.
const LARGEST: u64 = 1 << 30;

/// The process that has the forks.
#[derive(Clone, Copy)]
pub(crate) struct Server<'s> {
    /// Where it shows them.
    pub(crate) mountpoint: &'s Path,
    /// Sends it a request.
    pub(crate) request: &'s dyn Fn(&Request) -> Result<Reply, WorkspacesError>,
}

/// The old and the new state of a fork. Both are forks, which stay as they are, and end with this.
pub(super) struct Sides<'s> {
    pub(super) old: Snapshot<'s>,
    pub(super) new: Snapshot<'s>,
    /// The changes from one to the other.
    pub(super) changes: Vec<ChangeLine>,
    signals: Signals,
}

/// A read-only fork, which ends with this.
pub(super) struct Snapshot<'s> {
    server: Server<'s>,
    name: String,
    at: PathBuf,
}

/// A file of one side.
pub(super) struct Entry {
    /// The path from the root of the fork.
    pub(super) path: PathBuf,
    /// The root of the fork.
    side: PathBuf,
    pub(super) meta: Metadata,
}

/// A file before and after; one of them may be missing.
pub(super) type Pair<'a> = (Option<&'a Entry>, Option<&'a Entry>);

/// The files of one side, by path.
pub(super) type Files = BTreeMap<PathBuf, Entry>;

impl<'s> Snapshot<'s> {
    fn new(server: Server<'s>, of: &str, is_origin: bool, side: &str) -> Result<Self, WorkspacesError> {
        let name = format!(".diff-{}-{side}", std::process::id());
        let (from, at) = (of.into(), server.mountpoint.join("w").join(&name));
        let made = Self { server, name: name.clone(), at };
        let (bytes, inodes) = (Some(u64::MAX), Some(u64::MAX));
        (server.request)(&Request::Fork { from, name, bytes, inodes, read_only: true, origin: is_origin })?;
        Ok(made)
    }

    /// Adds what is at a path, and everything below it.
    fn walk(&self, path: &Path, files: &mut Files) -> Result<(), CompareError> {
        let mut paths = vec![path.to_path_buf()];
        while let Some(path) = paths.pop() {
            let Some(entry) = self.entry(&path)? else { continue };
            if entry.meta.is_dir() {
                for name in fs::read_dir(entry.at()).map_err(CompareError::of(&path))? {
                    paths.push(path.join(name.map_err(CompareError::of(&path))?.file_name()));
                }
            }
            files.insert(path, entry);
        }
        Ok(())
    }

    pub(super) fn entry(&self, path: &Path) -> Result<Option<Entry>, CompareError> {
        let at = self.at.join(path);
        match fs::symlink_metadata(&at) {
            Ok(meta) => Ok(Some(Entry { path: path.into(), side: self.at.clone(), meta })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(CompareError::of(path)(error)),
        }
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let end = Request::Discard { name: self.name.clone(), lazy: true, wait: false, progress: false };
        if let Err(error) = (self.server.request)(&end) {
            tracing::debug!(%error, "discard");
        }
    }
}

impl Entry {
    /// Returns where it is.
    pub(super) fn at(&self) -> PathBuf {
        self.side.join(&self.path)
    }

    /// Returns the number of the file, which both sides share.
    pub(super) fn file(&self) -> u64 {
        self.meta.ino() & FILE
    }

    /// Returns whether nothing has changed from `self` to `new`. A change in a fork sets the change time.
    pub(super) fn is_as(&self, new: &Self) -> bool {
        let times = |meta: &Metadata| (meta.ctime(), meta.ctime_nsec(), meta.size(), meta.mode());
        self.file() == new.file() && times(&self.meta) == times(&new.meta)
    }

    /// Returns the bytes of a file, or the target of a symbolic link.
    pub(super) fn body(&self) -> Result<Vec<u8>, CompareError> {
        if self.meta.is_symlink() {
            let target = fs::read_link(self.at()).map_err(CompareError::of(&self.path))?;
            return Ok(target.into_os_string().into_vec());
        }
        if self.meta.size() > LARGEST {
            return Err(CompareError::TooLarge { path: self.path.clone(), bytes: self.meta.size() });
        }
        let mut body = Vec::new();
        self.open()?.read_to_end(&mut body).map_err(CompareError::of(&self.path))?;
        Ok(body)
    }

    /// Opens a file. The process of the mount may be another user's, so no link is followed.
    pub(super) fn open(&self) -> Result<File, CompareError> {
        let (flags, resolve) =
            (OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS);
        let opened = rustix::fs::open(&self.side, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|side| openat2(side, &self.path, flags, Mode::empty(), resolve));
        opened.map(File::from).map_err(|errno| CompareError::of(&self.path)(errno.into()))
    }
}

impl<'s> Sides<'s> {
    /// Takes both sides: the fork `name`, and its beginning, or the fork `other`.
    ///
    /// # Errors
    /// If the process of the mount refuses, or no signal can be received.
    pub(super) fn new(server: Server<'s>, name: &str, other: Option<&str>) -> Result<Self, WorkspacesError> {
        let signals = Signals::listen().map_err(CompareError::Signals)?;
        let old = Snapshot::new(server, other.unwrap_or(name), other.is_none(), "old")?;
        let new = Snapshot::new(server, name, false, "new")?;
        let changes = listed(server, new.name.clone(), Some(old.name.clone()))?;
        let is_below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if !changes.iter().flat_map(ChangeLine::paths).all(is_below) {
            return Err(WorkspacesError::other_reply());
        }
        Ok(Self { old, new, changes, signals })
    }

    /// Fails after a signal.
    ///
    /// # Errors
    /// [`CompareError::Interrupted`].
    pub(super) fn check(&self) -> Result<(), CompareError> {
        match self.signals.number() {
            0 => Ok(()),
            number => Err(CompareError::Interrupted(number)),
        }
    }

    /// Returns the files at the paths that changed, of both sides, with everything below a path that is new, removed or renamed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn files(&self) -> Result<[Files; 2], CompareError> {
        let mut files = [Files::new(), Files::new()];
        let sides = [&self.old, &self.new];
        for path in self.changes.iter().flat_map(ChangeLine::paths) {
            self.check()?;
            // A directory above it has its files here already.
            if files.iter().any(|files| files.contains_key(path)) {
                continue;
            }
            let [old, new] = [self.old.entry(path)?, self.new.entry(path)?];
            let is_same = old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| old.file() == new.file());
            for ((side, entry), files) in sides.into_iter().zip([old, new]).zip(&mut files) {
                match entry {
                    Some(entry) if is_same => drop(files.insert(path.into(), entry)),
                    _ => side.walk(path, files)?,
                }
            }
        }
        Ok(files)
    }
}

/// Returns pairs of files that are not directories, by path. A file that moved is one pair, as is a file that an editor replaced in a
/// directory that moved.
pub(super) fn pairs<'a>([old, new]: &'a [Files; 2], changes: &[ChangeLine]) -> Vec<Pair<'a>> {
    let is_kind = |one: &Entry, other: &Entry| one.meta.file_type() == other.meta.file_type();
    let stays = |entry: &Entry, there: &Files| there.get(&entry.path).is_some_and(|other| is_kind(entry, other));
    let is_file = |entry: &&Entry| !entry.meta.is_dir();
    let mut gone: BTreeMap<&Path, &Entry> = BTreeMap::new();
    gone.extend(old.values().filter(|entry| is_file(entry) && !stays(entry, new)).map(|entry| (&*entry.path, entry)));
    let numbers: HashMap<u64, &Path> = gone.values().map(|entry| (entry.file(), &*entry.path)).collect();
    let moved: Vec<Vec<&Path>> =
        changes.iter().map(|change| change.paths().collect()).filter(|of: &Vec<_>| of.len() == 2).collect();
    let before =
        |path: &Path| moved.iter().find_map(|dir| path.strip_prefix(dir[0]).ok().map(|rest| dir[1].join(rest)));
    let mut pairs = BTreeMap::new();
    for entry in new.values().filter(is_file) {
        let from = if stays(entry, old) {
            old.get(&entry.path)
        } else {
            let by_number = numbers.get(&entry.file()).and_then(|path| gone.get(path).copied());
            let from = by_number.or_else(|| gone.get(&*before(&entry.path)?).copied());
            from.filter(|from| is_kind(from, entry)).and_then(|from| gone.remove(&*from.path))
        };
        if !from.is_some_and(|from| from.path == entry.path && from.is_as(entry)) {
            pairs.insert((&*entry.path, true), (from, Some(entry)));
        }
    }
    // In front of a file of another kind at the same path.
    pairs.extend(gone.into_iter().map(|(path, entry)| ((path, false), (Some(entry), None))));
    pairs.into_values().collect()
}

/// Returns the changes of a fork since its beginning, or since the fork `other`.
///
/// # Errors
/// If the process of the mount refuses.
pub(crate) fn listed(
    server: Server<'_>,
    name: String,
    other: Option<String>,
) -> Result<Vec<ChangeLine>, WorkspacesError> {
    match (server.request)(&Request::Diff { name, other })? {
        Reply::Changes(changes) => Ok(changes),
        _ => Err(WorkspacesError::other_reply()),
    }
}
