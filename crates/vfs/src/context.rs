//! A context: whose eyes a walk looks through. Root directory, working directory, credentials and umask.
//!
//! # How it is locked
//! Root, working directory and credentials are one object that is replaced whole under RCU, so a walk sees all of one moment and
//! stores nothing to look at them (Linux's `fs_struct` under its sequence count, and `cred`). Changes exclude one another by
//! `change`.

use crate::attr::{S_IFDIR, S_IFMT};
use crate::cred::{Capabilities, Credentials, MAY_EXEC};
use crate::dentry::Dentry;
use crate::errno::Errno;
use crate::mount::{Mount, MountRef, Namespace};
use crate::namespace::Base;
use crate::permission::may;
use crate::rank::Rank;
use crate::slot::Pinned;
use crate::superblock::SuperBlock;
use crate::tree::Tree;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::shared::Arc;
use sync::rcu::{Rcu, ReadGuard};
use sync::{Mutex, PerCpuArc};

/// Mask of creation modes that a new context has.
const DEFAULT_UMASK: u32 = 0o022;

/// A place in the tree of mounts as a walk sees it: a dentry, and the mount that it is seen through.
#[derive(Clone, Copy)]
pub(crate) struct Place<'g> {
    pub(crate) mount: MountRef<'g>,
    pub(crate) dentry: &'g Dentry,
}

impl Place<'_> {
    pub(crate) fn is(&self, other: &Place<'_>) -> bool {
        core::ptr::eq(self.dentry, other.dentry) && self.mount.ptr_eq(other.mount)
    }
}

/// A file or directory that is held, and the mount that it is seen through: an `O_PATH`-like handle. It stays what it is when its
/// name goes or moves, and relative paths can start from it.
pub struct Held {
    mount: PerCpuArc<Mount>,
    /// Emptied by drop alone.
    pinned: Option<Pinned>,
}

impl Held {
    pub(crate) fn new(mount: PerCpuArc<Mount>, pinned: Pinned) -> Self {
        Self { mount, pinned: Some(pinned) }
    }

    /// The place that a mount shows first.
    pub(crate) fn root_of(mount: PerCpuArc<Mount>) -> Self {
        let pinned = mount.sb.pin_again(mount.root());
        Self::new(mount, pinned)
    }

    /// The number of its file system: `st_dev`.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.mount.dev
    }

    pub(crate) fn mount(&self) -> &PerCpuArc<Mount> {
        &self.mount
    }

    pub(crate) fn sb(&self) -> &SuperBlock {
        &self.mount.sb
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { mount: self.mount.borrow(), dentry: self.dentry() }
    }

    /// Another dentry of the same mount.
    pub(crate) fn beside(&self, pinned: Pinned) -> Self {
        Self::new(self.mount.clone(), pinned)
    }

    pub(crate) fn pinned(&self) -> &Pinned {
        self.pinned.as_ref().expect("emptied by drop alone")
    }

    pub(crate) fn dentry(&self) -> &Dentry {
        self.pinned().get()
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        Self::new(self.mount.clone(), self.sb().pin_again(self.dentry()))
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.mount.sb.unpin(pinned);
        }
    }
}

impl core::fmt::Debug for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.dentry().fmt(f)
    }
}

/// What a context is, at one moment.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) root: Held,
    pub(crate) cwd: Held,
    pub(crate) cred: Credentials,
    pub(crate) namespace: Arc<Namespace>,
    /// How long an operation waits for its file system at most, in nanoseconds.
    pub(crate) patience: Option<u64>,
    pub(crate) policy: Policy,
}

/// What `/proc/sys/fs` says on Linux: `proc_sys_fs(5)`. All off in a new context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Symbolic links in sticky directories open to all are followed by their owner only, or if they are the directory owner's.
    pub protected_symlinks: bool,
    /// Hard links are made only to files that one owns or may read and write, and that are plain.
    pub protected_hardlinks: bool,
    /// `O_CREAT` does not open somebody else's regular file in a sticky directory open to all.
    pub protected_regular: bool,
    /// `O_CREAT` does not open somebody else's FIFO in a sticky directory open to all.
    pub protected_fifos: bool,
}

/// Root directory, working directory, credentials and umask: through whose eyes a walk looks. Many threads may use one at once.
pub struct Context {
    tree: PerCpuArc<Tree>,
    state: Rcu<State>,
    umask: AtomicU32,
    /// Held by whoever replaces `state`; whether that ever happened.
    change: Mutex<bool>,
}

impl Context {
    /// A context at the root of `namespace` with root's credentials.
    pub(crate) fn new(tree: PerCpuArc<Tree>, namespace: Arc<Namespace>) -> Self {
        let root = Held::root_of(namespace.root().share());
        let (cwd, cred) = (root.clone(), Credentials::root());
        let state = State { root, cwd, cred, namespace, patience: None, policy: Policy::default() };
        Self::with_state(tree, state, DEFAULT_UMASK)
    }

    fn with_state(tree: PerCpuArc<Tree>, state: State, umask: u32) -> Self {
        let state = Rcu::new(&tree.domain, state);
        Self { tree, state, umask: AtomicU32::new(umask), change: Mutex::new(false) }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn shared_tree(&self) -> &PerCpuArc<Tree> {
        &self.tree
    }

    #[inline(always)]
    pub(crate) fn state<'g>(&'g self, guard: &'g ReadGuard<'_>) -> &'g State {
        self.state.load(guard)
    }

    /// A copy that others share nothing with but the tree and its mounts.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state.load(&self.tree.domain.read()).clone();
        Self::with_state(self.tree.clone(), state, self.umask())
    }

    /// The credentials under which this context works.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        self.state.load(&self.tree.domain.read()).cred.clone()
    }

    /// Replaces the credentials. A walk that runs is finished with the old ones, the last check of an open
    /// included; creating and removing check the directory with those of the moment when it is locked.
    pub fn set_credentials(&self, cred: Credentials) {
        self.replace(|state| state.cred = cred);
    }

    /// The mask of creation modes.
    #[must_use]
    pub fn umask(&self) -> u32 {
        self.umask.load(Relaxed)
    }

    /// Replaces the mask of creation modes and gives the old one: `umask(2)`.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Relaxed)
    }

    /// Changes the working directory: `chdir(2)`.
    ///
    /// # Errors
    /// Those of a walk; `ENOTDIR`; `EACCES` without search permission.
    pub fn set_current_dir(&self, path: &[u8]) -> Result<(), Errno> {
        let dir = self.searchable(Base::default(), path)?;
        self.replace(|state| state.cwd = dir);
        Ok(())
    }

    /// Changes the root directory (not the working directory): `chroot(2)`.
    ///
    /// # Errors
    /// As for [`Context::set_current_dir`]; `EPERM` without `SYS_CHROOT`.
    pub fn set_root(&self, path: &[u8]) -> Result<(), Errno> {
        let dir = self.searchable(Base::default(), path)?;
        if !self.credentials().capabilities.contains(Capabilities::SYS_CHROOT) {
            return Err(Errno::EPERM);
        }
        self.replace(|state| state.root = dir);
        Ok(())
    }

    /// How long an operation of this context waits for its file system at most; `None`: as long as it takes. Then it answers
    /// `ETIMEDOUT`. Lookups are then asked on a thread of their own, so that even a dead file system lets its askers go.
    pub fn set_patience_ns(&self, patience: Option<u64>) {
        self.replace(|state| state.patience = patience);
    }

    /// The protections of links and files in sticky directories.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.state.load(&self.tree.domain.read()).policy
    }

    /// Replaces the protections of links and files in sticky directories.
    pub fn set_policy(&self, policy: Policy) {
        self.replace(|state| state.policy = policy);
    }

    pub(crate) fn searchable(&self, base: Base<'_>, path: &[u8]) -> Result<Held, Errno> {
        self.resolve(base, path, true, |found| {
            let attr = found.inode()?.attr();
            if attr.mode & S_IFMT != S_IFDIR {
                return Err(Errno::ENOTDIR);
            }
            may(found, &attr, MAY_EXEC)?;
            found.pin()
        })
    }

    /// Root and working directory, held.
    pub(crate) fn root_and_cwd(&self) -> (Held, Held) {
        let guard = self.tree.domain.read();
        let state = self.state.load(&guard);
        (state.root.clone(), state.cwd.clone())
    }

    pub(crate) fn namespace(&self) -> Arc<Namespace> {
        self.state.load(&self.tree.domain.read()).namespace.clone()
    }

    pub(crate) fn replace(&self, change: impl FnOnce(&mut State)) {
        let mut is_changed = self.tree.ranks.lock(Rank::Handle, &self.change);
        **is_changed = true;
        let mut state = self.state.load(&self.tree.domain.read()).clone();
        change(&mut state);
        self.state.replace(&self.tree.domain, state);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A replaced state waits for others to fill its batch, and it holds the tree: it would keep it for good.
        if **self.tree.ranks.lock(Rank::Handle, &self.change) {
            self.tree.domain.flush();
        }
    }
}

impl core::fmt::Debug for Context {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("credentials", &self.credentials()).finish_non_exhaustive()
    }
}
