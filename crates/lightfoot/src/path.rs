//! Types that are paths.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as bytes. Implemented for strings, byte strings and the path types of `std`.
///
/// ```
/// use std::path::Path;
///
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.write("/text", "")?;
/// ctx.write(Path::new("/path"), "")?;
/// ctx.write(b"/not-\xff-utf8", "")?;
/// ctx.write(format!("/{}", 7), "")?;
/// assert_eq!(ctx.read_dir("/")?.count(), 4);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait AsPath {
    /// Returns the path's bytes.
    fn as_path_bytes(&self) -> &[u8];
}

macro_rules! as_path {
    ($($type:ty: |$path:ident| $bytes:expr;)*) => {
        $(impl AsPath for $type {
            #[inline]
            fn as_path_bytes(&self) -> &[u8] {
                let $path = self;
                $bytes
            }
        })*
    };
}

as_path! {
    str: |path| path.as_bytes();
    String: |path| path.as_bytes();
    [u8]: |path| path;
    Vec<u8>: |path| path;
    OsStr: |path| path.as_bytes();
    OsString: |path| path.as_bytes();
    Path: |path| path.as_os_str().as_bytes();
    PathBuf: |path| path.as_os_str().as_bytes();
}

impl<const N: usize> AsPath for [u8; N] {
    #[inline]
    fn as_path_bytes(&self) -> &[u8] {
        self
    }
}

impl<P: AsPath + ?Sized> AsPath for &P {
    #[inline]
    fn as_path_bytes(&self) -> &[u8] {
        (**self).as_path_bytes()
    }
}

impl<P: AsPath + ?Sized + ToOwned> AsPath for std::borrow::Cow<'_, P> {
    #[inline]
    fn as_path_bytes(&self) -> &[u8] {
        (**self).as_path_bytes()
    }
}

/// Converts bytes to a path of `std`.
pub(crate) fn path_buf(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
