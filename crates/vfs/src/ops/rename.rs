//! rename: moves of a name, and exchanges of two.
//!
//! # How it is locked
//! Renames inside one directory take its lock; between two directories, both locks. A directory that moves to
//! another one takes `rename_lock` first, so that no ancestor changes. Other moves lock the two directories
//! without it: the second lock is only tried. If that fails, the rename releases everything and repeats under
//! `rename_lock`, ancestors first. So moves of files in unrelated directories share no lock.

use crate::base::access::credentials::MAY_WRITE;
use crate::base::errno::Errno;
use crate::base::flags::RenameFlags;
use crate::base::name::Named;
use crate::base::rank::{Locked, Rank};
use crate::dcache::dentry::Dentry;
use crate::dcache::fs::Rename;
use crate::dcache::inode::Inode;
use crate::dcache::moving::MoveEnd;
use crate::dcache::reclaim::{LockedDirs, MayEvict};
use crate::dcache::superblock::SuperBlock;
use crate::mount::context::Context;
use crate::mount::place::PathAt;
use crate::ops::entry::{DirAt, Pinned};
use crate::ops::last::{Last, LastKind};
use crate::ops::publish;
use crate::ops::remove::{check_no_mount, may_remove};
use crate::walk::lookup;
use crate::walk::permission::may_block;
use sync::lockdep::Held as Ranked;

/// Both ends of a rename, with the held `rename_lock` if need be. [`lock_ends`] returns the locks of the directories beside it.
struct Ends<'t, 'p> {
    sb: &'t SuperBlock,
    old: End<'t, 'p>,
    new: End<'t, 'p>,
    flags: RenameFlags,
    are_two: bool,
    /// Whether `rename_lock` is held.
    ordered: bool,
    _renaming: Option<Locked<'t>>,
}

/// One end of a rename: the directory that the walk found, the name there, and the name's hash.
#[derive(Clone, Copy)]
struct End<'t, 'p> {
    at: &'t DirAt,
    last: Last<'p>,
    hash: u64,
}

impl<'t, 'p> End<'t, 'p> {
    fn of(at: &'t DirAt, last: Last<'p>) -> Self {
        Self { at, last, hash: at.sb().hash(last.name) }
    }

    fn dir(&self) -> &'t Dentry {
        self.at.dir()
    }

    fn named(&self) -> Named<'p> {
        Named { name: self.last.name, hash: self.hash, short: self.last.short }
    }

    fn moved(&self) -> MoveEnd<'_> {
        MoveEnd { dir: self.dir(), named: self.named() }
    }
}

/// The held locks of one directory or of two.
struct DirLocks<'t> {
    _first: Locked<'t>,
    _second: Option<Second<'t>>,
}

/// The second lock, taken by waiting or by trying.
enum Second<'t> {
    Waited { _lock: Locked<'t> },
    Tried { _lock: sync::MutexGuard<'t, ()>, _ranked: Ranked<'t, Rank> },
}

/// The result of trying to lock both directories.
enum Try<T> {
    Locked(T),
    /// A directory changed before it was locked: the caller walks again.
    Changed,
    /// Another thread has the second lock: the caller repeats in the right order.
    Busy,
}

impl<'t> DirLocks<'t> {
    /// Locks `first`, then `second` if it is another directory. The caller passes the ancestor first. `None`:
    /// one of them has changed.
    ///
    /// The first is checked before the second is locked, and then stays what it is. So the second, even if
    /// it was removed by now, is not an ancestor of the first, and the order holds.
    fn two(sb: &'t SuperBlock, first: &'t DirAt, second: &'t DirAt) -> Option<Self> {
        let held = sb.lock_dir(first.dir());
        if !first.is_current() {
            return None;
        }
        let is_other = !core::ptr::eq(first.dir(), second.dir());
        let other = is_other.then(|| Second::Waited { _lock: sb.lock_dir_nested(second.dir()) });
        second.is_current().then_some(Self { _first: held, _second: other })
    }

    /// Locks `first`, and tries to lock `second`.
    fn try_two(sb: &'t SuperBlock, first: &'t DirAt, second: &'t DirAt) -> Try<Self> {
        let held = sb.lock_dir(first.dir());
        let Some(other) = second.dir().lock.try_lock() else { return Try::Busy };
        let other = Second::Tried { _lock: other, _ranked: sb.ranks.acquire_nested(Rank::Directory) };
        if first.is_current() && second.is_current() {
            return Try::Locked(Self { _first: held, _second: Some(other) });
        }
        Try::Changed
    }
}

impl Context {
    /// Moves `old` to `new`, over an existing file or empty directory: `renameat2(2)`. With `NOREPLACE`,
    /// `new` must not exist; with `EXCHANGE`, both exist and are exchanged.
    ///
    /// # Errors
    /// `ENOENT`; `EBUSY` for `.`, `..`, `/` and mount points; `EINVAL` into the moved directory itself, and for both flags at
    /// once; `EEXIST` with `NOREPLACE`; `ENOTEMPTY`; `EISDIR`; `ENOTDIR`; `EACCES`; `EPERM` in sticky directories; `EXDEV` to another
    /// mount; `EROFS`; those of a walk, and the file system's.
    pub fn rename(&self, old: PathAt<'_>, new: PathAt<'_>, flags: RenameFlags) -> Result<(), Errno> {
        if old.path.contains(&0)
            || new.path.contains(&0)
            || flags.contains(RenameFlags::NOREPLACE.union(RenameFlags::EXCHANGE))
        {
            return Err(Errno::EINVAL);
        }
        let old_last = Last::of(old.path).ok_or(Errno::ENOENT)?;
        let mut ordered = false;
        loop {
            let old_at = self.parent(old.base, old.path, &old_last)?;
            let new_last = Last::of(new.path).ok_or(Errno::ENOENT)?;
            let new_at = self.parent(new.base, new.path, &new_last)?;
            if !old_at.mount().ptr_eq(new_at.mount()) {
                return Err(Errno::EXDEV);
            }
            if old_last.kind != LastKind::Normal {
                return Err(Errno::EBUSY);
            }
            if new_last.kind != LastKind::Normal {
                return Err(if flags.contains(RenameFlags::NOREPLACE) { Errno::EEXIST } else { Errno::EBUSY });
            }
            old_at.mount().check_writable()?;
            match lock_ends(End::of(&old_at, old_last), End::of(&new_at, new_last), flags, ordered) {
                Try::Changed => {}
                Try::Busy => ordered = true,
                Try::Locked((ends, mut locks)) => match self.rename_locked(&ends, locks.may_evict())? {
                    Done::Yes => return Ok(()),
                    Done::NeedsOrder => ordered = true,
                },
            }
        }
    }

    fn rename_locked(&self, ends: &Ends<'_, '_>, may_evict: &mut MayEvict) -> Result<Done, Errno> {
        let (old, new) = (&ends.old, &ends.new);
        match stale_above(ends, may_evict) {
            Some(_) if !ends.ordered => return Ok(Done::NeedsOrder),
            Some((false, false)) | None => {}
            Some((moved_above, _)) => return Err(self.refused_as_stale(ends, may_evict, moved_above)?),
        }
        let moved = self.find_in(ends.sb, may_evict, old.dir(), old.named())?.ok_or(Errno::ENOENT)?;
        // The next search may evict what is not held.
        let moved = Pinned::new(ends.sb, moved);
        let target = self.find_in(ends.sb, may_evict, new.dir(), new.named())?;
        self.rename_found(ends, &moved, target)
    }

    /// The error of a rename with one end above the other that must not be revalidated ([`stale_above`]): the
    /// moved one if `moved_above`, else the replaced one.
    #[cold]
    fn refused_as_stale(
        &self,
        ends: &Ends<'_, '_>,
        may_evict: &mut MayEvict,
        moved_above: bool,
    ) -> Result<Errno, Errno> {
        let (old, new) = (&ends.old, &ends.new);
        let exchange = ends.flags.contains(RenameFlags::EXCHANGE);
        let refusal = |is_there: bool, errno| match is_there {
            true if ends.flags.contains(RenameFlags::NOREPLACE) => Errno::EEXIST,
            false if exchange => Errno::ENOENT,
            _ => errno,
        };
        if moved_above {
            let target = self.find_in(ends.sb, may_evict, new.dir(), new.named())?;
            return Ok(refusal(target.is_some(), Errno::EINVAL));
        }
        let moved = self.find_in(ends.sb, may_evict, old.dir(), old.named())?.ok_or(Errno::ENOENT)?;
        let slash = !moved.object().is_dir() && (old.last.slash || (!exchange && new.last.slash));
        let refused = refusal(true, if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        Ok(if slash && refused != Errno::EEXIST { Errno::ENOTDIR } else { refused })
    }

    /// The rename of the entries found at both ends.
    fn rename_found(&self, ends: &Ends<'_, '_>, moved: &Dentry, target: Option<&Dentry>) -> Result<Done, Errno> {
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
        if ends.are_two {
            if (is_dir || target_is_dir) && !ends.ordered {
                return Ok(Done::NeedsOrder);
            }
            if core::ptr::eq(moved, new.dir()) || (is_dir && is_below(new.dir(), moved)) {
                return Err(Errno::EINVAL);
            }
            if target.is_some_and(|target| {
                core::ptr::eq(target, old.dir()) || (target_is_dir && is_below(old.dir(), target))
            }) {
                return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
            }
        }
        let inode = moved.inode().ok_or(Errno::ENOENT)?;
        let target_inode = target.and_then(Dentry::inode);
        if target_inode.is_some_and(|target| core::ptr::eq(target, inode)) {
            return Ok(Done::Yes);
        }
        let mount = old.at.mount();
        may_remove(&self.credentials(), &mount.sb, old.dir(), moved, is_dir)?;
        match target {
            Some(target) => {
                let is_dir = if exchange { target_is_dir } else { is_dir };
                may_remove(&self.credentials(), &mount.sb, new.dir(), target, is_dir)?
            }
            None => self.may_change(ends.sb, new.dir())?,
        }
        if ends.are_two {
            // Its `..` changes.
            let cred = self.credentials();
            for inode in
                [is_dir.then_some(inode), target_inode.filter(|_| exchange && target_is_dir)].into_iter().flatten()
            {
                may_block(ends.sb, inode, inode.rights(), &cred, MAY_WRITE)?;
            }
        }
        check_no_mount(moved)?;
        target.map_or(Ok(()), check_no_mount)?;
        if exchange {
            return target.map_or(Ok(Done::Yes), |target| self.exchange_checked(ends, moved, target));
        }
        let victim = target.filter(|_| is_dir);
        let target_lock = victim.map(|victim| ends.sb.lock_dir_nested(victim));
        if let (Some(target), Some(_)) = (target, &target_lock) {
            self.check_empty(target)?;
        }
        self.move_checked(ends, moved, target, is_dir)
    }

    /// The rename itself, after all checks.
    fn move_checked(
        &self,
        ends: &Ends<'_, '_>,
        moved: &Dentry,
        target: Option<&Dentry>,
        is_dir: bool,
    ) -> Result<Done, Errno> {
        let sb = ends.sb;
        let (old, new) = (&ends.old, &ends.new);
        let request = self.request();
        let inode = moved.inode().ok_or(Errno::ENOENT)?;
        sb.fs().rename(&request, &ends.rename(inode, target.and_then(Dentry::inode))?)?;
        inode.link_changed(0, request.now());
        match target {
            Some(target) if is_dir => sb.forget_children(target),
            Some(_) => {}
            None => sb.forget_negative(new.dir(), new.named()),
        }
        let gone = target.and_then(|target| publish::removed(sb, new.dir(), target, new.last.name, is_dir));
        let replaced_entry = target.map(|target| (target, if is_dir { 2 } else { 1 }));
        let (at_old, at_new) = (old.moved(), new.moved());
        sb.move_between(ends.are_two && is_dir, || sb.move_entry(at_old, at_new, moved, replaced_entry, request.now()));
        let subdir = i32::from(is_dir);
        let replaced = target.is_some();
        sb.touch_dir(old.dir(), -1, -subdir, request.now());
        sb.touch_dir(new.dir(), i64::from(!replaced), if replaced { 0 } else { subdir }, request.now());
        publish::gone(sb, new.dir(), new.last.name, gone);
        publish::moved(sb, moved, at_old, at_new, is_dir);
        Ok(Done::Yes)
    }

    /// The exchange itself, after all checks.
    fn exchange_checked(&self, ends: &Ends<'_, '_>, a: &Dentry, b: &Dentry) -> Result<Done, Errno> {
        let sb = ends.sb;
        let (old, new) = (&ends.old, &ends.new);
        let request = self.request();
        let (a_inode, b_inode) = (a.inode().ok_or(Errno::ENOENT)?, b.inode().ok_or(Errno::ENOENT)?);
        sb.fs().rename(&request, &ends.rename(a_inode, Some(b_inode))?)?;
        a_inode.link_changed(0, request.now());
        b_inode.link_changed(0, request.now());
        let (at_a, at_b) = (old.moved(), new.moved());
        let (a_dir, b_dir) = (a.object().is_dir(), b.object().is_dir());
        sb.move_between(ends.are_two && (a_dir || b_dir), || sb.exchange_entries(at_a, a, at_b, b));
        let subdirs = if ends.are_two { i32::from(b_dir) - i32::from(a_dir) } else { 0 };
        sb.touch_dir(old.dir(), 0, subdirs, request.now());
        sb.touch_dir(new.dir(), 0, -subdirs, request.now());
        publish::moved(sb, a, at_a, at_b, a_dir);
        publish::moved(sb, b, at_b, at_a, b_dir);
        Ok(Done::Yes)
    }
}

/// Whether the moved and the replaced entry are expired directories above the other end. If the file system
/// reported another directory, a revalidation would remove the old one from the cache with everything below
/// it, and so a directory whose lock is held here. So they are used without revalidation. `None`: neither is
/// one.
fn stale_above(ends: &Ends<'_, '_>, may_evict: &MayEvict) -> Option<(bool, bool)> {
    let (old, new) = (&ends.old, &ends.new);
    let moved = lookup::stale_dir(ends.sb, may_evict, old.dir(), old.named());
    let target = lookup::stale_dir(ends.sb, may_evict, new.dir(), new.named());
    if !ends.are_two || (moved.is_none() && target.is_none()) {
        return None;
    }
    let above = |entry: Option<&Dentry>, other: &Dentry| {
        entry.is_some_and(|entry| core::ptr::eq(entry, other) || is_below(other, entry))
    };
    Some((above(moved, new.dir()), above(target, old.dir())))
}

/// The result of a rename with locked directories.
enum Done {
    Yes,
    /// A directory would move to another one: repeat under `rename_lock`.
    NeedsOrder,
}

impl Ends<'_, '_> {
    /// The request for the file system.
    fn rename<'a>(&'a self, inode: &'a Inode, target: Option<&'a Inode>) -> Result<Rename<'a>, Errno> {
        let (old, new) = (&self.old, &self.new);
        Ok(Rename {
            old_dir: old.dir().inode().ok_or(Errno::ENOENT)?,
            old_name: old.last.name,
            new_dir: new.dir().inode().ok_or(Errno::ENOENT)?,
            new_name: new.last.name,
            inode,
            target,
            flags: self.flags,
        })
    }
}

/// Locks both directories; with `ordered` under `rename_lock`, ancestors first.
fn lock_ends<'t, 'p>(
    old: End<'t, 'p>,
    new: End<'t, 'p>,
    flags: RenameFlags,
    ordered: bool,
) -> Try<(Ends<'t, 'p>, LockedDirs<DirLocks<'t>>)> {
    let sb = old.at.sb();
    let (a, b) = (old.dir(), new.dir());
    let are_two = !core::ptr::eq(a, b);
    let by_address = core::ptr::from_ref(b) < core::ptr::from_ref(a);
    let mut renaming = None;
    let locks = if are_two && !ordered {
        let (first, second) = if by_address { (new.at, old.at) } else { (old.at, new.at) };
        match DirLocks::try_two(sb, first, second) {
            Try::Locked(locks) => Some(locks),
            Try::Changed => None,
            Try::Busy => return Try::Busy,
        }
    } else {
        renaming = are_two.then(|| sb.ranks.lock(Rank::Rename, &sb.rename_lock));
        // Ancestors first, else by address.
        let b_first = match &renaming {
            Some(_) if is_below(a, b) => true,
            Some(_) if is_below(b, a) => false,
            _ => by_address,
        };
        let (first, second) = if b_first { (new.at, old.at) } else { (old.at, new.at) };
        DirLocks::two(sb, first, second)
    };
    let Some(locks) = locks else { return Try::Changed };
    let ends = Ends { sb, old, new, flags, are_two, ordered: renaming.is_some(), _renaming: renaming };
    Try::Locked((ends, LockedDirs::new(locks)))
}

/// Whether `dentry` lies below `ancestor`. Exact while no directory moves between directories.
fn is_below(dentry: &Dentry, ancestor: &Dentry) -> bool {
    let mut at = dentry;
    while let Some(parent) = at.parent() {
        if core::ptr::eq(parent, at) {
            return false;
        }
        if core::ptr::eq(parent, ancestor) {
            return true;
        }
        at = parent;
    }
    false
}
