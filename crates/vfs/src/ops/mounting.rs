//! mount, bind, move, remount, unmount: changes of the tree of mounts.

use crate::base::access::credentials::Capabilities;
use crate::base::errno::Errno;
use crate::base::flags::{MountFlags, UnmountFlags};
use crate::cache::budget::Budget;
use crate::cache::shared_budget::Limits;
use crate::cache::superblock::SuperBlock;
use crate::fs::FileSystem;
use crate::mount::attach::LockedMounts;
use crate::mount::context::Context;
use crate::mount::namespace::Namespace;
use crate::mount::place::{Base, PathAt, PathRef, Place, climbs_to};
use crate::mount::{Mount, Owned};
use prim::atomic::Ordering::Relaxed;
use prim::shared::PlainArc as Arc;
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

impl Context {
    /// Mounts `fs` on the directory (or, if its root is a file, on the file) at `path`: `mount(2)`.
    ///
    /// # Errors
    /// `EPERM` without `SYS_ADMIN`; `ENOTDIR` if one is a directory and the other is not; `EINVAL`
    /// outside of this context's namespace; `ENOENT` if the name was just removed; errors of a
    /// walk.
    pub fn mount(&self, fs: impl FileSystem, base: Base<'_>, path: &[u8], flags: MountFlags) -> Result<(), Errno> {
        self.mount_with(fs, base, path, flags, Budget::default())
    }

    /// As [`mount`](Self::mount), with limits of the cache of `fs`: its own [`Budget`], or a
    /// [`SharedBudget`](crate::SharedBudget).
    ///
    /// # Errors
    /// As for [`Context::mount`].
    pub fn mount_with(
        &self,
        fs: impl FileSystem,
        base: Base<'_>,
        path: &[u8],
        flags: MountFlags,
        limits: impl Into<Limits>,
    ) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, true)?;
        let sb = Arc::new(SuperBlock::new(place.sb().tree().clone(), Box::new(fs), limits.into(), false));
        SuperBlock::introduce(&sb);
        let mount = Mount::new(sb.clone(), sb.pin_again(sb.root()), flags);
        self.attach(&mount, place)
    }

    /// Shows the directory or file at `source` at `target` too: `mount(2)` with `MS_BIND`. With `recursive`,
    /// mounts below `source` are copied. The new mount has `flags`; copied ones keep theirs.
    ///
    /// # Errors
    /// As for [`Context::mount`]; also `ENOENT` if the name of `source` was removed.
    pub fn bind(
        &self,
        source: PathAt<'_>,
        target: PathAt<'_>,
        flags: MountFlags,
        recursive: bool,
    ) -> Result<(), Errno> {
        self.may_mount()?;
        let source = self.hold(source.base, source.path, true)?;
        let target = self.hold(target.base, target.path, true)?;
        let namespace = self.namespace();
        if source.mount().namespace() != namespace.id {
            return Err(Errno::EINVAL);
        }
        self.check_kinds(source.dentry().object().is_dir(), &target)?;
        if !source.dentry().object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        let sb = &source.mount().sb;
        let top = Mount::new(sb.clone(), sb.pin_again(source.dentry()), flags);
        if recursive {
            self.copy_below(&source, &top, &namespace)?;
        }
        self.attach(&top, target)
    }

    /// Copies the mounts below `source` to below `top`.
    fn copy_below(&self, source: &PathRef, top: &Owned, namespace: &Namespace) -> Result<(), Errno> {
        let mut points = self.lock_mounts();
        let mut copies = BTreeMap::from([(source.mount().id, top.clone())]);
        for old in namespace.mounts() {
            let guard = self.tree().domain.read();
            let Some(up) = old.attachment(&guard) else { continue };
            let place = Place { mount: up.parent.borrow(), dentry: up.mountpoint() };
            if climbs_to(&guard, place, &source.place()) {
                points.attach_copy(&old, &mut copies)?;
            }
        }
        Ok(())
    }

    /// Moves the mount at `source` to `target`: `mount(2)` with `MS_MOVE`.
    ///
    /// # Errors
    /// `EINVAL` if `source` is not a mount point, is the root, or only one of the two is a directory; `ELOOP`
    /// if `target` is within `source`; else as for [`Context::mount`].
    pub fn move_mount(&self, source: PathAt<'_>, target: PathAt<'_>) -> Result<(), Errno> {
        self.may_mount()?;
        let source = self.hold(source.base, source.path, true)?;
        let target = self.hold(target.base, target.path, true)?;
        self.check_kinds(source.dentry().object().is_dir(), &target).map_err(|_| Errno::EINVAL)?;
        let mut points = self.lock_mounts();
        let moved = self.mounted_at(&source)?;
        self.check_target(target.mount())?;
        if climbs_to(&self.tree().domain.read(), target.place(), &source.place()) {
            return Err(Errno::ELOOP);
        }
        if !source.dentry().object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        let old = {
            let guard = self.tree().domain.read();
            let from = moved.attachment(&guard).ok_or(Errno::EINVAL)?;
            PathRef::new(from.parent.clone(), from.parent.sb.pin_again(from.mountpoint()))
        };
        let owned = points.detach(&moved).ok_or(Errno::EINVAL)?;
        if let Err(errno) = points.attach(&owned, target.mount(), target.dentry()) {
            // Back to its old place: that name exists, since it was a mount point.
            points.attach(&owned, old.mount(), old.dentry())?;
            return Err(errno);
        }
        Ok(())
    }

    /// Changes the flags of the mount at `path`: `mount(2)` with `MS_REMOUNT` and `MS_BIND`.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if `path` is not a mount point, or was unmounted meanwhile; `EBUSY` to
    /// make the mount read-only while files are open for writing; errors of a walk.
    pub fn remount(&self, base: Base<'_>, path: &[u8], flags: MountFlags) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, true)?;
        if !core::ptr::eq(place.dentry(), place.mount().root()) {
            return Err(Errno::EINVAL);
        }
        self.check_shown(place.mount())?;
        place.mount().set_flags(flags)
    }

    /// Unmounts the mount at `path`: `umount2(2)`. After the last mount of a file system, its cache is
    /// released before this returns; with `DETACH`, after the last close.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if `path` is not a mount point; `EBUSY` if something on it is open, is a working
    /// directory of a context, or is mounted on (not with `DETACH`), and for the root of the namespace.
    /// [`Context::holders`] lists the holders.
    pub fn unmount(&self, base: Base<'_>, path: &[u8], flags: UnmountFlags) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, !flags.contains(UnmountFlags::NOFOLLOW))?;
        // Without the lock a thread may see a mount that is being moved as one that is not attached.
        let mount = self.mounted_at(&place).or_else(|_| {
            let _points = self.lock_mounts();
            self.mounted_at(&place)
        })?;
        drop(place);
        let gone = if flags.contains(UnmountFlags::DETACH) {
            let mut points = self.lock_mounts();
            self.check_shown(&mount)?;
            points.dissolve(&mount)
        } else {
            if let Err(errno) = self.unmount_unused(&mount) {
                // Replaced states of contexts may still hold it, and replaced attachments of mounts that were on it: wait
                // until they are freed, which may need the mounts' lock.
                self.tree().domain.try_barrier().map_err(|_| errno)?;
                self.unmount_unused(&mount).map_err(|_| errno)?;
            }
            vec![]
        };
        self.notify_watchers(&gone);
        let waits = gone.iter().chain([&mount]).any(|mount| !mount.sb.is_shown());
        drop((gone, mount));
        // Replaced tables of mounts still own their mounts. Where nothing can be freed any more
        // they stay in memory, and `RcuStats` counts the refusal. The mount is removed from the
        // tree all the same.
        self.tree().domain.flush();
        let _ = waits.then(|| self.tree().domain.try_barrier());
        Ok(())
    }

    /// Unmounts `mount` if it has no users.
    ///
    /// # Errors
    /// `EBUSY`; `EINVAL` if another thread has unmounted it.
    fn unmount_unused(&self, mount: &Owned) -> Result<(), Errno> {
        let _ending = mount.lock_ending();
        self.check_shown(mount)?;
        // This waits for a grace period of the mount's count: other mounts can be changed meanwhile.
        let unmounted = match mount.seal() {
            0 => self.unmount_sealed(mount),
            // The mount could not be sealed.
            i64::MAX => return Err(Errno::EBUSY),
            _ => Err(Errno::EBUSY),
        };
        unmounted.inspect_err(|_| mount.unseal())
    }

    /// Unmounts `mount`, whose count is sealed.
    ///
    /// # Errors
    /// The errors of [`Context::unmount_unused`].
    fn unmount_sealed(&self, mount: &Owned) -> Result<(), Errno> {
        let mut points = self.lock_mounts();
        self.check_shown(mount)?;
        // Since the seal, a thread with this lock may have mounted something on it, or have taken a reference.
        if mount.has_children(&self.tree().domain.read()) || mount.seal() != 0 {
            return Err(Errno::EBUSY);
        }
        mount.set_namespace(0);
        drop(points.detach(mount));
        Ok(())
    }

    /// Gives this context a copy of its namespace: later mounts in one are not visible in the other. As
    /// `unshare(2)` with `CLONE_NEWNS`, with all mounts private.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn unshare_mounts(&self) -> Result<(), Errno> {
        self.may_mount()?;
        let (copies, root) = self.namespace().copy();
        let namespace = Namespace::new(self.shared_tree().clone(), root);
        let (old_root, old_cwd) = self.root_and_cwd();
        let moved = |held: &PathRef| {
            let new = copies.get(&held.mount().id);
            // Detached mounts are in no namespace and stay as they are.
            new.map_or_else(|| held.clone(), |new| PathRef::new(new.share(), held.sb().pin_again(held.dentry())))
        };
        let (root, cwd) = (moved(&old_root), moved(&old_cwd));
        self.replace(|state| {
            state.root = root;
            state.cwd = cwd;
            state.namespace = namespace;
        });
        Ok(())
    }

    /// # Errors
    /// `EPERM`.
    pub(super) fn may_mount(&self) -> Result<(), Errno> {
        if self.credentials().capabilities.contains(Capabilities::SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
    }

    pub(super) fn lock_mounts(&self) -> LockedMounts<'_> {
        LockedMounts::lock(self.tree())
    }

    /// Checks that `mount` is in this context's namespace.
    ///
    /// # Errors
    /// `EINVAL`.
    pub(super) fn check_shown(&self, mount: &Mount) -> Result<(), Errno> {
        if mount.namespace() == self.namespace().id { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Checks that something can be mounted on a directory of `mount`.
    ///
    /// # Errors
    /// `ENOENT` if `mount` was unmounted, as for a removed name; `EINVAL` if it is in another namespace.
    fn check_target(&self, mount: &Mount) -> Result<(), Errno> {
        if mount.namespace() == 0 { Err(Errno::ENOENT) } else { self.check_shown(mount) }
    }

    /// Returns the mount at a place. Exact under the mounts' lock.
    ///
    /// # Errors
    /// `EINVAL`: it is not a mount point. `EBUSY`: it is the root of the namespace.
    pub(super) fn mounted_at(&self, place: &PathRef) -> Result<Owned, Errno> {
        let mount = place.mount();
        if !core::ptr::eq(place.dentry(), mount.root()) {
            return Err(Errno::EINVAL);
        }
        self.check_shown(mount)?;
        let is_root = mount.attachment(&self.tree().domain.read()).is_none();
        if is_root { Err(Errno::EBUSY) } else { mount.owned().ok_or(Errno::EINVAL) }
    }

    /// # Errors
    /// `ENOTDIR` if only one is a directory.
    pub(super) fn check_kinds(&self, is_dir: bool, target: &PathRef) -> Result<(), Errno> {
        if is_dir == target.dentry().object().is_dir() { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    /// Mounts `mount`, and the mounts on it, at `target`.
    fn attach(&self, mount: &Owned, target: PathRef) -> Result<(), Errno> {
        // The copies below hold it.
        let attached = self.attach_at(mount, &target);
        attached.inspect_err(|_| drop(self.lock_mounts().dissolve(mount))).map(|()| super::publish::covered(&target))
    }

    fn attach_at(&self, mount: &Owned, target: &PathRef) -> Result<(), Errno> {
        self.check_kinds(mount.root().object().is_dir(), target)?;
        let namespace = self.namespace();
        let mut points = self.lock_mounts();
        self.check_target(target.mount())?;
        namespace.claim(mount);
        points.attach(mount, target.mount(), target.dentry())
    }

    /// Notifies watchers of places on file systems without any mount left.
    fn notify_watchers(&self, gone: &[Owned]) {
        if gone.iter().all(|mount| mount.sb.watches.is_idle()) {
            return;
        }
        // Mounts that were unmounted before may still wait for the end of a grace period.
        let _ = self.tree().domain.try_barrier();
        for mount in gone {
            let sb = &mount.sb;
            let mounts = gone.iter().filter(|other| Arc::ptr_eq(&other.sb, sb)).count();
            // Relaxed: a count by itself.
            if !sb.watches.is_idle() && sb.mounted.load(Relaxed) as usize <= mounts {
                sb.watches.unmounted(|key| sb.has_dentry(key));
            }
        }
    }
}
