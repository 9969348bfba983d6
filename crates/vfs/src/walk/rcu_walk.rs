//! rcu-walk: the walk that stores nothing.
//!
//! # What it is
//! One pass over the path's bytes. At each component the walk checks that the directory may be searched, finds the entry on
//! its chain, samples the entry's sequence, and checks that the directory's sequence is unchanged. Its results were true at
//! the last check. Symbolic links and `..` are followed in place. The walk writes nothing shared: no lock, no count.
//!
//! # What it is not
//! It never sleeps; of the file system it calls only name rules, which must not block. If a step
//! needs more, it stops with the rest of the path, and the caller continues from there in
//! [`ref-walk`](super::ref_walk).
//!
//! # How it is ordered
//! See `docs/walk.md`. The sequence counts carry all orderings; the loads between two samples are relaxed.
//!
//! # Where it comes from
//! Linux's rcu-walk (`Documentation/filesystems/path-lookup.rst`; Nick Piggin, 2009-2011).

use crate::base::access::credentials::Credentials;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::base::name::{Components, NAME_MAX, NameKey, Named, ShortName};
use crate::cache::fallback::Fallback;
use crate::cache::tree::Tree;
use crate::mount::MountRef;
use crate::mount::place::Place;
use crate::slots::dentry::{Dentry, hash_len};
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::slot::{entry_hash, inode_beside, inode_of};
use crate::walk::follow::{LinkStep, leads_to_root};
use core::cell::Cell;
use sync::HashView;
use sync::rcu::ReadGuard;

/// A place that a walk has reached: a dentry, with its sequence and object word at that moment.
#[derive(Clone, Copy)]
pub(crate) struct Step<'g> {
    pub(crate) mount: MountRef<'g>,
    pub(crate) dentry: &'g Dentry,
    pub(crate) seq: u32,
    pub(crate) object: Object,
}

impl<'g> Step<'g> {
    /// Samples a place that a walk has reached. If it is being changed, the first check will fail.
    #[inline(always)]
    pub(crate) fn sample(mount: MountRef<'g>, dentry: &'g Dentry) -> Self {
        let seq = dentry.seq.raw_begin();
        Self { mount, dentry, seq, object: dentry.object() }
    }

    /// Samples a place that the walk already has: mounts on it, its age and the expiry of its name
    /// do not matter.
    #[inline(always)]
    pub(crate) fn start(place: Place<'g>) -> Self {
        let at = Self::sample(place.mount, place.dentry);
        let ignored = ObjectFlags::MOUNTED | ObjectFlags::CHECKED | ObjectFlags::COLD;
        Self { object: at.object.without(ignored), ..at }
    }

    pub(crate) fn place(&self) -> Place<'g> {
        Place { mount: self.mount, dentry: self.dentry }
    }

    /// Returns whether the dentry changed since the sample.
    #[inline(always)]
    pub(crate) fn changed(&self) -> bool {
        self.dentry.seq.retry(self.seq)
    }
}

/// Why a walk ended before the end of its path.
pub(crate) enum WalkExit<'g> {
    /// With an error.
    Fail(Errno),
    /// Continue in ref-walk: from `at`, whose sequence may be stale, with the `rest` of the path.
    Fallback { reason: Fallback, at: Step<'g>, rest: Vec<u8> },
}

/// Why a run over one path text stopped early.
pub(crate) enum RunEnd {
    /// At the path's end, which needs the slow step.
    End,
    Fail(Errno),
    /// The place is a symbolic link; after it the path continues at this offset.
    Link(usize),
    /// The component at this offset needs ref-walk.
    Fallback(Fallback, usize),
}

/// The place before the last one of a run, if the last step was a common one: the directory that
/// the entry was found in, and its sequence at that step. If the last place has changed, the walk
/// steps back to it.
pub(crate) struct PreviousStep<'g>(Cell<Option<(&'g Dentry, u32)>>);

impl<'g> PreviousStep<'g> {
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self(Cell::new(None))
    }

    /// Returns the place to hold for a walk of `path` that left rcu-walk at `at`, before the
    /// component at `start`: `at`, or one step back.
    #[cold]
    pub(crate) fn step_back(&self, reason: Fallback, at: Step<'g>, path: &[u8], start: usize) -> (Step<'g>, usize) {
        let changed = matches!(reason, Fallback::DirectoryChanged | Fallback::EntryChanged);
        let Some((dentry, seq)) = self.0.get().filter(|_| changed) else { return (at, start) };
        let place = Step { mount: at.mount, dentry, seq, object: dentry.object() };
        let end = path[..start.min(path.len())].iter().rposition(|&byte| byte != b'/');
        match end {
            Some(end) if !place.changed() => {
                let from = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
                (place, from)
            }
            _ => (at, start),
        }
    }
}

/// Why one step failed.
pub(super) enum StepEnd {
    Fail(Errno),
    Fallback(Fallback),
    Link,
}

impl StepEnd {
    fn at(self, start: usize) -> RunEnd {
        match self {
            StepEnd::Fail(errno) => RunEnd::Fail(errno),
            StepEnd::Fallback(reason) => RunEnd::Fallback(reason, start),
            StepEnd::Link => RunEnd::Link(start),
        }
    }
}

/// The state of a walk besides its place and path.
///
/// Copied where a cold path begins, so that the hot path can keep it in registers.
#[derive(Clone, Copy)]
pub(crate) struct RcuWalk<'g> {
    pub(crate) tree: &'g Tree,
    pub(crate) guard: &'g ReadGuard<'g>,
    pub(crate) view: HashView<'g, Dentry>,
    pub(crate) key: NameKey,
    pub(crate) root: Place<'g>,
    pub(crate) cred: &'g Credentials,
    pub(crate) resolve: Resolve,
    /// A dentry that this walk has just revalidated.
    pub(crate) fresh: *const Dentry,
    /// Symbolic links followed so far.
    pub(crate) links: u32,
}

impl<'g> RcuWalk<'g> {
    /// Completes a walk that stopped: follows links, checks trailing slashes, makes errors and fallbacks. A symbolic
    /// link at the end is followed if `follow` is set or a slash comes after it.
    #[cold]
    #[inline(never)]
    pub(crate) fn conclude(
        &mut self,
        stopped: (Step<'g>, RunEnd),
        path: &[u8],
        follow: bool,
        before: &PreviousStep<'g>,
    ) -> Result<Step<'g>, WalkExit<'g>> {
        self.finish(stopped, &Components::new(path), follow, true, before)
    }

    fn finish(
        &mut self,
        (mut at, mut stop): (Step<'g>, RunEnd),
        parts: &Components<'_>,
        follow: bool,
        trailing: bool,
        before: &PreviousStep<'g>,
    ) -> Result<Step<'g>, WalkExit<'g>> {
        let path = parts.path();
        let slash = path.last() == Some(&b'/');
        loop {
            stop = match stop {
                RunEnd::End if at.object.is_link() && (follow || slash) => match self.arrive(&at) {
                    Ok(_) => RunEnd::Link(path.len()),
                    Err(ended) => ended.at(path.len()),
                },
                RunEnd::End => match self.check_end(&at, slash) {
                    Ok(arrived) => return Ok(arrived),
                    Err(ended) => ended.at(path.len()),
                },
                RunEnd::Fail(errno) => return Err(WalkExit::Fail(errno)),
                RunEnd::Fallback(reason, start) => {
                    let (at, start) = before.step_back(reason, at, path, start);
                    let rest = rest_of(path, start);
                    return Err(WalkExit::Fallback { reason, at, rest });
                }
                RunEnd::Link(start) => {
                    let last = trailing && path[start..].iter().all(|&byte| byte == b'/');
                    at = self.follow(&at, last).map_err(|exit| exit.then(path, start))?;
                    match self.run(at, parts, start, before) {
                        Ok(end) => {
                            at = end;
                            RunEnd::End
                        }
                        Err((place, why)) => {
                            at = place;
                            why
                        }
                    }
                }
            };
        }
    }

    /// Checks the place at the end of a path.
    fn check_end(&self, at: &Step<'g>, slash: bool) -> Result<Step<'g>, StepEnd> {
        let at = self.arrive(at)?;
        if slash && !at.object.is_dir() {
            return Err(fail(&at, Errno::ENOTDIR));
        }
        Ok(at)
    }

    /// Follows the symbolic link at `at` to its final target.
    fn follow(&mut self, at: &Step<'g>, last: bool) -> Result<Step<'g>, WalkExit<'g>> {
        let fallback = |reason| WalkExit::Fallback { reason, at: *at, rest: Vec::new() };
        let (mount, followed) = (at.mount.get(), self.links);
        let step = LinkStep { link: at.dentry, mount, cred: self.cred, resolve: self.resolve, followed, is_last: last };
        if let Err(errno) = step.check() {
            return Err(match fail(at, errno) {
                StepEnd::Fail(errno) => WalkExit::Fail(errno),
                _ => fallback(Fallback::EntryChanged),
            });
        }
        let body = inode_of(at.dentry, at.object).and_then(|inode| inode.link_body.load(self.guard));
        // A link cannot be a mount point, so its directory is on the same mount.
        let parent = at.dentry.parent().map(|parent| Step::start(Place { mount: at.mount, dentry: parent }));
        if at.changed() {
            return Err(fallback(Fallback::EntryChanged));
        }
        let (Some(body), Some(parent)) = (body, parent) else { return Err(fallback(Fallback::LinkNotCached)) };
        self.links += 1;
        let is_roots_mount = || self.root.mount.ptr_eq(at.mount);
        let start = match leads_to_root(body, self.resolve, is_roots_mount) {
            Ok(true) => Step::first(self.root),
            Ok(false) => parent,
            Err(errno) => return Err(WalkExit::Fail(errno)),
        };
        let parts = Components::new(body);
        let before = PreviousStep::none();
        let stopped = match self.run(start, &parts, 0, &before) {
            Ok(at) => (at, RunEnd::End),
            Err(stopped) => stopped,
        };
        self.finish(stopped, &parts, true, last, &before)
    }

    /// Walks from the component at `start` to the end of the path, or to the first step that it cannot take.
    ///
    /// The place is kept in three locals, not in a struct, so that a step needs no memory but the dentries'.
    #[inline(always)]
    pub(super) fn run(
        &self,
        at: Step<'g>,
        parts: &Components<'_>,
        mut start: usize,
        before: &PreviousStep<'g>,
    ) -> Result<Step<'g>, (Step<'g>, RunEnd)> {
        let Step { mut dentry, mut seq, mut object, .. } = at;
        let mut last: Option<(&'g Dentry, u32)> = None;
        // In memory: the common step does not read it.
        let mount = Cell::new(at.mount);
        let len = parts.path().len();
        let mut block = start;
        let mut delimiters = parts.delimiters(block);
        loop {
            while delimiters == 0 {
                block += 64;
                delimiters = parts.later_delimiters(block);
            }
            let end = block + delimiters.trailing_zeros() as usize;
            delimiters &= delimiters - 1;
            'step: {
                if end == start {
                    break 'step;
                }
                let stepped = 'slow: {
                    let at = || Step { mount: mount.get(), dentry, seq, object };
                    if !object.is_open_dir() {
                        break 'slow { *self }.step_closed(&at(), parts, start, end);
                    }
                    if end - start > ShortName::MAX {
                        break 'slow { *self }.step_long(&at(), &parts.path()[start..end]);
                    }
                    let name = parts.short_at(start, end - start);
                    let hash = self.key.hash_short(name);
                    let Some((entry, entry_seq)) = self.find(dentry, name, hash, end == len) else {
                        break 'slow { *self }.miss_short(&at(), name, hash);
                    };
                    let entry_object = entry.object();
                    if dentry.seq.retry(seq) {
                        break 'slow Err(StepEnd::Fallback(Fallback::DirectoryChanged));
                    }
                    last = Some((dentry, seq));
                    (dentry, seq, object) = (entry, entry_seq, entry_object);
                    break 'step;
                };
                match stepped {
                    Ok(next) => {
                        last = None;
                        mount.set(next.mount);
                        (dentry, seq, object) = (next.dentry, next.seq, next.object);
                    }
                    Err(ended) => {
                        before.0.set(last);
                        return Err((Step { mount: mount.get(), dentry, seq, object }, ended.at(start)));
                    }
                }
            }
            if end == len {
                before.0.set(last);
                return Ok(Step { mount: mount.get(), dentry, seq, object });
            }
            start = end + 1;
        }
    }

    /// Takes the step from a place that is not a directory open to everyone to the entry with the
    /// name at `start..end`.
    #[cold]
    #[inline(never)]
    fn step_closed(
        &self,
        at: &Step<'g>,
        parts: &Components<'_>,
        start: usize,
        end: usize,
    ) -> Result<Step<'g>, StepEnd> {
        let at = self.enter(at)?;
        let name = &parts.path()[start..end];
        if at.object.is_folded() {
            return self.step_folded(&at, name);
        }
        if name.len() > ShortName::MAX {
            return self.step_long(&at, name);
        }
        let name = parts.short_at(start, end - start);
        let hash = self.key.hash_short(name);
        let Some((dentry, seq)) = self.find(at.dentry, name, hash, end == parts.path().len()) else {
            return self.miss_short(&at, name, hash);
        };
        let object = dentry.object();
        if at.changed() {
            return Err(StepEnd::Fallback(Fallback::DirectoryChanged));
        }
        Ok(Step { mount: at.mount, dentry, seq, object })
    }

    /// Returns the entry of a short name in `dir`, and the entry's sequence before it was compared.
    /// Prefetches the inode of the `last` one.
    #[inline(always)]
    pub(super) fn find(&self, dir: &Dentry, name: ShortName, hash: u64, last: bool) -> Option<(&'g Dentry, u32)> {
        let wanted = hash_len(hash, name.len);
        let mut seq = 0;
        let prefetch_inode = |head| {
            if last {
                prim::hint::prefetch(inode_beside(head));
            }
        };
        let found = self.view.find(entry_hash(dir, hash), prefetch_inode, |entry| {
            seq = entry.seq.raw_begin();
            entry.is_short(dir, wanted, name)
        });
        found.map(|entry| (entry, seq))
    }

    /// Takes the step from a directory to its entry of a long name.
    #[cold]
    #[inline(never)]
    fn step_long(&self, at: &Step<'g>, name: &[u8]) -> Result<Step<'g>, StepEnd> {
        if name.len() > NAME_MAX {
            let removed = !at.dentry.object().is_hashed();
            return Err(fail(at, if removed { Errno::ENOENT } else { Errno::ENAMETOOLONG }));
        }
        let hash = self.tree.key.hash(name);
        let named = Named { name, hash, short: None };
        let mut seq = 0;
        let found = self.view.find(
            entry_hash(at.dentry, hash),
            |_| (),
            |entry| {
                seq = entry.seq.raw_begin();
                entry.is_entry_rcu(at.dentry, named, self.guard)
            },
        );
        let Some(dentry) = found else { return self.miss(at, named) };
        let object = dentry.object();
        if at.changed() {
            return Err(StepEnd::Fallback(Fallback::DirectoryChanged));
        }
        Ok(Step { mount: at.mount, dentry, seq, object })
    }

    /// Takes the step from a directory whose names its file system compares.
    #[cold]
    #[inline(never)]
    fn step_folded(&self, at: &Step<'g>, name: &[u8]) -> Result<Step<'g>, StepEnd> {
        match name {
            b"." => self.step_dots(at, 1),
            b".." => self.step_dots(at, 2),
            name if name.len() > NAME_MAX => self.step_long(at, name),
            name => self.miss(at, at.mount.get().sb.named(name)),
        }
    }

    /// Takes the step for a short name that was not found at once. `.` and `..` never are, so the
    /// common step need not check for them.
    #[cold]
    #[inline(never)]
    fn miss_short(&self, at: &Step<'g>, name: ShortName, hash: u64) -> Result<Step<'g>, StepEnd> {
        if name.is_dots() {
            return self.step_dots(at, name.len);
        }
        self.miss(at, Named { name: &name.bytes(), hash, short: Some(name) })
    }

    /// Takes the step for a name that was not on its chain, or whose search a writer disturbed:
    /// searches again with checks.
    #[cold]
    #[inline(never)]
    fn miss(&self, at: &Step<'g>, named: Named<'_>) -> Result<Step<'g>, StepEnd> {
        let Named { name, hash, .. } = named;
        let renames = self.tree.renames.of(at.dentry, hash);
        let started = renames.raw_begin();
        let (mut seq, rules) = (0, &at.mount.get().sb.rules);
        let found = self.tree.table().find_slow(self.guard, entry_hash(at.dentry, hash), |entry| {
            seq = entry.seq.raw_begin();
            match rules {
                None => entry.is_entry_rcu(at.dentry, named, self.guard),
                Some(rules) => entry.is_folded_rcu(at.dentry, hash, self.guard, |own| rules.equal(own, name)),
            }
        });
        let object = found.map_or(Object::NEGATIVE, Dentry::object);
        if at.changed() {
            return Err(StepEnd::Fallback(Fallback::DirectoryChanged));
        }
        if let Some(dentry) = found {
            return Ok(Step { mount: at.mount, dentry, seq, object });
        }
        if !at.object.is_complete() {
            return Err(StepEnd::Fallback(Fallback::Miss));
        }
        // A rename takes the entry off one chain before it puts the entry on another; in between
        // the entry is on no chain.
        if renames.read_retry(started) {
            return Err(StepEnd::Fallback(Fallback::RenameInProgress));
        }
        Err(StepEnd::Fail(Errno::ENOENT))
    }
}

/// Returns an error that follows from the state of `at`; a fallback if that has changed.
#[cold]
pub(super) fn fail(at: &Step<'_>, errno: Errno) -> StepEnd {
    if at.changed() { StepEnd::Fallback(Fallback::EntryChanged) } else { StepEnd::Fail(errno) }
}

impl WalkExit<'_> {
    /// Returns this rest, followed by the path from `start` on.
    fn then(self, path: &[u8], start: usize) -> Self {
        match self {
            WalkExit::Fallback { reason, at, mut rest } => {
                let tail = rest_of(path, start);
                if !tail.is_empty() {
                    rest.push(b'/');
                    rest.extend_from_slice(&tail);
                }
                WalkExit::Fallback { reason, at, rest }
            }
            fail => fail,
        }
    }
}

/// `path` from `start` on; keeps a final slash even if nothing else remains.
pub(super) fn rest_of(path: &[u8], start: usize) -> Vec<u8> {
    match path.get(start..) {
        Some(rest) if !rest.is_empty() => rest.to_vec(),
        _ if path.last() == Some(&b'/') => b"/".to_vec(),
        _ => Vec::new(),
    }
}
