//! A file system in memory that counts what was made and what was released, and hears when it is dropped.

use lightfoot::fs::{Attr, FileSystem, Inode, NewInode, RenameFlags, Request, SetAttr, StatFs, Written};
use lightfoot::{Errno, RamFs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What happened to inodes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    made: AtomicU64,
    evicted: AtomicU64,
}

impl Counts {
    pub(crate) fn made(&self) -> u64 {
        self.made.load(SeqCst)
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(SeqCst)
    }
}

/// See the module documentation.
pub(crate) struct CountedFs {
    inner: RamFs,
    counts: Arc<Counts>,
}

impl CountedFs {
    /// The second of it is shared with the file system for as long as that lives.
    pub(crate) fn new() -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        (Self { inner: RamFs::new(), counts: counts.clone() }, counts)
    }
}

impl FileSystem for CountedFs {
    fn root(&self) -> NewInode {
        self.inner.root()
    }

    fn type_name(&self) -> &str {
        "counted"
    }

    fn names_in_cache(&self) -> bool {
        true
    }

    fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        self.counts.made.fetch_add(1, SeqCst);
        self.inner.create(request, dir, name, attr, body)
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

    fn statfs(&self) -> Result<StatFs, Errno> {
        self.inner.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.counts.evicted.fetch_add(1, SeqCst);
        self.inner.evict(inode);
    }
}

/// A file system whose root is a file.
pub(crate) struct FileFs;

impl FileSystem for FileFs {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: lightfoot::fs::S_IFREG | 0o644, nlink: 1, size: 5, ..Attr::default() };
        NewInode { node: 0, attr, ..NewInode::default() }
    }

    fn read_at(&self, _: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let rest = b"alone".get(usize::try_from(offset).unwrap_or(5)..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}
