//! Open files: contents by position, and listings.

mod locks;
mod storage;

use crate::attr::{Attr, S_IFDIR, S_IFMT, SetAttr};
use crate::context::Held;
use crate::cred::Credentials;
use crate::dentry::{COMPLETE, Dentry, HASHED, INODE};
use crate::errno::Errno;
use crate::fs::Request;
use crate::inode::Inode;
use crate::listing_cache::{Whole, entry_bytes};
use crate::mount::MountFlags;
use crate::namespace::{MAX_SIZE, OpenFlags, contents_changed, set_attr_held};
use crate::notify::EventKind;
use crate::rank::Rank;
use crate::slot::outlive;
use crate::superblock::SuperBlock;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use prim::shared::Arc;
use sync::Mutex;

/// Entries that a listing takes out under one hold of the directory's lock.
const LIST_BATCH: usize = 64;

/// Nanoseconds after which an access is recorded even if the file did not change (relatime).
const RELATIME: i64 = 24 * 3600 * 1_000_000_000;

/// An open file or directory. It stays what it is when its name goes or moves.
#[derive(Debug)]
pub struct OpenFile {
    held: Held,
    flags: OpenFlags,
    /// Who opened it: under these credentials it is written and changed.
    cred: Credentials,
    /// None before the first is asked for, so that opening a file need not make one.
    listing: Mutex<Option<Box<Listing>>>,
    /// The owner of its locks; 0: it has never had one.
    owner: AtomicU64,
}

/// Where a listing of a directory is.
#[derive(Debug, Default)]
struct Listing {
    /// The entry given out last, held so that the next batch finds its place at once.
    last: Option<(Held, u64)>,
    /// The same where the file system lists: its cookie.
    cookie: u64,
    /// A listing that is kept, and how much of it was given out.
    kept: Option<(Arc<Whole>, usize)>,
    /// What was listed since the beginning, and how often the directory had changed then.
    collected: Option<(u32, Vec<(DirEntry, u64)>)>,
    done: bool,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Box<[u8]>,
    /// Inode number.
    pub ino: u64,
    /// File type (`S_IFMT`).
    pub kind: u32,
}

impl OpenFile {
    /// Wraps what may be opened.
    ///
    /// # Errors
    /// `EROFS` to write on a read-only mount.
    #[inline]
    pub(crate) fn new(held: Held, flags: OpenFlags, cred: Credentials) -> Result<Self, Errno> {
        if flags.can_write() {
            held.mount().begin_writing()?;
        }
        Ok(Self { held, flags, cred, listing: Mutex::new(None), owner: AtomicU64::new(0) })
    }

    /// The file as a place that paths can start from.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    fn inode(&self) -> Result<&Inode, Errno> {
        self.held.dentry().inode().ok_or(Errno::EIO)
    }

    /// Flags that it was opened with.
    #[must_use]
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// The number of its file system: `st_dev`.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.held.dev()
    }

    /// Attributes: `fstat(2)`.
    ///
    /// # Errors
    /// None in practice; `EIO` would be a defect.
    pub fn attr(&self) -> Result<Attr, Errno> {
        self.held.attr()
    }

    /// Reads at `offset`: `pread(2)`. 0 at and after the end.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR`, and the file system's.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        if !self.flags.can_read() {
            return Err(Errno::EBADF);
        }
        let inode = self.inode()?;
        if inode.mode() & S_IFMT == S_IFDIR {
            return Err(Errno::EISDIR);
        }
        let read = self.held.sb().fs.read_at(inode, offset, buf)?;
        if !buf.is_empty() {
            self.accessed(inode);
        }
        Ok(read)
    }

    /// Writes at `offset`, or at the end if the file was opened to append: `pwrite(2)`. Gives the bytes written and the position
    /// after them.
    ///
    /// # Errors
    /// `EBADF` if not open for writing, `EFBIG`, and the file system's.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(usize, u64), Errno> {
        if !self.flags.can_write() {
            return Err(Errno::EBADF);
        }
        let inode = self.inode()?;
        let _held = self.held.sb().ranks.lock(Rank::Data, &inode.data_lock);
        if data.is_empty() {
            return Ok((0, offset));
        }
        let offset = if self.flags.has(OpenFlags::APPEND) { inode.size() } else { offset };
        let room = MAX_SIZE.checked_sub(offset).filter(|&room| room > 0).ok_or(Errno::EFBIG)?;
        let data = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let request = Request::of(&self.cred);
        let written = self.held.sb().fs.write_at(&request, inode, offset, data)?;
        let end = offset + written.len as u64;
        let written_to = self.held.dentry();
        inode.update(|attr| {
            attr.size = attr.size.max(end);
            attr.blocks = written.blocks;
            (attr.mtime, attr.ctime) = (request.now, request.now);
            contents_changed(&self.cred, attr);
        });
        self.held.sb().touched(EventKind::Modified, written_to);
        Ok((written.len, end))
    }

    /// Cuts or extends the file: `ftruncate(2)`.
    ///
    /// # Errors
    /// `EINVAL` if not open for writing or no regular file; `EBADF` on a place opened with `PATH`; `EFBIG`, and the file system's.
    pub fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.check_open()?;
        if !self.flags.can_write() {
            return Err(Errno::EINVAL);
        }
        set_attr_held(&self.cred, &self.held, &SetAttr { size: Some(len), ..SetAttr::default() })
    }

    /// What `O_TRUNC` does: cuts a regular file to nothing, whatever it was opened for.
    pub(crate) fn truncate(&self) -> Result<(), Errno> {
        set_attr_held(&self.cred, &self.held, &SetAttr { size: Some(0), ..SetAttr::default() })
    }

    /// Changes attributes but for the length: `fchmod(2)`, `fchown(2)`, `futimens(3)`.
    ///
    /// # Errors
    /// As for [`Context::set_attr`](crate::Context::set_attr); `EBADF` on a place opened with `PATH`.
    pub fn set_attr(&self, set: &SetAttr) -> Result<(), Errno> {
        self.check_open()?;
        set_attr_held(&self.cred, &self.held, &SetAttr { size: None, ..*set })
    }

    /// The next entries of the directory, some at a time; empty at the end. `.` and `..` are not among them.
    ///
    /// An entry that is there from the first call to the last is given exactly once, whatever comes and goes beside it; one
    /// that comes meanwhile is not given.
    ///
    /// # Errors
    /// `ENOTDIR`; `EBADF` on a place opened with `PATH`; the file system's.
    pub fn next_entries(&self) -> Result<Vec<DirEntry>, Errno> {
        self.check_open()?;
        let inode = self.inode()?;
        if inode.mode() & S_IFMT != S_IFDIR {
            return Err(Errno::ENOTDIR);
        }
        let sb = self.held.sb();
        let mut held = sb.ranks.lock(Rank::Handle, &self.listing);
        let listing = held.get_or_insert_default();
        if listing.done {
            self.accessed(inode);
            return Ok(Vec::new());
        }
        let dir = self.held.dentry();
        let _locked = sb.ranks.lock(Rank::Directory, &dir.lock);
        if !dir.has(COMPLETE) {
            let entries = self.ask_for_entries(inode, listing)?;
            self.accessed(inode);
            return Ok(entries);
        }
        let mut next = match &listing.last {
            None => dir.first_child.get(),
            Some((last, cookie)) => after(dir, last.dentry(), *cookie),
        };
        let mut entries = Vec::new();
        let mut last = None;
        while let Some(entry) = next
            && entries.len() < LIST_BATCH
        {
            if entry.object() & INODE != 0 {
                entries.push(describe(sb, entry)?);
                last = Some(outlive(sb, entry));
            }
            next = entry.sib_next.get();
        }
        let done = next.is_none();
        let last = match last {
            Some(last) if !done => {
                let cookie = last.cookie.load(Relaxed);
                Some((self.held.beside(sb.pin_again(last)), cookie))
            }
            _ => None,
        };
        **listing = Listing { last, done, ..Listing::default() };
        self.accessed(inode);
        Ok(entries)
    }

    /// The next entries from a listing that is kept, or from the file system.
    fn ask_for_entries(&self, inode: &Inode, listing: &mut Listing) -> Result<Vec<DirEntry>, Errno> {
        let (sb, dir) = (self.held.sb(), self.held.dentry());
        if sb.fs_lists && listing.cookie == 0 {
            let version = sb.versions.of(dir);
            listing.kept = sb.listings.get(dir, version).map(|whole| (whole, 0));
            listing.collected = Some((version, Vec::new()));
        }
        if let Some((whole, at)) = &mut listing.kept {
            let next = whole.from(*at, LIST_BATCH);
            *at += next.len();
            // Where the file system would go on, should the listing be begun again by its cookie.
            listing.cookie = next.last().map_or(listing.cookie, |(_, cookie)| *cookie);
            listing.done = next.len() < LIST_BATCH;
            return Ok(next.iter().map(|(entry, _)| entry.clone()).collect());
        }
        let mut entries: Vec<(DirEntry, u64)> = Vec::new();
        sb.fs.read_dir(inode, listing.cookie, &mut |entry, at| {
            entries.push((entry, at));
            entries.len() < LIST_BATCH
        })?;
        listing.cookie = entries.last().map_or(listing.cookie, |(_, cookie)| *cookie);
        listing.done = entries.len() < LIST_BATCH;
        self.collect(listing, &entries);
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    /// Keeps what was listed, when it is whole and the directory did not change meanwhile.
    fn collect(&self, listing: &mut Listing, entries: &[(DirEntry, u64)]) {
        let (sb, dir) = (self.held.sb(), self.held.dentry());
        let Some((version, mut all)) = listing.collected.take() else { return };
        all.extend_from_slice(entries);
        let bytes: u64 = all.iter().map(|(entry, _)| entry_bytes(entry)).sum();
        if sb.versions.of(dir) != version || bytes > sb.listings.most() {
            return;
        }
        if listing.done { sb.listings.put(dir, version, all) } else { listing.collected = Some((version, all)) }
    }

    /// Records an access, where the mount and relatime say so: `mount(8)`.
    fn accessed(&self, inode: &Inode) {
        let flags = self.held.mount().flags();
        let kept = MountFlags::NOATIME.union(MountFlags::RDONLY).bits();
        let is_dir = inode.mode() & S_IFMT == S_IFDIR;
        if is_dir && !self.held.dentry().has(HASHED) {
            // Removed: there is nothing to list.
            return;
        }
        if flags.bits() & kept != 0 || self.flags.has(OpenFlags::NOATIME) || is_dir && flags.has(MountFlags::NODIRATIME)
        {
            return;
        }
        let attr = inode.attr();
        let now = prim::clock::now_ns();
        let due = attr.atime <= attr.mtime || attr.atime <= attr.ctime || now.saturating_sub(attr.atime) >= RELATIME;
        if due || flags.has(MountFlags::STRICTATIME) {
            inode.update(|attr| attr.atime = now);
        }
    }

    /// Begins the listing again.
    pub fn rewind(&self) {
        **self.held.sb().ranks.lock(Rank::Handle, &self.listing) = None;
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.release_locks();
        if self.flags.can_write() {
            self.held.mount().end_writing();
        }
    }
}

/// The entry that follows in the listing of the locked directory `dir` after the one that had `cookie`.
fn after<'d>(dir: &'d Dentry, last: &'d Dentry, cookie: u64) -> Option<&'d Dentry> {
    if last.has(HASHED) && last.is_in(dir) && last.cookie.load(Relaxed) == cookie {
        return last.sib_next.get();
    }
    // It has gone or moved: cookies fall along the list.
    let mut at = dir.first_child.get();
    while let Some(entry) = at {
        if entry.cookie.load(Relaxed) < cookie {
            return at;
        }
        at = entry.sib_next.get();
    }
    None
}

fn describe(sb: &SuperBlock, entry: &Dentry) -> Result<DirEntry, Errno> {
    let attr = entry.inode().ok_or(Errno::EIO)?.attr();
    let guard = sb.domain.read();
    Ok(DirEntry { name: entry.with_name_rcu(&guard, |name| name.into()), ino: attr.ino, kind: attr.kind() })
}
