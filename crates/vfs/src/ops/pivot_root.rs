//! pivot_root: another root for a namespace.

use crate::base::errno::Errno;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef, climbs_to};

impl Context {
    /// Makes the mount at `new_root` the root of this context's namespace and of this context, and mounts the old root at `put_old`:
    /// `pivot_root(2)`. Other contexts keep their roots, which are then seen at `put_old`. `put_old` may be `new_root` itself (the old
    /// root is then mounted over the new one, to be unmounted).
    ///
    /// # Errors
    /// `EPERM`; `ENOTDIR`; `EINVAL` if `new_root` is not a mount point, `put_old` is not at or
    /// below it, or this context's root is not a mount point; `EBUSY` if `new_root` or `put_old` is
    /// on the root mount; errors of a walk.
    pub fn pivot_root(&self, new_root: &[u8], put_old: &[u8]) -> Result<(), Errno> {
        self.pivot(PathAt::cwd(new_root), PathAt::cwd(put_old))
    }

    /// As [`pivot_root`](Self::pivot_root), with held directories.
    ///
    /// # Errors
    /// As for [`Context::pivot_root`]; `EXDEV` for a place of another tree.
    pub fn pivot_root_to(&self, new_root: &PathRef, put_old: &PathRef) -> Result<(), Errno> {
        self.pivot(PathAt::new(Base::at(new_root), b"."), PathAt::new(Base::at(put_old), b"."))
    }

    fn pivot(&self, new_root: PathAt<'_>, put_old: PathAt<'_>) -> Result<(), Errno> {
        self.may_mount()?;
        let directory = |at: PathAt<'_>| {
            let held = self.hold(at.base, at.path, true)?;
            if held.dentry().object().is_dir() { Ok(held) } else { Err(Errno::ENOTDIR) }
        };
        let (new, put_old) = (directory(new_root)?, directory(put_old)?);
        let (root, cwd) = self.root_and_cwd();
        let mut points = self.lock_mounts();
        let namespace = self.namespace();
        let is_mount_root = |held: &PathRef| core::ptr::eq(held.dentry(), held.mount().root());
        let on_root = |held: &PathRef| held.mount().ptr_eq(root.mount());
        self.check_shown(new.mount())?;
        self.check_shown(root.mount())?;
        self.check_shown(put_old.mount())?;
        if on_root(&new) || on_root(&put_old) {
            return Err(Errno::EBUSY);
        }
        let guard = self.tree().domain.read();
        let rooted = root.mount().attachment(&guard).is_none();
        let below = climbs_to(&guard, put_old.place(), &new.place());
        if !is_mount_root(&new) || !is_mount_root(&root) || !rooted || !below {
            return Err(Errno::EINVAL);
        }
        drop(guard);
        let old_root = namespace.root();
        let new_mount = points.detach(new.mount()).ok_or(Errno::EINVAL)?;
        points.attach(&old_root, put_old.mount(), put_old.dentry())?;
        namespace.set_root(new_mount);
        drop(points);
        let moved = |held: &PathRef| on_root(held) && is_mount_root(held);
        let (root_moves, cwd_moves) = (moved(&root), moved(&cwd));
        self.replace(|state| {
            if root_moves {
                state.root = new.clone();
            }
            if cwd_moves {
                state.cwd = new.clone();
            }
        });
        Ok(())
    }
}
