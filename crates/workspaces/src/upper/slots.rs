//! The file of pages: the changed pages of all files of all forks.
//!
//! # What it is
//! A file of slots of [`PAGE`] bytes. A file system that was cut off from power finds its last *mark*: the log says which slot each
//! page had then. So the bytes of these slots stay until the next mark: a slot that a mark covers is not written again, and a slot
//! that its last page leaves is not used again before the next mark.
//!
//! | slot | in place | when its page ends |
//! |---|---|---|
//! | taken after the last mark began | may be written | is free |
//! | taken before | is copied first | waits for the end of the next mark |
//!
//! The end of a mark returns the space of free slots to the file system of the directory.
//!
//! # How it is locked
//! A mutex around the lists of slots, held for some instructions. The bytes of a slot belong to the owner of its page.

use parking_lot::Mutex;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use sync::pages::PAGE;
use vfs::Errno;

use super::errno;

const PAGE_BYTES: u64 = PAGE as u64;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Slots {
    file: File,
    /// The number of marks that have begun.
    marks: AtomicU64,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// The number of slots.
    len: u64,
    /// The slots that pages have, and the most.
    used: u64,
    limit: Option<u64>,
    free: BTreeSet<u64>,
    /// Slots that the next mark frees.
    waiting: Vec<u64>,
    /// Slots that became free without a mark, and have space.
    spacious: Vec<u64>,
}

/// A slot that a page has.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    pub(crate) number: u64,
    /// The marks that had begun when it was taken.
    marks: u64,
}

impl Slots {
    /// Returns the slots of a file, all of them free.
    pub(crate) fn new(file: File) -> Arc<Self> {
        Arc::new(Self { file, marks: AtomicU64::new(1), lists: Mutex::default() })
    }

    /// Sets the most slots that pages may have.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.lists.lock().limit = Some(limit);
    }

    /// Returns how many more pages may get a slot.
    pub(crate) fn left(&self) -> u64 {
        let lists = self.lists.lock();
        lists.limit.map_or(u64::MAX, |limit| limit.saturating_sub(lists.used))
    }

    /// Returns a slot that no page has. `None`: pages have as many as they may.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let mut lists = self.lists.lock();
        if lists.limit.is_some_and(|limit| lists.used >= limit) {
            return None;
        }
        lists.used += 1;
        let number = lists.free.pop_first().unwrap_or_else(|| {
            lists.len += 1;
            lists.len - 1
        });
        // Relaxed, here and below: the lock orders it for a slot that is taken. A slot that is written while a mark begins belongs
        // to a call that has not returned.
        Some(Slot { slots: self.clone(), number, marks: self.marks.load(Relaxed) })
    }

    /// Returns a slot that the log names. To be followed by [`Slots::loaded`], before any page ends.
    pub(crate) fn claim(self: &Arc<Self>, number: u64) -> Slot {
        self.lists.lock().used += 1;
        Slot { slots: self.clone(), number, marks: 0 }
    }

    /// Begins with these slots in use. Returns the others, for the end of the first mark.
    pub(crate) fn loaded(&self, used: &BTreeSet<u64>) -> Vec<u64> {
        let len = used.last().map_or(0, |last| last + 1);
        *self.lists.lock() = Lists { len, used: used.len() as u64, ..Lists::default() };
        (0..len).filter(|number| !used.contains(number)).collect()
    }

    /// Begins a mark: from here on, slots that were taken so far are not written. Returns the slots that the mark frees.
    pub(crate) fn begin_mark(&self) -> Vec<u64> {
        let lists = &mut *self.lists.lock();
        self.marks.fetch_add(1, Relaxed);
        lists.waiting.extend(lists.spacious.drain(..).filter(|slot| lists.free.remove(slot)));
        core::mem::take(&mut lists.waiting)
    }

    /// Returns whether a mark would free slots, or space.
    pub(crate) fn has_waiting(&self) -> bool {
        let lists = self.lists.lock();
        !lists.waiting.is_empty() || !lists.spacious.is_empty()
    }

    /// Makes the bytes of all slots durable.
    ///
    /// # Errors
    /// The directory's.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        self.file.sync_data().map_err(errno)
    }

    /// Ends a mark. It frees the slots; if it failed, the next one does.
    pub(crate) fn end_mark(&self, freed: Vec<u64>, is_durable: bool) {
        if !is_durable {
            return self.lists.lock().waiting.extend(freed);
        }
        // An error: the space stays allocated, for the next page.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for (first, len) in runs(&freed) {
            let _ = fallocate(&self.file, punch, first * PAGE_BYTES, len * PAGE_BYTES);
        }
        self.lists.lock().free.extend(freed);
    }
}

/// Returns numbers as runs: first and length.
fn runs(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((first, len)) if *first + *len == number => *len += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}

impl Slot {
    pub(crate) fn is_writable(&self) -> bool {
        self.marks == self.slots.marks.load(Relaxed)
    }

    pub(crate) fn read(&self, within: usize, to: &mut [u8]) -> Result<(), Errno> {
        self.slots.file.read_exact_at(to, self.number * PAGE_BYTES + within as u64).map_err(errno)
    }

    pub(crate) fn write(&self, within: usize, data: &[u8]) -> Result<(), Errno> {
        self.slots.file.write_all_at(data, self.number * PAGE_BYTES + within as u64).map_err(errno)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut lists = self.slots.lists.lock();
        lists.used -= 1;
        if self.is_writable() {
            lists.free.insert(self.number);
            lists.spacious.push(self.number);
        } else {
            lists.waiting.push(self.number);
        }
    }
}
