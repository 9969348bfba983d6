//! Room 4, `fs`: the trait of file systems.
//!
//! # What is in it
//! Here: [`FileSystem`]. [`traits`]: its constant properties; [`arguments`], [`request`],
//! [`new_node`], [`next_names`], [`opened`], [`after`], [`file_id`]: arguments and results of its
//! methods; [`invalidator`]: the handle by which it reports changes behind the caches; [`layer`]:
//! file systems around file systems.
//!
//! Imports `base`, `notify`, `record_lock`, `slots`.
//!
//! # What it is
//! The trait is inode-based, synchronous and uses bytes for names. A file system never sees a
//! dentry: directories and files are [`Inode`]s. The VFS checks permissions, limits, types and
//! existence, and keeps attributes (links, times, sizes of directories) by the rules of POSIX
//! before and after each call. The file system keeps the rest: contents, extended attributes, and
//! the names unless it leaves them in the cache.
//!
//! # How it is locked
//! Calls that change a directory come with that directory's lock held, or the lock of the names
//! ([`CachedNames::changes_in_parallel`]). So they may block but must not call back into the VFS.
//! With [`OwnNames::remote`] they come without a lock, and at most one at a time for each name.
//! Calls that change a file's contents come with the file's data lock held. [`FileSystem::lookup`]
//! comes without a lock from a walk: lookups of different names of one directory run in parallel,
//! also with changes of that directory. Its answer is discarded if the directory changed meanwhile.
//! (An operation that changes the name sends the lookup under the directory's lock.)
//! `docs/semantics.md` has a table of all methods.
//!
//! No call comes inside a read section of RCU, so a call that blocks delays only the threads that
//! wait for it (debug builds check it at each call). The exception must not block: [`NameRules`].
//!
//! # Where it comes from
//! Linux's `inode_operations`, `dentry_operations` (`d_revalidate`, `d_hash`, `d_compare`),
//! `file_operations` and `super_operations`; the validity of answers is FUSE's `entry_timeout`.

mod after;
mod arguments;
mod file_id;
pub(crate) mod invalidator;
pub(crate) mod layer;
mod new_node;
mod next_names;
mod opened;
mod request;
mod traits;

pub use crate::base::valid::Valid;
pub use after::After;
pub(crate) use after::Returned;
pub use arguments::{Allocate, Copying, DirEntry, Listed, NewInode, Rename, SeekFor, SetXattr, StatFs, Want, Written};
pub use file_id::FileId;
pub(crate) use new_node::InitExtra;
pub use new_node::{Labels, NewNode};
pub use next_names::NextNames;
pub use opened::{Open, OpenState, Opened, Position};
pub use request::Request;
pub use traits::{Attributes, CachedNames, FsTraits, Modes, NameRules, NameStore, Opens, OwnNames};

use crate::base::attr::{Attr, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::slots::inode::Inode;
use invalidator::Invalidator;

/// A file system. Every method except [`FileSystem::root`] has a default: it fails with `ENOSYS` or a similar
/// error, or fits a file system without changes behind the cache.
pub trait FileSystem: Send + Sync + 'static {
    /// Returns the root directory.
    fn root(&self) -> NewInode;

    /// Constant properties of the file system. Called once, when it is mounted.
    fn traits(&self) -> FsTraits {
        FsTraits::default()
    }

    /// Receives the `Invalidator`, by which it reports changes behind the caches. Called once, when it is
    /// first mounted.
    fn mounted(&self, _invalidator: Invalidator) {}

    /// Finds `name` in `dir`. The VFS may cache an `ENOENT`.
    ///
    /// `next` has the names that the walk needs after this name. A file system that can resolve
    /// several names in one call, for instance over a network, puts the further answers into
    /// `next`; other file systems ignore it.
    ///
    /// # Errors
    /// `ENOENT`, or errors of the storage.
    fn lookup(
        &self,
        _request: &Request,
        _dir: &Inode,
        _name: &[u8],
        _next: &mut NextNames<'_>,
    ) -> Result<NewInode, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Looks up several names, each in its directory, by one call if the file system can. Calls `found` with the place of a name in
    /// `wanted` and with the answer of [`FileSystem::lookup`]; a name without an answer is looked up. The VFS calls it for names that the
    /// cache does not have, of paths that came together: [`Context::attr_many`](crate::Context::attr_many).
    fn lookup_many(
        &self,
        request: &Request,
        wanted: &[(&Inode, &[u8])],
        found: &mut dyn FnMut(usize, Result<NewInode, Errno>),
    ) {
        for (place, (dir, name)) in wanted.iter().enumerate() {
            found(place, self.lookup(request, dir, name, &mut NextNames::none()));
        }
    }

    /// Revalidates `name` in `dir` after its time of validity: returns the current state of `inode`, if the
    /// name still leads to it. With `ENOENT` or another node the VFS looks the name up again. The default
    /// calls [`FileSystem::lookup`].
    ///
    /// # Errors
    /// As for [`FileSystem::lookup`].
    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], _inode: &Inode) -> Result<NewInode, Errno> {
        self.lookup(request, dir, name, &mut NextNames::none())
    }

    /// Returns the id of `inode`, which stays valid across restarts. `None`: its file system has no ids, or this file has none.
    ///
    /// With [`NameStore::Cache`], a file system with ids must not use an inode number ([`Attr::ino`]) again.
    fn id(&self, _inode: &Inode) -> Option<FileId> {
        None
    }

    /// Returns the file with this id, as [`FileSystem::lookup`] would return it. Ids come from
    /// outside, so any bytes are possible.
    ///
    /// With [`NameStore::Cache`] the VFS finds the inode in the cache, by the node; it ignores the rest of the answer, and a
    /// node that is not there is `ESTALE`.
    ///
    /// # Errors
    /// `ESTALE`: the file was removed, was never here, or is outside of the tree that the file
    /// system shows; `EOPNOTSUPP` without ids.
    fn by_id(&self, _request: &Request, _id: &FileId) -> Result<NewInode, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the id of the directory that contains the file with this id, and the file's name in
    /// that directory; any name, if the file has several. The VFS calls this to connect a directory
    /// that [`FileSystem::by_id`] found with the tree, but never for the root, and not with
    /// [`NameStore::Cache`].
    ///
    /// # Errors
    /// `ESTALE` as for [`FileSystem::by_id`]; `EOPNOTSUPP` if the file system cannot tell, as it may for files other than
    /// directories.
    fn parent(&self, _request: &Request, _id: &FileId) -> Result<(FileId, Box<[u8]>), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the body of a symbolic link that `lookup` returned without one. Called once for each inode.
    ///
    /// # Errors
    /// `EIO`...
    fn read_link(&self, _request: &Request, _inode: &Inode) -> Result<Box<[u8]>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Lists the open directory `dir` after the entry with the cookie `after` (0: from the start, as it is now): calls `emit`
    /// with each entry until `emit` returns `false` or the directory ends. Cookies are above 0 and stay with their entries.
    /// Without `.` and `..`. Not called if names are in the cache.
    ///
    /// If `want` has attributes, the caller is about to use the attributes of all entries: an entry
    /// that comes with its inode ([`Listed::inode`]) is not looked up afterwards.
    ///
    /// # Errors
    /// `EIO`...
    fn read_dir(
        &self,
        _request: &Request,
        _dir: &Open<'_>,
        _after: u64,
        _want: Want,
        _emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    /// Makes the file `new` with the name `name` in `dir`; without a name, a regular file on the file system of `dir`
    /// (`O_TMPFILE`). Fills in inode number and storage. Returns the node, the file system's number of the inode.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EROFS`, `EIO`...; `EPERM` or `EOPNOTSUPP` if the file system does not
    /// support the type; `EEXIST` if the directory has the name after all; `EOPNOTSUPP` if the file
    /// system does not support files without a name.
    fn create(
        &self,
        _request: &Request,
        _dir: &Inode,
        name: Option<&[u8]>,
        _new: &mut NewNode<'_>,
    ) -> Result<u64, Errno> {
        Err(if name.is_some() { Errno::EPERM } else { Errno::EOPNOTSUPP })
    }

    /// Creates `name` in `dir` as a further name of `inode`. Returns attributes of both, if it has them.
    ///
    /// # Errors
    /// `EPERM` or `EOPNOTSUPP` if it does not support hard links; `EMLINK`, `ENOSPC`, `EDQUOT`...
    fn link(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<After, Errno> {
        Err(Errno::EPERM)
    }

    /// Removes `name` of `inode` from `dir`. A removed directory has no entries in the cache.
    /// Returns attributes of both, if it has them.
    ///
    /// # Errors
    /// `EROFS`, `ENOTEMPTY`...
    fn unlink(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<After, Errno> {
        Err(Errno::EPERM)
    }

    /// Moves a file from one name to another, or exchanges two. Returns attributes of files and directories, if it has them.
    ///
    /// # Errors
    /// `EROFS`, `ENOTEMPTY`, `EXDEV`...; `EINVAL` for flags that it does not support.
    fn rename(&self, _request: &Request, _rename: &Rename<'_>) -> Result<After, Errno> {
        Err(Errno::EPERM)
    }

    /// Changes attributes. After the call the VFS updates its copy, or keeps the attributes that
    /// the call returns. [`FileSystem::set_len`] changes the length.
    ///
    /// # Errors
    /// `EROFS`, `EDQUOT`, `EIO`...
    fn set_attr(&self, _request: &Request, _inode: &Inode, _set: &SetAttr) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    /// Returns the current attributes of `inode`. Called before stale attributes are shown
    /// ([`Inode::mark_stale`]); only file systems that do not leave attributes to the VFS need it.
    ///
    /// # Errors
    /// `ESTALE` if the inode no longer exists, `EIO`...
    fn attributes(&self, _request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        Ok(inode.attr())
    }

    /// Returns when `inode` was made, in nanoseconds since the epoch: `stx_btime` of `statx(2)`. `None`:
    /// that is not kept. The default is the cache's value: [`Inode::birth`].
    ///
    /// # Errors
    /// As for [`FileSystem::attributes`].
    fn birth(&self, _request: &Request, inode: &Inode) -> Result<Option<i64>, Errno> {
        Ok(inode.birth())
    }

    /// Opens a regular file, for reading or writing by `flags`, or a directory, to list it. Called
    /// only with [`Opens::Yes`]. The VFS passes the returned state to each later call about this
    /// open file ([`Open`]). After each success the VFS calls [`FileSystem::release`] once.
    ///
    /// # Errors
    /// `EACCES`, `EMFILE`, `ETXTBSY`, `EIO`...; `ESTALE` if the inode no longer exists.
    fn open(&self, _request: &Request, _inode: &Inode, _flags: OpenFlags) -> Result<Opened, Errno> {
        Ok(Opened::default())
    }

    /// Ends an open: its last user closed it. No other call about it runs any more.
    fn release(&self, _file: Open<'_>) {}

    /// Reads into `buf` from `offset` on; 0 at and after the end.
    ///
    /// # Errors
    /// `EIO`...
    fn read(&self, _request: &Request, _file: &Open<'_>, _offset: u64, _buf: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// Writes `data`. A gap after the end becomes a hole that reads as zeros. May write less than
    /// all. The VFS calls no other change of the contents meanwhile. With [`Position::End`] the
    /// data are put at the current end of the file; a file system that cannot append by itself
    /// takes [`Position::offset`].
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EFBIG`, `EIO`...
    fn write(&self, _request: &Request, _file: &Open<'_>, _at: Position, _data: &[u8]) -> Result<Written, Errno> {
        Err(Errno::EINVAL)
    }

    /// Copies `len` bytes from the offset in the first file to the offset in the second file,
    /// without reading and writing them. By the length that the VFS has, the first file has all
    /// these bytes. If both files are one file, the ranges do not overlap. Returns the same as
    /// [`FileSystem::write`].
    ///
    /// With [`Copying::Any`] the file system may copy fewer bytes. [`Copying::Share`] comes only
    /// with [`FsTraits::reflinks`], for ranges that begin at a block and end at a block, or end at
    /// the end of the first file and not before the end of the second file. During the call the VFS
    /// changes the contents of neither file.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it cannot for these files; after [`Copying::Any`] the VFS then reads and
    /// writes. Else the errors of [`FileSystem::write`].
    fn copy_range(
        &self,
        _request: &Request,
        _from: (&Open<'_>, u64),
        _to: (&Open<'_>, u64),
        _len: u64,
        _how: Copying,
    ) -> Result<Written, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Truncates the contents to `len` bytes, or extends them by a hole; returns the storage in units of 512 bytes, and attributes.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EDQUOT`, `EIO`...
    fn set_len(&self, _request: &Request, _inode: &Inode, _len: u64) -> Result<(u64, After), Errno> {
        Err(Errno::EINVAL)
    }

    /// Changes the storage of `len` bytes from `offset` on; returns the storage in units of 512
    /// bytes. The VFS changes the length of the file, except with `keep_size`, even if the range
    /// ends beyond it.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a mode that it does not support; `ENOSPC`, `EDQUOT`...
    fn allocate(
        &self,
        _request: &Request,
        _file: &Open<'_>,
        _how: Allocate,
        _keep_size: bool,
        _offset: u64,
        _len: u64,
    ) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the first offset from `offset` (below the file's length) on that is data or a hole.
    /// The default has no holes.
    ///
    /// # Errors
    /// `ENXIO` if no data follows.
    fn seek(&self, _request: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        match what {
            SeekFor::Data => Ok(offset),
            SeekFor::Hole => Ok(file.inode.size()),
        }
    }

    /// Writes all data of the file to permanent storage: `fsync(2)`, `fdatasync(2)`.
    ///
    /// # Errors
    /// `EIO`...
    fn sync(&self, _request: &Request, _file: &Open<'_>, _data_only: bool) -> Result<(), Errno> {
        Ok(())
    }

    /// Called when a user closes a descriptor of a file that is open for writing, if [`Opens::Yes`]
    /// requests it. Writes the data that the file system writes at that moment, and returns the
    /// error of `close(2)`. The file stays open until [`FileSystem::release`].
    ///
    /// # Errors
    /// `EIO`, `ENOSPC`, `EDQUOT`...
    fn flush(&self, _request: &Request, _file: &Open<'_>) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns the value of an extended attribute, whose whole name (`user.x`) is `name`.
    ///
    /// # Errors
    /// `ENODATA` if it does not exist; `EOPNOTSUPP` if its kind is not supported.
    fn get_xattr(&self, _request: &Request, _inode: &Inode, _name: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` by `how`; `ENOSPC`, `EDQUOT`; `EOPNOTSUPP`.
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

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn remove_xattr(&self, _request: &Request, _inode: &Inode, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the names of all extended attributes.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has no extended attributes.
    fn list_xattrs(&self, _request: &Request, _inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the flags of a regular file or directory: `ioctl(2)` with `FS_IOC_GETFLAGS`.
    ///
    /// # Errors
    /// `ENOTTY` if it has no such flags.
    fn inode_flags(&self, _request: &Request, _inode: &Inode) -> Result<InodeFlags, Errno> {
        Err(Errno::ENOTTY)
    }

    /// Sets all of them: `FS_IOC_SETFLAGS`. The file system itself obeys them: the VFS does not.
    ///
    /// # Errors
    /// `ENOTTY` if it has no such flags, `EOPNOTSUPP` if it does not have one of these; `EPERM`, `EROFS`...
    fn set_inode_flags(&self, _request: &Request, _inode: &Inode, _flags: InodeFlags) -> Result<(), Errno> {
        Err(Errno::ENOTTY)
    }

    /// Total and free storage, as far as it concerns `inode`, a file of this file system: a directory may have a quota.
    ///
    /// # Errors
    /// `ENOSYS` if it has no such figures.
    fn statfs(&self, _request: &Request, _inode: &Inode) -> Result<StatFs, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Called after the last use of `inode` in the cache. If it has no links either, its storage can be
    /// freed. The inode's [data](Inode::data) is dropped after this.
    ///
    /// With a [`SharedBudget`](crate::SharedBudget), the caller may have locked directories of another file system. So this must not
    /// wait for a call of another thread.
    ///
    /// The cache catches a panic here and counts it ([`Vfs::callback_panics`](crate::Vfs::callback_panics)).
    fn evict(&self, _inode: &Inode) {}
}
