//! [`HostFs`] and its implementation of [`vfs::FileSystem`]: each method forwards to the module that does the work.

use crate::events;
use crate::handle::HostHandle;
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
    /// As for `open(2)` on a directory: `ENOENT`, `ENOTDIR`, `EACCES`...; with
    /// [`HostOptions::watch`], `EMFILE` if the user has too many `inotify(7)` instances.
    pub fn new(path: impl AsRef<Path>, options: &HostOptions) -> Result<Self, std::io::Error> {
        let shared = Arc::new(Shared::new(path.as_ref(), options)?);
        events::start(&shared)?;
        Ok(Self { shared })
    }

    /// Returns a handle for use after this file system was given to a tree.
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

/// Declares methods that [`Shared`] has: first those that also need the request.
macro_rules! forwarded {
    ($(fn $name:ident($($arg:ident: $of:ty),*) -> $result:ty;)* without request:
     $(fn $plain:ident($($plain_arg:ident: $plain_of:ty),*) -> $plain_result:ty;)*) => {
        $(fn $name(&self, request: &Request, $($arg: $of),*) -> Result<$result, Errno> {
            self.shared.$name(request, $($arg),*)
        })*
        $(fn $plain(&self, _: &Request, $($plain_arg: $plain_of),*) -> Result<$plain_result, Errno> {
            self.shared.$plain($($plain_arg),*)
        })*
    };
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
            checks_callers: true,
            ..FsTraits::default()
        }
    }

    forwarded! {
        fn link(dir: &Inode, name: &[u8], inode: &Inode) -> After;
        fn unlink(dir: &Inode, name: &[u8], inode: &Inode) -> After;
        fn rename(rename: &Rename<'_>) -> After;
        fn set_attr(inode: &Inode, set: &SetAttr) -> After;
        fn open(inode: &Inode, flags: OpenFlags) -> Opened;
        fn write(file: &Open<'_>, at: Position, data: &[u8]) -> Written;
        fn copy_range(from: (&Open<'_>, u64), to: (&Open<'_>, u64), len: u64, how: Copying) -> Written;
        fn set_len(inode: &Inode, len: u64) -> (u64, After);
        fn allocate(file: &Open<'_>, how: Allocate, keep_size: bool, offset: u64, len: u64) -> u64;
        fn set_xattr(inode: &Inode, name: &[u8], value: &[u8], how: SetXattr) -> ();
        fn remove_xattr(inode: &Inode, name: &[u8]) -> ();
        fn set_inode_flags(inode: &Inode, flags: InodeFlags) -> ();

        without request:
        fn by_id(id: &FileId) -> NewInode;
        fn parent(id: &FileId) -> (FileId, Box<[u8]>);
        fn read_link(inode: &Inode) -> Box<[u8]>;
        fn attributes(inode: &Inode) -> Attr;
        fn birth(inode: &Inode) -> Option<i64>;
        fn read(file: &Open<'_>, offset: u64, buf: &mut [u8]) -> usize;
        fn seek(file: &Open<'_>, offset: u64, what: SeekFor) -> u64;
        fn sync(file: &Open<'_>, data_only: bool) -> ();
        fn flush(file: &Open<'_>) -> ();
        fn get_xattr(inode: &Inode, name: &[u8]) -> Box<[u8]>;
        fn list_xattrs(inode: &Inode) -> Vec<Box<[u8]>>;
        fn inode_flags(inode: &Inode) -> InodeFlags;
        fn statfs(inode: &Inode) -> StatFs;
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.shared.lookup(dir, name)
    }

    fn id(&self, inode: &Inode) -> Option<FileId> {
        self.shared.id(inode)
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

    fn release(&self, file: Open<'_>) {
        self.shared.release(&file);
    }

    fn evict(&self, inode: &Inode) {
        self.shared.evict(inode);
    }
}
