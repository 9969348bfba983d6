//! Rules for steps other than names: symbolic links, and `..`.
//!
//! # What it is
//! Only the decisions, for rcu-walk, ref-walk and `open` with `CREAT`. Each of them takes the step
//! itself, and handles places that changed meanwhile.
//!
//! # Where it comes from
//! `openat2(2)`, `proc_sys_fs(5)`, `path_resolution(7)`; the checks have the order of Linux's
//! `pick_link`, `nd_jump_root` and `follow_dotdot`.

use crate::base::access::credentials::Credentials;
use crate::base::attr::{S_IFDIR, S_IFMT, S_ISVTX};
use crate::base::errno::Errno;
use crate::base::flags::{MountFlags, Resolve};
use crate::mount::place::Place;
use crate::mount::{Attachment, Mount};
use crate::slots::dentry::Dentry;
use sync::rcu::ReadGuard;

/// The most symbolic links that one walk follows.
pub(crate) const MAX_LINKS: u32 = 40;

/// A symbolic link that a walk has reached.
pub(crate) struct LinkStep<'a> {
    pub(crate) link: &'a Dentry,
    pub(crate) mount: &'a Mount,
    pub(crate) cred: &'a Credentials,
    pub(crate) resolve: Resolve,
    /// Links that the walk has followed before.
    pub(crate) followed: u32,
    /// Whether it ends the path.
    pub(crate) is_last: bool,
}

impl LinkStep<'_> {
    /// Checks that the walk may follow the link.
    ///
    /// # Errors
    /// `ELOOP` after too many links, or if the walk or the mount follows no links; `EACCES` by the policy for
    /// links at the end of a path.
    pub(crate) fn check(&self) -> Result<(), Errno> {
        if self.followed >= MAX_LINKS {
            return Err(Errno::ELOOP);
        }
        if self.is_last && self.resolve.contains(Resolve::PROTECTED_LINKS) {
            check_protected(self.link, self.cred)?;
        }
        let refused = self.resolve.contains(Resolve::NO_SYMLINKS) || self.mount.has(MountFlags::NOSYMFOLLOW);
        if refused { Err(Errno::ELOOP) } else { Ok(()) }
    }
}

/// Returns whether the text of a link starts from the root, not from the link's directory.
/// `is_roots_mount`: the link and the root are on one mount.
///
/// # Errors
/// `EXDEV` if the limits of the walk exclude the root.
pub(crate) fn leads_to_root(
    body: &[u8],
    resolve: Resolve,
    is_roots_mount: impl FnOnce() -> bool,
) -> Result<bool, Errno> {
    if body.first() != Some(&b'/') {
        return Ok(false);
    }
    let leaves = resolve.contains(Resolve::BENEATH) || (resolve.contains(Resolve::NO_XDEV) && !is_roots_mount());
    if leaves { Err(Errno::EXDEV) } else { Ok(true) }
}

/// Checks the policy for links that end a path: `protected_symlinks` of `proc_sys_fs(5)`.
fn check_protected(link: &Dentry, cred: &Credentials) -> Result<(), Errno> {
    let attr = |dentry: &Dentry| dentry.inode().map(|inode| inode.attr());
    let (Some(own), Some(dir)) = (attr(link), link.parent().and_then(attr)) else { return Ok(()) };
    let open_to_all = dir.mode & (S_ISVTX | 0o002) == S_ISVTX | 0o002 && dir.mode & S_IFMT == S_IFDIR;
    if open_to_all && own.uid != cred.uid && own.uid != dir.uid { Err(Errno::EACCES) } else { Ok(()) }
}

/// The target of `..` at a place.
pub(crate) enum Up<'g> {
    /// The place is the root of the walk, or of a mount that is not attached: the walk stays.
    Stays,
    /// The place is the root of a mount: `..` continues from its mount point.
    Mountpoint(&'g Attachment),
    /// The place's parent.
    Parent,
}

/// Returns the target of `..` at `place`, in a walk with the root `root`.
///
/// # Errors
/// `EXDEV` out of the scope of the walk, or to another mount with `NO_XDEV`.
pub(crate) fn up_from<'g>(
    guard: &'g ReadGuard<'_>,
    place: &Place<'g>,
    root: &Place<'_>,
    resolve: Resolve,
) -> Result<Up<'g>, Errno> {
    if place.is(root) {
        return if resolve.contains(Resolve::BENEATH) { Err(Errno::EXDEV) } else { Ok(Up::Stays) };
    }
    if !core::ptr::eq(place.dentry, place.mount.get().root()) {
        return Ok(Up::Parent);
    }
    match place.mount.get().attachment(guard) {
        None => Ok(Up::Stays),
        Some(_) if resolve.contains(Resolve::NO_XDEV) => Err(Errno::EXDEV),
        Some(attachment) => Ok(Up::Mountpoint(attachment)),
    }
}

/// Checks the directory that `..` led to: it must be within the scope, and within the part of the
/// file system that its mount shows. `is_within` returns whether the directory is within a place,
/// or `None` if something moved meanwhile; this function then returns `None` too.
pub(crate) fn check_up(
    up: &Place<'_>,
    root: &Place<'_>,
    resolve: Resolve,
    is_within: impl Fn(&Place<'_>) -> Option<bool>,
) -> Option<Result<(), Errno>> {
    if resolve.is_scoped() && !is_within(root)? {
        return Some(Err(Errno::EXDEV));
    }
    let mount = up.mount.get();
    let mount_root = Place { mount: up.mount, dentry: mount.root() };
    if !core::ptr::eq(mount.root(), mount.sb.root()) && !is_within(&mount_root)? {
        return Some(Err(Errno::ENOENT));
    }
    Some(Ok(()))
}
