//! The contents of one file: changed pages over a file of the base.
//!
//! # What it is
//! A persistent map of pages. A copy of the contents adds one reference. A change after a copy stores the changed pages
//! only. A page either has bytes or stands for zeros. Where the map has no page, a reader sees the bytes of the base, up to a length
//! that only shrinks. Behind that length a reader sees zeros.
//!
//! A [`File`] has the epoch of the fork that made it. At a fork both the parent and the child take new epochs. A fork that writes to
//! a file of another epoch copies the contents first.
//!
//! # How it is locked
//! A lock for each file, held while bytes are copied, and while the base is read for a page that is changed in part.

use crate::map::Map;
use crate::usage::Usage;
use core::ops::Range;
use parking_lot::RwLock;
use std::sync::Arc;
use sync::pages::{PAGE, Page, PagePool, parts};
use vfs::{Errno, SeekFor};

/// [`PAGE`], in the type of file lengths.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;

/// Reads bytes of the base at an offset. Reads all of the buffer, or fails.
pub(crate) type ReadBase<'b> = &'b dyn Fn(u64, &mut [u8]) -> Result<(), Errno>;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) epoch: u64,
    pub(crate) state: RwLock<Contents>,
}

impl File {
    pub(crate) fn new(epoch: u64, contents: Contents) -> Arc<Self> {
        Arc::new(Self { epoch, state: RwLock::new(contents) })
    }
}

/// Pages over a file of the base.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// `None`: zeros.
    pages: Map<u64, Option<Arc<Page>>>,
    /// Pages that have bytes.
    stored: u64,
    /// The length up to which the base shows through.
    shown: u64,
}

/// Where new pages come from, and what they count against.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) pool: &'s PagePool,
    pub(crate) usage: &'s Usage,
    pub(crate) base: ReadBase<'s>,
}

impl Contents {
    /// Returns the contents of a file of the base with this length.
    pub(crate) fn over(len: u64) -> Self {
        Self { shown: len, ..Self::default() }
    }

    /// Returns the bytes of the pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored * PAGE_BYTES
    }

    /// Returns the length up to which the base shows through.
    pub(crate) fn shown_len(&self) -> u64 {
        self.shown
    }

    /// Returns the pages that begin before `len`, with their offsets: zeros where a page hides the base.
    pub(crate) fn pages_below(&self, len: u64) -> impl Iterator<Item = (u64, &[u8; PAGE])> {
        const ZEROS: &[u8; PAGE] = &[0; PAGE];
        let pages = self.pages.range(core::ops::Bound::<&u64>::Unbounded);
        let pages = pages.map(|(number, page)| (number * PAGE_BYTES, page.as_ref().map_or(ZEROS, |page| &***page)));
        pages.take_while(move |(at, _)| *at < len)
    }

    /// Returns the storage, in units of 512 bytes, with the storage of the base as far as it shows through.
    pub(crate) fn blocks(&self) -> u64 {
        (self.bytes() + self.shown).div_ceil(512)
    }

    /// Reads from `offset` on. The caller has made sure that the buffer lies within the file.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8], base: ReadBase<'_>) -> Result<(), Errno> {
        for (number, within, part) in parts(offset, buf.len()) {
            let to = &mut buf[part.clone()];
            match self.pages.get(&number) {
                Some(Some(page)) => to.copy_from_slice(&page[within..within + part.len()]),
                Some(None) => to.fill(0),
                None => self.read_shown(offset + part.start as u64, to, base)?,
            }
        }
        Ok(())
    }

    /// Reads bytes that are in no page.
    fn read_shown(&self, at: u64, to: &mut [u8], base: ReadBase<'_>) -> Result<(), Errno> {
        let shown = usize::try_from(self.shown.saturating_sub(at)).unwrap_or(usize::MAX).min(to.len());
        let (shown, zeros) = to.split_at_mut(shown);
        zeros.fill(0);
        if shown.is_empty() { Ok(()) } else { base(at, shown) }
    }

    /// Writes `data` at `offset`. Returns the number of bytes: fewer than all, if space for the others is missing.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`, or the base's, if nothing was written.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], from: Source<'_>) -> Result<usize, Errno> {
        for (number, within, part) in parts(offset, data.len()) {
            let is_whole = part.len() == PAGE;
            match self.page_mut(number, is_whole, from) {
                Ok(page) => page[within..within + part.len()].copy_from_slice(&data[part]),
                Err(_) if part.start > 0 => return Ok(part.start),
                Err(errno) => return Err(errno),
            }
        }
        Ok(data.len())
    }

    /// Returns a page of these contents alone, to change its bytes. With `is_whole` its bytes do not matter.
    fn page_mut(&mut self, number: u64, is_whole: bool, from: Source<'_>) -> Result<&mut [u8; PAGE], Errno> {
        let is_own =
            self.pages.get_mut(&number).and_then(Option::as_mut).is_some_and(|page| Arc::get_mut(page).is_some());
        if !is_own {
            self.make_own(number, is_whole, from)?;
        }
        let page = self.pages.get_mut(&number).and_then(Option::as_mut).and_then(Arc::get_mut);
        page.map(|page| &mut **page).ok_or(Errno::EIO)
    }

    /// Gives the contents a page that no other contents have.
    #[cold]
    fn make_own(&mut self, number: u64, is_whole: bool, from: Source<'_>) -> Result<(), Errno> {
        let mut page = from.pool.page().ok_or(Errno::ENOMEM)?;
        if !is_whole {
            self.read(number * PAGE_BYTES, &mut page[..], from.base)?;
        }
        let has_bytes = matches!(self.pages.get(&number), Some(Some(_)));
        if !has_bytes {
            from.usage.take(PAGE_BYTES)?;
            self.stored += 1;
        }
        self.pages.insert(number, Some(Arc::new(page)));
        Ok(())
    }

    /// Drops everything from `len` on.
    ///
    /// # Errors
    /// `ENOMEM`, with no change.
    pub(crate) fn cut(&mut self, len: u64, from: Source<'_>) -> Result<(), Errno> {
        let (number, within) = (len / PAGE_BYTES, (len % PAGE_BYTES) as usize);
        if within != 0 && matches!(self.pages.get(&number), Some(Some(_))) {
            self.page_mut(number, false, from)?[within..].fill(0);
        }
        self.shown = self.shown.min(len);
        self.drop_pages(len.div_ceil(PAGE_BYTES)..u64::MAX, from.usage);
        Ok(())
    }

    /// Removes pages.
    fn drop_pages(&mut self, numbers: Range<u64>, usage: &Usage) {
        let there = self.pages.range(core::ops::Bound::Included(&numbers.start)).map(|(number, _)| *number);
        let there: Vec<u64> = there.take_while(|number| *number < numbers.end).collect();
        for number in there {
            if let Some(Some(_)) = self.pages.remove(&number) {
                self.stored -= 1;
                usage.give(PAGE_BYTES);
            }
        }
    }

    /// Makes a range read as zeros, and frees its pages.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`, or the base's: a page that lies in the range in part must be stored.
    pub(crate) fn punch(&mut self, range: &Range<u64>, from: Source<'_>) -> Result<(), Errno> {
        let (first, end) = (range.start.div_ceil(PAGE_BYTES), range.end / PAGE_BYTES);
        if first > end {
            return self.zero_part(range.clone(), from);
        }
        self.zero_part(range.start..first * PAGE_BYTES, from)?;
        self.zero_part(end * PAGE_BYTES..range.end, from)?;
        self.drop_pages(first..end, from.usage);
        for number in first..end.min(self.shown.div_ceil(PAGE_BYTES)) {
            self.pages.insert(number, None);
        }
        Ok(())
    }

    /// Makes a part of one page read as zeros.
    fn zero_part(&mut self, range: Range<u64>, from: Source<'_>) -> Result<(), Errno> {
        let number = range.start / PAGE_BYTES;
        let is_zero = match self.pages.get(&number) {
            Some(page) => page.is_none(),
            None => range.start >= self.shown,
        };
        if range.is_empty() || is_zero {
            return Ok(());
        }
        let start = number * PAGE_BYTES;
        self.page_mut(number, false, from)?[(range.start - start) as usize..(range.end - start) as usize].fill(0);
        Ok(())
    }

    /// Gives storage to each page of a range that neither has bytes nor shows the base.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`.
    pub(crate) fn reserve(&mut self, range: &Range<u64>, from: Source<'_>) -> Result<(), Errno> {
        let numbers = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        let limit = from.usage.limits().bytes / PAGE_BYTES;
        if numbers.end - numbers.start > limit {
            return Err(Errno::ENOSPC);
        }
        for number in numbers {
            let is_there = match self.pages.get(&number) {
                Some(page) => page.is_some(),
                None => number * PAGE_BYTES < self.shown,
            };
            if !is_there {
                self.make_own(number, false, from)?;
            }
        }
        Ok(())
    }

    /// Returns the first offset from `offset` on that is data or a hole. `None`: there is none.
    pub(crate) fn seek(&self, offset: u64, what: SeekFor) -> Option<u64> {
        let shown = self.shown.div_ceil(PAGE_BYTES);
        let mut number = offset / PAGE_BYTES;
        loop {
            let is_data = match self.pages.get(&number) {
                Some(page) => page.is_some(),
                None => number < shown,
            };
            if is_data == (what == SeekFor::Data) {
                return Some(offset.max(number * PAGE_BYTES));
            }
            number = if is_data || number < shown {
                number + 1
            } else {
                // Only zeros are before the next page.
                *self.pages.range(core::ops::Bound::Excluded(&number)).next()?.0
            };
        }
    }
}
