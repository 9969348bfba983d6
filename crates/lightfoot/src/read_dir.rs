//! Listings of directories.
//!
//! # What it is
//! An open directory that returns its entries in batches, and its entries. Operations on an entry use its name in the
//! directory that was listed, also after that was moved.
//!
//! # How it is locked
//! By the core, for each batch.
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
/// An entry that exists during the whole listing is returned exactly once, even if others come and go.
pub struct ReadDir {
    dir: OpenFile,
    listed: Arc<Listed>,
    batch: vec::IntoIter<vfs::DirEntry>,
    done: bool,
    want: Want,
}

/// The directory that was listed.
struct Listed {
    /// From there.
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

    /// These entries, for a caller that uses the metadata of all of them: a file system that
    /// returns attributes with a listing is not called for each entry. The cache then keeps the
    /// attributes, like any file's, for as long as they are valid.
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

/// One entry of a directory, as it was when it was listed. It keeps the directory open.
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
    /// Its name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// Its name, not copied.
    #[must_use]
    pub fn file_name_ref(&self) -> &OsStr {
        &self.name
    }

    /// The directory's path, as the caller wrote it, and the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.listed.path.join(&self.name)
    }

    /// The kind of the file.
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

    /// Metadata of the file that has the name in that directory now; a symbolic link is not followed.
    ///
    /// # Errors
    /// As for [`View::symlink_metadata`].
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.listed.view.symlink_metadata(&self.name)
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// As for [`View::open`].
    pub fn open(&self) -> io::Result<File> {
        self.listed.view.open(&self.name)
    }

    /// Opens it with `options`.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_with(&self, options: &OpenOptions) -> io::Result<File> {
        options.open(&self.listed.view, &self.name)
    }

    /// A handle of it, if it is a directory.
    ///
    /// # Errors
    /// As for [`View::open_dir`].
    pub fn open_dir(&self) -> io::Result<Dir> {
        self.listed.view.open_dir(&self.name)
    }

    /// Removes it, if it is not a directory.
    ///
    /// # Errors
    /// As for [`View::remove_file`].
    pub fn remove_file(&self) -> io::Result<()> {
        self.listed.view.remove_file(&self.name)
    }

    /// Removes it, if it is an empty directory.
    ///
    /// # Errors
    /// As for [`View::remove_dir`].
    pub fn remove_dir(&self) -> io::Result<()> {
        self.listed.view.remove_dir(&self.name)
    }
}

impl fmt::Debug for ReadDir {
    /// As `std`'s: the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.listed.path).finish()
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}
