//! Interleaved walks: paths resolved side by side, so that their cache misses overlap.
//!
//! # What it is
//! A walk waits for two cache lines at each component: the bucket, and the first entry on its
//! chain. Here several walks (*lanes*) take turns: each prefetches its next line and lets the
//! others run meanwhile. Neighbouring paths in one directory share the walk to it. A path with
//! anything but directories open to everyone, short names and cached entries is left to the
//! ordinary walk afterwards.
//!
//! Each path is resolved as by a separate walk: its directory did not change between the walk to
//! the directory and the check after the entry was found. No shared memory is written.
//!
//! # What it is not
//! A snapshot: the paths are not all resolved at one moment.
//!
//! # Where it comes from
//! Onur Kocberber et al., "Asynchronous Memory Access Chaining" (VLDB 2015), for hash chains; here
//! for a chain of lookups.

mod missing;

use crate::base::errno::Errno;
use crate::base::name::{Components, PATH_MAX, ShortName};
use crate::base::packed_attr::PackedAttr;
use crate::mount::context::Context;
use crate::mount::place::{Base, Place};
use crate::slots::slot::{entry_hash, inode_beside, inode_of, view};
use crate::walk::paths::shortcut::Shortcut;
use crate::walk::rcu_walk::{RcuWalk, Step};
use core::ops::Range;

/// Walks that take turns. More than a core has line-fill buffers would gain nothing.
const LANES: usize = 16;

/// Paths that are resolved inside one RCU read section.
const CHUNK: usize = 512;

/// The next action of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Prefetch the head of the chain; the bucket is in the cache.
    Head,
    /// Search for the entry; its line is in the cache.
    Find,
}

#[derive(Clone, Copy)]
enum Goal {
    /// The directory of the paths with numbers from the first to below the second.
    Directory(usize, usize),
    /// The path with this number, from its directory on.
    Entry(usize),
}

/// One walk of a batch.
#[derive(Clone, Copy)]
struct Lane<'g, 'p> {
    goal: Goal,
    at: Step<'g>,
    parts: Components<'p>,
    start: usize,
    end: usize,
    name: ShortName,
    hash: u64,
    turn: Turn,
}

/// The result of a lane's turn.
enum Ended<'g> {
    GoesOn,
    Arrived(Step<'g>),
    /// The walk of the batch found a case for the ordinary walk.
    Fallback,
}

/// The paths of a chunk that no lane has begun.
struct Work<'g, 'p> {
    paths: &'p [&'p [u8]],
    /// Directories that were reached, and the paths in them that no lane has begun.
    reached: Vec<(Range<usize>, Step<'g>)>,
    next: usize,
    /// Paths for the ordinary walk.
    unresolved: Vec<usize>,
}

impl Context {
    /// Attributes of the target of each of `paths`, by the rules of [`Context::attr`]. Calls `emit`
    /// for each path with its number, the attributes and `st_dev`, in no particular order. Faster
    /// than single calls if the paths are not in the processor's caches, and if neighbours in
    /// `paths` lie in one directory. Names that the cache does not have are requested from the file
    /// system together, for up to 512 paths at once
    /// ([`FileSystem::lookup_many`](crate::FileSystem::lookup_many)).
    pub fn attr_many(
        &self,
        base: Base<'_>,
        paths: &[&[u8]],
        follow: bool,
        mut emit: impl FnMut(usize, Result<(PackedAttr, u64), Errno>),
    ) {
        let mut all = Vec::with_capacity(paths.len().min(CHUNK));
        for (number, chunk) in paths.chunks(CHUNK).enumerate() {
            let first = number * CHUNK;
            // `emit` may block, so it is called after the read section.
            let unresolved = if base.resolve.is_plain() {
                self.interleave(base, chunk, |at, found| all.push((at, found)))
            } else {
                (0..chunk.len()).collect()
            };
            all.drain(..).for_each(|(at, found)| emit(first + at, Ok(found)));
            if unresolved.len() > 1 && base.resolve.is_plain() {
                self.request_missing(base, unresolved.iter().map(|&at| chunk[at]));
            }
            for at in unresolved {
                emit(first + at, self.attr_as(base, chunk[at], follow, |attr, dev| (attr, dev)));
            }
        }
    }

    /// Resolves the common cases side by side; returns the numbers of the other paths.
    fn interleave(
        &self,
        base: Base<'_>,
        paths: &[&[u8]],
        mut emit: impl FnMut(usize, (PackedAttr, u64)),
    ) -> Vec<usize> {
        let tree = self.tree();
        let guard = tree.domain.read();
        let state = self.state(&guard);
        if self.own(base).is_err() {
            return (0..paths.len()).collect();
        }
        let (root, start) = (state.root.place(), base.dir.unwrap_or(&state.cwd).place());
        let walk = RcuWalk {
            tree,
            guard: &guard,
            view: view(tree.table(), &guard),
            key: tree.key,
            root,
            cred: &state.cred,
            resolve: base.resolve,
            fresh: core::ptr::null(),
            links: 0,
        };
        paths.iter().for_each(|path| ask_for(path));
        let place = |path: &[u8]| if path.first() == Some(&b'/') { root } else { start };
        if let Some(table) = tree.paths.table() {
            // (Links at ends are left to the ordinary walk.)
            let (resolve, links, follow) = (base.resolve, 0, false);
            let shortcut = Shortcut { tree, guard: &guard, table, state, resolve, links, follow };
            let rest = shortcut.read_many(paths, place, attr_of, &mut emit);
            if rest.is_empty() {
                return rest;
            }
            let others: Vec<&[u8]> = rest.iter().map(|&at| paths[at]).collect();
            let unresolved = walk.interleaved(&others, place, |at, found| emit(rest[at], found));
            return unresolved.into_iter().map(|at| rest[at]).collect();
        }
        walk.interleaved(paths, place, emit)
    }
}

impl<'g> RcuWalk<'g> {
    /// Walks `paths`, which begin at `place`, side by side; returns the numbers of those that are left to the ordinary walk.
    fn interleaved(
        &self,
        paths: &[&[u8]],
        place: impl Fn(&[u8]) -> Place<'g>,
        mut emit: impl FnMut(usize, (PackedAttr, u64)),
    ) -> Vec<usize> {
        let from = |path: &[u8]| Step::start(place(path));
        let mut work = Work { paths, reached: Vec::new(), next: 0, unresolved: Vec::new() };
        let mut lanes: Vec<Lane<'_, '_>> = Vec::with_capacity(LANES);
        while lanes.len() < LANES
            && let Some(lane) = work.begin(self, &from)
        {
            lanes.push(lane);
        }
        let mut turn = 0;
        while !lanes.is_empty() {
            if turn >= lanes.len() {
                turn = 0;
            }
            match lanes[turn].take_turn(self) {
                Ended::GoesOn => {
                    turn += 1;
                    continue;
                }
                Ended::Fallback => work.fall_back(lanes[turn].goal),
                Ended::Arrived(at) => work.arrived(lanes[turn].goal, at, &mut emit),
            }
            match work.begin(self, &from) {
                Some(lane) => lanes[turn] = lane,
                None => drop(lanes.swap_remove(turn)),
            }
            turn += 1;
        }
        work.unresolved
    }
}

impl<'g, 'p> Work<'g, 'p> {
    /// Returns the next walk: to an entry whose directory was reached, or to a directory.
    fn begin(&mut self, walk: &RcuWalk<'g>, from: &impl Fn(&[u8]) -> Step<'g>) -> Option<Lane<'g, 'p>> {
        loop {
            let (goal, at, text, start) = if let Some((range, at)) = self.reached.last_mut() {
                let (number, at) = (range.start, *at);
                range.start += 1;
                if range.start == range.end {
                    self.reached.pop();
                }
                let path = self.paths[number];
                (Goal::Entry(number), at, path, directory_len(path)?)
            } else {
                let first = self.next;
                let path = *self.paths.get(first)?;
                let Some(len) = directory_len(path) else {
                    self.unresolved.push(first);
                    self.next += 1;
                    continue;
                };
                let directory = &path[..len];
                let same = |other: &&[u8]| directory_len(other) == Some(len) && &other[..len] == directory;
                let count = self.paths[first..].iter().take_while(|other| same(other)).count();
                self.next = first + count;
                (Goal::Directory(first, self.next), from(path), directory, 0)
            };
            let name = ShortName { words: [0; 2], len: 0 };
            let parts = Components::new(text);
            let mut lane = Lane { goal, at, parts, start, end: start, name, hash: 0, turn: Turn::Head };
            match lane.cut(walk) {
                Ended::GoesOn => return Some(lane),
                Ended::Fallback => self.fall_back(goal),
                // An empty directory part: the start of the path.
                Ended::Arrived(at) => match goal {
                    Goal::Directory(first, end) => self.reached.push((first..end, at)),
                    Goal::Entry(number) => self.unresolved.push(number),
                },
            }
        }
    }

    fn fall_back(&mut self, goal: Goal) {
        match goal {
            Goal::Directory(first, end) => self.unresolved.extend(first..end),
            Goal::Entry(number) => self.unresolved.push(number),
        }
    }

    fn arrived(&mut self, goal: Goal, at: Step<'g>, emit: &mut impl FnMut(usize, (PackedAttr, u64))) {
        match goal {
            Goal::Directory(first, end) => self.reached.push((first..end, at)),
            Goal::Entry(number) => match attr_of(&at).filter(|_| at.object.is_plain_end() && !at.changed()) {
                Some(attr) => emit(number, attr),
                _ => self.unresolved.push(number),
            },
        }
    }
}

/// Returns the attributes of a place, and `st_dev`, if the attributes are fresh.
fn attr_of(at: &Step<'_>) -> Option<(PackedAttr, u64)> {
    Some((inode_of(at.dentry, at.object)?.packed()?, at.mount.get().dev))
}

/// Prefetches the text of a path: its beginning and its end.
fn ask_for(path: &[u8]) {
    prim::hint::prefetch(path.as_ptr());
    prim::hint::prefetch(path.as_ptr().wrapping_add(path.len().saturating_sub(1)));
}

/// Returns the length of a path's directory part, with the slash that ends it; `None` for paths of
/// the ordinary walk.
fn directory_len(path: &[u8]) -> Option<usize> {
    let plain = !path.is_empty() && path.len() <= PATH_MAX && path.last() != Some(&b'/');
    plain.then(|| path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1))
}

impl<'g> Lane<'g, '_> {
    fn take_turn(&mut self, walk: &RcuWalk<'g>) -> Ended<'g> {
        let filed = entry_hash(self.at.dentry, self.hash);
        match self.turn {
            Turn::Head => {
                let is_entry = matches!(self.goal, Goal::Entry(_));
                walk.view.ask_for_head(filed, |head| {
                    if is_entry {
                        prim::hint::prefetch(inode_beside(head));
                    }
                });
                self.turn = Turn::Find;
                Ended::GoesOn
            }
            Turn::Find => {
                let Some((entry, seq)) = walk.find(self.at.dentry, self.name, self.hash, false) else {
                    return Ended::Fallback;
                };
                let object = entry.object();
                if self.at.changed() {
                    return Ended::Fallback;
                }
                self.at = Step { mount: self.at.mount, dentry: entry, seq, object };
                self.start = self.end + 1;
                self.cut(walk)
            }
        }
    }

    /// Cuts out the next name and prefetches its bucket.
    fn cut(&mut self, walk: &RcuWalk<'g>) -> Ended<'g> {
        let path = self.parts.path();
        while path.get(self.start) == Some(&b'/') {
            self.start += 1;
        }
        if self.start >= path.len() {
            return Ended::Arrived(self.at);
        }
        if !self.at.object.is_open_dir() {
            return Ended::Fallback;
        }
        let len = self.parts.delimiters(self.start).trailing_zeros() as usize;
        if len > ShortName::MAX {
            return Ended::Fallback;
        }
        self.end = self.start + len;
        self.name = self.parts.short_at(self.start, len);
        if self.name.is_dots() {
            return Ended::Fallback;
        }
        self.hash = walk.key.hash_short(self.name);
        walk.view.ask_for_bucket(entry_hash(self.at.dentry, self.hash));
        self.turn = Turn::Head;
        Ended::GoesOn
    }
}
