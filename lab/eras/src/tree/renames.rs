//! `rename_lock`, which shows walkers and reverse paths that an entry moved.
//!
//! # What it is
//! | of            | a move                    | a search that missed     | a reverse path                      |
//! |---------------|---------------------------|--------------------------|-------------------------------------|
//! | [`SeqSpin`]   | spinlock and write section | read section, again     | **as a move**: one at a time        |
//! | [`SeqShared`] | writer                    | read section, again      | blocking reader: beside one another |
//! | [`SeqExclusive`] | spinlock and write section | read section, again  | the spinlock alone, and only if something moved during a first pass |
//!
//! # Source
//! `rename_lock` (Maneesh Soni and others, Linux 2.5.x). `d_path` takes it as a writer since Nick
//! Piggin's change of 2009 (Linux 2.6.38), which removed `dcache_lock`. The shared way is Waiman
//! Long's `seqrwlock` of January 2013. His locking reader of Linux 3.12 was merged: it excludes
//! writers and other locking readers, but leaves the sequence alone.

use super::global_lock::{GlobalGuard, GlobalLock};
use locks::lockstat::Class;
use prim::profile::{Tag, scope};
use sync::{RawLock, SeqCount, SeqRwLock, SeqRwReadGuard, SeqRwWriteGuard, SeqWrite};

/// A sequence of moves.
pub(crate) trait Renames: Send + Sync + 'static {
    /// A move under way.
    type Write<'a>;
    /// Moves kept out.
    type Still<'a>;
    /// A reverse path takes no lock at first, and this one only if something moved.
    const CLIMBS_FREE: bool = false;

    fn new() -> Self;

    /// Samples the sequence, waiting for the end of a move.
    fn begin(&self) -> u32;

    /// Returns whether something moved since.
    fn retry(&self, start: u32) -> bool;

    /// Begins a move.
    fn write(&self) -> Self::Write<'_>;

    /// Keeps moves out.
    fn still(&self) -> Self::Still<'_>;

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class));
}

/// A sequence count under a spinlock: `seqlock_t` as it was.
#[repr(align(128))]
pub(crate) struct SeqSpin<R: RawLock, const IS_EXCLUSIVE: bool = false> {
    lock: GlobalLock<R>,
    /// On the line of the lock in the kernel; apart here, since the statistics are in between. This
    /// is kinder to searches.
    seq: SeqCount,
}

/// A [`SeqSpin`] held, for writing or by its spinlock alone. Fields are dropped in this order.
pub(crate) struct SeqSpinGuard<'a, R: RawLock> {
    _write: Option<SeqWrite<'a>>,
    _held: GlobalGuard<'a, R>,
}

impl<R: RawLock, const IS_EXCLUSIVE: bool> SeqSpin<R, IS_EXCLUSIVE> {
    /// Returns a [`SeqSpin`] whose lock has the name `name` in the statistics.
    pub(crate) fn with_name(name: &'static str) -> Self {
        Self { lock: GlobalLock::new(name), seq: SeqCount::new() }
    }
}

impl<R: RawLock + 'static, const IS_EXCLUSIVE: bool> Renames for SeqSpin<R, IS_EXCLUSIVE> {
    type Write<'a> = SeqSpinGuard<'a, R>;
    type Still<'a> = SeqSpinGuard<'a, R>;
    const CLIMBS_FREE: bool = IS_EXCLUSIVE;

    fn new() -> Self {
        Self::with_name("rename_lock")
    }

    fn begin(&self) -> u32 {
        let _scope = scope(Tag::SeqLock);
        self.seq.begin()
    }

    fn retry(&self, start: u32) -> bool {
        self.seq.retry(start)
    }

    fn write(&self) -> Self::Write<'_> {
        let held = self.lock.lock();
        SeqSpinGuard { _write: Some(self.seq.write()), _held: held }
    }

    fn still(&self) -> Self::Still<'_> {
        if IS_EXCLUSIVE { SeqSpinGuard { _held: self.lock.lock(), _write: None } } else { self.write() }
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        visit(self.lock.class());
    }
}

/// As [`SeqSpin`], with reverse paths that take the spinlock alone.
pub(crate) type SeqExclusive<R> = SeqSpin<R, true>;

/// A sequence lock with readers that keep writers out.
#[repr(align(128))]
pub(crate) struct SeqShared(SeqRwLock);

impl Renames for SeqShared {
    type Write<'a> = SeqRwWriteGuard<'a>;
    type Still<'a> = SeqRwReadGuard<'a>;

    fn new() -> Self {
        Self(SeqRwLock::new())
    }

    fn begin(&self) -> u32 {
        self.0.read_begin()
    }

    fn retry(&self, start: u32) -> bool {
        self.0.read_retry(start)
    }

    fn write(&self) -> Self::Write<'_> {
        self.0.write_lock()
    }

    fn still(&self) -> Self::Still<'_> {
        self.0.read_lock()
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}
