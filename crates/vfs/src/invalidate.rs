//! Invalidation: a file system says that something changed behind the caches.
//!
//! # What it is
//! Entries that are in doubt are *expired*: flagged, so that the next walk that comes to one asks the file system before it goes on.
//! That takes no lock and waits for nothing, so it may be done at any time, from any thread, also from inside a call of
//! the file system that holds a directory's lock. Lookups that run meanwhile are asked again, since the directories'
//! counters of changes move.
//!
//! # What it is not
//! Removal: an expired entry stays in memory until it is asked about, or goes for want of room. The root of a file system has no name
//! to ask about; its attributes are what the file system said first, or what changed through here.
//!
//! # Limitations
//! An answer that overtakes a push is put into the cache and then put in doubt: who looks between the two, after the push has
//! returned, may see it once. (`crates/lab/tests/torture.rs` allows that case and no other.)
//!
//! # How it is locked
//! Entries are found under RCU. A slot that meanwhile serves another name is expired for nothing.
//!
//! # Where it comes from
//! FUSE's `notify_inval_entry` and `notify_inval_inode`; `d_invalidate` of network file systems.

use crate::dentry::{Dentry, HASHED};
use crate::inode::Inode;
use crate::superblock::SuperBlock;
use prim::atomic::{Ordering::SeqCst, fence};
use prim::shared::{Arc, Weak};
use sync::Mutex;

/// The means of telling a tree's caches that something changed behind them. Keeps nothing alive; when the file system is no longer
/// mounted, it does nothing.
///
/// A push may be the last use of an inode, and of the file system: [`crate::FileSystem::evict`] may be called from inside of it. So push
/// without holding a lock that `evict` takes.
#[derive(Clone)]
pub struct Invalidator {
    sb: Weak<SuperBlock>,
}

/// Who keeps copies of what the cache holds, such as a kernel behind FUSE, and is told what file systems push. Called from where
/// the file system pushes, perhaps inside of an RCU section, one push at a time: it must not block, nor call the file system.
pub trait Observer: Send + Sync + 'static {
    /// What `name` in the directory leads to is in doubt.
    fn entry(&self, dir: &Identity, name: &[u8]);

    /// The attributes and contents of the inode are in doubt, and the names in it.
    fn inode(&self, inode: &Identity);

    /// Everything is in doubt.
    fn all(&self);
}

/// The observers of a tree.
#[derive(Default)]
pub(crate) struct Observers(Mutex<Vec<Box<dyn Observing>>>);

/// An observer of whatever type, if it is still there.
trait Observing: Send + Sync {
    /// Calls `what` with it; `false`: it has gone.
    fn tell(&self, what: &dyn Fn(&dyn Observer)) -> bool;
}

impl<O: Observer> Observing for Weak<O> {
    fn tell(&self, what: &dyn Fn(&dyn Observer)) -> bool {
        self.upgrade().is_some_and(|observer| {
            what(&*observer);
            true
        })
    }
}

impl Observers {
    pub(crate) fn add<O: Observer>(&self, observer: &Arc<O>) {
        self.0.lock().push(Box::new(Arc::downgrade(observer)));
    }

    fn tell(&self, what: impl Fn(&dyn Observer)) {
        self.0.lock().retain(|one| one.tell(&what));
    }
}

/// By what observers know an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// [`Held::identity`](crate::Held::identity).
    pub inode: u64,
    /// Inode number: `st_ino`.
    pub ino: u64,
    /// The number of its file system: `st_dev`.
    pub dev: u64,
}

impl Identity {
    fn of(sb: &SuperBlock, inode: &Inode) -> Self {
        Self { inode: core::ptr::from_ref(inode) as u64, ino: inode.attr().ino, dev: sb.dev }
    }
}

impl Invalidator {
    pub(crate) fn new(sb: Weak<SuperBlock>) -> Self {
        Self { sb }
    }

    /// Counts a push; gives the superblock, if it is still mounted.
    fn push(&self) -> Option<Arc<SuperBlock>> {
        let sb = self.sb.upgrade()?;
        sb.count_push();
        // ORDERING: pairs with the fence of `SuperBlock::doubt_if_pushed`.
        fence(SeqCst);
        Some(sb)
    }

    /// What `name` in the directory that the file system knows as `dir` leads to is in doubt.
    pub fn entry(&self, dir: u64, name: &[u8]) {
        self.on_nodes(dir, |sb, dir| {
            sb.versions.bump(dir);
            let guard = sb.domain.read();
            if let Some(entry) = sb.lookup_rcu(&guard, dir, name, sb.hash(name)) {
                entry.expire();
            }
            drop(guard);
            if let Some(dir) = dir.inode() {
                sb.observers.tell(|one| one.entry(&Identity::of(sb, dir), name));
            }
        });
    }

    /// The attributes of the inode that the file system knows as `node` are in doubt, and if it is a directory which names it has.
    pub fn inode(&self, node: u64) {
        let Some(sb) = self.push() else { return };
        // Under which names lookups that run now will find it, nobody knows.
        sb.versions.bump_all();
        drop(sb);
        self.on_nodes(node, |sb, dentry| {
            dentry.expire();
            if let Some(inode) = dentry.inode() {
                inode.doubt();
                sb.observers.tell(|one| one.inode(&Identity::of(sb, inode)));
            }
        });
    }

    /// Everything at and below the directory that the file system knows as `node` is in doubt. Looks at all that is cached.
    pub fn subtree(&self, node: u64) {
        let Some(sb) = self.push() else { return };
        let is_top = |dentry: &Dentry| dentry.inode().is_some_and(|inode| inode.node() == node);
        sb.versions.bump_all();
        sb.for_each(|dentry| {
            if dentry.has(HASHED) && is_below(dentry, is_top) {
                dentry.expire();
            }
        });
        sb.observers.tell(|one| one.all());
    }

    /// Everything is in doubt.
    pub fn all(&self) {
        let Some(sb) = self.push() else { return };
        sb.versions.bump_all();
        sb.for_each(|dentry| {
            if dentry.has(HASHED) {
                dentry.expire();
            }
        });
        sb.observers.tell(|one| one.all());
    }

    /// Calls `f` with each dentry of the inode `node` that is cached.
    fn on_nodes(&self, node: u64, f: impl Fn(&SuperBlock, &Dentry)) {
        let Some(sb) = self.push() else { return };
        let beside = sb.inodes.get(&sb, node, |inode| {
            let own = crate::slot::dentry_beside(inode);
            let only = !sb.inodes.has_doubles()
                && inode.refs() == 2
                && own.inode().is_some_and(|at| core::ptr::eq::<Inode>(at, inode));
            if only {
                f(&sb, own);
            }
            sb.put_inode(inode);
            only
        });
        if beside == Some(false) {
            // Several names, or not the one that it was made for: they are not listed anywhere.
            sb.for_each(|dentry| {
                if dentry.has(HASHED) && dentry.inode().is_some_and(|inode| inode.node() == node) {
                    f(&sb, dentry);
                }
            });
        }
    }
}

/// Whether a dentry for which `is_top` holds is `dentry` or above it. Of no use, but no harm, if something moves meanwhile.
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
