//! Open files: contents by position, and listings.
//!
//! # What is in it
//! Here: reading, writing, and the end of an open. [`listing`]: entries of directories; [`copy`]: copies and reflinks between two open
//! files; [`storage`]: allocation, holes and extended attributes; [`locks`]: locks of bytes and of whole files.

mod copy;
mod listing;
mod locks;
mod storage;

use crate::base::access::credentials::Credentials;
use crate::base::attr::{Attr, S_IFDIR, S_IFMT, S_IFREG, SetAttr};
use crate::base::deadline::Timeout;
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, MountFlags, OpenFlags};
use crate::base::rank::Rank;
use crate::cache::returned::{Files, PreAttrs};
use crate::fs::{Open, OpenState, Opened, Opens, Position, Request, Written};
use crate::mount::place::PathRef;
use crate::notify::EventKind;
use crate::ops::attributes::{MAX_SIZE, contents_changed, drop_set_ids_first, set_attr_held};
use crate::ops::publish;
use crate::slots::inode::Inode;
use crate::walk::permission::flags_allow;
use listing::Listing;
use prim::atomic::AtomicU64;
use sync::Mutex;

/// Nanoseconds after which an access is recorded even if the file did not change (relatime).
const RELATIME: i64 = 24 * 3600 * 1_000_000_000;

/// An open file or directory. It stays usable when its name is removed or moved.
pub struct OpenFile {
    held: PathRef,
    flags: OpenFlags,
    /// The opener's credentials, for writes and changes of attributes.
    cred: Credentials,
    /// The longest time that a call waits for the file system, from the opener's context.
    timeout: Timeout,
    /// The file system's result of the open. `None` if it was not called: then it is not called at
    /// the end either.
    opened: Option<Box<Opened>>,
    /// `None` before the first listing, so that opening a file need not allocate.
    listing: Mutex<Option<Box<Listing>>>,
    /// The owner of its locks; 0 before its first lock.
    owner: AtomicU64,
}

impl core::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OpenFile").field("place", &self.held).field("flags", &self.flags).finish_non_exhaustive()
    }
}

impl OpenFile {
    /// Opens a held place after all checks.
    ///
    /// # Errors
    /// `EROFS` to write on a read-only mount.
    #[inline]
    pub(crate) fn new(held: PathRef, flags: OpenFlags, cred: Credentials, timeout: Timeout) -> Result<Self, Errno> {
        if flags.can_write() {
            held.mount().begin_writing()?;
        }
        let opened = match report_opened(&held, flags, &cred, timeout) {
            Ok(opened) => opened,
            Err(errno) => {
                if flags.can_write() {
                    held.mount().end_writing();
                }
                return Err(errno);
            }
        };
        Ok(Self { held, flags, cred, timeout, opened, listing: Mutex::new(None), owner: AtomicU64::new(0) })
    }

    /// Opens a file that existed before, as [`OpenFile::new`]. With `TRUNC`, truncates the file, also if it is not opened for
    /// writing.
    #[inline]
    pub(crate) fn existing(
        held: PathRef,
        flags: OpenFlags,
        cred: Credentials,
        timeout: Timeout,
    ) -> Result<Self, Errno> {
        let file = Self::new(held, flags, cred, timeout)?;
        if flags.contains(OpenFlags::TRUNC) {
            file.truncate(0)?;
        }
        Ok(file)
    }

    /// Returns the file as a start of paths.
    #[must_use]
    pub fn held(&self) -> &PathRef {
        &self.held
    }

    fn inode(&self) -> Result<&Inode, Errno> {
        self.held.inode()
    }

    /// Returns a request that begins now.
    #[inline(always)]
    fn request(&self) -> Request<'_> {
        Request::lent(&self.cred, self.timeout, 0)
    }

    /// Returns this open file of `inode`, for the file system.
    #[inline]
    fn open<'o>(&'o self, inode: &'o Inode) -> Open<'o> {
        let state = self.opened.as_ref().map_or(&OpenState::None, |opened| &opened.state);
        Open { inode, flags: self.flags, state }
    }

    /// Flags that it was opened with.
    #[must_use]
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// Returns the number of the file's file system: `st_dev`.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.held.dev()
    }

    /// Attributes: `fstat(2)`.
    ///
    /// # Errors
    /// The errors of [`PathRef::attr`].
    pub fn attr(&self) -> Result<Attr, Errno> {
        self.held.attr()
    }

    /// Reads at `offset`: `pread(2)`. 0 at and after the end.
    ///
    /// # Errors
    /// `EINVAL` if `offset` exceeds `i64::MAX`; `EBADF` if not open for reading, `EISDIR`, and the file system's.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        check_offset(offset)?;
        if !self.flags.can_read() {
            return Err(Errno::EBADF);
        }
        let inode = self.inode()?;
        if inode.mode() & S_IFMT == S_IFDIR {
            return Err(Errno::EISDIR);
        }
        let read = self.held.sb().fs().read(&self.request(), &self.open(inode), offset, buf)?;
        if !buf.is_empty() {
            self.accessed(inode);
        }
        Ok(read)
    }

    /// Reads from `offset` on until `buf` is full or the file ends. Returns the number of bytes.
    ///
    /// # Errors
    /// The errors of [`OpenFile::read_at`], also after some bytes.
    pub fn read_full_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < buf.len() {
            match self.read_at(offset + done as u64, &mut buf[done..])? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    /// Writes at `offset`, or at the end if the file was opened to append: `pwrite(2)`. Returns the bytes
    /// written and the position after them. With `SYNC` or `DSYNC`, returns when they are in permanent storage.
    ///
    /// # Errors
    /// `EINVAL` if `offset` exceeds `i64::MAX`; `EBADF` if not open for writing, `EFBIG`, and the
    /// file system's; with `SYNC` or `DSYNC`, also the errors of [`OpenFile::sync`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(usize, u64), Errno> {
        check_offset(offset)?;
        let written = self.write_now(offset, data)?;
        let writes_through = self.opened.as_ref().is_some_and(|opened| opened.writes_through);
        if written.0 != 0 && !writes_through {
            self.sync_written()?;
        }
        Ok(written)
    }

    /// With `SYNC` or `DSYNC`, waits until what was written is in permanent storage.
    fn sync_written(&self) -> Result<(), Errno> {
        if self.flags.contains(OpenFlags::DSYNC) { self.sync(!self.flags.contains(OpenFlags::SYNC)) } else { Ok(()) }
    }

    #[inline]
    fn write_now(&self, offset: u64, data: &[u8]) -> Result<(usize, u64), Errno> {
        if !self.flags.can_write() {
            return Err(Errno::EBADF);
        }
        let inode = self.inode()?;
        let _held = self.held.sb().ranks.lock(Rank::Data, &inode.data_lock);
        if data.is_empty() {
            return Ok((0, offset));
        }
        let appends = self.flags.contains(OpenFlags::APPEND);
        let offset = if appends { self.attr()?.size } else { offset };
        let room = MAX_SIZE.checked_sub(offset).filter(|&room| room > 0).ok_or(Errno::EFBIG)?;
        let data = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let request = self.request();
        drop_set_ids_first(&self.cred, self.held.sb(), &request, inode)?;
        let at = if appends { Position::End(offset) } else { Position::At(offset) };
        let pre_attrs = self.held.sb().pre_attrs(Files { file: Some((inode, 1)), ..Files::default() });
        let written = self.held.sb().fs().write(&request, &self.open(inode), at, data)?;
        let end = written.end.unwrap_or(offset + written.len as u64);
        self.wrote(&request, inode, end, &written, pre_attrs);
        Ok((written.len, end))
    }

    /// Notes that the file system has written to this file, whose data lock is held, up to `end`.
    #[inline]
    fn wrote(&self, request: &Request, inode: &Inode, end: u64, written: &Written, pre_attrs: PreAttrs<'_>) {
        inode.update(|attr| {
            attr.size = attr.size.max(end);
            attr.blocks = written.blocks;
            (attr.mtime, attr.ctime) = (request.now(), request.now());
            contents_changed(&self.cred, attr);
        });
        pre_attrs.post_attrs(&written.after);
        publish::touched(self.held.sb(), EventKind::Modified, self.held.dentry());
    }

    /// Truncates or extends the file to `len` bytes: `ftruncate(2)`.
    ///
    /// # Errors
    /// `EINVAL` if not open for writing or not a regular file; `EBADF` on a place opened with `PATH`;
    /// `EFBIG`, and the file system's.
    pub fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.check_open()?;
        if !self.flags.can_write() {
            return Err(Errno::EINVAL);
        }
        self.truncate(len)
    }

    /// Sets the length of a regular file, however it was opened.
    fn truncate(&self, len: u64) -> Result<(), Errno> {
        set_attr_held(&self.cred, &self.request(), &self.held, &SetAttr { size: Some(len), ..SetAttr::default() })
    }

    /// Changes attributes except for the length: `fchmod(2)`, `fchown(2)`, `futimens(3)`.
    ///
    /// # Errors
    /// As for [`Context::set_attr`](crate::Context::set_attr); `EBADF` on a place opened with `PATH`.
    pub fn set_attr(&self, set: &SetAttr) -> Result<(), Errno> {
        self.check_open()?;
        set_attr_held(&self.cred, &self.request(), &self.held, &SetAttr { size: None, ..*set })
    }

    /// Returns whether a read now would change the access time, as the mount and relatime require:
    /// `mount(8)`. If so, a front end whose kernel answers reads from its cache must let the next
    /// one through. `false` if the file system itself decides about access times.
    #[must_use]
    pub fn is_access_due(&self) -> bool {
        !self.held.sb().fs_keeps_modes && self.inode().is_ok_and(|inode| self.access_time(inode).is_some())
    }

    /// Records an access, if the mount and relatime require it.
    fn accessed(&self, inode: &Inode) {
        if let Some(now) = self.access_time(inode) {
            inode.note_access(now);
        }
    }

    /// Returns the access time of an access now, if it is recorded.
    fn access_time(&self, inode: &Inode) -> Option<i64> {
        let flags = self.held.mount().flags();
        let is_dir = inode.mode() & S_IFMT == S_IFDIR;
        // A removed directory has no entries.
        let is_removed = is_dir && !self.held.dentry().object().is_hashed();
        let is_off = flags.intersects(MountFlags::NOATIME.union(MountFlags::RDONLY))
            || self.flags.contains(OpenFlags::NOATIME)
            || is_dir && flags.contains(MountFlags::NODIRATIME);
        if is_removed || is_off {
            return None;
        }
        let attr = inode.attr();
        let now = prim::clock::now_ns();
        let due = attr.atime <= attr.mtime || attr.atime <= attr.ctime || now.saturating_sub(attr.atime) >= RELATIME;
        let is_due = due || flags.contains(MountFlags::STRICTATIME);
        (is_due && flags_allow(self.held.sb(), inode, &self.cred, InodeFlags::NOATIME).is_ok()).then_some(now)
    }

    /// Calls the file system's `release`.
    #[inline(never)]
    fn report_released(&self) {
        if let Ok(inode) = self.inode() {
            let fs = self.held.sb().fs();
            self.held.sb().contain(|| fs.release(self.open(inode)));
        }
    }
}

impl Drop for OpenFile {
    #[inline(always)]
    fn drop(&mut self) {
        self.release_locks();
        if self.opened.is_some() {
            self.report_released();
        }
        if self.flags.can_write() {
            self.held.mount().end_writing();
        }
    }
}

/// Calls the file system's `open`, if it wants that.
#[inline]
fn report_opened(
    held: &PathRef,
    flags: OpenFlags,
    cred: &Credentials,
    timeout: Timeout,
) -> Result<Option<Box<Opened>>, Errno> {
    if held.sb().opens != Opens::No { opened_by_file_system(held, flags, cred, timeout) } else { Ok(None) }
}

/// Calls the file system's `open`, if a regular file or a directory is opened, and not only a place.
#[inline(never)]
fn opened_by_file_system(
    held: &PathRef,
    flags: OpenFlags,
    cred: &Credentials,
    timeout: Timeout,
) -> Result<Option<Box<Opened>>, Errno> {
    let inode = held.inode()?;
    if flags.contains(OpenFlags::PATH) || !matches!(inode.mode() & S_IFMT, S_IFREG | S_IFDIR) {
        return Ok(None);
    }
    held.sb().fs().open(&Request::lent(cred, timeout, 0), inode, flags).map(|opened| Some(Box::new(opened)))
}

/// `EINVAL` for an offset that no `off_t` can hold.
#[inline]
fn check_offset(offset: u64) -> Result<(), Errno> {
    if offset > MAX_SIZE { Err(Errno::EINVAL) } else { Ok(()) }
}
