//! A range of an object that was requested, and that several reads may wait for.
//!
//! # What it is
//! A node has a list of its windows, so that all opens of a file share them. A read that finds its
//! bytes in a window waits for the window's answer, without a lock. A window that was read whole, or
//! that its reader gives up, moves to the cache of blocks.
//!
//! # How it is locked
//! The list has a mutex, held for a few instructions, and while a request is started: two reads that
//! look for the same bytes start one request.

use crate::buffer::Allowance;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use futures::future::{BoxFuture, Shared};
use opendal::Buffer;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::task::AbortHandle;
use vfs::Errno;

/// The bytes of a range; `None` if the object is another one now.
pub(crate) type Answer = Result<Option<Buffer>, Errno>;

/// A request for a range, which runs in the background.
pub(crate) struct Reading {
    pub(crate) answer: Shared<BoxFuture<'static, Answer>>,
    pub(crate) abort: AbortHandle,
}

/// See the [module documentation](self).
pub(crate) struct Window {
    pub(crate) version: u64,
    pub(crate) range: Range<u64>,
    pub(crate) reading: Reading,
    /// The bytes that reads have got.
    served: AtomicU64,
    /// Whether a thread moves its bytes to the cache.
    has_ended: AtomicBool,
    /// The bytes taken from this allowance.
    taken: Option<(Allowance, u64)>,
}

impl Window {
    pub(crate) fn new(version: u64, range: Range<u64>, reading: Reading, taken: Option<(Allowance, u64)>) -> Self {
        Self { version, range, reading, served: AtomicU64::new(0), has_ended: AtomicBool::new(false), taken }
    }

    /// Notes that a read has got some bytes. Returns whether reads have got all of them.
    pub(crate) fn serve(&self, bytes: u64) -> bool {
        // Relaxed: a number by itself.
        self.served.fetch_add(bytes, Relaxed) + bytes >= self.range.end - self.range.start
    }

    /// Ends the window. Returns false if another thread did so.
    pub(crate) fn end(&self) -> bool {
        // Relaxed: the lock of the list orders the removal of the window after the bytes in the cache.
        !self.has_ended.swap(true, Relaxed)
    }

    /// Returns whether it has more bytes than one read needs.
    pub(crate) fn is_ahead(&self) -> bool {
        self.taken.is_some()
    }

    /// Returns the bytes, if they have arrived.
    pub(crate) fn arrived(&self) -> Option<Buffer> {
        self.reading.answer.peek().and_then(|answer| answer.clone().ok().flatten())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.reading.abort.abort();
        if let Some((allowance, bytes)) = &self.taken {
            allowance.give_back(*bytes);
        }
    }
}

/// The windows of a node.
#[derive(Default)]
pub(crate) struct Windows(Mutex<Vec<Arc<Window>>>);

impl Windows {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Arc<Window>>> {
        self.0.lock()
    }

    /// Removes a window, if it is there.
    pub(crate) fn remove(&self, window: &Arc<Window>) {
        self.0.lock().retain(|other| !Arc::ptr_eq(other, window));
    }
}

/// Returns the window with the byte at `offset`.
pub(crate) fn find(windows: &[Arc<Window>], version: u64, offset: u64) -> Option<&Arc<Window>> {
    windows.iter().find(|window| window.version == version && window.range.contains(&offset))
}

/// Copies all of `bytes`, which may be in pieces.
pub(crate) fn copy(bytes: &Buffer, into: &mut [u8]) {
    let mut at = 0;
    for piece in bytes.clone() {
        into[at..at + piece.len()].copy_from_slice(&piece);
        at += piece.len();
    }
}
