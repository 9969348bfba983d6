//! A change by this file system: from before the call to the host until after the VFS was notified.
//!
//! # What it is
//! During the change, the host's events about the changed names wait ([`crate::events`]). For a
//! while, events about the changed files may come from the change itself ([`crate::settling`]). At
//! the end of the change, whatever the result, its inodes are marked stale
//! ([`vfs::Inode::mark_stale`]).
//!
//! # How it is locked
//! A change is not a lock: two changes may overlap.

use crate::node::{Attached, NameAt, Node};
use crate::shared::Shared;
use vfs::Inode;

/// Directories or files that one call changes at most.
const MAX_INODES: usize = 2;

/// See the [module documentation](self).
pub(crate) struct Change<'a> {
    shared: &'a Shared,
    names: [Option<NameAt<'a>>; 2],
    /// Directories in which names change. The events of the names are also their events.
    dirs: [Option<&'a Inode>; MAX_INODES],
    /// The changed files themselves.
    inodes: [Option<&'a Inode>; MAX_INODES],
}

impl Shared {
    /// Begins a change of names in `dirs`, and of the attributes or contents of `inodes`.
    pub(crate) fn begin_change<'a>(
        &'a self,
        names: [Option<NameAt<'a>>; 2],
        dirs: [Option<&'a Inode>; MAX_INODES],
        inodes: [Option<&'a Inode>; MAX_INODES],
    ) -> Change<'a> {
        if let Some(watches) = &self.watches {
            names.into_iter().flatten().for_each(|name| watches.begin_change(name));
        }
        let change = Change { shared: self, names, dirs, inodes };
        change.note_own();
        change
    }

    /// Begins a change of one file, not of its names.
    pub(crate) fn begin_change_of<'a>(&'a self, inode: &'a Inode) -> Change<'a> {
        self.begin_change([None; 2], [None; 2], [Some(inode), None])
    }

    /// Notes that this file system changes a file.
    fn note_own_change(&self, node: &Node) {
        node.forget_change();
        if let Some(watches) = &self.watches {
            node.note_own_change(watches.round());
        }
    }
}

impl Change<'_> {
    /// Notes the node to which a name leads now.
    pub(crate) fn note_result(&self, at: NameAt<'_>, node: Option<u64>) {
        let Some(watches) = &self.shared.watches else { return };
        watches.note_result(at, node);
        if let Some(node) = node.and_then(|node| self.shared.table.get(node)) {
            self.shared.note_own_change(&node);
        }
    }

    fn note_own(&self) {
        let nodes = self.inodes.into_iter().flatten().filter_map(|inode| inode.data::<Attached>());
        nodes.for_each(|attached| self.shared.note_own_change(attached.node()));
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.note_own();
        self.dirs.into_iter().chain(self.inodes).flatten().for_each(Inode::mark_stale);
        if let Some(watches) = &self.shared.watches {
            self.names.into_iter().flatten().for_each(|name| watches.end_change(name));
        }
    }
}
