//! Room 8, `walk`: from a path to a dentry.
//!
//! # What is in it
//! Here: the order of the two modes. [`rcu_walk`], [`ref_walk`]: the modes; [`common_steps`]: the
//! loop of rcu-walk that most walks never leave; [`arrive`]: steps that find no name; [`follow`]:
//! rules of links and `..`; [`resolve`]: scopes; [`walk_end`]: the caller's work at the end;
//! [`estale`]: walks after `ESTALE`; [`lookup`]: names that are not cached; [`prime`]: answers
//! about names that no walk looked up; [`walk_position`]: the place of a ref-walk; [`permission`];
//! [`question`]: requests to the file system at the end of a walk; [`batch`]: interleaved walks;
//! [`paths`]: whole paths by a table.
//!
//! Imports `base`, `notify`, `record_lock`, `slots`, `fs`, `cache`, `layers`, `mount`.
//!
//! # What it is
//! One routine walks the tree in two modes. A walk begins in [rcu-walk](rcu_walk), which stores
//! nothing. If a step needs more, the walk takes a count on the place that it has reached (it
//! *legitimises* the place). It takes this one step in [ref-walk](ref_walk), with the file system's
//! help, and continues in rcu-walk. Only if the place has changed and cannot be held does the walk
//! begin again, once. After that the walk always holds a place, and takes at least one step under
//! locks between two runs of rcu-walk, so no storm of renames can stop it.
//!
//! The caller reads the end of the path by a closure, which runs on the dentry *before* the last
//! check of its sequence: it copies attributes of the last component, the walk validates them, and
//! no count is taken.
//!
//! # Where it comes from
//! Linux's `fs/namei.c` as described in `Documentation/filesystems/path-lookup.rst`; the return to
//! rcu-walk after a slow step is new here.

pub(crate) mod arrive;
mod batch;
mod common_steps;
mod estale;
pub(crate) mod follow;
pub(crate) mod lookup;
mod paths;
pub(crate) mod permission;
pub(crate) mod prime;
mod question;
pub(crate) mod rcu_walk;
pub(crate) mod ref_walk;
pub(crate) mod resolve;
pub(crate) mod walk_end;
pub(crate) mod walk_position;

use crate::base::deadline::Timeout;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::base::name::PATH_MAX;
use crate::cache::fallback::Fallback;
use crate::mount::context::{Context, State};
use crate::mount::place::{Base, PathAt, PathRef, Place};
use crate::slots::slot::view;
use crate::walk::paths::shortcut::Shortcut;
use crate::walk::rcu_walk::{PreviousStep, RcuWalk, RunEnd, Step, WalkExit, rest_of};
use crate::walk::ref_walk::RefWalk;
use crate::walk::walk_end::WalkEnd;

impl Context {
    /// Walks `path` (from the directory `base`, or the working directory, or the root) and calls `take` on
    /// its end.
    ///
    /// `take` may run more than once. Its last result, of a dentry that did not change meanwhile, is returned.
    ///
    /// # Errors
    /// The errors of `path_resolution(7)`: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`,
    /// `EINVAL` for a NUL byte; errors of the file system's lookup; errors of `take`; `EXDEV` for a
    /// `base` of another tree.
    #[inline(always)]
    pub(crate) fn resolve<R, E: From<Errno>>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        take: impl FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.resolve_after(0, base, path, follow, |_| None, take)
    }

    /// [`Context::resolve`] as the continuation of a walk that has followed `links` symbolic links. `quick` is called
    /// first, on a place that the common case of an rcu-walk has reached; if it returns `None`, `take` is called.
    #[inline(always)]
    pub(crate) fn resolve_after<R, E: From<Errno>>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        quick: impl Fn(&Step<'_>) -> Option<R>,
        mut take: impl FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if path.is_empty() || path.len() > PATH_MAX {
            return Err(too_long_or_empty(path));
        }
        self.own(base)?;
        let tree = self.tree();
        let guard = tree.domain.read();
        let state = self.state(&guard);
        let is_absolute = path[0] == b'/';
        let (root, start) = begin(state, base, path, is_absolute)?;
        if let Some(table) = tree.paths.table() {
            let shortcut = Shortcut { tree, guard: &guard, table, state, resolve: base.resolve, links, follow };
            if let Some(taken) = shortcut.resolve(start, path, &quick, &mut take) {
                return taken;
            }
        }
        let walk = RcuWalk {
            tree,
            guard: &guard,
            view: view(tree.table(), &guard),
            key: tree.key,
            root,
            cred: &state.cred,
            resolve: base.resolve.union(state.link_policy()),
            fresh: core::ptr::null(),
            links,
        };
        let before = PreviousStep::none();
        // The leading slash of an absolute path is not a component.
        let beginning = || (Step::first(start), usize::from(is_absolute));
        let (first, offset) = beginning();
        let mut walked = match walk.walk(first, path, offset) {
            Ok(at) => {
                if let Some(result) = quick(&at)
                    && !at.changed()
                {
                    return Ok(result);
                }
                Ok(at)
            }
            Err(left) => walk.walk_on(left.unwrap_or_else(beginning), path, &before),
        };
        let mut is_first = true;
        let stopped = loop {
            let at = match walked {
                Ok(at) => at,
                Err(stopped) => break stopped,
            };
            let found = WalkEnd::new(&walk, &at);
            let taken = take(&found);
            match found.stale() {
                None => return taken,
                // The second walk notes the place that it can step back to.
                Some(_) if is_first => walked = walk.walk_on(beginning(), path, &before),
                Some(reason) => break (at, RunEnd::Fallback(reason, path.len())),
            }
            is_first = false;
        };
        let begun = match conclude_and_take(
            Interrupted { walk, timeout: state.timeout, stopped, before },
            path,
            follow,
            &mut take,
        ) {
            Concluded::Done(taken) => return taken,
            Concluded::GoOn(begun) => Some(begun),
            Concluded::Lost => None,
        };
        drop(guard);
        self.resolve_slow(begun, links, PathAt { base, path }, follow, &mut take)
    }

    /// Returns whether `base` is of this context's tree.
    #[inline(always)]
    fn own(&self, base: Base<'_>) -> Result<(), Errno> {
        match base.dir {
            Some(held) if !core::ptr::eq(&raw const **held.sb().tree(), self.tree()) => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }

    /// Does the rest of [`Context::resolve`] when the first rcu-walk did not reach the end.
    #[cold]
    #[inline(never)]
    fn resolve_slow<R, E: From<Errno>>(
        &self,
        begun: Option<RefWalk>,
        links: u32,
        PathAt { base, path }: PathAt<'_>,
        follow: bool,
        take: &mut dyn FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut walk = match begun {
            Some(walk) => walk,
            None => {
                self.tree().fallbacks.this().count(Fallback::Restart);
                RefWalk::from_start(self, links, base, path)?
            }
        };
        let mut is_again = false;
        loop {
            let taken = match walk.step(follow) {
                Ok(()) => self.resume(&mut walk, follow, take),
                Err(errno) => Some(Err(nul_or(path, errno).into())),
            };
            match taken {
                None => {}
                Some(Err(_)) if walk.met_stale() && !is_again => {
                    is_again = true;
                    walk = self.walk_again(links, PathAt { base, path }, follow)?;
                }
                Some(taken) => return taken,
            }
        }
    }

    /// Continues in rcu-walk from the place of a ref-walk. `None`: a step needs ref-walk again; `held` is at
    /// that step or before it.
    fn resume<R, E: From<Errno>>(
        &self,
        held: &mut RefWalk,
        follow: bool,
        take: &mut dyn FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        if held.is_done(follow) {
            return Some(held.finish(take));
        }
        let tree = self.tree();
        let guard = tree.domain.read();
        let walk = RcuWalk {
            tree,
            guard: &guard,
            view: view(tree.table(), &guard),
            key: tree.key,
            root: held.root(),
            cred: &held.cred,
            resolve: held.resolve,
            fresh: held.fresh(),
            links: held.links,
        };
        let before = PreviousStep::none();
        let from = (held.sample(), usize::from(held.rest.first() == Some(&b'/')));
        let walked = walk.walk_on(from, &held.rest, &before);
        let stopped = walked.map_or_else(|stopped| stopped, |at| (at, RunEnd::End));
        let interrupted = Interrupted { walk, timeout: held.timeout, stopped, before };
        let further = match conclude_and_take(interrupted, &held.rest, follow, take) {
            Concluded::Done(taken) => return Some(taken),
            Concluded::GoOn(further) => further,
            Concluded::Lost => return None,
        };
        // The held places are put outside of the read section, since a put may end an inode.
        drop(guard);
        *held = further;
        None
    }
}

/// Returns the root of a walk, and its start.
#[inline(always)]
fn begin<'s>(
    state: &'s State,
    base: Base<'s>,
    path: &[u8],
    is_absolute: bool,
) -> Result<(Place<'s>, Place<'s>), Errno> {
    let start = base.dir.unwrap_or(&state.cwd);
    if base.resolve.is_scoped() {
        return begin_scoped(base, start, path);
    }
    // A handle may refer to any file, but names lead on only from a directory.
    if base.dir.is_some() && !is_absolute && !start.dentry().object().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let root = state.root.place();
    Ok((root, if is_absolute { root } else { start.place() }))
}

/// Returns root and start of a scoped walk: its start is its root.
#[cold]
fn begin_scoped<'s>(base: Base<'s>, start: &'s PathRef, path: &[u8]) -> Result<(Place<'s>, Place<'s>), Errno> {
    if path[0] == b'/' && base.resolve.contains(Resolve::BENEATH) {
        return Err(nul_or(path, Errno::EXDEV));
    }
    if !start.dentry().object().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let root = base.scope.unwrap_or(start).place();
    Ok((root, if path[0] == b'/' { root } else { start.place() }))
}

/// An rcu-walk that did not simply reach its end.
struct Interrupted<'g> {
    walk: RcuWalk<'g>,
    /// The longest time that a request to a file system may take, in nanoseconds.
    timeout: Timeout,
    stopped: (Step<'g>, RunEnd),
    before: PreviousStep<'g>,
}

/// How an rcu-walk that did not simply reach its end continued.
enum Concluded<R, E> {
    /// The walk reached its end, or an error.
    Done(Result<R, E>),
    /// A step needs ref-walk; this holds the place.
    GoOn(RefWalk),
    /// A step needs ref-walk, and the place could not be held.
    Lost,
}

/// Completes an rcu-walk that stopped and calls the closure, or holds the place of the step that needs
/// ref-walk.
#[cold]
#[inline(never)]
fn conclude_and_take<'g, R, E: From<Errno>>(
    Interrupted { mut walk, timeout, stopped, before }: Interrupted<'g>,
    path: &[u8],
    follow: bool,
    take: &mut dyn FnMut(&WalkEnd<'_>) -> Result<R, E>,
) -> Concluded<R, E> {
    let links = walk.links;
    let (reason, at, rest) = match walk.conclude(stopped, path, follow, &before) {
        Ok(at) => {
            let found = WalkEnd::new(&walk, &at);
            let taken = take(&found);
            match found.stale() {
                None => return Concluded::Done(taken),
                // Unless it ended in the text of a link, the step back is in this path.
                Some(reason) if walk.links == links => {
                    let (at, start) = before.step_back(reason, at, path, path.len());
                    (reason, at, rest_of(path, start))
                }
                Some(reason) => (reason, at, Vec::new()),
            }
        }
        Err(WalkExit::Fail(errno)) => return Concluded::Done(Err(nul_or(path, errno).into())),
        Err(WalkExit::Fallback { reason, at, rest }) => (reason, at, rest),
    };
    walk.tree.fallbacks.this().count(reason);
    if walk.resolve.contains(Resolve::CACHED) {
        return Concluded::Done(Err(Errno::EAGAIN.into()));
    }
    match RefWalk::legitimise(&walk, timeout, at, rest) {
        Some(begun) => Concluded::GoOn(begun),
        None => Concluded::Lost,
    }
}

/// Returns the error of a path that is empty or too long.
#[cold]
fn too_long_or_empty<E: From<Errno>>(path: &[u8]) -> E {
    if path.is_empty() { Errno::ENOENT.into() } else { nul_or(path, Errno::ENAMETOOLONG).into() }
}

/// `EINVAL` if the path has a NUL byte, else `errno`. No name has a NUL byte, so a walk of such a path always
/// ends here.
#[cold]
pub(crate) fn nul_or(path: &[u8], errno: Errno) -> Errno {
    if path.contains(&0) { Errno::EINVAL } else { errno }
}
