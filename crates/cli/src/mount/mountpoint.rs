//! The mount point: created if it is missing.

use super::error::ServeError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that this process created. Dropping it removes the directory, if that is empty.
#[derive(Debug)]
pub(super) struct CreatedDir(PathBuf);

impl Drop for CreatedDir {
    fn drop(&mut self) {
        // If something is in it or mounted on it, it stays.
        if let Err(error) = fs::remove_dir(&self.0) {
            tracing::debug!(%error, path = %self.0.display(), "the mount point stays");
        }
    }
}

/// Creates `path`, but not directories above it. `None` if it exists, or if they do not, which mounting will report.
///
/// # Errors
/// As for `mkdir(2)`.
pub(super) fn create(path: &Path) -> Result<Option<CreatedDir>, ServeError> {
    let failed = |error: io::Error| ServeError::Create { path: path.into(), reason: error.into() };
    // Absolute, because a process in the background changes its working directory.
    let absolute = std::path::absolute(path).map_err(failed)?;
    match fs::create_dir(&absolute) {
        Ok(()) => Ok(Some(CreatedDir(absolute))),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
