//! Opening files.

use super::{File, OpenOptions};
use crate::path::AsPath;
use crate::view::View;
use std::io;

/// # Opening
///
/// As in `std`, with the tree as one more argument. [`View`] has methods for the same operations.
///
/// ```
/// use lightfoot::{File, Vfs};
/// use std::io::{Read, Seek, Write};
///
/// let ctx = Vfs::ram().context();
/// let mut file = File::create_new(&ctx, "/file")?; // For reading and writing; the file must not exist.
/// file.write_all(b"hello")?;
/// file.rewind()?;
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Opens for reading.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(view: &View, path: impl AsPath) -> io::Result<File> {
        view.open(path)
    }

    /// Opens for writing; creates the file or truncates it.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create(view: &View, path: impl AsPath) -> io::Result<File> {
        view.create(path)
    }

    /// Creates a file, which must not exist, for reading and writing.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create_new(view: &View, path: impl AsPath) -> io::Result<File> {
        view.create_new(path)
    }

    /// Returns options to open a file with: [`OpenOptions::new`].
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Returns another handle of the same open file: `dup(2)`. Both share the position and the
    /// locks, which are released when the last handle is closed.
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn try_clone(&self) -> io::Result<File> {
        Ok(Self { shared: self.shared.clone() })
    }
}
