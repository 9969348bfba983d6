//! A change by this file system: from before the call to the host until after the VFS was notified.
//!
//! # What it is
//! While it lasts, the host's events about its names wait ([`crate::events`]), and events about its files' attributes
//! are skipped: the VFS will request the attributes. At its end, whatever the result, the inodes are marked stale
//! ([`vfs::Inode::mark_stale`]).
//!
//! # How it is locked
//! It is not a lock: two changes may overlap.
//!
//! # Where it comes from
//! Own code.

use crate::node::{NameAt, Node};
use crate::shared::Shared;
use std::sync::Arc;
use vfs::Inode;

/// Directories and files that one call changes at most.
const MAX_INODES: usize = 4;

/// See the [module documentation](self).
pub(crate) struct Change<'a> {
    shared: &'a Shared,
    names: [Option<NameAt<'a>>; 2],
    inodes: [Option<&'a Inode>; MAX_INODES],
}

impl Shared {
    /// Begins a change of names, and of the attributes of files and directories.
    pub(crate) fn begin_change<'a>(
        &'a self,
        names: [Option<NameAt<'a>>; 2],
        inodes: [Option<&'a Inode>; MAX_INODES],
    ) -> Change<'a> {
        for inode in inodes.into_iter().flatten() {
            if let Some(node) = inode.data::<Arc<Node>>() {
                node.set_stale(true);
            }
        }
        if let Some(watches) = &self.watches {
            names.into_iter().flatten().for_each(|name| watches.begin_change(name));
        }
        Change { shared: self, names, inodes }
    }

    /// Begins a change of one file, not of its names.
    pub(crate) fn begin_change_of<'a>(&'a self, inode: &'a Inode) -> Change<'a> {
        self.begin_change([None; 2], [Some(inode), None, None, None])
    }
}

impl Change<'_> {
    /// Notes the node to which a name leads now.
    pub(crate) fn note_result(&self, at: NameAt<'_>, node: Option<u64>) {
        self.shared.note_reported(at, node, true);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.inodes.into_iter().flatten().for_each(|inode| self.shared.mark_stale(inode));
        if let Some(watches) = &self.shared.watches {
            self.names.into_iter().flatten().for_each(|name| watches.end_change(name));
        }
    }
}
