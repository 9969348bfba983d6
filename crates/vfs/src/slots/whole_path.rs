//! Whole paths: a table from a path to its dentry, in front of the walk, and the counters that show
//! whether its entries may be used.
//!
//! # What it is
//! A cache of walks. The key of an entry is the walk's start and the text of the path; the entry
//! has the dentry that the walk found, the dentry's sequence count, and a *stamp*: the number of
//! changes of the tree's *skeleton* that had begun when the path was recorded. The skeleton is all
//! that a path passes before its last name: directories, their names, and the rights to search
//! them. An entry is used if no change of the skeleton began since the recording, and the dentry's
//! sequence is the recorded one. So a lookup stores nothing, and does no work for each component.
//!
//! A path is recorded if all its steps are plain ones: down through directories, mount points and
//! symbolic links, without `..`. If the path has a directory that not everyone may search, a mount
//! point, or a link, it is recorded for one [class](classes) of credentials and for the start's
//! mount. Other paths are walked. `whole_path/admission.rs` decides which paths are recorded;
//! `whole_path/checked.rs` has the lists that one CPU index found right.
//!
//! # What counts as a change
//! A directory or link has a *mark* ([`PASSED`](crate::slots::object::ObjectFlags::PASSED)) if a
//! recorded path passed it. Changes of unmarked ones count nothing.
//!
//! | operation | counted |
//! |---|---|
//! | rename or exchange of a directory or a link; a link's replacement, removal and eviction | *soft*, if it is marked: [`Moving`] |
//! | a directory that not everyone may search any more; a mount on a directory; an expiry, also of a link | *hard*, if it is marked: [`Dentry::update_flags`] |
//! | links of a mount that are no longer followed | hard, always: `Mount::set_flags` |
//! | mode, owner or group of a directory that is not open to everyone before and after | hard, if it is marked: `Inode::change_of_rights` |
//! | an ACL of a directory | hard, if it is marked: [`WholePaths::change_rights`] |
//! | mount, unmount, move of a mount | hard, if the mount point is marked: [`WholePaths::change_mounts`] |
//! | the end of a superblock, whose dentries' memory is freed | hard, always |
//! | create, link, unlink, rename of a file; chmod of a file; rmdir and eviction | not: the sequence of the last dentry, or of the negative entry, changes |
//!
//! A directory can be removed or evicted only when it has no entries. So no path through it has a
//! dentry. A link can be evicted at any time, and replaced in the file system after that. Its text
//! changes in no other way.
//!
//! # Lists
//! A change makes the stamps of all entries old, even of entries whose paths it does not touch.
//! [Lists](lists) show which of these entries are still right. A list has the directories on the
//! way from one start to one directory, and a keyed sum of their sequences. All files of that
//! directory share the list. An entry with an old stamp is still right under three conditions:
//! - No hard change began since the stamp.
//! - The entry's list is not younger than the entry.
//! - The sum of the list is unchanged: no directory of the path moved.
//!
//! The entry then gets the current stamp.
//!
//! # Why an entry that is used is right
//! 1. The recorder reads that the changes begun and ended are both v, walks, and reads that the
//!    changes begun are still v. So at each moment of that walk the path led to the dentry.
//! 2. A change is counted as begun before a walk can see any of it, and as ended after. A lookup
//!    compares the stamp before and after it reads. If it read any of a change, it sees the count.
//!    So no directory of the path moved or was closed between the recording and the lookup.
//! 3. The dentry's sequence is the recorded one after the reads: it kept its name, its directory
//!    and its object. So the path led to it all the time.
//! 4. The mark is a bit of the object word, and so is the right to search. The recorder sets the
//!    mark by a read-modify-write, or finds it, and then samples the sequence. A change of rights
//!    is a read-modify-write of the same word. A move makes the sequence odd and then reads the
//!    word by a read-modify-write. All of these are in one order: the change sees the mark, or the
//!    recorder sees the change. Mode, owner and group change in a write section of the inode, in
//!    which the changer reads the word by a read-modify-write. The recorder reads them after its
//!    own, so the same order holds. An ACL changes in several steps: the changer reads the word
//!    before and after, and a path that is recorded in between is useless after the change. A
//!    lookup that finds that path before the end of the change is concurrent with it. Mounts change
//!    in a write section of the mounts' sequence, in which the changer reads the word by a
//!    read-modify-write. The recorder marks a mount point before it looks for the mount, and gives
//!    up if that sequence changed during the recording.
//! 5. With an old stamp: each sequence only grows while its directory has an entry on the path, so
//!    the sum is the same only if no directory moved since the list was made, and the entry was
//!    recorded no earlier. (A directory that lost all its entries can be freed, and its sequence be
//!    read as zero. Then the path's next directory has moved. The keys of the sum are secret, so
//!    the sums are equal by a chance of less than 2^-32.) A move makes the sequence odd before it
//!    is counted. A lookup reads the count first: it sees a counted move in the sum, and a move
//!    that is not yet counted at the end in the stamp. A path that crosses mount points has a list
//!    that is found by the text of its directory. If the list is right and not younger than the
//!    entry, that text has led to one directory since the recording, over the mount points of the
//!    list, which have the same mounts.
//! 6. The end of a superblock is counted before the grace period that frees its memory, so a lookup
//!    that finds no later hard change reads memory that stays until its read section ends.
//! 7. While a link's sequence is the same, its text leads to the same name, from its directory or
//!    from the root (the path itself then begins there). The list has the path's links, as it has
//!    the directories. The text of a link may have `..`: the list has the directory that `..`
//!    leaves, so this directory's parent is the same.
//!
//! Counts of 32 bits wrap around. When the changes begun, or the sequence of a dentry that changes
//! its name, pass a multiple of 2^30, all entries are removed.
//!
//! # Where it comes from
//! Tsai and others, "How to Get More Value From Your File System Directory Cache" (SOSP '15), for
//! lookups by whole path. New here are stamps, in place of their visits to all descendants, the
//! marks, and the order in one word.
//!
//! # How it is locked
//! No lock: the entries are sequence locks ([`sync::signature_table`]), the counters are added to.

// (The paths are for `tests/loom/whole_path.rs`, which compiles this file beside a smaller dentry.)
#[path = "whole_path/admission.rs"]
mod admission;
#[path = "whole_path/checked.rs"]
mod checked;
#[path = "whole_path/classes.rs"]
pub(crate) mod classes;
#[path = "whole_path/lists.rs"]
pub(crate) mod lists;

pub(crate) use admission::Admission;
pub(crate) use classes::Classed;
pub(crate) use lists::{List, Lists};

use crate::base::access::credentials::Credentials;
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::whole_path::classes::Classes;
use crate::slots::whole_path::lists::Pair;
use core::ops::Deref;
use prim::PerCpu;
use prim::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use sync::SignatureTable;
use sync::signature_table::Found;

/// How many changes, and counts of a dentry's sequence, pass between two removals of all entries.
const ROUND: u32 = 1 << 30;

/// See the [module documentation](self).
pub(crate) struct WholePaths {
    table: Option<Box<Table>>,
    begun: Begun,
    ended: Ended,
}

/// The low half is the number of changes begun; the high half, the number of changes begun at the
/// last hard change. Lookups read this line; only changes write it.
#[repr(align(128))]
struct Begun(AtomicU64);

/// The number of changes begun, and the number of the last hard one.
#[derive(Clone, Copy)]
pub(crate) struct Stamps {
    pub(crate) begun: u32,
    hard: u32,
}

impl Stamps {
    /// Returns whether no hard change began after `stamp`.
    pub(crate) fn is_soft_since(self, stamp: u32) -> bool {
        stamp.wrapping_sub(self.hard).cast_signed() >= 0
    }
}

/// Whether lists notice a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They do: it changes the sequence of a directory on the path.
    Soft,
    Hard,
}

/// Changes ended.
#[repr(align(128))]
struct Ended(AtomicU32);

/// The entries, and which walks become one.
pub(crate) struct Table {
    pub(crate) entries: SignatureTable,
    pub(crate) lists: Lists,
    pub(crate) admission: PerCpu<Admission>,
    classes: Classes,
    /// The secret of the signatures of paths that end at a link which is followed.
    pub(crate) followed: u128,
    /// Every walk that can be recorded is, at its first use: for tests.
    pub(crate) admits_all: bool,
    /// How often the table was emptied because a count wrapped around.
    emptied: AtomicU64,
}

/// The word of checks of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) seq: u32,
    pub(crate) stamp: u32,
}

/// A bit of the sequence in an entry's word of checks, which is 0 in the sequence of a dentry that
/// does not change: the path crosses mount points or has links, and its list shows the way. A
/// reader without this bit does not match such an entry.
const ROUTED: u32 = 1;

impl Check {
    #[inline(always)]
    pub(crate) fn of(found: &Found) -> Self {
        Self { seq: (found.check >> 32) as u32, stamp: found.check as u32 }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.seq) << 32 | u64::from(self.stamp)
    }

    /// Returns whether the path crosses mount points or has links.
    pub(crate) fn is_routed(self) -> bool {
        self.seq & ROUTED != 0
    }

    /// Returns the word for a path that crosses mount points or has links, or for one that does
    /// not.
    pub(crate) fn routed(self, is_routed: bool) -> Self {
        Self { seq: self.seq & !ROUTED | if is_routed { ROUTED } else { 0 }, ..self }
    }
}

/// How a tree finds whole paths.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Options {
    /// Bytes of the table; 0: there is none.
    pub(crate) bytes: usize,
    pub(crate) admits_all: bool,
    /// Directories are sharded at once: for tests.
    pub(crate) shards_always: bool,
}

/// State and statistics of the table of whole paths.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WholePathStats {
    /// Bytes of the table; 0 if the tree has none.
    pub bytes: usize,
    /// Entries of paths, whether they may still be used or not. Counted by a pass over the table.
    pub entries: usize,
    /// Entries that no change of a directory has made useless.
    pub current: usize,
    /// Lookups that found no entry, or one that is no longer right, and walked. Lookups by the
    /// table are not counted: they store nothing. Nor are lookups of paths of more than 256 bytes,
    /// which never use the table.
    pub misses: u64,
    /// Paths that were recorded.
    pub recorded: u64,
    /// Paths that were used a second time and could not be recorded.
    pub refused: u64,
    /// Lookups that found an entry from before a change elsewhere, and used it: its own directories
    /// had not changed.
    pub by_list: u64,
    /// Of these, how many gave the entry the current stamp. (Not each does: it would cost all other
    /// CPUs a transfer.)
    pub renewed: u64,
    /// Classes of credentials: paths through directories that not everyone may search are recorded for each class.
    pub classes: usize,
    /// Changes of directories on recorded paths.
    pub changes: u32,
    /// How often all entries were removed because a count wrapped around.
    pub emptied: u64,
}

impl WholePaths {
    /// Without a table if the system has no memory for one.
    pub(crate) fn new(options: Options) -> Self {
        let table = if options.bytes == 0 { None } else { Table::new(options) };
        Self { table: table.map(Box::new), begun: Begun(AtomicU64::new(0)), ended: Ended(AtomicU32::new(0)) }
    }

    /// Returns the table, if the tree has one.
    #[inline(always)]
    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.as_deref()
    }

    /// Returns the number of changes begun.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> u32 {
        // Relaxed: before a lookup the load orders nothing; after it, `Step::changed` has a fence before.
        self.begun.0.load(Relaxed) as u32
    }

    /// Returns the number of changes begun, and the number of the last hard one.
    pub(crate) fn stamps(&self) -> Stamps {
        // ORDERING: Acquire, pairs with the Release of the exchange in `change`: of a move that is counted here, the odd
        // sequence is seen, or a later one.
        let word = self.begun.0.load(Acquire);
        Stamps { begun: word as u32, hard: (word >> 32) as u32 }
    }

    /// Returns the number of changes begun, if all of them have ended.
    fn quiet(&self) -> Option<u32> {
        // ORDERING: Acquire, pairs with the Release of `Change::drop`: what those changes did is seen.
        let ended = self.ended.0.load(Acquire);
        // It is at least the number of ended changes. If both are equal, no change was under way at
        // the load above.
        (self.stamp() == ended).then_some(ended)
    }

    /// Returns the result of `walk`, if all that it read is of one moment: no change was under way
    /// at its start, and none began before its end. It gets the number of changes begun.
    pub(crate) fn unchanged<T>(&self, walk: impl FnOnce(u32) -> Option<T>) -> Option<T> {
        let stamp = self.quiet()?;
        let result = walk(stamp)?;
        // ORDERING: the Acquire fence pairs with the Release fence in `change`: if the walk read any of a change, its
        // beginning is seen below.
        fence(Acquire);
        (self.stamp() == stamp).then_some(result)
    }

    /// Counts a change of the skeleton, which begins now and ends when the result is dropped.
    #[cold]
    pub(crate) fn change(&self, kind: Kind) -> Change<'_> {
        let next = |word: u64| {
            let begun = (word as u32).wrapping_add(1);
            let hard = if kind == Kind::Hard { begun } else { (word >> 32) as u32 };
            u64::from(hard) << 32 | u64::from(begun)
        };
        // ORDERING: Release, pairs with the Acquire load in `stamps`.
        let before = self.begun.0.fetch_update(Release, Relaxed, |word| Some(next(word)));
        // ORDERING: the Release fence pairs with the Acquire fence of a lookup or recorder behind its reads: if it read
        // anything that this thread stores from now on, it sees that the change has begun.
        fence(Release);
        if before.is_ok_and(|word| (word as u32).wrapping_add(1).is_multiple_of(ROUND)) {
            self.empty();
        }
        Change(self)
    }

    /// Runs `change`, which changes the right to search the directory `dentry`, and counts it if a recorded path passed the
    /// directory. For changes that are not made in one write section: a path that is recorded meanwhile is useless after it.
    pub(crate) fn change_rights<R>(&self, dentry: &Dentry, change: impl FnOnce() -> R) -> R {
        let counted = dentry.is_passed().then(|| self.change(Kind::Hard));
        let result = change();
        if counted.is_none() && dentry.is_passed() {
            drop(self.change(Kind::Hard));
        }
        result
    }

    /// Counts a change of the mounts on `mountpoint`, if a recorded path passed or crossed it. Call inside the write section of
    /// the mounts' sequence.
    pub(crate) fn change_mounts(&self, mountpoint: &Dentry) -> Option<Change<'_>> {
        mountpoint.is_passed().then(|| self.change(Kind::Hard))
    }

    /// Credentials with their class, if the tree has a table.
    pub(crate) fn classed(&self, cred: Credentials) -> Classed {
        let class = self.table().and_then(|table| table.classes.of(&cred));
        Classed::new(cred, class)
    }

    /// Removes all entries if the sequence of `dentry`, whose name changes, wraps around.
    #[inline(always)]
    pub(crate) fn note_sequence(&self, dentry: &Dentry) {
        // A life of a slot takes four counts, and a move two: no dentry passes the multiple without this.
        if dentry.seq.current() & (ROUND - 1) < 8 && dentry.seq.current() >= ROUND {
            self.empty();
        }
    }

    #[cold]
    fn empty(&self) {
        if let Some(table) = self.table() {
            table.entries.clear();
            table.lists.clear();
            // Relaxed: a statistic.
            table.emptied.fetch_add(1, Relaxed);
        }
    }

    /// Returns the lookups of the calling thread's CPU index.
    #[cfg(feature = "testing")]
    pub(crate) fn stats_here(&self) -> WholePathStats {
        self.table().map_or_else(WholePathStats::default, |table| table.admission.this().stats())
    }

    /// Returns the state of the table. Examines every entry.
    pub(crate) fn stats(&self) -> WholePathStats {
        let changes = self.stamp();
        let Some(table) = self.table() else { return WholePathStats { changes, ..WholePathStats::default() } };
        let sum = |get: fn(&Admission) -> u64| table.admission.iter().map(get).sum();
        WholePathStats {
            bytes: table.entries.bytes() + table.lists.bytes(),
            entries: table.entries.count(|_| true),
            current: table.entries.count(|check| check as u32 == changes),
            misses: sum(Admission::misses),
            recorded: sum(Admission::recorded),
            refused: sum(Admission::refused),
            by_list: sum(Admission::by_list),
            renewed: sum(Admission::renewed),
            classes: table.classes.len(),
            changes,
            // Relaxed: a statistic.
            emptied: table.emptied.load(Relaxed),
        }
    }
}

impl Table {
    /// Makes the table and its lists, which get a fifth of the bytes.
    fn new(options: Options) -> Option<Self> {
        let lists = Lists::new(options.bytes / 5)?;
        let entries = SignatureTable::new(options.bytes - options.bytes / 5)?;
        let (admission, classes) = (PerCpu::new(Admission::default), Classes::default());
        let (followed, admits_all) = (classes::secret(), options.admits_all);
        Some(Self { entries, lists, admission, classes, followed, admits_all, emptied: AtomicU64::new(0) })
    }

    /// Returns the stamp of the list of `pair`, if this CPU index found it right when `now` was
    /// read, or after that.
    pub(crate) fn checked(&self, pair: Pair, now: Stamps) -> Option<u32> {
        // Relaxed: the count of changes passes 2^30 of them between two of these.
        self.admission.this().checked.stamp(pair, now.begun, self.emptied.load(Relaxed))
    }

    /// Notes that a list is right. `now` was read before it was compared.
    pub(crate) fn note_checked(&self, pair: Pair, list: &List, now: Stamps) {
        self.admission.this().checked.note(pair, list.stamp, now.begun, self.emptied.load(Relaxed));
    }
}

/// A change of the skeleton that is under way; it ends when this is dropped.
#[must_use = "the change ends when this is dropped"]
pub(crate) struct Change<'t>(&'t WholePaths);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        // ORDERING: Release, pairs with the Acquire in `quiet`: a recorder that counts this change as ended sees all of it.
        self.0.ended.0.fetch_add(1, Release);
    }
}

/// A write section of the sequence of an entry that gets another name, or leaves. It ends when this is dropped.
///
/// A directory or link that a recorded path passed counts as a change: so only this gives such a
/// dentry a name, or removes its name.
#[must_use = "the write section ends when this is dropped"]
pub(crate) struct Moving<'d> {
    dentry: &'d Dentry,
    paths: &'d WholePaths,
    _change: Option<Change<'d>>,
}

impl<'d> Moving<'d> {
    /// Begins the change of an entry that gets another name.
    pub(crate) fn begin(paths: &'d WholePaths, dentry: &'d Dentry) -> Self {
        Self::of(paths, dentry, ObjectFlags::DIR | ObjectFlags::LINK)
    }

    /// Begins the change of an entry that leaves the cache. (A directory that leaves has no entries, so no path through it has a dentry.)
    #[inline(always)]
    pub(crate) fn leave(paths: &'d WholePaths, dentry: &'d Dentry) -> Self {
        Self::of(paths, dentry, ObjectFlags::LINK)
    }

    /// Counts a dentry with any of the flags `counted` if it is marked.
    #[inline(always)]
    fn of(paths: &'d WholePaths, dentry: &'d Dentry, counted: ObjectFlags) -> Self {
        dentry.seq.write_begin();
        let is_counted = dentry.object().has(counted) && dentry.is_passed();
        Self { dentry, paths, _change: is_counted.then(|| paths.change(Kind::Soft)) }
    }
}

impl Deref for Moving<'_> {
    type Target = Dentry;

    fn deref(&self) -> &Dentry {
        self.dentry
    }
}

impl Drop for Moving<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.dentry.seq.write_end();
        self.paths.note_sequence(self.dentry);
    }
}
