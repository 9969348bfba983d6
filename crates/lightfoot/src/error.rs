//! Errors for programs: the `io::Error` of an error number.

/// An error number with its name. Operations return [`std::io::Error`], which has the number; file systems return this.
///
/// ```
/// use lightfoot::{Errno, Vfs};
///
/// let error = Vfs::ram().context().read("/none").unwrap_err();
/// assert_eq!(error.raw_os_error(), Some(Errno::ENOENT.raw()));
/// assert_eq!(Errno::ENOENT.name(), "ENOENT");
/// assert_eq!(std::io::Error::from(Errno::EROFS).kind(), std::io::ErrorKind::ReadOnlyFilesystem);
/// ```
pub use vfs::Errno;

pub(crate) fn error(errno: Errno) -> std::io::Error {
    errno.into()
}
