//! Reading and writing at an offset, without the position, also with several buffers: `pread(2)`, `pwritev(2)`.

use super::File;
use crate::error::error;
use std::io::{self, IoSlice, IoSliceMut};
use vfs::Errno;

/// The most bytes that one call reads or writes: Linux's `MAX_RW_COUNT`.
const MAX_TRANSFER: usize = 0x7fff_f000;

/// # Reading and writing at an offset
///
/// These methods do not move the position, so threads can share a file without waiting for one
/// another.
///
/// ```
/// use lightfoot::Vfs;
///
/// let ctx = Vfs::ram().context();
/// let file = ctx.create_new("/table")?;
/// file.write_all_at(b"second", 512)?; // The range before it is a hole, which reads as zeros.
/// file.write_all_at(b"first", 0)?;
/// let mut row = [0; 6];
/// file.read_exact_at(&mut row, 512)?;
/// assert_eq!(&row, b"second");
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Reads at `offset` without moving the position: `pread(2)`.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR` for a directory.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner().read_at(offset, buf).map_err(error)
    }

    /// Writes at `offset` without moving the position: `pwrite(2)`. A file opened to append is written at its end.
    ///
    /// # Errors
    /// `EBADF` if not open for writing, `EFBIG`.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.inner().write_at(offset, data).map(|(len, _)| len).map_err(error)
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// As for [`File::read_at`]; `UnexpectedEof` if the file ends before `buf` is full.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// As for [`File::write_at`]; `WriteZero` if the file takes no more bytes.
    pub fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, data, offset)
    }

    /// Reads into several buffers at `offset`, one after the other: `preadv(2)`.
    ///
    /// A write by another thread may come between two buffers, as on Linux.
    ///
    /// # Errors
    /// As for [`File::read_at`].
    pub fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let mut total: usize = 0;
        for buf in bufs {
            let most = buf.len().min(MAX_TRANSFER - total);
            let read = match self.inner().read_at(offset.saturating_add(total as u64), &mut buf[..most]) {
                Ok(read) => read,
                // Returns the number of bytes read before the error; a caller that continues gets
                // the error again.
                Err(_) if total > 0 => break,
                Err(errno) => return Err(error(errno)),
            };
            total += read;
            if read < buf.len() {
                break;
            }
        }
        Ok(total)
    }

    /// Writes several buffers at `offset`, one after the other, as one write: `pwritev(2)`. The
    /// call copies the buffers into one first, so that no other write comes between them.
    ///
    /// # Errors
    /// As for [`File::write_at`]; `ENOMEM` if the buffer cannot be allocated.
    pub fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.write_gathered(bufs, offset).map(|(len, _)| len).map_err(error)
    }

    /// As [`File::write_vectored_at`], but also returns the position after the written bytes.
    pub(super) fn write_gathered(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(usize, u64), Errno> {
        let mut filled = bufs.iter().filter(|buf| !buf.is_empty());
        let (first, more) = (filled.next(), filled.next().is_some());
        if !more {
            return self.inner().write_at(offset, first.map_or(&[], |buf| &buf[..]));
        }
        let total = bufs.iter().fold(0usize, |total, buf| total.saturating_add(buf.len())).min(MAX_TRANSFER);
        let mut gathered = Vec::new();
        gathered.try_reserve_exact(total).map_err(|_| Errno::ENOMEM)?;
        for buf in bufs {
            gathered.extend_from_slice(&buf[..buf.len().min(total - gathered.len())]);
        }
        self.inner().write_at(offset, &gathered)
    }
}

/// For code that is generic over files of Unix.
impl std::os::unix::fs::FileExt for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buf, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.write_at(data, offset)
    }
}
