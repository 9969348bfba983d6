//! The one module of this crate with `unsafe`: links between dentries and inodes, in memory that stays theirs
//! until the superblock is dropped.
//!
//! # What it is
//! A *slot* is a dentry and room for an inode, 256 bytes, in a type-stable slab ([`sync::Slab`]). The
//! dentry's walk line is the slab's item; its cold line and the inode are the item's side ([`ColdPart`]).
//! Every pointer to a dentry or an inode points into the slab of its [`SuperBlock`]. The slab returns no
//! memory before it is dropped. So a stale pointer can reach a slot that serves another name by then, but
//! never foreign memory. The rest of the crate detects reuse by sequence counts and needs no `unsafe` for it.
//!
//! # Invariants
//! 1. Every [`Link`], every inode address in an object word, every [`CountedDentry`] and every [`UncountedDentry`] was made from a `&Dentry` or
//!    `&Inode` in a slot of the slab of the superblock that it is used with; no reference to one leaves the crate without a
//!    borrow or a count of that superblock. Walks, which borrow neither, are in a read section, and the slab goes a grace
//!    period after its last dentry went off its chain.
//! 2. Every `Dentry` is an item of such a slab, every `ColdPart` its side, and every `Inode` a field of a `ColdPart`.
//! 3. The box in a [`Private`] is freed only when the inode is dead ([`DeadInode`]): no thread has a reference on it.
//!    File-system code gets `&Inode` only while the caller has a reference on it; only a check in rcu-walk gets it without
//!    one ([`UnheldInode`](crate::UnheldInode)), and where there are such checks the box goes a grace period later.
//! 4. Guards and domains that meet a slot or the table are those of its tree.
//! 5. A slot is returned once in a life, by the thread that killed its dentry and saw its inode's last use end, or that
//!    took the slot and made nothing of it; to the slab of its kind.

use crate::base::name::NameKey;
use crate::dcache::dentry::{Cold, Dentry};
use crate::dcache::inode::{DeadInode, Inode};
use crate::dcache::object::Object;
use crate::dcache::superblock::SuperBlock;
use core::any::Any;
use core::mem::offset_of;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use sync::rcu::{RawRcu, RcuDomain, ReadGuard};
use sync::{HashNode, HashTable, HashView, Item, Slab};

/// The part of a dentry outside its walk line: the side of a slot.
#[repr(C, align(64))]
pub(crate) struct ColdPart {
    pub(crate) cold: Cold,
    pub(crate) inode: Inode,
}

// SAFETY: the word is a field of the side's inode, and only the slab uses it.
unsafe impl Item for Dentry {
    type Side = ColdPart;

    fn vacant() -> (Self, ColdPart) {
        (Dentry::vacant(), ColdPart { cold: Cold::vacant(), inode: Inode::vacant() })
    }

    fn free_link(rest: &ColdPart) -> &AtomicPtr<Self> {
        &rest.inode.free_link
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
}

/// The side of the slot of `dentry`.
#[inline(always)]
pub(crate) fn cold_part(dentry: &Dentry) -> &ColdPart {
    // SAFETY: invariant 2.
    unsafe { sync::slab::side(dentry) }
}

/// The dentry in the slot of `inode`.
pub(crate) fn dentry_beside(inode: &Inode) -> &Dentry {
    let address = core::ptr::from_ref(inode).addr() - offset_of!(ColdPart, inode);
    // A reference to the inode gives no right to its neighbours; the slab exposed its chunk for that.
    let rest = core::ptr::with_exposed_provenance::<ColdPart>(address);
    // SAFETY: invariant 2.
    let rest = unsafe { &*rest };
    // SAFETY: invariant 2.
    unsafe { sync::slab::item(rest) }
}

/// The inode that the object word `object` of `dentry` points at.
#[inline(always)]
pub(crate) fn inode_of(_dentry: &Dentry, object: Object) -> Option<&Inode> {
    // SAFETY: invariant 1; the borrow is as long as the dentry's, which is no longer than the tree's.
    unsafe { (object.inode_address() as *const Inode).as_ref() }
}

/// The address of the inode in the slot of the dentry at `dentry`, for a prefetch. `dentry` may be any
/// address.
#[inline(always)]
pub(crate) fn inode_beside(dentry: *const Dentry) -> *const u8 {
    sync::slab::side_address(dentry).cast::<u8>().wrapping_add(offset_of!(ColdPart, inode))
}

/// `dentry`, borrowed for as long as its superblock. The slot may serve another name by then, but stays a
/// dentry.
#[inline(always)]
pub(crate) fn outlive<'s>(_sb: &'s SuperBlock, dentry: &Dentry) -> &'s Dentry {
    // SAFETY: invariant 1: the dentry lies in the superblock's slab, which is dropped after it.
    unsafe { &*core::ptr::from_ref(dentry) }
}

/// The same for an inode.
#[inline(always)]
pub(crate) fn outlive_inode<'s>(_sb: &'s SuperBlock, inode: &Inode) -> &'s Inode {
    // SAFETY: invariant 1, as above.
    unsafe { &*core::ptr::from_ref(inode) }
}

/// A pointer to a dentry of the same tree, or none.
#[repr(transparent)]
pub(crate) struct Link(AtomicPtr<Dentry>);

impl Link {
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Dentry> {
        // ORDERING: Acquire, pairs with the Release in `Link::set_option`: the thread that made the link had the
        // target from its slab, so the dentry that the slab first wrote there is seen. What its name is now, the
        // caller's samples of its `seq` order, or the lock that covers the link.
        let target = self.0.load(Acquire);
        // SAFETY: invariant 1.
        unsafe { target.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn is(&self, dentry: &Dentry) -> bool {
        core::ptr::eq(self.0.load(Relaxed), dentry)
    }

    #[inline(always)]
    pub(crate) fn set(&self, target: &Dentry) {
        self.set_option(Some(target));
    }

    #[inline(always)]
    pub(crate) fn set_option(&self, target: Option<&Dentry>) {
        let target = target.map_or(core::ptr::null_mut(), |target| core::ptr::from_ref(target).cast_mut());
        // ORDERING: Release, pairs with the Acquire in `Link::get`: a thread that follows the link finds a dentry.
        self.0.store(target, Release);
    }
}

/// A counted reference to a dentry, without its superblock. Return it by `SuperBlock::unpin`.
#[derive(PartialEq, Eq)]
pub(crate) struct CountedDentry(NonNull<Dentry>);

// SAFETY: a dentry is all atomics, and the count keeps its identity.
unsafe impl Send for CountedDentry {}
// SAFETY: as above.
unsafe impl Sync for CountedDentry {}

impl CountedDentry {
    /// Wraps a count that the caller has taken on `dentry`.
    pub(crate) fn from_counted(dentry: &Dentry) -> Self {
        Self(NonNull::from(dentry))
    }

    /// The dentry. The owner of this reference keeps the superblock alive.
    #[inline(always)]
    pub(crate) fn get(&self) -> &Dentry {
        // SAFETY: invariant 1: the holder keeps the superblock alive for as long as it holds this.
        unsafe { self.0.as_ref() }
    }
}

/// A dentry without a reference. The owner of this value keeps the superblock alive; the dentry may change at
/// any time.
#[derive(Clone, Copy)]
pub(crate) struct UncountedDentry(NonNull<Dentry>);

// SAFETY: a dentry is all atomics.
unsafe impl Send for UncountedDentry {}

impl UncountedDentry {
    /// Ends the borrow of `dentry`. The caller must keep the superblock alive for longer than this value.
    pub(crate) fn of(_sb: &SuperBlock, dentry: &Dentry) -> Self {
        Self(NonNull::from(dentry))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> &Dentry {
        // SAFETY: invariant 1: the holder keeps the superblock alive for as long as it has this.
        unsafe { self.0.as_ref() }
    }
}

/// Returns the slot of `dentry`, whose last user the caller is, to the slab that it came from.
#[inline(always)]
pub(crate) fn free_slot(slab: &Slab<Dentry>, dentry: &Dentry) {
    // SAFETY: invariant 5.
    unsafe { slab.free(dentry) };
}

/// The hash table of a tree's dentries.
pub(crate) type Table = HashTable<Dentry>;

/// The table for the lookups of one walk, under a guard of its tree's domain.
#[inline(always)]
pub(crate) fn view<'g>(table: &'g Table, guard: &'g ReadGuard<'_>) -> HashView<'g, Dentry> {
    // SAFETY: invariant 4.
    unsafe { table.view_unchecked(guard) }
}

/// Links a dentry of the tree's slab into the tree's table.
pub(crate) fn link(table: &Table, domain: &RcuDomain, guard: &ReadGuard<'_>, dentry: &Dentry, hash: u64) {
    // SAFETY: invariant 1: the slab is dropped a grace period after `SuperBlock::drop` took all its dentries off their chains; the
    // dentry is on no chain (its HASHED flag is off, and the directory's lock is held), and `hash` is that of its name and parent.
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
        crate::dcache::inode_table::node_hash(self.node())
    }
}

/// Links an inode of a superblock's slab into the superblock's table of nodes.
pub(crate) fn link_inode(table: &InodeTable, domain: &RcuDomain, guard: &ReadGuard<'_>, inode: &Inode, hash: u64) {
    // SAFETY: invariant 1: the superblock drops table and slab together, a grace period after its end; an inode is added once in a
    // life, under the hash of its node, and is taken out at its end.
    unsafe { table.insert(domain, guard, inode, hash) };
}

/// The hash of a dentry in the table: of its name, mixed with the parent's address. Directories made one
/// after the other lie side by side. The second shift keeps equal names in them from buckets of one cache
/// line (`lab/report/tests/scalability.rs` shows it).
#[inline(always)]
pub(crate) fn entry_hash(parent: &Dentry, name_hash: u64) -> u64 {
    let address = core::ptr::from_ref(parent) as u64;
    name_hash ^ address >> 6 ^ address >> 2
}

/// A value that readers find under RCU.
pub(crate) struct InSlot<T: Send + Sync + 'static>(RawRcu<T>);

/// Bytes that readers find under RCU: a long name, a symbolic link's body.
pub(crate) type RcuBytes = InSlot<Box<[u8]>>;

impl<T: Send + Sync + 'static> InSlot<T> {
    pub(crate) fn none() -> Self {
        Self(RawRcu::new(None))
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

/// A file system's own data of one inode: set once, freed after the inode's last use.
pub(crate) struct Private(AtomicPtr<Box<dyn Any + Send + Sync>>);

impl Private {
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<&(dyn Any + Send + Sync)> {
        // ORDERING: Acquire, pairs with the AcqRel exchange in `get_or_set`: the boxed value is seen.
        let data = self.0.load(Acquire);
        // SAFETY: invariant 3; the pointer came from `Box::into_raw`.
        unsafe { data.as_ref() }.map(|data| &**data)
    }

    pub(crate) fn get_or_set(&self, make: impl FnOnce() -> Box<dyn Any + Send + Sync>) -> &(dyn Any + Send + Sync) {
        if let Some(data) = self.get() {
            return data;
        }
        let made = Box::into_raw(Box::new(make()));
        // ORDERING: AcqRel, Release pairs with the Acquire load in `get`, Acquire and the failure's Acquire
        // with the exchange of the first thread.
        let data = match self.0.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: `made` came from `Box::into_raw` above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: invariant 3.
        unsafe { &**data }
    }

    /// Takes the data out of a dead inode, and frees it: at once, or, where walks read it without a reference, after a
    /// grace period of `read_by`.
    pub(crate) fn clear(&self, _dead: &DeadInode<'_>, read_by: Option<&RcuDomain>) {
        // Relaxed: no other thread refers to the inode; `Inode::put` ordered their last uses before this. A walk that
        // still reads it finds the data or none.
        let data = self.0.load(Relaxed);
        if data.is_null() {
            return;
        }
        self.0.store(core::ptr::null_mut(), Relaxed);
        match read_by {
            // SAFETY: invariant 3: no thread has a reference to it; it came from `Box::into_raw`.
            None => drop(unsafe { Box::from_raw(data) }),
            Some(domain) => {
                // SAFETY: invariant 3: it is freed by the callback below.
                let bytes = size_of_val(unsafe { &**data });
                // SAFETY: invariant 3: after a grace period no walk reads it; it is `Send`.
                unsafe { domain.defer_raw(bytes, free_private, data.cast()) };
            }
        }
    }
}

/// # Safety
/// `data` is a pointer from [`Private`], taken out of it, and no thread reads it any more.
unsafe fn free_private(data: *mut ()) {
    // SAFETY: as above; it came from `Box::into_raw`.
    drop(unsafe { Box::from_raw(data.cast::<Box<dyn Any + Send + Sync>>()) });
}

impl Drop for Private {
    fn drop(&mut self) {
        // Relaxed: `&mut self` means that no other thread reads it.
        let data = self.0.load(Relaxed);
        if !data.is_null() {
            // SAFETY: invariant 3, as in `clear`: the slab goes a grace period after its superblock.
            drop(unsafe { Box::from_raw(data) });
        }
    }
}
