//! Answers of a file system about names that no walk looked up: they come with a listing, ahead of
//! a walk, or for many paths at once.
//!
//! # What it is
//! An entry of a listing that came with its inode ([`Listed::inode`](crate::Listed::inode)) enters
//! the cache like the answer to a lookup of its name: within the budgets, and for its time of
//! validity. The directory's lock is held from before the call until the entries are in the cache,
//! so no operation of this tree changes a name meanwhile. (A remote file system is called without
//! the lock, and the answers are used if no change of the directory was counted meanwhile.) If the
//! file system invalidates anything during the call, its answers may be older, and none is used.
//!
//! A valid positive entry stays as it is. The attributes of a file can change during the call,
//! under another name of the file or by a user that has it open; the cache may then have newer
//! attributes than the answer. So a file in the cache keeps its attributes. Only if the answer has
//! equal attributes does their time of validity begin again.
//!
//! # Limitations
//! A file whose attributes have changed behind the cache, and whose entry has expired, is looked up
//! once more.
//!
//! # How it is locked
//! The caller has the directory's lock.
//!
//! # Where it comes from
//! `READDIRPLUS` of NFS and FUSE; `nfs_prime_dcache` of Linux.

use crate::base::errno::Errno;
use crate::base::name::is_name;
use crate::cache::reclaim::MayEvict;
use crate::cache::superblock::SuperBlock;
use crate::fs::{NewInode, NextNames, Valid};
use crate::slots::dentry::Dentry;
use crate::slots::shard::Names;
use crate::slots::slot::DentryRef;
use crate::slots::versions::Moment;
use crate::walk::lookup::{self, Lookup};

/// Puts the inodes of the names `listed` of the locked directory `dir` into the cache. They are the
/// answers to a request that began at this number of `invalidations`. No other thread has changed
/// the directory since.
pub(crate) fn learn_listed<'n>(
    sb: &SuperBlock,
    may_evict: &mut MayEvict,
    dir: &Dentry,
    invalidations: u64,
    listed: impl Iterator<Item = (&'n [u8], &'n NewInode)> + Clone,
) {
    if !dir.object().is_hashed() || sb.invalidations() != invalidations {
        return;
    }
    for (name, new) in listed.clone() {
        // A file system may list anything.
        let named = sb.named(name);
        if is_name(name) && learn(Lookup { sb, dir, named }, may_evict, None, Some(new)).is_err() {
            // The cache is full, and its entries are held.
            break;
        }
    }
    if lookup::is_invalidated(sb, invalidations) {
        let entries = listed.filter_map(|(name, _)| sb.cached(dir, sb.named(name)));
        entries.for_each(|entry| entry.expire(&sb.paths));
    }
}

/// Returns whether the cache has a valid entry of each of these names in the locked directory
/// `dir`.
pub(crate) fn has_all<'n>(sb: &SuperBlock, dir: &Dentry, mut names: impl Iterator<Item = &'n [u8]>) -> bool {
    names.all(|name| {
        sb.cached(dir, sb.named(name)).is_some_and(|entry| lookup::is_good(entry) && lookup::is_positive(entry))
    })
}

/// Puts one answer into the cache, unless the cache may have a newer one. (If the name does not exist, the caller has looked for
/// that.) Returns the moment at
/// which a new directory began.
///
/// # Errors
/// `ENOMEM`: the cache is full, and its entries are held.
fn learn(
    lookup: Lookup<'_, '_>,
    may_evict: &mut MayEvict,
    names: Option<&Names<'_>>,
    answer: Option<&NewInode>,
) -> Result<Option<Moment>, Errno> {
    let Lookup { sb, dir, named } = lookup;
    let Some(new) = answer else {
        lookup.insert_absent(may_evict, names);
        return Ok(None);
    };
    if new.valid == Valid::For(0) {
        return Ok(None);
    }
    match lookup.cached() {
        Some(entry) if lookup::is_positive(entry) => {
            if !lookup::is_good(entry) {
                renew(sb, entry, new);
            }
            return Ok(None);
        }
        // The answer of an earlier request.
        Some(entry) if !sb.prune(names, dir, entry, named.hash) => return Ok(None),
        _ => {}
    }
    if let Some(inode) = sb.inodes.get(sb, new.node) {
        let is_alias = !new.attr.is_dir() && inode.before_request().is_of(&new.attr);
        sb.put_inode(inode);
        if !is_alias {
            return Ok(None);
        }
    }
    lookup.insert(may_evict, names, new)
}

/// Puts the answers about the names behind `first` into the cache. They came with the answer about
/// `first`, a directory that was not in the cache before, and that began at the moment `began`. The
/// request was sent at this number of `invalidations`.
pub(super) fn learn_next(
    sb: &SuperBlock,
    first: &DentryRef,
    mut began: Moment,
    invalidations: u64,
    next: &NextNames<'_>,
) {
    let mut above: Option<DentryRef> = None;
    for (name, answer) in next.names().zip(next.answers()) {
        let dir = above.as_ref().unwrap_or(first).get(sb.slots());
        let Some((entry, its_begin)) = learn_in(sb, dir, began, invalidations, name, answer.as_ref()) else { break };
        began = its_begin;
        above.replace(entry).into_iter().for_each(|entry| sb.unpin(entry));
    }
    above.into_iter().for_each(|entry| sb.unpin(entry));
}

/// Puts the answer about a name of `dir`, which began at the moment `began`, into the cache. Returns the directory that the name
/// leads to, if it is new.
fn learn_in(
    sb: &SuperBlock,
    dir: &Dentry,
    began: Moment,
    invalidations: u64,
    name: &[u8],
    answer: Option<&NewInode>,
) -> Option<(DentryRef, Moment)> {
    if !is_name(name) {
        return None;
    }
    let lookup = Lookup { sb, dir, named: sb.named(name) };
    let (mut held, names) = lookup.lock().ok()?;
    if sb.versions.moment_of(dir) != began || lookup.cached().is_some() {
        return None;
    }
    let its_begin = learn(lookup, held.may_evict(), names.as_ref(), answer).ok()?;
    let entry = lookup.cached();
    lookup::expire_if_invalidated(sb, invalidations, entry);
    let its_begin = its_begin?;
    Some((sb.pin(entry?)?, its_begin))
}

/// Puts the answer about a name of `dir` into the cache. The name was missing there `since`, before the request.
pub(super) fn learn_missing(
    sb: &SuperBlock,
    dir: &Dentry,
    since: Moment,
    invalidations: u64,
    name: &[u8],
    answer: Option<&NewInode>,
) {
    let lookup = Lookup { sb, dir, named: sb.named(name) };
    let Ok((mut held, names)) = lookup.lock() else { return };
    // As for a lookup: the directory did not change, and no other thread was faster.
    if sb.versions.of(dir) != since.version() || lookup.cached().is_some() {
        return;
    }
    // Without room the walk returns the error.
    let _ = learn(lookup, held.may_evict(), names.as_ref(), answer);
    lookup::expire_if_invalidated(sb, invalidations, lookup.cached());
}

/// Begins the time of validity of an expired entry again, if it equals the answer.
fn renew(sb: &SuperBlock, entry: &Dentry, new: &NewInode) {
    let Some(inode) = entry.inode() else { return };
    let before = inode.before_request();
    if inode.node() == new.node && before.is_of(&new.attr) {
        sb.refresh(entry, new, Some(&before));
    }
}
