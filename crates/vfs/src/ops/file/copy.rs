//! Copies from one open file to another: `copy_file_range(2)`.
//!
//! # What it is
//! The file system copies by itself if it can ([`FileSystem::copy_range`](crate::FileSystem::copy_range): it may share the
//! storage). Otherwise the VFS reads and writes.
//!
//! # How it is locked
//! As reads of the source and writes to the target: the target's data lock is held. What another thread writes to the source
//! meanwhile may be copied in part.
//!
//! # Where it comes from
//! `generic_copy_file_checks` in Linux's `fs/read_write.c`.

use crate::base::attr::{S_IFDIR, S_IFMT, S_IFREG};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::base::rank::Rank;
use crate::dcache::fs::Request;
use crate::notify::EventKind;
use crate::ops::attributes::{MAX_SIZE, contents_changed, drop_set_ids_first};
use crate::ops::file::{OpenFile, check_range};
use crate::ops::publish;
use crate::walk::permission::flags_allow;

/// Bytes that are read and written at once.
const PIECE: usize = 64 << 10;

impl OpenFile {
    /// Copies up to `len` bytes from `offset` on to `target`, from `to` on: `copy_file_range(2)`. Returns the bytes that were
    /// copied: fewer at the end of the file, or if an error followed; 0 at and after the end. Both may be one file.
    ///
    /// # Errors
    /// `EINVAL` if an offset exceeds `i64::MAX`, if one is neither a regular file nor a directory, and for ranges of one file
    /// that overlap; `EISDIR`; `EBADF` if this is not open for reading, or `target` is not open for writing or was opened to
    /// append; `EXDEV` for files of two file systems; `EOVERFLOW` for a range whose end exceeds `i64::MAX`; `EFBIG`; those of
    /// [`OpenFile::read_at`] and [`OpenFile::write_at`].
    pub fn copy_to(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let len = self.copied_len(offset, target, to, len)?;
        if len == 0 {
            return Ok(0);
        }
        match self.copy_by_file_system(offset, target, to, len) {
            Err(Errno::EOPNOTSUPP) => self.copy_by_pieces(offset, target, to, len),
            done => done,
        }
    }

    /// The bytes that can be copied.
    fn copied_len(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let (inode, into) = (self.inode()?, target.inode()?);
        let kinds = [inode, into].map(|inode| inode.mode() & S_IFMT);
        if kinds.contains(&S_IFDIR) {
            return Err(Errno::EISDIR);
        }
        if kinds != [S_IFREG; 2] {
            return Err(Errno::EINVAL);
        }
        if !self.flags.can_read() || !target.flags.can_write() || target.flags.contains(OpenFlags::APPEND) {
            return Err(Errno::EBADF);
        }
        if !core::ptr::eq(self.held.sb(), target.held.sb()) {
            return Err(Errno::EXDEV);
        }
        flags_allow(target.held.sb(), into, &target.cred, InodeFlags::IMMUTABLE)?;
        check_range(offset, 0)?;
        check_range(to, 0)?;
        let fits = |start: u64| start.checked_add(len).is_some_and(|end| end <= MAX_SIZE);
        if !fits(offset) || !fits(to) {
            return Err(Errno::EOVERFLOW);
        }
        let len = len.min(self.attr()?.size.saturating_sub(offset));
        if to == MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        if core::ptr::eq(inode, into) && to < offset + len && offset < to + len {
            return Err(Errno::EINVAL);
        }
        Ok(len)
    }

    fn copy_by_file_system(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let (inode, into, sb) = (self.inode()?, target.inode()?, target.held.sb());
        let request = Request::of(&target.cred);
        let held = sb.ranks.lock(Rank::Data, &into.data_lock);
        drop_set_ids_first(&target.cred, sb, &request, into)?;
        let written = sb.fs().copy_range(&request, (&self.open(inode), offset), (&target.open(into), to), len)?;
        let copied = written.len as u64;
        if copied == 0 {
            return Ok(0);
        }
        into.update(|attr| {
            attr.size = attr.size.max(to + copied);
            attr.blocks = written.blocks;
            (attr.mtime, attr.ctime) = (request.now(), request.now());
            contents_changed(&target.cred, attr);
        });
        publish::touched(sb, EventKind::Modified, target.held.dentry());
        drop(held);
        self.accessed(inode);
        if target.flags.contains(OpenFlags::DSYNC) {
            target.sync(!target.flags.contains(OpenFlags::SYNC))?;
        }
        Ok(copied)
    }

    fn copy_by_pieces(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let mut buf = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
        let mut done = 0;
        while done < len {
            let most = usize::try_from(len - done).unwrap_or(PIECE).min(PIECE);
            let piece = self.read_at(offset + done, &mut buf[..most]).and_then(|read| match read {
                0 => Ok(0),
                read => target.write_at(to + done, &buf[..read]).map(|(written, _)| written),
            });
            match piece {
                Ok(0) => break,
                Ok(written) => done += written as u64,
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(done)
    }
}
