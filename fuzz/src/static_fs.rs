//! A file system over the fixed table: its answers are never cached, so walks in it go step by step in ref-walk.
//!
//! `testkit::Store` does not fit here. It counts its lookups by name, so its memory would grow with each random name, and it
//! returns the body of a link with the link, so no walk would call `read_link`.

use crate::tree::{Kind, NODES, find};
use vfs::{
    Attr, Errno, FileSystem, FsTraits, Inode, NameStore, NewInode, NextNames, OwnNames, Request, S_IFDIR, S_IFLNK,
    S_IFREG, Valid,
};

/// A file system over the table of nodes. Its root is the node with this number.
#[derive(Debug)]
pub struct StaticFs(pub usize);

/// Returns the attributes of the node with the number `node`. The group is 1000 plus this number.
#[must_use]
pub fn attr_of(node: usize) -> Attr {
    let (mode, size) = match NODES[node].kind {
        Kind::Dir(mode) => (S_IFDIR | mode, 0),
        Kind::File => (S_IFREG | 0o644, 0),
        Kind::Link(body) => (S_IFLNK | 0o777, body.len() as u64),
    };
    let gid = u32::try_from(node).unwrap_or(0) + 1000;
    Attr { ino: node as u64 + 1, mode, nlink: 1, gid, size, ..Attr::default() }
}

fn inode_of(node: usize) -> NewInode {
    NewInode { node: node as u64 + 1, attr: attr_of(node), valid: Valid::For(0), ..NewInode::default() }
}

fn node_of(inode: &Inode) -> usize {
    inode.node() as usize - 1
}

impl FileSystem for StaticFs {
    fn root(&self) -> NewInode {
        inode_of(self.0)
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            names: NameStore::FileSystem(OwnNames { valid: Valid::For(0), ..OwnNames::default() }),
            ..FsTraits::default()
        }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        find(node_of(dir), name).map(inode_of).ok_or(Errno::ENOENT)
    }

    fn read_link(&self, _: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        match NODES[node_of(inode)].kind {
            Kind::Link(body) => Ok(body.as_bytes().into()),
            _ => Err(Errno::EINVAL),
        }
    }
}
