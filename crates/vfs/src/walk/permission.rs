//! The permission check of a file: by its flags, its file system, its ACL or its mode.
//!
//! # How it is locked
//! No lock: attributes and ACLs are read under their sequences and RCU.
//!
//! # Where it comes from
//! `path_resolution(7)`, `acl(5)`; the structure of Linux's `inode_permission`, which tries in rcu-walk
//! first.

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_OVERWRITE, MAY_WRITE, Rights};
use crate::base::attr::{Attr, S_IFREG};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, MountFlags};
use crate::dcache::fs::Permission;
use crate::dcache::fs::Request;
use crate::dcache::inode::{Inode, UnheldInode};
use crate::dcache::superblock::SuperBlock;
use crate::mount::Mount;
use crate::walk::ref_walk::Question;
use crate::walk::walk_end::WalkEnd;
use sync::rcu::ReadGuard;

/// The result of a check in rcu-walk.
pub(crate) enum MayRcu {
    Is(Result<(), Errno>),
    /// The check would block.
    NotHere,
}

/// Whether `cred` may do `mask` with `inode`, which has these `rights`. Does not block.
#[inline(always)]
pub(crate) fn may_rcu(
    sb: &SuperBlock,
    guard: &ReadGuard<'_>,
    inode: &Inode,
    rights: Rights,
    cred: &Credentials,
    mask: u32,
) -> MayRcu {
    if inode.has_acl_or_flags() || sb.own_permissions {
        return may_rcu_slow(sb, guard, inode, rights, cred, mask);
    }
    MayRcu::Is(cred.may_by(rights, mask))
}

#[cold]
fn may_rcu_slow(
    sb: &SuperBlock,
    guard: &ReadGuard<'_>,
    inode: &Inode,
    rights: Rights,
    cred: &Credentials,
    mask: u32,
) -> MayRcu {
    if inode.has_flags() && mask & MAY_WRITE != 0 {
        return MayRcu::NotHere;
    }
    if sb.own_permissions {
        match sb.fs_rcu(guard).try_permission(cred, UnheldInode::new(inode, guard), mask) {
            Permission::Is(answer) => return MayRcu::Is(answer),
            Permission::NotHere => return MayRcu::NotHere,
            Permission::ByMode => {}
        }
    }
    MayRcu::Is(by_acl(guard, inode, rights, cred, mask))
}

/// [`may_rcu`] for callers that may block. The caller holds the dentry of `inode`, or its directory's lock.
///
/// # Errors
/// `EACCES`; `EPERM` to write what its flags forbid to write; errors of the file system.
#[inline(always)]
pub(crate) fn may_block(
    sb: &SuperBlock,
    inode: &Inode,
    rights: Rights,
    cred: &Credentials,
    mask: u32,
) -> Result<(), Errno> {
    if inode.has_acl_or_flags() || sb.own_permissions {
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
    let mask = mask & !MAY_OVERWRITE;
    if sb.own_permissions {
        match sb.fs().permission(&Request::of(cred), inode, mask) {
            Permission::Is(answer) => return answer,
            Permission::NotHere => return Err(Errno::EACCES),
            Permission::ByMode => {}
        }
    }
    by_acl(&sb.domain.read(), inode, rights, cred, mask)
}

/// Whether `inode` has none of these flags, which forbid a change: `chattr(1)`. Nobody is exempt. May block.
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

/// Whether the walk's credentials may do `mask` with the found file. In rcu-walk, a check that would block
/// makes the walk continue in ref-walk.
///
/// # Errors
/// `EACCES`, or errors of the file system; `EAGAIN`, which the walk never returns.
#[inline(always)]
pub(crate) fn may(found: &WalkEnd<'_>, rights: Rights, mask: u32) -> Result<(), Errno> {
    let inode = found.inode()?;
    match may_rcu(found.sb(), found.guard, inode, rights, found.cred, mask) {
        MayRcu::Is(answer) => answer,
        MayRcu::NotHere => found.answer(Question::Permission(mask)).map(drop),
    }
}

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
