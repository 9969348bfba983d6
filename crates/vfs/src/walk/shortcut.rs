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

use crate::base::access::credentials::Credentials;
use crate::base::errno::Errno;
use crate::base::name::{NAME_MAX, Named};
use crate::dcache::dentry::Dentry;
use crate::dcache::slot::{entry_hash, recorded};
use crate::dcache::tree::Tree;
use crate::dcache::whole_path::{Check, Table};
use crate::mount::place::Place;
use crate::walk::WalkEnd;
use crate::walk::rcu_walk::Step;
use prim::atomic::{Ordering::Acquire, fence};
use sync::rcu::ReadGuard;
use sync::signature_table::Signature;

/// The table of a tree, for one lookup.
#[derive(Clone, Copy)]
pub(crate) struct Shortcut<'g> {
    pub(crate) tree: &'g Tree,
    pub(crate) guard: &'g ReadGuard<'g>,
    pub(crate) table: &'g Table,
    pub(crate) cred: &'g Credentials,
    /// Symbolic links followed before.
    pub(crate) links: u32,
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
        let (at, stamp) = self.find(start, path)?;
        if let Some(result) = quick(&at)
            && !at.changed()
            && self.tree.paths.stamp() == stamp
        {
            return Some(Ok(result));
        }
        // The stamp was compared before, so the path led to the dentry then if the dentry did not change: that is what a walk
        // shows, too.
        let found = WalkEnd::of(self.guard, self.cred, self.links, &at);
        let taken = take(&found);
        found.stale().is_none().then_some(taken)
    }

    /// The end of `path` from `start`, and the stamp that must still be that of the tree after the caller's reads.
    #[inline(always)]
    fn find(&self, start: Place<'g>, path: &[u8]) -> Option<(Step<'g>, u32)> {
        let signature = self.table.entries.sign(core::ptr::from_ref(start.dentry).addr() as u64, path)?;
        if let Some(found) = self.table.entries.find(signature)
            && let Some(dentry) = recorded(&self.tree.paths, self.guard, &found)
        {
            let Check { seq, stamp } = Check::of(&found);
            #[cfg(debug_assertions)]
            self.compare(start, path, dentry, Check { seq, stamp });
            let step = Step { mount: start.mount, dentry, seq, object: dentry.object() };
            if step.object.is_plain_end() {
                return Some((step, stamp));
            }
        }
        { *self }.missed(signature, start, path);
        None
    }

    /// Records a path that is used again.
    #[cold]
    #[inline(never)]
    fn missed(&self, signature: Signature, start: Place<'g>, path: &[u8]) {
        let admission = self.table.admission.this();
        let is_second = admission.is_second(signature);
        if self.table.admits_all || is_second && admission.is_turn(self.tree.paths.stamp()) {
            admission.note(self.record(signature, start, path).is_some());
        }
    }

    /// Walks `path` from `start`, and adds its end to the table. `None`: it is not a path of common steps, or a directory
    /// changes now.
    fn record(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<()> {
        let stamp = self.tree.paths.quiet()?;
        let end = self.trace(start, path, Dentry::pass)?;
        // ORDERING: the Acquire fence pairs with the Release fence of `WholePaths::change`: if the steps read any of a change,
        // its beginning is seen below.
        fence(Acquire);
        if self.tree.paths.stamp() != stamp || end.object.is_negative() || end.object.is_link() {
            return None;
        }
        self.table.put(signature, end.dentry, Check { seq: end.seq, stamp });
        Some(())
    }

    /// The end of `path` by steps through directories that `passes` accepts; it is called on each before it is searched.
    fn trace(&self, start: Place<'g>, path: &[u8], passes: impl Fn(&Dentry) -> bool) -> Option<Step<'g>> {
        let mut at = Step::sample(start.mount, start.dentry);
        let mut is_named = false;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            // The sample is from before the mark. If the sequence still is the same, so is one from after it.
            if matches!(name, b"." | b"..") || name.len() > NAME_MAX || !passes(at.dentry) || at.changed() {
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
    /// found the same dentry.
    #[cfg(debug_assertions)]
    fn compare(&self, start: Place<'g>, path: &[u8], dentry: &Dentry, check: Check) {
        // `None`: the walk met a change that is not counted yet.
        let Some(end) = self.trace(start, path, |dir| dir.object().is_open_dir()) else { return };
        if !dentry.seq.retry(check.seq) && self.tree.paths.stamp() == check.stamp {
            assert!(core::ptr::eq(end.dentry, dentry), "the table leads to another dentry than the walk");
        }
    }
}
