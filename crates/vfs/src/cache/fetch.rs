//! Stale attributes: the VFS requests them from the file system before it shows them.
//!
//! # What it is
//! A file system that does not leave attributes to the VFS (of a host directory, of a server) marks
//! an inode's attributes stale by [`Inode::mark_stale`]. Where it keeps the attributes itself
//! ([`Attributes::FileSystem`](crate::Attributes::FileSystem)), the VFS does that with each change
//! of its copy. The next reader requests them by [`crate::FileSystem::attributes`]. A walk cannot
//! do so in rcu-walk: it continues in ref-walk, which holds the place
//! ([`Fallback::Attributes`](crate::Fallback::Attributes)).
//!
//! With `with_changes` a change itself returns them
//! ([`returned`](crate::cache::returned)).
//!
//! # How it is locked
//! No lock. The mark is cleared with the answer, if nothing has set it again since the request
//! began: a reader meanwhile requests the attributes itself. An answer replaces only the attributes
//! that were there at the time of the request: attributes that changed since stay, marked stale.
//! Mode and owner are replaced separately, so that the frequent changes of size and times cannot
//! keep an old right alive. If mode or owner changed since, the attributes stay too old.
//!
//! # Times of validity
//! A walk by name revalidates an expired name, and its attributes with it. A file that is held
//! (root and working directory, handles, open files, the roots of mounts) is used without its name:
//! its users request the attributes when these are older than the file system's time of validity,
//! or were invalidated ([`Inode::is_old`]).
//!
//! # Where it comes from
//! `STATX_ATTR` validity of FUSE (`attr_valid`) and NFS (`NFS_INO_INVALID_ATTR`) in Linux.

use crate::base::access::credentials::Credentials;
use crate::base::attr::{Attr, S_IFDIR, S_IFMT};
use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{AttrSample, Inode};
use crate::slots::object::ObjectFlags;
use crate::slots::slot::dentry_beside;
use prim::atomic::{Ordering::SeqCst, fence};

impl SuperBlock {
    /// Returns the attributes of `inode`, which the caller holds.
    ///
    /// # Errors
    /// Errors of [`crate::FileSystem::attributes`].
    #[inline]
    pub(crate) fn attr_now(&self, inode: &Inode) -> Result<Attr, Errno> {
        // The age first: another thread renews it after the attributes.
        match (inode.is_old(), inode.fresh_attr()) {
            (false, Some(attr)) => Ok(attr),
            _ => self.fetch_attr(inode),
        }
    }

    #[cold]
    pub(crate) fn fetch_attr(&self, inode: &Inode) -> Result<Attr, Errno> {
        if let Some(attr) = self.sharded_attr(inode) {
            return Ok(attr);
        }
        let invalidations = self.invalidations();
        let before = inode.before_request();
        let reply = self.fs().attributes(&Request::of(&Credentials::root()), inode);
        let is_same = |attr: &Attr| if attr.kind() == before.attr.kind() { Ok(()) } else { Err(Errno::ESTALE) };
        let attr = reply.and_then(|attr| is_same(&attr).map(|()| attr)).inspect_err(|_| inode.mark_stale())?;
        let are_rights_known = inode.learn_answer(&self.paths, &attr, &before);
        if self.fs_applies_acls {
            self.fetch_acls(inode, &attr);
        }
        self.mode_learned(inode, before.attr.mode, attr.mode);
        if are_rights_known {
            self.renew(inode, invalidations);
        }
        Ok(attr)
    }

    /// Notes the attributes that a change returned. It began at this number of `invalidations` and
    /// has made `marks` marks.
    pub(crate) fn learn_after(&self, inode: &Inode, attr: &Attr, before: &AttrSample, marks: u32, invalidations: u64) {
        if attr.kind() != before.attr.kind() || !inode.learn_after(&self.paths, attr, before, marks) {
            return;
        }
        self.mode_learned(inode, before.attr.mode, attr.mode);
        // The reply has no ACLs. Where they are the file system's, they have the age of the
        // attributes.
        if !self.fs_applies_acls {
            self.renew(inode, invalidations);
        }
    }

    /// Updates the word of a directory whose mode was another one before.
    fn mode_learned(&self, inode: &Inode, before: u32, now: u32) {
        if before != now && now & S_IFMT == S_IFDIR {
            dentry_beside(inode).update_search(&self.paths);
        }
    }

    /// Notes that the attributes of `inode` are from a request that began at this number of
    /// `invalidations`.
    fn renew(&self, inode: &Inode, invalidations: u64) {
        inode.set_valid(self.valid_of(inode));
        let is_root = self.root().inode().is_some_and(|root| core::ptr::eq(root, inode));
        if is_root && !inode.has_ttl() {
            self.root().update_flags(&self.paths, |object| object.without(ObjectFlags::CHECKED));
        }
        // ORDERING: the fence pairs with that of `SuperBlock::begin_invalidation`: either this thread sees the invalidation, or the
        // invalidating thread sees what was just stored, and ages it.
        fence(SeqCst);
        if self.invalidations() != invalidations {
            inode.age();
            if is_root {
                self.root().expire(&self.paths);
            }
        }
    }

    /// Returns the body of the symbolic link at `dentry`, which the caller holds; requests the body
    /// from the file system if it is not in memory.
    ///
    /// # Errors
    /// The file system's answer.
    pub(crate) fn link_body(&self, dentry: &Dentry, request: &Request) -> Result<Vec<u8>, Errno> {
        let inode = dentry.inode().ok_or(Errno::ENOENT)?;
        if let Some(body) = inode.link_body.load(&self.domain.read()) {
            return Ok(body.to_vec());
        }
        let _held = self.ranks.lock(Rank::Data, &inode.data_lock);
        if let Some(body) = inode.link_body.load(&self.domain.read()) {
            return Ok(body.to_vec());
        }
        let body = self.fs().read_link(request, inode)?;
        let copy = body.to_vec();
        self.charge_body(body.len(), 1);
        inode.link_body.set(&self.domain, Some(body));
        Ok(copy)
    }
}
