//! The era: a number that changes in the child of a `fork(2)`.
//!
//! # What it is
//! A child has the memory of its parent and one thread. State that other threads of the parent
//! would have changed back (a lock, a reader's slot, a background thread) stays for ever as it was
//! at the fork. Such state remembers the era in which it was made; in another era no thread may
//! wait for it.
//!
//! # How it works
//! A word in a page that the kernel fills with zeros in a child (`MADV_WIPEONFORK`, Linux 4.14); the first thread that
//! finds it zero begins the next era. Where the system refuses such a page, the era is the process id, which is the
//! same in parent and child only if they are in different pid namespaces.

#[cfg(not(loom))]
mod imp {
    use crate::atomic::{AtomicU32, Ordering::Relaxed};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    use std::sync::OnceLock;

    /// The word in the page that a child gets empty, if there is one.
    static WORD: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();

    /// Eras begun, in this process and those that it was forked from.
    static BEGUN: AtomicU32 = AtomicU32::new(0);

    #[inline]
    pub(super) fn current() -> u32 {
        let Some(word) = WORD.get_or_init(page) else { return std::process::id() };
        // Relaxed, all: no data passes through the words.
        match word.load(Relaxed) {
            0 => begin(word),
            era => era,
        }
    }

    #[cold]
    fn begin(word: &AtomicU32) -> u32 {
        let era = BEGUN.fetch_add(1, Relaxed) + 1;
        word.compare_exchange(0, era, Relaxed, Relaxed).map_or_else(|other| other, |_| era)
    }

    /// Never unmapped.
    fn page() -> Option<&'static AtomicU32> {
        const PAGE: usize = 4096;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let page = unsafe {
            mmap_anonymous(core::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let page = page.ok()?;
        // SAFETY: the mapping is this function's, and is used as a word of which zero is a valid value.
        unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) }.ok()?;
        // SAFETY: as above; it is aligned and stays.
        Some(unsafe { &*page.cast::<AtomicU32>() })
    }
}

#[cfg(loom)]
mod imp {
    pub(super) fn current() -> u32 {
        1
    }
}

/// Returns the era of this process: the same number until a fork, another one in the child.
#[inline]
#[must_use]
pub fn current() -> u32 {
    imp::current()
}
