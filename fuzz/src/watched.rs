//! A RAM file system whose end is seen.

use ramfs::RamFs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vfs::{
    Allocate, Attr, Errno, FileSystem, Inode, NewInode, RenameFlags, Request, SeekFor, SetAttr, SetXattr, StatFs,
    Written,
};

/// How many file systems are there.
#[derive(Debug, Default)]
pub struct Alive {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Alive {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether at most `n` are left, now or soon: the last handle may be freed by the tree's reclaimer.
    pub fn falls_to(&self, n: usize) -> bool {
        let patience = Duration::from_secs(10);
        let waited = self.changed.wait_timeout_while(self.count(), patience, |count| *count > n);
        *waited.unwrap_or_else(PoisonError::into_inner).0 <= n
    }
}

/// See the [module](self). Counts itself in `alive` while it is there.
#[derive(Debug)]
pub struct Watched {
    inner: RamFs,
    alive: Arc<Alive>,
}

impl Watched {
    /// An empty one.
    #[must_use]
    pub fn new(alive: &Arc<Alive>) -> Self {
        *alive.count() += 1;
        Self { inner: RamFs::new(), alive: alive.clone() }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        *self.alive.count() -= 1;
        self.alive.changed.notify_all();
    }
}

impl FileSystem for Watched {
    fn root(&self) -> NewInode {
        self.inner.root()
    }

    fn names_in_cache(&self) -> bool {
        self.inner.names_in_cache()
    }

    fn entry_size(&self) -> u64 {
        self.inner.entry_size()
    }

    fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        self.inner.create(request, dir, name, attr, body)
    }

    fn create_unnamed(&self, request: &Request, dir: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        self.inner.create_unnamed(request, dir, attr)
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.inner.link(request, dir, name, inode)
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.inner.unlink(request, dir, name, inode)
    }

    fn rename(
        &self,
        request: &Request,
        from: (&Inode, &[u8]),
        to: (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.inner.rename(request, from, to, inode, target, flags)
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.inner.set_attr(request, inode, set)
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.inner.read_at(inode, offset, buf)
    }

    fn write_at(&self, request: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        self.inner.write_at(request, inode, offset, data)
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        self.inner.set_len(request, inode, len)
    }

    fn allocate(&self, request: &Request, inode: &Inode, how: Allocate, at: u64, len: u64) -> Result<u64, Errno> {
        self.inner.allocate(request, inode, how, at, len)
    }

    fn seek(&self, inode: &Inode, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        self.inner.seek(inode, offset, what)
    }

    fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.inner.get_xattr(inode, name)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.inner.set_xattr(request, inode, name, value, how)
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.inner.remove_xattr(request, inode, name)
    }

    fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.inner.list_xattrs(inode)
    }

    fn statfs(&self) -> Result<StatFs, Errno> {
        self.inner.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.inner.evict(inode);
    }
}
