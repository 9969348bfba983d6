//! The path walk: from a path to a dentry.
//!
//! # What it is
//! One routine in two modes over one tree. A walk begins in [rcu-walk](rcu_walk), which stores nothing. On trouble it takes a
//! count on the place that it has reached (it *legitimises* it), makes the one step that was trouble in [ref-walk](ref_walk),
//! under the directory's lock and with the file system's help, and is back in rcu-walk for the rest of the path. Only
//! when the place has changed and cannot be held does it begin again; after two such restarts it goes in ref-walk from the
//! start, where every step is a step forward.
//!
//! What the caller wants of the end of the path it takes by a closure, which runs on the dentry *before* the last check of its
//! sequence: attributes of the last component are copied and then validated, no count is taken for them.
//!
//! # Where it comes from
//! Linux's `fs/namei.c` as described in `Documentation/filesystems/path-lookup.rst`; going back to rcu-walk after a slow step
//! is ours.

pub(crate) mod fallback;
pub(crate) mod rcu_walk;
pub(crate) mod ref_walk;

use crate::context::{Context, State};
use crate::dentry::Dentry;
use crate::errno::Errno;
use crate::inode::Inode;
use crate::name::PATH_MAX;
use crate::namespace::Base;
use crate::slot::{Pinned, inode_of};
use crate::tree::Tree;
use crate::walk::fallback::Fallback;
use crate::walk::rcu_walk::{At, Leave, RcuWalk};
use crate::walk::ref_walk::RefWalk;
use sync::rcu::ReadGuard;

/// Times that a walk begins again before it goes under locks.
const MAX_RESTARTS: u32 = 2;

/// What a path led to: handed to the closure that takes what is wanted of it.
pub(crate) struct Found<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) guard: &'a ReadGuard<'a>,
    pub(crate) dentry: &'a Dentry,
    pub(crate) seq: u32,
    pub(crate) object: u64,
    /// A count is held on the dentry: what changes now does not matter.
    pub(crate) held: bool,
    pub(crate) state: &'a State,
}

impl<'a> Found<'a> {
    /// The inode; there is one, since a walk that ends at a negative entry fails.
    pub(crate) fn inode(&self) -> Result<&'a Inode, Errno> {
        inode_of(self.dentry, self.object).ok_or(Errno::ENOENT)
    }

    /// Takes a count on the dentry.
    ///
    /// # Errors
    /// `EAGAIN` if it changed meanwhile; the walk then goes on by itself and never shows that to its caller.
    #[inline]
    pub(crate) fn pin(&self) -> Result<Pinned, Errno> {
        let pinned =
            if self.held { self.tree.pin(self.dentry) } else { self.tree.pin_rcu(self.guard, self.dentry, self.seq) };
        pinned.ok_or(Errno::EAGAIN)
    }
}

impl Context {
    /// Walks `path` (from the directory `base`, or the working directory, or the root) and takes `take` of its end.
    ///
    /// `take` may run more than once; what it returned last, of a dentry that did not change meanwhile, is the result.
    ///
    /// # Errors
    /// Those of `path_resolution(7)`: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, `EINVAL` for a NUL byte; whatever
    /// the file system's lookup answers; whatever `take` answers; `EXDEV` for a `base`
    /// of another tree.
    #[inline]
    pub(crate) fn resolve<R>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        mut take: impl FnMut(&Found<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        if path.is_empty() || path.len() > PATH_MAX {
            return Err(if path.is_empty() { Errno::ENOENT } else { Errno::ENAMETOOLONG });
        }
        let base = self.own(base)?;
        let tree = self.tree();
        let guard = tree.domain.read();
        let state = self.state(&guard);
        let root = state.root.dentry();
        let mut walk =
            RcuWalk { tree, guard: &guard, view: tree.table().view(&guard), root, cred: &state.cred, links: 0 };
        let start = At::sample(if path[0] == b'/' { root } else { base.unwrap_or(state.cwd.dentry()) });
        let left = match walk.walk(start, path, follow) {
            Ok(at) => {
                let found = Found {
                    tree,
                    guard: &guard,
                    dentry: at.dentry,
                    seq: at.seq,
                    object: at.object,
                    held: false,
                    state,
                };
                let taken = take(&found);
                if !at.changed() {
                    return taken;
                }
                Leave::Trouble { reason: Fallback::EntryChanged, at, rest: Vec::new() }
            }
            Err(left) => left,
        };
        let links = walk.links;
        let begun = RefWalk::legitimise(tree, &guard, state, left, links).map_err(|errno| nul_or(path, errno))?;
        drop(guard);
        self.resolve_slow(begun, base, path, follow, &mut take)
    }

    /// The dentry of `base`, which must be of this context's tree.
    #[inline(always)]
    fn own<'b>(&self, base: Base<'b>) -> Result<Option<&'b Dentry>, Errno> {
        match base {
            None => Ok(None),
            Some(held) if held.tree().ptr_eq(self.shared_tree()) => Ok(Some(held.dentry())),
            Some(_) => Err(Errno::EXDEV),
        }
    }

    /// The rest of [`Context::resolve`] when the first rcu-walk did not reach the end.
    #[cold]
    #[inline(never)]
    fn resolve_slow<R>(
        &self,
        begun: Option<RefWalk<'_>>,
        base: Option<&Dentry>,
        path: &[u8],
        follow: bool,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let tree = self.tree();
        let mut restarts = 0;
        let mut held = begun;
        let mut walk = loop {
            if let Some(walk) = held {
                break walk;
            }
            tree.fallbacks.this().count(Fallback::Restart);
            restarts += 1;
            let from_start = RefWalk::from_start(self, base, path);
            if restarts > MAX_RESTARTS {
                tree.fallbacks.this().count(Fallback::Locked);
                return from_start
                    .and_then(|walk| walk.finish_locked(self, follow, take))
                    .map_err(|errno| nul_or(path, errno));
            }
            held = Some(from_start?);
        };
        loop {
            walk.step(follow).map_err(|errno| nul_or(path, errno))?;
            if let Some(result) = self.resume(&mut walk, follow, take).map_err(|errno| nul_or(path, errno))? {
                return Ok(result);
            }
        }
    }

    /// Goes on in rcu-walk from where a ref-walk is. `None`: there was trouble, and `walk` is where it happened, or where it was.
    fn resume<'t, R>(
        &'t self,
        held: &mut RefWalk<'t>,
        follow: bool,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, Errno>,
    ) -> Result<Option<R>, Errno> {
        let tree = self.tree();
        let guard = tree.domain.read();
        let state = self.state(&guard);
        if held.is_done(follow) {
            return held.take_end(&guard, state, take).map(Some);
        }
        let root = held.root();
        let mut walk = RcuWalk {
            tree,
            guard: &guard,
            view: tree.table().view(&guard),
            root,
            cred: held.cred(),
            links: held.links(),
        };
        let left = match walk.walk(At::sample(held.here()), held.rest(), follow) {
            Ok(at) => {
                let found = Found {
                    tree,
                    guard: &guard,
                    dentry: at.dentry,
                    seq: at.seq,
                    object: at.object,
                    held: false,
                    state,
                };
                let taken = take(&found);
                if !at.changed() {
                    return taken.map(Some);
                }
                Leave::Trouble { reason: Fallback::EntryChanged, at, rest: Vec::new() }
            }
            Err(left) => left,
        };
        let links = walk.links;
        if let Some(further) = RefWalk::legitimise(tree, &guard, state, left, links)? {
            *held = further;
        }
        Ok(None)
    }
}

/// A NUL byte in the path is the answer whatever else is wrong; no name has one, so a path with one always ends here.
#[cold]
fn nul_or(path: &[u8], errno: Errno) -> Errno {
    if path.contains(&0) { Errno::EINVAL } else { errno }
}
