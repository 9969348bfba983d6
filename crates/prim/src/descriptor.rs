//! File descriptors: a close whose error the caller receives, and reflinks of ranges.
//!
//! # What it is not
//! For lock code. A simulated machine has no files, and no such module.
//!
//! # Where it comes from
//! `close(2)`; the standard library and `rustix` drop the error of a descriptor that they close. `ioctl_ficlonerange(2)`, of which
//! `rustix` has only the form for whole files.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Closes a descriptor, also if it returns an error: the error of data that the file system writes
/// at the close.
///
/// # Errors
/// `EIO`, `ENOSPC`, `EDQUOT`; `EINTR` if a signal ended the wait.
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: `fd` owned the descriptor and gave it up, so this is its only close.
    unsafe { rustix::io::try_close(fd.into_raw_fd()) }
}

/// Makes `len` bytes of the second file, at its offset, share the storage of the same number of
/// bytes of the first; 0 bytes: up to the end of the first.
///
/// # Errors
/// `EOPNOTSUPP`, `ENOTTY` if the file system has no reflinks; `EXDEV`, `EINVAL`, `EBADF`, `EPERM`, `ETXTBSY`, `ENOSPC`...
pub fn clone_range(
    (from, offset): (BorrowedFd<'_>, u64),
    (to, at): (BorrowedFd<'_>, u64),
    len: u64,
) -> Result<(), Errno> {
    let range = libc::file_clone_range {
        src_fd: from.as_raw_fd().into(),
        src_offset: offset,
        src_length: len,
        dest_offset: at,
    };
    // SAFETY: the call reads one value of this type, which lives until it returns.
    let done = unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONERANGE, &raw const range) };
    if done < 0 { Err(crate::file_handle::last_error()) } else { Ok(()) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_range_is_cloned_or_the_host_says_that_it_cannot() {
        let (from, to) = (tempfile(b"source"), tempfile(b""));
        match clone_range((from.as_fd(), 0), (to.as_fd(), 0), 0) {
            Ok(()) => assert_eq!(to.metadata().expect("attributes").len(), 6),
            Err(error) => assert!([Errno::OPNOTSUPP, Errno::NOTTY].contains(&error), "{error}"),
        }
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert!(clone_range((reader.as_fd(), 0), (writer.as_fd(), 0), 0).is_err());
    }

    /// Returns a file without a name, with this text.
    fn tempfile(text: &[u8]) -> std::fs::File {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.read(true).write(true).custom_flags(flags).open(std::env::temp_dir()).expect("a file");
        file.write_all(text).expect("room");
        file
    }

    #[test]
    fn a_closed_descriptor_is_closed() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert_eq!(close(writer.into()), Ok(()));
        assert_eq!(std::io::read_to_string(reader).expect("a pipe"), "", "it has no writer any more");
    }
}
