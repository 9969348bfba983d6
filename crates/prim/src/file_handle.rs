//! Handles of the host's files, by which a file is opened without its name.
//!
//! # What it is not
//! For lock code. A simulated machine has no files, and no such module.
//!
//! # Where it comes from
//! `name_to_handle_at(2)`, `open_by_handle_at(2)`; `rustix` has neither.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The most bytes of a handle: `MAX_HANDLE_SZ`.
const MOST: usize = 128;

/// `struct file_handle`, with room for any.
#[repr(C)]
struct Raw {
    len: u32,
    kind: i32,
    bytes: [u8; MOST],
}

/// Returns the handle of a descriptor's file: its type, and its bytes.
///
/// # Errors
/// `EOPNOTSUPP` if the file system has no handles; `EPERM`, `ENOSYS` by a filter of system calls.
pub fn name_to_handle(file: BorrowedFd<'_>) -> Result<(i32, Vec<u8>), Errno> {
    let mut raw = Raw { len: MOST as u32, kind: 0, bytes: [0; MOST] };
    let mut mount: libc::c_int = 0;
    let (number, fd, name) = (libc::SYS_name_to_handle_at, file.as_raw_fd(), c"".as_ptr());
    // SAFETY: the name ends with a zero, `raw` has the room that it states, and both pointers are of live values of the call's types.
    let done = unsafe { libc::syscall(number, fd, name, &raw mut raw, &raw mut mount, libc::AT_EMPTY_PATH) };
    if done < 0 {
        return Err(last_error());
    }
    let bytes = raw.bytes.get(..raw.len as usize).ok_or(Errno::OVERFLOW)?;
    Ok((raw.kind, bytes.to_vec()))
}

/// Opens the file with this handle, on the file system of `mount`. Needs `CAP_DAC_READ_SEARCH`.
///
/// # Errors
/// `ESTALE`: the file was removed; `EINVAL`: the bytes are not a handle; `EPERM` without the
/// capability; as for `open(2)`.
pub fn open_by_handle(mount: BorrowedFd<'_>, (kind, bytes): (i32, &[u8]), flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut raw = Raw { len: bytes.len() as u32, kind, bytes: [0; MOST] };
    raw.bytes.get_mut(..bytes.len()).ok_or(Errno::INVAL)?.copy_from_slice(bytes);
    let (number, flags) = (libc::SYS_open_by_handle_at, flags | OFlags::CLOEXEC);
    // SAFETY: `raw` has the bytes that it states.
    let fd = unsafe { libc::syscall(number, mount.as_raw_fd(), &raw mut raw, flags.bits()) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(last_error)?;
    // SAFETY: the call returned a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_is_opened_by_its_handle_where_that_is_allowed() {
        let file = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).expect("this directory");
        let Ok((kind, bytes)) = name_to_handle(file.as_fd()) else { return };
        assert!(!bytes.is_empty());
        match open_by_handle(file.as_fd(), (kind, &bytes), OFlags::PATH) {
            Ok(again) => {
                let number = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).expect("attributes").st_ino;
                assert_eq!(number(again.as_fd()), number(file.as_fd()));
            }
            Err(error) => assert_eq!(error, Errno::PERM),
        }
        let too_long = open_by_handle(file.as_fd(), (kind, &[0; MOST + 1]), OFlags::PATH);
        assert_eq!(too_long.map(drop), Err(Errno::INVAL));
    }
}
