//! File handles: `name_to_handle_at(2)` of a mount, and the needs of an NFS server.
//!
//! # What it is
//! A handle of the kernel has the id of a node and its generation. When the kernel has forgotten
//! the node, it looks `.` up in that id, and accepts the reply if id and generation equal the
//! handle's; for a directory it also looks `..` up. So an id must lead to its file without the
//! table of nodes. It does so if the id is the inode number and the tree finds files by number
//! ([`vfs::Context::hold_number`]): in a tree in memory, which never uses a number again. There the
//! generation is always 0.
//!
//! Any other node has a generation that no node with its id had before. So handles of the node
//! become invalid when the node is removed.
//!
//! # What it is not
//! For host directories: the id of a file on the host has some 30 bytes, and the request has room
//! for 8.
//!
//! # Where it comes from
//! `fuse_get_dentry` and `fuse_get_parent` in Linux's `fs/fuse/inode.c`; libfuse's `README.NFS`.

use super::user_budget::Node;
use super::{Caller, Entry, ROOT_NODE, Session};
use vfs::{Base, Errno, PathRef};

impl Session {
    /// Returns whether a node is found by its id after the kernel has forgotten it.
    pub(crate) fn exports(&self) -> bool {
        self.exports.is_some()
    }

    /// Returns the generation in replies of a node that has the generation `made` in the table.
    /// `is_ino`: its id is the inode number.
    pub(super) fn generation(&self, node: &Node, is_ino: bool, made: u64) -> u64 {
        match self.exports {
            None => made,
            // A mount of the same file system elsewhere in the tree may have other flags.
            Some(mount) if is_ino && node.mount_id() == mount => 0,
            Some(_) => made + 1,
        }
    }

    /// LOOKUP of `.` (for a file of any type) or `..`, by the id of a node. The kernel may have forgotten that node.
    ///
    /// # Errors
    /// `ESTALE`: the file was removed.
    pub(super) fn look_up_handle(&self, caller: &Caller, node: u64, is_above: bool) -> Result<Entry, Errno> {
        let root = self.node(ROOT_NODE)?;
        let held = match self.nodes.get(node) {
            Some(known) => PathRef::clone(&known),
            None => self.callers.everyone().hold_number(&root, node)?,
        };
        let held = if is_above { self.callers.everyone().hold(Base::at(&held), b"..", false)? } else { held };
        if held.identity() == root.identity() && held.mount_id() == root.mount_id() {
            let (attr, attr_ttl) = self.shown_of(ROOT_NODE, &root, root.attr()?);
            return Ok(Entry { node: ROOT_NODE, generation: 0, attr, entry_ttl: attr_ttl, attr_ttl });
        }
        let entry = self.entry(caller, held)?;
        if !is_above && entry.node != node {
            self.forget(entry.node, 1);
            return Err(Errno::ESTALE);
        }
        Ok(entry)
    }
}
