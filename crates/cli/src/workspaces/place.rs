//! A path in a mount with workspaces, as a user types it.

use super::WorkspacesError;
use crate::control::{self, ControlError};
use fuse::mountinfo::MountInfo;
use rustix::fs::{CWD, Mode, OFlags, openat, syncfs};
use std::path::{Component, Path, PathBuf};

/// A path below a mount of Lightfoot.
pub(super) struct Place {
    pub(super) mount: MountInfo,
    path: PathBuf,
    /// The path from the mount point.
    rest: PathBuf,
}

impl Place {
    /// Returns the mount that has `path`.
    ///
    /// # Errors
    /// If no mount of Lightfoot has it.
    pub(super) fn of(path: &Path) -> Result<Self, WorkspacesError> {
        let whole = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
        for at in whole.ancestors() {
            match control::find(at) {
                Ok(mount) => {
                    let rest = whole.strip_prefix(at).unwrap_or(Path::new("")).into();
                    return Ok(Self { mount, path: path.into(), rest });
                }
                Err(ControlError::NotMounted(_)) => {}
                Err(ControlError::OtherMount { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ControlError::NotMounted(path.into()).into())
    }

    /// Returns the name of the fork at the path.
    ///
    /// # Errors
    /// If the path is not the root of a fork.
    pub(super) fn fork(&self) -> Result<String, WorkspacesError> {
        let parts: Vec<Component<'_>> = self.rest.components().collect();
        match parts[..] {
            [Component::Normal(dir), Component::Normal(name)] if dir == "w" => Ok(name.to_string_lossy().into()),
            _ => Err(self.not_a_fork()),
        }
    }

    /// Returns the name of the fork at the path, or of the base.
    ///
    /// # Errors
    /// If the path is neither.
    pub(super) fn tree(&self) -> Result<String, WorkspacesError> {
        let is_base = self.rest.as_os_str().is_empty() || self.rest == Path::new(workspaces::BASE);
        if is_base { Ok(workspaces::BASE.into()) } else { self.fork() }
    }

    /// Returns the name of the fork, or of the base, that has the path, with the path from its root.
    ///
    /// # Errors
    /// If the path is in neither.
    pub(super) fn directory(&self) -> Result<String, WorkspacesError> {
        match self.rest.strip_prefix("w") {
            Ok(below) if below.as_os_str().is_empty() => Err(self.not_a_fork()),
            Ok(below) => Ok(below.to_string_lossy().into()),
            Err(_) if self.rest.starts_with(workspaces::BASE) => Ok(self.rest.to_string_lossy().into()),
            Err(_) => self.tree(),
        }
    }

    /// Returns the name of another fork of the same mount, or of the base.
    ///
    /// # Errors
    /// If the path is neither.
    pub(super) fn beside(&self, other: &Path) -> Result<String, WorkspacesError> {
        let place = Self::of(other)?;
        if place.mount.mountpoint != self.mount.mountpoint {
            return Err(WorkspacesError::OtherMount(other.into()));
        }
        place.tree()
    }

    fn not_a_fork(&self) -> WorkspacesError {
        WorkspacesError::NotAFork { path: self.path.clone(), mountpoint: self.mount.mountpoint.clone() }
    }
}

/// Makes the kernel send the changes that it has collected for the file system at `at`.
pub(super) fn write_back(at: &Path) {
    let Ok(opened) = openat(CWD, at, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else { return };
    if let Err(errno) = syncfs(opened) {
        tracing::debug!(%errno, "syncfs");
    }
}
