//! What a file system is to this crate.
//!
//! The trait is inode-based, synchronous and bytes-first. A file system never sees a dentry: it is told of directories and
//! files as [`Inode`]s, of names as bytes. The VFS checks permissions, limits, types and existence, and keeps attributes
//! (links, times, sizes of directories) by the rules of POSIX before and after it calls; the file system keeps what lies
//! behind: contents, and the names unless it leaves them in the cache.
//!
//! # How it is locked
//! Calls that change a directory come with that directory's lock held, so they may block but must not call back into the VFS.
//! Calls that change a file's contents come with the file's data lock held.
//!
//! # Limitations
//! A file system that keeps its own names (`names_in_cache` is false) must give every name an inode of its own: two
//! answers of `lookup` with one `node` are two inodes to the VFS.

use crate::attr::{Attr, SetAttr};
use crate::cred::Credentials;
use crate::errno::Errno;
use crate::file::DirEntry;
use crate::inode::Inode;

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// User of the caller. (Permissions have been checked; this is for records and quotas.)
    pub uid: u32,
    /// Group of the caller.
    pub gid: u32,
    /// The time of the request, nanoseconds since the epoch.
    pub now: i64,
}

impl Request {
    pub(crate) fn of(cred: &Credentials) -> Self {
        Self { uid: cred.uid, gid: cred.gid, now: prim::clock::now_ns() }
    }
}

/// An inode that the VFS has not seen before.
#[derive(Debug)]
pub struct NewInode {
    /// What the file system will know it by.
    pub node: u64,
    /// Its attributes.
    pub attr: Attr,
    /// A symbolic link's body.
    pub link_body: Option<Box<[u8]>>,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub len: usize,
    /// Storage that the file takes now, in units of 512 bytes.
    pub blocks: u64,
}

/// A file system. Every method but [`FileSystem::root`] has a default that refuses.
pub trait FileSystem: Send + Sync + 'static {
    /// The root directory.
    fn root(&self) -> NewInode;

    /// Whether all names live in the dentry cache (a RAM file system): the VFS then answers misses and listings by itself.
    fn names_in_cache(&self) -> bool {
        false
    }

    /// What each entry adds to the `st_size` of its directory.
    fn entry_size(&self) -> u64 {
        0
    }

    /// Finds `name` in `dir`. `ENOENT`: there is none, and the VFS may remember that until it creates the name itself.
    ///
    /// # Errors
    /// `ENOENT`, or whatever the storage answers.
    fn lookup(&self, _request: &Request, _dir: &Inode, _name: &[u8]) -> Result<NewInode, Errno> {
        Err(Errno::ENOSYS)
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
    /// `ENOSPC`, `EROFS`, `EIO`...; `EPERM` if it makes no such thing.
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

    /// Moves `inode` from one name to another, over `target` if there is one.
    ///
    /// # Errors
    /// `EROFS`, `ENOTEMPTY`, `EXDEV`...
    fn rename(
        &self,
        _request: &Request,
        _from: (&Inode, &[u8]),
        _to: (&Inode, &[u8]),
        _inode: &Inode,
        _target: Option<&Inode>,
    ) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Is told that attributes change, before they do. The length comes by [`FileSystem::set_len`].
    ///
    /// # Errors
    /// `EROFS`, `EIO`...
    fn set_attr(&self, _request: &Request, _inode: &Inode, _set: &SetAttr) -> Result<(), Errno> {
        Ok(())
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
    /// `ENOSPC`, `EFBIG`, `EIO`...
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

    /// The last use of `inode` in the cache ended; if it has no links left either, its storage can go. The inode's
    /// [data](Inode::data) is dropped after this.
    fn evict(&self, _inode: &Inode) {}
}
