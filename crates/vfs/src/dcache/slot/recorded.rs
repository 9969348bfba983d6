//! Dentries that the table of whole paths has. Their safety rests on the invariants of [`super`], and on point 5 of
//! [`whole_path`](crate::dcache::whole_path).

use crate::dcache::dentry::Dentry;
use crate::dcache::whole_path::{Check, Table, WholePaths};
use sync::rcu::ReadGuard;
use sync::signature_table::{Found, Signature};

impl Table {
    /// Adds an entry: the path with this signature leads to `dentry`, which has the sequence in `check`.
    pub(crate) fn put(&self, signature: Signature, dentry: &Dentry, check: Check) {
        let address = core::ptr::from_ref(dentry).expose_provenance();
        self.entries.put(signature, address, check.word(), |word| word as u32 != check.stamp);
    }
}

/// The dentry of an entry, if no change of the skeleton has begun since the path was recorded.
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
