//! A file system in memory: the reference for implementors of [`vfs::FileSystem`].
//!
//! # What it is
//! Names live in the VFS's dentry cache and attributes in its inodes, as in Linux's ramfs; this crate holds contents (see
//! `contents`) and gives out inode numbers. Directories report 20 bytes an entry, as tmpfs does.
//!
//! # What it is not
//! Nothing survives the process. There is no limit on bytes or inodes yet but the machine's memory.
//!
//! # How it is locked
//! Each file's contents have a mutex of their own. Inode numbers come from per-CPU ranges, so that threads which make files share
//! no line for it.

#![forbid(unsafe_code)]

mod contents;

use contents::Contents;
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use vfs::{Attr, Errno, FileSystem, Inode, NewInode, RenameFlags, Request, S_IFDIR, Written};

/// Inode numbers that one CPU index takes at a time.
const INO_BATCH: u64 = 1024;

/// What each entry adds to the length of its directory: tmpfs's `BOGO_DIRENT_SIZE`.
const ENTRY_SIZE: u64 = 20;

/// The length of an empty directory: tmpfs counts `.` and `..`.
const EMPTY_SIZE: u64 = 2 * ENTRY_SIZE;

/// See the [crate documentation](crate).
#[derive(Debug)]
pub struct RamFs {
    root: Attr,
    /// The first inode number that no range holds.
    next_range: AtomicU64,
    own_range: PerCpu<Range>,
}

/// The next inode number of one CPU index; at a multiple of [`INO_BATCH`] the range is used up.
#[derive(Debug)]
#[repr(align(128))]
struct Range(AtomicU64);

impl RamFs {
    /// An empty file system whose root directory belongs to uid 0 and has mode 0755.
    #[must_use]
    pub fn new() -> Self {
        Self::with_root(0o755, 0, 0)
    }

    /// An empty file system whose root directory has these permission bits, owner and group.
    #[must_use]
    pub fn with_root(mode: u32, uid: u32, gid: u32) -> Self {
        let now = prim::clock::now_ns();
        let mode = S_IFDIR | mode & 0o7777;
        Self {
            root: Attr {
                ino: 1,
                mode,
                nlink: 2,
                size: EMPTY_SIZE,
                uid,
                gid,
                atime: now,
                mtime: now,
                ctime: now,
                ..Attr::default()
            },
            next_range: AtomicU64::new(INO_BATCH),
            own_range: PerCpu::new(|| Range(AtomicU64::new(0))),
        }
    }

    /// A number that no inode of this file system has had.
    fn next_ino(&self) -> u64 {
        let own = &self.own_range.this().0;
        // Relaxed: the range is this thread's own; the shared counter only has to give each range once.
        let mut ino = own.load(Relaxed);
        if ino.is_multiple_of(INO_BATCH) {
            ino = self.next_range.fetch_add(INO_BATCH, Relaxed);
        }
        own.store(ino + 1, Relaxed);
        ino
    }
}

impl Default for RamFs {
    fn default() -> Self {
        Self::new()
    }
}

impl FileSystem for RamFs {
    fn root(&self) -> NewInode {
        NewInode { node: self.root.ino, attr: self.root, ..Default::default() }
    }

    fn names_in_cache(&self) -> bool {
        true
    }

    fn entry_size(&self) -> u64 {
        ENTRY_SIZE
    }

    fn create(
        &self,
        _request: &Request,
        _dir: &Inode,
        _name: &[u8],
        attr: &mut Attr,
        _link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        attr.ino = self.next_ino();
        if attr.is_dir() {
            attr.size = EMPTY_SIZE;
        }
        Ok(attr.ino)
    }

    fn link(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<(), Errno> {
        Ok(())
    }

    fn unlink(&self, _request: &Request, _dir: &Inode, _name: &[u8], _inode: &Inode) -> Result<(), Errno> {
        Ok(())
    }

    fn rename(
        &self,
        _request: &Request,
        _from: (&Inode, &[u8]),
        _to: (&Inode, &[u8]),
        _inode: &Inode,
        _target: Option<&Inode>,
        _flags: RenameFlags,
    ) -> Result<(), Errno> {
        Ok(())
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let left = usize::try_from(inode.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left);
        let buf = &mut buf[..len];
        match inode.data::<Contents>() {
            Some(contents) => contents.read(offset, buf),
            None => buf.fill(0),
        }
        Ok(len)
    }

    fn write_at(&self, _request: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let contents = inode.data_or(Contents::default).ok_or(Errno::EIO)?;
        Ok(Written { len: data.len(), blocks: contents.write(offset, data) })
    }

    fn set_len(&self, _request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        Ok(inode.data::<Contents>().map_or(0, |contents| contents.cut(len)))
    }
}
