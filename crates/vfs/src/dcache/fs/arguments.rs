//! Arguments and results of the methods of a file system.

use crate::base::access::acl::Acl;
use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::base::flags::RenameFlags;
use crate::dcache::fs::Valid;
use crate::dcache::inode::Inode;

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
    /// Its access ACL, unless it is equal to the mode. (Also an extended attribute of it.)
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

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub len: usize,
    /// Storage of the file now, in units of 512 bytes.
    pub blocks: u64,
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

/// The result of a file system's own permission check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// The VFS decides by mode, owner and ACL.
    ByMode,
    /// Allowed or not.
    Is(Result<(), Errno>),
    /// The check would block: the walk leaves rcu-walk and calls [`FileSystem::permission`](crate::FileSystem::permission).
    NotHere,
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

/// The targets of `lseek(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekFor {
    /// The next byte that has storage.
    Data,
    /// The next hole; the end of the file is one.
    Hole,
}
