//! Options for opening a file.

use super::File;
use crate::error::error;
use crate::path::AsPath;
use crate::view::View;
use std::io;
use vfs::{Errno, OpenFlags, Resolve};

/// Options for opening a file: the options of `std`, and Linux's flags by number.
///
/// ```
/// use lightfoot::{OpenOptions, Resolve, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let secret = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&ctx, "/secret")?;
/// assert_eq!(secret.metadata()?.mode() & 0o777, 0o600);
///
/// ctx.symlink("/secret", "/link")?;
/// let careful = OpenOptions::new().read(true).resolve(Resolve::NO_SYMLINKS).open(&ctx, "/link");
/// assert_eq!(careful.unwrap_err().raw_os_error(), Some(40)); // ELOOP
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are std's options")]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    mode: u32,
    custom_flags: u32,
    resolve: Resolve,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty;)*) => {
        $($(#[doc = $doc])*
        pub fn $name(&mut self, $name: $type) -> &mut Self {
            self.$name = $name;
            self
        })*
    };
}

impl OpenOptions {
    /// Returns options without any set; a new file gets mode 0666 less the umask.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            mode: 0o666,
            custom_flags: 0,
            resolve: Resolve::default(),
        }
    }

    options! {
        /// For reading.
        read: bool;
        /// For writing.
        write: bool;
        /// For writing at the end.
        append: bool;
        /// Truncate the file.
        truncate: bool;
        /// Create the file if it does not exist.
        create: bool;
        /// Create the file, which must not exist.
        create_new: bool;
        /// Permission bits of a new file, before the umask.
        mode: u32;
        /// Further flags by Linux's numbers on x86-64, in place of those given before: `O_DIRECTORY` 0o200000,
        /// `O_NOFOLLOW` 0o400000, `O_NOATIME` 0o1000000, `O_PATH` 0o10000000, `O_TMPFILE` 0o20200000 (at the path of a
        /// directory; with `write`). The access mode in them is ignored.
        custom_flags: u32;
        /// Limits of the walk, added to the limits of a [`Dir`](crate::Dir): `openat2(2)`.
        resolve: Resolve;
    }

    /// Opens `path`.
    ///
    /// # Errors
    /// `EINVAL` for options that exclude each other, as in `std`; else as for `open(2)`, and for
    /// `openat2(2)` with [`OpenOptions::resolve`].
    pub fn open(&self, view: &View, path: impl AsPath) -> io::Result<File> {
        let flags = self.flags().ok_or_else(|| error(Errno::EINVAL))?;
        view.open_flags(path.as_path_bytes(), flags, self.mode, self.resolve)
    }

    /// Returns the flags of `open(2)`; `None` for options that exclude each other.
    fn flags(&self) -> Option<OpenFlags> {
        let writes = self.write || self.append;
        let access = match (self.read, writes) {
            (true, false) => OpenFlags::RDONLY,
            (false, true) => OpenFlags::WRONLY,
            (true, true) => OpenFlags::RDWR,
            (false, false) => return None,
        };
        let makes = self.truncate || self.create || self.create_new;
        if (makes && !writes) || (self.append && self.truncate && !self.create_new) {
            return None;
        }
        let flag = |flag: OpenFlags, is_set: bool| if is_set { flag } else { OpenFlags::default() };
        let creation = flag(OpenFlags::CREAT, self.create || self.create_new)
            | flag(OpenFlags::EXCL, self.create_new)
            | flag(OpenFlags::TRUNC, self.truncate && !self.create_new);
        // As in std: the access mode is set by the options alone.
        let custom = OpenFlags::from_bits_retain(self.custom_flags & !3);
        Some(access | flag(OpenFlags::APPEND, self.append) | creation | custom)
    }
}
