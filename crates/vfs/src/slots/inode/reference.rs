//! References on inodes: values that the put consumes, so that each is put once.
//!
//! # How it is locked
//! No lock: the count of an inode is an atomic. Once it is zero, it stays zero until the slot
//! begins its next life.

use super::Inode;
use crate::slots::object::Object;
use crate::slots::slot::DeadDentry;
use prim::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// A reference on an inode, counted. It is not `Copy`: it is moved into an object word
/// ([`Object::of`]), or is put, once.
///
/// [`Object::of`]: crate::slots::object::Object::of
#[derive(Debug)]
#[must_use]
pub(crate) struct InodeRef<'i>(pub(super) &'i Inode);

impl core::ops::Deref for InodeRef<'_> {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        self.0
    }
}

impl<'i> InodeRef<'i> {
    /// Takes one more reference, unless the last reference was put.
    pub(crate) fn take(inode: &'i Inode) -> Option<Self> {
        // ORDERING: Acquire, pairs with the AcqRel of `put`: a count of zero stays zero, and the last user's
        // writes are seen; and with the Release of `Inode::begin_prepared`: in whichever life the reference is taken, its
        // node is seen.
        let taken = inode.refs.fetch_update(Acquire, Relaxed, |refs| (refs != 0).then(|| one_more(refs)));
        taken.is_ok().then_some(Self(inode))
    }

    /// Takes one more reference on an inode of a dentry that the caller holds.
    pub(crate) fn again(inode: &'i Inode) -> Self {
        // Relaxed: the count is above zero and stays so.
        let before = inode.refs.fetch_add(1, Relaxed);
        assert!(before != 0, "a reference on an inode that ended");
        one_more(before);
        Self(inode)
    }

    /// Returns a reference that was counted and kept elsewhere:
    /// [`DetachedInodeRef`](crate::slots::slot::DetachedInodeRef).
    pub(crate) fn counted(inode: &'i Inode) -> Self {
        debug_assert!(inode.refs() != 0);
        Self(inode)
    }

    /// Returns the reference of a dead dentry, which then has none.
    pub(crate) fn of_dead(dead: &mut DeadDentry<'i>) -> Option<Self> {
        let inode = dead.ended().inode()?;
        dead.set_object(Object::NEGATIVE);
        Some(Self(inode))
    }

    /// Gives it back; if it was the last, the inode is dead.
    pub(crate) fn put(self) -> Option<DeadInode<'i>> {
        // ORDERING: AcqRel, with itself in other threads: the thread that takes the count to zero sees the
        // writes of all others. (crates/vfs/tests/loom/inode.rs)
        (self.0.refs.fetch_sub(1, AcqRel) == 1).then_some(DeadInode(self.0))
    }

    /// As `put`, without the locked instruction, for the only reference on an inode that no other
    /// thread can find. `Err`: the reference, since there are others.
    pub(crate) fn put_last(self) -> Result<DeadInode<'i>, Self> {
        if self.is_last() { Ok(DeadInode(self.0)) } else { Err(self) }
    }
}

/// An inode without references, that only the caller may use: it ends.
#[derive(Debug)]
pub(crate) struct DeadInode<'i>(&'i Inode);

impl<'i> DeadInode<'i> {
    /// Returns the inode, for as long as its memory.
    pub(crate) fn ended(&self) -> &'i Inode {
        self.0
    }
}

impl core::ops::Deref for DeadInode<'_> {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        self.0
    }
}

/// Returns `refs` + 1.
///
/// # Panics
/// With 2^31 references: one of them is about to be lost, and the count must not reach zero by
/// wrapping. (So many names would take a terabyte.)
fn one_more(refs: u32) -> u32 {
    assert!(refs < 1 << 31, "overflow: 2^31 names of one inode");
    refs + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::slots::inode::Kept;

    #[test]
    fn a_count_of_references_panics_before_it_wraps() {
        let inode = Inode::vacant();
        let take = |inode: &Inode| assert!(InodeRef::take(inode).is_some());
        for (count, is_refused) in [(1, false), ((1 << 31) - 1, false), (1 << 31, true), (u32::MAX - 1, true)] {
            for take in [take, |inode: &Inode| _ = InodeRef::again(inode)] {
                inode.refs.store(count, Relaxed);
                let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| take(&inode)));
                assert_eq!(taken.is_err(), is_refused, "{count}");
                assert!(inode.refs() >= count, "{count}");
            }
        }
    }

    #[test]
    fn an_inode_that_ended_is_not_taken_up_again() {
        let inode = Inode::vacant();
        let first = inode.begin(&Attr::default(), 1, Kept::default());
        let second = InodeRef::take(&inode).unwrap();
        assert!(first.put().is_none() && second.put().is_some());
        assert!(InodeRef::take(&inode).is_none() && !inode.is_alive());
        assert_eq!(inode.refs(), 0);
    }
}
