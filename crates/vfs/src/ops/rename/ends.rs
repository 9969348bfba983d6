//! The two names of a rename, and their locks.
//!
//! # How it is locked
//! As [`rename`](super).

use crate::base::errno::Errno;
use crate::base::flags::RenameFlags;
use crate::base::name::Named;
use crate::base::rank::{Locked, Rank};
use crate::cache::moving::MoveEnd;
use crate::cache::reclaim::{LockedDirs, MayEvict};
use crate::cache::returned::{Files, PreAttrs};
use crate::cache::sharded::{NamePairGuard, share_shard};
use crate::cache::superblock::SuperBlock;
use crate::fs::Rename;
use crate::mount::Mount;
use crate::mount::place::above;
use crate::ops::entry::{Caller, DirAt};
use crate::ops::last_component::Last;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::shard::Names;
use crate::walk::lookup;
use crate::walk::walk_end::{LockedHere, WalkEnd};
use core::cell::Cell;
use sync::PerCpuArc;

/// How often a thread that has found the second name locked begins with that one, before it locks the directories in order.
const TURNS: usize = if cfg!(loom) { 1 } else { 8 };

/// The task of a rename, and the results of its tries so far.
pub(super) struct Plan<'p> {
    /// The old name and the new one.
    pub(super) lasts: [Last<'p>; 2],
    flags: RenameFlags,
    /// The directories that this thread has found locked by another one.
    waited: [Cell<bool>; 2],
    /// The locks of the names are not enough.
    pub(super) is_whole: Cell<bool>,
}

impl<'p> Plan<'p> {
    pub(super) fn new(lasts: [Last<'p>; 2], flags: RenameFlags) -> Self {
        Self { lasts, flags, waited: Default::default(), is_whole: Cell::new(false) }
    }
}

/// The result of a try.
pub(super) enum Attempt {
    Done,
    /// A directory changed before it was locked: the caller walks again.
    Changed,
    /// The rename needs the locks of the directories, not only of the names. Two directories are
    /// locked in order.
    NeedsWhole,
}

/// Why a rename that has changed nothing yet must begin again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    No,
    /// The rename might wait, so it must take place outside of the walks' sections.
    Section,
    /// The rename must lock both directories, not only names, in order.
    Locks,
}

/// Both ends of a rename, which are locked, and the caller's task.
pub(super) struct Ends<'t, 'p> {
    pub(super) sb: &'t SuperBlock,
    pub(super) old: End<'t, 'p>,
    pub(super) new: End<'t, 'p>,
    pub(super) flags: RenameFlags,
    pub(super) are_two: bool,
    pub(super) caller: Caller<'t>,
    /// Whether it takes place in the sections of the walks.
    pub(super) in_section: bool,
    /// Whether `rename_lock` is held.
    pub(super) is_ordered: bool,
    pub(super) leaves: Cell<Retry>,
}

/// One end of a rename: the directory that the walk found, the name there, and the name's hash.
#[derive(Clone, Copy)]
pub(super) struct End<'t, 'p> {
    pub(super) dir: &'t Dentry,
    pub(super) last: Last<'p>,
    hash: u64,
    /// Where the directory keeps the name, if it is sharded.
    names: Option<Names<'t>>,
}

impl<'p> End<'_, 'p> {
    pub(super) fn named(&self) -> Named<'p> {
        Named { name: self.last.name, hash: self.hash, short: self.last.short }
    }

    pub(super) fn moved(&self) -> MoveEnd<'_> {
        MoveEnd { dir: self.dir, named: self.named(), names: self.names.as_ref() }
    }

    /// Updates the directory's length, links and times, or the share of the name's shard.
    pub(super) fn touch(&self, sb: &SuperBlock, by: i64, subdirs: i32, now: i64) {
        match &self.names {
            None => sb.touch_dir(self.dir, by, subdirs, now),
            Some(names) => names.touch(subdirs, now),
        }
    }
}

impl<'t, 'p> Ends<'t, 'p> {
    pub(super) fn new(
        sb: &'t SuperBlock,
        dirs: [&'t Dentry; 2],
        hashes: [u64; 2],
        plan: &Plan<'p>,
        names: [Option<Names<'t>>; 2],
        caller: Caller<'t>,
    ) -> Self {
        let end = |k: usize| End { dir: dirs[k], last: plan.lasts[k], hash: hashes[k], names: names[k] };
        let (flags, are_two) = (plan.flags, !core::ptr::eq(dirs[0], dirs[1]));
        let (old, new, leaves) = (end(0), end(1), Cell::new(Retry::No));
        Self { sb, old, new, flags, are_two, caller, in_section: false, is_ordered: false, leaves }
    }

    /// Notes that the rename must begin again. This try fails with the returned error.
    #[cold]
    pub(super) fn leave(&self, leaves: Retry) -> Errno {
        self.leaves.set(leaves);
        Errno::EAGAIN
    }

    /// Returns the entry of a locked name, if it exists, in a directory that has all its names and
    /// so evicts none.
    pub(super) fn find(&self, end: &End<'t, 'p>) -> Result<Option<&'t Dentry>, Errno> {
        lookup::check_name(end.dir, end.last.name)?;
        match self.sb.cached(end.dir, end.named()) {
            Some(entry) if entry.object().has_expiry() => Err(self.leave(Retry::Locks)),
            found => Ok(found),
        }
    }

    /// Returns whether the locks are enough for the entries at both ends.
    pub(super) fn suffice(&self, is_dir: bool, target: Option<&Dentry>, exchange: bool) -> bool {
        if self.is_ordered {
            return true;
        }
        let has_dir = is_dir || target.is_some_and(|target| target.object().is_dir());
        let is_sharded = self.old.names.is_some() || self.new.names.is_some();
        // A directory that is replaced is locked, for which a thread waits.
        let waits = self.in_section && target.is_some();
        !(has_dir && (self.are_two || is_sharded || waits) || exchange && is_sharded)
    }

    /// Returns the result of a try that ended with `done`.
    pub(super) fn tried(&self, done: Result<(), Errno>) -> Result<Attempt, Errno> {
        if self.leaves.get() == Retry::No { done.map(|()| Attempt::Done) } else { Ok(Attempt::NeedsWhole) }
    }

    /// Returns the request for the file system.
    pub(super) fn rename<'a>(&'a self, inode: &'a Inode, target: Option<&'a Inode>) -> Result<Rename<'a>, Errno> {
        let (old, new) = (&self.old, &self.new);
        Ok(Rename {
            old_dir: old.dir.inode().ok_or(Errno::ENOENT)?,
            old_name: old.last.name,
            new_dir: new.dir.inode().ok_or(Errno::ENOENT)?,
            new_name: new.last.name,
            inode,
            target,
            flags: self.flags,
        })
    }

    /// Samples the files of the request. A directory gets a mark for each name that it loses or gets.
    #[inline]
    pub(super) fn pre_attrs(&self, rename: &Rename<'t>) -> PreAttrs<'t> {
        self.sb.pre_attrs(Files {
            file: Some((rename.inode, 1)),
            dir: Some((rename.old_dir, if self.are_two { 1 } else { 2 })),
            new_dir: Some((rename.new_dir, 1)).filter(|_| self.are_two),
            target: rename.target.map(|target| (target, 1)),
        })
    }
}

/// The held locks of one directory or of two.
pub(super) type DirLocks<'t> = (Locked<'t>, Option<Locked<'t>>);

/// Locks `first`, then `second` if it is another directory. The caller passes the ancestor first. `None`:
/// one of them has changed.
///
/// The first is checked before the second is locked, and its lock keeps its place. So the
/// second, even if it was removed meanwhile, is not an ancestor of the first, and the order
/// holds.
fn lock_two<'t>(sb: &'t SuperBlock, first: &'t DirAt, second: &'t DirAt) -> Option<DirLocks<'t>> {
    let held = sb.lock_dir(first.dir());
    if !first.is_current() {
        return None;
    }
    let is_other = !core::ptr::eq(first.dir(), second.dir());
    let other = is_other.then(|| sb.lock_dir_nested(second.dir()));
    second.is_current().then_some((held, other))
}

/// Locks `first`, and tries to lock `second`.
fn lock_and_try<'t>(sb: &'t SuperBlock, first: &'t DirAt, second: &'t DirAt) -> Result<DirLocks<'t>, Attempt> {
    let held = sb.lock_dir(first.dir());
    let Some(other) = second.dir().lock.try_lock() else { return Err(Attempt::NeedsWhole) };
    let other = sb.ranks.taken_nested(Rank::Directory, other);
    if first.is_current() && second.is_current() { Ok((held, Some(other))) } else { Err(Attempt::Changed) }
}

/// The locks of a rename outside of the walks' sections.
pub(super) enum LockedEnds<'t> {
    Names(NamePairGuard<'t>),
    /// With `rename_lock` if they are ordered.
    Dirs {
        locks: LockedDirs<DirLocks<'t>>,
        ordered: Option<Locked<'t>>,
    },
}

/// Locks both names, or both directories. Directories are locked ancestors first and, if need be,
/// under `rename_lock`.
pub(super) fn lock_ends<'t>(at: [&'t DirAt; 2], hashes: [u64; 2], plan: &Plan<'_>) -> Result<LockedEnds<'t>, Attempt> {
    let sb = at[0].place.sb();
    if !sb.is_evictable && !plan.is_whole.get() {
        return lock_names(sb, at, hashes, plan).map(LockedEnds::Names);
    }
    let (a, b) = (at[0].dir(), at[1].dir());
    let are_two = !core::ptr::eq(a, b);
    let by_address = core::ptr::from_ref(b) < core::ptr::from_ref(a);
    let in_order = |b_first: bool| if b_first { (at[1], at[0]) } else { (at[0], at[1]) };
    if are_two && !plan.is_whole.get() {
        let (first, second) = in_order(by_address);
        let locks = LockedDirs::new(lock_and_try(sb, first, second)?);
        return Ok(LockedEnds::Dirs { locks, ordered: None });
    }
    let ordered = are_two.then(|| sb.ranks.lock(Rank::Rename, &sb.rename_lock));
    // Ancestors first, else by address.
    let b_first = match &ordered {
        Some(_) if is_below(a, b) => true,
        Some(_) if is_below(b, a) => false,
        _ => by_address,
    };
    let (first, second) = in_order(b_first);
    let locks = LockedDirs::new(lock_two(sb, first, second).ok_or(Attempt::Changed)?);
    Ok(LockedEnds::Dirs { locks, ordered })
}

/// Locks both names. With two directories, it locks one without holding another lock, and tries the
/// other.
#[cold]
fn lock_names<'t>(
    sb: &'t SuperBlock,
    at: [&'t DirAt; 2],
    hashes: [u64; 2],
    plan: &Plan<'_>,
) -> Result<NamePairGuard<'t>, Attempt> {
    let dirs = at.map(DirAt::dir);
    // The walks' sections end where a directory is locked. So the second look finds fewer of them.
    let waits = |k: usize| plan.waited[k].take() | (sb.shards_always() || !dirs[k].lock.is_free());
    let mut first = usize::from(plan.waited[1].get());
    let mut locks = None;
    if core::ptr::eq(dirs[0], dirs[1]) {
        locks = Some(sb.lock_names(dirs[0], hashes, waits(0) | waits(1)));
    }
    for _ in 0..TURNS {
        if locks.is_some() {
            break;
        }
        let other = 1 - first;
        locks = sb.lock_and_try((dirs[first], hashes[first]), (dirs[other], hashes[other]), waits(first));
        match &mut locks {
            Some(locks) if first == 1 => locks.names.swap(0, 1),
            Some(_) => {}
            None => first = other,
        }
    }
    let locks = locks.ok_or(Attempt::NeedsWhole)?;
    if at.iter().all(|at| at.is_current()) { Ok(locks) } else { Err(Attempt::Changed) }
}

/// Locks both names in the sections of the walks that reached their directories, and notes which
/// directory another thread has locked. `None`: a lock is taken.
pub(super) fn lock_here<'t>(
    from: &WalkEnd<'t>,
    to: &WalkEnd<'t>,
    hashes: [u64; 2],
    plan: &Plan<'_>,
) -> Option<NamePairGuard<'t>> {
    if core::ptr::eq(from.dentry, to.dentry) {
        let locks = from.lock_names_here(to, hashes);
        plan.waited[0].set(locks.is_none());
        return locks;
    }
    let one = from.lock_name_here(hashes[0]);
    plan.waited[0].set(one.is_none());
    let (one, one_names) = one?;
    let other = to.lock_name_here(hashes[1]);
    plan.waited[1].set(other.is_none());
    let Some((other, other_names)) = other else {
        drop(one);
        from.unlocked();
        return None;
    };
    Some(from.sb().name_pair([one_names, other_names], one, Some(other)))
}

/// The locks of both names, taken in the sections of the walks, for a rename outside of them: they keep the directories without a count.
pub(super) struct DetachedEnds {
    mount: PerCpuArc<Mount>,
    first: LockedHere,
    /// None if one lock covers both names.
    second: Option<LockedHere>,
    hashes: [u64; 2],
}

impl DetachedEnds {
    /// As [`lock_here`].
    pub(super) fn lock(from: &WalkEnd<'_>, to: &WalkEnd<'_>, hashes: [u64; 2], plan: &Plan<'_>) -> Option<Self> {
        let mount = from.count_mount().ok()?;
        let first = from.lock_name_to_keep(hashes[0]);
        plan.waited[0].set(first.is_none());
        let first = first?;
        let is_one = core::ptr::eq(from.dentry, to.dentry);
        let covers = is_one && (matches!(first, LockedHere::Dir(_)) || share_shard(hashes));
        let second = if covers { None } else { to.lock_name_to_keep(hashes[1]) };
        plan.waited[1].set(!covers && second.is_none());
        if (covers && !to.is_locked_too()) || (!covers && second.is_none()) {
            drop(first.bind(from.sb()));
            from.unlocked();
            return None;
        }
        Some(Self { mount, first, second, hashes })
    }

    /// Calls `f` with the superblock, both directories, the hashes, and the locks, which end with this.
    pub(super) fn bind<R>(
        self,
        f: impl for<'t> FnOnce(&'t SuperBlock, [&'t Dentry; 2], [u64; 2], &NamePairGuard<'t>) -> R,
    ) -> R {
        let Self { mount, first, second, hashes } = self;
        let sb = &*mount.sb;
        let (dir, first, names) = first.bind(sb);
        let (other_dir, second, other_names) = match second.map(|second| second.bind(sb)) {
            Some((dir, lock, names)) => (dir, Some(lock), names),
            None => (dir, None, names),
        };
        let locks = sb.name_pair([names, other_names], first, second);
        f(sb, [dir, other_dir], hashes, &locks)
    }
}

/// Returns whether the moved and the replaced entry are directories above the other end. Such a
/// rename fails, and neither entry is revalidated: if the file system reported another directory,
/// the old directory would be removed from the cache with everything below it, and so would the
/// directory whose lock is held here. (An entry that is valid now may have expired by the next
/// search.) `None`: neither is a directory.
pub(super) fn dirs_above(ends: &Ends<'_, '_>, _may_evict: &MayEvict) -> Option<(bool, bool)> {
    let (old, new) = (&ends.old, &ends.new);
    let is_dir = |entry: &&Dentry| !entry.object().is_negative() && entry.object().is_dir();
    let [moved, target] = [old, new].map(|end| ends.sb.cached(end.dir, end.named()).filter(is_dir));
    if !ends.are_two || (moved.is_none() && target.is_none()) {
        return None;
    }
    let above = |entry: Option<&Dentry>, other: &Dentry| {
        entry.is_some_and(|entry| core::ptr::eq(entry, other) || is_below(other, entry))
    };
    Some((above(moved, new.dir), above(target, old.dir)))
}

/// Returns whether `dentry` lies below `ancestor`. Exact while no directory moves between
/// directories.
pub(super) fn is_below(dentry: &Dentry, ancestor: &Dentry) -> bool {
    core::iter::successors(above(dentry), |at| above(at)).any(|at| core::ptr::eq(at, ancestor))
}
