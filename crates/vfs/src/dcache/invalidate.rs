//! Invalidation: a file system reports changes behind the caches.
//!
//! # What it is
//! Stale entries are *expired*: flagged, so that the next walk that reaches one revalidates it before
//! continuing. That takes no lock and waits for nothing. So a file system may invalidate at any time, from
//! any thread, also from inside a request that holds a directory's lock. Running lookups are repeated, since
//! the directories' counters of changes move.
//!
//! # What it is not
//! Removal: an expired entry stays in memory until it is revalidated or evicted. The root of a file system
//! has no name to revalidate; its attributes are requested anew.
//!
//! # Limitations
//! A lookup's answer that overtakes an invalidation is put into the cache and then marked stale. A reader
//! between these two steps may see it once after the invalidation has returned.
//! (`lab/report/tests/torture.rs` allows that case and no other.)
//!
//! # How it is locked
//! Entries are found under RCU. A slot that serves another name by then is expired without need.
//!
//! # Where it comes from
//! FUSE's `notify_inval_entry` and `notify_inval_inode`; `d_invalidate` of network file systems.

use crate::dcache::dentry::Dentry;
use crate::dcache::inode::Inode;
use crate::dcache::superblock::SuperBlock;
use prim::atomic::{Ordering::SeqCst, fence};
use prim::shared::{PlainArc as Arc, Weak};
use sync::Mutex;

/// Reports to a tree's caches that something changed behind them. Keeps nothing alive; after the file
/// system's last unmount it does nothing.
///
/// An invalidation may release the last use of an inode, and of the file system: it may call
/// [`crate::FileSystem::evict`]. So do not hold a lock that `evict` takes.
#[derive(Clone)]
pub struct Invalidator {
    sb: Weak<SuperBlock>,
}

/// A keeper of copies of the cache's contents, such as a FUSE session with the kernel behind it. It is
/// notified of the file systems' invalidations, on the invalidating thread, perhaps inside an RCU section,
/// one at a time. It must not block, nor call the file system.
pub trait Observer: Send + Sync + 'static {
    /// The entry `name` of the directory is stale. `inode`: what the cache has there, whose attributes and contents may be
    /// stale, too.
    fn entry(&self, dir: &Identity, name: &[u8], inode: Option<&Identity>);

    /// The attributes and contents of the inode are stale, and so are the names in it.
    fn inode(&self, inode: &Identity);

    /// Everything is stale.
    fn all(&self);
}

/// The observers of a tree.
#[derive(Default)]
pub(crate) struct Observers(Mutex<Vec<Box<dyn Observing>>>);

/// An observer of any type, if it is still alive.
trait Observing: Send + Sync {
    /// Calls `what` with it; `false` if it was dropped.
    fn notify(&self, what: &dyn Fn(&dyn Observer)) -> bool;

    fn is_alive(&self) -> bool;
}

impl<O: Observer> Observing for Weak<O> {
    fn notify(&self, what: &dyn Fn(&dyn Observer)) -> bool {
        self.upgrade().is_some_and(|observer| {
            what(&*observer);
            true
        })
    }

    fn is_alive(&self) -> bool {
        self.upgrade().is_some()
    }
}

impl Observers {
    pub(crate) fn add<O: Observer>(&self, observer: &Arc<O>) {
        let mut all = self.0.lock();
        // Those that were dropped: a tree without invalidations would keep their memory.
        all.retain(|one| one.is_alive());
        all.push(Box::new(Arc::downgrade(observer)));
    }

    fn notify(&self, what: impl Fn(&dyn Observer)) {
        self.0.lock().retain(|one| one.notify(&what));
    }
}

/// The identity of an inode for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// [`OwnedPlace::identity`](crate::OwnedPlace::identity).
    pub inode: u64,
    /// Inode number: `st_ino`.
    pub ino: u64,
    /// The number of its file system: `st_dev`.
    pub dev: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

impl Identity {
    fn of(sb: &SuperBlock, inode: &Inode) -> Self {
        let attr = inode.attr();
        Self { inode: core::ptr::from_ref(inode) as u64, ino: attr.ino, dev: sb.dev, is_dir: attr.is_dir() }
    }
}

impl Invalidator {
    pub(crate) fn new(sb: Weak<SuperBlock>) -> Self {
        Self { sb }
    }

    /// Counts an invalidation; returns the superblock if it is still mounted.
    fn invalidate(&self) -> Option<Arc<SuperBlock>> {
        let sb = self.sb.upgrade()?;
        sb.count_invalidation();
        // ORDERING: pairs with the fences of `expire_if_invalidated` and of `SuperBlock::renew` (fetch.rs).
        fence(SeqCst);
        Some(sb)
    }

    /// Marks the entry `name` of the directory with the node `dir` stale.
    pub fn entry(&self, dir: u64, name: &[u8]) {
        self.on_nodes(dir, |sb, dir| {
            sb.versions.bump(dir);
            let guard = sb.domain.read();
            let entry = sb.lookup_rcu(&guard, dir, sb.named(name));
            entry.into_iter().for_each(|entry| entry.expire(&sb.paths));
            let inode = entry.and_then(Dentry::inode).map(|inode| Identity::of(sb, inode));
            drop(guard);
            if let Some(dir) = dir.inode() {
                sb.observers.notify(|one| one.entry(&Identity::of(sb, dir), name, inode.as_ref()));
            }
        });
    }

    /// Marks the attributes of the inode `node` stale, and the names in it if it is a directory.
    pub fn inode(&self, node: u64) {
        let Some(sb) = self.invalidate() else { return };
        // Running lookups may find it under any name.
        sb.versions.bump_all();
        drop(sb);
        self.on_nodes(node, |sb, dentry| {
            dentry.expire(&sb.paths);
            if let Some(inode) = dentry.inode() {
                inode.mark_stale();
                sb.observers.notify(|one| one.inode(&Identity::of(sb, inode)));
            }
        });
    }

    /// Marks everything at and below the directory `node` stale. Examines all cached entries.
    pub fn subtree(&self, node: u64) {
        let Some(sb) = self.invalidate() else { return };
        let is_top = |dentry: &Dentry| dentry.inode().is_some_and(|inode| inode.node() == node);
        sb.versions.bump_all();
        sb.for_each(|dentry| {
            if dentry.object().is_hashed() && is_below(dentry, is_top) {
                dentry.expire(&sb.paths);
            }
        });
        sb.observers.notify(|one| one.all());
    }

    /// Everything is stale.
    pub fn all(&self) {
        let Some(sb) = self.invalidate() else { return };
        sb.versions.bump_all();
        sb.for_each(|dentry| {
            if dentry.object().is_hashed() {
                dentry.expire(&sb.paths);
            }
        });
        sb.observers.notify(|one| one.all());
    }

    /// Calls `f` with each cached dentry of the inode `node`.
    fn on_nodes(&self, node: u64, f: impl Fn(&SuperBlock, &Dentry)) {
        let Some(sb) = self.invalidate() else { return };
        let beside = sb.inodes.get(&sb, node).map(|inode| {
            let own = crate::dcache::slot::dentry_beside(&inode);
            let only = !sb.inodes.has_doubles()
                && inode.refs() == 2
                && own.inode().is_some_and(|at| core::ptr::eq::<Inode>(at, &*inode));
            if only {
                f(&sb, own);
            }
            sb.put_inode(inode);
            only
        });
        if beside == Some(false) {
            // Several names, or another than its first: no list has them. Also names that are held after their removal.
            sb.for_each(|dentry| {
                if dentry.inode().is_some_and(|inode| inode.node() == node) {
                    f(&sb, dentry);
                }
            });
        }
    }
}

/// Whether `is_top` holds for `dentry` or a dentry above it. If something moves meanwhile, the result is
/// arbitrary but harmless.
fn is_below(dentry: &Dentry, is_top: impl Fn(&Dentry) -> bool) -> bool {
    let mut at = dentry;
    loop {
        if is_top(at) {
            return true;
        }
        match at.parent() {
            Some(parent) if !core::ptr::eq(parent, at) => at = parent,
            _ => return false,
        }
    }
}

impl core::fmt::Debug for Invalidator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Invalidator").finish_non_exhaustive()
    }
}
