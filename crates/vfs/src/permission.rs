//! May they: the permission check of a file, by its file system, its ACL or its mode.
//!
//! # How it is locked
//! Not at all: attributes and ACLs are read under their sequences and RCU.
//!
//! # Where it comes from
//! `path_resolution(7)`, `acl(5)`; the shape of Linux's `inode_permission`, which asks in rcu-walk first.

use crate::attr::{Attr, S_IFREG};
use crate::cred::{Credentials, MAY_EXEC, MAY_WRITE};
use crate::errno::Errno;
use crate::fs::Permission;
use crate::inode::Inode;
use crate::mount::{Mount, MountFlags};
use crate::superblock::SuperBlock;
use crate::walk::Found;
use crate::walk::fallback::Fallback;
use sync::rcu::ReadGuard;

/// What an rcu-walk is told.
pub(crate) enum MayRcu {
    Is(Result<(), Errno>),
    /// Only who may block can find out.
    NotHere,
}

/// Whether `cred` may do `mask` with `inode`, whose attributes are `attr`. Does not block.
#[inline(always)]
pub(crate) fn may_rcu(
    sb: &SuperBlock,
    guard: &ReadGuard<'_>,
    (inode, attr): (&Inode, &Attr),
    cred: &Credentials,
    mask: u32,
) -> MayRcu {
    if inode.has_acl() || sb.own_permissions {
        return may_rcu_odd(sb, guard, (inode, attr), cred, mask);
    }
    MayRcu::Is(cred.may(attr, mask))
}

#[cold]
fn may_rcu_odd(
    sb: &SuperBlock,
    guard: &ReadGuard<'_>,
    (inode, attr): (&Inode, &Attr),
    cred: &Credentials,
    mask: u32,
) -> MayRcu {
    if sb.own_permissions {
        match sb.fs.permission(cred, inode, mask, true) {
            Permission::Is(answer) => return MayRcu::Is(answer),
            Permission::NotHere => return MayRcu::NotHere,
            Permission::ByMode => {}
        }
    }
    MayRcu::Is(by_acl(guard, inode, attr, cred, mask))
}

/// [`may_rcu`] for who may block. The dentry of `inode` is held, or its directory's lock is.
///
/// # Errors
/// `EACCES`, or what the file system answers.
pub(crate) fn may_block(
    sb: &SuperBlock,
    (inode, attr): (&Inode, &Attr),
    cred: &Credentials,
    mask: u32,
) -> Result<(), Errno> {
    if sb.own_permissions
        && let Permission::Is(answer) = sb.fs.permission(cred, inode, mask, false)
    {
        return answer;
    }
    if inode.has_acl() { by_acl(&sb.domain.read(), inode, attr, cred, mask) } else { cred.may(attr, mask) }
}

/// Whether the walk's credentials may do `mask` with what it found. A walk that cannot tell goes on by itself.
///
/// # Errors
/// `EACCES`, or what the file system answers; `EAGAIN`, which the walk does not show its caller.
#[inline(always)]
pub(crate) fn may(found: &Found<'_>, attr: &Attr, mask: u32) -> Result<(), Errno> {
    let inode = found.inode()?;
    match may_rcu(found.sb(), found.guard, (inode, attr), found.cred, mask) {
        MayRcu::Is(answer) => answer,
        MayRcu::NotHere if found.is_held() => may_block(found.sb(), (inode, attr), found.cred, mask),
        MayRcu::NotHere => Err(found.ask_again(Fallback::Permission)),
    }
}

fn by_acl(guard: &ReadGuard<'_>, inode: &Inode, attr: &Attr, cred: &Credentials, mask: u32) -> Result<(), Errno> {
    let access = inode.acl(guard).and_then(|acls| acls.access.as_ref());
    let Some(acl) = access else { return cred.may(attr, mask) };
    match acl.may(cred, attr.uid, attr.gid, mask) {
        Ok(()) => Ok(()),
        Err(_) if cred.overrides(attr, mask) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// What a mount forbids whatever the file says: `access(2)` and `open(2)`.
///
/// # Errors
/// `EROFS` to write what could be written, `EACCES` to execute a file.
pub(crate) fn mount_allows(mount: &Mount, attr: &Attr, mask: u32) -> Result<(), Errno> {
    let flags = mount.flags();
    if flags == MountFlags::default() {
        return Ok(());
    }
    let kind = attr.kind();
    let stored = matches!(kind, S_IFREG | crate::attr::S_IFDIR | crate::attr::S_IFLNK);
    if mask & MAY_WRITE != 0 && stored && flags.has(MountFlags::RDONLY) {
        return Err(Errno::EROFS);
    }
    if mask & MAY_EXEC != 0 && kind == S_IFREG && flags.has(MountFlags::NOEXEC) {
        return Err(Errno::EACCES);
    }
    Ok(())
}
