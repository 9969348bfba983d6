//! A change by this file system, from before the host is asked to after the VFS may know.
//!
//! # What it is
//! While it lasts, events of the host about its names wait ([`crate::watch`]), and those about its files' attributes
//! are no news: the VFS will ask for them. When it is over, whatever came of it, the VFS is told that it has to
//! ([`vfs::Inode::doubt`]).
//!
//! # How it is locked
//! Not at all; it is no lock, and keeps nobody from anything.
//!
//! # Where it comes from
//! Own code.

use crate::core::Core;
use crate::node::Node;
use std::sync::Arc;
use vfs::Inode;

/// Directories and files that one call changes at most.
const MOST: usize = 4;

/// A name in a directory.
pub(crate) type Name<'a> = (u64, &'a [u8]);

/// See the [module documentation](self).
pub(crate) struct Change<'a> {
    core: &'a Core,
    names: [Option<Name<'a>>; 2],
    inodes: [Option<&'a Inode>; MOST],
}

impl Core {
    /// Begins a change of names, and of the attributes of files and directories.
    pub(crate) fn change<'a>(&'a self, names: [Option<Name<'a>>; 2], inodes: [Option<&'a Inode>; MOST]) -> Change<'a> {
        for inode in inodes.into_iter().flatten() {
            if let Some(node) = inode.data::<Arc<Node>>() {
                node.set_doubted(true);
            }
        }
        if let Some(watches) = &self.watches {
            names.into_iter().flatten().for_each(|name| watches.begin_change(name));
        }
        Change { core: self, names, inodes }
    }

    /// Begins a change of one file, not of its names.
    pub(crate) fn change_of<'a>(&'a self, inode: &'a Inode) -> Change<'a> {
        self.change([None; 2], [Some(inode), None, None, None])
    }
}

impl Change<'_> {
    /// Says what a name leads to now.
    pub(crate) fn leads(&self, (dir, name): Name<'_>, node: Option<u64>) {
        self.core.told(dir, name, node, true);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.inodes.into_iter().flatten().for_each(|inode| self.core.doubt(inode));
        if let Some(watches) = &self.core.watches {
            self.names.into_iter().flatten().for_each(|name| watches.end_change(name));
        }
    }
}
