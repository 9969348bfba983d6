//! Error numbers, as on Linux on x86-64 and every other architecture with the generic table.

use crate::base::cancel::Cancel;

/// An error number of `errno(3)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($number);)*

            /// Returns the symbolic name; `"E?"` for a number that this crate never returns.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self.0 { $($number => stringify!($name),)* _ => "E?" }
            }

            /// Returns a description of the error.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self.0 { $($number => $text,)* _ => "Unknown error" }
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted";
    ENOENT = 2, "No such file or directory";
    EINTR = 4, "Interrupted system call";
    EIO = 5, "Input/output error";
    ENXIO = 6, "No such device or address";
    E2BIG = 7, "Argument list too long";
    EBADF = 9, "Bad file descriptor";
    EAGAIN = 11, "Resource temporarily unavailable";
    ENOMEM = 12, "Cannot allocate memory";
    EACCES = 13, "Permission denied";
    EBUSY = 16, "Device or resource busy";
    EEXIST = 17, "File exists";
    EXDEV = 18, "Invalid cross-device link";
    ENODEV = 19, "No such device";
    ENOTDIR = 20, "Not a directory";
    EISDIR = 21, "Is a directory";
    EINVAL = 22, "Invalid argument";
    ENFILE = 23, "Too many open files in system";
    EMFILE = 24, "Too many open files";
    ENOTTY = 25, "Inappropriate ioctl for device";
    ETXTBSY = 26, "Text file busy";
    EFBIG = 27, "File too large";
    ENOSPC = 28, "No space left on device";
    ESPIPE = 29, "Illegal seek";
    EROFS = 30, "Read-only file system";
    EMLINK = 31, "Too many links";
    ERANGE = 34, "Numerical result out of range";
    EDEADLK = 35, "Resource deadlock avoided";
    ENAMETOOLONG = 36, "File name too long";
    ENOLCK = 37, "No locks available";
    ENOSYS = 38, "Function not implemented";
    ENOTEMPTY = 39, "Directory not empty";
    ELOOP = 40, "Too many levels of symbolic links";
    ENODATA = 61, "No data available";
    EOVERFLOW = 75, "Value too large for defined data type";
    EOPNOTSUPP = 95, "Operation not supported";
    ETIMEDOUT = 110, "Connection timed out";
    ESTALE = 116, "Stale file handle";
    EDQUOT = 122, "Disk quota exceeded";
    ECANCELED = 125, "Operation canceled";
}

impl Errno {
    /// Returns an error that the host returned.
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// Returns the number, for `std::io::Error::from_raw_os_error`.
    #[must_use]
    pub fn raw(self) -> i32 {
        self.0
    }
}

impl core::fmt::Debug for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.text(), self.name())
    }
}

impl core::error::Error for Errno {}

impl From<Errno> for std::io::Error {
    /// Converts the error. `EINTR` of a cancelled call becomes `ECANCELED`: the loops of `std::io` repeat
    /// a call that fails with `EINTR`, and a cancelled call would fail each time.
    fn from(errno: Errno) -> Self {
        let is_cancelled = || Cancel::current().is_some_and(|cancel| cancel.is_cancelled());
        let is_final = errno == Errno::EINTR && is_cancelled();
        std::io::Error::from_raw_os_error(if is_final { Errno::ECANCELED.raw() } else { errno.raw() })
    }
}
