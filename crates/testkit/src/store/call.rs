//! One request to a [`Store`](super::Store), as its hooks see it.
//!
//! Plain values. Own code.

use vfs::{Inode, OpenFlags, Position, SetAttr, Want};

/// A request, named after the method of [`vfs::FileSystem`] that received it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the parameters of the methods")]
pub enum Call<'r> {
    /// `lookup`; also for the default `revalidate`.
    Lookup {
        dir: &'r Inode,
        name: &'r [u8],
    },
    ById {
        node: u64,
    },
    Parent {
        node: u64,
    },
    ReadDir {
        dir: &'r Inode,
        want: Want,
    },
    Create {
        dir: &'r Inode,
        name: Option<&'r [u8]>,
    },
    Link {
        dir: &'r Inode,
        name: &'r [u8],
        inode: &'r Inode,
    },
    Unlink {
        dir: &'r Inode,
        name: &'r [u8],
        inode: &'r Inode,
    },
    /// `rename`: from `name` in `dir` to `new_name` in `new_dir`, where `target` is.
    Rename {
        dir: &'r Inode,
        name: &'r [u8],
        inode: &'r Inode,
        new_dir: &'r Inode,
        new_name: &'r [u8],
        target: Option<&'r Inode>,
    },
    SetAttr {
        inode: &'r Inode,
        set: &'r SetAttr,
    },
    Attributes {
        inode: &'r Inode,
    },
    Open {
        inode: &'r Inode,
        flags: OpenFlags,
    },
    Release {
        inode: &'r Inode,
        flags: OpenFlags,
    },
    Read {
        inode: &'r Inode,
    },
    Write {
        inode: &'r Inode,
        at: Position,
    },
    SetLen {
        inode: &'r Inode,
        len: u64,
    },
    Allocate {
        inode: &'r Inode,
    },
    Sync {
        inode: &'r Inode,
    },
    /// `get_xattr`, `set_xattr`, `remove_xattr` and `list_xattrs`.
    Xattr {
        inode: &'r Inode,
    },
    Evict {
        inode: &'r Inode,
    },
}
