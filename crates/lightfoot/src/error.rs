//! Errors for programs: the `io::Error` of an error number.

use vfs::Errno;

pub(crate) fn error(errno: Errno) -> std::io::Error {
    errno.into()
}
