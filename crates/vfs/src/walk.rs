//! The path walk: from a path to a dentry.
//!
//! # What it is
//! One routine in two modes over one tree. A walk begins in [rcu-walk](rcu_walk), which stores nothing. On trouble it takes a
//! count on the place that it has reached (it *legitimises* it), makes the one step that was trouble in [ref-walk](ref_walk),
//! with the file system's help, and is back in rcu-walk for the rest of the path. Only
//! when the place has changed and cannot be held does it begin again, once: from then on it holds a place all the time and goes
//! at least one step forward under locks between two tries of rcu-walk, so no storm of renames can keep it from its end.
//!
//! What the caller wants of the end of the path it takes by a closure, which runs on the dentry *before* the last check of its
//! sequence: attributes of the last component are copied and then validated, no count is taken for them.
//!
//! # Where it comes from
//! Linux's `fs/namei.c` as described in `Documentation/filesystems/path-lookup.rst`; going back to rcu-walk after a slow step
//! is ours.

pub(crate) mod arrive;
mod batch;
pub(crate) mod fallback;
pub(crate) mod rcu_walk;
pub(crate) mod ref_walk;
pub(crate) mod resolve;

use crate::context::{Context, Held, Place, State};
use crate::cred::Credentials;
use crate::dentry::{DIR, Dentry};
use crate::errno::Errno;
use crate::inode::Inode;
use crate::mount::{Mount, MountRef};
use crate::name::PATH_MAX;
use crate::slot::inode_of;
use crate::superblock::SuperBlock;
use crate::walk::fallback::Fallback;
use crate::walk::rcu_walk::{At, Before, Leave, RcuWalk, Stop, rest_of};
use crate::walk::ref_walk::RefWalk;
use crate::walk::resolve::{Base, Resolve};
use core::cell::Cell;
use sync::PerCpuArc;
use sync::rcu::ReadGuard;

/// What a path led to: handed to the closure that takes what is wanted of it.
pub(crate) struct Found<'a> {
    pub(crate) mount: MountRef<'a>,
    pub(crate) guard: &'a ReadGuard<'a>,
    pub(crate) dentry: &'a Dentry,
    pub(crate) seq: u32,
    pub(crate) object: u64,
    /// Who holds the place, if somebody does: what changes now does not matter then.
    held: Option<&'a Held>,
    /// Symbolic links that the walk followed.
    pub(crate) links: u32,
    /// Whose walk it is: the credentials that it began with.
    pub(crate) cred: &'a Credentials,
    /// [`Found::pin`] took a count: what was taken is good whatever changes from then on, and must not be thrown away.
    pinned: Cell<bool>,
    /// What was wanted could not be taken in rcu-walk.
    trouble: Cell<Option<Fallback>>,
}

impl<'a> Found<'a> {
    /// Where an rcu-walk has ended.
    #[inline(always)]
    fn new(walk: &RcuWalk<'a>, at: &At<'a>) -> Self {
        let (guard, links, cred) = (walk.guard, walk.links, walk.cred);
        let At { mount, dentry, seq, object } = *at;
        let (pinned, trouble) = (Cell::new(false), Cell::new(None));
        Self { mount, guard, dentry, seq, object, held: None, links, cred, pinned, trouble }
    }

    /// Where a ref-walk, which holds it, has ended.
    fn at_held(walk: &'a RefWalk, guard: &'a ReadGuard<'a>, at: &At<'a>) -> Self {
        let (links, cred) = (walk.links(), walk.cred());
        let At { mount, dentry, seq, object } = *at;
        let (pinned, trouble) = (Cell::new(false), Cell::new(None));
        Self { mount, guard, dentry, seq, object, held: Some(walk.held()), links, cred, pinned, trouble }
    }

    pub(crate) fn sb(&self) -> &'a SuperBlock {
        &self.mount.get().sb
    }

    /// Whether what was taken is to be thrown away, since the dentry changed meanwhile.
    #[inline(always)]
    fn stale(&self) -> Option<Fallback> {
        if self.pinned.get() {
            return None;
        }
        if self.dentry.seq.retry(self.seq) { Some(Fallback::EntryChanged) } else { self.trouble.get() }
    }

    /// Says that what is wanted cannot be taken without blocking. The answer is for who takes it to fail with; the walk goes on.
    #[cold]
    pub(crate) fn ask_again(&self, reason: Fallback) -> Errno {
        self.trouble.set(Some(reason));
        Errno::EAGAIN
    }

    /// The inode; there is one, since a walk that ends at a negative entry fails.
    pub(crate) fn inode(&self) -> Result<&'a Inode, Errno> {
        inode_of(self.dentry, self.object).ok_or(Errno::ENOENT)
    }

    /// Whether the walk holds the place, and so may block.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a count on the mount. Who holds the place has one already, and gets another even of a mount that is about
    /// to go, or was detached and is kept by its users alone.
    ///
    /// # Errors
    /// `EAGAIN` if the mount is about to go; the walk then goes on by itself and never shows that to its caller.
    #[inline]
    pub(crate) fn count_mount(&self) -> Result<PerCpuArc<Mount>, Errno> {
        match self.held {
            Some(held) => Ok(held.mount().clone()),
            None => self.mount.to_arc().ok_or_else(|| self.unmounting()),
        }
    }

    /// Says that the mount is about to go. The answer is for who takes it to fail with; the walk goes on.
    #[cold]
    fn unmounting(&self) -> Errno {
        self.trouble.set(Some(Fallback::Unmounting));
        Errno::EAGAIN
    }

    /// Takes a count on the dentry.
    ///
    /// # Errors
    /// `EAGAIN` if it changed meanwhile; the walk then goes on by itself and never shows that to its caller.
    #[inline]
    pub(crate) fn pin(&self) -> Result<Held, Errno> {
        let mount = self.count_mount()?;
        let sb = self.sb();
        let pinned = match self.held {
            Some(_) => sb.pin(self.dentry),
            None => sb.pin_rcu(self.guard, self.dentry, self.seq),
        };
        self.pinned.set(pinned.is_some());
        pinned.map(|pinned| Held::new(mount, pinned)).ok_or(Errno::EAGAIN)
    }
}

impl Context {
    /// Walks `path` (from the directory `base`, or the working directory, or the root) and takes `take` of its end.
    ///
    /// `take` may run more than once; what it returned last, of a dentry that did not change meanwhile, is the result.
    ///
    /// # Errors
    /// Those of `path_resolution(7)`: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, `EINVAL` for a NUL byte; whatever
    /// the file system's lookup answers; whatever `take` answers; `EXDEV` for a `base` of another tree.
    #[inline(always)]
    pub(crate) fn resolve<R, E: From<Errno>>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        take: impl FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.resolve_after(0, base, path, follow, take)
    }

    /// [`Context::resolve`] as the continuation of a walk that has followed `links` symbolic links.
    #[inline(always)]
    pub(crate) fn resolve_after<R, E: From<Errno>>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        mut take: impl FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if path.is_empty() || path.len() > PATH_MAX {
            return Err(too_long_or_empty(path));
        }
        self.own(base)?;
        let tree = self.tree();
        let guard = tree.domain.read();
        let state = self.state(&guard);
        let (root, start) = begin(state, base, path)?;
        let walk = RcuWalk {
            tree,
            guard: &guard,
            view: tree.table().view(&guard),
            key: tree.key,
            root,
            cred: &state.cred,
            resolve: base.resolve.union(state.link_policy()),
            fresh: core::ptr::null(),
            links,
        };
        let before = Before::none();
        let stopped = match walk.walk(At::start(start), path, &before) {
            Ok(at) => {
                let found = Found::new(&walk, &at);
                let taken = take(&found);
                match found.stale() {
                    None => return taken,
                    Some(reason) => (at, Stop::Trouble(reason, path.len())),
                }
            }
            Err(stopped) => stopped,
        };
        let begun = match conclude_and_take((walk, state.patience), (stopped, before), path, follow, &mut take) {
            Outcome::Done(taken) => return taken,
            Outcome::GoOn(begun) => Some(begun),
            Outcome::Lost => None,
        };
        drop(guard);
        self.resolve_slow(begun, (base, links), path, follow, &mut take)
    }

    /// Whether `base` is of this context's tree.
    #[inline(always)]
    fn own(&self, base: Base<'_>) -> Result<(), Errno> {
        match base.dir {
            Some(held) if !core::ptr::eq(&raw const **held.sb().tree(), self.tree()) => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }

    /// The rest of [`Context::resolve`] when the first rcu-walk did not reach the end.
    #[cold]
    #[inline(never)]
    fn resolve_slow<R, E: From<Errno>>(
        &self,
        begun: Option<RefWalk>,
        (base, links): (Base<'_>, u32),
        path: &[u8],
        follow: bool,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut walk = match begun {
            Some(walk) => walk,
            None => {
                self.tree().fallbacks.this().count(Fallback::Restart);
                RefWalk::from_start(self, links, base, path)?
            }
        };
        loop {
            walk.step(follow).map_err(|errno| nul_or(path, errno))?;
            if let Some(taken) = self.resume(&mut walk, follow, take) {
                return taken;
            }
        }
    }

    /// Goes on in rcu-walk from where a ref-walk is. `None`: there was trouble, and `held` is where it happened, or where it was.
    fn resume<R, E: From<Errno>>(
        &self,
        held: &mut RefWalk,
        follow: bool,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let tree = self.tree();
        let guard = tree.domain.read();
        if held.is_done(follow) {
            return Some(held.take_end(&guard, take));
        }
        let walk = RcuWalk {
            tree,
            guard: &guard,
            view: tree.table().view(&guard),
            key: tree.key,
            root: held.root(),
            cred: held.cred(),
            resolve: held.resolve(),
            fresh: held.fresh(),
            links: held.links(),
        };
        let before = Before::none();
        let stopped = match walk.walk(held.sample(), held.rest(), &before) {
            Ok(at) => (at, Stop::End),
            Err(stopped) => stopped,
        };
        let stopped = (stopped, before);
        let further = match conclude_and_take((walk, held.patience()), stopped, held.rest(), follow, take) {
            Outcome::Done(taken) => return Some(taken),
            Outcome::GoOn(further) => further,
            Outcome::Lost => return None,
        };
        *held = further;
        None
    }
}

impl State {
    /// What the policy asks of walks.
    #[inline(always)]
    pub(crate) fn link_policy(&self) -> Resolve {
        if self.policy.protected_symlinks { Resolve::PROTECTED_LINKS } else { Resolve::default() }
    }
}

/// The root of a walk, and where it starts.
#[inline(always)]
fn begin<'s>(state: &'s State, base: Base<'s>, path: &[u8]) -> Result<(Place<'s>, Place<'s>), Errno> {
    let start = base.dir.unwrap_or(&state.cwd);
    if base.resolve.is_scoped() {
        return begin_scoped(base, start, path);
    }
    // Anything can be held, but only from a directory do names lead on.
    if base.dir.is_some() && path[0] != b'/' && !start.dentry().has(DIR) {
        return Err(Errno::ENOTDIR);
    }
    let root = state.root.place();
    Ok((root, if path[0] == b'/' { root } else { start.place() }))
}

/// The start of a scoped walk is its root.
#[cold]
fn begin_scoped<'s>(base: Base<'s>, start: &'s Held, path: &[u8]) -> Result<(Place<'s>, Place<'s>), Errno> {
    if path[0] == b'/' && base.resolve.has(Resolve::BENEATH) {
        return Err(nul_or(path, Errno::EXDEV));
    }
    if !start.dentry().has(DIR) {
        return Err(Errno::ENOTDIR);
    }
    let root = base.scope.unwrap_or(start).place();
    Ok((root, if path[0] == b'/' { root } else { start.place() }))
}

/// How an rcu-walk that did not simply reach its end went on.
enum Outcome<R, E> {
    /// It reached its end, or an error.
    Done(Result<R, E>),
    /// There was trouble; this holds the place.
    GoOn(RefWalk),
    /// There was trouble, and the place could not be held.
    Lost,
}

/// Brings an rcu-walk that stopped to its end and takes what is wanted there, or holds the place of its trouble.
#[cold]
#[inline(never)]
fn conclude_and_take<'g, R, E: From<Errno>>(
    (mut walk, patience): (RcuWalk<'g>, Option<u64>),
    (stopped, before): ((At<'g>, Stop), Before<'g>),
    path: &[u8],
    follow: bool,
    take: &mut dyn FnMut(&Found<'_>) -> Result<R, E>,
) -> Outcome<R, E> {
    let links = walk.links;
    let (reason, at, rest) = match walk.conclude(stopped, path, follow, &before) {
        Ok(at) => {
            let found = Found::new(&walk, &at);
            let taken = take(&found);
            match found.stale() {
                None => return Outcome::Done(taken),
                // Unless it ended in the text of a link, a step back is one of this path.
                Some(reason) if walk.links == links => {
                    let (at, start) = before.step_back(reason, at, path, path.len());
                    (reason, at, rest_of(path, start))
                }
                Some(reason) => (reason, at, Vec::new()),
            }
        }
        Err(Leave::Fail(errno)) => return Outcome::Done(Err(nul_or(path, errno).into())),
        Err(Leave::Trouble { reason, at, rest }) => (reason, at, rest),
    };
    walk.tree.fallbacks.this().count(reason);
    if walk.resolve.has(Resolve::CACHED) {
        return Outcome::Done(Err(Errno::EAGAIN.into()));
    }
    match RefWalk::legitimise(&walk, patience, at, rest) {
        Some(begun) => Outcome::GoOn(begun),
        None => Outcome::Lost,
    }
}

/// The error of a path that is not to be walked.
#[cold]
fn too_long_or_empty<E: From<Errno>>(path: &[u8]) -> E {
    if path.is_empty() { Errno::ENOENT.into() } else { nul_or(path, Errno::ENAMETOOLONG).into() }
}

/// A NUL byte in the path is the answer whatever else is wrong; no name has one, so a path with one always ends here.
#[cold]
pub(crate) fn nul_or(path: &[u8], errno: Errno) -> Errno {
    if path.contains(&0) { Errno::EINVAL } else { errno }
}
