//! A file or directory of the tree.
//!
//! # What it is
//! The last answers of the store about the file, how long they are valid, and the new contents
//! of a file that is written. A listing reports an object without its metadata, so the attributes in
//! them have a separate time.
//!
//! # How it is locked
//! A thread holds the mutex `facts` for a few instructions, and the mutex `content` during requests
//! to the store.

use crate::buffer::Buffer;
use crate::deadline::Deadline;
use crate::kept::Kept;
use crate::meta::{Found, Kind, Meta};
use crate::window::Windows;
use core::time::Duration;
use parking_lot::{Mutex, MutexGuard};
use std::time::Instant;
use vfs::Errno;

/// The contents that a file has here and not yet in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Local {
    pub(crate) size: u64,
    /// The attributes that the object gets with these contents.
    pub(crate) kept: Kept,
}

/// How much older than a request an object must be, in nanoseconds: a later change of its metadata then
/// has another time, in whole seconds.
const SETTLED: i128 = 2_000_000_000;

/// The facts about a node.
#[derive(Default, Debug)]
pub(crate) struct Facts {
    pub(crate) meta: Option<Meta>,
    /// When the request for `meta` began. `None`: `meta` must be requested again.
    pub(crate) fetched: Option<Instant>,
    /// The attributes in the metadata of the object, or of the directory's marker.
    pub(crate) kept: Kept,
    /// When the request for `kept` began. `None`: `kept` must be requested again.
    pub(crate) kept_at: Option<Instant>,
    /// Whether `kept` changes only together with the time in `meta`.
    pub(crate) is_settled: bool,
    /// When a change by this mount ended. Answers to earlier requests are void.
    pub(crate) changed: Option<Instant>,
    /// The version of the contents, which changes with them.
    pub(crate) version: u64,
    /// The size and the attributes of the write buffer, while there is a write buffer.
    pub(crate) local: Option<Local>,
    /// The number of opens of a file.
    pub(crate) opens: u32,
    /// The number of opens that write.
    pub(crate) writers: u32,
    /// Whether the name of the file was removed. The contents of the file are then in the buffer,
    /// and stay in the buffer.
    pub(crate) is_nameless: bool,
    /// Whether a change has begun that takes the name of the file away. The thread of this change
    /// has locked the contents.
    pub(crate) is_leaving: bool,
    /// Whether a listing of the directory did not have the name.
    pub(crate) is_gone: bool,
    /// When a listing of the directory began that had all names.
    pub(crate) complete: Option<Instant>,
    /// How many names of the directory were requested one by one, and since when.
    pub(crate) asked: Option<(Instant, u32)>,
    /// Whether the directory has too many names to list them for a lookup.
    pub(crate) is_large: bool,
    /// Whether the directory has a marker.
    pub(crate) has_marker: bool,
}

/// See the [module documentation](self).
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) is_dir: bool,
    facts: Mutex<Facts>,
    content: Mutex<Option<Buffer>>,
    pub(crate) windows: Windows,
}

impl Node {
    pub(crate) fn new(id: u64, kind: Kind) -> Self {
        Self { id, kind, is_dir: kind == Kind::Dir, ..Self::default() }
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }

    /// Notes the result of a request that began at `began`.
    pub(crate) fn learn(&self, found: &Found, began: Instant) {
        let mut facts = self.facts();
        match found {
            Found::File(Some(meta)) | Found::Link(Some(meta)) => facts.learn(meta, began),
            Found::File(None) | Found::Link(None) => facts.is_gone = false,
            Found::Dir(kept) => {
                (facts.is_gone, facts.fetched) = (false, Some(began));
                if let Some(kept) = kept {
                    facts.learn_kept(*kept, began);
                }
            }
        }
    }

    /// Makes opens wait until the removal of the name has succeeded or failed. The caller has
    /// locked the contents, and keeps the lock until it drops the result.
    pub(crate) fn leave(&self) -> Leaving<'_> {
        self.facts().is_leaving = true;
        Leaving(self)
    }

    /// Counts an open. Waits for a change that removes the name. Returns the version of the
    /// contents.
    ///
    /// # Errors
    /// `ESTALE`: the name is removed; `ETIMEDOUT` at the deadline.
    pub(crate) fn count_open(&self, until: Deadline, writes: bool) -> Result<u64, Errno> {
        loop {
            {
                let mut facts = self.facts();
                if facts.is_nameless && facts.local.is_none() {
                    return Err(Errno::ESTALE);
                }
                if !facts.is_leaving {
                    facts.opens += 1;
                    facts.writers += u32::from(writes);
                    return Ok(facts.version);
                }
            }
            drop(self.content(until)?);
        }
    }

    /// Locks the write buffer.
    ///
    /// # Errors
    /// `ETIMEDOUT` at the deadline.
    pub(crate) fn content(&self, until: Deadline) -> Result<MutexGuard<'_, Option<Buffer>>, Errno> {
        until.lock(|| self.content.lock(), |left| self.content.try_lock_for(left))
    }
}

/// Returns whether an answer from the time `at` is still valid.
pub(crate) fn is_fresh(at: Option<Instant>, ttl: Duration) -> bool {
    left(at, ttl) > Duration::ZERO
}

/// Returns for how long an answer from the time `at` is still valid.
pub(crate) fn left(at: Option<Instant>, ttl: Duration) -> Duration {
    at.map_or(Duration::ZERO, |at| ttl.saturating_sub(at.elapsed()))
}

/// See [`Node::leave`].
pub(crate) struct Leaving<'n>(&'n Node);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.facts().is_leaving = false;
    }
}

impl Facts {
    /// Returns whether this mount has changed the file, or a name in the directory, since `began`: the
    /// answer to a request that began then is void.
    pub(crate) fn changed_since(&self, began: Instant) -> bool {
        self.changed.is_some_and(|changed| began <= changed)
    }

    /// Returns whether an object has other contents than these facts are about.
    pub(crate) fn is_other(&self, found: &Found) -> bool {
        let (Found::File(meta) | Found::Link(meta)) = found else { return true };
        self.meta.as_ref().zip(meta.as_ref()).is_some_and(|(old, new)| !old.is_same(new))
    }

    /// Takes the answer to a request that began at `began`, unless this mount changed the file
    /// meanwhile.
    pub(crate) fn learn(&mut self, meta: &Meta, began: Instant) {
        if self.changed_since(began) {
            return;
        }
        self.is_gone = false;
        self.fetched = Some(began);
        let same = self.meta.as_ref().filter(|old| old.is_same(meta));
        let (is_same, is_unwritten) = (same.is_some(), same.is_some_and(|old| old.modified == meta.modified));
        match meta.kept {
            Some(kept) => {
                self.learn_kept(kept, began);
                let age = prim::clock::now_ns().saturating_sub(meta.modified);
                self.is_settled = i128::from(age) - began.elapsed().as_nanos() as i128 > SETTLED;
            }
            None if is_unwritten && self.is_settled => self.kept_at = self.kept_at.map(|at| at.max(began)),
            None if !is_same => self.kept_at = None,
            None => {}
        }
        self.version += u64::from(!is_same);
        if !is_same || meta.has_etag {
            self.meta = Some(meta.clone());
        }
    }

    /// Takes the attributes in the answer to a request that began at `began`, unless this mount changed
    /// them meanwhile.
    fn learn_kept(&mut self, kept: Kept, began: Instant) {
        if self.kept_at.is_none_or(|at| at <= began) {
            (self.kept, self.kept_at) = (kept, Some(began));
        }
    }

    /// Takes attributes that this mount has stored, perhaps with a new object, whose contents are the
    /// same.
    pub(crate) fn amended_to(&mut self, kept: Kept, meta: Option<Meta>) {
        if let Some(meta) = meta {
            let now = Some(Instant::now());
            (self.changed, self.fetched, self.meta) = (now, now, Some(meta));
        }
        self.keep(kept);
    }

    /// Takes attributes that this mount has stored.
    pub(crate) fn keep(&mut self, kept: Kept) {
        (self.kept, self.kept_at, self.is_settled) = (kept, Some(Instant::now()), false);
    }

    /// Returns whether the buffer is still needed.
    pub(crate) fn keeps_buffer(&self) -> bool {
        if self.is_nameless { self.opens > 0 } else { self.writers > 0 }
    }

    /// Notes that a request which began at `began` did not find the file, unless this mount changed
    /// the file meanwhile.
    pub(crate) fn lost(&mut self, began: Instant) {
        if !self.changed_since(began) {
            (self.is_gone, self.fetched) = (self.local.is_none(), None);
        }
    }

    /// Takes the results of a change by this mount.
    pub(crate) fn changed_to(&mut self, meta: Meta) {
        self.version += 1;
        self.is_gone = false;
        (self.changed, self.fetched) = (Some(Instant::now()), None);
        if let Some(kept) = meta.kept {
            self.keep(kept);
        }
        self.meta = Some(meta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(tag: &str) -> Meta {
        Meta { size: 1, modified: 0, tag: tag.into(), has_etag: true, kept: None }
    }

    #[test]
    fn an_answer_without_an_etag_keeps_the_one_that_is_known() {
        let mut facts = Facts::default();
        let plain = Meta { has_etag: false, ..meta("time and size") };
        for (answer, tag, version) in [
            (&plain, "time and size", 1),
            (&meta("a"), "a", 1),
            (&plain, "a", 1),
            (&meta("b"), "b", 2),
            (&Meta { size: 2, ..plain.clone() }, "time and size", 3),
        ] {
            facts.learn(answer, Instant::now());
            assert_eq!((facts.meta.as_ref().map(|meta| &*meta.tag), facts.version), (Some(tag), version));
        }
    }

    #[test]
    fn an_answer_from_before_a_change_is_void() {
        let mut facts = Facts::default();
        let early = Instant::now();
        facts.learn(&meta("a"), early);
        facts.changed_to(meta("b"));
        facts.learn(&meta("a"), early);
        assert_eq!((facts.meta.clone(), facts.fetched, facts.version), (Some(meta("b")), None, 2));
        facts.learn(&meta("b"), Instant::now() + Duration::from_nanos(1));
        assert_eq!((facts.fetched.is_some(), facts.version), (true, 2));
    }
}
