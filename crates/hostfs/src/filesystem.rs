//! [`HostFs`] and its implementation of [`vfs::FileSystem`]: each method forwards to the module that does the work.
//!
//! Own code.

use crate::events;
use crate::handle::{HostHandle, HostStats};
use crate::options::HostOptions;
use crate::shared::Shared;
use std::path::Path;
use std::sync::Arc;
use vfs::{
    After, Allocate, Attr, Attributes, Copying, Errno, FileId, FileSystem, FsTraits, Inode, InodeFlags, Invalidator,
    Listed, Modes, NameStore, NewInode, NewNode, NextNames, Open, OpenFlags, Opened, Opens, OwnNames, Position, Rename,
    Request, SeekFor, SetAttr, SetXattr, StatFs, Want, Written,
};

/// A host directory as a file system; see the [crate documentation](crate).
pub struct HostFs {
    pub(crate) shared: Arc<Shared>,
}

impl HostFs {
    /// Shows the directory at `path`. The path is resolved once: a directory that gets this path later is not shown.
    ///
    /// # Errors
    /// Those of `open(2)` on a directory: `ENOENT`, `ENOTDIR`, `EACCES`...; with [`HostOptions::watch`], `EMFILE` if
    /// the user has too many `inotify(7)` instances.
    pub fn new(path: impl AsRef<Path>, options: &HostOptions) -> Result<Self, std::io::Error> {
        let shared = Arc::new(Shared::new(path.as_ref(), options)?);
        events::start(&shared)?;
        Ok(Self { shared })
    }

    /// The counts. Takes the lock of each table for a moment: for tests and reports.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        self.handle().stats()
    }

    /// The canonical path of the directory that is shown, from when it was resolved.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.shared.source
    }

    /// Excludes the device `dev` (`st_dev`), that of a mount through which this file system is shown: names on it fail with
    /// `ELOOP` from now on, and nothing on it is opened.
    pub fn exclude_dev(&self, dev: u64) {
        self.shared.exclude(dev);
    }

    /// A handle for use after this file system was given to a tree.
    #[must_use]
    pub fn handle(&self) -> HostHandle {
        HostHandle { shared: self.shared.clone() }
    }
}

impl Drop for HostFs {
    fn drop(&mut self) {
        if let Some(watches) = &self.shared.watches {
            watches.stop();
        }
    }
}

impl core::fmt::Debug for HostFs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostFs").field("source", &self.shared.source).finish_non_exhaustive()
    }
}

impl FileSystem for HostFs {
    fn root(&self) -> NewInode {
        self.shared.root_inode()
    }

    fn mounted(&self, invalidator: Invalidator) {
        let _ = self.shared.invalidator.set(invalidator);
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            type_name: "host".into(),
            names: NameStore::FileSystem(OwnNames {
                keeps_listings: self.shared.keeps_listings(),
                valid: self.shared.default_valid(),
                attributes: Attributes::FileSystem { with_changes: false },
                modes: Modes::FileSystem { applies_acls: self.shared.applies_acls() },
                ..OwnNames::default()
            }),
            opens: Opens::Yes { flush: self.shared.wants_flushes() },
            acls: true,
            // The host checks where blocks begin, and whether it has reflinks.
            reflinks: 1,
            ..FsTraits::default()
        }
    }

    fn lookup(&self, _request: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.shared.lookup(dir, name)
    }

    fn id(&self, inode: &Inode) -> Option<FileId> {
        self.shared.id(inode)
    }

    fn by_id(&self, _: &Request, id: &FileId) -> Result<NewInode, Errno> {
        self.shared.by_id(id)
    }

    fn parent(&self, _: &Request, id: &FileId) -> Result<(FileId, Box<[u8]>), Errno> {
        self.shared.parent(id)
    }

    fn read_link(&self, _request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.shared.read_link(inode)
    }

    fn read_dir(
        &self,
        _: &Request,
        dir: &Open<'_>,
        after: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        self.shared.read_dir(dir, after, emit)
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        match name {
            Some(name) => self.shared.create(request, dir, name, &mut new.attr, new.link_body),
            None => self.shared.create_unnamed(request, dir, &mut new.attr),
        }
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        self.shared.link(request, dir, name, inode).map(|()| After::NONE)
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        self.shared.unlink(request, dir, name, inode).map(|()| After::NONE)
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        self.shared.rename(request, rename).map(|()| After::NONE)
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        self.shared.set_attr(request, inode, set).map(|()| After::NONE)
    }

    fn attributes(&self, _request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.shared.attributes(inode)
    }

    fn birth(&self, _: &Request, inode: &Inode) -> Result<Option<i64>, Errno> {
        self.shared.birth(inode)
    }

    fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        self.shared.open(request, inode, flags)
    }

    fn release(&self, file: Open<'_>) {
        self.shared.release(&file);
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.shared.read(file, offset, buf)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        match at {
            Position::At(offset) => self.shared.write_at(request, file, offset, data),
            Position::End(end) => self.shared.append(request, file, end, data),
        }
    }

    fn copy_range(
        &self,
        request: &Request,
        from: (&Open<'_>, u64),
        to: (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        self.shared.copy_range(request, from, to, len, how)
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        self.shared.set_len(request, inode, len).map(|blocks| (blocks, After::NONE))
    }

    fn allocate(
        &self,
        request: &Request,
        file: &Open<'_>,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.shared.allocate(request, file, how, keep_size, offset, len)
    }

    fn seek(&self, _: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        self.shared.seek(file, offset, what)
    }

    fn sync(&self, _: &Request, file: &Open<'_>, data_only: bool) -> Result<(), Errno> {
        self.shared.sync(file, data_only)
    }

    fn flush(&self, _: &Request, file: &Open<'_>) -> Result<(), Errno> {
        self.shared.flush(file)
    }

    fn get_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.shared.get_xattr(inode, name)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.shared.set_xattr(request, inode, name, value, how)
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.shared.remove_xattr(request, inode, name)
    }

    fn list_xattrs(&self, _: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.shared.list_xattrs(inode)
    }

    fn inode_flags(&self, _: &Request, inode: &Inode) -> Result<InodeFlags, Errno> {
        self.shared.inode_flags(inode)
    }

    fn set_inode_flags(&self, request: &Request, inode: &Inode, flags: InodeFlags) -> Result<(), Errno> {
        self.shared.set_inode_flags(request, inode, flags)
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        self.shared.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.shared.evict(inode);
    }
}
