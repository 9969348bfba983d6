//! The superblock: one file system that is mounted, with the memory of its dentries.
//!
//! # What it is
//! A superblock has the file system itself, the file system's constant properties (root, rules of
//! names, whether its names live in the cache), and the slab of its dentries and inodes. Mounts
//! share the superblock. After the last mount, the superblock takes all its entries out of the
//! table, calls the file system's `evict` for each inode, and frees the memory after a grace
//! period.
//!
//! # How it is locked
//! No lock: each field is constant after the mount, is an atomic, or has its own lock, as in its
//! line. Dentries hold the mutable state ([`crate::cache::insert`]).
//!
//! # Where it comes from
//! Linux's `struct super_block`, `generic_shutdown_super`.

use crate::base::name::Named;
use crate::base::valid::Valid;
use crate::base::workers::{THREADS, Workers};
use crate::cache::acls::acls_of;
use crate::cache::budget::{Budget, SLOT, SlotKind};
use crate::cache::end::LatePuts;
use crate::cache::flight::{LookupKey, LookupResult};
use crate::cache::inode_table::Inodes;
use crate::cache::listings::Listings;
use crate::cache::name_locks::NameLockTable;
use crate::cache::reclaim::{Looks, Share};
use crate::cache::sharded::{SLOTS, ShardedDirs};
use crate::cache::shared_budget::Limits;
use crate::cache::tree::Tree;
use crate::fs::invalidator::Invalidator;
use crate::fs::{
    Attributes, CachedNames, FileSystem, FsTraits, Modes, NameRules, NameStore, NewInode, Opens, OwnNames,
};
use crate::slots::dentry::Dentry;
use crate::slots::inode::{Inode, Kept};
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::slot::{Both, DeadDentry, DentryRef, InodeTable, SlotMemory, UnusedSlot, cold_part};
use crate::slots::versions::Versions;
use crate::slots::whole_path::Kind;
use prim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use std::borrow::Cow;
use sync::{OnceBox, PerCpuArc, SingleFlight, Slab};

/// See the [module documentation](self).
pub(crate) struct SuperBlock {
    /// Constant.
    tree: PerCpuArc<Tree>,
    /// Constant.
    fs: Box<dyn FileSystem>,
    /// Constant.
    pub(crate) type_name: Cow<'static, str>,
    /// Whether the slabs have limits: [`NameStore::FileSystem`]. Constant.
    pub(crate) is_evictable: bool,
    /// Only with limits. Constant; counters in it are atomic.
    pub(crate) shares: Option<Box<Both<Share>>>,
    /// Constant.
    pub(crate) limits: Limits,
    /// Whether whole listings may be cached. Constant.
    fs_lists: bool,
    /// Protected by its own lock.
    pub(crate) listings: Listings,
    /// Whether the file system listed names without inodes, at the last request for both. Atomic: a
    /// hint.
    lists_names_only: AtomicBool,
    /// Constant.
    root: DentryRef,
    /// Flags of each of its directories: `COMPLETE`, `FOLDED`. Constant.
    pub(crate) dir_flags: ObjectFlags,
    /// [`CachedNames::entry_size`]. Constant.
    pub(crate) entry_size: i64,
    /// Constant.
    pub(crate) rules: Option<Box<dyn NameRules>>,
    /// Whether names are created, renamed and removed in the walk's read section: [`CachedNames::never_waits`]. Constant.
    pub(crate) never_waits: bool,
    /// The directories that several threads change at once (see [`CachedNames::changes_in_parallel`]), or in which they look
    /// names up: made when a thread has first waited for the lock of a directory. `None` inside if there are none ever. Protected by
    /// its own locks.
    pub(super) sharded_dirs: OnceBox<Option<ShardedDirs>>,
    /// The most directories that are sharded at a time. Constant.
    pub(super) most_sharded: usize,
    /// Constant.
    pub(crate) opens: Opens,
    /// See [`FsTraits::reflinks`]. Constant.
    pub(crate) reflinks: u32,
    /// Whether the file system itself keeps modes and ACLs: [`Modes::FileSystem`]. Constant.
    pub(crate) fs_keeps_modes: bool,
    /// Whether it does, and the VFS obeys the ACLs that it reads from the file system. Constant.
    pub(crate) fs_applies_acls: bool,
    /// [`FsTraits::acls`]. Constant.
    pub(crate) fs_has_acls: bool,
    /// Whether changes return attributes: [`Attributes::FileSystem`]. Constant.
    pub(crate) fs_returns_attributes: bool,
    /// The kind of its inodes' attributes. Constant.
    pub(crate) inode_kept: Kept,
    /// [`OwnNames::valid`]. Constant.
    default_valid: Valid,
    /// The shortest time of validity that the file system gave. Atomic: it only falls.
    ttl_ns: AtomicU64,
    /// Protected by its own locks.
    pub(crate) inodes: Inodes,
    /// Mounts of it; each holds a reference on its root dentry, whose count panics at 2^31. Atomic: a count.
    pub(crate) mounted: AtomicU32,
    /// The number of its mounts that are in a namespace.
    shown: AtomicU32,
    /// Atomic: written under the lock of the directory or of the name.
    pub(crate) versions: Versions,
    /// How often the file system invalidated something. 64 bits: a request that hangs may see any number of them. Atomic: ordered by
    /// the fences of its readers and writers.
    invalidated: AtomicU64,
    /// The names that are locked, if changes lock names: [`OwnNames::remote`]. Protected by its own lock.
    pub(crate) name_locks: Option<Box<NameLockTable>>,
    /// Lookups in progress; made with the first. Protected by its own locks.
    flights: OnceBox<SingleFlight<LookupKey, LookupResult>>,
    /// The threads of lookups with deadlines. Protected by its own lock.
    pub(crate) lookups: Workers,
    /// Protected by its own lock.
    pub(super) late_puts: LatePuts,
    /// Constant.
    memory: Memory,
}

/// The contents of an instance's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CacheStats {
    /// Entries in the table, of all file systems of the tree; exact unless names are added or
    /// removed meanwhile.
    pub entries: usize,
    /// Bytes of dentries and inodes, used or free; memory is taken from the system in units of 2 MiB.
    pub slot_bytes: usize,
    /// Bytes of the hash table.
    pub table_bytes: usize,
    /// Buckets of the hash table.
    pub buckets: usize,
    /// Dentries in use, with a name or a reference; the root is one. Counted by a pass over all slots.
    pub live_dentries: usize,
    /// Bytes of entries, counted against their budget; 0 where the names are the file system's data.
    pub entry_bytes: u64,
    /// Bytes of negative entries, counted against their budget.
    pub negative_bytes: u64,
    /// Bytes of listings, counted against their budget.
    pub listing_bytes: u64,
    /// Entries and negative entries that were evicted to make room.
    pub evicted: u64,
    /// Slots that were examined for these evictions.
    pub looked: u64,
    /// The most slots that one call has examined.
    pub longest_look: u64,
    /// Misses that a cached listing answered.
    pub answered_by_listing: u64,
    /// References on dentries, without the one of each name on itself and the references of mounts.
    pub held: usize,
    /// The limits of the three kinds of bytes, as they hold: a small budget is raised to the least. `None` where the names are
    /// the file system's data, which has no limit here.
    pub budget: Option<Budget>,
}

impl core::ops::Deref for SuperBlock {
    type Target = Tree;

    #[inline(always)]
    fn deref(&self) -> &Tree {
        &self.tree
    }
}

/// Returns how many locks, and counters of changes, the cache of a file system has that keeps its own names: for the first file
/// system of a tree many more than CPUs, so that threads with different files seldom meet; for each other one, of which a tree may
/// have thousands, fewer. (loom tracks every lock.)
fn width(is_evictable: bool, is_first: bool) -> usize {
    match (is_evictable && !cfg!(loom), is_first) {
        (false, _) => 1,
        (true, true) => 256,
        (true, false) => 16,
    }
}

impl SuperBlock {
    /// `is_first`: the tree's root file system, which may start with a huge page. Others start small, since
    /// there may be many.
    pub(crate) fn new(tree: PerCpuArc<Tree>, fs: Box<dyn FileSystem>, limits: Limits, is_first: bool) -> Self {
        let FsTraits { type_name, names, name_rules: rules, opens, acls, reflinks, .. } = tree.traits_of(&*fs);
        let (cached, own) = match names {
            NameStore::Cache(cached) => (Some(cached), OwnNames::default()),
            NameStore::FileSystem(own) => (None, own),
        };
        let (is_evictable, dir_flags) = (cached.is_none(), dir_flags(cached.is_none(), rules.is_some()));
        let CachedNames { entry_size, never_waits, changes_in_parallel } = cached.unwrap_or_default();
        let OwnNames { valid: default_valid, keeps_listings, remote, attributes, modes } = own;
        let inode_kept = Kept { is_reported: attributes != Attributes::Cache, is_from_birth: !is_evictable };
        let width = width(is_evictable, is_first);
        let inodes = Inodes::new(&tree.domain, is_evictable, width);
        let slots = SlotMemory::new(tree.next_number(), is_first);
        let shares = is_evictable.then(|| {
            let entries = Share::new(&limits, SlotKind::Entry);
            slots.slabs.entries.set_limit(entries.slots());
            // The root takes a slot.
            entries.charge(SLOT as i64);
            Box::new(Both { entries, negatives: OnceBox::none() })
        });
        let memory = Memory { tree: tree.clone(), inodes: inodes.table.clone(), slots };
        // The file system may panic.
        let root = {
            let (new, dentry) = (fs.root(), UnusedSlot::take(&memory.slots.slabs.entries).dentry());
            let inode = cold_part(dentry).inode.begin(&new.attr, new.node, inode_kept);
            inode.begin_acls(&tree.domain, acls_of(&new));
            inodes.add(&tree.domain, &inode);
            inode.slot_users.store(2, Relaxed);
            dentry.set_entry(&tree.domain, dentry, Named::new(b"", 0));
            // The root has no name that expires, but attributes that do: walks must look at them.
            dentry.cookie.store(u64::MAX, Relaxed);
            inode.set_valid(if new.valid == Valid::UntilInvalidated { default_valid } else { new.valid });
            let (has_ttl, mode) = (inode.has_ttl(), new.attr.mode);
            let object = Object::of(inode, mode, dir_flags).with(ObjectFlags::HASHED);
            dentry.set_object(if has_ttl { object.with_expiry(mode) } else { object });
            DentryRef::first(&memory.slots, dentry)
        };
        Self {
            inodes,
            mounted: AtomicU32::new(0),
            shown: AtomicU32::new(0),
            is_evictable,
            never_waits,
            most_sharded: if changes_in_parallel || is_evictable { SLOTS[usize::from(!is_first)] } else { 0 },
            sharded_dirs: OnceBox::none(),
            shares,
            opens,
            reflinks,
            fs_keeps_modes: modes != Modes::Cache,
            inode_kept,
            fs_applies_acls: modes == (Modes::FileSystem { applies_acls: true }),
            fs_has_acls: acls,
            fs_returns_attributes: attributes == (Attributes::FileSystem { with_changes: true }),
            fs_lists: keeps_listings,
            listings: Listings::new(memory.slots.dev, limits.budget.listings, limits.listings()),
            limits,
            lists_names_only: AtomicBool::new(false),
            versions: Versions::new(width),
            invalidated: AtomicU64::new(0),
            name_locks: remote.then(Box::default),
            flights: OnceBox::none(),
            lookups: Workers::new("lightfoot-fetch", THREADS),
            tree,
            fs,
            type_name,
            root,
            dir_flags,
            entry_size: i64::try_from(entry_size).unwrap_or(0),
            rules,
            default_valid,
            ttl_ns: AtomicU64::new(if let Valid::For(ns) = default_valid { ns } else { u64::MAX }),
            late_puts: LatePuts::default(),
            memory,
        }
    }

    /// Hands the file system its [`Invalidator`]: once, when it is shared.
    pub(crate) fn introduce(shared: &Arc<Self>) {
        shared.limits.shared.iter().for_each(|budget| budget.join(shared.slots().dev, &**shared));
        shared.fs().mounted(Invalidator::new(Arc::downgrade(shared)));
    }

    pub(crate) fn tree(&self) -> &PerCpuArc<Tree> {
        &self.tree
    }

    /// Returns the memory of its dentries and inodes.
    #[inline(always)]
    pub(crate) fn slots(&self) -> &SlotMemory {
        &self.memory.slots
    }

    pub(crate) fn root(&self) -> &Dentry {
        self.root.get(self.slots())
    }

    /// Returns the file system, for a call that may block: not inside a read section, which would
    /// make every grace period of the tree wait for it, unless it never waits.
    #[inline(always)]
    pub(crate) fn fs(&self) -> &dyn FileSystem {
        debug_assert!(self.never_waits || !self.tree.domain.is_reading(), "a call inside a read section");
        &*self.fs
    }

    /// Returns how often the file system invalidated something.
    pub(crate) fn invalidations(&self) -> u64 {
        // Relaxed: the fences around it order it.
        self.invalidated.load(Relaxed)
    }

    /// Counts an invalidation by the file system.
    pub(crate) fn count_invalidation(&self) {
        // Relaxed: as above.
        self.invalidated.fetch_add(1, Relaxed);
    }

    /// Sets for how long the file system's answer about `inode` is valid.
    #[inline(always)]
    pub(crate) fn set_valid(&self, inode: &Inode, valid: Valid) {
        self.note_valid(valid);
        inode.set_valid(valid);
    }

    /// Notes the shortest time of validity.
    #[inline(always)]
    pub(crate) fn note_valid(&self, valid: Valid) {
        if let Valid::For(ns) = valid {
            // Relaxed: a figure by itself; seldom written.
            if ns < self.ttl_ns.load(Relaxed) {
                self.ttl_ns.fetch_min(ns, Relaxed);
            }
        }
    }

    /// Returns whether an answer that is put into the cache may be used afterwards.
    pub(crate) fn keeps_answers(&self) -> bool {
        self.is_evictable && self.ttl_ns.load(Relaxed) != 0
    }

    /// Returns for how long new entries and negative entries of `dir` are valid: no longer than the answers about the directory.
    pub(crate) fn valid_in(&self, dir: &Dentry) -> Valid {
        match (self.default_valid, dir.inode()) {
            (Valid::UntilInvalidated, Some(inode)) => self.valid_of(inode),
            (valid, _) => valid,
        }
    }

    /// Returns for how long an answer about `inode` is valid. If it is valid for a time, this is the
    /// shortest time that the file system gave.
    pub(crate) fn valid_of(&self, inode: &Inode) -> Valid {
        if inode.has_ttl() { Valid::For(self.ttl_ns.load(Relaxed)) } else { Valid::UntilInvalidated }
    }

    /// Returns whether a listing of the directory may be cached: nothing revalidates one, so only
    /// if the file system reports the directory's changes.
    pub(crate) fn keeps_listing_of(&self, dir: &Inode) -> bool {
        self.fs_lists && !dir.has_ttl()
    }

    /// Returns whether the file system listed names without inodes, at the last request for both.
    pub(crate) fn lists_names_only(&self) -> bool {
        // Relaxed, here and below: a hint.
        self.lists_names_only.load(Relaxed)
    }

    /// Notes the result of such a listing.
    pub(crate) fn note_listing(&self, names_only: bool) {
        if self.lists_names_only() != names_only {
            self.lists_names_only.store(names_only, Relaxed);
        }
    }

    /// Calls `f` with every dentry, in use or not.
    pub(crate) fn for_each<'s>(&'s self, mut f: impl FnMut(&'s Dentry)) {
        self.slots().slabs.iter().for_each(|slab| slab.for_each(&mut f));
    }

    /// Returns the slab of entries, or of negative entries.
    pub(crate) fn slab_of(&self, kind: SlotKind) -> &Slab<Dentry> {
        let slabs = &self.slots().slabs;
        match kind {
            SlotKind::Entry => &slabs.entries,
            SlotKind::Negative => slabs.negatives.get_or_make(|| {
                let slab = Slab::small();
                slab.set_limit(self.shares.as_ref().map_or(usize::MAX, |_| self.share(kind).slots()));
                slab
            }),
        }
    }

    /// Returns the lookups in progress.
    pub(crate) fn flights(&self) -> &SingleFlight<LookupKey, LookupResult> {
        // One shard beside one counter, so that a model does not choose by an address; else two for each.
        self.flights.get_or_make(|| SingleFlight::new(2 * self.versions.width() - self.versions.width() % 2))
    }

    /// Returns how full the slab of slots of this `kind` is, which has a limit.
    pub(crate) fn share(&self, kind: SlotKind) -> &Share {
        let shares = self.shares.as_deref().expect("a cache with limits");
        match kind {
            SlotKind::Entry => &shares.entries,
            SlotKind::Negative => shares.negatives.get_or_make(|| Share::new(&self.limits, kind)),
        }
    }

    /// Counts a mount of it that comes to a namespace (1), or leaves it (-1).
    pub(crate) fn count_shown(&self, by: i32) {
        // Relaxed: a count by itself. Of two threads that remove the last two mounts, one reads 0
        // afterwards.
        self.shown.fetch_add(by.cast_unsigned(), Relaxed);
    }

    /// Returns whether a mount of it is in a namespace.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.load(Relaxed) != 0
    }

    /// Returns whether one of its dentries lies at this address. Examines all of them.
    pub(crate) fn has_dentry(&self, address: u64) -> bool {
        let mut found = false;
        self.for_each(|dentry| found |= core::ptr::from_ref(dentry) as u64 == address);
        found
    }

    /// Counts everything. Exact only while nothing changes.
    pub(crate) fn stats(&self) -> CacheStats {
        let guard = self.domain.read();
        let (table_bytes, buckets) = self.table().reserved(&guard);
        let shares = || self.shares.iter().flat_map(|shares| shares.iter());
        let looks = shares().map(Share::looks).fold(Looks::default(), Looks::and);
        let used: Vec<u64> = shares().map(Share::used).chain([0, 0]).collect();
        let mut stats = CacheStats {
            entries: self.table().count(),
            slot_bytes: self.slots().slabs.iter().map(|slab| slab.touched_bytes()).sum(),
            entry_bytes: used[0],
            negative_bytes: used[1],
            listing_bytes: self.listings.used(),
            evicted: looks.evicted,
            looked: looks.looked,
            longest_look: looks.longest,
            answered_by_listing: self.listings.answered.load(Relaxed),
            table_bytes,
            buckets,
            budget: self.is_evictable.then_some(self.limits.budget),
            ..CacheStats::default()
        };
        self.for_each(|dentry| {
            let count = dentry.count.count() as usize;
            if !dentry.count.is_dead() {
                stats.live_dentries += 1;
                stats.held += count - usize::from(dentry.object().is_hashed());
            }
        });
        stats.held =
            stats.held.saturating_add_signed(self.sharded_holds()).saturating_sub(self.mounted.load(Relaxed) as usize);
        stats
    }
}

impl Drop for SuperBlock {
    fn drop(&mut self) {
        self.limits.shared.iter().for_each(|budget| budget.leave(self.slots().dev));
        self.end_late_puts();
        // No mount and so no handle exists: only its name holds each dentry. Walks may still stand on them.
        self.for_each(|dentry| {
            if dentry.object().is_hashed() && !core::ptr::eq(dentry, self.root()) {
                self.unhash_last(dentry);
            }
        });
        self.for_each(|dentry| {
            // (The exchange alone would take memory for slots that have none any more.)
            if !dentry.count.is_dead()
                && let Some(dead) = DeadDentry::kill(dentry, 1)
            {
                self.bury(dead);
            }
        });
        // Their drops are code of the file system, which must not stop the end of this superblock.
        let (fs, rules) = (core::mem::replace(&mut self.fs, Box::new(Gone)), self.rules.take());
        self.contain(|| drop(fs));
        self.contain(|| drop(rules));
    }
}

/// Returns the flags of each directory of a file system.
fn dir_flags(has_own_names: bool, has_rules: bool) -> ObjectFlags {
    let mut flags = ObjectFlags::empty();
    flags.set(ObjectFlags::COMPLETE, !has_own_names);
    flags.set(ObjectFlags::FOLDED, has_rules);
    flags
}

/// Stands for a file system that was dropped.
struct Gone;

impl FileSystem for Gone {
    fn root(&self) -> NewInode {
        NewInode::default()
    }
}

/// The memory of a superblock's dentries and inodes, on which walks of other file systems may
/// stand: they share chains of the table. A separate value, so that it is freed after a grace
/// period however its superblock ends.
struct Memory {
    tree: PerCpuArc<Tree>,
    inodes: Option<Arc<InodeTable>>,
    slots: SlotMemory,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Before the grace period, so that no lookup by whole path uses an address in this memory after it.
        drop(self.tree.paths.change(Kind::Hard));
        self.tree.domain.defer_drop(Box::new((self.inodes.take(), self.slots.clone())));
        self.tree.domain.flush();
    }
}

impl core::fmt::Debug for SuperBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SuperBlock").field("dev", &self.slots().dev).finish_non_exhaustive()
    }
}
