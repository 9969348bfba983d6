//! What a file system is to this crate.
//!
//! The trait is inode-based, synchronous and bytes-first. A file system never sees a dentry: it is told of directories and
//! files as [`Inode`]s, of names as bytes. The VFS checks permissions, limits, types and existence, and keeps attributes
//! (links, times, sizes of directories) by the rules of POSIX before and after it calls; the file system keeps what lies
//! behind: contents, extended attributes, and the names unless it leaves them in the cache.
//!
//! # How it is locked
//! Calls that change a directory come with that directory's lock held, so they may block but must not call back into the VFS.
//! Calls that change a file's contents come with the file's data lock held. [`FileSystem::lookup`] comes with no lock: lookups
//! of different names of one directory run side by side, and beside changes of that directory; what a lookup answers is
//! thrown away if the directory changed meanwhile.
//!
//! # Where it comes from
//! Linux's `inode_operations`, `dentry_operations` (`d_revalidate`, `d_hash`, `d_compare`), `file_operations` and `super_operations`;
//! how long an answer is good is FUSE's `entry_timeout`.

mod asked;

pub use asked::{Allocate, RenameFlags, SeekFor, SetXattr};

use crate::acl::Acl;
use crate::attr::{Attr, SetAttr};
use crate::cred::Credentials;
use crate::errno::Errno;
use crate::file::DirEntry;
use crate::inode::Inode;
use crate::invalidate::Invalidator;
use crate::namespace::OpenFlags;
use prim::shared::Arc;
use std::os::fd::OwnedFd;

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// User of the caller. (Permissions have been checked; this is for records and quotas.)
    pub uid: u32,
    /// Group of the caller.
    pub gid: u32,
    /// The time of the request, nanoseconds since the epoch.
    pub now: i64,
    /// When the caller gives up, in nanoseconds of `prim::clock::monotonic_ns`. A file system that can stop by then answers
    /// `ETIMEDOUT`; one that cannot may go on: askers of a lookup are let go without it.
    pub deadline: Option<i64>,
    /// Whether the caller may use what is kept for root (`CAP_SYS_RESOURCE`): reserved space, quota limits.
    pub privileged: bool,
}

impl Request {
    pub(crate) fn of(cred: &Credentials) -> Self {
        let privileged = cred.capabilities.contains(crate::cred::Capabilities::SYS_RESOURCE);
        Self { uid: cred.uid, gid: cred.gid, now: prim::clock::now_ns(), deadline: None, privileged }
    }

    /// The same, of a caller who waits for so many nanoseconds.
    #[cold]
    pub(crate) fn within(self, ns: u64) -> Self {
        let patience = i64::try_from(ns).unwrap_or(i64::MAX);
        Self { deadline: Some(prim::clock::monotonic_ns().saturating_add(patience)), ..self }
    }
}

/// For how long an answer of a file system is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Valid {
    /// Until the file system says otherwise by its [`Invalidator`]: nobody else changes it.
    #[default]
    UntilTold,
    /// For so many nanoseconds; 0: it is asked again each time.
    For(u64),
}

/// An inode as a file system tells it.
#[derive(Debug, Default)]
pub struct NewInode {
    /// What the file system will know it by. Two answers with one node are two names of one inode.
    pub node: u64,
    /// Its attributes.
    pub attr: Attr,
    /// A symbolic link's body; `None`: it is asked for by [`FileSystem::read_link`] when first followed.
    pub link_body: Option<Box<[u8]>>,
    /// For how long the name and the attributes are good.
    pub valid: Valid,
    /// Its access ACL, if it has one that says more than its mode. (Also an extended attribute of it.)
    pub access_acl: Option<Acl>,
    /// A directory's default ACL.
    pub default_acl: Option<Acl>,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub len: usize,
    /// Storage that the file takes now, in units of 512 bytes.
    pub blocks: u64,
}

/// What a file system has and has left: `statvfs(3)` without the mount's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// How a file system hashes and compares names, where that is not byte by byte: case-insensitive directories.
pub trait NameRules: Send + Sync + 'static {
    /// The hash of `name`, the same for all that [`NameRules::equal`] says are one. `key` is random for each tree.
    fn hash(&self, key: u64, name: &[u8]) -> u64;

    /// Whether both are one name.
    fn equal(&self, a: &[u8], b: &[u8]) -> bool;
}

/// What a file system's own permission check answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// As the mode, owner and ACL say.
    ByMode,
    /// Allowed or not.
    Is(Result<(), Errno>),
    /// It cannot be said without blocking: ask again by [`FileSystem::permission`].
    NotHere,
}

/// A file system. Every method but [`FileSystem::root`] has a default that refuses, or that fits a file system which nobody else
/// changes.
pub trait FileSystem: Send + Sync + 'static {
    /// The root directory.
    fn root(&self) -> NewInode;

    /// The name of its type in a list of mounts.
    fn type_name(&self) -> &str {
        "lightfoot"
    }

    /// Is handed the means of telling the caches that something changed behind them, once, when it is first mounted.
    fn mounted(&self, _invalidator: Invalidator) {}

    /// Whether all names live in the dentry cache (a RAM file system): the VFS then answers misses and listings by itself.
    fn names_in_cache(&self) -> bool {
        false
    }

    /// Whether a whole listing may be kept: it then answers further listings, and lookups of names that are not in it, until the
    /// directory changes.
    fn caches_listings(&self) -> bool {
        false
    }

    /// For how long what it made, and that a name is not there, is good. Asked once.
    fn default_valid(&self) -> Valid {
        Valid::UntilTold
    }

    /// How names are compared, if not byte by byte. Asked once.
    fn name_rules(&self) -> Option<Box<dyn NameRules>> {
        None
    }

    /// Whether [`FileSystem::permission`] is to be asked at all. Asked once.
    fn own_permissions(&self) -> bool {
        false
    }

    /// What each entry adds to the `st_size` of its directory.
    fn entry_size(&self) -> u64 {
        0
    }

    /// Finds `name` in `dir`. `ENOENT`: there is none, and the VFS may remember that.
    ///
    /// # Errors
    /// `ENOENT`, or whatever the storage answers.
    fn lookup(&self, _request: &Request, _dir: &Inode, _name: &[u8]) -> Result<NewInode, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Whether `name` in `dir` is still `inode`, when the time that it was good for is over: what it is now, if it is. `ENOENT` or
    /// another node: it is not, and the name is looked up anew. The default asks [`FileSystem::lookup`].
    ///
    /// # Errors
    /// As for [`FileSystem::lookup`].
    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], _inode: &Inode) -> Result<NewInode, Errno> {
        self.lookup(request, dir, name)
    }

    /// The body of a symbolic link that came without one. Asked once for each inode.
    ///
    /// # Errors
    /// `EIO`...
    fn read_link(&self, _request: &Request, _inode: &Inode) -> Result<Box<[u8]>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Whether `cred` may do `mask` (of `MAY_*`) with `inode`. With `rcu` it must not block and may answer
    /// [`Permission::NotHere`]. Asked only if [`FileSystem::own_permissions`].
    fn permission(&self, _cred: &Credentials, _inode: &Inode, _mask: u32, _rcu: bool) -> Permission {
        Permission::ByMode
    }

    /// Lists `dir` from after the entry that had the cookie `after` (0: from the start): calls `emit` with each entry and its
    /// cookie until that says `false` or none is left. Cookies are above 0, and an entry keeps its own. `.` and `..` are
    /// left out. Not called if names are in the cache.
    ///
    /// # Errors
    /// `EIO`...
    fn read_dir(&self, _dir: &Inode, _after: u64, _emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    /// Makes `name` in `dir`: of the type, mode, owner, device number and times in `attr`, whose inode number and storage the file
    /// system fills in; a symbolic link with `link_body`. Gives the word by which it will know the inode.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EROFS`, `EIO`...; `EPERM` if it makes no such thing; `EEXIST` if it has the name all the same.
    fn create(
        &self,
        _request: &Request,
        _dir: &Inode,
        _name: &[u8],
        _attr: &mut Attr,
        _link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        Err(Errno::EPERM)
    }

    /// Makes a regular file without a name on the file system of `dir`: `O_TMPFILE`. As [`FileSystem::create`] otherwise.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has no such files; `ENOSPC`, `EDQUOT`...
    fn create_unnamed(&self, _request: &Request, _dir: &Inode, _attr: &mut Attr) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Gives `inode` the further name `name` in `dir`.
    ///
    /// # Errors
    /// `EPERM` if it has no hard links; `EMLINK`, `ENOSPC`...
    fn link(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Takes `name` of `inode` out of `dir`. For a directory, it is empty as far as the cache knows.
    ///
    /// # Errors
    /// `EROFS`, `ENOTEMPTY`...
    fn unlink(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Moves `inode` from one name to another, over `target` if there is one; with `EXCHANGE`, the two change places.
    ///
    /// # Errors
    /// `EROFS`, `ENOTEMPTY`, `EXDEV`...; `EINVAL` for flags that it cannot do.
    fn rename(
        &self,
        _request: &Request,
        _from: (&Inode, &[u8]),
        _to: (&Inode, &[u8]),
        _inode: &Inode,
        _target: Option<&Inode>,
        _flags: RenameFlags,
    ) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Is told that attributes change, before they do. The length comes by [`FileSystem::set_len`].
    ///
    /// # Errors
    /// `EROFS`, `EDQUOT`, `EIO`...
    fn set_attr(&self, _request: &Request, _inode: &Inode, _set: &SetAttr) -> Result<(), Errno> {
        Ok(())
    }

    /// The attributes of `inode` as they are. Asked when somebody wants to see them after [`Inode::doubt`] said that those which are
    /// known may be old: by file systems that do not leave them to the VFS.
    ///
    /// # Errors
    /// `ESTALE` if the inode is no longer there, `EIO`...
    fn attributes(&self, _request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        Ok(inode.attr())
    }

    /// Whether it is told of files that are opened and released. Asked once.
    fn wants_opens(&self) -> bool {
        false
    }

    /// Is told, if [`FileSystem::wants_opens`], that a regular file is opened, for reading or writing as `flags` say. Each call that succeeds is followed by one of
    /// [`FileSystem::release`].
    ///
    /// # Errors
    /// `EACCES`, `EMFILE`, `ETXTBSY`, `EIO`...
    fn open(&self, _request: &Request, _inode: &Inode, _flags: OpenFlags) -> Result<(), Errno> {
        Ok(())
    }

    /// An open file was closed, which had been opened with `flags`.
    fn release(&self, _inode: &Inode, _flags: OpenFlags) {}

    /// A file of the host that holds the contents of `inode`, which is open with `flags`, byte for byte: a kernel may read and
    /// write there without asking. `None` if there is none.
    fn backing(&self, _inode: &Inode, _flags: OpenFlags) -> Option<Arc<OwnedFd>> {
        None
    }

    /// Reads into `buf` from `offset` on; 0 at and after the end.
    ///
    /// # Errors
    /// `EIO`...
    fn read_at(&self, _inode: &Inode, _offset: u64, _buf: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// Writes `data` at `offset`; past the end leaves a hole that reads as zeros. May write less than all.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EFBIG`, `EIO`...
    fn write_at(&self, _request: &Request, _inode: &Inode, _offset: u64, _data: &[u8]) -> Result<Written, Errno> {
        Err(Errno::EINVAL)
    }

    /// Cuts the contents to `len` bytes, or lets a hole follow them; gives the storage taken then, in units of 512 bytes.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EIO`...
    fn set_len(&self, _request: &Request, _inode: &Inode, _len: u64) -> Result<u64, Errno> {
        Err(Errno::EINVAL)
    }

    /// Changes the storage of `len` bytes from `offset` on; gives the storage taken then, in units of 512 bytes. The length of the
    /// file is the VFS's to change; `keep_size` says that it will not, though the range goes beyond.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for what it cannot do; `ENOSPC`, `EDQUOT`...
    fn allocate(
        &self,
        _request: &Request,
        _inode: &Inode,
        _how: Allocate,
        _keep_size: bool,
        _offset: u64,
        _len: u64,
    ) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// The first offset from `offset` (below the file's length) on that is data or a hole. The default knows no holes.
    ///
    /// # Errors
    /// `ENXIO` if there is no more data.
    fn seek(&self, inode: &Inode, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        match what {
            SeekFor::Data => Ok(offset),
            SeekFor::Hole => Ok(inode.size()),
        }
    }

    /// Brings what was written to where it outlives the machine: `fsync(2)`, `fdatasync(2)`.
    ///
    /// # Errors
    /// `EIO`...
    fn sync(&self, _inode: &Inode, _data_only: bool) -> Result<(), Errno> {
        Ok(())
    }

    /// [`FileSystem::sync`] for all: `syncfs(2)`.
    ///
    /// # Errors
    /// `EIO`...
    fn sync_all(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// The value of an extended attribute, whose whole name (`user.x`) is `name`.
    ///
    /// # Errors
    /// `ENODATA` if there is none; `EOPNOTSUPP` if there are none of its kind.
    fn get_xattr(&self, _inode: &Inode, _name: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` says; `ENOSPC`, `EDQUOT`; `EOPNOTSUPP`.
    fn set_xattr(
        &self,
        _request: &Request,
        _inode: &Inode,
        _name: &[u8],
        _value: &[u8],
        _how: SetXattr,
    ) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Takes an extended attribute away.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn remove_xattr(&self, _request: &Request, _inode: &Inode, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// The names of all extended attributes.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has none at all.
    fn list_xattrs(&self, _inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// What it has and has left.
    ///
    /// # Errors
    /// `ENOSYS` if it cannot say.
    fn statfs(&self) -> Result<StatFs, Errno> {
        Err(Errno::ENOSYS)
    }

    /// The last use of `inode` in the cache ended; if it has no links left either, its storage can go. The inode's
    /// [data](Inode::data) is dropped after this.
    fn evict(&self, _inode: &Inode) {}
}
