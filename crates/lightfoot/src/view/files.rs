//! Contents by path: open, read, write, copy.

use super::View;
use crate::dir::Dir;
use crate::error::error;
use crate::file::{File, OpenOptions};
use crate::metadata::Permissions;
use crate::path::AsPath;
use std::io::{self, Read, Write};
use vfs::{Errno, OpenFlags, Resolve, SeekFor};

/// The number of bytes that a copy reads at a time.
const COPY_BYTES: usize = 128 << 10;

/// # Files and their contents
///
/// ```
/// use lightfoot::{OpenOptions, Vfs};
/// use std::io::{Read, Write};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/notes", "one\n")?;
/// assert_eq!(ctx.read_to_string("/notes")?, "one\n");
/// ctx.open_with("/notes", OpenOptions::new().append(true))?.write_all(b"two\n")?;
///
/// let mut first = [0; 3];
/// ctx.open("/notes")?.read_exact(&mut first)?;
/// assert_eq!(&first, b"one");
/// assert_eq!(ctx.copy("/notes", "/backup")?, 8);
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As for `open(2)`; see [`OpenOptions`] for other modes.
    pub fn open(&self, path: impl AsPath) -> io::Result<File> {
        self.open_flags(path.as_path_bytes(), OpenFlags::RDONLY, 0, Resolve::default())
    }

    /// Opens a file with `options`.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open_with(&self, path: impl AsPath, options: &OpenOptions) -> io::Result<File> {
        options.open(self, path)
    }

    /// Opens a file for writing; creates or truncates it.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create(&self, path: impl AsPath) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(self, path)
    }

    /// Creates a file, which must not exist, for reading and writing.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`]; `EEXIST`.
    pub fn create_new(&self, path: impl AsPath) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self, path)
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// As for `open(2)`, `EISDIR`.
    pub fn read(&self, path: impl AsPath) -> io::Result<Vec<u8>> {
        let mut file = self.open(path)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        let mut contents = Vec::new();
        contents.try_reserve_exact(len).map_err(|_| error(Errno::ENOMEM))?;
        file.read_to_end(&mut contents)?;
        Ok(contents)
    }

    /// Returns the contents of a file that is UTF-8.
    ///
    /// # Errors
    /// As for [`View::read`]; `InvalidData` if it is not UTF-8.
    pub fn read_to_string(&self, path: impl AsPath) -> io::Result<String> {
        let mut text = String::new();
        self.open(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Creates or replaces a file with these contents.
    ///
    /// # Errors
    /// As for `open(2)` and `write(2)`.
    pub fn write(&self, path: impl AsPath, contents: impl AsRef<[u8]>) -> io::Result<()> {
        self.create(path)?.write_all(contents.as_ref())
    }

    /// Copies contents and permission bits; returns the length. Holes stay holes. The file system shares the storage where it can.
    /// A file copied onto itself becomes empty, as with `std::fs::copy`.
    ///
    /// # Errors
    /// As for `open(2)`, `read(2)` and `write(2)`; `EINVAL` if `from` is not a regular file.
    pub fn copy(&self, from: impl AsPath, to: impl AsPath) -> io::Result<u64> {
        self.copy_between(from.as_path_bytes(), self, to.as_path_bytes())
    }

    /// Makes a file, which must not exist, with the contents and permission bits of `from`, and
    /// shares the storage of `from` until one of the files changes: `cp --reflink=always`. Fails
    /// where [`View::copy`] would copy.
    ///
    /// ```
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.write("/image", vec![7; 1 << 20])?;
    /// ctx.reflink("/image", "/snapshot")?;
    /// assert_eq!(ctx.metadata("/snapshot")?.len(), 1 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for `open(2)`; `EEXIST`; `EINVAL` if `from` is not a regular file; `EOPNOTSUPP` if the
    /// file system cannot share storage, `EXDEV` for two file systems: in both cases `to` does not
    /// exist after the call.
    pub fn reflink(&self, from: impl AsPath, to: impl AsPath) -> io::Result<()> {
        let to = to.as_path_bytes();
        let (source, mode) = self.copied(from.as_path_bytes())?;
        let target = OpenOptions::new().write(true).create_new(true).mode(mode).open(self, to)?;
        let done =
            source.clone_to(0, &target, 0, 0).and_then(|()| target.set_permissions(Permissions::from_mode(mode)));
        done.inspect_err(|_| drop(self.remove_file(to)))
    }

    /// As [`View::copy`], but to a path that starts from another directory.
    ///
    /// # Errors
    /// As for [`View::copy`]; `EXDEV` for a directory of another tree.
    pub fn copy_to(&self, from: impl AsPath, to_dir: &Dir, to: impl AsPath) -> io::Result<u64> {
        self.copy_between(from.as_path_bytes(), &self.as_seen_from(to_dir), to.as_path_bytes())
    }
}

impl View {
    /// Opens a file with the flags of `open(2)` and further limits of the walk.
    pub(crate) fn open_flags(&self, path: &[u8], flags: OpenFlags, mode: u32, limits: Resolve) -> io::Result<File> {
        // Both sets of limits are valid, but together they may exclude each other.
        let limits = Resolve::from_linux(self.limits().bits() | limits.bits()).map_err(error)?;
        self.inner.open(self.base().within(limits), path, flags, mode).map(File::new).map_err(error)
    }

    /// Opens a regular file to copy; returns it with its permission bits.
    fn copied(&self, from: &[u8]) -> io::Result<(File, u32)> {
        let source = self.open(from)?;
        let metadata = source.metadata()?;
        if metadata.is_file() { Ok((source, metadata.mode() & 0o7777)) } else { Err(error(Errno::EINVAL)) }
    }

    fn copy_between(&self, from: &[u8], to_view: &View, to: &[u8]) -> io::Result<u64> {
        let (source, mode) = self.copied(from)?;
        let target = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(to_view, to)?;
        target.set_permissions(Permissions::from_mode(mode))?;
        copy_contents(&source, &target)
    }
}

/// Copies data; holes stay holes. Returns the length.
fn copy_contents(source: &File, target: &File) -> io::Result<u64> {
    let mut buf = Vec::new();
    let mut at = 0;
    loop {
        let hole = match source.inner().seek_for(SeekFor::Data, at) {
            Ok(data) => {
                at = data;
                source.inner().seek_for(SeekFor::Hole, data)
            }
            Err(errno) => Err(errno),
        };
        match hole {
            // The data became a hole after the search: copies zeros.
            Ok(hole) => at = copy_data(source, target, &mut buf, at, hole.max(at + 1))?,
            Err(Errno::ENXIO) => break,
            Err(errno) => return Err(error(errno)),
        }
    }
    let len = source.metadata()?.len();
    if at < len {
        target.set_len(len)?;
        at = len;
    }
    // Copies data that was appended during the copy, and contents of files that report length 0.
    copy_range(source, target, &mut buf, at, u64::MAX)
}

/// As [`copy_range`], but the file system copies if both files are on the same file system.
fn copy_data(source: &File, target: &File, buf: &mut Vec<u8>, mut at: u64, end: u64) -> io::Result<u64> {
    while at < end {
        match source.inner().copy_to(at, target.inner(), at, end - at) {
            Ok(0) => return Ok(at),
            Ok(copied) => at += copied,
            Err(Errno::EXDEV) => return copy_range(source, target, buf, at, end),
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(at)
}

/// Copies the bytes from `at` to `end`, or to the end of the contents; returns where it stopped.
fn copy_range(source: &File, target: &File, buf: &mut Vec<u8>, mut at: u64, end: u64) -> io::Result<u64> {
    buf.resize(COPY_BYTES, 0);
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(buf.len());
        let read = source.read_at(&mut buf[..most], at)?;
        if read == 0 {
            break;
        }
        target.write_all_at(&buf[..read], at)?;
        at += read as u64;
    }
    Ok(at)
}
