//! Linux error numbers by name.

use std::fmt;

/// A Linux error number (x86-64, aarch64 and riscv agree on those used here).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Errno(pub(crate) i32);

macro_rules! errnos {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(#[allow(dead_code, reason = "some are only printed")]
        pub(crate) const $name: Errno = Errno($number);)*

        impl fmt::Debug for Errno {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($number => f.write_str(stringify!($name)),)*
                    other => write!(f, "errno {other}"),
                }
            }
        }
    };
}

errnos! {
    EPERM = 1, ENOENT = 2, EIO = 5, ENXIO = 6, E2BIG = 7, EBADF = 9, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EBUSY = 16, EEXIST = 17, EXDEV = 18,
    ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, EMFILE = 24, EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30,
    EMLINK = 31, ERANGE = 34, ENAMETOOLONG = 36, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENODATA = 61, EOVERFLOW = 75,
    EOPNOTSUPP = 95, ESTALE = 116,
}
