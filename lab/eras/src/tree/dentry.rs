//! An entry: the dentry of Linux 2.6, in the two orders that its fields have had.
//!
//! # Layout
//! 192 bytes, three lines of 64, as on x86-64 of the period. Where Linux has a pointer there is a
//! number here, in a field of a pointer's size, so that offsets and false sharing are as in the
//! period.
//!
//! | offset | [`Early`]: until 2009           | [`Late`]: 2.6.38 to 3.12                      |
//! |--------|---------------------------------|-----------------------------------------------|
//! | 0      | **count**, **lock**             | flags, sequence                               |
//! | 8      | flags, sequence                 | inode, chain, parent, name's hash and length  |
//! | 16     | inode, chain, parent, name's hash and length | ...                              |
//! | 56     | ...                             | short name                                    |
//! | 64     | **lists** (LRU, child, children, alias) | ...                                   |
//! | 88     | ...                             | **count and lock**                            |
//! | 128    | rest, short name from 160       | **lists**                                     |
//!
//! In the early order the count and the lock, which every user writes, share a line with all that a search of the chain
//! reads. (The sequence is vfs-scale's; it was put behind the lock there.) The late order was made for the store-free
//! walk, which reads the first line and the name only.
//!
//! # How it is locked
//! By the era: see its file. Entries are type-stable: the table of a tree never shrinks, and an entry that is freed
//! becomes another.

use super::count::Count;
use super::list::{Head, Links, NONE};
use super::name::{InlineName, NameKey};
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use sync::SeqCount;

/// The entry is part of the tree, or was and is still in use.
pub(crate) const USED: u32 = 1;
/// The entry has no name any more.
pub(crate) const UNHASHED: u32 = 2;
/// The entry is on the list of unused entries.
pub(crate) const ON_LRU: u32 = 4;

/// An entry in one of its layouts.
pub(crate) trait Dentry: Send + Sync + 'static {
    type Count: Count;

    fn new() -> Self;
    fn count(&self) -> &Self::Count;
    fn state(&self) -> &State;
    fn key(&self) -> &Key;
    fn name(&self) -> &InlineName;
    fn lists(&self) -> &Lists;

    /// Returns the directory of the entry; for the root, the root.
    fn parent(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `set_parent`: a walk that follows the link sees the entry there.
        self.key().parent.load(Acquire)
    }

    fn set_parent(&self, parent: u32) {
        // ORDERING: Release pairs with the Acquire in `parent`.
        self.key().parent.store(parent, Release);
    }

    /// Returns whether all of `flags` are set.
    fn has(&self, flags: u32) -> bool {
        // Relaxed: a flag is read under a lock, or inside a sequence.
        self.state().flags.load(Relaxed) & flags == flags
    }

    /// Sets and clears flags. The caller excludes other writers of flags.
    fn change_flags(&self, set: u32, clear: u32) {
        let flags = &self.state().flags;
        flags.store((flags.load(Relaxed) | set) & !clear, Relaxed);
    }
}

/// `d_flags`, and `d_seq` where there is one. 8 bytes.
#[repr(C)]
pub(crate) struct State {
    flags: AtomicU32,
    pub(crate) seq: SeqCount,
}

/// The fields that a search of a chain compares. 48 bytes.
#[repr(C)]
pub(crate) struct Key {
    /// `d_inode`: the entry's own number here.
    _inode: u64,
    /// `d_hash`: the next entry on the chain.
    pub(crate) next: AtomicU32,
    _next_and_before: [u32; 3],
    parent: AtomicU32,
    _parent: u32,
    pub(crate) name: NameKey,
}

/// Lists that the entry is on, and the list of its children. 64 bytes.
#[repr(C)]
pub(crate) struct Lists {
    pub(crate) lru: Links,
    /// Whose part of a divided list it is on.
    pub(crate) home: AtomicU32,
    _lru: u32,
    pub(crate) siblings: Links,
    _siblings: u64,
    pub(crate) children: Head,
    _children: [u32; 3],
    _alias: [u64; 2],
}

/// `d_time`, `d_op`, `d_sb`, `d_fsdata`: fields that are not read here. 32 bytes.
type Rest = [u64; 4];

/// The order of 2.4 to vfs-scale.
#[repr(C, align(64))]
pub(crate) struct Early<C> {
    count: C,
    state: State,
    key: Key,
    lists: Lists,
    _rest: Rest,
    name: InlineName,
}

/// The order of 2.6.38 to 3.12.
#[repr(C, align(64))]
pub(crate) struct Late<C> {
    state: State,
    key: Key,
    name: InlineName,
    count: C,
    _rest: Rest,
    lists: Lists,
}

impl State {
    fn new() -> Self {
        Self { flags: AtomicU32::new(0), seq: SeqCount::new() }
    }
}

impl Key {
    fn new() -> Self {
        Self {
            _inode: 0,
            next: AtomicU32::new(NONE),
            _next_and_before: [0; 3],
            parent: AtomicU32::new(NONE),
            _parent: 0,
            name: NameKey::new(),
        }
    }
}

impl Lists {
    fn new() -> Self {
        Self {
            lru: Links::new(),
            home: AtomicU32::new(0),
            _lru: 0,
            siblings: Links::new(),
            _siblings: 0,
            children: Head::new(),
            _children: [0; 3],
            _alias: [0; 2],
        }
    }
}

macro_rules! layout {
    ($layout:ident) => {
        impl<C: Count + 'static> Dentry for $layout<C> {
            type Count = C;

            fn new() -> Self {
                Self {
                    count: C::new(),
                    state: State::new(),
                    key: Key::new(),
                    lists: Lists::new(),
                    _rest: [0; 4],
                    name: InlineName::new(),
                }
            }

            fn count(&self) -> &C {
                &self.count
            }

            fn state(&self) -> &State {
                &self.state
            }

            fn key(&self) -> &Key {
                &self.key
            }

            fn name(&self) -> &InlineName {
                &self.name
            }

            fn lists(&self) -> &Lists {
                &self.lists
            }
        }
    };
}

layout!(Early);
layout!(Late);

#[cfg(test)]
mod tests {
    use super::super::count::{AtomicCount, LockedCount};
    use super::super::lockref::Lockref2013;
    use super::*;
    use core::mem::offset_of;
    use locks::TicketLock;
    use sync::TasLock;

    #[test]
    fn both_orders_have_the_offsets_of_their_time() {
        type Old = Early<AtomicCount<TicketLock>>;
        type New = Late<LockedCount<TicketLock>>;
        assert_eq!([size_of::<Key>(), size_of::<Lists>(), size_of::<State>()], [48, 64, 8]);
        let early = [offset_of!(Old, count), offset_of!(Old, key), offset_of!(Old, lists), offset_of!(Old, name)];
        assert_eq!(early, [0, 16, 64, 160]);
        let late = [offset_of!(New, key), offset_of!(New, name), offset_of!(New, count), offset_of!(New, lists)];
        assert_eq!(late, [8, 56, 88, 128]);
        let sizes = [size_of::<Old>(), size_of::<New>(), size_of::<Late<Lockref2013>>()];
        assert_eq!(sizes, [192; 3]);
        assert_eq!(size_of::<Early<AtomicCount<TasLock>>>(), 192);
    }
}
