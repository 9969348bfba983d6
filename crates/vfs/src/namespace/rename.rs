//! rename: a name that moves.

use super::{Base, DirAt, Kind, Last};
use crate::context::Context;
use crate::cred::MAY_WRITE;
use crate::dentry::{DIR, Dentry};
use crate::errno::Errno;
use crate::fs::RenameFlags;
use crate::rank::{Locked, Rank};
use crate::tree::Tree;

/// Both ends of a rename, their directories locked.
struct Ends<'t, 'p> {
    old: (&'t Dentry, Last<'p>, u64),
    new: (&'t Dentry, Last<'p>, u64),
    locks: DirLocks<'t>,
    /// Held when the directories differ: who is whose ancestor then stays.
    _renaming: Option<Locked<'t>>,
}

/// Holds the locks of one directory or of two.
struct DirLocks<'t> {
    _first: Locked<'t>,
    second: Option<Locked<'t>>,
}

impl<'t> DirLocks<'t> {
    /// Locks `first`, then `second` if it is another: the caller has put the ancestor first. `None`: one has changed.
    ///
    /// The first is checked before the second is asked for. It then stays what it is, so the second, even if its memory serves
    /// another directory by now, is no ancestor of it, and the order holds.
    fn two(tree: &'t Tree, first: DirAt<'t>, second: DirAt<'t>) -> Option<Self> {
        let held = tree.ranks.lock(Rank::Directory, &first.dir.lock);
        if !first.is_current() {
            return None;
        }
        let is_other = !core::ptr::eq(first.dir, second.dir);
        let other = is_other.then(|| tree.ranks.lock_nested(Rank::Directory, &second.dir.lock));
        second.is_current().then_some(Self { _first: held, second: other })
    }

    fn are_two(&self) -> bool {
        self.second.is_some()
    }
}

impl Context {
    /// Moves `old` to `new`, over a file or an empty directory that is there: `rename(2)`.
    ///
    /// # Errors
    /// `ENOENT`; `EBUSY` for `.`, `..` and `/`; `EINVAL` into the moved directory itself; `ENOTEMPTY`; `EISDIR`; `ENOTDIR`;
    /// `EACCES`; `EPERM` in sticky directories; those of a walk, and the file system's.
    pub fn rename(&self, old_base: Base<'_>, old: &[u8], new_base: Base<'_>, new: &[u8]) -> Result<(), Errno> {
        if old.contains(&0) || new.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let old_last = Last::of(old).ok_or(Errno::ENOENT)?;
        loop {
            let old_at = self.parent(0, old_base, old, &old_last)?;
            let new_last = Last::of(new).ok_or(Errno::ENOENT)?;
            let new_at = self.parent(0, new_base, new, &new_last)?;
            if old_last.kind != Kind::Normal || new_last.kind != Kind::Normal {
                return Err(Errno::EBUSY);
            }
            if let Some(ends) = self.lock_ends((old_at, old_last), (new_at, new_last)) {
                return self.rename_locked(&ends);
            }
        }
    }

    /// Locks both directories; `None` if one of them changed before it was locked.
    fn lock_ends<'t, 'p>(&'t self, old: (DirAt<'t>, Last<'p>), new: (DirAt<'t>, Last<'p>)) -> Option<Ends<'t, 'p>> {
        let tree = self.tree();
        let (a, b) = (old.0.dir, new.0.dir);
        let renaming = (!core::ptr::eq(a, b)).then(|| tree.ranks.lock(Rank::Rename, &tree.rename_lock));
        // Ancestors first, else by address.
        let b_first = match &renaming {
            Some(_) if is_below(a, b) => true,
            Some(_) if is_below(b, a) => false,
            _ => core::ptr::from_ref(b) < core::ptr::from_ref(a),
        };
        let (first, second) = if b_first { (new.0, old.0) } else { (old.0, new.0) };
        let locks = DirLocks::two(tree, first, second)?;
        let hash = |last: &Last<'_>| tree.key.hash(last.name);
        let (old, new) = ((a, old.1, hash(&old.1)), (b, new.1, hash(&new.1)));
        Some(Ends { old, new, locks, _renaming: renaming })
    }

    fn rename_locked(&self, ends: &Ends<'_, '_>) -> Result<(), Errno> {
        let (old_dir, old_last, old_hash) = ends.old;
        let (new_dir, new_last, new_hash) = ends.new;
        let moved = self.find_in(old_dir, &old_last, old_hash)?.ok_or(Errno::ENOENT)?;
        let target = self.find_in(new_dir, &new_last, new_hash)?;
        let is_dir = moved.has(DIR);
        if !is_dir && (old_last.slash || new_last.slash) {
            return Err(Errno::ENOTDIR);
        }
        if ends.locks.are_two() {
            if core::ptr::eq(moved, new_dir) || is_below(new_dir, moved) {
                return Err(Errno::EINVAL);
            }
            if target.is_some_and(|target| core::ptr::eq(target, old_dir) || is_below(old_dir, target)) {
                return Err(Errno::ENOTEMPTY);
            }
        }
        let inode = moved.inode().ok_or(Errno::ENOENT)?;
        let target_inode = target.and_then(Dentry::inode);
        if target_inode.is_some_and(|target| core::ptr::eq(target, inode)) {
            return Ok(());
        }
        self.may_remove(old_dir, moved, is_dir)?;
        match target {
            Some(target) => drop(self.may_remove(new_dir, target, is_dir)?),
            None => self.may_change(new_dir)?,
        }
        if is_dir && ends.locks.are_two() {
            // Its `..` changes.
            self.with_cred(|cred| cred.may(&inode.attr(), MAY_WRITE))?;
        }
        let ranks = &self.tree().ranks;
        let victim = target.filter(|_| is_dir);
        let target_lock = victim.map(|victim| ranks.lock_nested(Rank::Directory, &victim.lock));
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
    ) -> Result<(), Errno> {
        let tree = self.tree();
        let (old_dir, old_last, old_hash) = ends.old;
        let (new_dir, new_last, new_hash) = ends.new;
        let request = self.request();
        let (Some(inode), Some(from), Some(to)) = (moved.inode(), old_dir.inode(), new_dir.inode()) else {
            return Err(Errno::ENOENT);
        };
        let target_inode = target.and_then(Dentry::inode);
        tree.fs.rename(
            &request,
            (from, old_last.name),
            (to, new_last.name),
            inode,
            target_inode,
            RenameFlags::default(),
        )?;
        inode.link_changed(0, request.now);
        match target {
            Some(target) if is_dir => tree.forget_children(target),
            Some(_) => {}
            None => tree.forget_negative(new_dir, new_last.name, new_hash),
        }
        let replaced_entry = target.map(|target| (target, if is_dir { 2 } else { 1 }));
        tree.move_entry((old_dir, old_hash), (new_dir, new_last.name, new_hash), moved, replaced_entry, request.now);
        let subdir = i32::from(is_dir);
        let replaced = target.is_some();
        tree.touch_dir(old_dir, -1, -subdir, request.now);
        tree.touch_dir(new_dir, i64::from(!replaced), if replaced { 0 } else { subdir }, request.now);
        Ok(())
    }
}

/// Whether `dentry` lies below `ancestor`. Right while no directory moves between directories.
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
