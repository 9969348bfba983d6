//! Errors of OpenDAL as errnos.

use opendal::{Error, ErrorKind};
use vfs::Errno;

/// Returns the errno for an error of the store, after all retries.
pub(crate) fn errno_of(error: &Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound => Errno::ENOENT,
        ErrorKind::PermissionDenied => Errno::EACCES,
        ErrorKind::IsADirectory => Errno::EISDIR,
        ErrorKind::NotADirectory => Errno::ENOTDIR,
        ErrorKind::AlreadyExists | ErrorKind::ConditionNotMatch => Errno::EEXIST,
        ErrorKind::RateLimited | ErrorKind::Conflict => Errno::EAGAIN,
        ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        ErrorKind::ConfigInvalid | ErrorKind::IsSameFile => Errno::EINVAL,
        _ => Errno::EIO,
    }
}

/// Returns the errno for an error of a temporary file.
pub(crate) fn errno_of_io(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// Returns `errno`, or `ESTALE` for `ENOENT`: the object of an open file, or of a name in the
/// cache, no longer exists.
pub(crate) fn gone(errno: Errno) -> Errno {
    if errno == Errno::ENOENT { Errno::ESTALE } else { errno }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_errno() {
        let cases = [
            (ErrorKind::NotFound, Errno::ENOENT),
            (ErrorKind::PermissionDenied, Errno::EACCES),
            (ErrorKind::IsADirectory, Errno::EISDIR),
            (ErrorKind::NotADirectory, Errno::ENOTDIR),
            (ErrorKind::AlreadyExists, Errno::EEXIST),
            (ErrorKind::ConditionNotMatch, Errno::EEXIST),
            (ErrorKind::RateLimited, Errno::EAGAIN),
            (ErrorKind::Conflict, Errno::EAGAIN),
            (ErrorKind::Unsupported, Errno::EOPNOTSUPP),
            (ErrorKind::ConfigInvalid, Errno::EINVAL),
            (ErrorKind::IsSameFile, Errno::EINVAL),
            (ErrorKind::RangeNotSatisfied, Errno::EIO),
            (ErrorKind::Unexpected, Errno::EIO),
        ];
        for (kind, errno) in cases {
            assert_eq!(errno_of(&Error::new(kind, "")), errno, "{kind}");
        }
        assert_eq!(errno_of_io(&std::io::Error::from_raw_os_error(28)), Errno::ENOSPC);
    }
}
