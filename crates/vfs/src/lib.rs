//! The core of a virtual file system whose path walks leave no footprints.
//!
//! A lookup of a cached path stores to no shared memory: it takes no lock and moves no reference count, not even on the last
//! component when only its attributes are wanted. `ARCHITECTURE.md` has the code map, `docs/path-walk.md` the walk in
//! detail. Most users want the `lightfoot` crate, which puts a `std::fs`-like face on this one.
//!
//! ```
//! # struct Empty;
//! # impl vfs::FileSystem for Empty {
//! #     fn root(&self) -> vfs::NewInode {
//! #         let attr = vfs::Attr { ino: 1, mode: vfs::S_IFDIR | 0o755, nlink: 2, ..Default::default() };
//! #         vfs::NewInode { node: 0, attr, ..Default::default() }
//! #     }
//! # }
//! let vfs = vfs::Vfs::new(Empty);
//! let context = vfs.context();
//! assert!(context.attr(vfs::Base::CWD, b"/", true)?.is_dir());
//! assert_eq!(context.attr(vfs::Base::CWD, b"/nothing", true), Err(vfs::Errno::ENOSYS));
//! # Ok::<(), vfs::Errno>(())
//! ```

#![deny(unsafe_code)]

mod acl;
mod attr;
mod cache;
mod context;
mod cred;
mod dcache;
mod deadline;
mod dentry;
mod errno;
mod events;
mod file;
mod flag_set;
mod fs;
mod inode;
mod inode_table;
mod invalidate;
mod listing_cache;
mod miss;
mod mount;
mod name;
mod namespace;
mod notify;
mod path_adapter;
mod permission;
mod rank;
mod record_lock;
mod refresh;
mod reverse_path;
#[allow(unsafe_code, reason = "the one module that turns links into references; its invariants are at its head")]
mod slot;
mod superblock;
mod tree;
mod walk;
pub mod xattr;

pub use acl::{Acl, AclEntry, AclKind, AclTag};
pub use attr::{
    Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISGID, S_ISUID, S_ISVTX, SetAttr,
    SetTime,
};
pub use cache::Budget;
pub use context::{Context, Held, Policy};
pub use cred::{Capabilities, Credentials, MAY_EXEC, MAY_READ, MAY_WRITE};
pub use errno::Errno;
pub use file::{DirEntry, OpenFile};
pub use fs::{
    Allocate, FileSystem, NameRules, NewInode, Permission, RenameFlags, Request, SeekFor, SetXattr, StatFs, Valid,
    Written,
};
pub use inode::Inode;
pub use invalidate::{Identity, Invalidator, Observer};
pub use mount::{Holder, MountFlags, MountInfo, StatVfs, UnmountFlags};
pub use name::{NAME_MAX, PATH_MAX};
pub use namespace::{Base, OpenFlags};
pub use notify::{DEFAULT_QUEUED_EVENTS, Event, EventKind, Scope, Watch};
pub use path_adapter::{PathAdapter, PathEntry, PathFileSystem};
pub use record_lock::{LockInfo, LockKind, LockWait};
pub use superblock::CacheStats;
pub use sync::rcu::RcuStats;
pub use walk::fallback::Fallback;
pub use walk::resolve::Resolve;

use mount::{Mount, Namespace};
use prim::shared::Arc;
use superblock::{Introduce, SuperBlock};
use sync::PerCpuOwner;
use tree::Tree;

/// A tree of mounts: file systems and their caches. Cloning shares it; it goes when its last handle, context and file have gone.
#[derive(Clone, Debug)]
pub struct Vfs {
    /// Before `tree`: mounts hold it.
    namespace: Arc<Namespace>,
    root: Arc<SuperBlock>,
    tree: Arc<PerCpuOwner<Tree>>,
}

impl Vfs {
    /// A tree with `fs` for its root.
    #[must_use]
    pub fn new(fs: impl FileSystem) -> Self {
        Self::with_budget(fs, Budget::default())
    }

    /// The same, where the cache of `fs` holds no more than `budget`.
    #[must_use]
    pub fn with_budget(fs: impl FileSystem, budget: Budget) -> Self {
        let tree = Arc::new(PerCpuOwner::new(Tree::new()));
        let root = Arc::new(SuperBlock::new(tree.share(), Box::new(fs), budget, true));
        root.introduce();
        let mount = Mount::new(root.clone(), root.pin_again(root.root()), MountFlags::default());
        Self { namespace: Namespace::new(tree.share(), mount), root, tree }
    }

    /// A context at the root of the tree, with root's credentials and umask 022.
    #[must_use]
    pub fn context(&self) -> Context {
        Context::new(self.tree.share(), self.namespace.clone())
    }

    /// Has `observer`, as long as it is there, told what file systems push by their [`Invalidator`].
    pub fn observe(&self, observer: &Arc<impl Observer>) {
        self.tree.observers.add(observer);
    }

    /// How often walks left rcu-walk for `reason`.
    #[must_use]
    pub fn fallbacks(&self, reason: Fallback) -> u64 {
        self.tree.fallbacks.iter().map(|counters| counters.get(reason)).sum()
    }

    /// What the caches of the root file system hold. Looks at every dentry: for tests and reports, and exact only while nothing
    /// changes.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.root.stats()
    }

    /// The state of deferred freeing.
    #[must_use]
    pub fn rcu_stats(&self) -> RcuStats {
        self.tree.domain.stats()
    }

    /// Waits until all that was deferred before has been freed.
    pub fn barrier(&self) {
        self.tree.domain.barrier();
    }
}
