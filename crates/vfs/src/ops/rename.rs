//! rename: moves of a name, and exchanges of two.
//!
//! # How it is locked
//! 1. A file's rename takes the locks of both names. A name's lock is the lock of its directory, or
//!    of its shard where the directory is sharded. So moves of files in unrelated directories, and
//!    of different names in sharded ones, share no lock.
//! 2. With two directories, the thread takes the lock of one name and only tries the lock of the
//!    other.
//! 3. These renames lock whole directories, not names:
//!    - renames of directories in or between sharded directories;
//!    - exchanges in or between sharded directories;
//!    - each move of a directory to another directory;
//!    - all renames in a file system whose names the cache may evict.
//! 4. A move of a directory to another one takes `rename_lock` first, so that no ancestor changes,
//!    and then locks ancestors first (the order of Linux's `lock_rename`). So does a rename that
//!    often finds the second lock taken.
//! 5. If both locks are free, a rename takes the locks of both names in the read sections of both
//!    walks ([`Context::rename_here`]), and takes no count on the directories. In a file system
//!    that never waits, the whole rename takes place in these sections.
//!
//! [`ends`] has the locks. [`name_locked_ends`] is a rename in a remote file system, which locks
//! the names.

mod ends;
mod name_locked_ends;

use crate::base::access::credentials::{MAY_EXEC, MAY_WRITE};
use crate::base::errno::Errno;
use crate::base::flags::{RenameFlags, Resolve};
use crate::base::name::PATH_MAX;
use crate::cache::reclaim::MayEvict;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt};
use crate::ops::checks::check_no_mount;
use crate::ops::entry::{Caller, DirAt, Pinned};
use crate::ops::last_component::{Last, LastKind};
use crate::ops::publish;
use crate::ops::remove::{MAX_FREED, may_remove};
use crate::ops::rename::ends::{
    Attempt, DetachedEnds, Ends, LockedEnds, Plan, Retry, dirs_above, is_below, lock_ends, lock_here,
};
use crate::slots::dentry::Dentry;
use crate::walk::permission::{may, may_block};
use crate::walk::walk_end::WalkEnd;

/// Searches for both ends of a rename, while another client replaces the file.
const MAX_TRIES: u32 = 8;

/// How far the sections of the walks have brought a rename.
enum Stage {
    Done(Result<(), Errno>),
    Locked(DetachedEnds),
}

impl Context {
    /// Moves `old` to `new`, over an existing file or empty directory: `renameat2(2)`. With `NOREPLACE`,
    /// `new` must not exist; with `EXCHANGE`, both exist and are exchanged.
    ///
    /// # Errors
    /// `ENOENT`; `EBUSY` for `.`, `..`, `/` and mount points; `EINVAL` into the moved directory
    /// itself, and for both flags at once; `EEXIST` with `NOREPLACE`; `ENOTEMPTY`; `EISDIR`;
    /// `ENOTDIR`; `EACCES`; `EPERM` in sticky directories; `EXDEV` to another mount; `EROFS`;
    /// errors of a walk and of the file system.
    pub fn rename(&self, old: PathAt<'_>, new: PathAt<'_>, flags: RenameFlags) -> Result<(), Errno> {
        self.unless_stale(&[old, new], false, &|| self.rename_once(old, new, flags))
    }

    fn rename_once(&self, old: PathAt<'_>, new: PathAt<'_>, flags: RenameFlags) -> Result<(), Errno> {
        if old.path.contains(&0)
            || new.path.contains(&0)
            || flags.contains(RenameFlags::NOREPLACE.union(RenameFlags::EXCHANGE))
        {
            return Err(Errno::EINVAL);
        }
        let old_last = Last::of(old.path).ok_or(Errno::ENOENT)?;
        let new_last = Last::of(new.path);
        let plan = new_last.map(|new_last| Plan::new([old_last, new_last], flags));
        // Outside of the section its errors come in the right order.
        let quick = plan.as_ref().filter(|plan| plan.lasts.iter().all(|last| last.kind == LastKind::Normal));
        let quick = quick.filter(|_| new.base.resolve.is_plain() && new.path.len() <= PATH_MAX);
        loop {
            let reached = self.parent_with(0, old.base, old.path, &old_last, |from| {
                match quick.and_then(|plan| self.try_rename_here(from, new.base, plan)) {
                    Some(reached) => Ok(Err(reached)),
                    None => DirAt::keep(from).map(Ok),
                }
            })?;
            let old_at = match (reached, &plan) {
                (Ok(old_at), _) => old_at,
                (Err(Stage::Locked(kept)), Some(plan)) => match self.rename_kept(kept, plan)? {
                    Attempt::Done => return Ok(()),
                    _ => {
                        plan.is_whole.set(true);
                        continue;
                    }
                },
                (Err(Stage::Done(done)), _) => return done,
                (Err(Stage::Locked(_)), None) => unreachable!("a try has a plan"),
            };
            let plan = plan.as_ref().ok_or(Errno::ENOENT)?;
            let new_at = self.parent(new.base, new.path, &plan.lasts[1])?;
            if !old_at.place.mount().ptr_eq(new_at.place.mount()) {
                return Err(Errno::EXDEV);
            }
            if old_last.kind != LastKind::Normal {
                return Err(Errno::EBUSY);
            }
            if plan.lasts[1].kind != LastKind::Normal {
                return Err(if flags.contains(RenameFlags::NOREPLACE) { Errno::EEXIST } else { Errno::EBUSY });
            }
            old_at.place.mount().check_writable()?;
            match self.rename_at([&old_at, &new_at], plan)? {
                Attempt::Done => return Ok(()),
                Attempt::Changed => {}
                Attempt::NeedsWhole => plan.is_whole.set(true),
            }
        }
    }

    /// Renames, or takes the locks, in the section of the walk that reached the directory of the
    /// old name, if rcu-walk leads to the directory of the new name.
    fn try_rename_here(&self, from: &WalkEnd<'_>, base: Base<'_>, plan: &Plan<'_>) -> Option<Stage> {
        if plan.is_whole.get() || !from.is_in_section() || from.sb().is_evictable {
            return None;
        }
        let mut reached = None;
        self.at_parent(base, &plan.lasts[1], &mut |to| reached = self.rename_here(from, to, plan));
        reached
    }

    /// Calls `f` on the directory of a path's `last` component, in the section of an rcu-walk, if that leads there. `f` is called again if
    /// the directory has changed and `f` has not locked it.
    #[inline(never)]
    fn at_parent(&self, base: Base<'_>, last: &Last<'_>, f: &mut dyn FnMut(&WalkEnd<'_>)) {
        // (An error is found again outside of the section.)
        let _: Result<(), Errno> = self.resolve(base.within(Resolve::CACHED), last.parent, true, |found| {
            if !found.object.is_dir() {
                return Err(Errno::ENOTDIR);
            }
            if !found.object.is_open_dir() {
                may(found, found.inode()?.rights(), MAY_EXEC)?;
            }
            f(found);
            Ok(())
        });
    }

    /// Renames in the sections of the walks that reached both directories. Where the file system
    /// may wait, only takes the locks. `None`: that cannot be done there, and nothing has changed.
    fn rename_here(&self, from: &WalkEnd<'_>, to: &WalkEnd<'_>, plan: &Plan<'_>) -> Option<Stage> {
        if !from.mount.ptr_eq(to.mount) || from.mount.check_writable().is_err() {
            return None;
        }
        let sb = from.sb();
        let hashes = plan.lasts.map(|last| sb.hash_again(last.name, last.short));
        if !sb.never_waits {
            return DetachedEnds::lock(from, to, hashes, plan).map(Stage::Locked);
        }
        let locks = lock_here(from, to, hashes, plan)?;
        let caller = self.caller_rcu(from.guard);
        let ends =
            Ends { in_section: true, ..Ends::new(sb, [from.dentry, to.dentry], hashes, plan, locks.names, caller) };
        let done = self.rename_by_name(&ends);
        match ends.leaves.get() {
            Retry::No => return Some(Stage::Done(done)),
            Retry::Section => {}
            Retry::Locks => plan.is_whole.set(true),
        }
        from.unlocked();
        to.unlocked();
        None
    }

    /// Renames with the locks that were taken in the sections of the walks.
    fn rename_kept(&self, kept: DetachedEnds, plan: &Plan<'_>) -> Result<Attempt, Errno> {
        kept.bind(|sb, dirs, hashes, locks| {
            self.with_caller(|caller| {
                let ends = Ends::new(sb, dirs, hashes, plan, locks.names, caller);
                let done = self.rename_by_name(&ends);
                ends.tried(done)
            })
        })
    }

    /// Calls `f` with the state of the context now.
    fn with_caller<R>(&self, f: impl FnOnce(Caller<'_>) -> R) -> R {
        let (cred, timeout) = self.cred_and_timeout();
        f(Caller { cred: &cred, timeout })
    }

    /// Renames in two directories on which the walks have taken counts.
    fn rename_at(&self, at: [&DirAt; 2], plan: &Plan<'_>) -> Result<Attempt, Errno> {
        let sb = at[0].place.sb();
        if sb.name_locks.is_some() {
            return self.with_caller(|caller| self.rename_name_locked(at, plan, caller));
        }
        let hashes = plan.lasts.map(|last| sb.hash(last.name));
        let mut held = match lock_ends(at, hashes, plan) {
            Ok(held) => held,
            Err(tried) => return Ok(tried),
        };
        let dirs = at.map(DirAt::dir);
        self.with_caller(|caller| match &mut held {
            LockedEnds::Names(locks) => {
                let ends = Ends::new(sb, dirs, hashes, plan, locks.names, caller);
                let done = self.rename_by_name(&ends);
                ends.tried(done)
            }
            LockedEnds::Dirs { locks, ordered } => {
                let ends = Ends::new(sb, dirs, hashes, plan, [None, None], caller);
                let ends = Ends { is_ordered: ordered.is_some(), ..ends };
                let done = self.rename_in_dirs(&ends, locks.may_evict());
                ends.tried(done)
            }
        })
    }

    /// Renames one locked name to another locked name, in directories that have all their names.
    fn rename_by_name(&self, ends: &Ends<'_, '_>) -> Result<(), Errno> {
        let moved = ends.find(&ends.old)?.ok_or(Errno::ENOENT)?;
        let target = ends.find(&ends.new)?;
        self.rename_found(ends, moved, target)
    }

    fn rename_in_dirs(&self, ends: &Ends<'_, '_>, may_evict: &mut MayEvict) -> Result<(), Errno> {
        let (old, new) = (&ends.old, &ends.new);
        match dirs_above(ends, may_evict) {
            Some(_) if !ends.is_ordered => return Err(ends.leave(Retry::Locks)),
            Some((false, false)) | None => {}
            Some((moved_above, _)) => return Err(self.refused_above(ends, may_evict, moved_above)?),
        }
        for _ in 0..MAX_TRIES {
            let moved = self.find_in(ends.sb, may_evict, old.dir, old.named())?.ok_or(Errno::ENOENT)?;
            // The next search may evict an entry that is not held.
            let moved = Pinned::of(ends.sb, ends.sb.pin_again(moved));
            let target = self.find_in(ends.sb, may_evict, new.dir, new.named())?;
            // If both are one name, whose file another client replaced meanwhile, that search has removed the entry.
            if moved.object().is_hashed() {
                return self.rename_found(ends, &moved, target);
            }
        }
        Err(Errno::ESTALE)
    }

    /// Returns the error of a rename with one end above the other ([`dirs_above`]): the moved end
    /// if `moved_above`, else the replaced end.
    #[cold]
    fn refused_above(&self, ends: &Ends<'_, '_>, may_evict: &mut MayEvict, moved_above: bool) -> Result<Errno, Errno> {
        let (old, new, exchange) = (&ends.old, &ends.new, ends.flags.contains(RenameFlags::EXCHANGE));
        let refusal = |is_there: bool, errno| match is_there {
            true if ends.flags.contains(RenameFlags::NOREPLACE) => Errno::EEXIST,
            false if exchange => Errno::ENOENT,
            _ => errno,
        };
        if moved_above {
            let target = self.find_in(ends.sb, may_evict, new.dir, new.named())?;
            let slash = exchange && new.last.slash && target.is_some_and(|target| !target.object().is_dir());
            return Ok(refusal(target.is_some(), if slash { Errno::ENOTDIR } else { Errno::EINVAL }));
        }
        let moved = self.find_in(ends.sb, may_evict, old.dir, old.named())?.ok_or(Errno::ENOENT)?;
        let slash = !moved.object().is_dir() && (old.last.slash || (!exchange && new.last.slash));
        let refused = refusal(true, if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        Ok(if slash && refused != Errno::EEXIST { Errno::ENOTDIR } else { refused })
    }

    /// Renames the entries found at both ends.
    fn rename_found(&self, ends: &Ends<'_, '_>, moved: &Dentry, target: Option<&Dentry>) -> Result<(), Errno> {
        if !check_found(ends, moved, target)? {
            return Ok(());
        }
        check_no_mount(moved)?;
        target.map_or(Ok(()), check_no_mount)?;
        if ends.flags.contains(RenameFlags::EXCHANGE) {
            return target.map_or(Ok(()), |target| exchange_checked(ends, moved, target));
        }
        let (is_dir, target_inode) = (moved.object().is_dir(), target.and_then(Dentry::inode));
        // Freeing a large file takes long.
        if ends.in_section && target_inode.is_some_and(|target| target.stored() > MAX_FREED) {
            return Err(ends.leave(Retry::Section));
        }
        let victim = target.filter(|_| is_dir);
        let target_lock = victim.map(|victim| ends.sb.lock_dir_nested(victim));
        if let (Some(target), Some(_)) = (target, &target_lock) {
            self.check_empty(target)?;
        }
        move_checked(ends, moved, target, is_dir)
    }
}

/// Checks the entries found at both ends, and the caller's rights. `false`: they are one file, so
/// there is nothing to do.
#[inline]
fn check_found(ends: &Ends<'_, '_>, moved: &Dentry, target: Option<&Dentry>) -> Result<bool, Errno> {
    let (old, new) = (&ends.old, &ends.new);
    let exchange = ends.flags.contains(RenameFlags::EXCHANGE);
    let (is_dir, target_is_dir) = (moved.object().is_dir(), target.is_some_and(|target| target.object().is_dir()));
    if target.is_some() && ends.flags.contains(RenameFlags::NOREPLACE) {
        return Err(Errno::EEXIST);
    }
    if exchange && target.is_none() {
        return Err(Errno::ENOENT);
    }
    let slash = old.last.slash || (!exchange && new.last.slash);
    if (!is_dir && slash) || (exchange && new.last.slash && !target_is_dir) {
        return Err(Errno::ENOTDIR);
    }
    if !ends.suffice(is_dir, target, exchange) {
        return Err(ends.leave(Retry::Locks));
    }
    if ends.are_two {
        if core::ptr::eq(moved, new.dir) || (is_dir && is_below(new.dir, moved)) {
            return Err(Errno::EINVAL);
        }
        if target.is_some_and(|target| core::ptr::eq(target, old.dir) || (target_is_dir && is_below(old.dir, target))) {
            return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        }
    }
    let inode = moved.inode().ok_or(Errno::ENOENT)?;
    if target.and_then(Dentry::inode).is_some_and(|target| core::ptr::eq(target, inode)) {
        return Ok(false);
    }
    check_rights(ends, moved, target, exchange)?;
    Ok(true)
}

/// Returns whether the caller may remove both names, or create the new one.
fn check_rights(ends: &Ends<'_, '_>, moved: &Dentry, target: Option<&Dentry>, exchange: bool) -> Result<(), Errno> {
    let (sb, cred, new) = (ends.sb, ends.caller.cred, &ends.new);
    let is_dir = moved.object().is_dir();
    may_remove(cred, sb, ends.old.dir, moved, is_dir)?;
    match target {
        Some(target) => {
            let is_dir = if exchange { target.object().is_dir() } else { is_dir };
            may_remove(cred, sb, new.dir, target, is_dir)?;
        }
        None => {
            let inode = new.dir.inode().ok_or(Errno::ENOENT)?;
            may_block(sb, inode, inode.rights(), cred, MAY_WRITE | MAY_EXEC)?;
        }
    }
    if ends.are_two {
        // The `..` of the replaced directory changes.
        let replaced = target.filter(|target| exchange && target.object().is_dir());
        for inode in [is_dir.then_some(moved), replaced].into_iter().flatten().filter_map(Dentry::inode) {
            may_block(sb, inode, inode.rights(), cred, MAY_WRITE)?;
        }
    }
    Ok(())
}

/// Renames, after all checks.
fn move_checked(ends: &Ends<'_, '_>, moved: &Dentry, target: Option<&Dentry>, is_dir: bool) -> Result<(), Errno> {
    let sb = ends.sb;
    let (old, new) = (&ends.old, &ends.new);
    let request = ends.caller.request();
    let inode = moved.inode().ok_or(Errno::ENOENT)?;
    let rename = ends.rename(inode, target.and_then(Dentry::inode))?;
    let pre_attrs = ends.pre_attrs(&rename);
    let after = sb.fs().rename(&request, &rename)?;
    inode.link_changed(0, request.now());
    match target {
        Some(target) if is_dir => sb.forget_children(target),
        Some(_) => {}
        None => sb.forget_negative(new.dir, new.named()),
    }
    let gone = target.and_then(|target| publish::removed(sb, new.dir, target, new.last.name, is_dir));
    let replaced_entry = target.map(|target| (target, if is_dir { 2 } else { 1 }));
    let (at_old, at_new) = (old.moved(), new.moved());
    sb.move_between(ends.are_two && is_dir, || sb.move_entry(at_old, at_new, moved, replaced_entry, request.now()));
    let subdir = i32::from(is_dir);
    let replaced = target.is_some();
    old.touch(sb, -1, -subdir, request.now());
    new.touch(sb, i64::from(!replaced), if replaced { 0 } else { subdir }, request.now());
    pre_attrs.post_attrs(&after);
    publish::gone(sb, new.dir, new.last.name, gone);
    publish::moved(sb, moved, at_old, at_new, is_dir);
    Ok(())
}

/// Exchanges, after all checks.
fn exchange_checked(ends: &Ends<'_, '_>, a: &Dentry, b: &Dentry) -> Result<(), Errno> {
    let sb = ends.sb;
    let (old, new) = (&ends.old, &ends.new);
    let request = ends.caller.request();
    let (a_inode, b_inode) = (a.inode().ok_or(Errno::ENOENT)?, b.inode().ok_or(Errno::ENOENT)?);
    let rename = ends.rename(a_inode, Some(b_inode))?;
    let pre_attrs = ends.pre_attrs(&rename);
    let after = sb.fs().rename(&request, &rename)?;
    a_inode.link_changed(0, request.now());
    b_inode.link_changed(0, request.now());
    let (at_a, at_b) = (old.moved(), new.moved());
    let (a_dir, b_dir) = (a.object().is_dir(), b.object().is_dir());
    sb.move_between(ends.are_two && (a_dir || b_dir), || sb.exchange_entries(at_a, a, at_b, b));
    let subdirs = if ends.are_two { i32::from(b_dir) - i32::from(a_dir) } else { 0 };
    old.touch(sb, 0, subdirs, request.now());
    new.touch(sb, 0, -subdirs, request.now());
    pre_attrs.post_attrs(&after);
    publish::moved(sb, a, at_a, at_b, a_dir);
    publish::moved(sb, b, at_b, at_a, b_dir);
    Ok(())
}
