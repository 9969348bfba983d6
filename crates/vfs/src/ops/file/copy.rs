//! Copies from one open file to another: `copy_file_range(2)`, and reflinks,
//! `ioctl_ficlonerange(2)`.
//!
//! # What it is
//! The file system copies by itself if it can
//! ([`FileSystem::copy_range`](crate::FileSystem::copy_range): it may share the storage). Otherwise
//! the VFS reads and writes. A reflink fails where the file system cannot share the storage.
//!
//! # How it is locked
//! A copy as reads of the source and writes to the target: the target's data lock is held. A
//! concurrent write to the source may be copied in part. A reflink holds the data locks of both
//! files, the lower address first, so no other thread changes either meanwhile.
//!
//! # Where it comes from
//! `generic_copy_file_checks` in Linux's `fs/read_write.c`; `generic_remap_file_range_prep` in its
//! `fs/remap_range.c`.

use crate::base::attr::{S_IFDIR, S_IFMT, S_IFREG};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::base::rank::{Locked, Rank};
use crate::cache::returned::Files;
use crate::cache::superblock::SuperBlock;
use crate::fs::Copying;
use crate::ops::attributes::{MAX_SIZE, drop_set_ids_first};
use crate::ops::file::{OpenFile, check_offset};
use crate::slots::inode::Inode;
use crate::walk::permission::flags_allow;

/// Bytes that are read and written at once.
const PIECE: usize = 64 << 10;

/// A file of the host that was opened with `O_DIRECT` takes only buffers that begin at a multiple of its blocks: at most this.
const ALIGNMENT: usize = 4096;

impl OpenFile {
    /// Copies up to `len` bytes from `offset` on to `target`, from `to` on: `copy_file_range(2)`. Returns the bytes that were
    /// copied: fewer at the end of the file, or if an error followed; 0 at and after the end. Both may be one file.
    ///
    /// # Errors
    /// `EINVAL` if an offset exceeds `i64::MAX`, if one is neither a regular file nor a directory,
    /// and for ranges of one file that overlap; `EISDIR`; `EBADF` if this is not open for reading,
    /// or `target` is not open for writing or was opened to append; `EXDEV` for files of two file
    /// systems; `EOVERFLOW` for a range whose end exceeds `i64::MAX`; `EFBIG`; the errors of
    /// [`OpenFile::read_at`] and [`OpenFile::write_at`].
    pub fn copy_to(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let len = self.copied_len(offset, target, to, len)?;
        // The file system may copy only a part, and leave the rest to the VFS.
        in_parts(len, |done| match self.copy_by_file_system(offset + done, target, to + done, len - done) {
            Err(Errno::EOPNOTSUPP) => self.copy_by_pieces(offset + done, target, to + done, len - done),
            copied => copied,
        })
    }

    /// Makes `len` bytes of `target`, from `to` on, share the storage of the bytes from `offset`
    /// on, until one of the files changes: `ioctl_ficlonerange(2)`. With a length of 0: all bytes
    /// up to the end; so with three zeros `ioctl_ficlone(2)`. All bytes or none. Both may be one
    /// file.
    ///
    /// In both files the range begins at a block of the file system
    /// ([`FsTraits::reflinks`](crate::FsTraits::reflinks)). The range ends at a block, or at the
    /// end of this file; in the second case it must not end inside of `target`.
    ///
    /// # Errors
    /// `EXDEV` for files of two file systems; `EISDIR`; `EINVAL` if one is not a regular file, for a range that does not begin or end
    /// so, or not inside of this file, for ranges of one file that overlap, and for one whose end exceeds `i64::MAX`; `EBADF` if this
    /// is not open for reading, or `target` is not open for writing or was opened to append; `EOPNOTSUPP` if the file system cannot
    /// share these; `EPERM` by the target's flags; `ENOSPC`, `EDQUOT` and others of the file system, such as `ETXTBSY`.
    pub fn clone_to(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<(), Errno> {
        let (inode, into, sb) = (self.inode()?, target.inode()?, target.held.sb());
        if !core::ptr::eq(self.held.sb(), sb) {
            return Err(Errno::EXDEV);
        }
        self.check_ends(target)?;
        if sb.reflinks == 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if [offset, to].iter().any(|start| start.checked_add(len).is_none_or(|end| end > MAX_SIZE)) {
            return Err(Errno::EINVAL);
        }
        flags_allow(sb, into, &target.cred, InodeFlags::IMMUTABLE)?;
        let request = target.request();
        let held = lock_both(sb, inode, into);
        let len = self.shared_len(offset, target, to, len)?;
        if len == 0 {
            return Ok(());
        }
        drop_set_ids_first(&target.cred, sb, &request, into)?;
        let (from, onto) = ((&self.open(inode), offset), (&target.open(into), to));
        let pre_attrs = sb.pre_attrs(Files { file: Some((into, 1)), ..Files::default() });
        let written = sb.fs().copy_range(&request, from, onto, len, Copying::Share)?;
        target.wrote(&request, into, to + written.len as u64, &written, pre_attrs);
        drop(held);
        target.sync_written()?;
        if written.len as u64 == len { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Checks that both are regular files which are open as a copy needs them.
    fn check_ends(&self, target: &Self) -> Result<(), Errno> {
        let kinds = [self.inode()?, target.inode()?].map(|inode| inode.mode() & S_IFMT);
        if kinds.contains(&S_IFDIR) {
            return Err(Errno::EISDIR);
        }
        if kinds != [S_IFREG; 2] {
            return Err(Errno::EINVAL);
        }
        let is_open = self.flags.can_read() && target.flags.can_write() && !target.flags.contains(OpenFlags::APPEND);
        if is_open { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// Returns the bytes that can be copied.
    fn copied_len(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        self.check_ends(target)?;
        let (inode, into) = (self.inode()?, target.inode()?);
        if !core::ptr::eq(self.held.sb(), target.held.sb()) {
            return Err(Errno::EXDEV);
        }
        flags_allow(target.held.sb(), into, &target.cred, InodeFlags::IMMUTABLE)?;
        check_offset(offset)?;
        check_offset(to)?;
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

    /// Returns the bytes to share, where 0 means all up to the end: 0 if there are none. The ends
    /// of both ranges are at most `MAX_SIZE`.
    fn shared_len(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let block = u64::from(target.held.sb().reflinks);
        let size = self.attr()?.size;
        if len == 0 && offset == size {
            return Ok(0);
        }
        let rest = size.checked_sub(offset).filter(|&rest| rest > 0).ok_or(Errno::EINVAL)?;
        let len = if len == 0 { rest } else { len };
        let is_to_end = len == rest;
        let in_blocks = len.next_multiple_of(block);
        let is_aligned = offset.is_multiple_of(block) && to.is_multiple_of(block) && (len == in_blocks || is_to_end);
        let fits = len <= rest && to <= MAX_SIZE - len;
        let is_same = core::ptr::eq(self.inode()?, target.inode()?);
        let overlaps = is_same && to < offset + in_blocks && offset < to + in_blocks;
        if !is_aligned || !fits || overlaps {
            return Err(Errno::EINVAL);
        }
        // The rest of the last block would be lost.
        if len != in_blocks && to + len < target.attr()?.size { Err(Errno::EINVAL) } else { Ok(len) }
    }

    fn copy_by_file_system(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let (inode, into, sb) = (self.inode()?, target.inode()?, target.held.sb());
        let request = target.request();
        let held = sb.ranks.lock(Rank::Data, &into.data_lock);
        drop_set_ids_first(&target.cred, sb, &request, into)?;
        let (from, onto) = ((&self.open(inode), offset), (&target.open(into), to));
        let pre_attrs = sb.pre_attrs(Files { file: Some((into, 1)), ..Files::default() });
        let written = sb.fs().copy_range(&request, from, onto, len, Copying::Any)?;
        if written.len == 0 {
            return Ok(0);
        }
        target.wrote(&request, into, to + written.len as u64, &written, pre_attrs);
        drop(held);
        self.accessed(inode);
        target.sync_written()?;
        Ok(written.len as u64)
    }

    fn copy_by_pieces(&self, offset: u64, target: &Self, to: u64, len: u64) -> Result<u64, Errno> {
        let size = PIECE.min(usize::try_from(len).unwrap_or(PIECE));
        let mut memory = vec![0; size + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let buf = &mut memory[start..start + size];
        in_parts(len, |done| {
            let most = usize::try_from(len - done).unwrap_or(PIECE).min(PIECE);
            match self.read_at(offset + done, &mut buf[..most])? {
                0 => Ok(0),
                read => target.write_at(to + done, &buf[..read]).map(|(written, _)| written as u64),
            }
        })
    }
}

/// Calls `copy` with the number of bytes that are copied, until these are `len`, or `copy` returns 0. If an error follows, returns
/// the bytes before it.
fn in_parts(len: u64, mut copy: impl FnMut(u64) -> Result<u64, Errno>) -> Result<u64, Errno> {
    let mut done = 0;
    while done < len {
        match copy(done) {
            Ok(0) => break,
            Ok(copied) => done += copied,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Locks the data of two files, which may be one.
fn lock_both<'a>(sb: &'a SuperBlock, one: &'a Inode, other: &'a Inode) -> (Locked<'a>, Option<Locked<'a>>) {
    let by_address = core::ptr::from_ref(one) < core::ptr::from_ref(other);
    let (first, second) = if by_address { (one, other) } else { (other, one) };
    let held = sb.ranks.lock(Rank::Data, &first.data_lock);
    let is_one = core::ptr::eq(first, second);
    (held, (!is_one).then(|| sb.ranks.lock_nested(Rank::Data, &second.data_lock)))
}
