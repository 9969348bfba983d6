//! ACLs in the cache: the file system stores them as extended attributes; the inode has a copy for permission
//! checks.

use crate::base::access::acl::{Acl, AclKind, Acls};
use crate::base::access::credentials::Credentials;
use crate::base::attr::{Attr, S_IFDIR, S_IFLNK, S_IFMT};
use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::fs::{InitExtra, NewInode, Request, SetXattr};
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::slot::dentry_beside;

impl SuperBlock {
    /// Makes the file system store an ACL, or remove it.
    pub(crate) fn store_acl(
        &self,
        request: &Request,
        inode: &Inode,
        kind: AclKind,
        acl: Option<&Acl>,
    ) -> Result<(), Errno> {
        let name = kind.xattr_name();
        match acl {
            Some(acl) => self.fs().set_xattr(request, inode, name, &acl.to_xattr(), SetXattr::Any),
            None => match self.fs().remove_xattr(request, inode, name) {
                Err(Errno::ENODATA) => Ok(()),
                done => done,
            },
        }
    }

    /// Replaces the copies of an inode's ACLs. `dentry` is the directory's dentry, or any for
    /// another file.
    pub(crate) fn put_acls(&self, dentry: &Dentry, inode: &Inode, acls: Acls) {
        let _held = self.ranks.lock(Rank::Inodes, self.inodes.lock(inode.node()));
        self.put_acls_locked(dentry, inode, acls);
    }

    fn put_acls_locked(&self, dentry: &Dentry, inode: &Inode, acls: Acls) {
        let has_access = acls.access.is_some();
        let any = has_access || acls.default.is_some();
        let set = || inode.set_acl(&self.domain, any.then_some(acls));
        if !dentry.object().is_dir() {
            return set();
        }
        let flags = |object: Object| object.without(ObjectFlags::ACL);
        let flags = |object| if has_access { flags(object).with(ObjectFlags::ACL) } else { flags(object) };
        self.paths.change_rights(dentry, || {
            set();
            dentry.update_flags(&self.paths, flags);
        });
    }

    /// Replaces the copies by the file system's answer, if they differ.
    #[inline]
    pub(crate) fn renew_acls(&self, dentry: &Dentry, inode: &Inode, new: Option<Acls>) {
        if new.is_some() || inode.has_acl() || inode.has_default_acl() {
            let _held = self.ranks.lock(Rank::Inodes, self.inodes.lock(inode.node()));
            let is_same = inode.acl(&self.domain.read()) == new.as_ref();
            if !is_same {
                self.put_acls_locked(dentry, inode, new.unwrap_or_default());
            }
        }
    }

    /// Reads the ACLs of an inode from the file system, whose attributes were read just now. If they cannot be read, the
    /// group class has no permission; if that may change, the next use reads them again.
    pub(crate) fn fetch_acls(&self, inode: &Inode, attr: &Attr) {
        let system = Credentials::root();
        let read = |kind: AclKind| match self.fs().get_xattr(&Request::of(&system), inode, kind.xattr_name()) {
            Ok(value) => Acl::from_xattr(&value),
            Err(Errno::ENODATA | Errno::EOPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
        };
        if attr.kind() == S_IFLNK {
            return;
        }
        let access = read(AclKind::Access).unwrap_or_else(|errno| {
            if Acl::is_transient(errno) {
                inode.mark_stale();
            }
            Some(Acl::unreadable(attr.mode))
        });
        let default = if attr.is_dir() { read(AclKind::Default).ok().flatten() } else { None };
        self.renew_acls(dentry_beside(inode), inode, Acls::some(access, default));
    }

    /// Reads the ACLs of a new entry, or of one whose ACLs were changed, from a file system that keeps them itself.
    pub(crate) fn fetch_kept_acls(&self, inode: &Inode) {
        if self.fs_applies_acls {
            self.fetch_acls(inode, &inode.attr());
        }
    }

    /// Returns the initial ACLs of a new entry in a directory with a default ACL; applies the ACL
    /// to `mode`.
    pub(crate) fn new_acls(&self, dir: &Inode, mode: &mut u32) -> Option<Acls> {
        let guard = self.domain.read();
        let default = dir.acl(&guard)?.default.as_ref()?;
        let access = Acl::create_from_default(default, mode);
        let is_dir = *mode & S_IFMT == S_IFDIR;
        let default = is_dir.then(|| default.clone());
        (access.is_some() || default.is_some()).then_some(Acls { access, default })
    }

    /// Stores the ACLs and labels of a new entry, if the file system has not stored them with the file, and reads the ACLs that
    /// the file system gave it.
    ///
    /// # Errors
    /// A label cannot be stored.
    #[inline(always)]
    pub(crate) fn begin_xattrs(
        &self,
        request: &Request,
        made: &Dentry,
        beside: Option<&InitExtra<'_>>,
    ) -> Result<(), Errno> {
        if let Some(beside) = beside {
            self.store_beside(request, made, beside)?;
        }
        if self.fs_applies_acls {
            made.inode().into_iter().for_each(|inode| self.fetch_kept_acls(inode));
        }
        Ok(())
    }

    /// Stores the ACLs of a new file. An ACL that the file system cannot store is lost when the inode leaves the cache.
    #[cold]
    fn store_beside(&self, request: &Request, made: &Dentry, beside: &InitExtra<'_>) -> Result<(), Errno> {
        let Some(inode) = made.inode().filter(|_| !beside.is_stored()) else { return Ok(()) };
        for (name, value) in beside.acl_xattrs() {
            let _ = self.fs().set_xattr(request, inode, name, &value, SetXattr::Any);
        }
        // The caller need not have the right to set labels: a security module does it.
        let system = Credentials::root();
        let system = Request::of(&system);
        let mut labels = beside.labels.iter();
        let stored =
            labels.try_for_each(|(name, value)| self.fs().set_xattr(&system, inode, name, value, SetXattr::Any));
        inode.update(|attr| attr.ctime = request.now());
        stored
    }

    /// Updates the access ACL after a chmod, under the inode's data lock.
    pub(crate) fn chmod_acl(
        &self,
        request: &Request,
        dentry: &Dentry,
        inode: &Inode,
        attr: &Attr,
    ) -> Result<(), Errno> {
        if self.fs_keeps_modes {
            self.fetch_kept_acls(inode);
            return Ok(());
        }
        let Some(mut acls) = inode.acl(&self.domain.read()).cloned() else { return Ok(()) };
        let Some(access) = &acls.access else { return Ok(()) };
        let changed = access.chmod(attr.mode);
        self.store_acl(request, inode, AclKind::Access, Some(&changed))?;
        acls.access = Some(changed);
        self.put_acls(dentry, inode, acls);
        Ok(())
    }
}

/// Returns the ACLs in a file system's answer, if there are any.
pub(crate) fn acls_of(new: &NewInode) -> Option<Acls> {
    Acls::some(new.access_acl.clone(), new.default_acl.clone())
}
