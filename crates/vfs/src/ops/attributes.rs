//! chmod, chown, truncate, utimensat: changes of attributes.

use crate::base::access::credentials::{Capabilities, Credentials, MAY_OVERWRITE, MAY_READ, MAY_WRITE};
use crate::base::attr::{Attr, S_IFDIR, S_IFLNK, S_IFREG, S_ISGID, S_ISUID, SetAttr, SetTime};
use crate::base::errno::Errno;
use crate::base::flags::InodeFlags;
use crate::base::rank::Rank;
use crate::cache::returned::Files;
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef};
use crate::notify::EventKind;
use crate::ops::publish;
use crate::slots::inode::Inode;
use crate::walk::permission::{flags_allow, may_block};

/// Longest file, in bytes.
pub(crate) const MAX_SIZE: u64 = i64::MAX as u64;

impl Context {
    /// Changes attributes of the file at `path`: `chmod(2)`, `chown(2)`, `truncate(2)`, `utimensat(2)`, one
    /// call for all.
    ///
    /// # Errors
    /// `EPERM` for a user other than the owner, or by the file's flags; `EACCES`; `EISDIR`,
    /// `EINVAL` for the length of anything but a regular file; `EFBIG`; errors of a walk and of the
    /// file system.
    pub fn set_attr(&self, base: Base<'_>, path: &[u8], follow: bool, set: &SetAttr) -> Result<(), Errno> {
        self.on_held(base, path, follow, |held| {
            let before = self.check_length(held, set)?;
            // As with `truncate(2)` on tmpfs: the current length does not change a file without storage. `O_TRUNC` and
            // `ftruncate(2)` change its times.
            match before.filter(|attr| set.size == Some(attr.size) && attr.blocks == 0 && !held.sb().is_evictable) {
                Some(_) => self.change_but_length(held, held.inode()?, set),
                None => set_attr_held(&self.credentials(), &self.request(), held, set),
            }
        })
    }

    /// Checks that the caller may change the length, if `set` has one; returns the attributes before the change.
    pub(crate) fn check_length(&self, held: &PathRef, set: &SetAttr) -> Result<Option<Attr>, Errno> {
        if set.size.is_none() {
            return Ok(None);
        }
        let inode = held.dentry().inode().ok_or(Errno::ENOENT)?;
        let attr = held.attr()?;
        match attr.kind() {
            S_IFREG => {
                may_block(held.sb(), inode, attr.rights(), &self.credentials(), MAY_WRITE | MAY_OVERWRITE)?;
                held.mount().check_writable()?;
                Ok(Some(attr))
            }
            S_IFDIR => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Does the part of [`Context::set_attr`] after the length was set.
    #[cold]
    fn change_but_length(&self, held: &PathRef, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        let (sb, cred, request) = (held.sb(), self.credentials(), self.request());
        let data = sb.ranks.lock(Rank::Data, &inode.data_lock);
        drop_set_ids_first(&cred, sb, &request, inode)?;
        inode.update(|attr| contents_changed(&cred, attr));
        drop(data);
        let rest = SetAttr { size: None, ..*set };
        if rest == SetAttr::default() { Ok(()) } else { set_attr_held(&cred, &request, held, &rest) }
    }

    /// Returns whether the policy lets this context create a further name of a file:
    /// `protected_hardlinks` of `proc_sys_fs(5)`.
    ///
    /// # Errors
    /// `EPERM`.
    pub(crate) fn may_link(&self, sb: &SuperBlock, inode: &Inode, attr: &Attr) -> Result<(), Errno> {
        if !self.policy().protected_hardlinks {
            return Ok(());
        }
        let cred = self.credentials();
        let special = attr.mode & S_ISUID != 0 || attr.mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
        let plain = attr.kind() == S_IFREG && !special;
        let usable = plain && may_block(sb, inode, attr.rights(), &cred, MAY_READ | MAY_WRITE).is_ok();
        if usable || cred.owns(attr) { Ok(()) } else { Err(Errno::EPERM) }
    }
}

/// [`Context::set_attr`] on a held place; the right to change the length was checked at the open.
pub(crate) fn set_attr_held(cred: &Credentials, request: &Request, held: &PathRef, set: &SetAttr) -> Result<(), Errno> {
    held.mount().check_writable()?;
    let sb = held.sb();
    let inode = held.dentry().inode().ok_or(Errno::ENOENT)?;
    if set.size.is_some_and(|size| size > MAX_SIZE) {
        return Err(Errno::EINVAL);
    }
    let now = request.now();
    let before = held.attr()?;
    let _whole = sb.lock_if_sharded(held.dentry());
    check(cred, sb, inode, &before, set)?;
    let set = &allowed(cred, &before, set);
    let pre_attrs = sb.pre_attrs(Files { file: Some((inode, 1 + u32::from(set.size.is_some()))), ..Files::default() });
    let mut after = sb.fs().set_attr(request, inode, &to_store(cred, sb, &before, set))?;
    if let Some(size) = set.size {
        let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
        let cut = drop_set_ids_first(cred, sb, request, inode).and_then(|()| sb.fs().set_len(request, inode, size));
        let (blocks, after_cut) = cut.inspect_err(|_| keep_but_length(cred, request, held, inode, set))?;
        after = after_cut;
        inode.update(|attr| {
            (attr.size, attr.blocks, attr.mtime, attr.ctime) = (size, blocks, now, now);
            contents_changed(cred, attr);
        });
        publish::touched(sb, EventKind::Modified, held.dentry());
    }
    let _acl = set.mode.filter(|_| inode.has_acl()).map(|_| sb.ranks.lock(Rank::Data, &inode.data_lock));
    inode.update_rights(&sb.paths, |attr| {
        check_plain(cred, attr, set)?;
        apply(cred, attr, set, now);
        Ok(())
    })?;
    if set.mode.is_some() && held.dentry().object().is_dir() {
        // Of two concurrent changes, each reads the current mode: the later one reads the later mode.
        held.dentry().update_search(&sb.paths);
    }
    if set.mode.is_some() && inode.has_acl() {
        sb.chmod_acl(request, held.dentry(), inode, &inode.attr())?;
    }
    pre_attrs.post_attrs(&after);
    let only_size = SetAttr { size: set.size, ..SetAttr::default() } == *set && set.size.is_some();
    if !only_size {
        publish::touched(sb, EventKind::Attributes, held.dentry());
    }
    Ok(())
}

/// Keeps the part of a change that the file system has stored before it failed to change the length: the ACL follows the mode, and
/// watchers are notified. The data lock is held.
#[cold]
fn keep_but_length(cred: &Credentials, request: &Request, held: &PathRef, inode: &Inode, set: &SetAttr) {
    let (sb, stored) = (held.sb(), SetAttr { size: None, ..*set });
    if stored == SetAttr::default() {
        return;
    }
    inode.update_rights(&sb.paths, |attr| apply(cred, attr, &stored, request.now()));
    if stored.mode.is_some() && inode.has_acl() {
        // The caller gets the error of the length, whatever this returns.
        let _stored = sb.chmod_acl(request, held.dentry(), inode, &inode.attr());
    }
    publish::touched(sb, EventKind::Attributes, held.dentry());
}

/// Returns whether `cred` may make the change.
fn check(cred: &Credentials, sb: &SuperBlock, inode: &Inode, attr: &Attr, set: &SetAttr) -> Result<(), Errno> {
    flags_allow(sb, inode, cred, forbidding(set))?;
    check_plain(cred, attr, set)?;
    if set.atime == Some(SetTime::Now) && set.mtime == set.atime && !cred.owns(attr) {
        return may_block(sb, inode, attr.rights(), cred, MAY_WRITE);
    }
    Ok(())
}

/// Returns the flags of a file that forbid the change. The right to change the length was checked
/// when the file was opened, but a file that has been opened to append must not be truncated.
fn forbidding(set: &SetAttr) -> InodeFlags {
    let is_touch = set.atime == Some(SetTime::Now) && set.mtime == set.atime;
    let has_times = set.atime.is_some() || set.mtime.is_some();
    if set.mode.is_some() || set.uid.is_some() || set.gid.is_some() || has_times && !is_touch {
        return InodeFlags::FIXED;
    }
    let touch = if is_touch { InodeFlags::IMMUTABLE } else { InodeFlags::empty() };
    touch.union(if set.size.is_some() { InodeFlags::APPEND } else { InodeFlags::empty() })
}

/// Does the part of [`check`] that needs only the attributes.
fn check_plain(cred: &Credentials, attr: &Attr, set: &SetAttr) -> Result<(), Errno> {
    let has = |capability| cred.capabilities.contains(capability);
    if let Some(uid) = set.uid {
        let stays = cred.uid == attr.uid && uid == attr.uid;
        if !stays && !has(Capabilities::CHOWN) {
            return Err(Errno::EPERM);
        }
    }
    if let Some(gid) = set.gid {
        let own = cred.uid == attr.uid && (cred.in_group(gid) || gid == attr.gid);
        if !own && !has(Capabilities::CHOWN) {
            return Err(Errno::EPERM);
        }
    }
    if is_chown(set) && attr.kind() != S_IFDIR && !cred.owns(attr) {
        let mut after = *attr;
        drop_set_ids(cred, &mut after);
        if after.mode != attr.mode {
            return Err(Errno::EPERM);
        }
    }
    if set.mode.is_some() && attr.kind() == S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    let explicit = |time: Option<SetTime>| matches!(time, Some(SetTime::At(_)));
    let mixed = (set.atime.is_some() || set.mtime.is_some()) && set.atime != set.mtime;
    if (set.mode.is_some() || explicit(set.atime) || explicit(set.mtime) || mixed) && !cred.owns(attr) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Returns the change without the bits that `cred` cannot set: set-group-id of a group that it is
/// not in.
fn allowed(cred: &Credentials, attr: &Attr, set: &SetAttr) -> SetAttr {
    let gid = set.gid.unwrap_or(attr.gid);
    let keeps = cred.in_group(gid) || cred.capabilities.contains(Capabilities::FSETID);
    SetAttr { mode: set.mode.map(|mode| if keeps { mode } else { mode & !S_ISGID }), ..*set }
}

/// Returns the change as the file system stores it: a change of owner has the mode without the bits
/// that it clears, unless the file system itself keeps modes.
fn to_store(cred: &Credentials, sb: &SuperBlock, before: &Attr, set: &SetAttr) -> SetAttr {
    if sb.fs_keeps_modes || !is_chown(set) {
        return *set;
    }
    let mut after = *before;
    apply(cred, &mut after, set, before.ctime);
    if after.mode == before.mode { *set } else { SetAttr { mode: Some(after.mode & 0o7777), ..*set } }
}

/// Applies the change. A change of owner clears the set-id bits of anything but a directory.
fn apply(cred: &Credentials, attr: &mut Attr, set: &SetAttr, now: i64) {
    if let Some(mode) = set.mode {
        attr.mode = attr.kind() | mode & 0o7777;
    }
    if is_chown(set) && attr.kind() != S_IFDIR {
        drop_set_ids(cred, attr);
    }
    attr.uid = set.uid.unwrap_or(attr.uid);
    attr.gid = set.gid.unwrap_or(attr.gid);
    let time = |set, old| match set {
        None => old,
        Some(SetTime::Now) => now,
        Some(SetTime::At(ns)) => ns,
    };
    attr.atime = time(set.atime, attr.atime);
    attr.mtime = time(set.mtime, attr.mtime);
    attr.ctime = now;
}

/// Returns whether the change is a change of owner and group. A call without new ids also is:
/// `chown(path, -1, -1)` clears the set-id bits.
fn is_chown(set: &SetAttr) -> bool {
    let owners = set.uid.is_some() || set.gid.is_some();
    (owners && set.mode.is_none()) || *set == SetAttr::default()
}

/// Updates the set-id bits and times after a write or truncation by `cred`.
pub(crate) fn contents_changed(cred: &Credentials, attr: &mut Attr) {
    if !cred.capabilities.contains(Capabilities::FSETID) {
        drop_set_ids(cred, attr);
    }
}

/// Clears the set-id bits in the file system and in the cache before `cred` changes the contents, so that new contents never
/// run with the old rights. The caller has locked the file's contents.
///
/// # Errors
/// The file system's.
#[inline]
pub(crate) fn drop_set_ids_first(
    cred: &Credentials,
    sb: &SuperBlock,
    request: &Request,
    inode: &Inode,
) -> Result<(), Errno> {
    if inode.is_old() {
        // Others may have set them.
        sb.fetch_attr(inode)?;
    }
    if inode.mode() & (S_ISUID | S_ISGID) == 0 { Ok(()) } else { report_dropped_ids(cred, sb, request, inode) }
}

#[cold]
fn report_dropped_ids(cred: &Credentials, sb: &SuperBlock, request: &Request, inode: &Inode) -> Result<(), Errno> {
    let before = inode.attr();
    let mut after = before;
    contents_changed(cred, &mut after);
    if after.mode == before.mode || sb.fs_keeps_modes {
        return Ok(());
    }
    sb.fs().set_attr(request, inode, &SetAttr { mode: Some(after.mode & 0o7777), ..SetAttr::default() })?;
    // The bits are cleared, also if the change of the contents then fails.
    inode.update(|attr| {
        contents_changed(cred, attr);
        attr.ctime = request.now();
    });
    Ok(())
}

/// Clears set-user-id, and set-group-id where it means "run as the group" or where `cred` could not set it.
fn drop_set_ids(cred: &Credentials, attr: &mut Attr) {
    attr.mode &= !S_ISUID;
    let could_set = cred.in_group(attr.gid) || cred.capabilities.contains(Capabilities::FSETID);
    if attr.mode & 0o010 != 0 || !could_set {
        attr.mode &= !S_ISGID;
    }
}
