//! unlink and rmdir: removal of names.

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_OVERWRITE, MAY_WRITE};
use crate::base::attr::S_ISVTX;
use crate::base::errno::Errno;
use crate::base::flags::InodeFlags;
use crate::cache::reclaim::MayEvict;
use crate::cache::returned::Files;
use crate::cache::superblock::SuperBlock;
use crate::mount::context::Context;
use crate::mount::place::Base;
use crate::ops::checks::check_no_mount;
use crate::ops::entry::{Entry, Operation};
use crate::ops::last_component::LastKind;
use crate::ops::publish;
use crate::slots::dentry::Dentry;
use crate::walk::permission::{flags_allow, may_block};
use prim::atomic::Ordering::Relaxed;

/// The most bytes of a file that are freed in a walk's section: freeing takes some 20 us there.
pub(super) const MAX_FREED: u64 = 1 << 20;

impl Context {
    /// Removes the name of anything but a directory: `unlink(2)`. The file is freed when it has no name and
    /// no holder.
    ///
    /// # Errors
    /// `ENOENT`; `EISDIR` for a directory (also `.`, `..` and `/`); `ENOTDIR` with a slash after
    /// it; `EACCES`; `EPERM` in a sticky directory; errors of a walk and of the file system.
    pub fn unlink(&self, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        self.in_parent_quick(base, path, &Unlink)
    }

    /// Removes an empty directory: `rmdir(2)`.
    ///
    /// # Errors
    /// `ENOENT`; `ENOTDIR`; `ENOTEMPTY` (also for `..`); `EINVAL` for `.`; `EBUSY` for the root;
    /// `EACCES`; `EPERM` in a sticky directory; errors of a walk and of the file system.
    pub fn rmdir(&self, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        self.in_parent(base, path, |entry, may_evict| {
            match entry.last.kind {
                LastKind::Normal => {}
                LastKind::Dot => return Err(Errno::EINVAL),
                LastKind::DotDot => return Err(Errno::ENOTEMPTY),
                LastKind::Root => return Err(Errno::EBUSY),
            }
            entry.mount.check_writable()?;
            let victim = entry.find(may_evict)?.ok_or(Errno::ENOENT)?;
            may_remove(entry.caller.cred, entry.sb, entry.dir, victim, true)?;
            check_no_mount(victim)?;
            if let Some(unlocked) = entry.unlocked() {
                return entry.remove_name_locked(unlocked, victim, true);
            }
            // After the release of this lock no entry can be created in it, since it is unhashed.
            let _held = entry.sb.lock_dir_nested(victim);
            self.check_empty(victim)?;
            entry.remove(victim, true)
        })
    }

    /// Checks that the locked directory `dir` has no entries in the cache, but for expired ones: the file system decides about
    /// these.
    pub(crate) fn check_empty(&self, dir: &Dentry) -> Result<(), Errno> {
        let is_gone =
            |entry: &&Dentry| !dir.object().is_complete() && !entry.object().is_negative() && entry.is_expired();
        let gone =
            || core::iter::successors(dir.first_child.get(), |entry| entry.sib_next.get()).filter(is_gone).count();
        let children = dir.children.load(Relaxed);
        if children != 0 && children as usize != gone() { Err(Errno::ENOTEMPTY) } else { Ok(()) }
    }
}

/// Returns whether `cred` may remove `victim` from the directory `dir`.
///
/// # Errors
/// `EACCES`, `EPERM` (sticky, flags), `ENOTDIR`, `EISDIR`.
#[inline(always)]
pub(crate) fn may_remove(
    cred: &Credentials,
    sb: &SuperBlock,
    dir: &Dentry,
    victim: &Dentry,
    is_dir: bool,
) -> Result<(), Errno> {
    let dir_inode = dir.inode().ok_or(Errno::ENOENT)?;
    let rights = dir_inode.rights();
    may_block(sb, dir_inode, rights, cred, MAY_WRITE | MAY_EXEC | MAY_OVERWRITE)?;
    let victim_inode = victim.inode().ok_or(Errno::ENOENT)?;
    flags_allow(sb, victim_inode, cred, InodeFlags::FIXED)?;
    if rights.mode & S_ISVTX != 0 && cred.uid != rights.uid && !cred.owns(&victim_inode.attr()) {
        return Err(Errno::EPERM);
    }
    match (is_dir, victim.object().is_dir()) {
        (true, false) => Err(Errno::ENOTDIR),
        (false, true) => Err(Errno::EISDIR),
        _ => Ok(()),
    }
}

struct Unlink;

impl Operation for Unlink {
    #[inline(always)]
    fn apply(&self, entry: &Entry<'_, '_>, may_evict: &mut MayEvict) -> Result<(), Errno> {
        if entry.last.kind != LastKind::Normal {
            return Err(Errno::EISDIR);
        }
        entry.mount.check_writable()?;
        let victim = entry.find(may_evict)?.ok_or(Errno::ENOENT)?;
        if entry.last.slash {
            return Err(if victim.object().is_dir() { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        may_remove(entry.caller.cred, entry.sb, entry.dir, victim, false)?;
        if let Some(unlocked) = entry.unlocked() {
            return entry.remove_name_locked(unlocked, victim, false);
        }
        check_no_mount(victim)?;
        entry.remove(victim, false)
    }
}

impl Entry<'_, '_> {
    /// Removes an entry that the caller has just made.
    ///
    /// # Errors
    /// `ENOTEMPTY`: another caller has made an entry in it; the file system's. The entry stays.
    #[cold]
    pub(super) fn take_back(&self, made: &Dentry, is_dir: bool) -> Result<(), Errno> {
        let _held = is_dir.then(|| self.sb.lock_dir_nested(made));
        self.context.check_empty(made)?;
        self.remove(made, is_dir)
    }

    #[inline(always)]
    fn remove(&self, victim: &Dentry, is_dir: bool) -> Result<(), Errno> {
        let inode = victim.inode().ok_or(Errno::ENOENT)?;
        if self.section().is_some() && inode.stored() > MAX_FREED {
            return Err(self.leave());
        }
        let (dir, request) = (self.dir_inode()?, self.caller.request());
        let pre_attrs = self.pre_attrs(Files { file: Some((inode, 1)), dir: Some((dir, 1)), ..Files::default() });
        let after = self.sb.fs().unlink(&request, dir, self.last.name, inode)?;
        if is_dir {
            self.sb.forget_children(victim);
        }
        let gone = publish::removed(self.sb, self.dir, victim, self.last.name, is_dir);
        let (links, now) = (if is_dir { 2 } else { 1 }, request.now());
        self.sb.delete_in(self.section(), self.names, self.dir, victim, self.hash, links, now);
        self.touch_dir(dir, -1, -i32::from(is_dir), now);
        pre_attrs.post_attrs(&after);
        publish::gone(self.sb, self.dir, self.last.name, gone);
        Ok(())
    }
}
