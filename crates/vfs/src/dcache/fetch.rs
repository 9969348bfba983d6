//! Stale attributes: the VFS requests them from the file system before it shows them.
//!
//! # What it is
//! A file system that does not leave attributes to the VFS (of a host directory, of a server) marks those of
//! an inode stale by [`Inode::mark_stale`], also after its own changes. The next reader requests them by
//! [`crate::FileSystem::attributes`]. A walk cannot do so in rcu-walk: it continues in ref-walk, which holds
//! the place ([`Fallback::Attributes`](crate::Fallback::Attributes)).
//!
//! # How it is locked
//! No lock. The mark is cleared before the request, so a change that the answer does not contain sets it
//! again. An answer replaces only the attributes that were there at the time of the request: if they changed
//! since, they stay, marked stale.
//!
//! # Where it comes from
//! `STATX_ATTR` validity of FUSE (`attr_valid`) and NFS (`NFS_INO_INVALID_ATTR`) in Linux.

use crate::base::access::credentials::Credentials;
use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::dcache::dentry::Dentry;
use crate::dcache::fs::Request;
use crate::dcache::inode::Inode;
use crate::dcache::superblock::SuperBlock;

impl SuperBlock {
    /// The attributes of `inode`, which is held.
    ///
    /// # Errors
    /// Errors of [`crate::FileSystem::attributes`].
    #[inline]
    pub(crate) fn attr_now(&self, inode: &Inode) -> Result<Attr, Errno> {
        if inode.is_stale() { self.fetch_attr(inode) } else { Ok(inode.attr()) }
    }

    #[cold]
    pub(crate) fn fetch_attr(&self, inode: &Inode) -> Result<Attr, Errno> {
        inode.set_stale(false);
        let before = inode.attr();
        let reply = self.fs.attributes(&Request::of(&Credentials::root()), inode);
        let is_same = |attr: &Attr| if attr.kind() == before.kind() { Ok(()) } else { Err(Errno::ESTALE) };
        let attr = reply.and_then(|attr| is_same(&attr).map(|()| attr)).inspect_err(|_| inode.mark_stale())?;
        let is_known = inode.update(|now| {
            if *now == before {
                *now = attr;
            }
            *now == attr
        });
        if self.fs_applies_acls {
            self.fetch_acls(inode, &attr);
        }
        if !is_known {
            // The attributes changed meanwhile, and the answer may be older than the change: it does not undo
            // it.
            inode.mark_stale();
        } else if attr.is_dir() && before.mode != attr.mode {
            crate::dcache::slot::dentry_beside(inode).update_search();
        }
        Ok(attr)
    }

    /// The body of the symbolic link at `dentry`, which is held; requested from the file system if it is not
    /// in memory.
    ///
    /// # Errors
    /// What the file system answers.
    pub(crate) fn link_body(&self, dentry: &Dentry, request: &Request) -> Result<Vec<u8>, Errno> {
        let inode = dentry.inode().ok_or(Errno::ENOENT)?;
        if let Some(body) = inode.link_body.load(&self.domain.read()) {
            return Ok(body.to_vec());
        }
        let _held = self.ranks.lock(Rank::Data, &inode.data_lock);
        if let Some(body) = inode.link_body.load(&self.domain.read()) {
            return Ok(body.to_vec());
        }
        let body = self.fs.read_link(request, inode)?;
        let copy = body.to_vec();
        self.charge_body(body.len(), 1);
        inode.link_body.set(&self.domain, Some(body));
        Ok(copy)
    }
}
