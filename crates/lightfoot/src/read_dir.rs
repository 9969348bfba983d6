//! Listings.

use crate::metadata::{FileType, Metadata};
use crate::{Context, error};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::vec;
use vfs::OpenFile;

/// The entries of a directory, without `.` and `..`, in no particular order.
///
/// An entry that is there all the while is given exactly once, whatever comes and goes beside it.
#[derive(Debug)]
pub struct ReadDir {
    dir: OpenFile,
    path: PathBuf,
    batch: vec::IntoIter<vfs::DirEntry>,
    done: bool,
}

impl ReadDir {
    pub(crate) fn new(dir: OpenFile, path: PathBuf) -> Self {
        Self { dir, path, batch: Vec::new().into_iter(), done: false }
    }
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batch.next() {
                let name = OsString::from_vec(entry.name.into_vec());
                let path = self.path.join(&name);
                return Some(Ok(DirEntry { name, path, ino: entry.ino, kind: entry.kind }));
            }
            if self.done {
                return None;
            }
            match self.dir.next_entries() {
                Ok(entries) => {
                    self.done = entries.is_empty();
                    self.batch = entries.into_iter();
                }
                Err(errno) => {
                    self.done = true;
                    return Some(Err(error(errno)));
                }
            }
        }
    }
}

/// One entry of a directory, as it was when it was listed.
#[derive(Clone, Debug)]
pub struct DirEntry {
    name: OsString,
    path: PathBuf,
    ino: u64,
    kind: u32,
}

impl DirEntry {
    /// Its name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// The directory's path, as it was given, and the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// What kind of file it is.
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(FileType::new(self.kind))
    }

    /// Inode number.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Metadata of what the path is now; a symbolic link is not followed.
    ///
    /// # Errors
    /// As for [`Context::symlink_metadata`].
    pub fn metadata(&self, context: &Context) -> io::Result<Metadata> {
        context.symlink_metadata(Path::new(&self.path))
    }
}
