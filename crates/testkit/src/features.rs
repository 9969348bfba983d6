//! Features of a file system.
//!
//! Plain values. A case expects that a missing feature is refused as the documentation of [`vfs::FileSystem`] requires. Own
//! code.

/// Features of a file system. Where one is missing, cases expect the error that is given here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// A file may have several names; else `EPERM` or `EOPNOTSUPP`.
    pub hard_links: bool,
    /// Symbolic links; else `EPERM` or `EOPNOTSUPP`.
    pub symlinks: bool,
    /// FIFOs and other nodes; else `EPERM` or `EOPNOTSUPP`.
    pub special_files: bool,
    /// `rename(2)`; else `EPERM`.
    pub rename: bool,
    /// `RENAME_EXCHANGE`; else `EINVAL`.
    pub exchange: bool,
    /// `user.` attributes; else `EOPNOTSUPP`.
    pub xattrs: bool,
    /// `O_TMPFILE`; else `EOPNOTSUPP`.
    pub unnamed: bool,
    /// An open file without a name can be read and written; else `ESTALE`.
    pub open_unlinked: bool,
    /// A file can be opened if another one has taken its name since it was looked up; else `ESTALE`.
    pub open_replaced: bool,
    /// Modes, owners and times are stored; else `EPERM`, and a new file may get another mode than was requested.
    pub keeps_attributes: bool,
    /// ACLs are stored and obeyed; else they are not tested.
    pub acls: bool,
    /// The links of a directory count its subdirectories; else a directory has 1.
    pub counts_subdirectories: bool,
    /// `fallocate(2)`; else `EOPNOTSUPP`.
    pub allocate: bool,
    /// Holes are found by `lseek(2)`; else everything counts as data.
    pub holes: bool,
    /// Files can share storage ([`vfs::Copying::Share`]); else `EOPNOTSUPP`.
    pub reflinks: bool,
    /// `statfs(2)`; else `ENOSYS`.
    pub statfs: bool,
    /// Files have ids ([`vfs::FileSystem::id`]); else handles fail with `EOPNOTSUPP`.
    pub ids: bool,
    /// Names may contain any byte except NUL and slash; else only ASCII letters, digits, `.`, `-`, `_`.
    pub all_bytes: bool,
    /// Writing more than this many bytes fails with `ENOSPC`; `None`: not tested. At least 16 MiB, which all cases fit in.
    pub room: Option<u64>,
    /// A user has a quota, beyond which changes fail with `EDQUOT`; `None`: not tested. Needs `keeps_attributes`.
    pub quota: Option<Quota>,
}

/// The quota of one user. It does not limit callers with `CAP_SYS_RESOURCE` ([`vfs::Request::privileged`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The user, without files before a case.
    pub user: u32,
    /// A user who can still store as much as half of the quota when the quota is used up.
    pub other: u32,
    /// Bytes that the user can store at most: 256 KiB or more.
    pub bytes: u64,
    /// Files and directories that the user can have at most: 8 or more; `None`: not tested.
    pub files: Option<u64>,
    /// A file counts for its owner, as in Linux: also when another user writes it, and after a `chown(2)`, which fails with
    /// `EDQUOT` if the new owner has no room. Else neither is tested.
    pub follows_owner: bool,
}

impl Features {
    /// Returns all features, without a limit.
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
            open_replaced: true,
            keeps_attributes: true,
            acls: true,
            counts_subdirectories: true,
            allocate: true,
            holes: true,
            reflinks: true,
            statfs: true,
            ids: true,
            all_bytes: true,
            room: None,
            quota: None,
        }
    }
}
