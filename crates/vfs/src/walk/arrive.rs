//! Steps of rcu-walk that find no name: arriving at what a name leads to, entering a directory, going up.
//!
//! # What it is
//! What stands between an entry that was found and the place that it leads to: whether it is still good, what is mounted on it, who may
//! go on. The common step needs none of it: a flag in the object word ([`crate::dentry::SPECIAL`], or the want of `SEARCH_ALL`)
//! sends the walk here.
//!
//! # How it is ordered
//! As the other steps: what was read of a place is used after a check of its sequence. Mounts are found under RCU.

use crate::attr::{S_IFDIR, S_IFMT, S_ISVTX};
use crate::context::Place;
use crate::cred::{Credentials, MAY_EXEC};
use crate::dentry::{CHECKED, COLD, DIR, Dentry, INODE, MOUNTED, SEARCH_ALL};
use crate::errno::Errno;
use crate::mount::MountFlags;
use crate::permission::{MayRcu, may_rcu};
use crate::slot::inode_of;
use crate::walk::fallback::Fallback;
use crate::walk::rcu_walk::{At, Halt, MAX_LINKS, RcuWalk, fail};
use crate::walk::resolve::{Resolve, is_within_rcu};

impl<'g> RcuWalk<'g> {
    /// From a name to what it leads to: is it there, is it good still, and is something mounted on it.
    pub(super) fn arrive(&self, at: &At<'g>) -> Result<At<'g>, Halt> {
        let mut at = *at;
        if at.object & CHECKED != 0 && !core::ptr::eq(at.dentry, self.fresh) && at.dentry.is_expired() {
            return Err(Halt::Trouble(Fallback::Revalidate));
        }
        if at.object & COLD != 0 || at.object & INODE == 0 {
            at.dentry.hit(at.object);
        }
        at.object &= !(CHECKED | COLD);
        if at.object & INODE == 0 {
            return Err(fail(&at, Errno::ENOENT));
        }
        while at.object & MOUNTED != 0 {
            match at.mount.get().child_rcu(self.guard, at.dentry) {
                None => at.object &= !MOUNTED,
                Some(_) if self.resolve.has(Resolve::NO_XDEV) => return Err(fail(&at, Errno::EXDEV)),
                Some(child) => at = At::sample(child, child.get().root()),
            }
        }
        Ok(at)
    }

    /// Whether the link may be followed, `last` if it ends the path.
    pub(super) fn may_follow(&self, at: &At<'g>, last: bool) -> Result<(), Errno> {
        let refused = self.resolve.has(Resolve::NO_SYMLINKS) || at.mount.get().has(MountFlags::NOSYMFOLLOW);
        if self.links >= MAX_LINKS || refused {
            return Err(Errno::ELOOP);
        }
        if last && self.resolve.has(Resolve::PROTECTED_LINKS) { protected_link(at.dentry, self.cred) } else { Ok(()) }
    }

    /// `.` and `..`
    pub(super) fn step_dots(&self, at: &At<'g>, len: usize) -> Result<At<'g>, Halt> {
        if len == 1 {
            return Ok(*at);
        }
        let mut from = *at;
        loop {
            if from.place().is(&self.root) {
                // Out of a scope, or above the root, which is its own parent.
                let leads_out = self.resolve.has(Resolve::BENEATH);
                return if leads_out { Err(fail(at, Errno::EXDEV)) } else { Ok(*at) };
            }
            if !core::ptr::eq(from.dentry, from.mount.get().root()) {
                break;
            }
            let Some(up) = from.mount.get().attachment(self.guard) else { return Ok(*at) };
            if self.resolve.has(Resolve::NO_XDEV) {
                return Err(fail(at, Errno::EXDEV));
            }
            from = At::start(Place { mount: up.parent.borrow(), dentry: up.mountpoint() });
        }
        let parent = from.dentry.parent().map(|parent| At::sample(from.mount, parent));
        match parent {
            Some(parent) if !at.changed() && !from.changed() => self.check_up(parent),
            _ => Err(Halt::Trouble(Fallback::DirectoryChanged)),
        }
    }

    /// Whether a directory that `..` led to may be gone to: it is within the scope, and within what its mount shows.
    fn check_up(&self, up: At<'g>) -> Result<At<'g>, Halt> {
        let scoped = self.resolve.is_scoped();
        let mount = up.mount.get();
        let partial = !core::ptr::eq(mount.root(), mount.sb.root());
        let mount_root = Place { mount: up.mount, dentry: mount.root() };
        for (root, outside) in
            [(scoped.then_some(self.root), Errno::EXDEV), (partial.then_some(mount_root), Errno::ENOENT)]
        {
            match root.map_or(Some(true), |root| is_within_rcu(self.tree, self.guard, up.place(), &root)) {
                Some(true) => {}
                Some(false) => return Err(fail(&up, outside)),
                None => return Err(Halt::Trouble(Fallback::TreeChanged)),
            }
        }
        Ok(up)
    }

    /// Whether the walk may go on below a place that is not a directory open to everyone, and where that is.
    pub(super) fn enter(&self, at: &At<'g>) -> Result<At<'g>, Halt> {
        let at = self.arrive(at)?;
        if at.is_link() {
            return Err(Halt::Link);
        }
        if at.object & DIR == 0 {
            return Err(fail(&at, Errno::ENOTDIR));
        }
        if at.object & SEARCH_ALL != 0 {
            return Ok(at);
        }
        let Some(inode) = inode_of(at.dentry, at.object) else { return Err(Halt::Trouble(Fallback::EntryChanged)) };
        match may_rcu(&at.mount.get().sb, self.guard, (inode, &inode.attr()), self.cred, MAY_EXEC) {
            MayRcu::Is(Ok(())) => Ok(at),
            MayRcu::Is(Err(errno)) => Err(fail(&at, errno)),
            MayRcu::NotHere => Err(Halt::Trouble(Fallback::Permission)),
        }
    }
}

/// Whether the policy lets `cred` follow the symbolic link that ends its path: `protected_symlinks` of `proc_sys_fs(5)`.
///
/// # Errors
/// `EACCES`.
pub(crate) fn protected_link(link: &Dentry, cred: &Credentials) -> Result<(), Errno> {
    let attr = |dentry: &Dentry| dentry.inode().map(|inode| inode.attr());
    let (Some(own), Some(dir)) = (attr(link), link.parent().and_then(attr)) else { return Ok(()) };
    let open_to_all = dir.mode & (S_ISVTX | 0o002) == S_ISVTX | 0o002 && dir.mode & S_IFMT == S_IFDIR;
    if open_to_all && own.uid != cred.uid && own.uid != dir.uid { Err(Errno::EACCES) } else { Ok(()) }
}
