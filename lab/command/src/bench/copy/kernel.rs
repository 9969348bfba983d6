//! The kernel's side: a directory tree below a [`Scratch`]. All calls name paths relative to a
//! descriptor of its root, so that the path to the temporary directory is not measured.

use super::{Contents, Side};
use crate::bench::scratch::Scratch;
use crate::error::Error;
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// A copy in the kernel's hands.
pub(crate) struct KernelCopy {
    root: OwnedFd,
    scratch: Scratch,
}

impl KernelCopy {
    pub(crate) fn new(scratch: Scratch) -> Result<Self, Error> {
        let root = fs::openat(CWD, scratch.path(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let root = root.map_err(|error| super::failed::<Self>(b"/", error.into()))?;
        Ok(Self { root, scratch })
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Returns a descriptor of the directory at `path` for one thread alone: threads that share one
    /// write to its reference count.
    pub(crate) fn open_dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        Ok(fs::openat(&self.root, relative(path), flags, Mode::empty())?)
    }

    pub(crate) fn len(&self, path: &[u8]) -> io::Result<u64> {
        Ok(fs::statat(&self.root, relative(path), AtFlags::empty())?.st_size.unsigned_abs())
    }

    pub(crate) fn can_open(&self, path: &[u8]) -> bool {
        fs::openat(&self.root, relative(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok()
    }

    pub(crate) fn mkdir(&self, path: &[u8]) -> io::Result<()> {
        Side::mkdir(self, path)
    }

    /// `failure` of the copy, as the lack of space if it is one.
    pub(super) fn full(&self, failure: Error, done: usize, entries: usize, bytes: u64) -> Error {
        let is_full = |error: &io::Error| {
            Errno::from_io_error(error).is_some_and(|errno| [Errno::NOSPC, Errno::DQUOT].contains(&errno))
        };
        match failure {
            Error::Copy { error, .. } if is_full(&error) => Error::NoSpace {
                dir: self.scratch.parent().into(),
                file_system: self.scratch.file_system().into(),
                done,
                entries,
                bytes,
                free: self.scratch.free_bytes(),
            },
            other => other,
        }
    }
}

/// Returns the path that leads from the root's descriptor to where `path` leads from the root.
fn relative(path: &[u8]) -> &[u8] {
    match path.strip_prefix(b"/").unwrap_or(path) {
        b"" => b".",
        relative => relative,
    }
}

impl Side for KernelCopy {
    const NAME: &'static str = "the kernel's side";

    fn mkdir(&self, path: &[u8]) -> io::Result<()> {
        Ok(fs::mkdirat(&self.root, relative(path), Mode::RWXU)?)
    }

    fn make_file(&self, path: &[u8], mode: u32, contents: Contents<'_>) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = fs::openat(&self.root, relative(path), flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        match contents {
            Contents::Bytes(bytes) => file.write_all(bytes)?,
            Contents::Hole(len) => file.set_len(len)?,
        }
        Ok(fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    fn symlink(&self, path: &[u8], body: &[u8]) -> io::Result<()> {
        Ok(fs::symlinkat(body, &self.root, relative(path))?)
    }

    fn mknod(&self, path: &[u8], file_type: u32, mode: u32, rdev: u64) -> io::Result<()> {
        fs::mknodat(&self.root, relative(path), FileType::from_raw_mode(file_type), Mode::RUSR, rdev)?;
        Side::chmod(self, path, mode)
    }

    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        Ok(fs::chmodat(&self.root, relative(path), Mode::from_raw_mode(mode), AtFlags::empty())?)
    }
}
