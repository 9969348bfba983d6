//! The contents of one file: pages by number, with holes between.
//!
//! The pages come from the file system's pool, which returns free ones to the system. Files may
//! share pages. A file that changes a shared page gets a copy of the page first.
//!
//! # What it is not
//! Aware of the file's length: past the end there is nothing, or reserved pages of zeros. Nor does
//! this module apply limits: methods that take pages call back first, methods that free pages
//! return their number.
//!
//! # How it is locked
//! By the caller.

use core::ops::Range;
use prim::shared::Arc;
use std::collections::{BTreeMap, btree_map::Entry};
use sync::pages::{PAGE, Page, PagePool, parts};
use vfs::Errno;

/// [`PAGE`], in the type of file lengths.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;

/// Units of 512 bytes in a page.
const BLOCKS: u64 = PAGE_BYTES / 512;

/// Pages that have storage; any other reads as zeros.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pages: BTreeMap<u64, Stored>,
}

/// A page of one file.
#[derive(Debug)]
enum Stored {
    Own(Page),
    /// Other contents have it as well, or had it.
    Shared(Arc<Page>),
}

/// Pages that are shared, by their distance from the first page of a range.
pub(crate) type Shares = Vec<(u64, Arc<Page>)>;

impl Stored {
    #[inline]
    fn bytes(&self) -> &[u8; PAGE] {
        match self {
            Self::Own(page) => page,
            Self::Shared(page) => page,
        }
    }

    /// Returns the bytes, to change them: `ENOMEM` if they must be copied first.
    #[inline]
    fn bytes_mut(&mut self, pool: &PagePool) -> Result<&mut [u8; PAGE], Errno> {
        if matches!(self, Self::Shared(_)) {
            self.make_own(pool)?;
        }
        match self {
            Self::Own(page) => Ok(page),
            // `make_own` has made sure that no other contents have this page, and only contents that have it can share it.
            Self::Shared(page) => Arc::get_mut(page).map(|page| &mut **page).ok_or(Errno::EIO),
        }
    }

    /// Takes a copy if other contents have the page.
    #[cold]
    fn make_own(&mut self, pool: &PagePool) -> Result<(), Errno> {
        if let Self::Shared(page) = self
            && Arc::get_mut(page).is_none()
        {
            let mut copy = new_page(pool)?;
            copy.copy_from_slice(&page[..]);
            *self = Self::Own(copy);
        }
        Ok(())
    }
}

impl Contents {
    /// Returns the storage that is taken, in units of 512 bytes.
    pub(crate) fn blocks(&self) -> u64 {
        self.pages.len() as u64 * BLOCKS
    }

    /// Returns the storage that is taken, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Reads from `offset` on, where the caller has made sure that all of `buf` is within the file.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        for (number, within, part) in parts(offset, buf.len()) {
            let to = &mut buf[part.clone()];
            match self.pages.get(&number) {
                Some(page) => to.copy_from_slice(&page.bytes()[within..within + part.len()]),
                None => to.fill(0),
            }
        }
    }

    /// Writes `data` at `offset` and returns the number of bytes. Calls `room` before each new page: its first error ends
    /// the write, and is the result if nothing was written. `ENOMEM` if the system has no memory.
    pub(crate) fn write(
        &mut self,
        pool: &PagePool,
        offset: u64,
        data: &[u8],
        mut room: impl FnMut() -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        for (number, within, part) in parts(offset, data.len()) {
            let page = match self.pages.entry(number) {
                Entry::Occupied(page) => page.into_mut().bytes_mut(pool),
                // Gets the page before it calls `room`, so that `room` charges only for a page that
                // exists.
                Entry::Vacant(place) => new_page(pool)
                    .and_then(|page| room().map(|()| page))
                    .and_then(|page| place.insert(Stored::Own(page)).bytes_mut(pool)),
            };
            match page {
                Ok(page) => page[within..within + part.len()].copy_from_slice(&data[part]),
                Err(_) if part.start > 0 => return Ok(part.start),
                Err(errno) => return Err(errno),
            }
        }
        Ok(data.len())
    }

    /// Drops everything from `len` on; returns the number of bytes of storage that this frees. `ENOMEM`, with nothing dropped, if a
    /// page must be copied for it.
    pub(crate) fn cut(&mut self, pool: &PagePool, len: u64) -> Result<u64, Errno> {
        let (number, within) = place(len);
        if within != 0
            && let Some(page) = self.pages.get_mut(&number)
        {
            page.bytes_mut(pool)?[within..].fill(0);
        }
        let gone = self.pages.split_off(&if within == 0 { number } else { number + 1 });
        Ok(gone.len() as u64 * PAGE_BYTES)
    }

    /// Returns the bytes of storage that [`Contents::reserve`] would take for `range`.
    pub(crate) fn missing(&self, range: &Range<u64>) -> u64 {
        let touched = touched(range);
        let there = self.pages.range(touched.clone()).count() as u64;
        (touched.end - touched.start - there).saturating_mul(PAGE_BYTES)
    }

    /// Gives storage to every page that `range` touches, or, if the system has no memory (`ENOMEM`), to none.
    pub(crate) fn reserve(&mut self, pool: &PagePool, range: &Range<u64>) -> Result<(), Errno> {
        let missing = touched(range).filter(|number| !self.pages.contains_key(number));
        let new: Vec<(u64, Stored)> = missing
            .map(|number| new_page(pool).map(|page| (number, Stored::Own(page))))
            .collect::<Result<_, Errno>>()?;
        self.pages.extend(new);
        Ok(())
    }

    /// Copies the pages that `range` touches, if others have them: `ENOMEM`. After this call no
    /// change of these pages fails.
    pub(crate) fn make_own(&mut self, pool: &PagePool, range: &Range<u64>) -> Result<(), Errno> {
        self.pages.range_mut(touched(range)).try_for_each(|(_, page)| page.make_own(pool))
    }

    /// Makes `range` read as zeros; its storage stays. `ENOMEM`, with no change, if pages must be copied for it.
    pub(crate) fn zero(&mut self, pool: &PagePool, range: &Range<u64>) -> Result<(), Errno> {
        self.make_own(pool, range)?;
        for (&number, page) in self.pages.range_mut(touched(range)) {
            let start = number * PAGE_BYTES;
            let within = |at: u64| (at.saturating_sub(start)).min(PAGE_BYTES) as usize;
            page.bytes_mut(pool)?[within(range.start)..within(range.end)].fill(0);
        }
        Ok(())
    }

    /// Makes `range` read as zeros and frees the pages inside it; returns the number of bytes of storage that this frees. Errors as
    /// for [`Contents::zero`].
    pub(crate) fn punch(&mut self, pool: &PagePool, range: &Range<u64>) -> Result<u64, Errno> {
        let (first, end) = (range.start.div_ceil(PAGE_BYTES), range.end / PAGE_BYTES);
        if first >= end {
            return self.zero(pool, range).map(|()| 0);
        }
        let (head, tail) = (range.start..first * PAGE_BYTES, end * PAGE_BYTES..range.end);
        self.make_own(pool, &tail)?;
        self.zero(pool, &head)?;
        self.zero(pool, &tail)?;
        let mut gone = self.pages.split_off(&first);
        self.pages.append(&mut gone.split_off(&end));
        Ok(gone.len() as u64 * PAGE_BYTES)
    }

    /// Returns the pages that `range` touches, which are shared after this call.
    pub(crate) fn share(&mut self, range: &Range<u64>) -> Shares {
        let numbers = touched(range);
        // Stands on a page's place while the page moves into its `Arc`.
        let mut spare = None;
        let mut shares = Shares::new();
        let owned = self.pages.range(numbers.clone()).find(|(_, page)| matches!(page, Stored::Own(_)));
        if let Some((&number, _)) = owned
            && let Some(Stored::Own(page)) = self.pages.remove(&number)
        {
            let page = spare.insert(Arc::new(page));
            self.pages.insert(number, Stored::Shared(page.clone()));
        }
        for (&number, stored) in self.pages.range_mut(numbers.clone()) {
            if let (Stored::Own(_), Some(spare)) = (&*stored, &spare)
                && let Stored::Own(page) = core::mem::replace(stored, Stored::Shared(spare.clone()))
            {
                *stored = Stored::Shared(Arc::new(page));
            }
            if let Stored::Shared(page) = stored {
                shares.push((number - numbers.start, page.clone()));
            }
        }
        shares
    }

    /// Returns the bytes of storage that [`Contents::put`] would replace.
    pub(crate) fn stored(&self, range: &Range<u64>) -> u64 {
        self.pages.range(touched(range)).count() as u64 * PAGE_BYTES
    }

    /// Replaces all pages that `range`, which begins at a page, touches.
    pub(crate) fn put(&mut self, range: &Range<u64>, shares: Shares) {
        let numbers = touched(range);
        self.pages.extract_if(numbers.clone(), |_, _| true).for_each(drop);
        self.pages.extend(shares.into_iter().map(|(at, page)| (numbers.start + at, Stored::Shared(page))));
    }

    /// Returns the first byte from `offset` on that has storage.
    pub(crate) fn next_data(&self, offset: u64) -> Option<u64> {
        let (&number, _) = self.pages.range(place(offset).0..).next()?;
        Some(offset.max(number * PAGE_BYTES))
    }

    /// Returns the first byte from `offset` on that has no storage.
    pub(crate) fn next_hole(&self, offset: u64) -> u64 {
        let first = place(offset).0;
        let run = (first..).zip(self.pages.range(first..)).take_while(|(number, (at, _))| number == *at).count();
        if run == 0 { offset } else { (first + run as u64) * PAGE_BYTES }
    }
}

/// Returns a page of zeros: `ENOMEM`.
fn new_page(pool: &PagePool) -> Result<Page, Errno> {
    pool.page().ok_or(Errno::ENOMEM)
}

/// Returns the numbers of the pages that `range` touches.
fn touched(range: &Range<u64>) -> Range<u64> {
    let first = range.start / PAGE_BYTES;
    first..range.end.div_ceil(PAGE_BYTES).max(first)
}

/// Returns the page that holds the byte at `offset`, and where in it.
fn place(offset: u64) -> (u64, usize) {
    (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of `Contents`: each byte, and for each page whether it has storage.
    struct Plain {
        bytes: Vec<u8>,
        stored: Vec<bool>,
    }

    impl Plain {
        fn store(&mut self, range: &Range<usize>) {
            for number in range.start / PAGE..range.end.div_ceil(PAGE) {
                self.stored[number] = true;
            }
        }

        /// Frees the pages inside `range`.
        fn free(&mut self, range: &Range<usize>) {
            for number in range.start.div_ceil(PAGE)..range.end / PAGE {
                self.stored[number] = false;
            }
        }
    }

    #[test]
    fn contents_agree_with_a_plain_vector() {
        const LEN: usize = 10 * PAGE;
        let pool = PagePool::new();
        let (mut contents, mut plain) = (Contents::default(), Plain { bytes: vec![0; LEN], stored: vec![false; 10] });
        let mut random = fastrand::Rng::with_seed(3);
        let mut next = move |end: usize| random.usize(..end);
        for step in 0..4000 {
            let at = next(LEN);
            let at = if next(3) == 0 { at / PAGE * PAGE } else { at };
            let range = at..at + next(LEN - at + 1).min(3 * PAGE);
            let wide = range.start as u64..range.end as u64;
            let before = contents.bytes();
            match next(8) {
                0 => {
                    let freed = contents.cut(&pool, at as u64).unwrap();
                    plain.bytes[at..].fill(0);
                    plain.free(&(at..LEN));
                    assert_eq!(contents.bytes(), before - freed, "step {step}");
                }
                1 | 2 => {
                    let freed = contents.punch(&pool, &wide).unwrap();
                    plain.bytes[range.clone()].fill(0);
                    plain.free(&range);
                    assert_eq!(contents.bytes(), before - freed, "step {step}");
                }
                3 => {
                    contents.zero(&pool, &wide).unwrap();
                    plain.bytes[range.clone()].fill(0);
                }
                4 => {
                    let missing = contents.missing(&wide);
                    contents.reserve(&pool, &wide).unwrap();
                    plain.store(&(range.start / PAGE * PAGE..range.end));
                    assert_eq!(contents.bytes(), before + missing, "step {step}");
                }
                _ if range.is_empty() => {}
                _ => {
                    let data = vec![step as u8; range.len()];
                    assert_eq!(contents.write(&pool, at as u64, &data, || Ok(())), Ok(data.len()));
                    plain.bytes[range.clone()].copy_from_slice(&data);
                    plain.store(&range);
                }
            }
            check(&contents, &plain, step, next(LEN));
        }
    }

    #[test]
    fn a_change_of_shared_pages_is_one_contents_own() {
        const LEN: usize = 10 * PAGE;
        let pool = PagePool::new();
        let plain = || Plain { bytes: vec![0; LEN], stored: vec![false; 10] };
        let mut all: Vec<(Contents, Plain)> = (0..3).map(|_| (Contents::default(), plain())).collect();
        let mut random = fastrand::Rng::with_seed(5);
        let mut next = move |end: usize| random.usize(..end);
        for step in 0..8000 {
            let (one, other) = (next(3), next(3));
            let (first, count) = (next(10), next(4));
            let (from, end) = (first * PAGE, (first + count).min(10) * PAGE);
            let at = from + next(PAGE);
            let range = at..(at + next(2 * PAGE)).min(LEN);
            let wide = range.start as u64..range.end as u64;
            match next(8) {
                0..3 => {
                    let len = end - from;
                    let to = next(10 - len / PAGE + 1) * PAGE;
                    let shares = all[one].0.share(&(from as u64..end as u64));
                    let (bytes, stored) = {
                        let plain = &all[one].1;
                        (plain.bytes[from..end].to_vec(), plain.stored[first..end / PAGE].to_vec())
                    };
                    let (contents, plain) = &mut all[other];
                    contents.put(&(to as u64..(to + len) as u64), shares);
                    plain.bytes[to..to + len].copy_from_slice(&bytes);
                    plain.stored[to / PAGE..(to + len) / PAGE].copy_from_slice(&stored);
                }
                3 => {
                    let (contents, plain) = &mut all[one];
                    contents.cut(&pool, at as u64).unwrap();
                    plain.bytes[at..].fill(0);
                    plain.free(&(at..LEN));
                }
                4 => {
                    let (contents, plain) = &mut all[one];
                    contents.punch(&pool, &wide).unwrap();
                    plain.bytes[range.clone()].fill(0);
                    plain.free(&range);
                }
                5 => {
                    let (contents, plain) = &mut all[one];
                    contents.zero(&pool, &wide).unwrap();
                    plain.bytes[range].fill(0);
                }
                _ if range.is_empty() => {}
                _ => {
                    let (contents, plain) = &mut all[one];
                    let data = vec![step as u8; range.len()];
                    assert_eq!(contents.write(&pool, at as u64, &data, || Ok(())), Ok(data.len()));
                    plain.bytes[range.clone()].copy_from_slice(&data);
                    plain.store(&range);
                }
            }
            let at = next(LEN);
            all.iter().for_each(|(contents, plain)| check(contents, plain, step, at));
            let places: std::collections::BTreeSet<_> = all
                .iter()
                .flat_map(|(contents, _)| contents.pages.values().map(|page| page.bytes().as_ptr()))
                .collect();
            assert_eq!(pool.stats().live, places.len(), "step {step}: each page is there once");
        }
        drop(all);
        assert_eq!(pool.stats().live, 0);
    }

    fn check(contents: &Contents, plain: &Plain, step: usize, at: usize) {
        let mut buf = vec![1; plain.bytes.len() - at];
        contents.read(at as u64, &mut buf);
        assert!(buf == plain.bytes[at..], "step {step}");
        let stored = plain.stored.iter().filter(|&&stored| stored).count();
        assert_eq!(contents.blocks(), stored as u64 * BLOCKS, "step {step}");
        let find = |wanted| (at..plain.bytes.len()).find(|&at| plain.stored[at / PAGE] == wanted).map(|at| at as u64);
        assert_eq!(contents.next_data(at as u64), find(true), "step {step}");
        assert_eq!(contents.next_hole(at as u64), find(false).unwrap_or(plain.bytes.len() as u64), "step {step}");
    }

    #[test]
    fn a_hole_takes_no_storage() {
        let (mut contents, pool) = (Contents::default(), PagePool::new());
        for (offset, blocks) in [(1 << 40, 8), (0, 16)] {
            assert_eq!(contents.write(&pool, offset, b"x", || Ok(())), Ok(1));
            assert_eq!(contents.blocks(), blocks);
        }
        assert_eq!(contents.cut(&pool, 1 << 20), Ok(PAGE_BYTES));
        assert_eq!(contents.cut(&pool, 0), Ok(PAGE_BYTES));
        assert_eq!(contents.blocks(), 0);
    }

    #[test]
    fn a_write_ends_where_there_is_no_room() {
        let (mut contents, pool) = (Contents::default(), PagePool::new());
        let mut pages = 2;
        let mut room = || {
            pages = u32::checked_sub(pages, 1).ok_or(Errno::ENOSPC)?;
            Ok(())
        };
        assert_eq!(contents.write(&pool, 100, &[7; 3 * PAGE], &mut room), Ok(2 * PAGE - 100));
        assert_eq!(contents.write(&pool, 2 * PAGE_BYTES, b"x", &mut room), Err(Errno::ENOSPC));
        // A write to pages with storage needs no room.
        assert_eq!(contents.write(&pool, 0, &[8; 3 * PAGE], &mut room), Ok(2 * PAGE));
        assert_eq!(contents.bytes(), 2 * PAGE_BYTES);
    }

    #[test]
    fn the_last_bytes_that_a_file_can_have_are_handled() {
        let (mut contents, pool) = (Contents::default(), PagePool::new());
        let end = i64::MAX as u64;
        assert_eq!(contents.write(&pool, end - 1, b"x", || Ok(())), Ok(1));
        assert_eq!(contents.missing(&(0..end)), (1 << 63) - PAGE_BYTES);
        assert_eq!((contents.next_data(0), contents.next_hole(end - 1)), (Some(end - 4095), 1 << 63));
        assert_eq!(contents.missing(&(0..u64::MAX)), u64::MAX - (PAGE_BYTES - 1));
        assert_eq!(contents.punch(&pool, &(5..u64::MAX)), Ok(PAGE_BYTES));
    }
}
