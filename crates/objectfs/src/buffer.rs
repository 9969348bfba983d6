//! The write buffer of a file: what was written since the object was stored.
//!
//! # What it is
//! The written ranges lie at their offsets in a file without a name, or in memory while it is small.
//! Between them, the beginning of the stored object shows through (its *base*), and behind the base
//! there are zeros. A change of one byte so needs no other bytes of the object.
//!
//! All buffers of a file system share an allowance of bytes ([`Allowance`]).
//!
//! # How it is locked
//! By its owner, the content of a node.

use crate::errors::errno_of_io;
use crate::meta::Meta;
use core::ops::Range;
use rangemap::RangeSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::SpooledTempFile;
use vfs::Errno;

/// The most bytes that a buffer has in memory.
const IN_MEMORY: usize = 1 << 20;

/// A number of bytes that several owners share.
#[derive(Clone)]
pub(crate) struct Allowance(Arc<AtomicU64>);

impl Allowance {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Takes some bytes.
    ///
    /// # Errors
    /// `ENOSPC`.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Errno> {
        // Relaxed: a number by itself.
        let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Errno::ENOSPC)
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

/// A piece of the contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// Bytes of the buffer: written, or zeros.
    Own(Range<u64>),
    /// Bytes of the stored object.
    Base(Range<u64>),
}

/// See the [module documentation](self).
pub(crate) struct Buffer {
    file: SpooledTempFile,
    allowance: Allowance,
    len: u64,
    /// The bytes of the stored object that show through, from its beginning.
    base: u64,
    written: RangeSet<u64>,
    /// The bytes taken from the allowance.
    taken: u64,
    /// The most bytes that the buffer may have.
    most: u64,
    /// Whether the buffer has changes that the store lacks.
    pub(crate) is_dirty: bool,
    /// Whether the store has refused these changes.
    pub(crate) is_refused: bool,
    /// The stored object, and the version of the node's contents that it is, if ranges of this object
    /// only can be requested.
    pub(crate) origin: Option<(Meta, u64)>,
}

impl Buffer {
    /// Returns a buffer without changes over the first `base` bytes of a stored object. A write beyond
    /// `most` bytes fails with `EFBIG`.
    pub(crate) fn new(base: u64, most: u64, allowance: Allowance) -> Self {
        Self {
            file: SpooledTempFile::new(IN_MEMORY),
            allowance,
            len: base,
            base,
            written: RangeSet::new(),
            taken: 0,
            most,
            is_dirty: false,
            is_refused: false,
            origin: None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the pieces of a range, in their order.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let range = range.start.min(self.len)..range.end.min(self.len);
        if range.is_empty() {
            return Vec::new();
        }
        let below = range.start..range.end.min(self.base);
        let gaps = if below.is_empty() { Vec::new() } else { self.written.gaps(&below).collect() };
        let (mut pieces, mut at) = (Vec::new(), range.start);
        for gap in gaps {
            if at < gap.start {
                pieces.push(Piece::Own(at..gap.start));
            }
            at = gap.end;
            pieces.push(Piece::Base(gap));
        }
        if at < range.end {
            pieces.push(Piece::Own(at..range.end));
        }
        pieces
    }

    /// Fills `into` with own bytes from `offset` on; the range is one piece.
    ///
    /// # Errors
    /// The errors of the temporary file.
    pub(crate) fn read_own(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Errno> {
        self.seek(offset)?;
        let mut done = 0;
        while done < into.len() {
            match self.file.read(&mut into[done..]).map_err(|error| errno_of_io(&error))? {
                // The temporary file ends with the last write.
                0 => {
                    into[done..].fill(0);
                    break;
                }
                read => done += read,
            }
        }
        Ok(())
    }

    /// Writes `data`; a gap before them reads as zeros.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, and the errors of the temporary file.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= self.most).ok_or(Errno::EFBIG)?;
        let new = self.written.gaps(&(offset..end)).map(|gap| gap.end - gap.start).sum();
        self.allowance.take(new)?;
        self.taken += new;
        // A cursor in memory would fill a gap with zeros.
        if end > IN_MEMORY as u64 {
            self.file.roll().map_err(|error| errno_of_io(&error))?;
        }
        self.seek(offset)?;
        self.file.write_all(data).map_err(|error| errno_of_io(&error))?;
        self.written.insert(offset..end);
        self.len = self.len.max(end);
        (self.is_dirty, self.is_refused) = (true, false);
        Ok(())
    }

    /// Keeps bytes of the base, which the caller has read: not a change.
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub(crate) fn keep(&mut self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let was_dirty = self.is_dirty;
        self.write(offset, data)?;
        self.is_dirty = was_dirty;
        Ok(())
    }

    /// Returns the ranges of the base that show through.
    ///
    /// # Errors
    /// `ENOSPC`: the allowance has not so many bytes.
    pub(crate) fn missing(&self) -> Result<Vec<Range<u64>>, Errno> {
        let ranges: Vec<_> = self.written.gaps(&(0..self.base)).collect();
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        self.allowance.take(bytes)?;
        self.allowance.give_back(bytes);
        Ok(ranges)
    }

    /// Lets no byte of the base show through any more. The caller has kept them all.
    pub(crate) fn forget_base(&mut self) {
        (self.base, self.origin) = (0, None);
    }

    /// Cuts the contents, or extends them by zeros.
    ///
    /// # Errors
    /// `EFBIG`, and the errors of the temporary file.
    pub(crate) fn set_len(&mut self, len: u64) -> Result<(), Errno> {
        if len > self.most {
            return Err(Errno::EFBIG);
        }
        if len < self.len {
            self.base = self.base.min(len);
            // Behind the cut the file must read as zeros when it grows again.
            self.file.set_len(self.file_end(len)).map_err(|error| errno_of_io(&error))?;
            let cut: u64 =
                self.written.overlapping(&(len..u64::MAX)).map(|range| range.end - range.start.max(len)).sum();
            self.written.remove(len..u64::MAX);
            self.taken -= cut;
            self.allowance.give_back(cut);
        }
        if self.len != len {
            (self.is_dirty, self.is_refused) = (true, false);
        }
        self.len = len;
        Ok(())
    }

    /// Returns the length of the temporary file after a cut at `len`: it has no bytes behind the last write.
    fn file_end(&self, len: u64) -> u64 {
        self.written.last().map_or(0, |last| last.end).min(len)
    }

    /// Notes that the store has all the contents. They are the base now, if there is an origin.
    ///
    /// # Errors
    /// The errors of the temporary file.
    pub(crate) fn stored(&mut self, origin: Option<(Meta, u64)>) -> Result<(), Errno> {
        self.is_dirty = false;
        if origin.is_none() {
            return Ok(());
        }
        self.origin = origin;
        self.file.set_len(0).map_err(|error| errno_of_io(&error))?;
        self.written.clear();
        self.allowance.give_back(core::mem::take(&mut self.taken));
        self.base = self.len;
        Ok(())
    }

    fn seek(&mut self, offset: u64) -> Result<(), Errno> {
        self.file.seek(SeekFrom::Start(offset)).map(drop).map_err(|error| errno_of_io(&error))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.allowance.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contents, over a base of the bytes `b'b'`.
    fn all(buffer: &mut Buffer) -> Vec<u8> {
        let mut all = Vec::new();
        for piece in buffer.pieces(0..u64::MAX) {
            let (Piece::Own(range) | Piece::Base(range)) = &piece;
            assert_eq!(range.start, all.len() as u64);
            let mut bytes = vec![b'b'; (range.end - range.start) as usize];
            if let Piece::Own(range) = piece {
                buffer.read_own(range.start, &mut bytes).unwrap();
            }
            all.extend(bytes);
        }
        all
    }

    #[test]
    fn a_buffer_that_outgrows_memory_keeps_its_bytes() {
        let mut buffer = Buffer::new(0, u64::MAX, Allowance::new(100));
        buffer.write(3, b"text").unwrap();
        buffer.write(2 * IN_MEMORY as u64, b"end").unwrap();
        let bytes = all(&mut buffer);
        assert_eq!((&bytes[..8], &bytes[2 * IN_MEMORY - 1..]), (&b"\0\0\0text\0"[..], &b"\0end"[..]));
        buffer.set_len(5).unwrap();
        buffer.set_len(9).unwrap();
        assert_eq!((&*all(&mut buffer), buffer.len()), (&b"\0\0\0te\0\0\0\0"[..], 9));
    }

    #[test]
    fn the_base_shows_through_between_writes() {
        let mut buffer = Buffer::new(10, u64::MAX, Allowance::new(100));
        assert_eq!((buffer.pieces(0..100), buffer.is_dirty), (vec![Piece::Base(0..10)], false));
        buffer.write(4, b"xy").unwrap();
        buffer.write(12, b"z").unwrap();
        assert_eq!(all(&mut buffer), b"bbbbxybbbb\0\0z");
        buffer.set_len(5).unwrap();
        buffer.set_len(8).unwrap();
        assert_eq!(all(&mut buffer), b"bbbbx\0\0\0");
        buffer.keep(0, b"cccc").unwrap();
        buffer.forget_base();
        assert_eq!(buffer.pieces(0..100), [Piece::Own(0..8)]);
        let meta = Meta { size: 8, modified: 0, tag: "a".into(), has_etag: true, kept: None };
        buffer.stored(Some((meta, 1))).unwrap();
        assert_eq!((buffer.pieces(1..3), buffer.is_dirty), (vec![Piece::Base(1..3)], false));
    }

    #[test]
    fn all_buffers_keep_to_their_allowance() {
        let allowance = Allowance::new(10);
        let [mut one, mut two] = [(); 2].map(|()| Buffer::new(100, u64::MAX, allowance.clone()));
        one.write(0, b"123456").unwrap();
        one.write(3, b"45678").unwrap();
        assert_eq!(two.write(0, b"abc"), Err(Errno::ENOSPC));
        assert_eq!(two.missing(), Err(Errno::ENOSPC));
        assert_eq!((two.is_dirty, two.pieces(0..100)), (false, vec![Piece::Base(0..100)]));
        one.set_len(4).unwrap();
        two.write(0, b"abcdef").unwrap();
        drop(one);
        two.write(6, b"ghij").unwrap();
        assert_eq!(allowance.take(1), Err(Errno::ENOSPC));
        drop(two);
        assert_eq!(allowance.take(10), Ok(()));
    }
}
