//! Mounts that come and go in the tree of mounts. Each function takes the table that the mounts' lock guards.

use super::{Attachment, Children, Mount, Mountpoints, Owned, address};
use crate::dentry::{DIR, Dentry, HASHED, MOUNTED};
use crate::errno::Errno;
use crate::rank::Rank;
use crate::slot::Pinned;
use crate::superblock::{SuperBlock, change_dir_flags};
use sync::PerCpuArc;

impl Mountpoints {
    /// Counts a mount on `dentry` of `sb`, and lets walks look for it.
    ///
    /// # Errors
    /// `ENOENT`: its name has gone.
    fn mark(&mut self, sb: &SuperBlock, dentry: &Dentry) -> Result<(), Errno> {
        let parent = dentry.parent().ok_or(Errno::ENOENT)?;
        let _held = sb.ranks.lock(Rank::Directory, &parent.lock);
        // A name that moves to another directory meanwhile stays hashed; one that goes needs this lock, or moved before.
        if !dentry.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        *self.on.entry(address(dentry)).or_insert(0) += 1;
        set_flag(dentry, 0, MOUNTED);
        Ok(())
    }

    /// Counts a mount on `dentry` less.
    fn unmark(&mut self, dentry: &Dentry) {
        let key = address(dentry);
        if let Some(count) = self.on.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.on.remove(&key);
                set_flag(dentry, MOUNTED, 0);
            }
        }
    }

    /// Mounts `child`, which is nowhere, on `mountpoint` of `parent`.
    ///
    /// # Errors
    /// `ENOENT`: the mount point's name has gone.
    pub(super) fn attach(
        &mut self,
        child: &Owned,
        parent: &PerCpuArc<Mount>,
        mountpoint: &Dentry,
    ) -> Result<(), Errno> {
        let sb = &parent.sb;
        self.mark(sb, mountpoint)?;
        let _moving = sb.mount_seq.0.write_lock();
        let pinned: Pinned = sb.pin_again(mountpoint);
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

    /// Takes `child` from where it is mounted; whoever has the answer owns it. `None`: it is mounted nowhere.
    pub(super) fn detach(&mut self, child: &Mount) -> Option<Owned> {
        let domain = &child.sb.domain;
        let guard = domain.read();
        let attachment = child.attachment(&guard)?;
        let (parent, mountpoint) = (&attachment.parent, attachment.mountpoint());
        let _moving = child.sb.mount_seq.0.write_lock();
        let mut children: Children = parent.children.load(&guard).cloned().unwrap_or_default();
        let at = children.0.iter().position(|other| core::ptr::eq(&raw const **other.1, child))?;
        let (_, owned) = children.0.remove(at);
        parent.children.set(domain, (!children.0.is_empty()).then_some(children));
        self.unmark(mountpoint);
        child.attached.set(domain, None);
        Some(owned)
    }

    /// Takes `top` and all that is mounted below it apart, so that none holds another. What is held of them stays usable.
    pub(super) fn dissolve(&mut self, top: &Owned) -> Vec<Owned> {
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

fn set_flag(dentry: &Dentry, clear: u64, set: u64) {
    if dentry.has(DIR) { change_dir_flags(dentry, clear, set) } else { dentry.change_flags(clear, set) }
}
