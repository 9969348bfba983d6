//! A file system for the tests of whole paths.

use lightfoot_vfs::{
    After, Attr, CachedNames, Errno, FileSystem, FsTraits, Inode, NameStore, NewInode, NewNode, Rename, Request,
    S_IFDIR,
};

/// Leaves its names to the cache. The inode number of a file follows from its name alone.
pub(crate) struct Names;

impl FileSystem for Names {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits { names: NameStore::Cache(CachedNames::default()), ..FsTraits::default() }
    }

    fn create(&self, _: &Request, _: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = name
            .unwrap_or_default()
            .iter()
            .fold(7, |ino: u64, &byte| ino.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Ok(new.attr.ino)
    }

    fn rename(&self, _: &Request, _: &Rename<'_>) -> Result<After, Errno> {
        Ok(After::NONE)
    }
}
