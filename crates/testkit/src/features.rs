//! Features of a file system.
//!
//! Plain values. A case expects that a missing feature is refused as the documentation of
//! [`vfs::FileSystem`] requires. Own code.

/// The features of a file system. Where a feature is missing, cases expect the error that is given
/// here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// Whether a file may have several names; if false, `link(2)` fails with `EPERM` or
    /// `EOPNOTSUPP`.
    pub hard_links: bool,
    /// Whether symbolic links can be made; if false, `symlink(2)` fails with `EPERM` or
    /// `EOPNOTSUPP`.
    pub symlinks: bool,
    /// Whether FIFOs and other special files can be made; if false, `mknod(2)` fails with `EPERM`
    /// or `EOPNOTSUPP`.
    pub special_files: bool,
    /// Whether names can be changed; if false, `rename(2)` fails with `EPERM`.
    pub rename: bool,
    /// Whether two names can be exchanged; if false, `RENAME_EXCHANGE` fails with `EINVAL`.
    pub exchange: bool,
    /// Whether files can have `user.` attributes; if false, calls for them fail with `EOPNOTSUPP`.
    pub xattrs: bool,
    /// Whether files without names can be made; if false, `O_TMPFILE` fails with `EOPNOTSUPP`.
    pub unnamed: bool,
    /// Whether an open file without a name can be read and written; if false, this fails with
    /// `ESTALE`.
    pub open_unlinked: bool,
    /// Whether a file can be opened if another file has taken its name since the lookup; if false,
    /// the open fails with `ESTALE`.
    pub open_replaced: bool,
    /// Whether modes, owners and times are stored; if false, changes fail with `EPERM`, and a new
    /// file may get another mode than was requested.
    pub keeps_attributes: bool,
    /// Whether modes can have set-user-ID and set-group-ID bits; if false, they are not tested.
    pub set_ids: bool,
    /// Whether ACLs are stored and obeyed; if false, ACLs are not tested.
    pub acls: bool,
    /// Whether the links of a directory count its subdirectories; if false, a directory has 1 link.
    pub counts_subdirectories: bool,
    /// Whether storage can be reserved and freed; if false, `fallocate(2)` fails with `EOPNOTSUPP`.
    pub allocate: bool,
    /// Whether `lseek(2)` finds holes; if false, everything counts as data.
    pub holes: bool,
    /// Whether files can share storage ([`vfs::Copying::Share`]); if false, such a copy fails with
    /// `EOPNOTSUPP`.
    pub reflinks: bool,
    /// Whether the file system reports its figures; if false, `statfs(2)` fails with `ENOSYS`.
    pub statfs: bool,
    /// Whether files have ids ([`vfs::FileSystem::id`]); if false, handles fail with `EOPNOTSUPP`.
    pub ids: bool,
    /// Whether names may contain any byte except NUL and slash; if false, names may contain only
    /// ASCII letters, digits, `.`, `-`, `_`.
    pub all_bytes: bool,
    /// The number of bytes beyond which writes fail with `ENOSPC`: at least 16 MiB, which all cases
    /// fit in. `None`: not tested.
    pub room: Option<u64>,
    /// The quota of a user, beyond which changes fail with `EDQUOT`; needs `keeps_attributes`.
    /// `None`: not tested.
    pub quota: Option<Quota>,
}

/// The quota of one user. The quota does not limit callers with `CAP_SYS_RESOURCE`
/// ([`vfs::Request::privileged`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The user. It has no files before a case.
    pub user: u32,
    /// Another user, which can still store as much as half of the quota when the quota is used up.
    pub other: u32,
    /// The most bytes that the user can store: 256 KiB or more.
    pub bytes: u64,
    /// The most files and directories that the user can have: 8 or more. `None`: not tested.
    pub files: Option<u64>,
    /// Whether a file counts for its owner, as in Linux. The file then counts for the owner also
    /// when another user writes it, and after a `chown(2)`, which fails with `EDQUOT` if the new
    /// owner has no room. If false, writes by another user and `chown(2)` are not tested with a
    /// quota.
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
            set_ids: true,
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
