//! A context: whose eyes a walk looks through. Root directory, working directory, credentials and umask.
//!
//! # How it is locked
//! Root, working directory and credentials are one object that is replaced whole under RCU, so a walk sees all of one moment and
//! stores nothing to look at them (Linux's `fs_struct` under its sequence count, and `cred`). Changes exclude one another by
//! `change`.

use crate::attr::{S_IFDIR, S_IFMT};
use crate::cred::{Credentials, MAY_EXEC};
use crate::dentry::Dentry;
use crate::errno::Errno;
use crate::rank::Rank;
use crate::slot::Pinned;
use crate::tree::Tree;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use sync::rcu::{Rcu, ReadGuard};
use sync::{Mutex, PerCpuArc};

/// Mask of creation modes that a new context has.
const DEFAULT_UMASK: u32 = 0o022;

/// A file or directory that is held, with the tree that it is of: an `O_PATH`-like handle. It stays what it is when its name
/// goes or moves, and relative paths can start from it.
pub struct Held {
    tree: PerCpuArc<Tree>,
    /// Emptied by drop alone.
    pinned: Option<Pinned>,
}

impl Held {
    pub(crate) fn new(tree: PerCpuArc<Tree>, pinned: Pinned) -> Self {
        Self { tree, pinned: Some(pinned) }
    }

    pub(crate) fn tree(&self) -> &PerCpuArc<Tree> {
        &self.tree
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
        Self::new(self.tree.clone(), self.tree.pin_again(self.dentry()))
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.tree.unpin(pinned);
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
    /// A context at the root of `tree` with root's credentials.
    pub(crate) fn new(tree: PerCpuArc<Tree>) -> Self {
        let root = Held::new(tree.clone(), tree.pin_again(tree.root()));
        let cwd = root.clone();
        Self::with_state(tree, State { root, cwd, cred: Credentials::root() }, DEFAULT_UMASK)
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

    /// A copy that others share nothing with but the tree.
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
        let dir = self.searchable(path)?;
        self.replace(|state| state.cwd = dir);
        Ok(())
    }

    /// Changes the root directory (not the working directory): `chroot(2)`.
    ///
    /// # Errors
    /// As for [`Context::set_current_dir`].
    pub fn set_root(&self, path: &[u8]) -> Result<(), Errno> {
        let dir = self.searchable(path)?;
        self.replace(|state| state.root = dir);
        Ok(())
    }

    fn searchable(&self, path: &[u8]) -> Result<Held, Errno> {
        let pinned = self.resolve(None, path, true, |found| {
            let attr = found.inode()?.attr();
            if attr.mode & S_IFMT != S_IFDIR {
                return Err(Errno::ENOTDIR);
            }
            found.cred.may(&attr, MAY_EXEC)?;
            found.pin()
        })?;
        Ok(Held::new(self.tree.clone(), pinned))
    }

    fn replace(&self, change: impl FnOnce(&mut State)) {
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
