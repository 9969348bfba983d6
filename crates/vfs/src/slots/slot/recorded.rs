//! Dentries that the table of whole paths has. Their safety rests on the invariants of [`super`], and on point 6 of
//! [`whole_path`](crate::slots::whole_path).

use crate::slots::dentry::Dentry;
use crate::slots::whole_path::lists::Pair;
use crate::slots::whole_path::{Check, List, Lists, Stamps, Table, WholePaths};
use sync::rcu::ReadGuard;
use sync::signature_table::{Found, Signature, Worth};

impl Table {
    /// Adds an entry: the path with this signature leads to `dentry`, which has the sequence in `check`.
    pub(crate) fn put(&self, signature: Signature, dentry: &Dentry, check: Check, now: Stamps) {
        let address = core::ptr::from_ref(dentry).expose_provenance();
        self.entries.put(signature, address, check.word(), |word| match word as u32 {
            stamp if stamp == now.begun => Worth::Current,
            // Its list may show that it is right.
            stamp if now.is_soft_since(stamp) => Worth::Old,
            _ => Worth::Useless,
        });
    }

    /// Returns whether the paths of an entry with an old `stamp`, from `start` to its `dentry`,
    /// still lead there: no hard change began after that stamp, and no directory of their list
    /// moved. `now` was read before.
    pub(crate) fn is_unmoved(&self, start: &Dentry, dentry: &Dentry, stamp: u32, now: Stamps) -> bool {
        let Some(dir) = dentry.parent() else { return false };
        let pair = Pair::of(start, dir);
        let made = self.checked(pair, now).or_else(|| {
            let list = self.lists.find(pair).filter(|list| self.lists.is_current(list, now))?;
            self.note_checked(pair, &list, now);
            Some(list.stamp)
        });
        made.is_some_and(|made| is_not_before(stamp, made))
    }

    /// Returns whether a list was made before the entry with this `stamp`, no hard change began
    /// since, and no directory of it moved. `now` was read before.
    pub(crate) fn is_right(&self, list: &List, stamp: u32, now: Stamps) -> bool {
        is_not_before(stamp, list.stamp) && self.lists.is_current(list, now)
    }
}

fn is_not_before(stamp: u32, made: u32) -> bool {
    stamp.wrapping_sub(made).cast_signed() >= 0
}

impl Lists {
    /// Returns whether no hard change began since the list was made, and no directory of it moved.
    pub(crate) fn is_current(&self, list: &List, now: Stamps) -> bool {
        if list.stamp == now.begun || !now.is_soft_since(list.stamp) {
            return list.stamp == now.begun;
        }
        let terms = list.dirs().iter().enumerate().map(|(number, &dir)| {
            // SAFETY: the address is one of a dentry that `List::push` got, of a superblock whose end is a hard change. None
            // began, as `recorded` says.
            let dir = unsafe { &*core::ptr::with_exposed_provenance::<Dentry>(dir) };
            self.term(number, dir.seq.current())
        });
        terms.fold(0, u64::wrapping_add) == list.sum
    }
}

/// Returns the dentry of an entry, if no change of the skeleton has begun since the path was
/// recorded.
#[inline(always)]
pub(crate) fn recorded<'g>(paths: &WholePaths, _guard: &'g ReadGuard<'_>, found: &Found) -> Option<&'g Dentry> {
    if Check::of(found).stamp != paths.stamp() {
        return None;
    }
    let dentry = core::ptr::with_exposed_provenance::<Dentry>(found.address.get());
    // SAFETY: the address is one of `put`, of a dentry in the slab of a superblock of this tree. The end of a superblock is
    // counted as a change before the grace period that frees the slab. No change was seen to begin, so this read section
    // began before that grace period ended.
    Some(unsafe { &*dentry })
}

/// As [`recorded`], but if no hard change has begun since.
pub(crate) fn recorded_before<'g>(now: Stamps, _guard: &'g ReadGuard<'_>, found: &Found) -> Option<&'g Dentry> {
    if !now.is_soft_since(Check::of(found).stamp) {
        return None;
    }
    let dentry = core::ptr::with_exposed_provenance::<Dentry>(found.address.get());
    // SAFETY: as in `recorded`: the end of a superblock is a hard change.
    Some(unsafe { &*dentry })
}
