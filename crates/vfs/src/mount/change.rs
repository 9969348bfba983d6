//! mount, bind, move, remount, unmount: what changes what is mounted where.

use super::{Mount, MountFlags, Mountpoints, Namespace, Owned, UnmountFlags};
use crate::cache::Budget;
use crate::context::{Context, Held};
use crate::cred::Capabilities;
use crate::dentry::{DIR, HASHED};
use crate::errno::Errno;
use crate::fs::FileSystem;
use crate::namespace::Base;
use crate::rank::{Rank, Ranks};
use crate::slot::outlive;
use crate::superblock::{Introduce, SuperBlock};
use crate::walk::resolve::climbs_to;
use prim::shared::Arc;
use sync::lockdep::Ranked;
use sync::{MutexGuard, PerCpuArc};

type Points<'t> = Ranked<'t, Rank, MutexGuard<'t, Mountpoints>>;

impl Context {
    /// Mounts `fs` on the directory (or, if its root is a file, on the file) at `path`: `mount(2)`.
    ///
    /// # Errors
    /// `EPERM` without `SYS_ADMIN`; `ENOTDIR` if one is a directory and the other is not; `EINVAL` on what this context's namespace
    /// does not show; `ENOENT` if the name has just gone; those of a walk.
    pub fn mount(&self, fs: impl FileSystem, base: Base<'_>, path: &[u8], flags: MountFlags) -> Result<(), Errno> {
        self.mount_with(fs, base, path, flags, Budget::default())
    }

    /// The same, where the cache of `fs` holds no more than `budget`.
    ///
    /// # Errors
    /// As for [`Context::mount`].
    pub fn mount_with(
        &self,
        fs: impl FileSystem,
        base: Base<'_>,
        path: &[u8],
        flags: MountFlags,
        budget: Budget,
    ) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, true)?;
        let sb = Arc::new(SuperBlock::new(place.sb().tree().clone(), Box::new(fs), budget, false));
        sb.introduce();
        let mount = Mount::new(sb.clone(), sb.pin_again(sb.root()), flags);
        self.attach(&mount, place)
    }

    /// Shows the directory or file at `source` at `target` too: `mount(2)` with `MS_BIND`. With `recursive`, what is mounted below
    /// `source` comes along. The new mount has `flags` of its own; those that come along keep theirs.
    ///
    /// # Errors
    /// As for [`Context::mount`]; `ENOENT` too if the name of `source` has gone.
    pub fn bind(
        &self,
        (source_base, source): (Base<'_>, &[u8]),
        (target_base, target): (Base<'_>, &[u8]),
        flags: MountFlags,
        recursive: bool,
    ) -> Result<(), Errno> {
        self.may_mount()?;
        let source = self.hold(source_base, source, true)?;
        let target = self.hold(target_base, target, true)?;
        let namespace = self.namespace();
        if source.mount().namespace() != namespace.id {
            return Err(Errno::EINVAL);
        }
        self.check_kinds(source.dentry().has(DIR), &target)?;
        if !source.dentry().has(HASHED) {
            return Err(Errno::ENOENT);
        }
        let sb = &source.mount().sb;
        let top = Mount::new(sb.clone(), sb.pin_again(source.dentry()), flags);
        if recursive {
            self.copy_below(&source, &top, &namespace)?;
        }
        self.attach(&top, target)
    }

    /// Mounts copies of what is mounted below `source` below `top`.
    fn copy_below(&self, source: &Held, top: &Owned, namespace: &Namespace) -> Result<(), Errno> {
        let mut points = self.lock_mounts();
        let mut copies: Vec<(PerCpuArc<Mount>, Owned)> = vec![(source.mount().clone(), top.clone())];
        for old in namespace.mounts() {
            let guard = self.tree().domain.read();
            let Some(attachment) = old.attachment(&guard) else { continue };
            let mountpoint = outlive(&attachment.parent.sb, attachment.mountpoint());
            let place = crate::context::Place { mount: attachment.parent.borrow(), dentry: mountpoint };
            if !climbs_to(&guard, place, &source.place()) {
                continue;
            }
            let parent = copies.iter().find(|(from, _)| from.ptr_eq(&attachment.parent)).map(|(_, to)| to.share());
            let Some(parent) = parent else { continue };
            let copy = Mount::new(old.sb.clone(), old.sb.pin_again(old.root()), old.flags());
            points.attach(&copy, &parent, mountpoint)?;
            copies.push((old.share(), copy));
        }
        Ok(())
    }

    /// Moves the mount at `source` to `target`: `mount(2)` with `MS_MOVE`.
    ///
    /// # Errors
    /// `EINVAL` if nothing is mounted at `source`, it is the root, or one is a directory and the other is not; `ELOOP` if `target` is within it; else as for
    /// [`Context::mount`].
    pub fn move_mount(
        &self,
        (source_base, source): (Base<'_>, &[u8]),
        (target_base, target): (Base<'_>, &[u8]),
    ) -> Result<(), Errno> {
        self.may_mount()?;
        let source = self.hold(source_base, source, true)?;
        let target = self.hold(target_base, target, true)?;
        self.check_kinds(source.dentry().has(DIR), &target).map_err(|_| Errno::EINVAL)?;
        let mut points = self.lock_mounts();
        let moved = self.mounted_at(&source)?;
        self.check_shown(target.mount())?;
        if climbs_to(&self.tree().domain.read(), target.place(), &source.place()) {
            return Err(Errno::ELOOP);
        }
        if !source.dentry().has(HASHED) {
            return Err(Errno::ENOENT);
        }
        let old = {
            let guard = self.tree().domain.read();
            let from = moved.attachment(&guard).ok_or(Errno::EINVAL)?;
            Held::new(from.parent.clone(), from.parent.sb.pin_again(from.mountpoint()))
        };
        let owned = points.detach(&moved).ok_or(Errno::EINVAL)?;
        if let Err(errno) = points.attach(&owned, target.mount(), target.dentry()) {
            // Back to where it was: that name cannot have gone, since it was a mount point until now.
            points.attach(&owned, old.mount(), old.dentry())?;
            return Err(errno);
        }
        Ok(())
    }

    /// Changes the flags of the mount at `path`: `mount(2)` with `MS_REMOUNT` and `MS_BIND`.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there, or that was taken away; `EBUSY` to make it read-only while files are open for writing; those of a walk.
    pub fn remount(&self, base: Base<'_>, path: &[u8], flags: MountFlags) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, true)?;
        if !core::ptr::eq(place.dentry(), place.mount().root()) {
            return Err(Errno::EINVAL);
        }
        self.check_shown(place.mount())?;
        place.mount().set_flags(flags)
    }

    /// Takes away what is mounted at `path`: `umount2(2)`. When the last mount of a file system goes, all that was cached of it is
    /// released before this returns; with `DETACH`, when the last that is open has been closed.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there; `EBUSY` if something is open, is somebody's working directory, or is mounted on
    /// it (not with `DETACH`), and for the root of the namespace. [`Context::holders`] says who.
    pub fn unmount(&self, base: Base<'_>, path: &[u8], flags: UnmountFlags) -> Result<(), Errno> {
        self.may_mount()?;
        let place = self.hold(base, path, !flags.has(UnmountFlags::NOFOLLOW))?;
        let mount = {
            let _points = self.lock_mounts();
            self.mounted_at(&place)?
        };
        drop(place);
        let gone = if flags.has(UnmountFlags::DETACH) {
            let mut points = self.lock_mounts();
            self.check_shown(&mount)?;
            points.dissolve(&mount)
        } else {
            if let Err(errno) = self.unmount_unused(&mount) {
                // What contexts have replaced may still hold it: until that is freed, which may need the mounts' lock.
                self.tree().domain.barrier();
                self.unmount_unused(&mount).map_err(|_| errno)?;
            }
            vec![]
        };
        tell_watchers(&gone);
        drop((gone, mount));
        // Tables of mounts that were replaced still own what was on them.
        self.tree().domain.barrier();
        Ok(())
    }

    /// Takes `mount` away if nobody uses it.
    ///
    /// # Errors
    /// `EBUSY`; `EINVAL` if somebody else has taken it away.
    fn unmount_unused(&self, mount: &Owned) -> Result<(), Errno> {
        let mut points = self.lock_mounts();
        self.check_shown(mount)?;
        if !mount.children(&self.tree().domain.read()).is_empty() {
            return Err(Errno::EBUSY);
        }
        if mount.seal() != 0 {
            mount.unseal();
            return Err(Errno::EBUSY);
        }
        mount.set_namespace(0);
        drop(points.detach(mount));
        Ok(())
    }

    /// Gives this context a namespace of its own, a copy: what is mounted in one from now on is not seen in the other. As `unshare(2)`
    /// with `CLONE_NEWNS`, and all mounts private.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn unshare_mounts(&self) -> Result<(), Errno> {
        self.may_mount()?;
        let (pairs, root) = self.namespace().copy();
        let namespace = Namespace::new(self.shared_tree().clone(), root);
        let (old_root, old_cwd) = self.root_and_cwd();
        let moved = |held: &Held| {
            let new = pairs.iter().find(|(old, _)| old.borrow().ptr_eq(held.mount().borrow()));
            // What is in no namespace (detached) stays what it is.
            new.map_or_else(|| held.clone(), |(_, new)| Held::new(new.share(), held.sb().pin_again(held.dentry())))
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

    pub(super) fn lock_mounts(&self) -> Points<'_> {
        let ranks: &Ranks = &self.tree().ranks;
        ranks.lock(Rank::Mounts, &self.tree().mounts)
    }

    /// Whether this context's namespace shows `mount`.
    ///
    /// # Errors
    /// `EINVAL`.
    pub(super) fn check_shown(&self, mount: &Mount) -> Result<(), Errno> {
        if mount.namespace() == self.namespace().id { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// What is mounted at a place.
    ///
    /// # Errors
    /// `EINVAL`: nothing is. `EBUSY`: it is the root of the namespace.
    pub(super) fn mounted_at(&self, place: &Held) -> Result<Owned, Errno> {
        let mount = place.mount();
        if !core::ptr::eq(place.dentry(), mount.root()) {
            return Err(Errno::EINVAL);
        }
        self.check_shown(mount)?;
        let all = self.namespace().mounts();
        let own = all.into_iter().find(|other| other.borrow().ptr_eq(mount.borrow())).ok_or(Errno::EINVAL)?;
        let is_root = own.attachment(&self.tree().domain.read()).is_none();
        if is_root { Err(Errno::EBUSY) } else { Ok(own) }
    }

    /// # Errors
    /// `ENOTDIR` unless both or none are directories.
    pub(super) fn check_kinds(&self, is_dir: bool, target: &Held) -> Result<(), Errno> {
        if is_dir == target.dentry().has(DIR) { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    /// Mounts `mount`, and what is mounted on it, at `target`.
    fn attach(&self, mount: &Owned, target: Held) -> Result<(), Errno> {
        let attached = self.attach_at(mount, &target);
        if attached.is_err() {
            // What was copied below it holds it.
            drop(self.lock_mounts().dissolve(mount));
        }
        attached
    }

    fn attach_at(&self, mount: &Owned, target: &Held) -> Result<(), Errno> {
        self.check_kinds(mount.root().has(DIR), target)?;
        let namespace = self.namespace();
        let mut points = self.lock_mounts();
        if target.mount().namespace() == 0 {
            // It was taken away: as a name that has gone.
            return Err(Errno::ENOENT);
        }
        self.check_shown(target.mount())?;
        // Somebody may have mounted there since: on top of that, then.
        let mut parent = target.mount().clone();
        let mut top = None;
        while let Some(child) = {
            let guard = self.tree().domain.read();
            let at = if top.is_some() { parent.root() } else { target.dentry() };
            parent.child_rcu(&guard, at).and_then(|child| child.to_arc())
        } {
            parent = child;
            top = Some(());
        }
        let mountpoint = if top.is_some() { parent.root() } else { target.dentry() };
        namespace.claim(mount);
        points.attach(mount, &parent, mountpoint)
    }
}

/// Tells who watches places of file systems that are mounted nowhere any more.
fn tell_watchers(gone: &[Owned]) {
    for mount in gone {
        let sb = &mount.sb;
        let mounts = gone.iter().filter(|other| Arc::ptr_eq(&other.sb, sb)).count();
        if !sb.watches.is_idle() && sb.is_mounted_at_most(mounts) {
            sb.watches.unmounted(|key| sb.has_dentry(key));
        }
    }
}
