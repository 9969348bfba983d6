//! The dentry: a name in a directory, and the data of a walk's step.
//!
//! # What it is
//! A dentry has two cache lines. The [`Dentry`] holds everything that a walk step reads: sequence,
//! name hash and length, parent, chain link, the [object word](crate::slots::object) and the inline
//! name. The [`Cold`] line holds data that writers touch, so that counting a reference never takes
//! the first line away from walkers. It lies elsewhere (see [`crate::slots::slot`]) and is reached
//! by `Deref`. With its inode a cached name costs 256 bytes and its share of a bucket.
//!
//! # States
//! ```text
//!  free --(add, directory lock)-----------------> positive, hashed --(unlink, rmdir, rename over; same)--> unhashed
//!   ^  \--(add_negative, same)-----------------> negative, hashed --(create, link, rename onto it; same)-----^  |
//!   |                                                                                                           |
//!   +-----------------------(without a holder: try_kill at once; else the last put: try_kill)--------------------+
//! ```
//! A name that is created in place of a negative entry gets a new dentry.
//!
//! # How it is locked
//! `seq` orders readers against changes of name, parent and object. `lock` (of the directory) serialises every
//! change of the directory's entries: their insertion, removal, `sib_*`, `cookie`, and the directory's `children`,
//! `first_child`, `last_cookie`.
//!
//! # Where it comes from
//! Linux's `struct dentry` (`d_seq`, `d_lockref`, `d_name`, inline names).

use crate::base::name::{NAME_MAX, NameKey, Named, ShortName, words_of};
use crate::slots::inode::Inode;
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::object_word::ObjectWord;
use crate::slots::slot::{Link, RcuBytes, cold_part, inode_of};
use crate::slots::whole_path::WholePaths;
use prim::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use sync::rcu::{RcuDomain, ReadGuard};
use sync::{LockRef, Mutex, SeqCount};

/// Longest name kept in the first line.
pub(crate) const INLINE_MAX: usize = 32;

/// See the [module documentation](self).
#[repr(C, align(64))]
pub(crate) struct Dentry {
    /// Odd while name, parent or object change.
    pub(crate) seq: SeqCount,
    /// Upper 24 bits of the name hash, and the name's length (8 bits).
    hash_len: AtomicU32,
    parent: Link,
    pub(crate) next: AtomicUsize,
    object: ObjectWord,
    /// The first 32 bytes of the name, padded with zeros.
    name: [AtomicU64; 4],
}

/// The line of a dentry that walks do not read.
#[repr(C, align(64))]
pub(crate) struct Cold {
    pub(crate) count: LockRef,
    /// A name longer than [`INLINE_MAX`], whole.
    long_name: RcuBytes,
    pub(crate) first_child: Link,
    pub(crate) sib_next: Link,
    pub(crate) sib_prev: Link,
    pub(crate) lock: Mutex<()>,
    /// Entries of the directory. They take 256 bytes each, so 2^32 of them a terabyte.
    pub(crate) children: AtomicU32,
    /// Position in the parent's listing: falls along the sibling list, never used twice.
    pub(crate) cookie: AtomicU64,
    /// The cookie of the newest entry.
    pub(crate) last_cookie: AtomicU64,
}

/// Returns the word that a lookup compares: hash and length.
#[inline(always)]
pub(crate) fn hash_len(hash: u64, len: usize) -> u32 {
    ((hash >> 40) as u32) << 8 | len as u32
}

/// Returns the hash in the table of a name that its file system hashes to `hash`: the upper 24
/// bits, which a dentry keeps, and bits derived from them. So it can be computed again without the
/// rules.
pub(crate) fn folded_hash(hash: u64) -> u64 {
    let kept = hash >> 40;
    kept << 40 | kept.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24
}

impl Cold {
    pub(crate) fn vacant() -> Self {
        Self {
            count: LockRef::new_dead(),
            long_name: RcuBytes::none(),
            first_child: Link::none(),
            sib_next: Link::none(),
            sib_prev: Link::none(),
            lock: Mutex::new(()),
            children: AtomicU32::new(0),
            cookie: AtomicU64::new(0),
            last_cookie: AtomicU64::new(0),
        }
    }
}

impl core::ops::Deref for Dentry {
    type Target = Cold;

    #[inline(always)]
    fn deref(&self) -> &Cold {
        &cold_part(self).cold
    }
}

impl Dentry {
    pub(crate) fn vacant() -> Self {
        Self {
            seq: SeqCount::new(),
            hash_len: AtomicU32::new(0),
            parent: Link::none(),
            next: AtomicUsize::new(0),
            object: ObjectWord::new(Object::NEGATIVE),
            name: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Returns the directory of the name; the root is its own. `None` for a free dentry.
    #[inline(always)]
    pub(crate) fn parent(&self) -> Option<&Dentry> {
        self.parent.get()
    }

    #[inline(always)]
    pub(crate) fn is_in(&self, parent: &Dentry) -> bool {
        self.parent.is(parent)
    }

    /// Returns the object word. It may change unless `seq` is checked.
    #[inline(always)]
    pub(crate) fn object(&self) -> Object {
        self.object.load()
    }

    pub(crate) fn set_object(&self, object: Object) {
        self.object.store(object);
    }

    /// Changes the object word by a read-modify-write: `SEARCH_ALL` changes under the inode's lock,
    /// `MOUNTED` under the mounts' lock, `CHECKED` and `COLD` under none, and the rest under the
    /// directory's lock.
    pub(crate) fn update_object(&self, change: impl FnMut(Object) -> Object) {
        self.object.update(change);
    }

    /// Changes flags that a walk through a directory looks at. For a directory this updates
    /// `SEARCH_ALL`, which follows from these flags and the mode. The change counts as a change of
    /// `paths` if recorded paths pass the directory or link, and the change closes it or makes
    /// every later walk look at it.
    pub(crate) fn update_flags(&self, paths: &WholePaths, mut change: impl FnMut(Object) -> Object) {
        if !self.object().has(ObjectFlags::DIR | ObjectFlags::LINK) {
            return self.update_object(change);
        }
        self.object.update_dir(paths, |old| {
            let object = change(old);
            object.with_search(inode_of(self, object).map_or(0, Inode::mode))
        });
    }

    /// Updates `SEARCH_ALL` after a change of a directory's mode.
    pub(crate) fn update_search(&self, paths: &WholePaths) {
        self.update_flags(paths, |object| object);
    }

    /// Marks the entry as used, after a lookup found it. Stores nothing if it is marked already.
    #[cold]
    pub(crate) fn hit(&self, object: Object) {
        if object.is_cold() {
            self.update_object(|object| object.without(ObjectFlags::COLD));
        } else if object.is_negative() && !object.is_hot() {
            self.update_object(|object| object.with(ObjectFlags::HOT));
        }
    }

    /// Marks a directory or link that a path is about to pass. Returns its object word with the mark.
    pub(crate) fn pass(&self) -> Object {
        self.object.pass()
    }

    /// Returns whether a recorded path passed the directory or link. Call inside a write section of
    /// its sequence, or of its inode's, or after a change that a recorder must see.
    pub(crate) fn is_passed(&self) -> bool {
        self.object.is_passed()
    }

    /// Clears `HASHED`. The parent's lock is held.
    pub(crate) fn clear_hashed(&self) {
        let object = self.object();
        if object.has(ObjectFlags::DIR | ObjectFlags::LINK | ObjectFlags::CHECKED | ObjectFlags::COLD) {
            self.update_object(|object| object.without(ObjectFlags::HASHED));
        } else {
            // Only these flags, and the flags of a directory or link, may change under another lock
            // meanwhile, or under none.
            self.set_object(object.without(ObjectFlags::HASHED));
        }
    }

    pub(crate) fn inode(&self) -> Option<&Inode> {
        inode_of(self, self.object())
    }

    /// Returns whether this is the entry of a short name in `parent`. Call between samples of
    /// `seq`.
    #[inline(always)]
    pub(crate) fn is_short(&self, parent: &Dentry, hash_len: u32, name: ShortName) -> bool {
        // Relaxed: the caller's samples of `seq` order these loads.
        self.hash_len.load(Relaxed) == hash_len
            && self.parent.is(parent)
            && self.name[0].load(Relaxed) == name.words[0]
            && self.name[1].load(Relaxed) == name.words[1]
    }

    /// Returns whether this is the entry of a name in `parent`. Call between samples of `seq`.
    pub(crate) fn is_entry_rcu(&self, parent: &Dentry, named: Named<'_>, guard: &ReadGuard<'_>) -> bool {
        let Named { name, hash, .. } = named;
        // Relaxed: as in `is_short`.
        if self.hash_len.load(Relaxed) != hash_len(hash, name.len()) || !self.parent.is(parent) {
            return false;
        }
        if name.len() > INLINE_MAX {
            return self.long_name.load(guard).is_some_and(|own| **own == *name);
        }
        self.name.iter().zip(inline_words(named)).all(|(own, word)| own.load(Relaxed) == word)
    }

    /// Returns whether this is an entry in `parent` with the hash `hash` whose name `is_name`
    /// accepts. For names that are not compared byte by byte. Call between samples of `seq`.
    pub(crate) fn is_folded_rcu(
        &self,
        parent: &Dentry,
        hash: u64,
        guard: &ReadGuard<'_>,
        is_name: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        // Relaxed: as in `is_short`.
        self.hash_len.load(Relaxed) >> 8 == (hash >> 40) as u32
            && self.parent.is(parent)
            && self.with_name_rcu(guard, is_name)
    }

    /// Returns the hash in the table of a name of a directory with own rules for names.
    pub(crate) fn folded_hash(&self) -> u64 {
        folded_hash(u64::from(self.hash_len.load(Relaxed) >> 8) << 40)
    }

    /// Writes name and parent. Call inside a write section of `seq`, while the dentry is on no chain.
    #[inline(always)]
    pub(crate) fn set_entry(&self, domain: &RcuDomain, parent: &Dentry, named: Named<'_>) {
        let Named { name, hash, .. } = named;
        debug_assert!(name.len() <= NAME_MAX);
        let had_long_name = self.has_long_name();
        // Relaxed: inside the write section; its end publishes them.
        self.hash_len.store(hash_len(hash, name.len()), Relaxed);
        for (own, word) in self.name.iter().zip(inline_words(named)) {
            own.store(word, Relaxed);
        }
        if name.len() > INLINE_MAX || had_long_name {
            self.set_long_name(domain, name);
        }
        self.parent.set(parent);
    }

    /// Makes the name match no lookup any more, although a reader may still find the dentry on its former
    /// chain; its bytes and length stay. Call inside a write section of `seq`.
    pub(crate) fn retire_name(&self) {
        // Relaxed: as in `set_entry`.
        self.hash_len.store(self.hash_len.load(Relaxed) ^ 0xffff_ff00, Relaxed);
    }

    #[cold]
    fn set_long_name(&self, domain: &RcuDomain, name: &[u8]) {
        let long = (name.len() > INLINE_MAX).then(|| Box::from(name));
        self.long_name.set(domain, long);
    }

    fn has_long_name(&self) -> bool {
        self.len() > INLINE_MAX
    }

    /// Returns the length of the name.
    pub(crate) fn len(&self) -> usize {
        self.hash_len.load(Relaxed) as u8 as usize
    }

    /// Returns whether the slot owns no memory elsewhere, as a free one must.
    #[cfg(test)]
    pub(crate) fn owns_nothing(&self) -> bool {
        self.long_name.is_none() && cold_part(self).inode.owns_nothing()
    }

    /// Frees a long name. The dentry is dead.
    #[inline(always)]
    pub(crate) fn clear_name(&self, domain: &RcuDomain) {
        if self.has_long_name() {
            self.long_name.set(domain, None);
            self.hash_len.store(0, Relaxed);
        }
    }

    /// Calls `f` with the name. Valid only if a check of `seq`, the rename sequence or the directory's lock
    /// shows that it did not change.
    pub(crate) fn with_name_rcu<R>(&self, guard: &ReadGuard<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
        let len = self.len();
        if len > INLINE_MAX {
            return f(self.long_name.load(guard).map_or(&[], |name| &**name));
        }
        let mut bytes = [0; INLINE_MAX];
        for (to, word) in bytes.chunks_exact_mut(8).zip(&self.name) {
            to.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        f(&bytes[..len])
    }

    /// Returns the hash of the name in the table, for `parent`. The name must not change meanwhile
    /// (the bucket's lock is held, or the directory's).
    pub(crate) fn filed_hash_rcu(&self, parent: &Dentry, key: NameKey, guard: &ReadGuard<'_>) -> u64 {
        if parent.object().is_folded() {
            return self.folded_hash();
        }
        self.with_name_rcu(guard, |name| key.hash(name))
    }
}

impl core::fmt::Debug for Dentry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Dentry")
            .field("seq", &self.seq.current())
            .field("object", &self.object())
            .finish_non_exhaustive()
    }
}

/// Returns the first 32 bytes of a name, padded with zeros.
#[inline(always)]
fn inline_words(Named { name, short, .. }: Named<'_>) -> [u64; 4] {
    if let Some(name) = short {
        return [name.words[0], name.words[1], 0, 0];
    }
    let (first, rest) = name.split_at(ShortName::MAX);
    let (low, high) = (words_of(first), words_of(rest));
    [low[0], low[1], high[0], high[1]]
}

/// Puts `dentry` at the head of the list that begins with `first`.
#[inline(always)]
pub(crate) fn put_first(first: &Link, dentry: &Dentry) {
    let next = first.get();
    if let Some(next) = next {
        next.sib_prev.set(dentry);
    }
    dentry.sib_next.set_option(next);
    dentry.sib_prev.set_option(None);
    first.set(dentry);
}

/// Puts `dentry` between two entries of the list that begins with `first`, or at an end of it.
pub(crate) fn put_between(first: &Link, dentry: &Dentry, before: Option<&Dentry>, after: Option<&Dentry>) {
    dentry.sib_prev.set_option(before);
    dentry.sib_next.set_option(after);
    match before {
        Some(before) => before.sib_next.set(dentry),
        None => first.set(dentry),
    }
    if let Some(after) = after {
        after.sib_prev.set(dentry);
    }
}

/// Takes `dentry` off the list that begins with `first`.
#[inline(always)]
pub(crate) fn take_out(first: &Link, dentry: &Dentry) {
    let (before, after) = (dentry.sib_prev.get(), dentry.sib_next.get());
    match before {
        Some(before) => before.sib_next.set_option(after),
        None => first.set_option(after),
    }
    if let Some(after) = after {
        after.sib_prev.set_option(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{align_of, offset_of, size_of};

    #[test]
    fn a_walk_step_reads_one_line_and_writers_touch_the_other() {
        assert_eq!((size_of::<Dentry>(), align_of::<Dentry>()), (64, 64));
        assert_eq!((size_of::<Cold>(), align_of::<Cold>()), (64, 64));
        let walked = [
            offset_of!(Dentry, seq),
            offset_of!(Dentry, hash_len),
            offset_of!(Dentry, parent),
            offset_of!(Dentry, next),
            offset_of!(Dentry, object),
            offset_of!(Dentry, name),
        ];
        assert_eq!(walked, [0, 4, 8, 16, 24, 32]);
        let written = [
            offset_of!(Cold, count),
            offset_of!(Cold, long_name),
            offset_of!(Cold, first_child),
            offset_of!(Cold, sib_next),
            offset_of!(Cold, sib_prev),
            offset_of!(Cold, lock),
            offset_of!(Cold, children),
            offset_of!(Cold, cookie),
            offset_of!(Cold, last_cookie),
        ];
        assert_eq!(written, [0, 8, 16, 24, 32, 40, 44, 48, 56]);
    }
}
