//! File descriptors: a close whose error the caller receives.
//!
//! # What it is not
//! For lock code. A simulated machine has no files, and no such module.
//!
//! # Where it comes from
//! `close(2)`; the standard library and `rustix` drop the error of a descriptor that they close.

use rustix::io::Errno;
use std::os::fd::{IntoRawFd, OwnedFd};

/// Closes a descriptor, also if it returns an error: that of what the file system writes when a descriptor is closed.
///
/// # Errors
/// `EIO`, `ENOSPC`, `EDQUOT`; `EINTR` if a signal ended the wait.
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: `fd` owned the descriptor and gave it up, so this is its only close.
    unsafe { rustix::io::try_close(fd.into_raw_fd()) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_descriptor_is_closed() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert_eq!(close(writer.into()), Ok(()));
        assert_eq!(std::io::read_to_string(reader).expect("a pipe"), "", "it has no writer any more");
    }
}
