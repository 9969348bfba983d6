//! Listings of directories.
//!
//! # What it is
//! An open directory, which reads several entries at a time from the core, and the entries.
//! Operations on an entry use the entry's name in the listed directory, even after a move of the
//! directory.
//!
//! # How it is locked
//! By the core, while it reads several entries.
//!
//! # Where it comes from
//! `std::fs::ReadDir`, and `cap_std::fs::DirEntry` for the operations of an entry.

use crate::dir::Dir;
use crate::error::error;
use crate::file::{File, OpenOptions};
use crate::metadata::{FileType, Metadata};
use crate::view::View;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::vec;
use vfs::{OpenFile, Want};

/// The entries of a directory, without `.` and `..`, in no particular order.
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.create_dir("/music")?;
/// ctx.write("/music/song", "")?;
/// let names: Vec<_> = ctx.read_dir("/music")?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>()?;
/// assert_eq!(names, ["song"]);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// An entry that exists during the whole listing is returned exactly once, even if others are added
/// and removed.
pub struct ReadDir {
    dir: OpenFile,
    listed: Arc<Listed>,
    batch: vec::IntoIter<vfs::DirEntry>,
    done: bool,
    want: Want,
}

/// The directory that was listed.
struct Listed {
    /// The view that starts from the directory.
    view: View,
    /// The path that the caller used.
    path: PathBuf,
}

impl ReadDir {
    pub(crate) fn new(view: View, dir: OpenFile, path: PathBuf) -> Self {
        Self {
            dir,
            listed: Arc::new(Listed { view, path }),
            batch: Vec::new().into_iter(),
            done: false,
            want: Want::NAMES,
        }
    }

    /// Requests attributes with the entries, for a caller that uses the metadata of all entries: a
    /// file system that returns attributes with a listing is not called for each entry. The cache
    /// keeps these attributes for as long as they are valid.
    ///
    /// ```
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.create_dir("/music")?;
    /// ctx.write("/music/song", "la")?;
    /// let sizes = ctx.read_dir("/music")?.with_metadata().map(|entry| Ok(entry?.metadata()?.len()));
    /// assert_eq!(sizes.sum::<std::io::Result<u64>>()?, 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        self.want = Want::ATTRIBUTES;
        self
    }
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batch.next() {
                let name = OsString::from_vec(entry.name.into_vec());
                return Some(Ok(DirEntry { listed: self.listed.clone(), name, ino: entry.ino, kind: entry.kind }));
            }
            if self.done {
                return None;
            }
            match self.dir.next_entries_with(self.want) {
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

/// One entry of a directory, as it was at the listing. An entry keeps the directory open.
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.create_dir("/inbox")?;
/// ctx.write("/inbox/draft.tmp", "")?;
/// for entry in ctx.read_dir("/inbox")? {
///     let entry = entry?;
///     if entry.file_type()?.is_file() && entry.path().extension() == Some("tmp".as_ref()) {
///         entry.remove_file()?;
///     }
/// }
/// assert_eq!(ctx.read_dir("/inbox")?.count(), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct DirEntry {
    listed: Arc<Listed>,
    name: OsString,
    ino: u64,
    kind: u32,
}

impl DirEntry {
    /// Returns the entry's name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// Returns the entry's name, not copied.
    #[must_use]
    pub fn file_name_ref(&self) -> &OsStr {
        &self.name
    }

    /// Returns the directory's path, as the caller wrote it, and the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.listed.path.join(&self.name)
    }

    /// Returns the kind of the file.
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(FileType::new(self.kind))
    }

    /// Returns the inode number.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Returns metadata of the file that has the name in that directory now; a symbolic link is not
    /// followed.
    ///
    /// # Errors
    /// As for [`View::symlink_metadata`].
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.listed.view.symlink_metadata(&self.name)
    }

    /// Opens the entry's file for reading.
    ///
    /// # Errors
    /// As for [`View::open`].
    pub fn open(&self) -> io::Result<File> {
        self.listed.view.open(&self.name)
    }

    /// Opens the entry's file with `options`.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_with(&self, options: &OpenOptions) -> io::Result<File> {
        options.open(&self.listed.view, &self.name)
    }

    /// Returns a handle of the entry, if the entry is a directory.
    ///
    /// # Errors
    /// As for [`View::open_dir`].
    pub fn open_dir(&self) -> io::Result<Dir> {
        self.listed.view.open_dir(&self.name)
    }

    /// Removes the entry, if it is not a directory.
    ///
    /// # Errors
    /// As for [`View::remove_file`].
    pub fn remove_file(&self) -> io::Result<()> {
        self.listed.view.remove_file(&self.name)
    }

    /// Removes the entry, if it is an empty directory.
    ///
    /// # Errors
    /// As for [`View::remove_dir`].
    pub fn remove_dir(&self) -> io::Result<()> {
        self.listed.view.remove_dir(&self.name)
    }
}

impl fmt::Debug for ReadDir {
    /// Writes the path, as `std` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.listed.path).finish()
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}
