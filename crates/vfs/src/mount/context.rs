//! A context: root directory, working directory, credentials and umask of a walk.
//!
//! # How it is locked
//! Root, working directory and credentials are one object that is replaced whole under RCU. So a walk sees
//! the state of one moment and stores nothing to read it (Linux's `fs_struct` under its sequence count, and
//! `cred`). `change` excludes concurrent changes.

use crate::base::access::credentials::Credentials;
use crate::base::deadline::{Timeout, timeout_of};
use crate::base::flags::Resolve;
use crate::base::rank::Rank;
use crate::cache::tree::Tree;
use crate::mount::namespace::Namespace;
use crate::mount::place::PathRef;
use crate::slots::whole_path::Classed;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use sync::rcu::{Rcu, ReadGuard};
use sync::{Mutex, PerCpuArc};

/// Mask of creation modes of a new context.
const DEFAULT_UMASK: u32 = 0o022;

/// The state of a context at one moment.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) root: PathRef,
    pub(crate) cwd: PathRef,
    pub(crate) cred: Classed,
    pub(crate) namespace: Arc<Namespace>,
    /// The most that an operation waits for its file system, in nanoseconds.
    pub(crate) timeout: Timeout,
    pub(crate) policy: Policy,
}

impl State {
    /// Returns the flags of walks that the policy sets.
    #[inline(always)]
    pub(crate) fn link_policy(&self) -> Resolve {
        if self.policy.protected_symlinks { Resolve::PROTECTED_LINKS } else { Resolve::default() }
    }
}

/// The protections of `/proc/sys/fs` on Linux: `proc_sys_fs(5)`. All off in a new context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Symbolic links in sticky directories open to all are followed only by their owner, or if the
    /// directory's owner owns them.
    pub protected_symlinks: bool,
    /// A user may create hard links only to plain files that the user owns or may read and write.
    pub protected_hardlinks: bool,
    /// `O_CREAT` does not open another user's regular file in a sticky directory open to all.
    pub protected_regular: bool,
    /// `O_CREAT` does not open another user's FIFO in a sticky directory open to all.
    pub protected_fifos: bool,
}

/// Root directory, working directory, credentials and umask of walks. Many threads may use one context at
/// once.
pub struct Context {
    tree: PerCpuArc<Tree>,
    state: Rcu<State>,
    umask: AtomicU32,
    /// Held while `state` is replaced; whether it was ever replaced.
    change: Mutex<bool>,
}

impl Context {
    /// Returns a context at the root of `namespace` with root's credentials.
    pub(crate) fn new(tree: PerCpuArc<Tree>, namespace: Arc<Namespace>) -> Self {
        let root = PathRef::root_of(namespace.root().share());
        let (cwd, cred) = (root.clone(), tree.paths.classed(Credentials::root()));
        let state = State { root, cwd, cred, namespace, timeout: None, policy: Policy::default() };
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

    /// Returns a copy that shares only the tree and its mounts.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state.load(&self.tree.domain.read()).clone();
        Self::with_state(self.tree.clone(), state, self.umask())
    }

    /// Returns the credentials of this context.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        self.cred_and_timeout().0
    }

    /// Replaces the credentials. A running walk finishes with the old ones, including the last check of an
    /// open. Creation and removal check the directory with the credentials at the moment of its locking.
    pub fn set_credentials(&self, cred: Credentials) {
        let cred = self.tree.paths.classed(cred);
        self.replace(|state| state.cred = cred);
    }

    /// Returns the mask of creation modes.
    #[must_use]
    pub fn umask(&self) -> u32 {
        self.umask.load(Relaxed)
    }

    /// Replaces the mask of creation modes and returns the old one: `umask(2)`.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Relaxed)
    }

    /// Sets the longest time, in nanoseconds, that an operation of this context, or of a file that
    /// it opens after this call, waits for its file system; `None`: no limit. After that time the
    /// operation fails with `ETIMEDOUT`, if the file system obeys: [`Bounded`](crate::Bounded)
    /// makes each obey. With a limit, lookups run on another thread, so that the caller returns
    /// even if the file system never answers. Each file system has 32 such threads at most; while
    /// all of them hang, lookups wait for a thread until their own deadlines.
    pub fn set_timeout_ns(&self, timeout: Option<u64>) {
        self.replace(|state| state.timeout = timeout_of(timeout));
    }

    /// Returns the credentials, and the most that an operation waits for its file system.
    pub(crate) fn cred_and_timeout(&self) -> (Credentials, Timeout) {
        let guard = self.tree.domain.read();
        let state = self.state.load(&guard);
        ((*state.cred).clone(), state.timeout)
    }

    /// Returns the protections of links and files in sticky directories.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.state.load(&self.tree.domain.read()).policy
    }

    /// Replaces the protections of links and files in sticky directories.
    pub fn set_policy(&self, policy: Policy) {
        self.replace(|state| state.policy = policy);
    }

    /// Root and working directory, held.
    pub(crate) fn root_and_cwd(&self) -> (PathRef, PathRef) {
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
        // A replaced state holds the tree, and is freed only when its batch of callbacks is full:
        // without a flush it could keep the tree forever.
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
