//! The body of a reply, which follows the header.
//!
//! # What it is
//! Memory that a thread uses again for each reply. It is as long as the longest body so far, and
//! its bytes are initialised once: a read writes into it without another pass over them. Only the
//! bytes that were written for a reply are sent with it.
//!
//! A body can begin in memory that another owner lends ([`Body::lent`]), from where the reply need
//! not be copied. A body that outgrows this memory moves to its own memory.
//!
//! # Where it comes from
//! `struct fuse_dirent` in `linux/fuse.h`; own code.

use super::abi::{Dirent, DirentPlus, EntryOut};
use zerocopy::{Immutable, IntoBytes};

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub struct Body<'m> {
    memory: Vec<u8>,
    lent: &'m mut [u8],
    /// Whether the reply did not fit into `lent`.
    has_moved: bool,
    /// The length of this reply in bytes.
    len: usize,
}

impl<'m> Body<'m> {
    /// Creates an empty body.
    #[must_use]
    pub const fn new() -> Self {
        Self { memory: Vec::new(), lent: &mut [], has_moved: false, len: 0 }
    }

    /// Creates an empty body that begins in `lent`, and takes `memory` for bytes that do not fit.
    #[must_use]
    pub const fn lent(lent: &'m mut [u8], memory: Vec<u8>) -> Self {
        Self { memory, lent, has_moved: false, len: 0 }
    }

    /// Returns the own memory of the body, for use by another body.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.memory
    }

    /// Returns the bytes that were written for this reply.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if self.has_moved { &self.memory[..self.len] } else { &self.lent[..self.len] }
    }

    /// Empties the body for the next reply.
    pub fn clear(&mut self) {
        (self.len, self.has_moved) = (0, false);
    }

    /// Returns the next `more` bytes, with any contents.
    fn room(&mut self, more: usize) -> &mut [u8] {
        let end = self.len + more;
        if !self.has_moved {
            if end <= self.lent.len() {
                return &mut self.lent[self.len..end];
            }
            self.move_out();
        }
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        &mut self.memory[self.len..end]
    }

    /// Continues in the body's own memory.
    fn move_out(&mut self) {
        if self.memory.len() < self.len {
            self.memory.resize(self.len, 0);
        }
        self.memory[..self.len].copy_from_slice(&self.lent[..self.len]);
        self.has_moved = true;
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends a struct of the protocol.
    pub fn put_struct(&mut self, value: &(impl IntoBytes + Immutable)) {
        self.put(value.as_bytes());
    }

    /// Appends the bytes that `fill` writes to the start of `most` bytes. `fill` returns how many
    /// bytes it wrote.
    ///
    /// # Errors
    /// As for `fill`; then nothing is appended.
    pub fn fill<E>(&mut self, most: usize, fill: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<(), E> {
        let written = fill(self.room(most))?;
        self.len += written.min(most);
        Ok(())
    }

    /// Appends an entry of READDIR, unless the whole body would have more than `limit` bytes.
    /// Returns whether the entry had room.
    pub fn put_dirent(&mut self, limit: usize, dirent: Dirent, name: &[u8]) -> bool {
        self.put_record(limit, &Dirent { namelen: name.len() as u32, ..dirent }, name)
    }

    /// Appends an entry of READDIRPLUS, as [`put_dirent`](Self::put_dirent) does for READDIR.
    pub fn put_dirent_plus(&mut self, limit: usize, entry: EntryOut, dirent: Dirent, name: &[u8]) -> bool {
        let dirent = Dirent { namelen: name.len() as u32, ..dirent };
        self.put_record(limit, &DirentPlus { entry, dirent }, name)
    }

    fn put_record(&mut self, limit: usize, head: &(impl IntoBytes + Immutable), name: &[u8]) -> bool {
        let len = (size_of_val(head) + name.len()).next_multiple_of(8);
        if self.len + len > limit {
            return false;
        }
        let end = self.len + len;
        self.put_struct(head);
        self.put(name);
        // The memory may have bytes of an earlier reply.
        self.room(end - self.len).fill(0);
        self.len = end;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_padded_with_zeros_and_stay_below_the_limit() {
        let mut body = Body::new();
        body.put(&[0xff; 200]);
        body.clear();
        let dirent = Dirent { ino: 7, off: 9, namelen: 0, kind: 4 };
        assert!(body.put_dirent(64, dirent, b"abc") && body.put_dirent(64, dirent, b"12345678"));
        assert!(!body.put_dirent(64, dirent, b""), "it is full");
        let one =
            [&7u64.to_ne_bytes()[..], &9u64.to_ne_bytes(), &3u32.to_ne_bytes(), &4u32.to_ne_bytes(), b"abc\0\0\0\0\0"];
        let two = [&7u64.to_ne_bytes()[..], &9u64.to_ne_bytes(), &8u32.to_ne_bytes(), &4u32.to_ne_bytes(), b"12345678"];
        assert_eq!(body.bytes(), [one.concat(), two.concat()].concat());
        body.clear();
        assert!(body.put_dirent_plus(200, EntryOut { nodeid: 3, ..EntryOut::default() }, dirent, b"x"));
        assert_eq!((body.bytes().len(), body.bytes()[0], body.bytes()[152]), (160, 3, b'x'));
    }

    #[test]
    fn a_body_stays_in_lent_memory_as_long_as_it_fits() {
        let mut lent = [0xff; 8];
        let at = lent.as_ptr();
        let mut body = Body::lent(&mut lent, vec![0xee; 3]);
        body.put(b"12345678");
        assert_eq!((body.bytes(), body.bytes().as_ptr()), (&b"12345678"[..], at));
        body.put(b"9");
        assert_eq!(body.bytes(), b"123456789");
        assert_ne!(body.bytes().as_ptr(), at);
        body.clear();
        assert_eq!(body.fill(9, |room| Err::<usize, _>(room.len())), Err(9));
        assert_eq!(body.bytes(), b"");
        body.clear();
        body.put(b"x");
        assert_eq!((body.bytes(), body.bytes().as_ptr()), (&b"x"[..], at), "the next reply begins there again");
        assert_eq!(body.into_memory().len(), 9);
    }

    #[test]
    fn only_what_was_written_leaves() {
        let mut body = Body::new();
        body.put(b"secret");
        body.clear();
        assert_eq!(
            body.fill(6, |room| {
                room[0] = b'a';
                Ok::<_, ()>(1)
            }),
            Ok(())
        );
        assert_eq!(body.bytes(), b"a");
        assert_eq!(body.fill(6, |_| Err(5)), Err(5));
        assert_eq!(body.fill(2, |_| Ok::<_, ()>(usize::MAX)), Ok(()));
        assert_eq!(body.bytes().len(), 3, "no more than there was room for");
    }
}
