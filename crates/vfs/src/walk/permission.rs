//! The permission check of a file: by its flags, its ACL or its mode.
//!
//! # How it is locked
//! No lock: attributes and ACLs are read under their sequences and RCU. The file system has the
//! flags, so a check of flags may block.
//!
//! # Where it comes from
//! `path_resolution(7)`, `acl(5)`; the structure of Linux's `inode_permission`, which tries in
//! rcu-walk first.

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_OVERWRITE, MAY_WRITE, Rights};
use crate::base::attr::{Attr, S_IFREG};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, MountFlags};
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::mount::Mount;
use crate::slots::inode::Inode;
use crate::walk::question::Question;
use crate::walk::walk_end::WalkEnd;
use sync::rcu::ReadGuard;

/// Returns whether `cred` may read, or search, `inode`, which has these `rights`: `mask` is without
/// `MAY_WRITE`. Does not block.
///
/// # Errors
/// `EACCES`.
#[inline(always)]
pub(crate) fn may_rcu(
    guard: &ReadGuard<'_>,
    inode: &Inode,
    rights: Rights,
    cred: &Credentials,
    mask: u32,
) -> Result<(), Errno> {
    debug_assert!(mask & MAY_WRITE == 0, "flags of the file may forbid to write it");
    if inode.has_acl() { by_acl(guard, inode, rights, cred, mask) } else { cred.may_by(rights, mask) }
}

/// Returns whether `cred` may do `mask` with `inode`, which has these `rights`. May block. The
/// caller holds the dentry of `inode`, or its directory's lock.
///
/// # Errors
/// `EACCES`; `EPERM` for a write that its flags forbid; errors of the file system.
#[inline(always)]
pub(crate) fn may_block(
    sb: &SuperBlock,
    inode: &Inode,
    rights: Rights,
    cred: &Credentials,
    mask: u32,
) -> Result<(), Errno> {
    if inode.has_acl_or_flags() {
        return may_block_slow(sb, inode, rights, cred, mask);
    }
    cred.may_by(rights, mask)
}

#[cold]
fn may_block_slow(sb: &SuperBlock, inode: &Inode, rights: Rights, cred: &Credentials, mask: u32) -> Result<(), Errno> {
    if mask & MAY_WRITE != 0 {
        let appends = mask & MAY_OVERWRITE == 0;
        flags_allow(sb, inode, cred, if appends { InodeFlags::IMMUTABLE } else { InodeFlags::FIXED })?;
    }
    by_acl(&sb.domain.read(), inode, rights, cred, mask & !MAY_OVERWRITE)
}

/// Returns whether `inode` has none of these flags, which forbid a change: `chattr(1)`. Nobody is
/// exempt. May block.
///
/// # Errors
/// `EPERM`, or errors of the file system.
#[inline(always)]
pub(crate) fn flags_allow(sb: &SuperBlock, inode: &Inode, cred: &Credentials, forbid: InodeFlags) -> Result<(), Errno> {
    if inode.has_flags() { flags_allow_slow(sb, inode, cred, forbid) } else { Ok(()) }
}

#[cold]
fn flags_allow_slow(sb: &SuperBlock, inode: &Inode, cred: &Credentials, forbid: InodeFlags) -> Result<(), Errno> {
    let flags = sb.fs().inode_flags(&Request::of(cred), inode)?;
    if flags.intersects(forbid) { Err(Errno::EPERM) } else { Ok(()) }
}

/// Returns whether the walk's credentials may do `mask` with the found file. In rcu-walk, a check
/// that would block makes the walk continue in ref-walk.
///
/// # Errors
/// `EACCES`, or errors of the file system; `EAGAIN`, which the walk never returns.
#[inline(always)]
pub(crate) fn may(found: &WalkEnd<'_>, rights: Rights, mask: u32) -> Result<(), Errno> {
    let inode = found.inode()?;
    if inode.has_acl_or_flags() {
        return may_slow(found, inode, rights, mask);
    }
    found.cred.may_by(rights, mask)
}

#[cold]
fn may_slow(found: &WalkEnd<'_>, inode: &Inode, rights: Rights, mask: u32) -> Result<(), Errno> {
    if inode.has_flags() && mask & MAY_WRITE != 0 {
        return found.answer(Question::Permission(mask)).map(drop);
    }
    by_acl(found.guard, inode, rights, found.cred, mask)
}

#[cold]
fn by_acl(guard: &ReadGuard<'_>, inode: &Inode, rights: Rights, cred: &Credentials, mask: u32) -> Result<(), Errno> {
    let access = inode.acl(guard).and_then(|acls| acls.access.as_ref());
    let Some(acl) = access else { return cred.may_by(rights, mask) };
    match acl.may(cred, rights.uid, rights.gid, mask) {
        Ok(()) => Ok(()),
        Err(_) if cred.overrides(rights.mode, mask) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Checks the flags of a mount, which hold for every file: `access(2)` and `open(2)`.
///
/// # Errors
/// `EROFS` to write a regular file, directory or link, `EACCES` to execute a file.
pub(crate) fn mount_allows(mount: &Mount, attr: &Attr, mask: u32) -> Result<(), Errno> {
    let flags = mount.flags();
    if flags == MountFlags::default() {
        return Ok(());
    }
    let kind = attr.kind();
    let stored = matches!(kind, S_IFREG | crate::base::attr::S_IFDIR | crate::base::attr::S_IFLNK);
    if mask & MAY_WRITE != 0 && stored && flags.contains(MountFlags::RDONLY) {
        return Err(Errno::EROFS);
    }
    if mask & MAY_EXEC != 0 && kind == S_IFREG && flags.contains(MountFlags::NOEXEC) {
        return Err(Errno::EACCES);
    }
    Ok(())
}
