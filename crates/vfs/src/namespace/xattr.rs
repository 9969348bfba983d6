//! getxattr, setxattr, removexattr, listxattr, and what ACLs do to the mode.
//!
//! Rules that need no tree are in [`crate::xattr`]. An ACL is an attribute that the file system stores; the inode has it a second
//! time, to be read by permission checks.

use super::Base;
use crate::acl::{Acl, AclKind, Acls};
use crate::attr::{Attr, S_ISGID, SetAttr};
use crate::context::{Context, Held};
use crate::cred::{Capabilities, Credentials};
use crate::dentry::{DIR, Dentry, SLOW_DIR};
use crate::errno::Errno;
use crate::fs::{Request, SetXattr};
use crate::inode::Inode;
use crate::notify::EventKind;
use crate::permission::may_block;
use crate::rank::Rank;
use crate::superblock::{SuperBlock, change_dir_flags};
use crate::xattr::{XattrUse, acl_to_set, check_lengths, is_listed, may_get_acl, may_use};

impl Context {
    /// The value of the extended attribute `name`: `getxattr(2)`, `lgetxattr(2)` without `follow`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE` for a name of no byte or more than 255, `EACCES`; those of a walk.
    pub fn get_xattr(&self, base: Base<'_>, path: &[u8], follow: bool, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        check_lengths(name, XattrUse::Get)?;
        get(&self.hold(base, path, follow)?, &self.credentials(), name)
    }

    /// Sets the extended attribute `name`: `setxattr(2)`, `lsetxattr(2)` without `follow`.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` says; `EOPNOTSUPP`, `ERANGE`, `E2BIG`, `EPERM`, `EACCES`, `EROFS`, `ENOSPC`, `EDQUOT`; those of a
    /// walk.
    pub fn set_xattr(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        check_lengths(name, XattrUse::Set(value))?;
        set(&self.hold(base, path, follow)?, &self.credentials(), &self.request(), name, value, how)
    }

    /// Takes the extended attribute `name` away: `removexattr(2)`, `lremovexattr(2)` without `follow`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE`, `EPERM`, `EACCES`, `EROFS`; those of a walk.
    pub fn remove_xattr(&self, base: Base<'_>, path: &[u8], follow: bool, name: &[u8]) -> Result<(), Errno> {
        check_lengths(name, XattrUse::Remove)?;
        remove(&self.hold(base, path, follow)?, &self.credentials(), &self.request(), name)
    }

    /// The names of all extended attributes: `listxattr(2)`, `llistxattr(2)` without `follow`.
    ///
    /// # Errors
    /// Those of a walk, and the file system's.
    pub fn list_xattrs(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Vec<Box<[u8]>>, Errno> {
        list(&self.hold(base, path, follow)?, &self.credentials())
    }
}

/// [`Context::get_xattr`] of what is held.
pub(crate) fn get(held: &Held, cred: &Credentials, name: &[u8]) -> Result<Box<[u8]>, Errno> {
    check_lengths(name, XattrUse::Get)?;
    let (sb, inode) = (held.sb(), held.inode()?);
    let attr = held.attr()?;
    match AclKind::of_xattr(name) {
        Some(kind) => may_get_acl(&attr, kind)?,
        None => may_use(cred, &attr, name, XattrUse::Get, |mask| may_block(sb, (inode, &attr), cred, mask))?,
    }
    sb.fs.get_xattr(inode, name)
}

/// [`Context::set_xattr`] of what is held.
pub(crate) fn set(
    held: &Held,
    cred: &Credentials,
    request: &Request,
    name: &[u8],
    value: &[u8],
    how: SetXattr,
) -> Result<(), Errno> {
    check_lengths(name, XattrUse::Set(value))?;
    held.mount().check_writable()?;
    let (sb, inode) = (held.sb(), held.inode()?);
    let attr = held.attr()?;
    if let Some(kind) = AclKind::of_xattr(name) {
        let acl = acl_to_set(cred, &attr, kind, value)?;
        return sb.set_acl(request, cred, held.dentry(), kind, acl);
    }
    may_use(cred, &attr, name, XattrUse::Set(value), |mask| may_block(sb, (inode, &attr), cred, mask))?;
    let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
    sb.fs.set_xattr(request, inode, name, value, how)?;
    changed(held, inode, request);
    Ok(())
}

/// [`Context::remove_xattr`] of what is held.
pub(crate) fn remove(held: &Held, cred: &Credentials, request: &Request, name: &[u8]) -> Result<(), Errno> {
    check_lengths(name, XattrUse::Remove)?;
    held.mount().check_writable()?;
    let (sb, inode) = (held.sb(), held.inode()?);
    let attr = held.attr()?;
    if let Some(kind) = AclKind::of_xattr(name) {
        let acl = acl_to_set(cred, &attr, kind, &[])?;
        return sb.set_acl(request, cred, held.dentry(), kind, acl);
    }
    may_use(cred, &attr, name, XattrUse::Remove, |mask| may_block(sb, (inode, &attr), cred, mask))?;
    let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
    sb.fs.remove_xattr(request, inode, name)?;
    changed(held, inode, request);
    Ok(())
}

/// [`Context::list_xattrs`] of what is held.
pub(crate) fn list(held: &Held, cred: &Credentials) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = held.sb().fs.list_xattrs(held.inode()?)?;
    names.retain(|name| is_listed(cred, name));
    Ok(names)
}

fn changed(held: &Held, inode: &Inode, request: &Request) {
    inode.update(|attr| attr.ctime = request.now);
    held.sb().touched(EventKind::Attributes, held.dentry());
}

impl SuperBlock {
    /// Gives the file at `dentry` an ACL, or none; an access ACL also becomes the mode.
    fn set_acl(
        &self,
        request: &Request,
        cred: &Credentials,
        dentry: &Dentry,
        kind: AclKind,
        acl: Option<Acl>,
    ) -> Result<(), Errno> {
        let inode = dentry.inode().ok_or(Errno::EIO)?;
        let _held = self.ranks.lock(Rank::Data, &inode.data_lock);
        let bits = acl.as_ref().filter(|_| kind == AclKind::Access).map(Acl::mode_bits);
        let kept = acl.filter(|acl| kind == AclKind::Default || acl.equiv_mode().is_none());
        self.store_acl(request, inode, kind, kept.as_ref())?;
        if kind == AclKind::Access {
            let keeps = cred.in_group(inode.attr().gid) || cred.capabilities.contains(Capabilities::FSETID);
            let bits = bits.unwrap_or_else(|| inode.mode()) & 0o777;
            let mode = inode.mode() & 0o7000 & !if keeps { 0 } else { S_ISGID } | bits;
            self.fs.set_attr(request, inode, &SetAttr { mode: Some(mode), ..SetAttr::default() })?;
            inode.update(|attr| attr.mode = attr.kind() | mode);
        }
        let mut acls = inode.acl(&self.domain.read()).cloned().unwrap_or_default();
        match kind {
            AclKind::Access => acls.access = kept,
            AclKind::Default => acls.default = kept,
        }
        self.put_acls(dentry, inode, acls);
        inode.update(|attr| attr.ctime = request.now);
        if dentry.has(DIR) {
            change_dir_flags(dentry, 0, 0);
        }
        self.touched(EventKind::Attributes, dentry);
        Ok(())
    }

    /// Lets the file system keep an ACL, or drop it.
    fn store_acl(&self, request: &Request, inode: &Inode, kind: AclKind, acl: Option<&Acl>) -> Result<(), Errno> {
        let name = kind.xattr_name();
        match acl {
            Some(acl) => self.fs.set_xattr(request, inode, name, &acl.to_xattr(), SetXattr::Any),
            None => match self.fs.remove_xattr(request, inode, name) {
                Err(Errno::ENODATA) => Ok(()),
                done => done,
            },
        }
    }

    fn put_acls(&self, dentry: &Dentry, inode: &Inode, acls: Acls) {
        let slow = acls.access.is_some() || self.own_permissions;
        let any = acls.access.is_some() || acls.default.is_some();
        inode.set_acl(&self.domain, any.then_some(acls));
        if dentry.has(DIR) {
            change_dir_flags(dentry, if slow { 0 } else { SLOW_DIR }, if slow { SLOW_DIR } else { 0 });
        }
    }

    /// What a new entry of a directory with a default ACL begins with; `mode` becomes what the ACL leaves of it.
    pub(crate) fn new_acls(&self, dir: &Inode, mode: &mut u32) -> Option<Acls> {
        let guard = self.domain.read();
        let default = dir.acl(&guard)?.default.as_ref()?;
        let access = Acl::create_from_default(default, mode);
        let is_dir = *mode & crate::attr::S_IFMT == crate::attr::S_IFDIR;
        let default = is_dir.then(|| default.clone());
        (access.is_some() || default.is_some()).then_some(Acls { access, default })
    }

    /// Gives a new entry the ACLs that it begins with. That the file system cannot keep them does not undo the entry.
    pub(crate) fn inherit_acls(&self, request: &Request, made: &Dentry, acls: Acls) {
        let Some(inode) = made.inode() else { return };
        for (kind, acl) in [(AclKind::Access, &acls.access), (AclKind::Default, &acls.default)] {
            if let Some(acl) = acl {
                let _ = self.store_acl(request, inode, kind, Some(acl));
            }
        }
        self.put_acls(made, inode, acls);
    }

    /// What a chmod does to the access ACL, under the inode's data lock.
    pub(crate) fn chmod_acl(
        &self,
        request: &Request,
        dentry: &Dentry,
        inode: &Inode,
        attr: &Attr,
    ) -> Result<(), Errno> {
        let Some(mut acls) = inode.acl(&self.domain.read()).cloned() else { return Ok(()) };
        let Some(access) = &acls.access else { return Ok(()) };
        let changed = access.chmod(attr.mode);
        self.store_acl(request, inode, AclKind::Access, Some(&changed))?;
        acls.access = Some(changed);
        self.put_acls(dentry, inode, acls);
        Ok(())
    }

    /// The body of the symbolic link at `dentry`, which is held; asked of the file system if it is not in memory.
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
