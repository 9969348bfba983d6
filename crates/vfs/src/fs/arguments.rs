//! Arguments and results of the methods of a file system.

use crate::base::access::acl::Acl;
use crate::base::attr::Attr;
use crate::base::flags::RenameFlags;
use crate::base::valid::Valid;
use crate::fs::after::After;
use crate::slots::inode::Inode;

/// The arguments of [`FileSystem::rename`](crate::FileSystem::rename): `inode` moves from `old_name` in `old_dir` to
/// `new_name` in `new_dir`, over `target` if there is one; with `EXCHANGE`, `target` moves the other way.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'a> {
    /// The directory of the old name.
    pub old_dir: &'a Inode,
    /// The name that `inode` has.
    pub old_name: &'a [u8],
    /// The directory of the new name; it may be the same.
    pub new_dir: &'a Inode,
    /// The name that `inode` gets.
    pub new_name: &'a [u8],
    /// The file that moves.
    pub inode: &'a Inode,
    /// The file that has the new name now.
    pub target: Option<&'a Inode>,
    /// `NOREPLACE` or `EXCHANGE`.
    pub flags: RenameFlags,
}

/// An inode, as a file system returns it.
#[derive(Debug, Default)]
pub struct NewInode {
    /// The file system's number of it. Two answers with one node are two names of one inode.
    pub node: u64,
    /// Its attributes.
    pub attr: Attr,
    /// A symbolic link's body; `None`: [`FileSystem::read_link`](crate::FileSystem::read_link) returns it when the link is first followed.
    pub link_body: Option<Box<[u8]>>,
    /// How long the name and the attributes are valid.
    pub valid: Valid,
    /// The inode's access ACL, unless the ACL is equal to the mode. (The inode also has the ACL as
    /// an extended attribute.)
    pub access_acl: Option<Acl>,
    /// A directory's default ACL.
    pub default_acl: Option<Acl>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Box<[u8]>,
    /// Inode number.
    pub ino: u64,
    /// File type (`S_IFMT`).
    pub kind: u32,
}

/// The caller's use of an answer: whether a listing needs attributes beside the names.
///
/// ```
/// use lightfoot_vfs::Want;
///
/// assert!(Want::ATTRIBUTES.attributes && !Want::NAMES.attributes);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Want {
    /// Attributes that come with the answer are used. Without this they are dropped, so a file system need not collect them.
    pub attributes: bool,
}

impl Want {
    /// Names, numbers and types.
    pub const NAMES: Self = Self { attributes: false };
    /// The attributes too, where they cost the file system little.
    pub const ATTRIBUTES: Self = Self { attributes: true };
}

/// One entry of a directory, as [`FileSystem::read_dir`](crate::FileSystem::read_dir) emits it.
///
/// ```
/// use lightfoot_vfs::{Attr, Listed, NewInode, S_IFREG};
///
/// let attr = Attr { ino: 7, mode: S_IFREG | 0o644, nlink: 1, ..Attr::default() };
/// let listed = Listed::with_inode(b"name", 1, NewInode { node: 7, attr, ..NewInode::default() });
/// assert_eq!((listed.entry.ino, listed.entry.kind), (7, S_IFREG));
/// ```
#[derive(Debug)]
pub struct Listed {
    /// Name, inode number and type.
    pub entry: DirEntry,
    /// The entry's position: above 0, and the same as long as the entry has its name.
    pub cookie: u64,
    /// The complete answer to a lookup of the name at some moment of this call. `None`: that would
    /// cost more than to list the name. It enters the cache like the answer to a lookup, so that
    /// the VFS need not look the name up, except if it is valid for 0 ns.
    pub inode: Option<NewInode>,
}

impl Listed {
    /// Returns an entry without attributes.
    #[must_use]
    pub fn new(entry: DirEntry, cookie: u64) -> Self {
        Self { entry, cookie, inode: None }
    }

    /// Returns the entry `name` with the inode that it leads to, which has its number and type.
    #[must_use]
    pub fn with_inode(name: &[u8], cookie: u64, inode: NewInode) -> Self {
        let entry = DirEntry { name: name.into(), ino: inode.attr.ino, kind: inode.attr.kind() };
        Self { entry, cookie, inode: Some(inode) }
    }
}

/// The result of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub len: usize,
    /// Storage of the file now, in units of 512 bytes.
    pub blocks: u64,
    /// The offset after the data, if the VFS cannot compute it: for data appended to a file that
    /// others change too. `None`: the data lie at the requested offset, or at the end of the file
    /// in the cache.
    pub end: Option<u64>,
    /// Attributes of the file after the write.
    pub after: After,
}

impl Written {
    /// `len` bytes, at the requested offset or at the end that the cache has.
    #[must_use]
    pub fn new(len: usize, blocks: u64) -> Self {
        Self { len, blocks, end: None, after: After::NONE }
    }
}

/// Total and free storage of a file system: `statvfs(3)` without the mount's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StatFs {
    /// Magic number of the type: `statfs(2)`.
    pub kind: u64,
    /// Bytes of a block.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks free.
    pub blocks_free: u64,
    /// Blocks free to those without privilege.
    pub blocks_available: u64,
    /// Inodes in all.
    pub files: u64,
    /// Inodes free.
    pub files_free: u64,
    /// Longest name.
    pub name_max: u32,
}

/// Whether an extended attribute must be new or must exist: `setxattr(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetXattr {
    /// Either.
    #[default]
    Any,
    /// `EEXIST` if it exists: `XATTR_CREATE`.
    Create,
    /// `ENODATA` if it does not exist: `XATTR_REPLACE`.
    Replace,
}

/// The modes of `fallocate(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Reserves storage; zeros where there was none.
    Reserve,
    /// Frees its storage: the range reads as zeros.
    PunchHole,
    /// Makes the range read as zeros; it keeps its storage.
    Zero,
}

/// How [`FileSystem::copy_range`](crate::FileSystem::copy_range) copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copying {
    /// After the call both files have the same storage, until one of them changes: a reflink,
    /// `ioctl_ficlonerange(2)`. All bytes are shared, or none.
    Share,
    /// By any way that is better than to read and write: `copy_file_range(2)`.
    Any,
}

/// The targets of `lseek(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekFor {
    /// The next byte that has storage.
    Data,
    /// The next hole; the end of the file is one.
    Hole,
}
