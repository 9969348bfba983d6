//! Reads of an open file: by blocks through the cache, with requests that grow while the reads are sequential, and one request
//! ahead of them.
//!
//! # What it is
//! A read that finds a block missing requests a range: the blocks that it needs, or a window if the
//! read begins where the last request ended. The window doubles each time up to [`MAX_WINDOW`].
//! After each window the next window is requested in the background; a read that reaches the next
//! window waits for that request.
//!
//! # How it is locked
//! Reads of one open file that miss the cache take turns. Reads that hit the cache take no lock of
//! the open file.

use crate::blocks::{BLOCK, BlockKey};
use crate::deadline::Deadline;
use crate::key::Key;
use crate::meta::Meta;
use crate::node::Node;
use crate::object_fs::ObjectFs;
use core::ops::Range;
use opendal::Buffer;
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use vfs::Errno;

/// The longest range that is requested ahead, in bytes.
const MAX_WINDOW: u64 = 8 << 20;

/// A request in the background.
struct Pending {
    version: u64,
    range: Range<u64>,
    read: JoinHandle<opendal::Result<Buffer>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.read.abort();
    }
}

#[derive(Default)]
struct Ahead {
    /// Where the last request ended, and for which version.
    next: (u64, u64),
    window: u64,
    pending: Option<Pending>,
}

/// The state of an open file; see the [module documentation](self).
#[derive(Default)]
pub(crate) struct Reader(Mutex<Ahead>);

/// The object that is read.
#[derive(Clone, Copy)]
struct Target<'a> {
    fs: &'a ObjectFs,
    until: Deadline,
    node: u64,
    key: &'a Key,
    meta: &'a Meta,
    version: u64,
}

impl Reader {
    /// Reads a version of an object from `offset` on. Returns `Ok(None)` if the store has another
    /// version now.
    pub(crate) fn read(
        &self,
        fs: &ObjectFs,
        until: Deadline,
        node: &Node,
        (key, meta, version): (&Key, &Meta, u64),
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>, Errno> {
        let target = Target { fs, until, node: node.id, key, meta, version };
        let end = meta.size.min(offset.saturating_add(buf.len() as u64));
        let mut at = offset;
        while at < end {
            let (start, bytes) = match target.cached(at) {
                Some(block) => (at / BLOCK * BLOCK, block),
                None => match self.request(&target, at..end)? {
                    Some(answer) => answer,
                    None => return Ok(None),
                },
            };
            let from = usize::try_from(at - start).map_err(|_| Errno::EIO)?;
            let len = bytes.len().saturating_sub(from).min((end - at) as usize);
            if len == 0 {
                return Err(Errno::EIO);
            }
            let done = (at - offset) as usize;
            copy(&bytes.slice(from..from + len), &mut buf[done..done + len]);
            at += len as u64;
        }
        Ok(Some(end.saturating_sub(offset) as usize))
    }

    /// Requests a range that begins with the block of `wanted`. Returns its first offset and its bytes.
    #[cold]
    fn request(&self, target: &Target<'_>, wanted: Range<u64>) -> Result<Option<(u64, Buffer)>, Errno> {
        let mut ahead = self.lock(target.until)?;
        if let Some(block) = target.cached(wanted.start) {
            return Ok(Some((wanted.start / BLOCK * BLOCK, block)));
        }
        let mut pending = match ahead.pending.take() {
            Some(pending) if pending.version == target.version && pending.range.contains(&wanted.start) => pending,
            _ => {
                let range = ahead.next_range(target, &wanted);
                target.start(range)
            }
        };
        let bytes = target.fs.store.finish_read(target.until, &mut pending.read)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let range = pending.range.clone();
        target.fs.blocks.keep(target.node, target.version, range.start, &bytes, target.meta.size);
        ahead.next = (target.version, range.end);
        if ahead.window > 0 && range.end < target.meta.size {
            let next = ahead.next_range(target, &(range.end..range.end));
            ahead.pending = Some(target.start(next));
        }
        Ok(Some((range.start, bytes)))
    }

    fn lock(&self, until: Deadline) -> Result<MutexGuard<'_, Ahead>, Errno> {
        until.lock(|| self.0.lock(), |left| self.0.try_lock_for(left))
    }
}

impl Ahead {
    /// Returns the blocks to request for a read.
    fn next_range(&mut self, target: &Target<'_>, wanted: &Range<u64>) -> Range<u64> {
        let start = wanted.start / BLOCK * BLOCK;
        let is_sequential = self.next == (target.version, start) && start > 0;
        let most = MAX_WINDOW.min(target.fs.options.cache_bytes / 4);
        self.window = if is_sequential { (self.window * 2).max(2 * BLOCK).min(most) / BLOCK * BLOCK } else { 0 };
        let needed = wanted.end.div_ceil(BLOCK) * BLOCK;
        start..needed.max(start + self.window.max(BLOCK)).min(target.meta.size)
    }
}

impl Target<'_> {
    fn cached(&self, offset: u64) -> Option<Buffer> {
        let key = BlockKey { node: self.node, version: self.version, number: offset / BLOCK };
        self.fs.blocks.get(&key)
    }

    fn start(&self, range: Range<u64>) -> Pending {
        let read = self.fs.store.start_read(self.key, self.meta, range.clone());
        Pending { version: self.version, range, read }
    }
}

/// Copies all of `bytes`, which may be in pieces.
pub(crate) fn copy(bytes: &Buffer, into: &mut [u8]) {
    let mut at = 0;
    for piece in bytes.clone() {
        into[at..at + piece.len()].copy_from_slice(&piece);
        at += piece.len();
    }
}
