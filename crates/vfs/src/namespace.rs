//! Operations on names: what the system calls of the same names do.
//!
//! # How they work
//! Each operation walks to the directory, locks it, makes sure that it still is what the walk found (its sequence did not
//! change and it was not removed), checks, asks the file system, and changes the tree. A count is taken on the mount, so that its
//! file system stays; none on the directory: the lock keeps it, since removing it would need the same lock. (It may be moved
//! meanwhile; that changes nothing in it.)
//!
//! The order of checks, and so which of two errors is answered, is Linux's; `crates/lightfoot/tests/kernel.rs` compares.

mod attributes;
mod create;
mod held;
mod last;
mod open;
mod query;
mod remove;
mod rename;
pub(crate) mod xattr;

pub(crate) use attributes::{MAX_SIZE, contents_changed, drop_set_ids_first, set_attr_held};
pub use open::OpenFlags;

use crate::context::{Context, Held};
use crate::cred::{MAY_EXEC, MAY_WRITE};
use crate::dentry::{DIR, Dentry, HASHED, SEARCH_ALL};
use crate::errno::Errno;
use crate::fs::Request;
use crate::inode::Inode;
use crate::mount::Mount;
use crate::name::{NAME_MAX, PATH_MAX};
use crate::permission::{may, may_block};
use crate::rank::{Locked, Rank};
use crate::slot::{Loose, Pinned};
use crate::superblock::SuperBlock;
use crate::walk::nul_or;
use crate::walk::resolve::Resolve;
pub(crate) use last::{Kind, Last};
use sync::PerCpuArc;

pub use crate::walk::resolve::Base;

/// A directory that a walk found, and the sequence that it had. Its mount is held, it is not.
pub(crate) struct DirAt {
    pub(crate) mount: PerCpuArc<Mount>,
    dir: Loose,
    seq: u32,
    /// Symbolic links that the walk followed.
    links: u32,
}

impl DirAt {
    pub(crate) fn dir(&self) -> &Dentry {
        self.dir.get()
    }

    pub(crate) fn sb(&self) -> &SuperBlock {
        &self.mount.sb
    }

    /// Whether the directory is still what the walk found. With its lock held it then stays in the tree; only its own name and
    /// place may change.
    fn is_current(&self) -> bool {
        !self.dir().seq.retry(self.seq)
    }
}

/// A locked directory and the name in it that an operation is about.
pub(crate) struct Entry<'t, 'p> {
    pub(crate) context: &'t Context,
    pub(crate) mount: &'t PerCpuArc<Mount>,
    pub(crate) sb: &'t SuperBlock,
    pub(crate) dir: &'t Dentry,
    pub(crate) last: Last<'p>,
    pub(crate) hash: u64,
    /// Symbolic links followed on the way here.
    pub(crate) links: u32,
    _held: Locked<'t>,
}

impl<'t> Entry<'t, '_> {
    /// The directory's inode.
    pub(crate) fn dir_inode(&self) -> Result<&'t Inode, Errno> {
        self.dir.inode().ok_or(Errno::ENOENT)
    }

    /// The entry, if there is one; `ENOENT` in a directory that was removed.
    pub(crate) fn find(&self) -> Result<Option<&'t Dentry>, Errno> {
        self.context.find_in(self.sb, self.dir, &self.last, self.hash)
    }

    /// What is at `dentry`, held.
    pub(crate) fn hold(&self, pinned: Pinned) -> Held {
        Held::new(self.mount.clone(), pinned)
    }
}

impl Context {
    /// The entry `last` of the locked directory `dir`, if there is one; `ENOENT` in a directory that was removed.
    fn find_in<'s>(
        &self,
        sb: &'s SuperBlock,
        dir: &Dentry,
        last: &Last<'_>,
        hash: u64,
    ) -> Result<Option<&'s Dentry>, Errno> {
        if !dir.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        if last.name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        sb.find_locked(|| self.request(), dir, last.name, hash)
    }

    /// Walks to the directory of a path's `last` component; it must be one, and searchable.
    pub(crate) fn parent(&self, links: u32, base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<DirAt, Errno> {
        if path.len() > PATH_MAX {
            return Err(nul_or(path, Errno::ENAMETOOLONG));
        }
        if !base.resolve.is_plain() {
            check_scope(base, path, last)?;
        }
        let found = self.resolve_after(links, base, last.parent, true, |found| {
            if found.object & DIR == 0 {
                return Err(Errno::ENOTDIR);
            }
            // Nothing is looked up for the root itself.
            if found.object & SEARCH_ALL == 0 && last.kind != Kind::Root {
                may(found, &found.inode()?.attr(), MAY_EXEC)?;
            }
            let mount = found.count_mount()?;
            Ok(DirAt { mount, dir: Loose::of(found.sb(), found.dentry), seq: found.seq, links: found.links })
        });
        match found {
            Ok(at) => Ok(at),
            Err(errno) => Err(nul_or(path, errno)),
        }
    }

    /// Walks to the directory of `path`'s last component, locks it and calls `f`.
    #[inline]
    pub(crate) fn in_parent<'p, R>(
        &self,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'_, 'p>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.in_parent_after(0, base, path, f)
    }

    /// [`Context::in_parent`] as the continuation of a walk that has followed `links` symbolic links.
    #[inline]
    pub(crate) fn in_parent_after<'p, R>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'_, 'p>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let last = Last::of(path).ok_or(Errno::ENOENT)?;
        loop {
            let at = self.parent(links, base, path, &last)?;
            let (sb, dir) = (at.sb(), at.dir());
            let held = sb.ranks.lock(Rank::Directory, &dir.lock);
            // A directory that moved between the walk and the lock is walked to again: each time, somebody else went forward.
            if at.is_current() {
                let hash = sb.hash(last.name);
                let (mount, links) = (&at.mount, at.links);
                let entry = Entry { context: self, mount, sb, dir, last, hash, links, _held: held };
                return f(&entry).map_err(|errno| nul_or(path, errno));
            }
        }
    }

    pub(crate) fn request(&self) -> Request {
        let guard = self.tree().domain.read();
        let state = self.state(&guard);
        let request = Request::of(&state.cred);
        match state.patience {
            None => request,
            Some(ns) => request.within(ns),
        }
    }

    /// Whether entries may come and go in the directory.
    ///
    /// # Errors
    /// `EACCES`; `ENOENT` if it was removed.
    pub(crate) fn may_change(&self, sb: &SuperBlock, dir: &Dentry) -> Result<(), Errno> {
        if !dir.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        let inode = dir.inode().ok_or(Errno::ENOENT)?;
        may_block(sb, (inode, &inode.attr()), &self.credentials(), MAY_WRITE | MAY_EXEC)
    }
}

/// What a limit of the walk says to an operation on the last component, before its directory is walked to.
///
/// # Errors
/// `EAGAIN`: what may ask the file system is not answered from the cache. `EXDEV`: the path begins outside of the scope.
#[cold]
fn check_scope(base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<(), Errno> {
    if base.resolve.has(Resolve::CACHED) {
        return Err(Errno::EAGAIN);
    }
    let beneath = base.resolve.has(Resolve::BENEATH);
    if beneath && path.first() == Some(&b'/') {
        return Err(Errno::EXDEV);
    }
    if beneath && last.kind == Kind::Root { Err(Errno::EXDEV) } else { Ok(()) }
}
