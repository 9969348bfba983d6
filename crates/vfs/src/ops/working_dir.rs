//! chdir, chroot, getcwd, realpath: root and working directory of a context, and paths from its root.

use crate::base::access::credentials::{Capabilities, MAY_EXEC};
use crate::base::attr::{S_IFDIR, S_IFMT};
use crate::base::errno::Errno;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef};
use crate::mount::reverse_path::path_from;
use crate::walk::permission::may;

impl Context {
    /// Changes the working directory: `chdir(2)`.
    ///
    /// # Errors
    /// The errors of a walk; `ENOTDIR`; `EACCES` without search permission.
    pub fn set_current_dir(&self, path: &[u8]) -> Result<(), Errno> {
        self.enter(Base::CWD, path)
    }

    /// Changes the working directory to a held one: `fchdir(2)`.
    ///
    /// # Errors
    /// As for [`Context::set_current_dir`]; `EXDEV` for a place of another tree.
    pub fn set_current_dir_to(&self, dir: &PathRef) -> Result<(), Errno> {
        self.enter(Base::at(dir), b".")
    }

    fn enter(&self, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        let dir = self.searchable(base, path)?;
        self.replace(|state| state.cwd = dir);
        Ok(())
    }

    /// Changes the root directory (not the working directory): `chroot(2)`.
    ///
    /// # Errors
    /// As for [`Context::set_current_dir`]; `EPERM` without `SYS_CHROOT`.
    pub fn set_root(&self, path: &[u8]) -> Result<(), Errno> {
        self.enter_root(Base::CWD, path)
    }

    /// Changes the root directory, but not the working directory, to a held directory: `fchroot(2)`
    /// of other systems, and on Linux `fchdir(2)` and `chroot(".")`.
    ///
    /// # Errors
    /// As for [`Context::set_root`]; `EXDEV` for a place of another tree.
    pub fn set_root_to(&self, dir: &PathRef) -> Result<(), Errno> {
        self.enter_root(Base::at(dir), b".")
    }

    fn enter_root(&self, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        let dir = self.searchable(base, path)?;
        if !self.credentials().capabilities.contains(Capabilities::SYS_CHROOT) {
            return Err(Errno::EPERM);
        }
        self.replace(|state| state.root = dir);
        Ok(())
    }

    pub(crate) fn searchable(&self, base: Base<'_>, path: &[u8]) -> Result<PathRef, Errno> {
        self.resolve(base, path, true, |found| {
            let attr = found.attr()?;
            if attr.mode & S_IFMT != S_IFDIR {
                return Err(Errno::ENOTDIR);
            }
            may(found, attr.rights(), MAY_EXEC)?;
            found.pin()
        })
    }

    /// Returns the working directory's path: `getcwd(2)`.
    ///
    /// # Errors
    /// `ENOENT` if it was removed.
    pub fn current_dir(&self) -> Result<Vec<u8>, Errno> {
        let guard = self.tree().domain.read();
        let cwd = &self.state(&guard).cwd;
        if cwd.dentry().object().is_hashed() { Ok(self.path_of(cwd)) } else { Err(Errno::ENOENT) }
    }

    /// Returns the path of the file at `path`, without symbolic links, `.` or `..`: `realpath(3)`.
    /// Of a scoped walk, the path from the root of its scope.
    ///
    /// # Errors
    /// The errors of a walk.
    pub fn canonical(&self, base: crate::mount::place::Base<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let held = self.hold(base, path, true)?;
        if !base.resolve.is_scoped() {
            return Ok(self.path_of(&held));
        }
        let (_, cwd) = self.root_and_cwd();
        let scope = base.scope.or(base.dir).unwrap_or(&cwd);
        Ok(path_from(held.sb(), held.place(), scope.place()))
    }

    /// Returns the path of a held place, as in `/proc/self/fd`: with ` (deleted)` if its name was
    /// removed.
    #[must_use]
    pub fn path_of(&self, held: &PathRef) -> Vec<u8> {
        // The read section keeps the root: a count on it would make all reverse paths write to one line.
        let guard = self.tree().domain.read();
        path_from(held.sb(), held.place(), self.state(&guard).root.place())
    }
}
