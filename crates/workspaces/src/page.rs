//! A page of a file's contents: in memory, or in the file of pages of a directory ([`slots`](crate::upper::slots)).

use crate::upper::slots::{Slot, Slots};
use std::sync::Arc;
use sync::pages::{PAGE, PagePool};
use vfs::Errno;

/// Where new pages come from.
#[derive(Debug)]
pub(crate) enum Pages {
    Memory(PagePool),
    Disk(Arc<Slots>),
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) enum Page {
    Memory(sync::pages::Page),
    Disk(Slot),
}

impl Pages {
    /// Returns a new page. Its bytes are not known until it is written whole.
    ///
    /// # Errors
    /// `ENOSPC`: all forks have as many as they may; `ENOMEM`.
    pub(crate) fn page(&self) -> Result<Page, Errno> {
        let page = match self {
            Self::Memory(pool) => pool.page().map(Page::Memory),
            Self::Disk(slots) => slots.take().map(Page::Disk),
        };
        page.ok_or_else(|| if self.left() == 0 { Errno::ENOSPC } else { Errno::ENOMEM })
    }

    /// Sets the most pages of all forks.
    pub(crate) fn set_limit(&self, pages: u64) {
        match self {
            Self::Memory(pool) => pool.set_limit(usize::try_from(pages).unwrap_or(usize::MAX)),
            Self::Disk(slots) => slots.set_limit(pages),
        }
    }

    /// Returns how many more pages there may be.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Memory(pool) => pool.left() as u64,
            Self::Disk(slots) => slots.left(),
        }
    }
}

impl Page {
    /// Returns the number of the page in the file of pages.
    pub(crate) fn slot(&self) -> Option<u64> {
        match self {
            Self::Memory(_) => None,
            Self::Disk(slot) => Some(slot.number),
        }
    }

    /// Returns whether the owner of the page may write in place.
    pub(crate) fn is_writable(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Disk(slot) => slot.is_writable(),
        }
    }

    /// Reads bytes from `within` on.
    ///
    /// # Errors
    /// The directory's.
    pub(crate) fn read(&self, within: usize, to: &mut [u8]) -> Result<(), Errno> {
        match self {
            Self::Memory(page) => to.copy_from_slice(&page[within..within + to.len()]),
            Self::Disk(slot) => slot.read(within, to)?,
        }
        Ok(())
    }

    /// Writes bytes from `within` on.
    ///
    /// # Errors
    /// The directory's.
    pub(crate) fn write(&mut self, within: usize, data: &[u8]) -> Result<(), Errno> {
        match self {
            Self::Memory(page) => page[within..within + data.len()].copy_from_slice(data),
            Self::Disk(slot) => slot.write(within, data)?,
        }
        Ok(())
    }
}

/// The bytes of a page of zeros.
pub(crate) static ZEROS: [u8; PAGE] = [0; PAGE];
