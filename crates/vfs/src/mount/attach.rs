//! Changes of the tree of mounts.

use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::dcache::dentry::Dentry;
use crate::dcache::mountpoints::Mountpoints;
use crate::dcache::slot::CountedDentry;
use crate::dcache::tree::Tree;
use crate::mount::{Attachment, Children, Mount, Owned, address};
use sync::lockdep::Ranked;
use sync::{MutexGuard, PerCpuArc};

/// The held lock of the tree of mounts.
pub(crate) struct LockedMounts<'t>(Ranked<'t, Rank, MutexGuard<'t, Mountpoints>>);

impl<'t> LockedMounts<'t> {
    /// Waits for the lock.
    pub(crate) fn lock(tree: &'t Tree) -> Self {
        Self(tree.ranks.lock(Rank::Mounts, &tree.mounts))
    }

    /// Mounts `child`, which is not attached, on `mountpoint` of `parent`.
    ///
    /// # Errors
    /// `ENOENT`: the mount point's name was removed.
    pub(crate) fn attach(
        &mut self,
        child: &Owned,
        parent: &PerCpuArc<Mount>,
        mountpoint: &Dentry,
    ) -> Result<(), Errno> {
        let sb = &parent.sb;
        self.0.mark(sb, mountpoint)?;
        let _moving = sb.mount_seq.0.write_lock();
        let pinned: CountedDentry = sb.pin_again(mountpoint);
        let attachment = Attachment { parent: parent.clone(), mountpoint: Some(pinned) };
        child.attached.set(&sb.domain, Some(attachment));
        let guard = sb.domain.read();
        let mut children = parent.children.load(&guard).cloned().unwrap_or_default();
        let key = address(mountpoint);
        let at = children.0.partition_point(|other| other.0 < key);
        children.0.insert(at, (key, child.clone()));
        parent.children.set(&sb.domain, Some(children));
        Ok(())
    }

    /// Detaches `child` and returns its ownership. `None`: it is not attached.
    pub(crate) fn detach(&mut self, child: &Mount) -> Option<Owned> {
        let domain = &child.sb.domain;
        let guard = domain.read();
        let attachment = child.attachment(&guard)?;
        let (parent, mountpoint) = (&attachment.parent, attachment.mountpoint());
        let _moving = child.sb.mount_seq.0.write_lock();
        let mut children: Children = parent.children.load(&guard).cloned().unwrap_or_default();
        let at = children.0.iter().position(|other| core::ptr::eq(&raw const **other.1, child))?;
        let (_, owned) = children.0.remove(at);
        parent.children.set(domain, (!children.0.is_empty()).then_some(children));
        self.0.unmark(mountpoint);
        child.attached.set(domain, None);
        Some(owned)
    }

    /// Detaches `top` and every mount below it, each from its parent. Held places on them stay usable.
    pub(crate) fn dissolve(&mut self, top: &Owned) -> Vec<Owned> {
        let mut all = vec![top.clone()];
        let mut next = 0;
        while next < all.len() {
            let children = {
                let guard = top.sb.domain.read();
                all[next].children(&guard)
            };
            all.extend(children);
            next += 1;
        }
        for mount in all.iter().rev() {
            mount.set_namespace(0);
            drop(self.detach(mount));
        }
        all
    }
}
