//! rename in a remote file system: both names are locked, and no directory is locked during the
//! call.
//!
//! # How it is locked
//! As [`name_locks`](crate::cache::name_locks), and:
//! 1. A move of a directory to another one holds `rename_lock` from before the names' locks until
//!    its end, also during the call. So no ancestor changes.
//! 2. A directory that is replaced is closed.
//! 3. Both directories are locked before the call, to check, and after it, to change the cache. The
//!    thread locks one and tries the other, so no order is needed.

use super::check_found;
use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::base::flags::RenameFlags;
use crate::base::rank::{Locked, Rank};
use crate::cache::name_locks::NameLocks;
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::mount::context::Context;
use crate::ops::checks::check_no_mount;
use crate::ops::entry::{Caller, DirAt, Pinned};
use crate::ops::publish;
use crate::ops::rename::ends::{Attempt, End, Ends, Plan};
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::walk::lookup;
use crate::walk::walk_position::Here;

/// The entries at both ends.
#[derive(Clone, Copy)]
struct Found<'f> {
    moved: &'f Dentry,
    inode: &'f Inode,
    target: Option<&'f Dentry>,
    is_dir: bool,
}

impl Context {
    /// Renames, with both names locked.
    #[cold]
    pub(super) fn rename_name_locked(
        &self,
        at: [&DirAt; 2],
        plan: &Plan<'_>,
        caller: Caller<'_>,
    ) -> Result<Attempt, Errno> {
        let (sb, dirs) = (at[0].place.sb(), at.map(DirAt::dir));
        let hashes = plan.lasts.map(|last| sb.hash(last.name));
        let ends = Ends::new(sb, dirs, hashes, plan, [None, None], caller);
        let ordered = (ends.are_two && plan.is_whole.get()).then(|| sb.ranks.lock(Rank::Rename, &sb.rename_lock));
        let ends = Ends { is_ordered: ordered.is_some(), ..ends };
        let request = caller.request();
        let deadline = Deadline::at(request.deadline);
        // Dropped after the names' locks, so that a closed directory stays in its slot.
        let (moved, target);
        let Some(names) = sb.lock_remote_names([(dirs[0], hashes[0]), (dirs[1], hashes[1])], deadline)? else {
            return Ok(Attempt::Changed);
        };
        if !at.iter().all(|at| at.is_current()) {
            return Ok(Attempt::Changed);
        }
        let find = |k: usize| {
            let end = [&ends.old, &ends.new][k];
            lookup::check_name(end.dir, end.last.name)?;
            let found = lookup::find_name_locked(&Here::Counted(at[k].place.clone()), end.last.name, &request)?;
            Ok::<_, Errno>(found.map(|found| Pinned::of(sb, found)))
        };
        moved = find(0)?.ok_or(Errno::ENOENT)?;
        target = find(1)?;
        let target = target.as_deref();
        let done = match check_found(&ends, &moved, target) {
            Ok(true) => {
                let inode = moved.inode().ok_or(Errno::ENOENT)?;
                let found = Found { moved: &moved, inode, target, is_dir: moved.object().is_dir() };
                if let Some(victim) = ends.replaced_dir(found) {
                    names.close(victim, deadline)?;
                }
                match self.rename_unlocked(&ends, found, &names, &request) {
                    Ok(true) => Ok(()),
                    Ok(false) => return Ok(Attempt::Changed),
                    Err(errno) => Err(errno),
                }
            }
            checked => checked.map(drop),
        };
        ends.tried(done)
    }

    /// Renames, after the checks of rights. `false`: an end has left the cache, and nothing has changed.
    fn rename_unlocked(
        &self,
        ends: &Ends<'_, '_>,
        found: Found<'_>,
        names: &NameLocks<'_>,
        request: &Request<'_>,
    ) -> Result<bool, Errno> {
        let (sb, target) = (ends.sb, found.target);
        {
            let _held = lock_both(sb, [ends.old.dir, ends.new.dir]);
            let at_new = sb.cached(ends.new.dir, ends.new.named()).filter(|entry| !entry.object().is_negative());
            let is_same =
                is_at(sb, &ends.old, found.moved) && at_new.map(core::ptr::from_ref) == target.map(core::ptr::from_ref);
            if !is_same || !are_hashed(ends) {
                return Ok(false);
            }
            check_no_mount(found.moved)?;
            target.map_or(Ok(()), check_no_mount)?;
            if let Some(victim) = ends.replaced_dir(found) {
                let _held = sb.lock_dir_nested(victim);
                self.check_empty(victim)?;
            }
            names.begin_change();
        }
        let target_inode = target.and_then(Dentry::inode);
        let rename = ends.rename(found.inode, target_inode)?;
        let pre_attrs = ends.pre_attrs(&rename);
        let after = sb.fs().rename(request, &rename)?;
        let _held = lock_both(sb, [ends.old.dir, ends.new.dir]);
        let now = request.now();
        found.inode.link_changed(0, now);
        match target {
            Some(target) if ends.flags.contains(RenameFlags::EXCHANGE) => exchange_found(ends, found, target, now),
            _ => move_found(ends, found, now),
        }
        pre_attrs.post_attrs(&after);
        Ok(true)
    }
}

impl<'t> Ends<'t, '_> {
    /// Returns the directory that the rename replaces.
    fn replaced_dir<'f>(&self, found: Found<'f>) -> Option<&'f Dentry> {
        found.target.filter(|_| found.is_dir && !self.flags.contains(RenameFlags::EXCHANGE))
    }

    /// Marks both names stale wherever the cache has them, if the cache now has another entry for
    /// one of the names than before the call, or if the rename replaced a directory. Both
    /// directories are locked.
    fn expire_both(&self) {
        for end in [&self.old, &self.new] {
            if let Some(dir) = end.dir.inode() {
                self.sb.expire_name(dir, end.last.name);
            }
            self.sb.note_change(end.dir);
        }
    }
}

/// Moves the entry, over the target. Both directories are locked.
fn move_found(ends: &Ends<'_, '_>, found: Found<'_>, now: i64) {
    let (sb, old, new) = (ends.sb, &ends.old, &ends.new);
    let Found { moved, inode, target, is_dir } = found;
    let (at_old, at_new) = (old.moved(), new.moved());
    let gone = target.and_then(|target| publish::removed(sb, new.dir, target, new.last.name, is_dir));
    // A file keeps the name busy until the other one has it.
    let over = target.filter(|target| !is_dir && is_at(sb, new, target));
    let is_free = over.is_some()
        || sb.cached(new.dir, new.named()).is_none_or(|entry| sb.prune(None, new.dir, entry, new.named().hash));
    if let (None, Some(target)) = (over, target.and_then(Dentry::inode)) {
        target.link_changed(if is_dir { -2 } else { -1 }, now);
    }
    if is_free && is_at(sb, old, moved) && are_hashed(ends) {
        let over = over.map(|target| (target, 1));
        sb.move_between(ends.are_two && is_dir, || sb.move_entry(at_old, at_new, moved, over, now));
    } else {
        sb.end_name(old.dir, old.named(), inode);
        over.and_then(Dentry::inode).into_iter().for_each(|target| target.link_changed(-1, now));
        ends.expire_both();
    }
    let (subdir, replaced) = (i32::from(is_dir), target.is_some());
    old.touch(sb, -1, -subdir, now);
    new.touch(sb, i64::from(!replaced), if replaced { 0 } else { subdir }, now);
    publish::gone(sb, new.dir, new.last.name, gone);
    publish::moved(sb, moved, at_old, at_new, is_dir);
}

/// Exchanges the entries. Both directories are locked.
fn exchange_found(ends: &Ends<'_, '_>, found: Found<'_>, other: &Dentry, now: i64) {
    let (sb, old, new) = (ends.sb, &ends.old, &ends.new);
    let (a, a_dir, b_dir) = (found.moved, found.is_dir, other.object().is_dir());
    let (at_a, at_b) = (old.moved(), new.moved());
    other.inode().into_iter().for_each(|inode| inode.link_changed(0, now));
    if is_at(sb, old, a) && is_at(sb, new, other) && are_hashed(ends) {
        sb.move_between(ends.are_two && (a_dir || b_dir), || sb.exchange_entries(at_a, a, at_b, other));
    } else {
        ends.expire_both();
    }
    let subdirs = if ends.are_two { i32::from(b_dir) - i32::from(a_dir) } else { 0 };
    old.touch(sb, 0, subdirs, now);
    new.touch(sb, 0, -subdirs, now);
    publish::moved(sb, a, at_a, at_b, a_dir);
    publish::moved(sb, other, at_b, at_a, b_dir);
}

/// Returns whether the cache has `entry` at this end, whose directory is locked.
fn is_at(sb: &SuperBlock, end: &End<'_, '_>, entry: &Dentry) -> bool {
    sb.cached(end.dir, end.named()).is_some_and(|cached| core::ptr::eq(cached, entry))
}

/// Returns whether both directories have their names. They are locked.
fn are_hashed(ends: &Ends<'_, '_>) -> bool {
    [ends.old.dir, ends.new.dir].iter().all(|dir| dir.object().is_hashed())
}

/// Locks both directories, which may be one, whole.
fn lock_both<'t>(sb: &'t SuperBlock, dirs: [&'t Dentry; 2]) -> (Locked<'t>, Option<Locked<'t>>) {
    let [mut first, mut second] = dirs;
    loop {
        let held = sb.lock_dir(first);
        if core::ptr::eq(first, second) {
            return (held, None);
        }
        if let Some(other) = second.lock.try_lock() {
            return (held, Some(sb.ranks.taken_nested(Rank::Directory, other)));
        }
        drop(held);
        core::mem::swap(&mut first, &mut second);
    }
}
