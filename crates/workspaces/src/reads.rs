//! The reads of a fork, for a commit that must not depend on anything that has changed since.
//!
//! # What it is
//! A read is a name that a program has looked up, also a missing one, or a directory that it has listed. It is noted with the state
//! of the base at that moment. The cache of the fork answers every further look, so a name is noted once, and to read it again costs nothing.
//! A file that the fork, or a fork before it, has changed is compared by its records.
//!
//! # How it is locked
//! A mutex, held for some instructions.

use crate::publish::STAGING;
use crate::record::{Key, Stamp};
use crate::state::State;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use vfs::{Attr, Errno, NewInode, PathRef, Want};

/// The most names of a fork: about 50 MiB.
const MOST: usize = 1 << 18;

/// The state of a name in the base, or of all names of a directory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Seen {
    Nothing,
    File(Stamp),
    /// The sum of the hashes of all names.
    Names(u64),
}

/// A directory of the base, and the state that a program has seen.
type OfBase = (Arc<PathRef>, Seen);

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Names by their directories; no name stands for the listing. `None`: records of the fork had the name.
    seen: HashMap<(u64, Option<Key>), Option<OfBase>>,
    nodes: HashSet<u64>,
    /// Whether programs have read more.
    is_over: bool,
}

impl Reads {
    /// Returns whether a program has looked up a name, or listed its directory.
    pub(crate) fn has_name(&self, dir: u64, name: &[u8]) -> bool {
        [Some(Key::from(name)), None].into_iter().any(|name| self.seen.contains_key(&(dir, name)))
    }

    /// Returns whether a program has looked up a node.
    pub(crate) fn has_node(&self, number: u64) -> bool {
        self.nodes.contains(&number)
    }
}

impl State {
    /// Notes that a program has looked up a name, or lists a directory (without a name).
    pub(crate) fn note_read(&self, dir: u64, name: Option<&[u8]>, found: Option<&NewInode>) {
        let Some(reads) = &self.reads else { return };
        let is_own = {
            let tree = self.tree.lock();
            let has_record = found.is_some_and(|found| tree.node(found.node).is_some());
            has_record || name.is_some_and(|name| tree.name(dir, name).is_some())
        };
        let base = self.current(dir).ok().and_then(|current| current.base.clone()).filter(|_| !is_own);
        if name.is_none() && reads.lock().seen.contains_key(&(dir, None)) {
            return;
        }
        let of_base = base.map(|base| {
            let listed = || self.seen_now(&base, None).unwrap_or(Seen::Nothing);
            let missing = || if name.is_some() { Seen::Nothing } else { listed() };
            let seen = found.map_or_else(missing, |found| Seen::File(Stamp::of(&found.attr)));
            (base, seen)
        });
        let mut reads = reads.lock();
        let reads = Arc::make_mut(&mut reads);
        reads.is_over |= reads.seen.len() >= MOST;
        if !reads.is_over {
            reads.nodes.extend(found.map(|found| found.node));
            reads.seen.entry((dir, name.map(Key::from))).or_insert(of_base);
        }
    }

    /// Returns all reads so far. `None`: they were not noted, or not all.
    pub(crate) fn reads(&self) -> Option<Arc<Reads>> {
        self.reads.as_ref().map(|reads| reads.lock().clone()).filter(|reads| !reads.is_over)
    }

    /// Returns the paths of the reads whose state in the base has changed since.
    ///
    /// # Errors
    /// The base's.
    pub(crate) fn stale_reads(&self, reads: &Reads) -> Result<Vec<Vec<u8>>, Errno> {
        let mut paths = Vec::new();
        for ((_, name), of_base) in &reads.seen {
            let Some((dir, seen)) = of_base else { continue };
            if self.seen_now(dir, name.as_deref())? != *seen {
                let path = self.shared.lower.path(dir);
                let parts = [&*path, name.as_deref().unwrap_or_default()].into_iter().filter(|part| !part.is_empty());
                paths.push(parts.collect::<Vec<_>>().join(&b'/'));
            }
        }
        Ok(paths)
    }

    /// Notes the state of the base after a commit of this fork, which may have changed it.
    ///
    /// # Errors
    /// The base's.
    pub(crate) fn renew_reads(&self) -> Result<(), Errno> {
        let (Some(reads), Some(before)) = (&self.reads, self.reads()) else { return Ok(()) };
        let mut new = HashMap::new();
        for (what, of_base) in &before.seen {
            if let Some((dir, _)) = of_base {
                new.insert(what.clone(), Some((dir.clone(), self.seen_now(dir, what.1.as_deref())?)));
            }
        }
        Arc::make_mut(&mut reads.lock()).seen.extend(new);
        Ok(())
    }

    /// Returns the state of a name in a directory of the base; without a name, of all its names.
    fn seen_now(&self, dir: &PathRef, name: Option<&[u8]>) -> Result<Seen, Errno> {
        let lower = &self.shared.lower;
        if let Some(name) = name {
            let attr = lower.find_anew(dir, name)?.map(|found| found.attr_anew()).transpose()?;
            let stamp = |attr: Attr| Seen::File(Stamp::of(&Attr { ino: self.number(attr.ino), ..attr }));
            return Ok(attr.filter(|attr| attr.nlink > 0).map_or(Seen::Nothing, stamp));
        }
        let mut sum = 0_u64;
        let opened = match lower.open(dir) {
            Err(Errno::ENOENT | Errno::ESTALE) => return Ok(Seen::Nothing),
            opened => opened?,
        };
        opened.entries_after(0, Want::NAMES, &mut |entry, _| {
            let mut hasher = DefaultHasher::new();
            entry.name.hash(&mut hasher);
            sum = sum.wrapping_add(if *entry.name == *STAGING { 0 } else { hasher.finish() });
            true
        })?;
        Ok(Seen::Names(sum))
    }
}
