//! Operations on names: what the system calls of the same names do.
//!
//! # How they work
//! Each operation walks to the directory, locks it, makes sure that it still is what the walk found (its sequence did not
//! change and it was not removed), checks, asks the file system, and changes the tree. No count is taken on the directory: the
//! lock keeps it, since removing it would need the same lock. (It may be moved meanwhile; that changes nothing in it.)
//!
//! The order of checks, and so which of two errors is answered, is Linux's; `crates/lightfoot/tests/kernel.rs` compares.

mod attributes;
mod create;
mod last;
mod open;
mod query;
mod remove;
mod rename;

pub(crate) use attributes::{MAX_SIZE, contents_changed, set_attr_held};
pub use open::OpenFlags;

use crate::context::{Context, Held};
use crate::cred::{Credentials, MAY_EXEC, MAY_WRITE};
use crate::dentry::{DIR, Dentry, HASHED, SEARCH_ALL};
use crate::errno::Errno;
use crate::fs::Request;
use crate::inode::Inode;
use crate::name::{NAME_MAX, PATH_MAX};
use crate::rank::{Locked, Rank};
use crate::slot::outlive;
use crate::tree::Tree;
use crate::walk::{Found, nul_or};
pub(crate) use last::{Kind, Last};

/// Where a relative path starts: the working directory, or a directory that is held.
pub type Base<'a> = Option<&'a Held>;

/// A directory that a walk found, and the sequence that it had. Not held.
#[derive(Clone, Copy)]
pub(crate) struct DirAt<'t> {
    pub(crate) dir: &'t Dentry,
    seq: u32,
    /// Symbolic links that the walk followed.
    links: u32,
}

impl<'t> DirAt<'t> {
    /// Whether the directory is still what the walk found. With its lock held it then stays in the tree; only its own name and
    /// place may change.
    fn is_current(&self) -> bool {
        !self.dir.seq.retry(self.seq)
    }
}

/// A locked directory and the name in it that an operation is about.
pub(crate) struct Entry<'t, 'p> {
    pub(crate) context: &'t Context,
    pub(crate) tree: &'t Tree,
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
        self.context.find_in(self.dir, &self.last, self.hash)
    }
}

/// Whether the directory, which not everyone may search, may be by this context. Apart, so that the rest of what
/// [`Context::parent`] takes is small enough to be inlined, and its result never goes through memory.
#[cold]
#[inline(never)]
fn may_search(found: &Found<'_>) -> Result<(), Errno> {
    found.cred.may(&found.inode()?.attr(), MAY_EXEC)
}

impl Context {
    /// The entry `last` of the locked directory `dir`, if there is one; `ENOENT` in a directory that was removed.
    fn find_in(&self, dir: &Dentry, last: &Last<'_>, hash: u64) -> Result<Option<&Dentry>, Errno> {
        if !dir.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        if last.name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        self.tree().find_locked(|| self.request(), dir, last.name, hash)
    }

    /// Walks to the directory of a path's `last` component; it must be one, and searchable.
    pub(crate) fn parent(&self, links: u32, base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<DirAt<'_>, Errno> {
        if path.len() > PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let tree = self.tree();
        let found = self.resolve_after(links, base, last.parent, true, |found| {
            if found.object & DIR == 0 {
                return Err(Errno::ENOTDIR);
            }
            // Nothing is looked up for the root itself.
            if found.object & SEARCH_ALL == 0 && last.kind != Kind::Root {
                may_search(found)?;
            }
            Ok(DirAt { dir: outlive(tree, found.dentry), seq: found.seq, links: found.links })
        });
        match found {
            Ok(at) => Ok(at),
            Err(errno) => Err(nul_or(path, errno)),
        }
    }

    /// Walks to the directory of `path`'s last component, locks it and calls `f`.
    #[inline]
    pub(crate) fn in_parent<'t, 'p, R>(
        &'t self,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'t, 'p>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.in_parent_after(0, base, path, f)
    }

    /// [`Context::in_parent`] as the continuation of a walk that has followed `links` symbolic links.
    #[inline]
    pub(crate) fn in_parent_after<'t, 'p, R>(
        &'t self,
        links: u32,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'t, 'p>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let last = Last::of(path).ok_or(Errno::ENOENT)?;
        loop {
            let at = self.parent(links, base, path, &last)?;
            let tree = self.tree();
            let held = tree.ranks.lock(Rank::Directory, &at.dir.lock);
            // A directory that moved between the walk and the lock is walked to again: each time, somebody else went forward.
            if at.is_current() {
                let hash = tree.key.hash(last.name);
                let entry = Entry { context: self, tree, dir: at.dir, last, hash, links: at.links, _held: held };
                return f(&entry).map_err(|errno| nul_or(path, errno));
            }
        }
    }

    /// Calls `f` with the credentials of now. `f` must not block.
    pub(crate) fn with_cred<R>(&self, f: impl FnOnce(&Credentials) -> R) -> R {
        let guard = self.tree().domain.read();
        f(&self.state(&guard).cred)
    }

    pub(crate) fn request(&self) -> Request {
        self.with_cred(Request::of)
    }

    /// Whether entries may come and go in the directory.
    ///
    /// # Errors
    /// `EACCES`; `ENOENT` if it was removed.
    pub(crate) fn may_change(&self, dir: &Dentry) -> Result<(), Errno> {
        if !dir.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        let attr = dir.inode().ok_or(Errno::ENOENT)?.attr();
        self.with_cred(|cred| cred.may(&attr, MAY_WRITE | MAY_EXEC))
    }
}
