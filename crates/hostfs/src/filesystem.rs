//! The face to the VFS: each call handed to the file where it is done.
//!
//! As [`vfs::FileSystem`]; own code.

use crate::HostFs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vfs::{
    Allocate, Attr, DirEntry, Errno, FileSystem, Inode, Invalidator, NewInode, OpenFlags, RenameFlags, Request,
    SeekFor, SetAttr, SetXattr, StatFs, Valid, Written,
};

impl FileSystem for HostFs {
    fn root(&self) -> NewInode {
        self.core.root_inode()
    }

    fn type_name(&self) -> &str {
        "host"
    }

    fn mounted(&self, invalidator: Invalidator) {
        let _ = self.core.invalidator.set(invalidator);
    }

    fn caches_listings(&self) -> bool {
        self.core.caches_listings()
    }

    fn default_valid(&self) -> Valid {
        self.core.default_valid()
    }

    fn lookup(&self, _request: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        self.core.lookup(dir, name)
    }

    fn read_link(&self, _request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.core.read_link(inode)
    }

    fn read_dir(&self, dir: &Inode, after: u64, emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        self.core.read_dir(dir, after, emit)
    }

    fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        self.core.create(request, dir, name, attr, link_body)
    }

    fn create_unnamed(&self, request: &Request, dir: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        self.core.create_unnamed(request, dir, attr)
    }

    fn link(&self, _request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.core.link(dir, name, inode)
    }

    fn unlink(&self, _request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.core.unlink(dir, name, inode)
    }

    fn rename(
        &self,
        _request: &Request,
        from: (&Inode, &[u8]),
        to: (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.core.rename(from, to, inode, target, flags)
    }

    fn set_attr(&self, _request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.core.set_attr(inode, set)
    }

    fn attributes(&self, _request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.core.attributes(inode)
    }

    fn wants_opens(&self) -> bool {
        true
    }

    fn open(&self, _request: &Request, inode: &Inode, flags: OpenFlags) -> Result<(), Errno> {
        self.core.open(inode, flags)
    }

    fn release(&self, inode: &Inode, _flags: OpenFlags) {
        self.core.release(inode);
    }

    fn backing(&self, inode: &Inode, flags: OpenFlags) -> Option<Arc<OwnedFd>> {
        self.core.backing(inode, flags)
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.core.read_at(inode, offset, buf)
    }

    fn write_at(&self, _request: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        self.core.write_at(inode, offset, data)
    }

    fn set_len(&self, _request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        self.core.set_len(inode, len)
    }

    fn allocate(
        &self,
        _request: &Request,
        inode: &Inode,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.core.allocate(inode, how, keep_size, offset, len)
    }

    fn seek(&self, inode: &Inode, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        self.core.seek(inode, offset, what)
    }

    fn sync(&self, inode: &Inode, data_only: bool) -> Result<(), Errno> {
        self.core.sync(inode, data_only)
    }

    fn sync_all(&self) -> Result<(), Errno> {
        self.core.sync_all()
    }

    fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.core.get_xattr(inode, name)
    }

    fn set_xattr(
        &self,
        _request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.core.set_xattr(inode, name, value, how)
    }

    fn remove_xattr(&self, _request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.core.remove_xattr(inode, name)
    }

    fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.core.list_xattrs(inode)
    }

    fn statfs(&self) -> Result<StatFs, Errno> {
        self.core.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.core.evict(inode);
    }
}
