//! Lookups by the table of whole paths, in front of the walk.
//!
//! # What it is
//! [`Shortcut::resolve`] uses the recorded end of a path like the end of a walk: the caller reads,
//! then checks the dentry's sequence, and in this case also the stamp. A path that is not in the
//! table is walked. At the second use of such a path, [`Shortcut::record`] walks it once more and
//! notes the steps.
//!
//! The first probe is for an entry that is right for everyone, with the start in any mount: a path
//! through open directories of one mount. The second one is for an entry of the credentials' class
//! and of the start's mount: these may pass closed directories, cross mount points and pass
//! symbolic links. The third one is for a path that ends at a link. Only a lookup that follows the
//! link has it.
//!
//! # How it is ordered
//! See [`whole_path`](crate::slots::whole_path).
//!
//! # Where it comes from
//! Named there.

use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::cache::tree::Tree;
use crate::mount::MountRef;
use crate::mount::context::State;
use crate::mount::place::Place;
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::slot::{inode_beside, recorded, recorded_before};
use crate::slots::whole_path::classes::Class;
use crate::slots::whole_path::lists::Pair;
use crate::slots::whole_path::{Check, Classed, List, Table};
use crate::walk::follow::MAX_LINKS;
use crate::walk::rcu_walk::Step;
use crate::walk::walk_end::WalkEnd;
use sync::rcu::ReadGuard;
use sync::signature_table::{Found, Signature};

/// The table of a tree, for one lookup.
#[derive(Clone, Copy)]
pub(crate) struct Shortcut<'g> {
    pub(crate) tree: &'g Tree,
    pub(crate) guard: &'g ReadGuard<'g>,
    pub(crate) table: &'g Table,
    pub(crate) state: &'g State,
    pub(crate) resolve: Resolve,
    /// Symbolic links followed before.
    pub(crate) links: u32,
    /// Whether a link at the end is followed.
    pub(crate) follow: bool,
}

/// The end of a path that the table has, and the checks that make it right.
#[derive(Clone, Copy)]
pub(super) struct End<'g> {
    pub(super) mount: MountRef<'g>,
    pub(super) dentry: &'g Dentry,
    pub(super) check: Check,
    /// Symbolic links that the path has.
    links: u32,
}

/// Why an end that the table has was not read.
pub(super) enum Unread<'g> {
    /// The caller must look at the place.
    Place(Step<'g>),
    /// The name does not exist.
    Absent,
    /// The path must be walked.
    Walk,
}

impl<'g> Shortcut<'g> {
    /// Returns the result of `quick`, or else of `take`, for the end of `path` from `start`.
    /// `None`: the path must be walked.
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
            Err(Unread::Place(at)) => at,
            Err(Unread::Absent) => return Some(Err(Errno::ENOENT.into())),
            Err(Unread::Walk) => return None,
        };
        // The stamp was compared before. So if the dentry did not change, the path led to it at the
        // comparison: a walk shows no more.
        let found = WalkEnd::of(self.guard, self.cred(), self.links + end.links, &at);
        let taken = take(&found);
        if found.stale().is_some() {
            { *self }.walked(start, path, at);
            return None;
        }
        Some(taken)
    }

    /// Returns the signature of a path. `None`: it is too long for the table.
    #[inline(always)]
    pub(super) fn sign(&self, start: Place<'g>, path: &[u8]) -> Option<Signature> {
        self.table.entries.sign(core::ptr::from_ref(start.dentry).addr() as u64, path)
    }

    /// Returns the end that the table has for a path.
    #[inline(always)]
    pub(super) fn look_up(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<End<'g>> {
        let found = self.table.entries.find(signature);
        if let Some(found) = found {
            // The inode is beside its dentry, if this is its first name: so both lines are loaded
            // at once.
            prim::hint::prefetch(inode_beside(core::ptr::without_provenance(found.address.get())));
        }
        match found.and_then(|found| Some((found, recorded(&self.tree.paths, self.guard, &found)?))) {
            Some((found, dentry)) => Some(End { mount: start.mount, dentry, check: Check::of(&found), links: 0 }),
            None => { *self }.missed(signature, found, start, path),
        }
    }

    /// Returns the result of `quick` for an end that [`Shortcut::look_up`] returned.
    #[inline(always)]
    pub(super) fn read_end<R>(
        &self,
        start: Place<'g>,
        path: &[u8],
        end: End<'g>,
        quick: &impl Fn(&Step<'_>) -> Option<R>,
    ) -> Result<R, Unread<'g>> {
        #[cfg(debug_assertions)]
        self.compare(start, path, end);
        let End { mount, dentry, check: Check { seq, stamp }, .. } = end;
        let at = Step { mount, dentry, seq, object: dentry.object() };
        if !at.object.is_plain_end() {
            return Err({ *self }.special(start, path, at, stamp));
        }
        match quick(&at) {
            Some(result) if !at.changed() && self.tree.paths.stamp() == stamp => Ok(result),
            _ => Err(Unread::Place(at)),
        }
    }

    /// Reads an end that needs a slow step, or a name that does not exist. (The entry of such a name is used only if the walk would
    /// store nothing to it.)
    #[cold]
    #[inline(never)]
    fn special(&self, start: Place<'g>, path: &[u8], at: Step<'g>, stamp: u32) -> Unread<'g> {
        let is_plain = !at.object.has(ObjectFlags::COLD | ObjectFlags::CHECKED);
        let is_absent = at.object.is_negative() && at.object.is_hot() && is_plain;
        if is_absent && !at.changed() && self.tree.paths.stamp() == stamp {
            return Unread::Absent;
        }
        self.walked(start, path, at);
        Unread::Walk
    }

    /// Renews the entry of a path, if it has one with an old stamp that is still right; or finds the entry of the class and the
    /// mount; otherwise records a path that is used again. Returns the end of an entry that is right.
    #[cold]
    #[inline(never)]
    fn missed(&self, signature: Signature, found: Option<Found>, start: Place<'g>, path: &[u8]) -> Option<End<'g>> {
        let renewed = found.and_then(|found| self.renewed(signature, found, start));
        let end = renewed.or_else(|| self.find_own(signature, start, path));
        if end.is_none() {
            self.admit(signature, start, path, true);
        }
        end
    }

    /// Returns the signature of a path for a class and for the start's mount, from the signature
    /// for everyone.
    pub(super) fn own(&self, class: &Class, start: Place<'g>, signature: Signature) -> Signature {
        class.sign(signature).of_group(start.mount.get().secret)
    }

    pub(super) fn cred(&self) -> &'g Classed {
        &self.state.cred
    }

    /// Returns the signature of a path that ends at a link which is followed, from the signature
    /// for the class and mount. `None`: such paths are walked.
    pub(super) fn followed(&self, signature: Signature) -> Option<Signature> {
        // (Whether a link in a sticky directory may be followed depends on rights whose changes are not counted.)
        (!self.state.policy.protected_symlinks).then(|| signature.of_group(self.table.followed))
    }

    /// Returns the end of a path that was recorded for the class of the credentials and for the
    /// start's mount. `signature` is the path's signature for everyone.
    fn find_own(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<End<'g>> {
        let class = self.cred().class().filter(|class| class.has_entries())?;
        let signature = self.own(class, start, signature);
        if let Some(found) = self.table.entries.find(signature) {
            let check = Check::of(&found);
            let end = match recorded(&self.tree.paths, self.guard, &found) {
                _ if check.is_routed() => {
                    let text = self.own(class, start, self.sign(start, directory_of(path)?)?);
                    self.routed(signature, found, start, text)
                }
                Some(dentry) => Some(End { mount: start.mount, dentry, check, links: 0 }),
                None => self.renewed(signature, found, start),
            };
            if end.is_some() {
                return end;
            }
        }
        if !class.has_followed() || !(self.follow || path.last() == Some(&b'/')) {
            return None;
        }
        let signature = self.followed(signature)?;
        self.routed(signature, self.table.entries.find(signature)?, start, signature)
    }

    /// Returns the end of a path that crosses mount points or has links, if the path's list shows
    /// that no directory or link of the path changed. The list leads to the mount. (The list is
    /// found by a text: the path of the directory, or a path that ends at a link. If the list was
    /// made before the entry and is still right, the text has led to one directory of one mount
    /// since the entry was made.)
    fn routed(&self, signature: Signature, found: Found, start: Place<'g>, text: Signature) -> Option<End<'g>> {
        let now = self.tree.paths.stamps();
        let dentry = recorded_before(now, self.guard, &found)?;
        let old = Check::of(&found).routed(false);
        let list = self.table.lists.find(Pair::of_text(text))?;
        if !self.may_take(&list) || !self.table.is_right(&list, old.stamp, now) || dentry.seq.retry(old.seq) {
            return None;
        }
        let mut mountpoints = list.mountpoints();
        let mount = mountpoints.try_fold(start.mount, |mount, at| mount.get().child_at_rcu(self.guard, at))?;
        let check = Check { stamp: now.begun, ..old };
        if old.stamp != now.begun {
            self.renew(signature, found, check.routed(true));
        }
        Some(End { mount, dentry, check, links: list.links() })
    }

    /// Returns whether this walk may take the way of a list. (Where the limits of a walk allow some
    /// links, it is walked.)
    fn may_take(&self, list: &List) -> bool {
        let unlinked = Resolve::NO_SYMLINKS | Resolve::BENEATH | Resolve::IN_ROOT | Resolve::NO_XDEV;
        let may_follow = !self.resolve.intersects(unlinked) && self.links + list.links() <= MAX_LINKS;
        (list.links() == 0 || may_follow) && !(list.is_crossing() && self.resolve.contains(Resolve::NO_XDEV))
    }

    /// Notes that a path is walked although it has an entry, whose dentry is `end`. If `end` has
    /// another name now, or none, the entry will never be right again, and the path can be recorded
    /// anew.
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
        let is_candidate =
            admission.is_second(signature) || admission.is_chosen() && self.table.entries.has_room(signature);
        if may_record && (self.table.admits_all || is_candidate && admission.is_turn(self.tree.paths.stamp())) {
            admission.note(self.record(signature, start, path).is_some());
        }
    }

    /// Returns the dentry of an entry with an old stamp, if its directories did not change, with
    /// the current stamp. The entry gets that stamp, unless changes are so frequent that it would
    /// not be used.
    fn renewed(&self, signature: Signature, found: Found, start: Place<'g>) -> Option<End<'g>> {
        let now = self.tree.paths.stamps();
        let dentry = recorded_before(now, self.guard, &found)?;
        let Check { seq, stamp } = Check::of(&found);
        // (While the sequence is the recorded one, so is the parent.)
        if !self.table.is_unmoved(start.dentry, dentry, stamp, now) || dentry.seq.retry(seq) {
            return None;
        }
        let check = Check { seq, stamp: now.begun };
        self.renew(signature, found, check);
        Some(End { mount: start.mount, dentry, check, links: 0 })
    }

    fn renew(&self, signature: Signature, found: Found, check: Check) {
        let admission = self.table.admission.this();
        admission.note_list();
        if self.table.admits_all || admission.is_turn(check.stamp) {
            self.table.entries.update(signature, found, check.word());
            admission.note_renewal();
        }
    }
}

/// Returns the text of a path without its last name. `None`: it has no slash before that.
pub(super) fn directory_of(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|&byte| byte != b'/')?;
    let slash = path[..end].iter().rposition(|&byte| byte == b'/')?;
    Some(&path[..=slash])
}
