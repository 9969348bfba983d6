//! Lookups by the table of whole paths, in front of the walk.
//!
//! # What it is
//! [`Shortcut::resolve`] uses the end of a path that was recorded as the end of a walk: it reads, then checks the dentry's
//! sequence, and here also the stamp. A path that is not in the table is walked; at its
//! second use [`Shortcut::record`] walks it once more, by steps that are noted.
//!
//! # How it is ordered
//! See [`whole_path`](crate::dcache::whole_path).
//!
//! # Where it comes from
//! Named there.

use crate::base::access::credentials::MAY_EXEC;
use crate::base::errno::Errno;
use crate::base::name::{NAME_MAX, Named};
use crate::dcache::dentry::Dentry;
use crate::dcache::object::{Object, ObjectFlags};
use crate::dcache::slot::{dentry_beside, entry_hash, inode_beside, inode_of, recorded, recorded_before};
use crate::dcache::tree::Tree;
use crate::dcache::whole_path::lists::Pair;
use crate::dcache::whole_path::{Check, Classed, List, Table};
use crate::mount::place::Place;
use crate::walk::WalkEnd;
use crate::walk::permission::{MayRcu, may_rcu};
use crate::walk::rcu_walk::Step;
use prim::atomic::{Ordering::Acquire, fence};
use sync::rcu::ReadGuard;
use sync::signature_table::{Found, Signature};

/// The table of a tree, for one lookup.
#[derive(Clone, Copy)]
pub(crate) struct Shortcut<'g> {
    pub(crate) tree: &'g Tree,
    pub(crate) guard: &'g ReadGuard<'g>,
    pub(crate) table: &'g Table,
    pub(crate) cred: &'g Classed,
    /// Symbolic links followed before.
    pub(crate) links: u32,
}

/// The users that may search a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Searchers {
    Everyone,
    /// The walk's credentials, and all equal ones.
    Class,
    /// Others.
    Others,
    /// The walk must look at more than credentials, mode, owner and ACL.
    Unknown,
}

impl<'g> Shortcut<'g> {
    /// What `quick` returns for the end of `path` from `start`, or else `take`. `None`: the path must be walked.
    #[inline(always)]
    pub(crate) fn resolve<R, E: From<Errno>>(
        &self,
        start: Place<'g>,
        path: &[u8],
        quick: &impl Fn(&Step<'_>) -> Option<R>,
        take: &mut impl FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let end = self.look_up(self.sign(start, path)?, start, path)?;
        let at = match self.read_end(start, path, end, quick) {
            Ok(result) => return Some(Ok(result)),
            Err(at) => at?,
        };
        // The stamp was compared before, so the path led to the dentry then if the dentry did not change: that is what a walk
        // shows, too.
        let found = WalkEnd::of(self.guard, self.cred, self.links, &at);
        let taken = take(&found);
        if found.stale().is_some() {
            { *self }.walked(start, path, at);
            return None;
        }
        Some(taken)
    }

    /// The signature of a path. `None`: it is too long for the table.
    #[inline(always)]
    pub(super) fn sign(&self, start: Place<'g>, path: &[u8]) -> Option<Signature> {
        self.table.entries.sign(core::ptr::from_ref(start.dentry).addr() as u64, path)
    }

    /// The dentry that the table has for a path, with the sequence and the stamp with which it is right.
    #[inline(always)]
    pub(super) fn look_up(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<(&'g Dentry, Check)> {
        match self.find(signature) {
            Ok(end) => Some(end),
            Err(found) => { *self }.missed(signature, found, start, path),
        }
    }

    /// The dentry of the entry with this signature; otherwise the entry, if it has an old stamp.
    #[inline(always)]
    fn find(&self, signature: Signature) -> Result<(&'g Dentry, Check), Option<Found>> {
        let found = self.table.entries.find(signature);
        if let Some(found) = found {
            // The inode is beside its dentry, if this is its first name: so both lines come at once.
            prim::hint::prefetch(inode_beside(core::ptr::without_provenance(found.address.get())));
        }
        match found.and_then(|found| Some((found, recorded(&self.tree.paths, self.guard, &found)?))) {
            Some((found, dentry)) => Ok((dentry, Check::of(&found))),
            None => Err(found),
        }
    }

    /// What `quick` returns for an end that [`Shortcut::look_up`] returned; otherwise the place, if it needs no slow step.
    #[inline(always)]
    pub(super) fn read_end<R>(
        &self,
        start: Place<'g>,
        path: &[u8],
        (dentry, Check { seq, stamp }): (&'g Dentry, Check),
        quick: &impl Fn(&Step<'_>) -> Option<R>,
    ) -> Result<R, Option<Step<'g>>> {
        #[cfg(debug_assertions)]
        self.compare(start, path, dentry, Check { seq, stamp });
        let at = Step { mount: start.mount, dentry, seq, object: dentry.object() };
        if !at.object.is_plain_end() {
            { *self }.walked(start, path, at);
            return Err(None);
        }
        match quick(&at) {
            Some(result) if !at.changed() && self.tree.paths.stamp() == stamp => Ok(result),
            _ => Err(Some(at)),
        }
    }

    /// Renews the entry of a path, if it has one with an old stamp that is still right; or finds the entry for the class of the
    /// credentials; otherwise records a path that is used again. Returns the dentry of an entry that is right.
    #[cold]
    #[inline(never)]
    fn missed(
        &self,
        signature: Signature,
        found: Option<Found>,
        start: Place<'g>,
        path: &[u8],
    ) -> Option<(&'g Dentry, Check)> {
        if let Some(found) = found
            && let Some((dentry, check)) = self.renewed(signature, found, start)
        {
            return Some((dentry, check));
        }
        let end = self.find_by_class(signature, start);
        if end.is_none() {
            self.admit(signature, start, path, true);
        }
        end
    }

    /// The dentry of a path that was recorded for the class of the credentials. `signature` is that of the path for everyone.
    fn find_by_class(&self, signature: Signature, start: Place<'g>) -> Option<(&'g Dentry, Check)> {
        let class = self.cred.class().filter(|class| class.has_entries())?;
        let signature = class.sign(signature);
        match self.find(signature) {
            Ok(end) => Some(end),
            Err(found) => self.renewed(signature, found?, start),
        }
    }

    /// Notes that a path is walked although it has an entry, whose dentry is `end`. If that has another name now, or none,
    /// the entry will never be right again, and the path can be recorded anew.
    #[cold]
    #[inline(never)]
    fn walked(&self, start: Place<'g>, path: &[u8], end: Step<'g>) {
        if let Some(signature) = self.sign(start, path) {
            self.admit(signature, start, path, end.changed());
        }
    }

    /// Counts a miss, and records the path if it is used again and `may_record`.
    fn admit(&self, signature: Signature, start: Place<'g>, path: &[u8], may_record: bool) {
        let admission = self.table.admission.this();
        let is_second = admission.is_second(signature);
        if may_record && (self.table.admits_all || is_second && admission.is_turn(self.tree.paths.stamp())) {
            admission.note(self.record(signature, start, path).is_some());
        }
    }

    /// The dentry of an entry with an old stamp, if its directories did not change, with the stamp of now. The entry gets
    /// that, unless changes are so frequent that it would not be used.
    fn renewed(&self, signature: Signature, found: Found, start: Place<'g>) -> Option<(&'g Dentry, Check)> {
        let now = self.tree.paths.stamps();
        let dentry = recorded_before(now, self.guard, &found)?;
        let Check { seq, stamp } = Check::of(&found);
        // (The parent is that of the recorded name, as long as the sequence is.)
        if !self.table.is_unmoved(start.dentry, dentry, stamp, now) || dentry.seq.retry(seq) {
            return None;
        }
        let check = Check { seq, stamp: now.begun };
        let admission = self.table.admission.this();
        if self.table.admits_all || admission.is_turn(now.begun) {
            self.table.entries.update(signature, found, check.word());
            admission.note_renewal();
        }
        Some((dentry, check))
    }

    /// Walks `path` from `start`, and adds its end to the table. `None`: it is not a path of common steps, or a directory
    /// changes now.
    fn record(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<()> {
        let stamp = self.tree.paths.quiet()?;
        let (mut list, mut has_room, mut dir) = (List::new(stamp), true, None);
        let mut is_open = true;
        let end = self.trace(start, path, |at| {
            // The first look keeps a directory unmarked that the path may not pass; the second one counts.
            let searchers = match self.searchers(at, at.object) {
                Searchers::Everyone | Searchers::Class => self.searchers(at, at.dentry.pass()),
                other => other,
            };
            is_open &= searchers == Searchers::Everyone;
            let address = core::ptr::from_ref(at.dentry).expose_provenance();
            // The start's own name does not matter.
            has_room &= dir.is_none() || list.push(&self.table.lists, address, at.seq);
            dir = Some(at.dentry);
            matches!(searchers, Searchers::Everyone | Searchers::Class)
        })?;
        // ORDERING: the Acquire fence pairs with the Release fence of `WholePaths::change`: if the steps read any of a change,
        // its beginning is seen below.
        fence(Acquire);
        if self.tree.paths.stamp() != stamp || end.object.is_negative() || end.object.is_link() {
            return None;
        }
        if has_room && let Some(dir) = dir {
            self.keep_list(Pair::of(start.dentry, dir), &list);
        }
        let signature = if is_open {
            signature
        } else {
            let class = self.cred.class()?;
            class.note_entry();
            class.sign(signature)
        };
        self.table.put(signature, end.dentry, Check { seq: end.seq, stamp });
        Some(())
    }

    /// The users that may search the directory at a place, if it has this object word.
    fn searchers(&self, at: &Step<'g>, object: Object) -> Searchers {
        if !object.is_hashed() {
            return Searchers::Unknown;
        }
        if object.is_open_dir() {
            return Searchers::Everyone;
        }
        let sb = &at.mount.get().sb;
        let flags = ObjectFlags::MOUNTED | ObjectFlags::CHECKED | ObjectFlags::FOLDED;
        if !object.is_dir() || object.has(flags) || sb.own_permissions {
            return Searchers::Unknown;
        }
        // (Changes of rights look at the mark of the dentry beside the inode.)
        let inode = inode_of(at.dentry, object).filter(|inode| core::ptr::eq(dentry_beside(inode), at.dentry));
        let Some(inode) = inode else { return Searchers::Unknown };
        match may_rcu(sb, self.guard, inode, &inode.attr(), self.cred, MAY_EXEC) {
            MayRcu::Is(Ok(())) => Searchers::Class,
            MayRcu::Is(Err(_)) => Searchers::Others,
            MayRcu::NotHere => Searchers::Unknown,
        }
    }

    /// Puts a list, unless there is one that says the same: that one may be older, so it serves more entries.
    fn keep_list(&self, pair: Pair, list: &List) {
        let lists = &self.table.lists;
        let has_same = |old: List| old.dirs() == list.dirs() && old.sum == list.sum;
        let now = self.tree.paths.stamps();
        if !lists.find(pair).is_some_and(|old| now.is_soft_since(old.stamp) && has_same(old)) {
            lists.put(pair, list);
        }
    }

    /// The end of `path` by steps through directories that `passes` accepts; it is called on each before it is searched.
    fn trace(&self, start: Place<'g>, path: &[u8], mut passes: impl FnMut(&Step<'g>) -> bool) -> Option<Step<'g>> {
        let mut at = Step::sample(start.mount, start.dentry);
        let mut is_named = false;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            // The sample is from before the mark. If the sequence still is the same, so is one from after it.
            if matches!(name, b"." | b"..") || name.len() > NAME_MAX || !passes(&at) || at.changed() {
                return None;
            }
            let (dir, hash) = (at.dentry, self.tree.key.hash(name));
            let mut seq = 0;
            let dentry = self.tree.table().find_slow(self.guard, entry_hash(dir, hash), |entry| {
                seq = entry.seq.raw_begin();
                entry.is_entry_rcu(dir, Named { name, hash }, self.guard)
            })?;
            let next = Step { mount: at.mount, dentry, seq, object: dentry.object() };
            if at.changed() {
                return None;
            }
            (at, is_named) = (next, true);
        }
        let is_end = is_named && (path.last() != Some(&b'/') || at.object.is_dir());
        (is_end && !at.changed()).then_some(at)
    }

    /// Debug builds walk after a lookup by the table: if nothing changed from the lookup to the end of the walk, both have
    /// found the same dentry, and the walk was not refused.
    #[cfg(debug_assertions)]
    fn compare(&self, start: Place<'g>, path: &[u8], dentry: &Dentry, check: Check) {
        let mut is_refused = false;
        let end = self.trace(start, path, |at| {
            let searchers = self.searchers(at, at.object);
            // (An ACL is not replaced in one write section.)
            let is_certain = || at.dentry.inode().is_some_and(|inode| !inode.has_acl()) && !at.changed();
            is_refused = searchers == Searchers::Others && is_certain();
            matches!(searchers, Searchers::Everyone | Searchers::Class)
        });
        if dentry.seq.retry(check.seq) || self.tree.paths.stamp() != check.stamp {
            return;
        }
        assert!(!is_refused, "the table leads through a directory that the walk may not search");
        // `None`: the walk met a change that is not counted yet.
        if let Some(end) = end {
            assert!(core::ptr::eq(end.dentry, dentry), "the table leads to another dentry than the walk");
        }
    }
}
