//! rcu-walk: the walk that stores nothing.
//!
//! # What it is
//! One pass over the path's bytes. At each component: may the directory be searched; find the entry on its chain; sample the
//! entry's sequence; check that the directory's own sequence is what it was. So at every moment the walk holds one
//! dentry and the sequence it had, hand over hand, and what it concludes was true at the last check. Symbolic links and `..`
//! are followed in place. Nothing shared is written: no lock, no count.
//!
//! # What it is not
//! It never sleeps and never calls the file system. On any trouble it stops with the rest of the path that it has not done, and
//! the caller goes on from there by [`ref-walk`](super::ref_walk).
//!
//! # How it is ordered
//! See `docs/path-walk.md`. The sequence counts carry all orderings; the loads between two samples are relaxed.
//!
//! # Where it comes from
//! Linux's rcu-walk (`Documentation/filesystems/path-lookup.rst`; Nick Piggin, 2009-2011).

use crate::context::Place;
use crate::cred::Credentials;
use crate::dentry::{
    CHECKED, COLD, COMPLETE, DIR, Dentry, FOLDED, HASHED, LINK, MOUNTED, hash_len, is_inode, is_open_dir,
};
use crate::errno::Errno;
use crate::mount::MountRef;
use crate::name::{Components, NAME_MAX, NameKey, ShortName};
use crate::slot::{entry_hash, inode_beside, inode_of};
use crate::tree::Tree;
use crate::walk::fallback::Fallback;
use crate::walk::resolve::Resolve;
use core::cell::Cell;
use sync::HashView;
use sync::rcu::ReadGuard;

/// Symbolic links that one walk follows at most.
pub(crate) const MAX_LINKS: u32 = 40;

/// A place that a walk has reached: a dentry, and the sequence and object word that it had.
#[derive(Clone, Copy)]
pub(crate) struct At<'g> {
    pub(crate) mount: MountRef<'g>,
    pub(crate) dentry: &'g Dentry,
    pub(crate) seq: u32,
    pub(crate) object: u64,
}

impl<'g> At<'g> {
    /// Samples a place that a walk has come to. If it is being changed, the first check will fail.
    #[inline(always)]
    pub(crate) fn sample(mount: MountRef<'g>, dentry: &'g Dentry) -> Self {
        let seq = dentry.seq.raw_begin();
        Self { mount, dentry, seq, object: dentry.object() }
    }

    /// Samples a place that a walk starts from: what is mounted on it, and for how long its name is good, does not matter.
    #[inline(always)]
    pub(crate) fn start(place: Place<'g>) -> Self {
        let at = Self::sample(place.mount, place.dentry);
        Self { object: at.object & !(MOUNTED | CHECKED | COLD), ..at }
    }

    pub(crate) fn place(&self) -> Place<'g> {
        Place { mount: self.mount, dentry: self.dentry }
    }

    /// Whether the dentry is no longer what it was.
    #[inline(always)]
    pub(crate) fn changed(&self) -> bool {
        self.dentry.seq.retry(self.seq)
    }

    pub(crate) fn is_link(&self) -> bool {
        self.object & LINK != 0
    }
}

/// Why a walk ended before its path did.
pub(crate) enum Leave<'g> {
    /// The answer is an error.
    Fail(Errno),
    /// Go on elsewhere: from `at`, whose sequence may be stale, by the `rest` of the path.
    Trouble { reason: Fallback, at: At<'g>, rest: Vec<u8> },
}

/// Why a run over one path text stopped before all was done.
pub(crate) enum Stop {
    /// At the path's end, where something remains to be done.
    End,
    Fail(Errno),
    /// The place is a symbolic link, to be followed before going on at this offset.
    Link(usize),
    /// Trouble with the component at this offset.
    Trouble(Fallback, usize),
}

/// The place before the one where a run ended, if that was reached by the common step: the directory that it was found in, and the
/// sequence that the directory still had then. When the last place has changed the walk steps back to it.
pub(crate) struct Before<'g>(Cell<Option<(&'g Dentry, u32)>>);

impl<'g> Before<'g> {
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self(Cell::new(None))
    }

    /// Where a walk of `path` is to be held that met trouble at `at`, before the component at `start`: there, or one step back.
    #[cold]
    pub(crate) fn step_back(&self, reason: Fallback, at: At<'g>, path: &[u8], start: usize) -> (At<'g>, usize) {
        let changed = matches!(reason, Fallback::DirectoryChanged | Fallback::EntryChanged);
        let Some((dentry, seq)) = self.0.get().filter(|_| changed) else { return (at, start) };
        let place = At { mount: at.mount, dentry, seq, object: dentry.object() };
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

/// Why one step was not made.
pub(super) enum Halt {
    Fail(Errno),
    Trouble(Fallback),
    Link,
}

impl Halt {
    fn at(self, start: usize) -> Stop {
        match self {
            Halt::Fail(errno) => Stop::Fail(errno),
            Halt::Trouble(reason) => Stop::Trouble(reason, start),
            Halt::Link => Stop::Link(start),
        }
    }
}

/// What a walk needs to know besides its path.
///
/// Copied where a cold path begins, so that the hot one can keep it in registers.
#[derive(Clone, Copy)]
pub(crate) struct RcuWalk<'g> {
    pub(crate) tree: &'g Tree,
    pub(crate) guard: &'g ReadGuard<'g>,
    pub(crate) view: HashView<'g, Dentry>,
    pub(crate) key: NameKey,
    pub(crate) root: Place<'g>,
    pub(crate) cred: &'g Credentials,
    pub(crate) resolve: Resolve,
    /// A dentry that was revalidated just now, by this walk.
    pub(crate) fresh: *const Dentry,
    /// Symbolic links followed so far.
    pub(crate) links: u32,
}

impl<'g> RcuWalk<'g> {
    /// Walks `path` from `at`. `Ok`: to its end, and nothing remains to be done there; else [`RcuWalk::conclude`] goes on.
    ///
    /// The common result never goes through memory: a wide load over fresh narrow stores would wait for them to retire, and
    /// with them for every cache miss of the walk.
    #[inline(always)]
    pub(crate) fn walk(&self, at: At<'g>, path: &[u8], before: &Before<'g>) -> Result<At<'g>, (At<'g>, Stop)> {
        // The slash that an absolute path begins with is no component.
        let start = usize::from(path.first() == Some(&b'/'));
        let at = self.run(at, &Components::new(path), start, before)?;
        if !is_inode(at.object) || (path.last() == Some(&b'/') && path.len() > 1) {
            return Err((at, Stop::End));
        }
        Ok(at)
    }

    /// Does what remains after a walk that stopped: follows links, checks trailing slashes, makes errors and trouble. A symbolic
    /// link at the end is followed if `follow` says so or a slash comes after it.
    #[cold]
    #[inline(never)]
    pub(crate) fn conclude(
        &mut self,
        stopped: (At<'g>, Stop),
        path: &[u8],
        follow: bool,
        before: &Before<'g>,
    ) -> Result<At<'g>, Leave<'g>> {
        self.finish(stopped, &Components::new(path), (follow, true), before)
    }

    fn finish(
        &mut self,
        (mut at, mut stop): (At<'g>, Stop),
        parts: &Components<'_>,
        (follow, trailing): (bool, bool),
        before: &Before<'g>,
    ) -> Result<At<'g>, Leave<'g>> {
        let path = parts.path();
        let slash = path.last() == Some(&b'/');
        loop {
            stop = match stop {
                Stop::End if at.is_link() && (follow || slash) => match self.arrive(&at) {
                    Ok(_) => Stop::Link(path.len()),
                    Err(halt) => halt.at(path.len()),
                },
                Stop::End => match self.check_end(&at, slash) {
                    Ok(arrived) => return Ok(arrived),
                    Err(halt) => halt.at(path.len()),
                },
                Stop::Fail(errno) => return Err(Leave::Fail(errno)),
                Stop::Trouble(reason, start) => {
                    let (at, start) = before.step_back(reason, at, path, start);
                    let rest = rest_of(path, start);
                    return Err(Leave::Trouble { reason, at, rest });
                }
                Stop::Link(start) => {
                    let last = trailing && path[start..].iter().all(|&byte| byte == b'/');
                    at = self.follow(&at, last).map_err(|leave| leave.then(path, start))?;
                    match self.run(at, parts, start, before) {
                        Ok(end) => {
                            at = end;
                            Stop::End
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

    /// What must hold of the place where a path ends.
    fn check_end(&self, at: &At<'g>, slash: bool) -> Result<At<'g>, Halt> {
        let at = self.arrive(at)?;
        if slash && at.object & DIR == 0 {
            return Err(fail(&at, Errno::ENOTDIR));
        }
        Ok(at)
    }

    /// Follows the symbolic link at `at`, to wherever it leads in the end.
    fn follow(&mut self, at: &At<'g>, last: bool) -> Result<At<'g>, Leave<'g>> {
        let trouble = |reason| Leave::Trouble { reason, at: *at, rest: Vec::new() };
        if let Err(errno) = self.may_follow(at, last) {
            return Err(match fail(at, errno) {
                Halt::Fail(errno) => Leave::Fail(errno),
                _ => trouble(Fallback::EntryChanged),
            });
        }
        let body = inode_of(at.dentry, at.object).and_then(|inode| inode.link_body.load(self.guard));
        // A link that something is mounted on cannot be; so its directory is on the same mount.
        let parent = at.dentry.parent().map(|parent| At::start(Place { mount: at.mount, dentry: parent }));
        if at.changed() {
            return Err(trouble(Fallback::EntryChanged));
        }
        let (Some(body), Some(parent)) = (body, parent) else { return Err(trouble(Fallback::LinkNotCached)) };
        self.links += 1;
        let start = match body.first() {
            Some(b'/') if self.resolve.has(Resolve::BENEATH) => return Err(Leave::Fail(Errno::EXDEV)),
            Some(b'/') if self.resolve.has(Resolve::NO_XDEV) && !self.root.mount.ptr_eq(at.mount) => {
                return Err(Leave::Fail(Errno::EXDEV));
            }
            Some(b'/') => At::start(self.root),
            _ => parent,
        };
        let parts = Components::new(body);
        let before = Before::none();
        let stopped = match self.run(start, &parts, 0, &before) {
            Ok(at) => (at, Stop::End),
            Err(stopped) => stopped,
        };
        self.finish(stopped, &parts, (true, last), &before)
    }

    /// Walks from the component at `start` to the end of the path, or to what it cannot do itself.
    ///
    /// The place is kept in three locals, not in an [`At`], so that a step needs no memory but the dentries'.
    #[inline(always)]
    fn run(
        &self,
        at: At<'g>,
        parts: &Components<'_>,
        mut start: usize,
        before: &Before<'g>,
    ) -> Result<At<'g>, (At<'g>, Stop)> {
        let At { mut dentry, mut seq, mut object, .. } = at;
        let mut last: Option<(&'g Dentry, u32)> = None;
        // In memory: the common step does not look at it.
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
                    let at = || At { mount: mount.get(), dentry, seq, object };
                    if !is_open_dir(object) {
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
                        break 'slow Err(Halt::Trouble(Fallback::DirectoryChanged));
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
                    Err(halt) => {
                        before.0.set(last);
                        return Err((At { mount: mount.get(), dentry, seq, object }, halt.at(start)));
                    }
                }
            }
            if end == len {
                before.0.set(last);
                return Ok(At { mount: mount.get(), dentry, seq, object });
            }
            start = end + 1;
        }
    }

    /// From a place that is not a directory open to everyone to the entry whose name stands at `start..end`.
    #[cold]
    #[inline(never)]
    fn step_closed(&self, at: &At<'g>, parts: &Components<'_>, start: usize, end: usize) -> Result<At<'g>, Halt> {
        let at = self.enter(at)?;
        let name = &parts.path()[start..end];
        if at.object & FOLDED != 0 {
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
            return Err(Halt::Trouble(Fallback::DirectoryChanged));
        }
        Ok(At { mount: at.mount, dentry, seq, object })
    }

    /// The entry of a short name in `dir`, and the sequence that it had before it was compared. Asks for the inode of the
    /// `last` one ahead of its use.
    #[inline(always)]
    pub(super) fn find(&self, dir: &Dentry, name: ShortName, hash: u64, last: bool) -> Option<(&'g Dentry, u32)> {
        let wanted = hash_len(hash, name.len);
        let mut seq = 0;
        let ask_for_inode = |head| {
            if last {
                prim::hint::prefetch(inode_beside(head));
            }
        };
        let found = self.view.find(entry_hash(dir, hash), ask_for_inode, |entry| {
            seq = entry.seq.raw_begin();
            entry.is_short(dir, wanted, name)
        });
        found.map(|entry| (entry, seq))
    }

    /// From a directory to its entry of a long name.
    #[cold]
    #[inline(never)]
    fn step_long(&self, at: &At<'g>, name: &[u8]) -> Result<At<'g>, Halt> {
        if name.len() > NAME_MAX {
            let removed = !at.dentry.has(HASHED);
            return Err(fail(at, if removed { Errno::ENOENT } else { Errno::ENAMETOOLONG }));
        }
        let hash = self.tree.key.hash(name);
        let mut seq = 0;
        let found = self.view.find(
            entry_hash(at.dentry, hash),
            |_| (),
            |entry| {
                seq = entry.seq.raw_begin();
                entry.is_entry_rcu(at.dentry, hash, name, self.guard)
            },
        );
        let Some(dentry) = found else { return self.miss(at, name, hash) };
        let object = dentry.object();
        if at.changed() {
            return Err(Halt::Trouble(Fallback::DirectoryChanged));
        }
        Ok(At { mount: at.mount, dentry, seq, object })
    }

    /// From a directory whose names are compared by its file system to its entry.
    #[cold]
    #[inline(never)]
    fn step_folded(&self, at: &At<'g>, name: &[u8]) -> Result<At<'g>, Halt> {
        match name {
            b"." => self.step_dots(at, 1),
            b".." => self.step_dots(at, 2),
            name if name.len() > NAME_MAX => self.step_long(at, name),
            name => self.miss(at, name, at.mount.get().sb.hash(name)),
        }
    }

    /// A short name was not found at once: `.` and `..` never are, so that the common step need not ask for them.
    #[cold]
    #[inline(never)]
    fn miss_short(&self, at: &At<'g>, name: ShortName, hash: u64) -> Result<At<'g>, Halt> {
        if name.is_dots() { self.step_dots(at, name.len) } else { self.miss(at, &name.bytes(), hash) }
    }

    /// The name was not on its chain, or a writer disturbed the search: look again with care.
    #[cold]
    #[inline(never)]
    fn miss(&self, at: &At<'g>, name: &[u8], hash: u64) -> Result<At<'g>, Halt> {
        let renames = self.tree.renames.of(at.dentry);
        let started = renames.raw_begin();
        let (mut seq, rules) = (0, &at.mount.get().sb.rules);
        let found = self.tree.table().find_slow(self.guard, entry_hash(at.dentry, hash), |entry| {
            seq = entry.seq.raw_begin();
            match rules {
                None => entry.is_entry_rcu(at.dentry, hash, name, self.guard),
                Some(rules) => entry.is_folded_rcu(at.dentry, hash, self.guard, |own| rules.equal(own, name)),
            }
        });
        let object = found.map_or(0, Dentry::object);
        if at.changed() {
            return Err(Halt::Trouble(Fallback::DirectoryChanged));
        }
        if let Some(dentry) = found {
            return Ok(At { mount: at.mount, dentry, seq, object });
        }
        if at.object & COMPLETE == 0 {
            return Err(Halt::Trouble(Fallback::Miss));
        }
        // A rename takes the entry off one chain and puts it on another: between the two it is on none.
        if renames.read_retry(started) {
            return Err(Halt::Trouble(Fallback::RenameInProgress));
        }
        Err(Halt::Fail(Errno::ENOENT))
    }
}

/// An error that was concluded from what `at` is; trouble if it is that no longer.
#[cold]
pub(super) fn fail(at: &At<'_>, errno: Errno) -> Halt {
    if at.changed() { Halt::Trouble(Fallback::EntryChanged) } else { Halt::Fail(errno) }
}

impl Leave<'_> {
    /// The same, where after what is left the path goes on at `start` of `path`.
    fn then(self, path: &[u8], start: usize) -> Self {
        match self {
            Leave::Trouble { reason, at, mut rest } => {
                let tail = rest_of(path, start);
                if !tail.is_empty() {
                    rest.push(b'/');
                    rest.extend_from_slice(&tail);
                }
                Leave::Trouble { reason, at, rest }
            }
            fail => fail,
        }
    }
}

/// `path` from `start` on; a slash that the path ends with is kept even if nothing else is left.
pub(super) fn rest_of(path: &[u8], start: usize) -> Vec<u8> {
    match path.get(start..) {
        Some(rest) if !rest.is_empty() => rest.to_vec(),
        _ if path.last() == Some(&b'/') => b"/".to_vec(),
        _ => Vec::new(),
    }
}
