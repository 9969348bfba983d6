//! The mount point: created if it is missing.
//!
//! It is created and removed in a directory that is opened once, since other users may exchange names
//! above it.

use super::error::ServeError;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, unlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use vfs::Foreign;

/// A directory that this process created. Dropping it removes the directory, if that is empty.
#[derive(Debug)]
pub(super) struct CreatedDir {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Drop for CreatedDir {
    fn drop(&mut self) {
        // If something is in it or mounted on it, it stays.
        if let Err(error) = unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
            tracing::debug!(%error, path = %Foreign::of(&self.path), "the mount point stays");
        }
    }
}

/// Creates `path`, but not directories above it. `None` if it exists, or if they do not, which mounting will report.
///
/// # Errors
/// As for `mkdir(2)`.
pub(super) fn create(path: &Path) -> Result<Option<CreatedDir>, ServeError> {
    let failed = |error: io::Error| ServeError::Create { path: path.into(), reason: error.into() };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else { return Ok(None) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(parent, flags, Mode::empty());
    let created = opened.and_then(|parent| mkdirat(&parent, name, Mode::from_raw_mode(0o777)).map(|()| parent));
    match created {
        Ok(parent) => Ok(Some(CreatedDir { parent, name: name.into(), path: absolute })),
        Err(Errno::EXIST | Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}
