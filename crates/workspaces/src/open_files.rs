//! The open files of a fork, and what programs read from them.
//!
//! # What it is
//! An open file or directory has the file of the base behind it open, too, if there is one with contents or names. A fork counts how
//! many times each node is open: a rollback or a commit keeps a file that a program has open.
//!
//! # How it is locked
//! A mutex around the counts, held for some instructions.

use crate::record::Node;
use crate::state::State;
use prim::atomic::AtomicU64;
use std::sync::Arc;
use vfs::{Errno, Open, OpenFile, OpenState, Opened, S_IFDIR, S_IFREG};

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenDir {
    /// The directory of the base.
    pub(crate) base: OpenState,
    /// The last place in listings that the listing has. A file that is renamed meanwhile gets a later place: a program that renames
    /// each file that it lists would never come to the end.
    pub(crate) last: AtomicU64,
}

impl State {
    /// Returns the last place in listings that a name has so far.
    pub(crate) fn last_listed(&self) -> u64 {
        self.tree.lock().serial
    }

    /// Opens the file of the base behind a node, if there is one with contents or names.
    pub(crate) fn open_base(&self, current: &Node) -> Result<OpenState, Errno> {
        let is_opened = matches!(current.attr.kind(), S_IFDIR | S_IFREG);
        Ok(match current.base.as_ref().filter(|_| is_opened) {
            Some(base) => OpenState::Shared(Arc::new(self.shared.lower.open(base)?)),
            None => OpenState::None,
        })
    }

    /// Opens a file or a directory.
    pub(crate) fn open(&self, node: u64) -> Result<Opened, Errno> {
        let current = self.current(node)?;
        let state = self.open_base(&current)?;
        *self.opens.lock().entry(node).or_default() += 1;
        // The base reports whether the pages of a kernel are still right.
        let is_shown = || self.tree.lock().node(node).is_none_or(|node| node.contents.is_none());
        let shown = state.get::<OpenFile>().filter(|_| is_shown());
        let (keeps_pages, version) = shown.map_or((true, None), |base| (base.keeps_pages(), base.version()));
        // A later write would move the file away from its base, under the kernel's open file.
        let backing = shown.filter(|_| self.is_read_only()).and_then(OpenFile::backing);
        let state = match current.attr.is_dir() {
            true => OpenState::Shared(Arc::new(OpenDir { base: state, last: AtomicU64::new(self.last_listed()) })),
            false => state,
        };
        Ok(Opened { state, keeps_pages, version, backing, ..Opened::default() })
    }

    /// Notes that an open file was closed.
    pub(crate) fn release(&self, node: u64) {
        let mut opens = self.opens.lock();
        let Some(count) = opens.get_mut(&node) else { return };
        *count -= 1;
        if *count == 0 {
            opens.remove(&node);
        }
    }

    /// Returns whether a program has the node open.
    pub(crate) fn is_open(&self, node: u64) -> bool {
        self.opens.lock().contains_key(&node)
    }

    /// Returns how many times files and directories are open.
    pub(crate) fn open_files(&self) -> u64 {
        self.opens.lock().values().map(|count| u64::from(*count)).sum()
    }

    /// Reads bytes of the base for an open file.
    fn read_base(&self, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        file.state.get::<OpenFile>().ok_or(Errno::ESTALE)?.read_full_at(offset, buf)
    }

    /// Reads from an open file.
    pub(crate) fn read(&self, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let current = self.current(file.inode.node())?;
        // A file with a stamp is of the base, which may lack it.
        if current.contents.is_none() && (current.base.is_some() || current.stamp.is_some()) {
            return self.read_base(file, offset, buf);
        }
        let left = usize::try_from(current.attr.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left);
        let buf = &mut buf[..len];
        match &current.contents {
            Some(contents) => contents.state.read().read(offset, buf, &|at, part| self.fill(file, at, part))?,
            // A file that the fork made, before its first write.
            None => buf.fill(0),
        }
        Ok(len)
    }

    /// Reads bytes of the base for a page, and zeros behind the end of the base's file.
    pub(crate) fn fill(&self, file: &Open<'_>, at: u64, part: &mut [u8]) -> Result<(), Errno> {
        let read = self.read_base(file, at, part)?;
        part[read..].fill(0);
        Ok(())
    }
}
