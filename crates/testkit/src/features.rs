//! What a file system has.
//!
//! Plain values; what is not there is expected to be refused as the documentation of [`vfs::FileSystem`] says. Own
//! code.

/// What a file system has. Cases of what it has not expect the refusal given here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// A file may have several names; else `EPERM`.
    pub hard_links: bool,
    /// Symbolic links; else `EPERM`.
    pub symlinks: bool,
    /// FIFOs and other nodes; else `EPERM`.
    pub special_files: bool,
    /// Names move; else `EPERM`.
    pub rename: bool,
    /// Two names change places; else `EINVAL`.
    pub exchange: bool,
    /// `user.` attributes; else `EOPNOTSUPP`.
    pub xattrs: bool,
    /// `O_TMPFILE`; else `EOPNOTSUPP`.
    pub unnamed: bool,
    /// An open file without a name is read and written; else `ESTALE`.
    pub open_unlinked: bool,
    /// Modes, owners and times are stored; else `EPERM`.
    pub keeps_attributes: bool,
    /// Storage is reserved and given back; else `EOPNOTSUPP`.
    pub allocate: bool,
    /// Holes of pages are found; else all is data.
    pub holes: bool,
    /// `statfs(2)`; else `ENOSYS`.
    pub statfs: bool,
    /// Names may have any byte but NUL and slash; else ASCII letters, digits, `.`, `-`, `_` only.
    pub all_bytes: bool,
    /// Writing more than so many bytes is `ENOSPC`; `None`: not tried. At least 16 MiB: all cases run within it.
    pub room: Option<u64>,
}

impl Features {
    /// All of them, with no known limit.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            hard_links: true,
            symlinks: true,
            special_files: true,
            rename: true,
            exchange: true,
            xattrs: true,
            unnamed: true,
            open_unlinked: true,
            keeps_attributes: true,
            allocate: true,
            holes: true,
            statfs: true,
            all_bytes: true,
            room: None,
        }
    }
}
