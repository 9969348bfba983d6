//! Reads of an open file: by blocks through the cache, and by windows that grow while the reads are sequential.
//!
//! # What it is
//! A read that finds a block missing requests a range ([`Window`]): the blocks that it needs or, if the
//! read begins where the last request ended, a window that doubles each time up to [`MAX_WINDOW`]. While
//! the reads are sequential, windows for [`AHEAD`] bytes are requested before they are needed. A window
//! has no bytes that another window or the cache has: the kernel spreads the reads of a file over the
//! programs that read it.
//!
//! The reader owns the windows that it requested ahead until they were read, so that the cache cannot
//! evict them before. All windows of a file system share a part of the bytes for the cache.
//!
//! # How it is locked
//! The plan of an open file has a mutex, held while requests are started, not while a read waits.

use crate::blocks::{BLOCK, BlockKey};
use crate::deadline::Deadline;
use crate::key::Key;
use crate::meta::Meta;
use crate::node::Node;
use crate::object_fs::ObjectFs;
use crate::window::{Window, copy, find};
use core::ops::Range;
use opendal::Buffer;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use vfs::Errno;

/// The longest range of a request ahead, in bytes.
const MAX_WINDOW: u64 = 4 << 20;

/// The bytes that are requested ahead of a sequential reader.
const AHEAD: u64 = 3 * MAX_WINDOW;

/// How far reads that follow each other may arrive out of their order: the kernel sends several at a time.
const OUT_OF_ORDER: u64 = 1 << 20;

#[derive(Default)]
struct Plan {
    version: u64,
    /// Where the last request ended.
    next: u64,
    /// The bytes of the last window; 0: the reads are not sequential.
    window: u64,
    /// The windows that were requested ahead, in the order of their offsets.
    windows: VecDeque<Arc<Window>>,
}

/// The state of an open file; see the [module documentation](self).
#[derive(Default)]
pub(crate) struct Reader(Mutex<Plan>);

/// The object that is read.
#[derive(Clone, Copy)]
struct Target<'a> {
    fs: &'a ObjectFs,
    until: Deadline,
    node: &'a Node,
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
        let target = Target { fs, until, node, key, meta, version };
        let end = meta.size.min(offset.saturating_add(buf.len() as u64));
        let mut at = offset;
        while at < end {
            let into = &mut buf[(at - offset) as usize..(end - offset) as usize];
            let read = match fs.blocks.get(&target.block(at)) {
                Some(block) => copy_from(&block, at % BLOCK, into)?,
                None => match self.read_window(&target, at, into)? {
                    Some(read) => read,
                    None => return Ok(None),
                },
            };
            at += read;
        }
        Ok(Some(end.saturating_sub(offset) as usize))
    }

    /// Reads from the window at `at`, which it requests if there is none. Returns how many bytes: 0 if the cache has them now.
    fn read_window(&self, target: &Target<'_>, at: u64, into: &mut [u8]) -> Result<Option<u64>, Errno> {
        let windows = &target.node.windows;
        let known = find(&windows.lock(), target.version, at).cloned();
        let (window, is_own) = match known {
            Some(window) => (window, false),
            None => match self.request(target, at..at + into.len() as u64) {
                Some(requested) => requested,
                None => return Ok(Some(0)),
            },
        };
        let answer = target.fs.store.finish(target.until, &window.reading);
        let Ok(Some(bytes)) = &answer else {
            // Otherwise the caller left, and other reads may still wait.
            if window.reading.answer.peek().is_some() {
                windows.remove(&window);
                // The request of another read may have had an older key.
                if !is_own {
                    return self.read_window(target, at, into);
                }
            }
            return answer.map(|_| None);
        };
        let read = copy_from(bytes, at - window.range.start, into).inspect_err(|_| windows.remove(&window))?;
        if window.serve(read) || !window.is_ahead() {
            retire(target.fs, target.node, &window);
        }
        self.go_on(target, at + read);
        Ok(Some(read))
    }

    /// Requests a range that begins with the block of `wanted`. Returns false if another read has done so since the caller
    /// looked, and `None` if the cache has the block since.
    #[cold]
    fn request(&self, target: &Target<'_>, wanted: Range<u64>) -> Option<(Arc<Window>, bool)> {
        let mut plan = self.0.lock();
        // A read of this open file.
        if let Some(window) = find(&target.node.windows.lock(), target.version, wanted.start) {
            return Some((window.clone(), false));
        }
        let start = wanted.start / BLOCK * BLOCK;
        let is_next = plan.version == target.version && plan.next > 0;
        let is_sequential = is_next && (plan.next..plan.next + OUT_OF_ORDER).contains(&start);
        let needed = wanted.end.div_ceil(BLOCK) * BLOCK;
        if !is_sequential {
            plan.windows.drain(..).for_each(|window| retire(target.fs, target.node, &window));
            *plan = Plan { version: target.version, ..Plan::default() };
        }
        let mut windows = target.node.windows.lock();
        // Or a read of another one.
        if target.is_there(&windows, wanted.start) {
            return find(&windows, target.version, wanted.start).map(|window| (window.clone(), false));
        }
        let mut range = target.gap(&windows, start, start..needed.min(target.meta.size));
        let mut taken = None;
        if is_sequential {
            let longer = plan.next..needed.max(plan.grow()).min(target.meta.size);
            let longer = target.gap(&windows, start, longer);
            let bytes = longer.end - longer.start;
            if target.fs.windows.take(bytes).is_ok() {
                (range, taken) = (longer, Some(bytes));
            }
        }
        plan.next = range.end;
        let window = target.start(&mut windows, range, taken);
        if taken.is_some() {
            plan.windows.push_back(window.clone());
        }
        Some((window, true))
    }

    /// Requests windows ahead of a sequential reader that is at `at`.
    fn go_on(&self, target: &Target<'_>, at: u64) {
        // If another read plans, it requests them.
        let Some(mut plan) = self.0.try_lock() else { return };
        let is_sequential = plan.window > 0 && plan.version == target.version;
        // Windows of others may have led the reader beyond its own.
        plan.next = plan.next.max(at.next_multiple_of(BLOCK));
        while is_sequential && plan.next < target.meta.size && plan.next < at + AHEAD.min(2 * plan.window) {
            let wanted = plan.next..plan.grow().min(target.meta.size);
            let mut windows = target.node.windows.lock();
            let mut blocks = wanted.clone().step_by(BLOCK as usize);
            let Some(first) = blocks.find(|at| !target.is_there(&windows, *at)) else {
                plan.next = wanted.end;
                continue;
            };
            let range = target.gap(&windows, first, first..wanted.end);
            let bytes = range.end - range.start;
            if target.fs.windows.take(bytes).is_err() {
                break;
            }
            plan.next = range.end;
            let window = target.start(&mut windows, range, Some(bytes));
            plan.windows.push_back(window);
        }
        while plan.windows.front().is_some_and(|window| window.range.end + OUT_OF_ORDER < at) {
            if let Some(window) = plan.windows.pop_front() {
                retire(target.fs, target.node, &window);
            }
        }
    }

    /// Gives up the windows that were requested ahead: the file is closed.
    pub(crate) fn close(&self, fs: &ObjectFs, node: &Node) {
        let windows = core::mem::take(&mut self.0.lock().windows);
        windows.iter().for_each(|window| retire(fs, node, window));
    }
}

impl Plan {
    /// Returns the end of the next window, which is longer than the last one.
    fn grow(&mut self) -> u64 {
        self.window = (self.window * 2).clamp(2 * BLOCK, MAX_WINDOW);
        self.next + self.window
    }
}

impl Target<'_> {
    fn block(&self, offset: u64) -> BlockKey {
        BlockKey { node: self.node.id, version: self.version, number: offset / BLOCK }
    }

    /// Returns whether a window or the cache has the block at `offset`.
    fn is_there(&self, windows: &[Arc<Window>], offset: u64) -> bool {
        find(windows, self.version, offset).is_some() || self.fs.blocks.has(&self.block(offset))
    }

    /// Returns the part of `within` around the block at `around` that neither a window nor the cache has.
    fn gap(&self, windows: &[Arc<Window>], around: u64, within: Range<u64>) -> Range<u64> {
        let before = (within.start..around).step_by(BLOCK as usize);
        let mut behind = (around..within.end).step_by(BLOCK as usize).skip(1);
        let start = before.filter(|at| self.is_there(windows, *at)).last().map_or(within.start, |at| at + BLOCK);
        start..behind.find(|at| self.is_there(windows, *at)).unwrap_or(within.end)
    }

    /// Requests a range, for which `taken` bytes were taken from the allowance.
    fn start(&self, windows: &mut Vec<Arc<Window>>, range: Range<u64>, taken: Option<u64>) -> Arc<Window> {
        let reading = self.fs.store.start(self.key, self.meta, range.clone());
        let taken = taken.map(|bytes| (self.fs.windows.clone(), bytes));
        let window = Arc::new(Window::new(self.version, range, reading, taken));
        windows.push(window.clone());
        window
    }
}

/// Moves the bytes of a window to the cache. Meanwhile both have them, so that no read requests them again.
fn retire(fs: &ObjectFs, node: &Node, window: &Arc<Window>) {
    if window.end() {
        if let Some(bytes) = window.arrived() {
            let is_end = !window.range.end.is_multiple_of(BLOCK);
            fs.blocks.keep(node.id, window.version, window.range.start, &bytes, is_end);
        }
        node.windows.remove(window);
    }
}

/// Copies bytes from `start` on, as many as fit. Returns how many: `EIO` if there are none.
fn copy_from(bytes: &Buffer, start: u64, into: &mut [u8]) -> Result<u64, Errno> {
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    let len = (bytes.len() - start).min(into.len());
    copy(&bytes.slice(start..start + len), &mut into[..len]);
    if len == 0 { Err(Errno::EIO) } else { Ok(len as u64) }
}
