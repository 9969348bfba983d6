//! getxattr, setxattr, removexattr, listxattr, and the effect of ACLs on the mode.
//!
//! [`crate::base::access::xattr`] has the rules that need no tree. The file system stores an ACL as an
//! attribute; the inode has a copy for permission checks.

use crate::base::access::acl::{Acl, AclKind};
use crate::base::access::credentials::{Capabilities, Credentials};
use crate::base::access::xattr::{XattrUse, acl_to_set, check_lengths, is_listed, may_get_acl, may_use};
use crate::base::attr::{S_ISGID, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::InodeFlags;
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::fs::{Request, SetXattr};
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef};
use crate::notify::EventKind;
use crate::ops::publish;
use crate::slots::inode::Inode;
use crate::walk::permission::{flags_allow, may_block};

impl Context {
    /// Returns the value of the extended attribute `name`: `getxattr(2)`, `lgetxattr(2)` without
    /// `follow`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE` for an empty name or one of more than 255 bytes, `EACCES`;
    /// errors of a walk.
    pub fn get_xattr(&self, base: Base<'_>, path: &[u8], follow: bool, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        check_lengths(name, XattrUse::Get)?;
        self.on_held(base, path, follow, |held| get(held, &self.credentials(), &self.request(), name))
    }

    /// Sets the extended attribute `name`: `setxattr(2)`, `lsetxattr(2)` without `follow`.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` by `how`; `EOPNOTSUPP`, `ERANGE`, `E2BIG`, `EPERM`, `EACCES`, `EROFS`,
    /// `ENOSPC`, `EDQUOT`; errors of a walk.
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
        self.on_held(base, path, follow, |held| set(held, &self.credentials(), &self.request(), name, value, how))
    }

    /// Removes the extended attribute `name`: `removexattr(2)`, `lremovexattr(2)` without `follow`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE`, `EPERM`, `EACCES`, `EROFS`; errors of a walk.
    pub fn remove_xattr(&self, base: Base<'_>, path: &[u8], follow: bool, name: &[u8]) -> Result<(), Errno> {
        check_lengths(name, XattrUse::Remove)?;
        self.on_held(base, path, follow, |held| remove(held, &self.credentials(), &self.request(), name))
    }

    /// Returns the names of all extended attributes: `listxattr(2)`, `llistxattr(2)` without
    /// `follow`.
    ///
    /// # Errors
    /// The errors of a walk and of the file system.
    pub fn list_xattrs(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Vec<Box<[u8]>>, Errno> {
        self.on_held(base, path, follow, |held| list(held, &self.credentials(), &self.request()))
    }
}

/// [`Context::get_xattr`] of a held place.
pub(crate) fn get(held: &PathRef, cred: &Credentials, request: &Request, name: &[u8]) -> Result<Box<[u8]>, Errno> {
    check_lengths(name, XattrUse::Get)?;
    let (sb, inode) = (held.sb(), held.inode()?);
    let attr = held.attr()?;
    match acl_kind(sb, name)? {
        Some(kind) => may_get_acl(&attr, kind)?,
        None => may_use(cred, &attr, name, XattrUse::Get, |mask| may_block(sb, inode, attr.rights(), cred, mask))?,
    }
    sb.fs().get_xattr(request, inode, name)
}

/// [`Context::set_xattr`] of a held place.
pub(crate) fn set(
    held: &PathRef,
    cred: &Credentials,
    request: &Request,
    name: &[u8],
    value: &[u8],
    how: SetXattr,
) -> Result<(), Errno> {
    let store = |sb: &SuperBlock, inode: &Inode| sb.fs().set_xattr(request, inode, name, value, how);
    change(held, cred, request, name, XattrUse::Set(value), store)
}

/// [`Context::remove_xattr`] of a held place.
pub(crate) fn remove(held: &PathRef, cred: &Credentials, request: &Request, name: &[u8]) -> Result<(), Errno> {
    let store = |sb: &SuperBlock, inode: &Inode| sb.fs().remove_xattr(request, inode, name);
    change(held, cred, request, name, XattrUse::Remove, store)
}

/// Sets or removes an attribute, as `usage` says; `store` has the file system do it.
fn change(
    held: &PathRef,
    cred: &Credentials,
    request: &Request,
    name: &[u8],
    usage: XattrUse<'_>,
    store: impl FnOnce(&SuperBlock, &Inode) -> Result<(), Errno>,
) -> Result<(), Errno> {
    check_lengths(name, usage)?;
    held.mount().check_writable()?;
    let (sb, inode) = (held.sb(), held.inode()?);
    let attr = held.attr()?;
    let _whole = sb.lock_if_sharded(held.dentry());
    if let Some(kind) = acl_kind(sb, name)? {
        let value = if let XattrUse::Set(value) = usage { value } else { &[] };
        let acl = acl_to_set(cred, &attr, kind, value)?;
        flags_allow(sb, inode, cred, InodeFlags::FIXED)?;
        return set_acl(held, request, cred, kind, acl);
    }
    flags_allow(sb, inode, cred, InodeFlags::FIXED)?;
    may_use(cred, &attr, name, usage, |mask| may_block(sb, inode, attr.rights(), cred, mask))?;
    let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
    store(sb, inode)?;
    changed(held, inode, request);
    Ok(())
}

/// [`Context::list_xattrs`] of a held place.
pub(crate) fn list(held: &PathRef, cred: &Credentials, request: &Request) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = held.sb().fs().list_xattrs(request, held.inode()?)?;
    names.retain(|name| is_listed(cred, name));
    Ok(names)
}

/// Notes a change of the file that is not one of its contents.
pub(crate) fn changed(held: &PathRef, inode: &Inode, request: &Request) {
    inode.update(|attr| attr.ctime = request.now());
    publish::touched(held.sb(), EventKind::Attributes, held.dentry());
}

/// Returns the kind of the ACL that the attribute `name` is, if it is one.
///
/// # Errors
/// `EOPNOTSUPP`: the file system has no ACLs.
fn acl_kind(sb: &SuperBlock, name: &[u8]) -> Result<Option<AclKind>, Errno> {
    match AclKind::of_xattr(name) {
        Some(_) if !sb.fs_has_acls => Err(Errno::EOPNOTSUPP),
        kind => Ok(kind),
    }
}

/// Sets or removes an ACL of a held place; an access ACL also changes the mode.
fn set_acl(
    held: &PathRef,
    request: &Request,
    cred: &Credentials,
    kind: AclKind,
    acl: Option<Acl>,
) -> Result<(), Errno> {
    let (sb, dentry, inode) = (held.sb(), held.dentry(), held.inode()?);
    let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
    let bits = acl.as_ref().filter(|_| kind == AclKind::Access).map(Acl::mode_bits);
    let kept = acl.clone().filter(|acl| kind == AclKind::Default || acl.equiv_mode().is_none());
    // A file system that keeps modes and ACLs equal needs the whole ACL, also one that is equal to a mode.
    let stored = if sb.fs_keeps_modes { acl.as_ref() } else { kept.as_ref() };
    sb.store_acl(request, inode, kind, stored)?;
    if kind == AclKind::Access {
        let keeps = cred.in_group(inode.attr().gid) || cred.capabilities.contains(Capabilities::FSETID);
        let bits = bits.unwrap_or_else(|| inode.mode()) & 0o777;
        let mode = inode.mode() & 0o7000 & !if keeps { 0 } else { S_ISGID } | bits;
        if !sb.fs_keeps_modes {
            sb.fs().set_attr(request, inode, &SetAttr { mode: Some(mode), ..SetAttr::default() })?;
        }
        inode.update_rights(&sb.paths, |attr| attr.mode = attr.kind() | mode);
    }
    if sb.fs_keeps_modes {
        sb.fetch_kept_acls(inode);
    } else {
        let mut acls = inode.acl(&sb.domain.read()).cloned().unwrap_or_default();
        match kind {
            AclKind::Access => acls.access = kept,
            AclKind::Default => acls.default = kept,
        }
        sb.put_acls(dentry, inode, acls);
    }
    if dentry.object().is_dir() {
        dentry.update_search(&sb.paths);
    }
    changed(held, inode, request);
    Ok(())
}
