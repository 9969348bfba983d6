//! Shards and shard lists: where a sharded directory keeps its names, and changes of one name.
//!
//! [`crate::cache::sharded`] has the description, and the rules of their locks.

use crate::slots::dentry::{Dentry, put_between, put_first, take_out};
use crate::slots::slot::Link;
use prim::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use sync::{Mutex, SpinLock};

/// Shards of a sharded directory, and shard lists.
pub(crate) const WIDTH: usize = if cfg!(loom) { 2 } else { 512 };

/// A shard by its number, and the number of its slot.
#[derive(Clone, Copy)]
pub(crate) struct ShardAt {
    pub(crate) slot: usize,
    pub(crate) shard: usize,
}

/// A share of the names of a sharded directory. Its lock protects all of it.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Shard {
    pub(crate) lock: Mutex<()>,
    /// How much the number of entries changed, modulo 2^32.
    pub(crate) children: AtomicU32,
    /// How much the number of subdirectories changed, modulo 2^32.
    pub(crate) subdirs: AtomicU32,
    /// Whether anything changed since the slot was closed last.
    pub(crate) changes: AtomicU32,
    /// The time of the last change.
    pub(crate) time: AtomicI64,
}

/// A list of entries that were made while the directory was sharded. Its lock protects it, and the places on the
/// directory's list of entries with such addresses.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct ShardList {
    pub(crate) lock: SpinLock<()>,
    pub(crate) first: Link,
    /// Entries that were put on it.
    pub(crate) made: AtomicU64,
    /// References on the directory that threads took here, less the returned ones, modulo 2^32.
    pub(crate) holds: AtomicU32,
}

/// Where a sharded directory keeps a name: the shard, whose lock the caller has.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) lists: &'a [ShardList],
    /// The first cookie of the first shard list. The cookies of a shard list follow one another at
    /// distances of [`WIDTH`].
    pub(crate) base: u64,
}

impl Names<'_> {
    /// Puts a new entry on its shard list.
    #[cold]
    pub(crate) fn insert(&self, dentry: &Dentry) {
        let at = list_of(dentry);
        let list = &self.lists[at];
        let held = list.lock.lock();
        // Relaxed, here and below: under the locks.
        let made = list.made.load(Relaxed);
        list.made.store(made + 1, Relaxed);
        dentry.cookie.store(self.base + made * WIDTH as u64 + at as u64, Relaxed);
        put_first(&list.first, dentry);
        drop(held);
        add(&self.shard.children, u32::from(!dentry.object().is_negative()));
    }

    /// Takes an entry of the directory `dir` off its list.
    #[cold]
    pub(crate) fn remove(&self, dir: &Dentry, dentry: &Dentry) {
        match self.list_with(dir, dentry) {
            Some(list) => {
                let _held = list.lock.lock();
                take_out(&list.first, dentry);
            }
            None => self.at_place(dentry, None, || {
                let list = &self.lists[list_of(dentry)].first;
                take_out(if list.is(dentry) { list } else { &dir.first_child }, dentry);
            }),
        }
        add(&self.shard.children, u32::from(!dentry.object().is_negative()).wrapping_neg());
    }

    /// Puts `dentry`, which is on no list, in the place of the entry `over` of the directory `dir`.
    /// It has the cookie of `over`.
    #[cold]
    pub(crate) fn replace(&self, dir: &Dentry, over: &Dentry, dentry: &Dentry) {
        let put = |first: &Link| put_between(first, dentry, over.sib_prev.get(), over.sib_next.get());
        match self.list_with(dir, over) {
            Some(list) => {
                let _held = list.lock.lock();
                put(&list.first);
            }
            None => self.at_place(over, Some(dentry), || put(&dir.first_child)),
        }
    }

    /// Returns the shard list that has an entry of the directory `dir`, if its cookie shows which
    /// one that is. An entry that took the place of another entry is on the other entry's shard
    /// list.
    fn list_with(&self, dir: &Dentry, dentry: &Dentry) -> Option<&ShardList> {
        // In an incomplete directory a cookie is a time.
        let cookie = dir.object().is_complete().then(|| dentry.cookie.load(Relaxed))?;
        Some(&self.lists[cookie.checked_sub(self.base)? as usize % WIDTH])
    }

    /// Runs `change` with the locks that cover the place of an entry on the directory's list, or on
    /// its shard list, and the place of `new`, which is added there.
    fn at_place(&self, dentry: &Dentry, new: Option<&Dentry>, change: impl FnOnce()) {
        loop {
            // A guess: decided under the locks.
            let (before, after) = (dentry.sib_prev.get(), dentry.sib_next.get());
            let mut at = [Some(dentry), before, after, new].map(|one| one.map_or(0, |one| 1 + list_of(one)));
            at.sort_unstable();
            let is_first = |k: usize| at[k] != 0 && (k == 0 || at[k] != at[k - 1]);
            let _held = [0, 1, 2, 3].map(|k| is_first(k).then(|| self.lists[at[k] - 1].lock.lock()));
            let is_same =
                |link: &Link, one: Option<&Dentry>| one.map_or_else(|| link.get().is_none(), |one| link.is(one));
            if is_same(&dentry.sib_prev, before) && is_same(&dentry.sib_next, after) {
                return change();
            }
        }
    }

    /// Notes a change of the directory's entries at `now`.
    #[cold]
    pub(crate) fn touch(&self, subdirs: i32, now: i64) {
        let shard = self.shard;
        add(&shard.subdirs, subdirs.cast_unsigned());
        shard.changes.store(1, Relaxed);
        shard.time.store(shard.time.load(Relaxed).max(now), Relaxed);
    }

    /// Returns whether the shard may have another subdirectory, so that all shards together have no
    /// more than `most`.
    pub(crate) fn may_add_subdir(&self, most: u32) -> bool {
        self.shard.subdirs.load(Relaxed).cast_signed() < (most / WIDTH as u32).cast_signed()
    }
}

/// Adds to a word that the caller's lock protects.
pub(crate) fn add(word: &AtomicU32, by: u32) {
    word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Returns the shard list of an entry: one for 16 slots side by side, of which one thread takes all at a time.
fn list_of(dentry: &Dentry) -> usize {
    (core::ptr::from_ref(dentry) as usize >> 10) % WIDTH
}
