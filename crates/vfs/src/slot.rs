//! The one module of this crate with `unsafe`: links between dentries and inodes, in memory that is never taken back.
//!
//! # What it is
//! A *slot* is a dentry and room for an inode, 256 bytes, in a type-stable slab ([`sync::Slab`]): the dentry's walk line is the
//! slab's item, its cold line and the inode are the item's side ([`Rest`]). Everything that points at a dentry or an
//! inode points into the slab of its [`SuperBlock`]; since the slab never takes a slot back before it is
//! dropped, turning such a pointer into a reference can at worst reach a slot that meanwhile serves another name, never
//! foreign memory. The rest of the crate notices reuse by sequence counts and needs no `unsafe` for it.
//!
//! # Invariants
//! 1. Every [`Link`], every inode address in an object word, every [`Pinned`] and every [`Loose`] was made from a `&Dentry` or
//!    `&Inode` in a slot of the slab of the superblock that it is used with; no reference to one leaves the crate without a
//!    borrow or a count of that superblock. Walks, which borrow neither, are in a read section, and the slab goes a grace
//!    period after its last dentry went off its chain.
//! 2. Every `Dentry` is an item of such a slab, every `Rest` its side, and every `Inode` a field of a `Rest`.
//! 3. The box in a [`Private`] is freed only when no dentry refers to the inode any more; file-system code gets `&Inode`
//!    only while the caller holds a dentry of it.
//! 4. Guards and domains that meet a slot are those of its tree.

use crate::dentry::{Cold, Dentry, INODE};
use crate::inode::Inode;
use crate::name::NameKey;
use crate::superblock::SuperBlock;
use core::any::Any;
use core::mem::offset_of;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use sync::rcu::{RawRcu, RcuDomain, ReadGuard};
use sync::{HashNode, HashTable, Item};

/// What belongs to a dentry besides its walk line: the side of a slot.
#[repr(C, align(64))]
pub(crate) struct Rest {
    pub(crate) cold: Cold,
    pub(crate) inode: Inode,
}

impl Item for Dentry {
    type Side = Rest;

    fn vacant() -> (Self, Rest) {
        (Dentry::vacant(), Rest { cold: Cold::vacant(), inode: Inode::vacant() })
    }

    fn free_link(rest: &Rest) -> &AtomicPtr<Self> {
        &rest.inode.free_link
    }
}

impl HashNode for Dentry {
    type Key = NameKey;

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, key: &NameKey, guard: &ReadGuard<'_>) -> u64 {
        // The parent of a hashed dentry is set, and does not change before it is unhashed under the bucket's lock.
        self.parent().map_or(0, |parent| entry_hash(parent, self.filed_hash_rcu(parent, *key, guard)))
    }
}

/// The rest of the slot that `dentry` lies in.
#[inline(always)]
pub(crate) fn rest_of(dentry: &Dentry) -> &Rest {
    // SAFETY: invariant 2.
    unsafe { sync::slab::side(dentry) }
}

/// The dentry of the slot that `inode` lies in.
pub(crate) fn dentry_beside(inode: &Inode) -> &Dentry {
    let rest = core::ptr::from_ref(inode).cast::<u8>().wrapping_sub(offset_of!(Rest, inode)).cast::<Rest>();
    // SAFETY: invariant 2.
    let rest = unsafe { &*rest };
    // SAFETY: invariant 2.
    unsafe { sync::slab::item(rest) }
}

/// The inode that the object word `object` of `dentry` points at.
#[inline(always)]
pub(crate) fn inode_of(_dentry: &Dentry, object: u64) -> Option<&Inode> {
    // SAFETY: invariant 1; the borrow is as long as the dentry's, which is no longer than the tree's.
    unsafe { ((object & INODE) as *const Inode).as_ref() }
}

/// The address of the inode in the slot of the dentry at `dentry`, for a prefetch; it need not be a dentry.
#[inline(always)]
pub(crate) fn inode_beside(dentry: *const Dentry) -> *const u8 {
    sync::slab::side_address(dentry).cast::<u8>().wrapping_add(offset_of!(Rest, inode))
}

/// `dentry` for as long as its superblock is borrowed: what it is may change, that it is a dentry does not.
#[inline(always)]
pub(crate) fn outlive<'s>(_sb: &'s SuperBlock, dentry: &Dentry) -> &'s Dentry {
    // SAFETY: invariant 1: the dentry lies in the superblock's slab, which is dropped after it.
    unsafe { &*core::ptr::from_ref(dentry) }
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
        // Relaxed: memory is type-stable, so the target is a dentry whatever it holds; what it holds is ordered by the caller's
        // samples of its `seq` or by the lock that covers the link.
        let target = self.0.load(Relaxed);
        // SAFETY: invariant 1.
        unsafe { target.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn is(&self, dentry: &Dentry) -> bool {
        core::ptr::eq(self.0.load(Relaxed), dentry)
    }

    #[inline(always)]
    pub(crate) fn set(&self, target: &Dentry) {
        self.0.store(core::ptr::from_ref(target).cast_mut(), Relaxed);
    }

    pub(crate) fn set_option(&self, target: Option<&Dentry>) {
        self.0.store(target.map_or(core::ptr::null_mut(), |target| core::ptr::from_ref(target).cast_mut()), Relaxed);
    }
}

/// A counted reference to a dentry without its superblock: it must be given back by `SuperBlock::unpin`.
#[derive(PartialEq, Eq)]
pub(crate) struct Pinned(NonNull<Dentry>);

// SAFETY: a dentry is all atomics, and the count keeps its identity.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Wraps a count that the caller has taken on `dentry`.
    pub(crate) fn from_counted(dentry: &Dentry) -> Self {
        Self(NonNull::from(dentry))
    }

    /// The dentry; its superblock must be alive, which whoever holds a `Pinned` sees to.
    #[inline(always)]
    pub(crate) fn get(&self) -> &Dentry {
        // SAFETY: invariant 1: the holder keeps the superblock alive for as long as it holds this.
        unsafe { self.0.as_ref() }
    }
}

/// A dentry that no count is held on, whose superblock whoever has this keeps alive: what it is may change at any time.
#[derive(Clone, Copy)]
pub(crate) struct Loose(NonNull<Dentry>);

impl Loose {
    /// Lets go of the borrow of `dentry`; the caller sees to it that the superblock outlives this.
    pub(crate) fn of(_sb: &SuperBlock, dentry: &Dentry) -> Self {
        Self(NonNull::from(dentry))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> &Dentry {
        // SAFETY: invariant 1: the holder keeps the superblock alive for as long as it has this.
        unsafe { self.0.as_ref() }
    }
}

/// The hash table of a tree's dentries.
pub(crate) type Table = HashTable<Dentry>;

/// Links a dentry of the tree's slab into the tree's table.
pub(crate) fn link(table: &Table, domain: &RcuDomain, guard: &ReadGuard<'_>, dentry: &Dentry, hash: u64) {
    // SAFETY: invariant 1: the slab is dropped a grace period after `SuperBlock::drop` took all its dentries off their chains; the
    // dentry is on no chain (its HASHED flag is off, and the directory's lock is held), and `hash` is that of its name and parent.
    unsafe { table.insert(domain, guard, dentry, hash) };
}

/// The inodes of a file system by node.
pub(crate) type InodeTable = HashTable<Inode>;

impl HashNode for Inode {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, _key: &(), _guard: &ReadGuard<'_>) -> u64 {
        crate::inode_table::node_hash(self.node())
    }
}

/// Links an inode of a superblock's slab into the superblock's table of nodes.
pub(crate) fn link_inode(table: &InodeTable, domain: &RcuDomain, guard: &ReadGuard<'_>, inode: &Inode, hash: u64) {
    // SAFETY: invariant 1: the superblock drops table and slab together, a grace period after its end; an inode is added once in a
    // life, under the hash of its node, and is taken out at its end.
    unsafe { table.insert(domain, guard, inode, hash) };
}

/// The hash by which a dentry is filed: its name's, with the parent's place in it. Directories made one after the other
/// lie beside each other; the second shift keeps the same name in them from buckets of one cache line (shown by
/// `crates/lab/tests/scalability.rs`).
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

    /// Replaces the value; `heap_bytes` says what the old one has besides itself.
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

/// A file system's own data of one inode: set once, freed with the inode.
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
        // ORDERING: AcqRel, Release pairs with the Acquire load in `get`, Acquire and the failure's Acquire with the exchange of
        // whoever was first.
        let data = match self.0.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: `made` came from `Box::into_raw` above and was given to nobody.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: invariant 3.
        unsafe { &**data }
    }

    /// Frees the data. Only when no dentry refers to the inode any more (invariant 3).
    pub(crate) fn clear(&self) {
        // Relaxed: nobody else refers to the inode; `Inode::put` ordered their last uses before this.
        let data = self.0.load(Relaxed);
        if !data.is_null() {
            self.0.store(core::ptr::null_mut(), Relaxed);
            // SAFETY: invariant 3; it came from `Box::into_raw`.
            drop(unsafe { Box::from_raw(data) });
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.clear();
    }
}
