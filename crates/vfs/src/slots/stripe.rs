//! Stripes and shelves: where a split directory keeps its names, and what a thread does to one of them.
//!
//! [`crate::cache::split`] has the description, and the rules of their locks.

use crate::slots::dentry::{Dentry, put_between, put_first, take_out};
use crate::slots::slot::Link;
use prim::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use sync::{Mutex, SpinLock};

/// Stripes of a split directory, and shelves.
pub(crate) const WIDTH: usize = if cfg!(loom) { 2 } else { 512 };

/// A stripe by its number, and the number of its slot.
#[derive(Clone, Copy)]
pub(crate) struct StripeAt {
    pub(crate) slot: usize,
    pub(crate) stripe: usize,
}

/// A share of the names of a split directory. Its lock protects all of it.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Stripe {
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

/// A list of entries that were made while the directory was split. Its lock protects it, and the places on the
/// directory's list of entries with such addresses.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Shelf {
    pub(crate) lock: SpinLock<()>,
    pub(crate) first: Link,
    /// Entries that were put on it.
    pub(crate) made: AtomicU64,
    /// References on the directory that threads took here, less those that they gave back here, modulo 2^32.
    pub(crate) holds: AtomicU32,
}

/// Where a split directory keeps a name: the stripe, whose lock the caller has.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) stripe: &'a Stripe,
    pub(crate) shelves: &'a [Shelf],
    /// The first cookie of the first shelf. Those of a shelf follow one another at distances of [`WIDTH`].
    pub(crate) base: u64,
}

impl Names<'_> {
    /// Puts a new entry on its shelf.
    #[cold]
    pub(crate) fn insert(&self, dentry: &Dentry) {
        let at = shelf_of(dentry);
        let shelf = &self.shelves[at];
        let held = shelf.lock.lock();
        // Relaxed, here and below: under the locks.
        let made = shelf.made.load(Relaxed);
        shelf.made.store(made + 1, Relaxed);
        dentry.cookie.store(self.base + made * WIDTH as u64 + at as u64, Relaxed);
        put_first(&shelf.first, dentry);
        drop(held);
        add(&self.stripe.children, u32::from(!dentry.object().is_negative()));
    }

    /// Takes an entry of the directory `dir` off its list.
    #[cold]
    pub(crate) fn remove(&self, dir: &Dentry, dentry: &Dentry) {
        match self.shelf_with(dir, dentry) {
            Some(shelf) => {
                let _held = shelf.lock.lock();
                take_out(&shelf.first, dentry);
            }
            None => self.at_place(dentry, None, || {
                let shelf = &self.shelves[shelf_of(dentry)].first;
                take_out(if shelf.is(dentry) { shelf } else { &dir.first_child }, dentry);
            }),
        }
        add(&self.stripe.children, u32::from(!dentry.object().is_negative()).wrapping_neg());
    }

    /// Puts `dentry`, which is on no list, in the place of the entry `over` of the directory `dir`. It has the cookie of that.
    #[cold]
    pub(crate) fn replace(&self, dir: &Dentry, over: &Dentry, dentry: &Dentry) {
        let put = |first: &Link| put_between(first, dentry, over.sib_prev.get(), over.sib_next.get());
        match self.shelf_with(dir, over) {
            Some(shelf) => {
                let _held = shelf.lock.lock();
                put(&shelf.first);
            }
            None => self.at_place(over, Some(dentry), || put(&dir.first_child)),
        }
    }

    /// The shelf that has an entry of the directory `dir`, if its cookie shows which one that is. An entry that took another one's place
    /// is on that one's shelf.
    fn shelf_with(&self, dir: &Dentry, dentry: &Dentry) -> Option<&Shelf> {
        // In an incomplete directory a cookie is a time.
        let cookie = dir.object().is_complete().then(|| dentry.cookie.load(Relaxed))?;
        Some(&self.shelves[cookie.checked_sub(self.base)? as usize % WIDTH])
    }

    /// Runs `change` with the locks that cover the place of an entry on the directory's list, or on its shelf, and the place of `new`,
    /// which comes there.
    fn at_place(&self, dentry: &Dentry, new: Option<&Dentry>, change: impl FnOnce()) {
        loop {
            // A guess: decided under the locks.
            let (before, after) = (dentry.sib_prev.get(), dentry.sib_next.get());
            let mut at = [Some(dentry), before, after, new].map(|one| one.map_or(0, |one| 1 + shelf_of(one)));
            at.sort_unstable();
            let is_first = |k: usize| at[k] != 0 && (k == 0 || at[k] != at[k - 1]);
            let _held = [0, 1, 2, 3].map(|k| is_first(k).then(|| self.shelves[at[k] - 1].lock.lock()));
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
        let stripe = self.stripe;
        add(&stripe.subdirs, subdirs.cast_unsigned());
        stripe.changes.store(1, Relaxed);
        stripe.time.store(stripe.time.load(Relaxed).max(now), Relaxed);
    }

    /// Whether the stripe may have another subdirectory, so that all stripes together have no more than `most`.
    pub(crate) fn may_add_subdir(&self, most: u32) -> bool {
        self.stripe.subdirs.load(Relaxed).cast_signed() < (most / WIDTH as u32).cast_signed()
    }
}

/// Adds to a word that the caller's lock protects.
pub(crate) fn add(word: &AtomicU32, by: u32) {
    word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The shelf of an entry: one for 32 slots side by side.
fn shelf_of(dentry: &Dentry) -> usize {
    (core::ptr::from_ref(dentry) as usize >> 11) % WIDTH
}
