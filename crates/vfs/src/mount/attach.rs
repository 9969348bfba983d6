//! Changes of the tree of mounts.

use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::mountpoints::Mountpoints;
use crate::cache::tree::Tree;
use crate::mount::mounted_on::Children;
use crate::mount::{Attachment, Mount, Owned, address};
use crate::slots::dentry::Dentry;
use crate::slots::slot::DentryRef;
use std::collections::BTreeMap;
use sync::lockdep::Ranked;
use sync::{MutexGuard, PerCpuArc};

/// The held lock of the tree of mounts.
pub(crate) struct LockedMounts<'t>(Ranked<'t, Rank, MutexGuard<'t, Mountpoints>>);

impl<'t> LockedMounts<'t> {
    /// Waits for the lock.
    pub(crate) fn lock(tree: &'t Tree) -> Self {
        Self(tree.ranks.lock(Rank::Mounts, &tree.mounts))
    }

    /// Mounts `child`, which is not attached, on `mountpoint` of `parent`, or on top of what is mounted there: another
    /// thread may have done that since the caller walked there.
    ///
    /// # Errors
    /// `ENOENT`: the mount point's name was removed.
    pub(crate) fn attach(
        &mut self,
        child: &Owned,
        parent: &PerCpuArc<Mount>,
        mountpoint: &Dentry,
    ) -> Result<(), Errno> {
        let top = self.top(parent, mountpoint);
        let (parent, mountpoint) = top.as_ref().map_or((parent, mountpoint), |top| (top, top.root()));
        let sb = &parent.sb;
        self.0.mark(sb, mountpoint)?;
        let _moving = sb.mount_seq.write_lock();
        let _change = sb.paths.change_mounts(mountpoint);
        let pinned: DentryRef = sb.pin_again(mountpoint);
        let attachment = Attachment { parent: parent.clone(), mountpoint: Some(pinned) };
        child.attached.set(&sb.domain, Some(attachment));
        let guard = sb.domain.read();
        let children = Children::with(parent.children.load(&guard), address(mountpoint), child.clone());
        parent.children.set(&sb.domain, Some(children));
        Ok(())
    }

    /// Attaches a copy of `old` to the copy of its parent, if that has one. `copies` are by the numbers of the old mounts.
    ///
    /// # Errors
    /// The errors of [`LockedMounts::attach`].
    pub(crate) fn attach_copy(&mut self, old: &Owned, copies: &mut BTreeMap<u64, Owned>) -> Result<(), Errno> {
        let guard = old.sb.domain.read();
        let Some(attachment) = old.attachment(&guard) else { return Ok(()) };
        if let Some(parent) = copies.get(&attachment.parent.id) {
            let copy = old.copy();
            self.attach(&copy, &parent.share(), attachment.mountpoint())?;
            copies.insert(old.id, copy);
        }
        Ok(())
    }

    /// Returns the topmost mount on `mountpoint` of `parent`, if there is any.
    fn top(&self, parent: &PerCpuArc<Mount>, mountpoint: &Dentry) -> Option<PerCpuArc<Mount>> {
        let guard = parent.sb.domain.read();
        // From the owner: a mount whose count is sealed gives no reference otherwise. The thread that sealed it counts again
        // when it has the mounts' lock.
        let mut top = parent.child_owned(&guard, mountpoint)?.share();
        while let Some(child) = top.child_owned(&guard, top.root()).map(|child| child.share()) {
            top = child;
        }
        Some(top)
    }

    /// Detaches `child` and returns its ownership. `None`: it is not attached.
    pub(crate) fn detach(&mut self, child: &Mount) -> Option<Owned> {
        let owned = child.owned()?;
        let domain = &child.sb.domain;
        let guard = domain.read();
        let attachment = child.attachment(&guard)?;
        let (parent, mountpoint) = (&attachment.parent, attachment.mountpoint());
        let _moving = child.sb.mount_seq.write_lock();
        let _change = child.sb.paths.change_mounts(mountpoint);
        let children = parent.children.load(&guard)?.without(address(mountpoint));
        // The old table owns the mount.
        parent.children.set_sized(domain, children, |_| Mount::BYTES);
        self.0.unmark(&child.sb.paths, mountpoint);
        child.attached.set(domain, None);
        Some(owned)
    }

    /// Detaches `top` and every mount below it, each from its parent. Held places on them stay usable.
    pub(crate) fn dissolve(&mut self, top: &Owned) -> Vec<Owned> {
        let all = subtree(top);
        for mount in all.iter().rev() {
            mount.set_namespace(0);
            drop(self.detach(mount));
        }
        all
    }
}

/// Returns `top` and all mounts below it, parents before children.
pub(super) fn subtree(top: &Owned) -> Vec<Owned> {
    let mut all = vec![top.clone()];
    let mut next = 0;
    while let Some(mount) = all.get(next) {
        let children = mount.children(&top.sb.domain.read());
        all.extend(children);
        next += 1;
    }
    all
}
