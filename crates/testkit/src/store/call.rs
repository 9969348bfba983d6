//! One request to a [`Store`](super::Store), as its hooks see it.
//!
//! Plain values.

use vfs::{Inode, OpenFlags, Position, Rename, SetAttr, Want};

/// A request, named after the method of [`vfs::FileSystem`] that received it. The fields are the parameters of that method.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the parameters of the methods")]
pub enum Call<'r> {
    /// `lookup`; also for the default `revalidate`.
    Lookup { dir: &'r Inode, name: &'r [u8] },
    /// `by_id`.
    ById { node: u64 },
    /// `parent`.
    Parent { node: u64 },
    /// `read_dir`.
    ReadDir { dir: &'r Inode, want: Want },
    /// `create`.
    Create { dir: &'r Inode, name: Option<&'r [u8]> },
    /// `link`.
    Link { dir: &'r Inode, name: &'r [u8], inode: &'r Inode },
    /// `unlink`.
    Unlink { dir: &'r Inode, name: &'r [u8], inode: &'r Inode },
    /// `rename`.
    Rename(&'r Rename<'r>),
    /// `set_attr`.
    SetAttr { inode: &'r Inode, set: &'r SetAttr },
    /// `attributes`.
    Attributes { inode: &'r Inode },
    /// `open`.
    Open { inode: &'r Inode, flags: OpenFlags },
    /// `release`.
    Release { inode: &'r Inode, flags: OpenFlags },
    /// `read`.
    Read { inode: &'r Inode },
    /// `write`.
    Write { inode: &'r Inode, at: Position },
    /// `set_len`.
    SetLen { inode: &'r Inode, len: u64 },
    /// `allocate`.
    Allocate { inode: &'r Inode },
    /// `sync`.
    Sync { inode: &'r Inode },
    /// `get_xattr`, `set_xattr`, `remove_xattr` and `list_xattrs`.
    Xattr { inode: &'r Inode },
    /// `evict`.
    Evict { inode: &'r Inode },
}
