//! The write buffer of a file: its whole contents, until they are written to the store.
//!
//! # What it is
//! In memory while it is small, else in a temporary file without a name.
//!
//! # How it is locked
//! By its owner, the content of a node.

use crate::errors::errno_of_io;
use std::io::{Read, Seek, SeekFrom, Write};
use tempfile::SpooledTempFile;
use vfs::Errno;

/// The most bytes that a buffer has in memory.
const IN_MEMORY: usize = 1 << 20;

/// See the [module documentation](self).
pub(crate) struct Buffer {
    file: SpooledTempFile,
    len: u64,
    /// The most bytes that the buffer may have.
    most: u64,
    /// Whether the buffer has changes that the store lacks.
    pub(crate) is_dirty: bool,
}

impl Buffer {
    /// Returns an empty buffer, without changes. A write beyond `most` bytes fails with `EFBIG`.
    pub(crate) fn new(most: u64) -> Self {
        Self { file: SpooledTempFile::new(IN_MEMORY), len: 0, most, is_dirty: false }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads into `into` from `offset` on. Returns 0 at and after the end.
    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        if offset >= self.len {
            return Ok(0);
        }
        let len = into.len().min(usize::try_from(self.len - offset).unwrap_or(usize::MAX));
        self.seek(offset)?;
        self.file.read_exact(&mut into[..len]).map_err(|error| errno_of_io(&error))?;
        Ok(len)
    }

    /// Writes `data`; a gap before them reads as zeros.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= self.most).ok_or(Errno::EFBIG)?;
        if offset > self.len {
            // A cursor in memory fills the gap by itself, but not before this file would be too large for memory.
            self.set_len(offset)?;
        }
        self.seek(offset)?;
        self.file.write_all(data).map_err(|error| errno_of_io(&error))?;
        self.len = self.len.max(end);
        self.is_dirty = true;
        Ok(())
    }

    /// Cuts the contents, or extends them by zeros.
    pub(crate) fn set_len(&mut self, len: u64) -> Result<(), Errno> {
        if len > self.most {
            return Err(Errno::EFBIG);
        }
        self.file.set_len(len).map_err(|error| errno_of_io(&error))?;
        self.is_dirty |= self.len != len;
        self.len = len;
        Ok(())
    }

    fn seek(&mut self, offset: u64) -> Result<(), Errno> {
        self.file.seek(SeekFrom::Start(offset)).map(drop).map_err(|error| errno_of_io(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_outgrows_memory_keeps_its_bytes() {
        let mut buffer = Buffer::new(u64::MAX);
        buffer.write(3, b"text").unwrap();
        buffer.write(2 * IN_MEMORY as u64, b"end").unwrap();
        let mut start = [1; 8];
        assert_eq!(buffer.read(0, &mut start), Ok(8));
        assert_eq!(&start, b"\0\0\0text\0");
        assert_eq!(buffer.read(2 * IN_MEMORY as u64 - 1, &mut start), Ok(4));
        assert_eq!(&start[..4], b"\0end");
        buffer.set_len(5).unwrap();
        buffer.set_len(9).unwrap();
        let mut all = [1; 16];
        assert_eq!(buffer.read(0, &mut all), Ok(9));
        assert_eq!((&all[..9], buffer.len()), (&b"\0\0\0te\0\0\0\0"[..], 9));
    }
}
