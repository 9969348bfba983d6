//! The one module of this crate with `unsafe`: links between dentries and inodes, in memory that
//! holds nothing else until the superblock is dropped.
//!
//! # What it is
//! A *slot* is a dentry and room for an inode, 256 bytes, in a type-stable slab ([`sync::Slab`]).
//! The dentry's walk line is the slab's item; its cold line and the inode are the item's side
//! ([`ColdPart`]). Every pointer to a dentry or an inode points into the slabs of its superblock
//! ([`SlotMemory`]). The slab returns no address before it is dropped, and a free slot whose memory
//! was returned to the system reads as a vacant one. So a stale pointer can reach a slot that now
//! serves another name, but never foreign memory. The rest of the crate detects reuse by sequence
//! counts and needs no `unsafe` for it. [`memory`] has the slabs, [`link`] links between dentries,
//! [`members`] superblocks that share a budget, [`private`] a file system's data, [`locked_dentry`] locks that outlive a borrow, [`recorded`]
//! dentries in the table of whole paths.
//!
//! # Invariants
//! 1. Every [`Link`], every inode address in an object word, every [`DentryRef`] and every
//!    [`DentryPtr`] was made from a `&Dentry` or `&Inode` in a slot of the superblock that it is
//!    used with. No reference to one leaves the crate without a borrow or a count of that
//!    superblock. No type shows the superblock of a `&Dentry`: the callers must use the right one.
//!    Debug builds check it where a dentry comes back from an address. Walks, which borrow neither,
//!    are in a read section. The slab is freed a grace period after its last dentry left its chain.
//! 2. Every `Dentry` is an item of such a slab, every `ColdPart` its side, and every `Inode` a
//!    field of a `ColdPart`.
//! 3. The box in a [`Private`] is freed only when the inode is dead ([`DeadInode`]): no thread has
//!    a reference on it. File-system code gets `&Inode` only while the caller has a reference on
//!    it.
//! 4. Guards and domains that are used with a slot or the table belong to its tree. A thread that
//!    changes a slot is one of the slot's users, or found the slot in the thread's current read
//!    section, before the slot was freed. The slab returns the memory of free slots a grace period
//!    after the free. (Three exceptions: a [`DentryPtr`] is killed if it is alive, by one exchange
//!    that fails on a free slot; the reclaim clock works on slabs with a limit, which return
//!    nothing; and the thread that removes a directory frees the slot before it releases the lock
//!    in it: the slot that a thread freed last is in its own magazine.)
//! 5. A slot is returned once in a life, to the slab of its kind: an [`UnusedSlot`] comes from the
//!    slab, or from a dentry and an inode that ended ([`DeadDentry`], [`DeadInode`]). Each of these
//!    is made once in a life and consumed by the function that ends it. A dentry or an inode ends
//!    when the last count on it is put. An inode's count is an [`InodeRef`], which the put
//!    consumes.
//! 6. A member of [`Members`] does not move, and is not `Unpin`. It is removed at the beginning of its drop.

mod link;
mod locked_dentry;
mod members;
mod memory;
mod private;
mod recorded;

pub(crate) use link::Link;
pub(crate) use locked_dentry::{DetachedGuard, LockedDentry};
pub(crate) use members::Members;
pub(crate) use memory::{Both, SlotMemory};
pub(crate) use private::Private;
pub(crate) use recorded::{recorded, recorded_before};

use crate::base::name::NameKey;
use crate::slots::dentry::{Cold, Dentry};
use crate::slots::inode::{DeadInode, Inode, InodeRef};
use crate::slots::object::Object;
use core::mem::offset_of;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use prim::wide::Line;
use sync::rcu::{RawRcu, RcuDomain, ReadGuard};
use sync::{GetNotDead, HashNode, HashTable, HashView, Item, SeqCount, Slab};

/// The part of a dentry outside its walk line: the side of a slot.
#[repr(C, align(64))]
pub(crate) struct ColdPart {
    pub(crate) cold: Cold,
    pub(crate) inode: Inode,
}

// SAFETY: the word is a field of the side's inode. The inode uses the word only while it lives, and
// then the slot is in use. With `RETURNS`: dentry and side are atomics and locks made of atomics,
// whose vacant state is zero (a test compares the bytes). A free slot owns nothing: all was dropped
// at the end of its dentry and inode (`Dentry::owns_nothing`, which tests check).
unsafe impl Item for Dentry {
    type Side = ColdPart;

    // loom's atomics are not their bytes; crates/sync/tests/loom/slab_return.rs models the return.
    const RETURNS: bool = !cfg!(loom);

    fn vacant() -> (Self, ColdPart) {
        (Dentry::vacant(), ColdPart { cold: Cold::vacant(), inode: Inode::vacant() })
    }

    fn free_link(rest: &ColdPart) -> &AtomicPtr<Self> {
        &rest.inode.free_link
    }

    fn count(&self) -> u32 {
        self.seq.current()
    }

    fn raise_above(&self, count: u32) {
        self.seq.raise_above(count);
    }
}

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Dentry {
    type Key = NameKey;

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, key: &NameKey, guard: &ReadGuard<'_>) -> u64 {
        // The parent of a hashed dentry is set, and does not change before it is unhashed under the bucket's lock.
        self.parent().map_or(0, |parent| entry_hash(parent, self.filed_hash_rcu(parent, *key, guard)))
    }

    // A walk passes several directories, and one other entry at most. The kind of a hashed entry does not change.
    fn is_first(&self) -> bool {
        self.object().is_dir()
    }

    fn removals(&self) -> Option<&SeqCount> {
        Some(&self.seq)
    }
}

/// Returns the side of the slot of `dentry`.
#[inline(always)]
pub(crate) fn cold_part(dentry: &Dentry) -> &ColdPart {
    // SAFETY: invariant 2.
    unsafe { sync::slab::side(dentry) }
}

/// Returns the dentry in the slot of `inode`.
pub(crate) fn dentry_beside(inode: &Inode) -> &Dentry {
    let address = core::ptr::from_ref(inode).addr() - offset_of!(ColdPart, inode);
    // A reference to the inode gives no right to its neighbours; the slab exposed its chunk for that.
    let rest = core::ptr::with_exposed_provenance::<ColdPart>(address);
    // SAFETY: invariant 2.
    let rest = unsafe { &*rest };
    // SAFETY: invariant 2.
    unsafe { sync::slab::item(rest) }
}

/// Returns the inode that the object word `object` of `dentry` points at.
#[inline(always)]
pub(crate) fn inode_of(_dentry: &Dentry, object: Object) -> Option<&Inode> {
    // SAFETY: invariant 1; the borrow is as long as the dentry's, which is no longer than the tree's.
    unsafe { (object.inode_address() as *const Inode).as_ref() }
}

/// Returns the first line of an inode: its attributes, and the sequence count that the caller must
/// check. `None` where the caller must load it word by word.
#[inline(always)]
pub(crate) fn first_line(inode: &Inode) -> Option<Line> {
    const { assert!(align_of::<Inode>() == 64 && size_of::<Inode>() >= 64) };
    // SAFETY: an inode is aligned to 64 bytes, and its first 64 bytes are atomics without padding (a test has the offsets).
    unsafe { prim::wide::load(core::ptr::from_ref(inode).cast()) }
}

/// Returns the address of the inode in the slot of the dentry at `dentry`, for a prefetch. `dentry`
/// may be any address.
#[inline(always)]
pub(crate) fn inode_beside(dentry: *const Dentry) -> *const u8 {
    sync::slab::side_address(dentry).cast::<u8>().wrapping_add(offset_of!(ColdPart, inode))
}

/// `entry`, borrowed for as long as its directory `dir`; `None` if it is not in `dir`.
#[inline(always)]
pub(crate) fn entry_of<'d>(dir: &'d Dentry, entry: &Dentry) -> Option<&'d Dentry> {
    // SAFETY: invariant 1: an entry lies in the memory of its directory's superblock, which stays while `dir` is borrowed.
    entry.is_in(dir).then(|| unsafe { &*core::ptr::from_ref(entry) })
}

/// Returns the inode in `table` with the hash `hash` that `matches` accepts, with a reference on
/// it; `None` if it ended meanwhile. The inodes of the table lie in `memory`.
pub(crate) fn find_inode<'s>(
    _memory: &'s SlotMemory,
    guard: &ReadGuard<'_>,
    table: &InodeTable,
    hash: u64,
    matches: impl FnMut(&Inode) -> bool,
) -> Option<InodeRef<'s>> {
    let found = InodeRef::take(table.find_slow(guard, hash, matches)?)?;
    // SAFETY: invariant 1: the inodes of a superblock's table lie in its memory, which stays while that is borrowed.
    Some(unsafe { core::mem::transmute::<InodeRef<'_>, InodeRef<'s>>(found) })
}

/// Links `inode`, whose life has not begun, into `table` unless the table has an inode of the same
/// node. `Err`: that other inode, with a reference on it; `None` if the other inode's life has not
/// begun yet, or has ended. The inodes of the table lie in `memory`.
pub(crate) fn link_inode_unless_there<'s>(
    _memory: &'s SlotMemory,
    domain: &RcuDomain,
    table: &InodeTable,
    inode: &Inode,
    hash: u64,
) -> Result<(), Option<InodeRef<'s>>> {
    let (guard, node) = (domain.read(), inode.node());
    // SAFETY: as in `link_inode`.
    let there = unsafe { table.insert_unique(domain, &guard, inode, hash, |other| other.node() == node) };
    let Some(there) = there else { return Ok(()) };
    // SAFETY: as in `find_inode`.
    Err(InodeRef::take(there).map(|found| unsafe { core::mem::transmute::<InodeRef<'_>, InodeRef<'s>>(found) }))
}

/// The address of a dentry without a borrow. To borrow the dentry again, the caller shows the memory that it lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Address {
    dentry: NonNull<Dentry>,
    /// The number of the superblock, which debug builds compare.
    #[cfg(debug_assertions)]
    dev: u64,
}

// SAFETY: a dentry is all atomics.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    #[inline(always)]
    fn of(_dev: u64, dentry: &Dentry) -> Self {
        Self {
            dentry: NonNull::from(dentry),
            #[cfg(debug_assertions)]
            dev: _dev,
        }
    }

    #[inline(always)]
    fn get<'a>(&self, _memory: &'a SlotMemory) -> &'a Dentry {
        #[cfg(debug_assertions)]
        assert_eq!(self.dev, _memory.dev, "a dentry of another superblock");
        // SAFETY: invariant 1: the memory stays while it is borrowed.
        unsafe { self.dentry.as_ref() }
    }
}

/// A counted reference to a dentry, without its superblock. Return it by `SuperBlock::unpin`.
#[derive(PartialEq, Eq)]
#[must_use]
pub(crate) struct DentryRef(Address);

impl DentryRef {
    /// Returns the first count on the dentry of a slot in `memory` that begins a life.
    pub(crate) fn first(memory: &SlotMemory, dentry: &Dentry) -> Self {
        dentry.count.revive(1);
        Self(Address::of(memory.dev, dentry))
    }

    /// Takes one more count on a dentry that the caller holds.
    #[inline(always)]
    pub(crate) fn again(memory: &SlotMemory, held: &Dentry) -> Self {
        held.count.get();
        Self(Address::of(memory.dev, held))
    }

    /// Takes one more count, unless the dentry is dead. `Err(true)`: the dentry is dead, and this
    /// was the last stray count on it.
    #[inline(always)]
    pub(crate) fn unless_dead(memory: &SlotMemory, dentry: &Dentry) -> Result<Self, bool> {
        match dentry.count.get_not_dead() {
            GetNotDead::Got => Ok(Self(Address::of(memory.dev, dentry))),
            GetNotDead::Dead => Err(false),
            GetNotDead::DeadLast => Err(true),
        }
    }

    /// Returns the dentry, in its superblock's `memory`.
    #[inline(always)]
    pub(crate) fn get<'a>(&'a self, memory: &'a SlotMemory) -> &'a Dentry {
        self.0.get(memory)
    }
}

/// A dentry without a reference: it may change at any time.
#[derive(Clone, Copy)]
pub(crate) struct DentryPtr(Address);

impl DentryPtr {
    pub(crate) fn of(memory: &SlotMemory, dentry: &Dentry) -> Self {
        Self(Address::of(memory.dev, dentry))
    }

    /// Returns the dentry, in its superblock's `memory`.
    #[inline(always)]
    pub(crate) fn get<'s>(&self, memory: &'s SlotMemory) -> &'s Dentry {
        self.0.get(memory)
    }
}

/// A counted reference on an inode, without its superblock. Return it by `SuperBlock::put_inode`.
#[must_use]
pub(crate) struct DetachedInodeRef(Address);

impl DetachedInodeRef {
    /// Takes one more reference on an inode in `memory` that the caller has a reference on.
    pub(crate) fn again(memory: &SlotMemory, inode: &Inode) -> Self {
        let counted = InodeRef::again(inode);
        Self(Address::of(memory.dev, dentry_beside(&counted)))
    }

    /// Returns the inode, in its superblock's `memory`.
    pub(crate) fn get<'a>(&'a self, memory: &'a SlotMemory) -> &'a Inode {
        &cold_part(self.0.get(memory)).inode
    }

    /// Returns the reference, which must be returned.
    pub(crate) fn into_ref(self, memory: &SlotMemory) -> InodeRef<'_> {
        InodeRef::counted(&cold_part(self.0.get(memory)).inode)
    }
}

/// A slot without a user. It is not `Copy`, so a slot is used, or returned, once.
#[must_use]
pub(crate) struct UnusedSlot<'s>(&'s Dentry);

impl<'s> UnusedSlot<'s> {
    pub(crate) fn take(slab: &'s Slab<Dentry>) -> Self {
        Self(slab.alloc())
    }

    /// Takes a slot, if one is free.
    pub(crate) fn try_take(slab: &'s Slab<Dentry>) -> Option<Self> {
        slab.try_alloc().map(Self)
    }

    #[inline(always)]
    pub(crate) fn dentry(&self) -> &'s Dentry {
        self.0
    }
}

/// A dentry that this thread has killed: it ends, once.
#[must_use]
pub(crate) struct DeadDentry<'d>(&'d Dentry);

impl core::ops::Deref for DeadDentry<'_> {
    type Target = Dentry;

    fn deref(&self) -> &Dentry {
        self.0
    }
}

impl<'d> DeadDentry<'d> {
    /// Kills `dentry` if it has exactly `count` references.
    #[inline(always)]
    pub(crate) fn kill(dentry: &'d Dentry, count: u32) -> Option<Self> {
        dentry.count.try_kill(count).then_some(Self(dentry))
    }

    /// Returns the dentry, for as long as its memory.
    pub(crate) fn ended(&self) -> &'d Dentry {
        self.0
    }

    /// Ends the dentry's use of its slot; returns that if the inode beside the dentry does not use it either.
    pub(crate) fn leave(self) -> Option<UnusedSlot<'d>> {
        leave(self.0)
    }

    /// Returns the slot of a dentry that never had an inode beside it.
    pub(crate) fn leave_alone(self) -> UnusedSlot<'d> {
        debug_assert_eq!(cold_part(self.0).inode.slot_users.load(Relaxed), 1);
        UnusedSlot(self.0)
    }

    /// Returns the slot of a dentry and of `inode`, which ended too.
    pub(crate) fn leave_with(self, inode: DeadInode<'_>) -> UnusedSlot<'d> {
        debug_assert!(core::ptr::eq(&raw const *inode, &raw const cold_part(self.0).inode));
        UnusedSlot(self.0)
    }
}

/// Ends the use of a slot by a dead inode; returns the slot if the dentry in it does not use it either.
pub(crate) fn leave_inode<'i>(inode: DeadInode<'i>) -> Option<UnusedSlot<'i>> {
    leave(dentry_beside(inode.ended()))
}

fn leave(dentry: &Dentry) -> Option<UnusedSlot<'_>> {
    // ORDERING: AcqRel, with itself by the slot's other user: the thread that frees the slot has seen the other's last
    // access.
    let is_last = cold_part(dentry).inode.slot_users.fetch_sub(1, AcqRel) == 1;
    is_last.then_some(UnusedSlot(dentry))
}

/// Returns a slot to the slab that it came from.
#[inline(always)]
pub(crate) fn free_slot(slab: &Slab<Dentry>, domain: &RcuDomain, slot: UnusedSlot<'_>) {
    #[cfg(test)]
    assert!(slot.0.owns_nothing(), "a free slot owns memory");
    // SAFETY: invariants 4 and 5.
    unsafe { slab.free(domain, slot.0) };
}

/// The hash table of a tree's dentries.
pub(crate) type Table = HashTable<Dentry>;

/// Returns the table for the lookups of one walk, under a guard of its tree's domain, which debug
/// builds check. A guard that carries its tree would cost each walk three instructions.
#[inline(always)]
pub(crate) fn view<'g>(table: &'g Table, guard: &'g ReadGuard<'_>) -> HashView<'g, Dentry> {
    // SAFETY: invariant 4.
    unsafe { table.view_unchecked(guard) }
}

/// Links a dentry of the tree's slab into the tree's table.
#[inline(always)]
pub(crate) fn link(table: &Table, domain: &RcuDomain, guard: &ReadGuard<'_>, dentry: &Dentry, hash: u64) {
    // SAFETY: invariant 1: the slab is dropped a grace period after `SuperBlock::drop` took all its
    // dentries off their chains; the dentry is on no chain (its HASHED flag is off, and the
    // directory's lock is held), and `hash` is the hash of its name and parent.
    unsafe { table.insert(domain, guard, dentry, hash) };
}

/// The inodes of a file system by node.
pub(crate) type InodeTable = HashTable<Inode>;

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Inode {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, _key: &(), _guard: &ReadGuard<'_>) -> u64 {
        node_hash(self.node())
    }
}

/// Returns the hash of a node in the table of inodes.
pub(crate) fn node_hash(node: u64) -> u64 {
    let mixed = (node ^ node >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// Links an inode of a superblock's slab into the superblock's table of nodes.
pub(crate) fn link_inode(table: &InodeTable, domain: &RcuDomain, guard: &ReadGuard<'_>, inode: &Inode, hash: u64) {
    // SAFETY: invariant 1: the superblock drops table and slab together, a grace period after its end; an inode is added once in a
    // life, under the hash of its node, and is taken out at its end.
    unsafe { table.insert(domain, guard, inode, hash) };
}

/// Returns the hash of a dentry in the table: of its name, mixed with the parent's address.
/// Directories made one after the other lie side by side. The second shift keeps equal names in
/// them from buckets of one cache line (`lab/report/tests/alone/scalability.rs` shows it).
#[inline(always)]
pub(crate) fn entry_hash(parent: &Dentry, name_hash: u64) -> u64 {
    let number = core::ptr::from_ref(parent) as u64 >> 6;
    name_hash ^ number.wrapping_mul(9)
}

/// A value that readers find under RCU.
pub(crate) struct InSlot<T: Send + Sync + 'static>(RawRcu<T>);

/// Bytes that readers find under RCU: a long name, a symbolic link's body.
pub(crate) type RcuBytes = InSlot<Box<[u8]>>;

impl<T: Send + Sync + 'static> InSlot<T> {
    pub(crate) fn none() -> Self {
        Self(RawRcu::new(None))
    }

    /// Returns true if the cell is empty. The caller is the only user of the slot.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn load<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Option<&'g T> {
        // SAFETY: invariant 4: the guard is of the domain that `set` defers to.
        unsafe { self.0.load(guard) }
    }

    /// Replaces the value. `heap_bytes` returns the bytes that the old value owns elsewhere.
    pub(crate) fn replace(&self, domain: &RcuDomain, value: Option<T>, heap_bytes: impl FnOnce(&T) -> usize) {
        // SAFETY: invariant 4.
        unsafe { self.0.replace(domain, value.map(Box::new), heap_bytes) };
    }
}

impl RcuBytes {
    pub(crate) fn set(&self, domain: &RcuDomain, bytes: Option<Box<[u8]>>) {
        self.replace(domain, bytes, |old| old.len());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn check<T>(value: &T) {
        // SAFETY: the bytes of a value without padding.
        let bytes = unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
        let other: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        assert!(other.is_empty(), "{}: not zero at {other:?}", core::any::type_name::<T>());
    }

    #[test]
    fn a_vacant_slot_is_all_zeros_as_memory_that_was_returned() {
        let (dentry, rest) = <Dentry as Item>::vacant();
        check(&dentry);
        check(&rest);
    }
}
