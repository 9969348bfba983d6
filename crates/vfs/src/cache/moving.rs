//! Entries that move: rename and exchange.
//!
//! While names are in motion, the renaming thread is inside the rename sequences of both names, so
//! that a search that missed detects it. It is also inside the write sections of the entries, so
//! that walks and reverse paths detect it.
//!
//! An entry that takes another entry's name takes its place in the listing. Otherwise it gets a new
//! place.

use crate::base::name::Named;
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::slots::children::{exchange_children, insert_child, remove_child, replace_child};
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::shard::Names;
use crate::slots::slot::{entry_hash, link};
use crate::slots::whole_path::Moving;
use sync::{SeqRwLock, SeqRwWriteGuard};

/// One end of a move: a name in a directory, which is locked, or `names` of it.
#[derive(Clone, Copy)]
pub(crate) struct MoveEnd<'a> {
    pub(crate) dir: &'a Dentry,
    pub(crate) named: Named<'a>,
    pub(crate) names: Option<&'a Names<'a>>,
}

impl<'a> MoveEnd<'a> {
    fn hashed(&self) -> (&'a Dentry, u64) {
        (self.dir, self.named.hash)
    }
}

impl SuperBlock {
    /// Moves `dentry` from `old` to `new`, over `target` if there is one; the target's file loses
    /// `links` links at `now`.
    pub(crate) fn move_entry(
        &self,
        old: MoveEnd<'_>,
        new: MoveEnd<'_>,
        dentry: &Dentry,
        target: Option<(&Dentry, i32)>,
        now: i64,
    ) {
        self.in_motion(old, new, || {
            let guard = self.domain.read();
            let dentry = Moving::begin(&self.paths, dentry);
            let target = target.map(|(target, _)| Moving::leave(&self.paths, target));
            self.unlink_chain(&dentry, old);
            dentry.set_entry(&self.domain, new.dir, new.named);
            self.charge_name(dentry.object(), old.named.name.len(), -1);
            self.charge_name(dentry.object(), new.named.name.len(), 1);
            link(self.table(), &self.domain, &guard, &dentry, entry_hash(new.dir, new.named.hash));
            if let Some(target) = target {
                // After the new name is in place, so that a lookup finds one or the other.
                target.update_object(|object| object.without(ObjectFlags::HASHED));
                target.retire_name();
                self.unlink_chain(&target, new);
            }
        });
        remove_child(old.dir, dentry, old.names);
        match target {
            Some((target, links)) => {
                replace_child(new.dir, target, dentry, new.names);
                self.release(new.dir, target, links, now);
            }
            None => insert_child_again(new, dentry),
        }
        self.changed(old.dir, new.dir);
    }

    /// Exchanges `a` and `b`, which lie at `at_a` and `at_b`, in directories that are locked whole.
    pub(crate) fn exchange_entries(&self, at_a: MoveEnd<'_>, a: &Dentry, at_b: MoveEnd<'_>, b: &Dentry) {
        self.in_motion(at_a, at_b, || {
            let guard = self.domain.read();
            let (a, b) = (Moving::begin(&self.paths, a), Moving::begin(&self.paths, b));
            self.unlink_chain(&a, at_a);
            self.unlink_chain(&b, at_b);
            a.set_entry(&self.domain, at_b.dir, at_b.named);
            b.set_entry(&self.domain, at_a.dir, at_a.named);
            link(self.table(), &self.domain, &guard, &a, entry_hash(at_b.dir, at_b.named.hash));
            link(self.table(), &self.domain, &guard, &b, entry_hash(at_a.dir, at_a.named.hash));
        });
        debug_assert!(at_a.names.is_none() && at_b.names.is_none());
        exchange_children([at_a.dir, at_b.dir], [a, b]);
        self.changed(at_a.dir, at_b.dir);
    }

    /// Runs `f`. If `is_dir_move`, it moves a directory to another directory, and concurrent climbs are
    /// repeated.
    pub(crate) fn move_between(&self, is_dir_move: bool, f: impl FnOnce()) {
        let _ranked = self.ranks.acquire(Rank::DirMoves);
        let _moving = is_dir_move.then(|| self.dir_moves.0.write_lock());
        f();
    }

    fn unlink_chain(&self, dentry: &Dentry, from: MoveEnd<'_>) {
        let guard = self.domain.read();
        let removed = self.table().remove(&self.domain, &guard, dentry, entry_hash(from.dir, from.named.hash));
        debug_assert!(removed, "a hashed entry is on the chain of its name");
    }

    /// Runs `f` inside the rename sequences of both names, which excludes reverse paths that block them.
    fn in_motion(&self, a: MoveEnd<'_>, b: MoveEnd<'_>, f: impl FnOnce()) {
        let _ranked = self.ranks.acquire(Rank::Renames);
        let (first, second) = self.renames.of_both(a.hashed(), b.hashed());
        let _first = self.lock_renames(first);
        let _second = second.map(|second| self.lock_renames(second));
        f();
    }

    fn lock_renames<'a>(&self, of: &'a SeqRwLock) -> SeqRwWriteGuard<'a> {
        self.ranks.take_by(Rank::Renames, || of.try_write_lock(), || of.write_lock())
    }

    /// Makes running lookups in these directories repeat.
    fn changed(&self, a: &Dentry, b: &Dentry) {
        for dir in [a, b] {
            self.note_change(dir);
        }
    }
}

/// [`insert_child`] for an entry that was one before: where the file system lists, its `cookie` is a time and stays.
fn insert_child_again(at: MoveEnd<'_>, dentry: &Dentry) {
    use prim::atomic::Ordering::Relaxed;
    let until = dentry.cookie.load(Relaxed);
    insert_child(at.dir, dentry, at.names);
    if !at.dir.object().is_complete() {
        dentry.cookie.store(until, Relaxed);
    }
}
