//! Reading and writing at the position, which moves along.

use super::File;
use crate::error::error;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use vfs::{Errno, SeekFor};

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut position = self.position();
        let read = self.read_at(buf, *position)?;
        *position += read as u64;
        Ok(read)
    }

    /// As [`File::read_vectored_at`]; the position stays locked during the call.
    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut position = self.position();
        let read = self.read_vectored_at(bufs, *position)?;
        *position += read as u64;
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut position = self.position();
        let (len, end) = self.inner().write_at(*position, data).map_err(error)?;
        *position = end;
        Ok(len)
    }

    /// Writes all buffers as one write, as [`File::write_vectored_at`].
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut position = self.position();
        let (len, end) = self.write_gathered(bufs, *position).map_err(error)?;
        *position = end;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    /// # Errors
    /// `EINVAL` for a position before the start or beyond the longest length: `lseek(2)`.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut position = self.position();
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => position.checked_add_signed(offset),
            SeekFrom::End(offset) => {
                let attr = self.inner().attr().map_err(error)?;
                // A directory does not have an end to count from.
                if attr.is_dir() { None } else { attr.size.checked_add_signed(offset) }
            }
        };
        let target = target.filter(|&target| i64::try_from(target).is_ok()).ok_or_else(|| error(Errno::EINVAL))?;
        *position = target;
        Ok(target)
    }
}

/// # Data and holes
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// let file = ctx.create_new("/sparse")?;
/// file.write_all_at(b"data", 1 << 20)?;
/// assert_eq!(file.seek_data(0)?, 1 << 20); // The first megabyte is a hole.
/// assert_eq!(file.seek_hole(0)?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Moves the position to the first byte from `from` on that has storage: `lseek(2)` with `SEEK_DATA`.
    ///
    /// # Errors
    /// `ENXIO` at or after the end, or if no data follows; `EINVAL` for a directory; `EBADF` on a file opened with
    /// `O_PATH`.
    pub fn seek_data(&self, from: u64) -> io::Result<u64> {
        self.seek_for(SeekFor::Data, from)
    }

    /// Moves the position to the first hole from `from` on; the end of the file is one: `lseek(2)` with `SEEK_HOLE`.
    ///
    /// # Errors
    /// `ENXIO` at or after the end; `EINVAL` for a directory; `EBADF` on a file opened with `O_PATH`.
    pub fn seek_hole(&self, from: u64) -> io::Result<u64> {
        self.seek_for(SeekFor::Hole, from)
    }

    fn seek_for(&self, what: SeekFor, from: u64) -> io::Result<u64> {
        let mut position = self.position();
        *position = self.inner().seek_for(what, from).map_err(error)?;
        Ok(*position)
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(bufs)
    }
}

impl Write for File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}
