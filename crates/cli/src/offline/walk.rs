//! All that lies below a path, each directory before what is in it, in the order of the bytes of their names.
//!
//! # What it is
//! A stack of open directories: one level is listed at a time, and each name is looked at from the handle of its
//! directory. So a tree may be deeper than a path can be long, and than the stack. Symbolic links are not followed.
//!
//! # What it is not
//! A snapshot: what comes and goes meanwhile may be seen or not.

use super::{Failure, Opened, join};
use lightfoot::{Dir, DirEntry, Metadata};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::vec;

/// Which entries of a directory are given.
pub(super) type Keep = fn(&DirEntry) -> bool;

/// A walk over a tree.
pub(super) struct Walk<'o> {
    opened: &'o Opened,
    keep: Keep,
    levels: Vec<Level>,
    /// What comes next, before the levels are gone on with.
    next: Next,
    /// Directories as deep as this are not entered; the start has depth 0.
    most_depth: usize,
}

/// A directory whose entries are being given.
struct Level {
    dir: Dir,
    path: Vec<u8>,
    names: vec::IntoIter<OsString>,
}

enum Next {
    /// The start itself.
    Start(Vec<u8>, bool),
    /// What is in this directory, which was given last.
    Enter(Dir, OsString, Vec<u8>),
    /// The next entry of the innermost level.
    Entry,
}

/// What a walk finds.
pub(super) struct Found {
    /// Its path: that of the start, and the names on the way.
    pub(super) path: Vec<u8>,
    /// Directories between it and the start, and one; 0 for the start.
    pub(super) depth: usize,
    /// Whether nothing comes after it in its directory.
    pub(super) is_last: bool,
    /// A symbolic link's are its own.
    pub(super) metadata: Metadata,
    dir: Dir,
    name: OsString,
}

impl Found {
    /// The last component of its path.
    pub(super) fn name(&self) -> &[u8] {
        let end = self.path.iter().rposition(|&byte| byte != b'/').map_or(self.path.len(), |last| last + 1);
        let start = self.path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        &self.path[start..end.max(start)]
    }

    /// Whether it is a file without contents or a directory without entries.
    pub(super) fn is_empty(&self, opened: &Opened) -> bool {
        if self.metadata.is_dir() {
            let told = |error| opened.troubles.tell(&opened.failure("listed", &self.path, error));
            let first = self.dir.open_dir(&self.name).and_then(|dir| dir.entries()?.next().transpose());
            return first.map_err(told).is_ok_and(|first| first.is_none());
        }
        self.metadata.is_file() && self.metadata.len() == 0
    }

    /// What it says, if it is a symbolic link.
    pub(super) fn target(&self, opened: &Opened) -> Option<Vec<u8>> {
        if !self.metadata.is_symlink() {
            return None;
        }
        let told = |error| opened.troubles.tell(&opened.failure("read", &self.path, error));
        self.dir.read_link(&self.name).map_err(told).ok().map(|target| target.into_os_string().into_vec())
    }
}

impl<'o> Walk<'o> {
    /// A walk from `path` down; `follows` the symbolic link that may be there.
    pub(super) fn new(opened: &'o Opened, path: &[u8], follows: bool, most_depth: usize) -> Self {
        Self { opened, keep: |_| true, levels: Vec::new(), next: Next::Start(path.to_vec(), follows), most_depth }
    }

    /// The same of these entries alone, and what is below them.
    pub(super) fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    fn start(&mut self, path: Vec<u8>, follows: bool) -> Result<Found, Failure> {
        let context = &self.opened.context;
        let metadata = if follows { context.metadata(&path) } else { context.symlink_metadata(&path) };
        let found = metadata.and_then(|metadata| Ok((metadata, context.root_dir()?)));
        let (metadata, dir) = found.map_err(|error| self.opened.failure("looked at", &path, error))?;
        let name = OsString::from_vec(path.clone());
        Ok(self.found(Found { path, depth: 0, is_last: true, metadata, dir, name }))
    }

    /// Notes that it is to be entered, if it is.
    fn found(&mut self, found: Found) -> Found {
        if found.metadata.is_dir() && found.depth < self.most_depth {
            self.next = Next::Enter(found.dir.clone(), found.name.clone(), found.path.clone());
        }
        found
    }

    fn enter(&mut self, above: &Dir, name: &OsString, path: Vec<u8>) -> Result<(), Failure> {
        let listed = above.open_dir(name).and_then(|dir| Ok((names(&dir, self.keep)?, dir)));
        let (names, dir) = listed.map_err(|error| self.opened.failure("listed", &path, error))?;
        self.levels.push(Level { dir, path, names: names.into_iter() });
        Ok(())
    }

    fn entry(&mut self) -> Option<Result<Found, Failure>> {
        let depth = self.levels.len();
        let level = self.levels.last_mut()?;
        let name = level.names.next()?;
        let path = join(&level.path, name.as_bytes());
        let found = match level.dir.symlink_metadata(&name) {
            Ok(metadata) => {
                let is_last = level.names.as_slice().is_empty();
                Ok(Found { path, depth, is_last, metadata, dir: level.dir.clone(), name })
            }
            Err(error) => Err(self.opened.failure("looked at", &path, error)),
        };
        Some(found.map(|found| self.found(found)))
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Found, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match std::mem::replace(&mut self.next, Next::Entry) {
                Next::Start(path, follows) => return Some(self.start(path, follows)),
                Next::Enter(above, name, path) => {
                    if let Err(failure) = self.enter(&above, &name, path) {
                        return Some(Err(failure));
                    }
                }
                Next::Entry => match self.entry() {
                    None if self.levels.pop().is_none() => return None,
                    None => {}
                    found => return found,
                },
            }
        }
    }
}

/// The names in a directory, in the order of their bytes.
pub(super) fn names(dir: &Dir, keep: Keep) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        if keep(&entry) {
            names.push(entry.file_name());
        }
    }
    names.sort_unstable();
    Ok(names)
}
