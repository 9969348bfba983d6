//! Files: open ones, and how to open them.

use crate::metadata::{FileTimes, Metadata, Permissions};
use crate::path::AsPath;
use crate::{Context, error};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vfs::{Errno, OpenFile, OpenFlags, SetAttr};

/// An open file. It stays what it is when its name goes or moves.
///
/// Reading and writing go on from a position of its own; `&File` reads and writes too, so threads can share one.
#[derive(Debug)]
pub struct File {
    inner: OpenFile,
    position: Mutex<u64>,
}

impl File {
    #[inline]
    pub(crate) fn new(inner: OpenFile) -> Self {
        Self { inner, position: Mutex::new(0) }
    }

    /// Opens for reading.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(context: &Context, path: impl AsPath) -> io::Result<File> {
        OpenOptions::new().read(true).open(context, path)
    }

    /// Opens for writing; makes the file, or cuts it to nothing.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create(context: &Context, path: impl AsPath) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(context, path)
    }

    /// Makes a file that must not be there, open for reading and writing.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create_new(context: &Context, path: impl AsPath) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(context, path)
    }

    /// Its attributes: `fstat(2)`.
    ///
    /// # Errors
    /// None in practice.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.inner.attr().map(|attr| Metadata::new(attr, self.inner.dev())).map_err(error)
    }

    /// Its path now; with ` (deleted)` after it if its name has gone.
    #[must_use]
    pub fn path(&self, context: &Context) -> std::path::PathBuf {
        context.path_of(&self.inner)
    }

    /// Reads at `offset` without moving the position: `pread(2)`.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR` for a directory.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(offset, buf).map_err(error)
    }

    /// Writes at `offset` without moving the position: `pwrite(2)`. A file opened to append is written at its end.
    ///
    /// # Errors
    /// `EBADF` if not open for writing, `EFBIG`.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(offset, data).map(|(len, _)| len).map_err(error)
    }

    /// Cuts the file to `len` bytes or lets a hole follow its contents: `ftruncate(2)`.
    ///
    /// # Errors
    /// `EINVAL` if not open for writing or beyond the longest length.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len).map_err(error)
    }

    /// Changes the permission bits: `fchmod(2)`.
    ///
    /// # Errors
    /// `EPERM` if who opened it is not the owner.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.inner.set_attr(&SetAttr { mode: Some(permissions.mode()), ..SetAttr::default() }).map_err(error)
    }

    /// Changes the times: `futimens(3)`.
    ///
    /// # Errors
    /// `EPERM` if who opened it is not the owner, `EACCES` if it may not write either.
    pub fn set_times(&self, times: FileTimes) -> io::Result<()> {
        if times == FileTimes::new() {
            return Ok(());
        }
        let set = SetAttr { atime: times.atime, mtime: times.mtime, ..SetAttr::default() };
        self.inner.set_attr(&set).map_err(error)
    }

    /// Does nothing: the tree is in memory. For programs that call it.
    ///
    /// # Errors
    /// None.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    /// As [`File::sync_all`].
    ///
    /// # Errors
    /// None.
    pub fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn position(&self) -> MutexGuard<'_, u64> {
        // The position is a number: whole even if a thread panicked with it.
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut position = self.position();
        let read = self.read_at(buf, *position)?;
        *position += read as u64;
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut position = self.position();
        let (len, end) = self.inner.write_at(*position, data).map_err(error)?;
        *position = end;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    /// # Errors
    /// `EINVAL` before the start or beyond the longest length: `lseek(2)`.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut position = self.position();
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => position.checked_add_signed(offset),
            SeekFrom::End(offset) => {
                let attr = self.inner.attr().map_err(error)?;
                // A directory has no end to count from.
                if attr.is_dir() { None } else { attr.size.checked_add_signed(offset) }
            }
        };
        let target = target.filter(|&target| i64::try_from(target).is_ok()).ok_or_else(|| error(Errno::EINVAL))?;
        *position = target;
        Ok(target)
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

/// How to open a file: `std`'s options, and Linux's flags by number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are std's options")]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    mode: u32,
    custom_flags: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! option {
    ($(#[doc = $doc:literal])* $name:ident: $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&mut self, $name: $type) -> &mut Self {
            self.$name = $name;
            self
        }
    };
}

impl OpenOptions {
    /// Nothing set; a new file gets mode 0666 less the umask.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            mode: 0o666,
            custom_flags: 0,
        }
    }

    option! {
        /// For reading.
        read: bool
    }
    option! {
        /// For writing.
        write: bool
    }
    option! {
        /// For writing at the end.
        append: bool
    }
    option! {
        /// Cut the file to nothing.
        truncate: bool
    }
    option! {
        /// Make the file if it is not there.
        create: bool
    }
    option! {
        /// Make the file, which must not be there.
        create_new: bool
    }
    option! {
        /// Permission bits of a new file, before the umask.
        mode: u32
    }
    option! {
        /// Further flags by Linux's numbers on x86-64: `O_DIRECTORY` 0o200000, `O_NOFOLLOW` 0o400000.
        custom_flags: u32
    }

    /// Opens `path`.
    ///
    /// # Errors
    /// `EINVAL` for options that make no sense together, as in `std`; else those of `open(2)`.
    pub fn open(&self, context: &Context, path: impl AsPath) -> io::Result<File> {
        let flags = self.flags().ok_or_else(|| error(Errno::EINVAL))?;
        context.open_flags(path, flags, self.mode)
    }

    /// The flags of `open(2)`; `None` for options that make no sense together.
    fn flags(&self) -> Option<OpenFlags> {
        let access = match (self.read, self.write, self.append) {
            (true, false, false) => OpenFlags::RDONLY,
            (false, true, false) => OpenFlags::WRONLY,
            (true, true, false) => OpenFlags::RDWR,
            (false, _, true) => OpenFlags::WRONLY.union(OpenFlags::APPEND),
            (true, _, true) => OpenFlags::RDWR.union(OpenFlags::APPEND),
            (false, false, false) => return None,
        };
        let writes = self.write || self.append;
        let makes = self.truncate || self.create || self.create_new;
        if (makes && !writes) || (self.append && self.truncate && !self.create_new) {
            return None;
        }
        let creation = match (self.create, self.truncate, self.create_new) {
            (_, _, true) => OpenFlags::CREAT.union(OpenFlags::EXCL),
            (false, false, false) => OpenFlags::default(),
            (true, false, false) => OpenFlags::CREAT,
            (false, true, false) => OpenFlags::TRUNC,
            (true, true, false) => OpenFlags::CREAT.union(OpenFlags::TRUNC),
        };
        // As in std: the access mode is set by the options alone.
        let custom = OpenFlags::from_bits(self.custom_flags & !3);
        Some(access.union(creation).union(custom))
    }
}
