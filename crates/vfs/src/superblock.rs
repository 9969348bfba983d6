//! The superblock: one file system that is mounted, with the memory of its dentries.
//!
//! # What it is
//! The file system itself, what it was asked once (root, rules of names, whether its names live in the cache), and the slab that
//! its dentries and inodes lie in. Mounts share it; when the last of them has gone, all its entries are taken out of the
//! table, the file system is told of each inode's end, and the memory goes after a grace period.
//!
//! # How it is locked
//! Not at all: nothing here changes. What changes lies in dentries ([`crate::dcache`]).
//!
//! # Where it comes from
//! Linux's `struct super_block`, `generic_shutdown_super`.

use crate::attr::{S_IFDIR, S_IFLNK, S_IFMT};
use crate::cache::{Budget, Kind, SLOT, Share};
use crate::dentry::{CHECKED, COMPLETE, DIR, Dentry, FOLDED, HASHED, INODE, LINK, MOUNTED, SEARCH_ALL, SLOW_DIR};
use crate::fs::{FileSystem, NameRules, Valid};
use crate::inode::Inode;
use crate::inode_table::Inodes;
use crate::listing_cache::Listings;
use crate::miss::{Answer, Asked};
use crate::slot::{Pinned, rest_of};
use crate::tree::Tree;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::shared::Arc;
use sync::{PerCpuArc, SingleFlight, Slab};

/// See the [module documentation](self).
pub(crate) struct SuperBlock {
    tree: PerCpuArc<Tree>,
    pub(crate) fs: Box<dyn FileSystem>,
    pub(crate) slab: Arc<Slab<Dentry>>,
    /// Where negative entries lie.
    negative_slab: Arc<Slab<Dentry>>,
    /// The slabs have limits: the names are not the file system's data.
    pub(crate) is_limited: bool,
    entries: Share,
    negatives: Share,
    /// Whole listings may be kept.
    pub(crate) fs_lists: bool,
    pub(crate) listings: Listings,
    root: Pinned,
    /// Flags that each of its directories has: [`COMPLETE`], [`FOLDED`], [`SLOW_DIR`].
    pub(crate) dir_flags: u64,
    pub(crate) entry_size: i64,
    /// The number by which `stat(2)` tells file systems apart.
    pub(crate) dev: u64,
    pub(crate) rules: Option<Box<dyn NameRules>>,
    /// [`FileSystem::open`] and [`FileSystem::release`] are called.
    pub(crate) tells_opens: bool,
    /// [`FileSystem::permission`] is asked.
    pub(crate) own_permissions: bool,
    pub(crate) default_valid: Valid,
    pub(crate) inodes: Inodes,
    /// Mounts that show it; each holds the place that it shows first.
    pub(crate) mounted: AtomicU32,
    pub(crate) versions: Versions,
    /// How often the file system said that something changed.
    pushed: AtomicU32,
    /// Lookups that the file system is at.
    pub(crate) flights: SingleFlight<Asked, Answer>,
}

/// How often the entries of a directory changed, in the cache of a file system that keeps its own names. Directories share counters
/// by chance; who samples one may be told of a change that was another's.
pub(crate) struct Versions(Box<[AtomicU32; VERSIONS]>);

/// How many counters of changes there are.
const VERSIONS: usize = 256;

impl Versions {
    fn new() -> Self {
        Self(Box::new(core::array::from_fn(|_| AtomicU32::new(0))))
    }

    fn counter(&self, dir: &Dentry) -> &AtomicU32 {
        let line = core::ptr::from_ref(dir) as usize >> 6;
        &self.0[(line ^ line >> 8) % VERSIONS]
    }

    /// The state of the locked directory's counter.
    pub(crate) fn of(&self, dir: &Dentry) -> u32 {
        // ORDERING: Acquire, pairs with the Release of `bump`: an invalidation that was counted is seen.
        self.counter(dir).load(Acquire)
    }

    /// Counts a change.
    pub(crate) fn bump(&self, dir: &Dentry) {
        // ORDERING: Release, pairs with the Acquire of `of`.
        self.counter(dir).fetch_add(1, Release);
    }

    /// Counts a change in every directory.
    pub(crate) fn bump_all(&self) {
        // ORDERING: Release, as in `bump`.
        for counter in self.0.iter() {
            counter.fetch_add(1, Release);
        }
    }
}

/// What an instance's caches hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Entries in the table, to within 64 for each thread; of all file systems of the tree.
    pub entries: usize,
    /// Bytes of dentries and inodes, in use or ready for use; the system's memory is taken 2 MiB at a time.
    pub slot_bytes: usize,
    /// Bytes of the hash table.
    pub table_bytes: usize,
    /// Buckets of the hash table.
    pub buckets: usize,
    /// Dentries that are in use, named or held; the root is one. Counted by looking at all of them.
    pub live_dentries: usize,
    /// Bytes that entries take of their budget; 0 where the names are the file system's data.
    pub entry_bytes: u64,
    /// Bytes that negative entries take of theirs.
    pub negative_bytes: u64,
    /// Bytes that listings take of theirs.
    pub listing_bytes: u64,
    /// Entries and negative entries that were evicted for want of room.
    pub evicted: u64,
    /// Slots that were looked at to find those.
    pub looked: u64,
    /// The most slots that one call has looked at.
    pub longest_look: u64,
    /// Misses that were answered by a listing.
    pub answered_by_listing: u64,
    /// References on dentries beyond the one that each name holds on itself and those of mounts.
    pub held: usize,
}

impl core::ops::Deref for SuperBlock {
    type Target = Tree;

    #[inline(always)]
    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl SuperBlock {
    /// `is_first`: the tree's root, which may have a huge page from the first; others begin small, for there may be many.
    pub(crate) fn new(tree: PerCpuArc<Tree>, fs: Box<dyn FileSystem>, budget: Budget, is_first: bool) -> Self {
        let rules = fs.name_rules();
        let complete = if fs.names_in_cache() { COMPLETE } else { 0 };
        let folded = if rules.is_some() { FOLDED } else { 0 };
        let (own_permissions, default_valid) = (fs.own_permissions(), fs.default_valid());
        let slow = if own_permissions { SLOW_DIR } else { 0 };
        let entry_size = i64::try_from(fs.entry_size()).unwrap_or(0);
        let dir_flags = complete | folded | slow;
        let (entries, negatives) = (Share::new(budget.entries), Share::new(budget.negatives));
        let slab = Arc::new(if is_first { Slab::new() } else { Slab::small() });
        let negative_slab = Arc::new(Slab::small());
        if complete == 0 {
            slab.set_limit(entries.slots());
            negative_slab.set_limit(negatives.slots());
            entries.charge(SLOT as i64);
        }
        let inodes = Inodes::new(complete == 0);
        let root = {
            let dentry: &Dentry = slab.alloc();
            let inode = &rest_of(dentry).inode;
            let new = fs.root();
            inode.begin(&new.attr, new.node);
            inodes.add(&tree.domain, inode);
            inode.slot_users.store(2, Relaxed);
            dentry.set_entry(&tree.domain, dentry, 0, b"");
            dentry.set_object(object_of(inode, new.attr.mode, dir_flags) | HASHED);
            dentry.count.revive(1);
            Pinned::from_counted(dentry)
        };
        let dev = tree.next_number();
        Self {
            inodes,
            mounted: AtomicU32::new(0),
            negative_slab,
            is_limited: complete == 0,
            entries,
            negatives,
            tells_opens: fs.wants_opens(),
            fs_lists: complete == 0 && fs.caches_listings(),
            listings: Listings::new(budget.listings),
            versions: Versions::new(),
            pushed: AtomicU32::new(0),
            flights: SingleFlight::new(),
            tree,
            fs,
            slab,
            root,
            dir_flags,
            entry_size,
            dev,
            rules,
            own_permissions,
            default_valid,
        }
    }

    pub(crate) fn tree(&self) -> &PerCpuArc<Tree> {
        &self.tree
    }

    pub(crate) fn root(&self) -> &Dentry {
        self.root.get()
    }

    /// How often the file system said that something changed.
    pub(crate) fn pushes(&self) -> u32 {
        // Relaxed: the fences around it order it.
        self.pushed.load(Relaxed)
    }

    /// Counts a push of the file system.
    pub(crate) fn count_push(&self) {
        // Relaxed: as above.
        self.pushed.fetch_add(1, Relaxed);
    }

    /// Calls `f` with every dentry, in use or not.
    pub(crate) fn for_each<'s>(&'s self, mut f: impl FnMut(&'s Dentry)) {
        self.slab.for_each(&mut f);
        self.negative_slab.for_each(&mut f);
    }

    /// The slab of either kind.
    pub(crate) fn slab_of(&self, kind: Kind) -> &Slab<Dentry> {
        match kind {
            Kind::Entry => &self.slab,
            Kind::Negative => &self.negative_slab,
        }
    }

    /// How full the slab of either kind is.
    pub(crate) fn share(&self, kind: Kind) -> &Share {
        match kind {
            Kind::Entry => &self.entries,
            Kind::Negative => &self.negatives,
        }
    }

    /// Whether no more than so many mounts show it.
    pub(crate) fn is_mounted_at_most(&self, mounts: usize) -> bool {
        self.mounted.load(Relaxed) as usize <= mounts
    }

    /// Whether one of its dentries lies at this address. Looks at all of them.
    pub(crate) fn has_dentry(&self, address: u64) -> bool {
        let mut found = false;
        self.for_each(|dentry| found |= core::ptr::from_ref(dentry) as u64 == address);
        found
    }

    /// Counts everything. Right only while nothing changes.
    pub(crate) fn stats(&self) -> CacheStats {
        let guard = self.domain.read();
        let (table_bytes, buckets) = self.table().reserved(&guard);
        let mut stats = CacheStats {
            entries: self.table().len_hint(),
            slot_bytes: self.slab.touched_bytes() + self.negative_slab.touched_bytes(),
            entry_bytes: self.entries.used(),
            negative_bytes: self.negatives.used(),
            listing_bytes: self.listings.used(),
            evicted: self.entries.evicted.load(Relaxed) + self.negatives.evicted.load(Relaxed),
            looked: self.entries.looked.load(Relaxed) + self.negatives.looked.load(Relaxed),
            longest_look: self.entries.longest.load(Relaxed).max(self.negatives.longest.load(Relaxed)),
            answered_by_listing: self.listings.answered.load(Relaxed),
            table_bytes,
            buckets,
            ..CacheStats::default()
        };
        self.for_each(|dentry| {
            let count = dentry.count.count() as usize;
            if !dentry.count.is_dead() {
                stats.live_dentries += 1;
                stats.held += count - usize::from(dentry.has(HASHED));
            }
        });
        stats.held = stats.held.saturating_sub(self.mounted.load(Relaxed) as usize);
        stats
    }
}

impl Drop for SuperBlock {
    fn drop(&mut self) {
        // No mount and so no handle is left: each dentry is held by its name alone. Walks may still stand on them.
        self.for_each(|dentry| {
            if dentry.has(HASHED) && !core::ptr::eq(dentry, self.root.get()) {
                self.unhash_last(dentry);
            }
        });
        self.for_each(|dentry| {
            if dentry.count.try_kill(1) {
                self.bury(dentry);
            }
        });
        self.tree.domain.defer_drop(Box::new((self.inodes.table(), self.slab.clone(), self.negative_slab.clone())));
        self.tree.domain.flush();
    }
}

/// The object word for `inode`, without [`HASHED`]; `dir_flags` are those of its superblock's directories.
pub(crate) fn object_of(inode: &Inode, mode: u32, dir_flags: u64) -> u64 {
    let flags = match mode & S_IFMT {
        S_IFDIR => DIR | dir_flags | search_flag(mode, dir_flags),
        S_IFLNK => LINK,
        _ => 0,
    };
    core::ptr::from_ref(inode) as u64 | flags
}

/// [`SEARCH_ALL`], if everyone may search a directory of `mode` and nothing else in its object word asks for a closer look.
fn search_flag(mode: u32, object: u64) -> u64 {
    let plain = object & (MOUNTED | CHECKED | FOLDED | SLOW_DIR) == 0;
    if mode & 0o111 == 0o111 && plain { SEARCH_ALL } else { 0 }
}

/// Changes flags of a directory's object word, and keeps [`SEARCH_ALL`] what they and the mode say.
pub(crate) fn change_dir_flags(dentry: &Dentry, clear: u64, set: u64) {
    dentry.update_object(|object| {
        let object = object & !clear | set;
        let mode = crate::slot::inode_of(dentry, object).map_or(0, Inode::mode);
        object & !SEARCH_ALL | if object & INODE == 0 { 0 } else { search_flag(mode, object) }
    });
}

impl core::fmt::Debug for SuperBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SuperBlock").field("dev", &self.dev).finish_non_exhaustive()
    }
}

/// What is done once with a superblock that is shared.
pub(crate) trait Introduce {
    /// Hands the file system its [`crate::Invalidator`].
    fn introduce(&self);
}

impl Introduce for Arc<SuperBlock> {
    fn introduce(&self) {
        self.fs.mounted(crate::Invalidator::new(Arc::downgrade(self)));
    }
}
