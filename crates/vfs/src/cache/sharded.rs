//! Directories that several threads change at once: a lock for each share of the names.
//!
//! # What it is
//! 1. While one thread at a time changes a directory, the directory's lock covers all its names.
//! 2. Where threads often wait for that lock, or sleep while others take it again and again, the
//!    directory is *sharded*: each name belongs to one of [`WIDTH`] *shards*, by its hash. The
//!    shard's lock covers the creation and removal of the name, and the shard's share of the
//!    directory's length, links and times. So threads that change different names write no common
//!    line.
//! 3. An entry that is made while the directory is sharded is put on a [`ShardList`], chosen by the
//!    entry's address. The slots that a thread gets lie side by side, so it mostly works on shard
//!    lists that no other thread uses.
//! 4. Older entries stay on the directory's list. To take one off, a thread takes the locks of the
//!    shard lists that the entry and its two neighbours would have.
//! 5. A merge sorts the entries of the shard lists and puts them before the directory's list, whose
//!    cookies are lower.
//! 6. An entry that is renamed over another entry takes the other entry's cookie, and its place on
//!    the shard list. So the cookie, and not the address, shows which shard list an entry is on.
//! 7. A change of one name, or a rename of two ([`name_pair`]), is the same code with either lock
//!    ([`NameGuard`]). All other code needs the directory *whole*: [`SuperBlock::lock_dir`] takes
//!    its lock, merges the shards, and ends the split.
//! 8. A superblock has some arrays of shards. The address of a directory decides which array the
//!    directory may use. If another directory has this array, that other directory is merged.
//!
//! A directory of a file system that keeps its own names is sharded for lookups alone
//! ([`lookups`]).
//!
//! # How it is locked
//! 1. The lock of a sharded directory is *lent* ([`sync::LockGuard::lend`]), so that only code that
//!    expects sharding takes it.
//! 2. `owner`, the directory of the slot, changes under this lock.
//! 3. A thread *closes* the slot under this lock: it clears `is_open`, then takes and releases each
//!    shard's lock. A thread that takes a shard's lock later finds the slot closed. The closing
//!    thread sees all earlier changes in the shards.
//! 4. A thread holds the locks of shard lists only for a moment, and takes several of them by their
//!    order. It takes no other lock under them.
//! 5. A thread that changes a name holds the shard's lock, and has seen under the lock that the
//!    slot is open for the directory. Until it releases the lock the directory keeps its name and
//!    stays sharded: a removal or a merge must close the slot first.
//! 6. The inode of a sharded directory is marked stale. So readers of its attributes call
//!    [`SuperBlock::sharded_attr`], which closes the slot and adds the shards' shares.
//!
//! # Limitations
//! The entries that were made in a sharded directory are merged in one step: some 0.1 us an entry.
//! If the clock was set back while the directory was sharded, the later time is shown.
//!
//! # Where it comes from
//! J. Corbet, "Parallel directory operations" (LWN, 2025), for the problem; Linux's `percpu-rwsem`
//! for the closing (rule 3), but without a barrier of all CPUs.

mod lookups;
mod name_pair;

pub(crate) use lookups::ShardedDirRef;
pub(crate) use name_pair::NamePairGuard;

use crate::base::attr::{Attr, S_IFDIR, S_IFMT};
use crate::base::rank::{Locked, Rank};
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::{Dentry, put_first};
use crate::slots::inode::Inode;
use crate::slots::shard::{Names, Shard, ShardAt, ShardList, WIDTH};
use crate::slots::slot::{DentryPtr, DetachedGuard, Link, dentry_beside};
use prim::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until_bounded;
use sync::rcu::ReadGuard;
use sync::zeroed::Zeroed;
use sync::{Mutex, MutexGuard};

/// The most directories of a superblock that are sharded at a time: of the tree's first superblock,
/// and of others, which may be many.
pub(super) const SLOTS: [usize; 2] = if cfg!(loom) { [1, 1] } else { [32, 4] };

/// How often threads must have waited for a directory's lock in one period before it is sharded. A thread that sleeps has also
/// waited once for each release that woke it in vain: where several threads sleep, each release of the lock counts.
const MANY: u32 = 16;

/// Nanoseconds of a period, as a power of two: 4 ms.
const PERIOD_BITS: u32 = 22;

/// Pauses that a thread in a read section waits for a shard, and how often another thread may be faster.
const TURNS: u32 = 1000;
/// See [`TURNS`].
const TRIES: u32 = 4;

/// More holds than all threads together have on one directory at a time without a count on it.
const MAX_HOLDS: u32 = 1 << 20;

/// An array of shards, and the directory that has it.
#[derive(Default)]
#[repr(align(128))]
struct Slot {
    owner: Link,
    is_open: AtomicBool,
    /// The first cookie of the shard 0.
    base: AtomicU64,
    waits: Waits,
}

/// How often threads waited for the lock of a directory of the slot. On a separate line.
#[derive(Default)]
#[repr(align(128))]
struct Waits {
    /// The period, in the upper half, and the number in it.
    recent: AtomicU64,
    /// How often threads must wait before sharding pays.
    debt: AtomicU64,
}

/// The sharded directories of a superblock: made by a thread that waited for the lock of a directory, before any directory is
/// sharded. So a thread that took the lock of a sharded directory, or saw its stale mark, finds them.
pub(crate) struct ShardedDirs {
    slots: Box<[Slot]>,
    shards: Zeroed<Shard>,
    lists: Zeroed<ShardList>,
}

/// The lock of a name: the lock of its directory, or of its shard.
pub(crate) struct NameGuard<'a> {
    _lock: Locked<'a>,
    pub(crate) names: Option<Names<'a>>,
}

impl<'a> NameGuard<'a> {
    pub(crate) fn new(lock: Locked<'a>, names: Option<Names<'a>>) -> Self {
        Self { _lock: lock, names }
    }
}

/// A name of a sharded directory that this thread locked in the read section of a walk: [`SuperBlock::enter_name`].
///
/// While a shard is locked, a sharded directory that has not lost its own name keeps its slot: a removal must lock all shards.
#[must_use]
pub(crate) struct LockedName {
    dir: DentryPtr,
    at: ShardAt,
    lock: DetachedGuard,
}

/// The sums over the shards of a directory.
#[derive(Default)]
struct Sums {
    children: u32,
    subdirs: u32,
    changes: u32,
    time: i64,
}

/// Returns the shard of a name with the hash `hash`: not by the bits that choose its bucket.
fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % WIDTH
}

/// Returns whether names with these hashes have one shard in a directory.
pub(crate) fn share_shard([one, other]: [u64; 2]) -> bool {
    shard_of(one) == shard_of(other)
}

impl Slot {
    /// Returns whether the slot is open for `dir`. It stays so while the caller has the lock of one
    /// of its shards or shard lists.
    fn serves(&self, dir: &Dentry) -> bool {
        // ORDERING: Acquire, pairs with the Release in `Slot::open`: what was done to the shards before is seen; and with
        // that in `SuperBlock::close`: the raised count is seen.
        self.is_open.load(Acquire) && self.owner.is(dir)
    }

    fn open(&self) {
        // ORDERING: Release, pairs with the Acquire in `Slot::serves`.
        self.is_open.store(true, Release);
    }
}

impl Waits {
    /// Notes that a thread waited. Returns whether sharding pays.
    fn note(&self) -> bool {
        let period = (prim::clock::monotonic_ns() as u64 >> PERIOD_BITS) as u32;
        // Relaxed, here and below: numbers by themselves.
        let count = match self.recent.load(Relaxed) {
            word if (word >> 32) as u32 == period => word as u32 + 1,
            _ => 1,
        };
        self.recent.store(u64::from(period) << 32 | u64::from(count), Relaxed);
        let debt = self.debt.load(Relaxed);
        self.debt.store(debt.saturating_sub(1), Relaxed);
        count >= MANY && debt == 0
    }
}

impl ShardedDirs {
    /// `None` if `count` is 0, or the system has no memory for shards.
    fn new(count: usize) -> Option<Self> {
        let wanted = (count != 0).then_some(count * WIDTH)?;
        let (shards, lists) = (Zeroed::new(wanted)?, Zeroed::new(wanted)?);
        Some(Self { slots: (0..count).map(|_| Slot::default()).collect(), shards, lists })
    }

    fn slot_of(&self, dir: &Dentry) -> usize {
        let line = core::ptr::from_ref(dir) as usize >> 6;
        (line ^ line >> 5 ^ line >> 10) & (self.slots.len() - 1)
    }

    fn slot(&self, dir: &Dentry) -> &Slot {
        &self.slots[self.slot_of(dir)]
    }

    fn shards(&self, slot: usize) -> &[Shard] {
        &self.shards.get()[slot * WIDTH..(slot + 1) * WIDTH]
    }

    fn lists(&self, slot: usize) -> &[ShardList] {
        &self.lists.get()[slot * WIDTH..(slot + 1) * WIDTH]
    }

    fn shard(&self, at: ShardAt) -> &Shard {
        &self.shards(at.slot)[at.shard]
    }

    /// Returns the names of a shard, whose lock the caller has.
    pub(crate) fn names(&self, at: ShardAt) -> Names<'_> {
        // Relaxed: under the shard's lock.
        let base = self.slots[at.slot].base.load(Relaxed);
        Names { shard: self.shard(at), lists: self.lists(at.slot), base }
    }

    pub(crate) fn lock_at(&self, at: ShardAt) -> &Mutex<()> {
        &self.shard(at).lock
    }

    /// Locks the name with the hash `hash` in `dir`. Fails if the directory is not sharded, or if
    /// under the lock its sequence is not `seq`, with which it had its name. Waits for a while if
    /// another thread has the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter<'g>(
        &'g self,
        _guard: &'g ReadGuard<'_>,
        dir: &Dentry,
        seq: u32,
        hash: u64,
    ) -> Option<(MutexGuard<'g, ()>, ShardAt)> {
        let at = self.shard_in(dir, hash)?;
        let held = self.try_at(dir, at)?;
        (!dir.seq.retry(seq)).then_some((held, at))
    }

    /// Takes the lock of a shard, if the directory `dir` has it. Waits for a while if another thread has the lock.
    fn try_at(&self, dir: &Dentry, at: ShardAt) -> Option<MutexGuard<'_, ()>> {
        let lock = self.lock_at(at);
        let wait = || {
            spin_until_bounded(TURNS, || lock.is_free());
            lock.try_lock()
        };
        // A look at the lock before the try would transfer the line twice from another CPU: to read
        // and to write.
        let held = lock.try_lock().or_else(|| (0..TRIES).find_map(|_| wait()))?;
        self.slots[at.slot].serves(dir).then_some(held)
    }

    /// Returns the shard of the name with the hash `hash` in `dir`, if the directory is sharded.
    fn shard_in(&self, dir: &Dentry, hash: u64) -> Option<ShardAt> {
        let slot = self.slot_of(dir);
        self.slots[slot].serves(dir).then(|| ShardAt { slot, shard: shard_of(hash) })
    }
}

impl SuperBlock {
    /// Returns whether all directories are sharded, in a test. Debug builds and models only.
    #[inline(always)]
    pub(crate) fn shards_always(&self) -> bool {
        cfg!(any(debug_assertions, loom)) && self.tree().shards_always && self.most_sharded != 0
    }

    /// Returns the sharded directories, if they were made.
    #[inline(always)]
    pub(crate) fn sharded_dirs(&self) -> Option<&ShardedDirs> {
        self.sharded_dirs.get()?.as_ref()
    }

    /// Locks the directory `dir`, all its names.
    pub(crate) fn lock_dir<'a>(&'a self, dir: &'a Dentry) -> Locked<'a> {
        let lock = self.ranks.lock(Rank::Directory, &dir.lock);
        self.merge(dir);
        lock
    }

    /// As `lock_dir`, beside other locks of directories.
    pub(crate) fn lock_dir_nested<'a>(&'a self, dir: &'a Dentry) -> Locked<'a> {
        let lock = self.ranks.lock_nested(Rank::Directory, &dir.lock);
        self.merge(dir);
        lock
    }

    /// Locks `dentry` if it is a directory that may be sharded: its times and mode are about to
    /// change, but not by its entries.
    pub(crate) fn lock_if_sharded<'a>(&'a self, dentry: &'a Dentry) -> Option<Locked<'a>> {
        (self.sharded_for_changes().is_some() && dentry.object().is_dir()).then(|| self.lock_dir(dentry))
    }

    /// Locks the name with the hash `hash` in the directory `dir`, which the caller holds. If `waited`, a walk found
    /// the directory locked.
    pub(crate) fn lock_name<'a>(&'a self, dir: &'a Dentry, hash: u64, waited: bool) -> NameGuard<'a> {
        let (lock, slot) = self.lock_or_shard(dir, waited);
        let Some((sharded_dirs, slot)) = slot else {
            return NameGuard::new(self.ranks.taken(Rank::Directory, lock), None);
        };
        let at = ShardAt { slot, shard: shard_of(hash) };
        let shard = self.ranks.take(Rank::Directory, sharded_dirs.lock_at(at));
        MutexGuard::lend(lock);
        NameGuard::new(self.ranks.taken(Rank::Directory, shard), Some(sharded_dirs.names(at)))
    }

    /// Locks the name with the hash `hash` in `dir`, if threads change its names by shards, and it
    /// has the sequence `seq` under the lock.
    pub(crate) fn enter_name(&self, guard: &ReadGuard<'_>, dir: &Dentry, seq: u32, hash: u64) -> Option<LockedName> {
        let (lock, at) = self.sharded_for_changes()?.enter(guard, dir, seq, hash)?;
        Some(LockedName { dir: DentryPtr::of(self.slots(), dir), at, lock: DetachedGuard::new(lock) })
    }

    /// Returns the directory, the guard and the shard of a name that [`SuperBlock::enter_name`] locked.
    pub(crate) fn bind_name(
        &self,
        LockedName { dir, at, lock }: LockedName,
    ) -> (&Dentry, MutexGuard<'_, ()>, Names<'_>) {
        let sharded_dirs = self.sharded_dirs().expect("entered before");
        (dir.get(self.slots()), lock.bind(sharded_dirs.lock_at(at)), sharded_dirs.names(at))
    }

    /// Locks the directory `dir`, and shards it if threads often waited for it. Returns its slot if it is sharded. The caller adds the rank
    /// of the lock, or lends it.
    fn lock_or_shard<'a>(
        &'a self,
        dir: &'a Dentry,
        waited: bool,
    ) -> (MutexGuard<'a, ()>, Option<(&'a ShardedDirs, usize)>) {
        let make = || self.sharded_dirs.get_or_make(|| ShardedDirs::new(self.most_sharded)).as_ref();
        let waited = waited.then(make).flatten().map(|sharded_dirs| (sharded_dirs, sharded_dirs.slot(dir)));
        let other = |slot: &Slot| !slot.owner.is(dir);
        let mut wants = waited.filter(|(_, slot)| other(slot) && (slot.waits.note() || self.shards_always()));
        if let Some((sharded_dirs, slot)) = wants {
            self.make_room(sharded_dirs, slot, dir);
        }
        let ranked = self.ranks.acquire(Rank::Directory);
        // A thread that others pass notes it at once: it may sleep for long, and this may be the only thread that sees
        // how often the lock is taken.
        let mut passed = || {
            wants = wants.or_else(|| waited.filter(|(_, slot)| other(slot) && slot.waits.note()));
            wants.is_some()
        };
        let lock = self.ranks.take_by(Rank::Directory, || dir.lock.try_lock(), || dir.lock.lock_noting(&mut passed));
        if let Some((_, slot)) = wants.filter(|(_, slot)| other(slot) && dir.object().is_hashed()) {
            self.shard(slot, dir);
        }
        drop(ranked);
        // Under the lock: another thread may have made them, and sharded the directory, before.
        let sharded_dirs = self.sharded_dirs().filter(|sharded_dirs| sharded_dirs.slot(dir).owner.is(dir));
        (lock, sharded_dirs.map(|sharded_dirs| (sharded_dirs, sharded_dirs.slot_of(dir))))
    }

    /// Returns the attributes of `inode`, if it is the inode of a sharded directory.
    #[cold]
    pub(crate) fn sharded_attr(&self, inode: &Inode) -> Option<Attr> {
        let sharded_dirs = self.sharded_for_changes()?;
        if inode.mode() & S_IFMT != S_IFDIR {
            return None;
        }
        let dir = dentry_beside(inode);
        let slot = sharded_dirs.slot(dir);
        if let Some(attr) = inode.fresh_attr() {
            // The directory was merged meanwhile.
            return Some(attr);
        }
        let _ranked = self.ranks.acquire(Rank::Directory);
        let lock = self.ranks.take(Rank::Directory, &dir.lock);
        if !slot.owner.is(dir) {
            return inode.fresh_attr();
        }
        self.close(sharded_dirs, slot, dir);
        let attr = inode.attr();
        slot.open();
        MutexGuard::lend(lock);
        Some(attr)
    }

    /// Merges the directory that has the slot, if no thread has the directory's lock. The caller
    /// must have no lock of a directory: a thread in a shard may wait for such a lock, to remove
    /// that directory.
    fn make_room(&self, sharded_dirs: &ShardedDirs, slot: &Slot, dir: &Dentry) {
        let locked = || {
            // Keeps the memory of the directory until it is locked.
            let _guard = self.domain.read();
            let other = slot.owner.get().filter(|other| !core::ptr::eq(*other, dir))?;
            let lock = other.lock.try_end()?;
            slot.owner.is(other).then_some((other, lock))
        };
        if let Some((other, _lock)) = locked() {
            self.merge_at(sharded_dirs, slot, other);
        }
    }

    /// Shards the locked directory `dir`, if no other has its slot.
    #[cold]
    #[inline(never)]
    fn shard(&self, slot: &Slot, dir: &Dentry) {
        let Some(inode) = dir.inode() else { return };
        if !slot.owner.claim(dir) {
            return;
        }
        // Relaxed: under the directory's lock. `Slot::open` shows it to others.
        slot.base.store(dir.last_cookie.load(Relaxed) + 1, Relaxed);
        if !self.is_evictable {
            inode.set_sharded(true);
        }
        slot.open();
    }

    /// Merges the locked directory `dir`, if it is sharded.
    #[inline]
    fn merge(&self, dir: &Dentry) {
        if let Some(sharded_dirs) = self.sharded_dirs() {
            let slot = sharded_dirs.slot(dir);
            if slot.owner.is(dir) {
                self.merge_at(sharded_dirs, slot, dir);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn merge_at(&self, sharded_dirs: &ShardedDirs, slot: &Slot, dir: &Dentry) {
        let mut entries: Vec<&Dentry> = Vec::new();
        let mut most_made = 0;
        self.close(sharded_dirs, slot, dir);
        for list in sharded_dirs.lists(sharded_dirs.slot_of(dir)) {
            // Relaxed: no thread is in a shard, so none has a shard list's lock, which shows what they did.
            let _held = list.lock.lock();
            let mut next = list.first.get();
            while let Some(entry) = next {
                entries.push(entry);
                next = entry.sib_next.get();
            }
            list.first.set_option(None);
            most_made = most_made.max(list.made.load(Relaxed));
            list.made.store(0, Relaxed);
        }
        if !self.is_evictable {
            entries.sort_unstable_by_key(|entry| entry.cookie.load(Relaxed));
        }
        for entry in &entries {
            put_first(&dir.first_child, entry);
        }
        dir.last_cookie.store(slot.base.load(Relaxed) + most_made * WIDTH as u64, Relaxed);
        if let Some(inode) = dir.inode().filter(|_| !self.is_evictable) {
            inode.set_sharded(false);
        }
        // The cost of sharding.
        slot.waits.debt.store(WIDTH as u64 / 4, Relaxed);
        slot.owner.set_option(None);
    }

    /// Closes the slot of the locked directory `dir`, and adds the shards' shares to the directory.
    fn close(&self, sharded_dirs: &ShardedDirs, slot: &Slot, dir: &Dentry) {
        if self.is_evictable {
            // After this, threads that find the slot closed return holds to this count.
            dir.count.get_more(MAX_HOLDS);
        }
        // ORDERING: Release, pairs with the Acquire in `Slot::serves`: a thread that finds the slot closed subtracts its hold
        // from a count that was raised. (A thread that takes the lock of a shard or shard list after this one sees it by that.)
        slot.is_open.store(false, Release);
        let (mut sums, slot_number) = (Sums::default(), sharded_dirs.slot_of(dir));
        for shard in sharded_dirs.shards(slot_number) {
            let _held = shard.lock.lock();
            // Relaxed: under the shard's lock.
            let take = |word: &AtomicU32| {
                let value = word.load(Relaxed);
                word.store(0, Relaxed);
                value
            };
            sums.children = sums.children.wrapping_add(take(&shard.children));
            sums.subdirs = sums.subdirs.wrapping_add(take(&shard.subdirs));
            let changes = take(&shard.changes);
            if changes != 0 {
                sums.time =
                    if sums.changes == 0 { shard.time.load(Relaxed) } else { sums.time.max(shard.time.load(Relaxed)) };
                sums.changes |= changes;
            }
            shard.time.store(i64::MIN, Relaxed);
        }
        if self.is_evictable {
            dir.count.put_more(MAX_HOLDS.wrapping_sub(sharded_dirs.take_holds(slot_number)));
        }
        // Relaxed: under the directory's lock.
        dir.children.store(dir.children.load(Relaxed).wrapping_add(sums.children), Relaxed);
        if sums.changes != 0
            && let Some(inode) = dir.inode()
        {
            let entries = i64::from(sums.children.cast_signed());
            inode.entry_changed(entries * self.entry_size, sums.subdirs.cast_signed(), sums.time);
        }
    }
}
