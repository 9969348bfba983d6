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
//! A lock for each file, held while bytes are copied, while the base is read for a page that is changed in part, and until the log
//! of a directory has the change.

use crate::map::Map;
use crate::page::{Page, Pages, ZEROS};
use crate::usage::Usage;
use core::ops::Range;
use parking_lot::RwLock;
use std::sync::Arc;
use sync::pages::{PAGE, parts};
use vfs::{Errno, SeekFor};

/// [`PAGE`], in the type of file lengths.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;

/// Reads bytes of the base at an offset. Reads all of the buffer, or fails.
pub(crate) type ReadBase<'b> = &'b dyn Fn(u64, &mut [u8]) -> Result<(), Errno>;

/// See the [module documentation](self).
pub(crate) struct File {
    pub(crate) epoch: u64,
    /// The epoch of the contents that were copied.
    pub(crate) from: Option<u64>,
    pub(crate) state: RwLock<Contents>,
}

impl File {
    pub(crate) fn new(epoch: u64, from: Option<u64>, contents: Contents) -> Arc<Self> {
        Arc::new(Self { epoch, from, state: RwLock::new(contents) })
    }
}

/// Pages over a file of the base.
#[derive(Clone, Default)]
pub(crate) struct Contents {
    /// `None`: zeros.
    pages: Map<u64, Option<Arc<Page>>>,
    /// Pages that have bytes.
    stored: u64,
    /// The length up to which the base shows through.
    shown: u64,
    /// Pages that hide the base below that length.
    hidden: u64,
    /// The storage of the file of the base, in units of 512 bytes.
    base_blocks: u64,
    /// The changed pages that the log lacks; none in memory. Each with the page before: the log must have the change before another
    /// page gets its slot.
    pub(crate) unlogged: Vec<(u64, Option<Arc<Page>>)>,
}

/// Where new pages come from, and what they count against.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) pages: &'s Pages,
    pub(crate) usage: &'s Usage,
    pub(crate) base: ReadBase<'s>,
}

impl Contents {
    /// Returns the contents of a file of the base with this length and storage.
    pub(crate) fn over(len: u64, blocks: u64) -> Self {
        Self { shown: len, base_blocks: blocks, ..Self::default() }
    }

    /// Returns a copy of the first `len` bytes of the file of the base, which others may change.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`; the base's.
    pub(crate) fn copy_of_base(len: u64, source: Source<'_>) -> Result<Self, Errno> {
        let mut contents = Self::default();
        let copied = contents.copy_base(len, source);
        copied.inspect_err(|_| source.usage.give(contents.bytes()))?;
        Ok(contents)
    }

    fn copy_base(&mut self, len: u64, source: Source<'_>) -> Result<(), Errno> {
        const STEP: u64 = 1 << 20;
        let mut buf = vec![0; len.min(STEP) as usize];
        for at in (0..len).step_by(STEP as usize) {
            let part = &mut buf[..(len - at).min(STEP) as usize];
            (source.base)(at, part)?;
            for (number, page) in part.chunks(PAGE).enumerate() {
                // Holes stay holes.
                if page.iter().any(|byte| *byte != 0) {
                    self.write(at + number as u64 * PAGE_BYTES, page, source)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes of the pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored * PAGE_BYTES
    }

    /// Returns the length up to which the base shows through, and its storage in units of 512 bytes.
    pub(crate) fn shown(&self) -> (u64, u64) {
        (self.shown, self.base_blocks)
    }

    /// Returns the numbers of the pages, with the pages. `None`: zeros.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, Option<&Arc<Page>>)> {
        let pages = self.pages.range(core::ops::Bound::<&u64>::Unbounded);
        pages.map(|(number, page)| (*number, page.as_ref()))
    }

    /// Returns the page of a number: `None` if the base shows through, `Some(None)` for zeros.
    pub(crate) fn page(&self, number: u64) -> Option<Option<&Arc<Page>>> {
        self.pages.get(&number).map(Option::as_ref)
    }

    /// Sets or removes a page: `Some(None)` stands for zeros. Returns the page before, if it had bytes.
    pub(crate) fn set_page(&mut self, number: u64, page: Option<Option<Arc<Page>>>) -> Option<Arc<Page>> {
        let (has_bytes, is_there) = (matches!(page, Some(Some(_))), page.is_some());
        let before = match page {
            Some(page) => self.pages.insert(number, page),
            None => self.pages.remove(&number),
        };
        if number < self.shown_pages() {
            self.hidden = self.hidden + u64::from(is_there) - u64::from(before.is_some());
        }
        let before = before.flatten();
        self.stored = self.stored + u64::from(has_bytes) - u64::from(before.is_some());
        before
    }

    /// Sets the length up to which the base shows through, and its storage, as the log has them.
    pub(crate) fn set_shown(&mut self, shown: (u64, u64)) {
        (self.shown, self.base_blocks) = shown;
    }

    /// Notes that a page has changed.
    fn note(&mut self, number: u64, before: Option<Arc<Page>>, from: Source<'_>) {
        if let Pages::Disk(_) = from.pages {
            self.unlogged.push((number, before));
        }
    }

    /// Returns the storage, in units of 512 bytes, with the storage of the base as far as it shows through. The base may have holes:
    /// it has no more than all of its storage.
    pub(crate) fn blocks(&self) -> u64 {
        let shown = (self.shown_pages() - self.hidden) * PAGE_BYTES / 512;
        self.bytes() / 512 + shown.min(self.base_blocks)
    }

    fn shown_pages(&self) -> u64 {
        self.shown.div_ceil(PAGE_BYTES)
    }

    /// Reads from `offset` on. The caller has made sure that the buffer lies within the file.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8], base: ReadBase<'_>) -> Result<(), Errno> {
        for (number, within, part) in parts(offset, buf.len()) {
            let to = &mut buf[part.clone()];
            match self.pages.get(&number) {
                Some(Some(page)) => page.read(within, to)?,
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
            match self.put(number, within, &data[part.clone()], from) {
                Ok(()) => {}
                Err(_) if part.start > 0 => return Ok(part.start),
                Err(errno) => return Err(errno),
            }
        }
        Ok(data.len())
    }

    /// Writes bytes into one page.
    fn put(&mut self, number: u64, within: usize, data: &[u8], from: Source<'_>) -> Result<(), Errno> {
        let page = self.pages.get_mut(&number).and_then(Option::as_mut).and_then(Arc::get_mut);
        match page.filter(|page| page.is_writable()) {
            Some(page) => page.write(within, data),
            None => self.replace(number, within, data, from),
        }
    }

    /// Gives the contents a page that no other contents have, with these bytes in it.
    #[cold]
    fn replace(&mut self, number: u64, within: usize, data: &[u8], from: Source<'_>) -> Result<(), Errno> {
        let mut page = from.pages.page()?;
        if data.len() < PAGE {
            let mut bytes = ZEROS;
            self.read(number * PAGE_BYTES, &mut bytes, from.base)?;
            bytes[within..within + data.len()].copy_from_slice(data);
            page.write(0, &bytes)?;
        } else {
            page.write(0, data)?;
        }
        if !matches!(self.pages.get(&number), Some(Some(_))) {
            from.usage.take(PAGE_BYTES)?;
        }
        let before = self.set_page(number, Some(Some(Arc::new(page))));
        self.note(number, before, from);
        Ok(())
    }

    /// Drops everything from `len` on.
    ///
    /// # Errors
    /// `ENOMEM`, with no change.
    pub(crate) fn cut(&mut self, len: u64, from: Source<'_>) -> Result<(), Errno> {
        let (number, within) = (len / PAGE_BYTES, (len % PAGE_BYTES) as usize);
        if within != 0 && matches!(self.pages.get(&number), Some(Some(_))) {
            self.put(number, within, &ZEROS[within..], from)?;
        }
        self.drop_pages(len.div_ceil(PAGE_BYTES)..u64::MAX, from);
        self.shown = self.shown.min(len);
        Ok(())
    }

    /// Removes pages.
    fn drop_pages(&mut self, numbers: Range<u64>, from: Source<'_>) {
        let there = self.pages.range(core::ops::Bound::Included(&numbers.start)).map(|(number, _)| *number);
        let there: Vec<u64> = there.take_while(|number| *number < numbers.end).collect();
        for number in there {
            let before = self.set_page(number, None);
            if before.is_some() {
                from.usage.give(PAGE_BYTES);
            }
            self.note(number, before, from);
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
        self.drop_pages(first..end, from);
        for number in first..end.min(self.shown_pages()) {
            self.set_page(number, Some(None));
            self.note(number, None, from);
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
        let (within, len) = ((range.start % PAGE_BYTES) as usize, (range.end - range.start) as usize);
        self.put(number, within, &ZEROS[..len], from)
    }

    /// Gives storage to each page of a range that neither has bytes nor shows the base.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`.
    pub(crate) fn reserve(&mut self, range: &Range<u64>, from: Source<'_>) -> Result<(), Errno> {
        let numbers = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        let limit = from.usage.limits.bytes / PAGE_BYTES;
        if numbers.end - numbers.start > limit {
            return Err(Errno::ENOSPC);
        }
        for number in numbers {
            let is_there = match self.pages.get(&number) {
                Some(page) => page.is_some(),
                None => number * PAGE_BYTES < self.shown,
            };
            if !is_there {
                self.replace(number, 0, &[], from)?;
            }
        }
        Ok(())
    }

    /// Returns the first offset from `offset` on that is data or a hole. `None`: there is none.
    pub(crate) fn seek(&self, offset: u64, what: SeekFor) -> Option<u64> {
        let shown = self.shown_pages();
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
