//! Removing a directory and all below it, by handles.
//!
//! # What it is
//! Each directory on the way is opened once, as a directory and not through a symbolic link, and
//! its entries are removed by name from that handle. A thread that renames directories meanwhile,
//! or replaces one by a symbolic link, cannot make it remove anything but the contents of the
//! directories that it opened. The code does not recurse, since a tree may be deeper than the stack
//! allows.
//!
//! # What it is not
//! Atomic: other threads see a half-emptied directory, and entries made during the call may stay,
//! with `ENOTEMPTY`.
//!
//! # How it is locked
//! Each removal has its own locks.
//!
//! # Where it comes from
//! CVE-2022-21658, the race of `std::fs::remove_dir_all`, and its fix.

use super::View;
use std::vec;
use vfs::{Base, Errno, OpenFile, OpenFlags};

/// A directory whose entries are being removed.
struct Level {
    dir: OpenFile,
    batch: vec::IntoIter<vfs::DirEntry>,
    /// Its name in its parent.
    name: Box<[u8]>,
}

impl Level {
    fn new(dir: OpenFile, name: Box<[u8]>) -> Self {
        Self { dir, batch: Vec::new().into_iter(), name }
    }

    fn next(&mut self) -> Result<Option<vfs::DirEntry>, Errno> {
        if self.batch.as_slice().is_empty() {
            self.batch = self.dir.next_entries()?.into_iter();
        }
        Ok(self.batch.next())
    }
}

impl View {
    pub(super) fn open_to_empty(&self, base: Base<'_>, path: &[u8]) -> Result<OpenFile, Errno> {
        self.inner.open(base, path, OpenFlags::DIRECTORY.union(OpenFlags::NOFOLLOW), 0)
    }

    /// Removes the contents of the directory `top`.
    pub(crate) fn empty(&self, top: OpenFile) -> Result<(), Errno> {
        let mut levels = vec![Level::new(top, Box::default())];
        while let Some(level) = levels.last_mut() {
            match level.next()? {
                Some(entry) => {
                    let below = self.remove_or_enter(&level.dir, &entry)?;
                    levels.extend(below.map(|dir| Level::new(dir, entry.name)));
                }
                None => {
                    let name = levels.pop().map(|done| done.name);
                    if let (Some(above), Some(name)) = (levels.last(), name) {
                        there_or_not(self.inner.rmdir(self.within_limits(&above.dir), &name))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes an entry; if it is a directory, opens it instead.
    fn remove_or_enter(&self, dir: &OpenFile, entry: &vfs::DirEntry) -> Result<Option<OpenFile>, Errno> {
        let base = self.within_limits(dir);
        let mut is_dir = entry.kind == vfs::S_IFDIR;
        // The entry's type may have changed since the listing. Each further round of this loop
        // needs a change by another thread.
        loop {
            let outcome = if is_dir {
                self.open_to_empty(base, &entry.name).map(Some)
            } else {
                self.inner.unlink(base, &entry.name).map(|()| None)
            };
            match outcome {
                Err(Errno::ENOENT) => return Ok(None),
                Err(Errno::ENOTDIR | Errno::ELOOP) if is_dir => is_dir = false,
                Err(Errno::EISDIR) if !is_dir => is_dir = true,
                outcome => return outcome,
            }
        }
    }

    fn within_limits<'a>(&self, dir: &'a OpenFile) -> Base<'a> {
        Base::at(dir.held()).within(self.limits())
    }
}

/// Turns `ENOENT` into success: another thread may have removed the entry first.
fn there_or_not(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::ENOENT) => Ok(()),
        removed => removed,
    }
}
