//! A file system in memory: the reference for implementors of [`vfs::FileSystem`].
//!
//! # What it is
//! Names live in the VFS's dentry cache and attributes in its inodes, as in Linux's ramfs; this crate holds contents
//! and extended attributes (`data`, over `contents` and `xattrs`), counts them against limits (`limits`), and gives
//! out inode numbers. A directory's length is 20 bytes for each entry, as on tmpfs.
//!
//! # What it is not
//! Persistent: nothing survives the process.
//!
//! # How it is locked
//! A `BiasedRwLock` for each file's data; no thread holds two of them. Inode numbers, bytes and
//! inodes come from per-CPU stocks, so that threads that make and fill files share no cache line
//! for these counts until little is left.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod contents;
mod data;
mod folding;
mod limits;
mod xattrs;

pub use limits::{RamLimits, UserLimits};

use contents::PAGE_BYTES;
use data::{Charge, Data};
use folding::Folding;
use limits::{Amount, Limits, QuotaHandle};
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use sync::{BiasedReaders, PagePool};
use vfs::{
    After, Allocate, Attr, CachedNames, Copying, Errno, FileId, FileSystem, FsTraits, Inode, InodeFlags, NameRules,
    NameStore, NewInode, NewNode, Open, Position, Rename, RenameFlags, Request, S_IFDIR, S_IFLNK, S_IFMT, SeekFor,
    SetAttr, SetXattr, StatFs, Written,
};

/// Inode numbers that one CPU index takes at a time.
const INO_BATCH: u64 = 1024;

/// The length that each entry adds to its directory: tmpfs's `BOGO_DIRENT_SIZE`.
const ENTRY_SIZE: u64 = 20;

/// The length of an empty directory: tmpfs counts `.` and `..`.
const EMPTY_SIZE: u64 = 2 * ENTRY_SIZE;

/// A symbolic link of this many bytes or more takes a page, as on tmpfs.
const LONG_LINK: u64 = 128;

/// Options of a new file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RamOptions {
    /// Permission bits of the root directory (07777).
    pub mode: u32,
    /// The owner of the root directory.
    pub uid: u32,
    /// The group of the root directory.
    pub gid: u32,
    /// The limits of all users together and of each user.
    pub limits: RamLimits,
    /// Whether names that differ only in case are the same name: names in UTF-8 are compared by the lower case of each
    /// character, others byte by byte.
    pub case_insensitive: bool,
}

impl Default for RamOptions {
    /// Mode 0755, uid and gid 0, [`RamLimits::default`], case-sensitive.
    fn default() -> Self {
        Self { mode: 0o755, uid: 0, gid: 0, limits: RamLimits::default(), case_insensitive: false }
    }
}

/// See the [crate documentation](crate).
#[derive(Debug)]
pub struct RamFs {
    /// Random bytes, with which the ids of files begin, so that they differ from the ids of another
    /// file system.
    instance: [u8; 16],
    root: Attr,
    limits: Limits,
    pool: PagePool,
    /// The reader slots of the locks of files' data.
    readers: BiasedReaders,
    case_insensitive: bool,
    /// The first inode number that is in no range yet.
    next_range: AtomicU64,
    own_range: PerCpu<InoRange>,
}

/// The next inode number of one CPU index; at a multiple of [`INO_BATCH`] the range is used up.
#[derive(Debug)]
#[repr(align(128))]
struct InoRange(AtomicU64);

impl RamFs {
    /// Returns an empty file system with the [default options](RamOptions).
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(&RamOptions::default())
    }

    /// Returns an empty file system whose root directory has these permission bits, owner and
    /// group.
    #[must_use]
    pub fn with_root(mode: u32, uid: u32, gid: u32) -> Self {
        Self::with_options(&RamOptions { mode, uid, gid, ..RamOptions::default() })
    }

    /// Returns an empty file system with these limits.
    #[must_use]
    pub fn with_limits(limits: RamLimits) -> Self {
        Self::with_options(&RamOptions { limits, ..RamOptions::default() })
    }

    /// Returns an empty file system. The root directory exists whatever the limits are.
    #[must_use]
    pub fn with_options(options: &RamOptions) -> Self {
        let &RamOptions { mode, uid, gid, case_insensitive, limits } = options;
        let now = prim::clock::now_ns();
        let inodes = limits.inodes.map(|inodes| inodes.max(1));
        let limits = Limits::new(&RamLimits { inodes, ..limits });
        let taken = limits.take(QuotaHandle { uid, privileged: true }, Amount { bytes: 0, inodes: 1 });
        debug_assert!(taken.is_ok(), "the limit is at least one inode");
        Self {
            instance: random_instance(),
            root: Attr {
                ino: 1,
                mode: S_IFDIR | mode & 0o7777,
                nlink: 2,
                size: EMPTY_SIZE,
                uid,
                gid,
                atime: now,
                mtime: now,
                ctime: now,
                ..Attr::default()
            },
            limits,
            pool: PagePool::new(),
            readers: BiasedReaders::new(),
            case_insensitive,
            next_range: AtomicU64::new(INO_BATCH),
            own_range: PerCpu::sized(|| InoRange(AtomicU64::new(0)), true),
        }
    }

    /// Returns a number that no inode of this file system has had before.
    #[inline(always)]
    fn next_ino(&self) -> u64 {
        let own = &self.own_range.this().0;
        // Relaxed: only this thread uses the range; the shared counter must only give each range
        // once.
        let mut ino = own.load(Relaxed);
        if ino.is_multiple_of(INO_BATCH) {
            ino = self.next_range.fetch_add(INO_BATCH, Relaxed);
        }
        own.store(ino + 1, Relaxed);
        ino
    }

    /// Charges for an inode with these attributes, and fills in its number, storage and length.
    #[inline(always)]
    fn make(&self, request: &Request, attr: &mut Attr) -> Result<u64, Errno> {
        let amount = without_data(attr.mode, attr.size);
        self.limits.take(QuotaHandle { uid: attr.uid, privileged: request.privileged }, amount)?;
        attr.ino = self.next_ino();
        attr.blocks = amount.bytes / 512;
        if attr.is_dir() {
            attr.size = EMPTY_SIZE;
        }
        Ok(attr.ino)
    }

    /// Stores the extended attributes of a new file, which is charged; without room for them returns that charge.
    #[cold]
    fn begin_xattrs(&self, request: &Request, new: &mut NewNode<'_>) -> Result<(), Errno> {
        let data = Data::new(&self.readers, new.attr.uid);
        let charge = self.charge(request);
        let set = |name, value: &[u8]| data.set_xattr(charge, name, value, SetXattr::Any);
        if let Err(errno) = new.xattrs().iter().try_for_each(|(name, value)| set(name, value)) {
            let (owner, bytes) = data.charge(&self.readers);
            let mut amount = without_data(new.attr.mode, new.attr.size);
            amount.bytes += bytes;
            self.limits.give(owner, amount);
            return Err(errno);
        }
        new.xattrs_stored_in(data);
        Ok(())
    }

    /// Returns the charge for a further name of a file.
    #[inline(always)]
    fn name_goes(&self, inode: &Inode) {
        if let Some(data) = inode.data::<Data>() {
            data.remove_link(&self.readers, &self.limits);
        }
    }

    /// Returns the data of an inode, made if there is none yet. `EIO` if it has another file
    /// system's data, which would be a bug.
    fn data_of<'i>(&self, inode: &'i Inode) -> Result<&'i Data, Errno> {
        inode.data_or(|| Data::new(&self.readers, inode.attr().uid)).ok_or(Errno::EIO)
    }

    fn charge(&self, request: &Request) -> Charge<'_> {
        Charge { limits: &self.limits, pool: &self.pool, readers: &self.readers, privileged: request.privileged }
    }
}

/// The flags that files have, as on tmpfs.
const FLAGS: InodeFlags =
    InodeFlags::IMMUTABLE.union(InodeFlags::APPEND).union(InodeFlags::NODUMP).union(InodeFlags::NOATIME);

/// Returns the charge for an inode without its [`Data`]: the inode and the body of a long link.
fn without_data(mode: u32, size: u64) -> Amount {
    let is_long = mode & S_IFMT == S_IFLNK && size >= LONG_LINK;
    Amount { bytes: if is_long { PAGE_BYTES } else { 0 }, inodes: 1 }
}

#[cold]
fn random_instance() -> [u8; 16] {
    let [one, other] = [prim::seed::random_u64(), prim::seed::random_u64()];
    (u128::from(one) << 64 | u128::from(other)).to_le_bytes()
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

    fn traits(&self) -> FsTraits {
        let name_rules = self.case_insensitive.then(|| Box::new(Folding) as Box<dyn NameRules>);
        FsTraits {
            names: NameStore::Cache(CachedNames {
                entry_size: ENTRY_SIZE,
                never_waits: true,
                changes_in_parallel: true,
            }),
            reflinks: PAGE_BYTES as u32,
            name_rules,
            acls: true,
            ..FsTraits::default()
        }
    }

    /// Returns the instance and the inode number, which no other inode ever has: an id ends with
    /// its file or with the file system.
    fn id(&self, inode: &Inode) -> Option<FileId> {
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(&self.instance);
        bytes[16..].copy_from_slice(&inode.node().to_le_bytes());
        FileId::new(&bytes).ok()
    }

    fn by_id(&self, _: &Request, id: &FileId) -> Result<NewInode, Errno> {
        let number = id.as_bytes().strip_prefix(&self.instance).ok_or(Errno::ESTALE)?;
        let ino = u64::from_le_bytes(number.try_into().map_err(|_| Errno::ESTALE)?);
        Ok(NewInode { node: ino, attr: Attr { ino, ..Attr::default() }, ..NewInode::default() })
    }

    fn create(
        &self,
        request: &Request,
        _dir: &Inode,
        _name: Option<&[u8]>,
        new: &mut NewNode<'_>,
    ) -> Result<u64, Errno> {
        let node = self.make(request, &mut new.attr)?;
        if new.has_xattrs() {
            self.begin_xattrs(request, new)?;
        }
        Ok(node)
    }

    fn link(&self, _request: &Request, _dir: &Inode, _name: &[u8], inode: &Inode) -> Result<After, Errno> {
        // Counted already. The first name of a file made without one is charged with the inode.
        if inode.attr().nlink >= 2 {
            self.data_of(inode)?.add_link(&self.readers, &self.limits)?;
        }
        Ok(After::NONE)
    }

    fn unlink(&self, _request: &Request, _dir: &Inode, _name: &[u8], inode: &Inode) -> Result<After, Errno> {
        self.name_goes(inode);
        Ok(After::NONE)
    }

    fn rename(&self, _request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        if let Some(replaced) = rename.target.filter(|_| !rename.flags.contains(RenameFlags::EXCHANGE)) {
            self.name_goes(replaced);
        }
        Ok(After::NONE)
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        if let Some(uid) = set.uid.filter(|_| self.limits.has_quotas()) {
            self.data_of(inode)?.set_owner(self.charge(request), uid, without_data(inode.mode(), inode.size()))?;
        }
        Ok(After::NONE)
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let inode = file.inode;
        let left = usize::try_from(inode.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left);
        let buf = &mut buf[..len];
        match inode.data::<Data>() {
            Some(data) => data.read(&self.readers, offset, buf),
            None => buf.fill(0),
        }
        Ok(len)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        self.data_of(file.inode)?.write(self.charge(request), at.offset(), data)
    }

    /// Shares whole pages; the VFS copies the rest of a range.
    fn copy_range(
        &self,
        request: &Request,
        (from, offset): (&Open<'_>, u64),
        (to, at): (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        let len = if how == Copying::Share { len } else { len / PAGE_BYTES * PAGE_BYTES };
        if len == 0 || !offset.is_multiple_of(PAGE_BYTES) || !at.is_multiple_of(PAGE_BYTES) {
            return Err(Errno::EOPNOTSUPP);
        }
        let shares = from.inode.data::<Data>().map(|data| data.share(&self.readers, &(offset..offset + len)));
        let put = self.data_of(to.inode)?.put(self.charge(request), &(at..at + len), shares.unwrap_or_default());
        match put {
            Ok(blocks) => Ok(Written::new(len as usize, blocks)),
            // The VFS writes as much as there is room for.
            Err(_) if how == Copying::Any => Err(Errno::EOPNOTSUPP),
            Err(errno) => Err(errno),
        }
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        let blocks = match inode.data::<Data>() {
            None => 0,
            // A file that grows keeps the memory that was reserved past its end.
            Some(data) if len > inode.size() => data.blocks(&self.readers),
            Some(data) => data.cut(self.charge(request), len)?,
        };
        Ok((blocks, After::NONE))
    }

    fn allocate(
        &self,
        request: &Request,
        file: &Open<'_>,
        how: Allocate,
        _keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.data_of(file.inode)?.allocate(self.charge(request), how, offset, len)
    }

    fn seek(&self, _: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        let end = file.inode.size();
        let found = match (file.inode.data::<Data>(), what) {
            (Some(data), what) => data.seek(&self.readers, offset, what),
            (None, SeekFor::Data) => None,
            (None, SeekFor::Hole) => Some(offset),
        };
        match what {
            SeekFor::Data => found.filter(|&found| found < end).ok_or(Errno::ENXIO),
            SeekFor::Hole => Ok(found.unwrap_or(end).min(end)),
        }
    }

    fn get_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        inode.data::<Data>().ok_or(Errno::ENODATA)?.xattr(&self.readers, name)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.data_of(inode)?.set_xattr(self.charge(request), name, value, how)
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        inode.data::<Data>().ok_or(Errno::ENODATA)?.remove_xattr(self.charge(request), name)
    }

    fn list_xattrs(&self, _: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        Ok(inode.data::<Data>().map(|data| data.xattr_names(&self.readers)).unwrap_or_default())
    }

    fn inode_flags(&self, _: &Request, inode: &Inode) -> Result<InodeFlags, Errno> {
        Ok(inode.data::<Data>().map(|data| data.flags(&self.readers)).unwrap_or_default())
    }

    fn set_inode_flags(&self, _: &Request, inode: &Inode, flags: InodeFlags) -> Result<(), Errno> {
        if !FLAGS.contains(flags) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.data_of(inode)?.set_flags(&self.readers, flags);
        Ok(())
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        Ok(self.limits.statfs())
    }

    fn evict(&self, inode: &Inode) {
        let mut amount = without_data(inode.mode(), inode.size());
        let Some(data) = inode.data::<Data>() else {
            let owner = if self.limits.has_quotas() { inode.attr().uid } else { 0 };
            return self.limits.give(owner, amount);
        };
        let (owner, bytes) = data.charge(&self.readers);
        amount.bytes += bytes;
        self.limits.give(owner, amount);
        self.limits.give_links(data.links(&self.readers));
    }
}

#[cfg(test)]
mod tests;
