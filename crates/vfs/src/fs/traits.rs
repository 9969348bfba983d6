//! Constant properties of a file system, read once, when it is mounted.

use crate::base::valid::Valid;
use std::borrow::Cow;

/// Constant properties of a file system: [`FileSystem::traits`](crate::FileSystem::traits). The default fits
/// a file system that keeps its own names and has no changes behind the cache. Fields may be added: end with
/// `..FsTraits::default()`.
#[derive(Debug)]
pub struct FsTraits {
    /// The name of its type in a list of mounts.
    pub type_name: Cow<'static, str>,
    /// Where its names and the attributes of its files live.
    pub names: NameStore,
    /// How names are compared, unless byte by byte.
    pub name_rules: Option<Box<dyn NameRules>>,
    /// Whether the VFS calls it when files are opened and closed.
    pub opens: Opens,
    /// ACLs may be set: the file system stores them as extended attributes, and returns them with each inode
    /// ([`NewInode::access_acl`](crate::NewInode::access_acl)). Otherwise they are refused with `EOPNOTSUPP`: a file whose ACL is lost
    /// with its cached inode would have more rights than the ACL gave.
    pub acls: bool,
    /// The bytes of a block, if files can share blocks ([`Copying::Share`](crate::Copying::Share));
    /// 0 if they cannot. The VFS checks that a shared range begins and ends at blocks. 1: the file
    /// system checks it (`EINVAL`).
    pub reflinks: u32,
    /// A cancelled call ends soon, with `EINTR`: [`Cancel`](crate::Cancel).
    /// [`Bounded`](crate::Bounded) has this property. With it a front end cancels a call that a
    /// signal interrupts: [`Vfs::is_cancellable`](crate::Vfs::is_cancellable).
    pub is_cancellable: bool,
    /// It checks itself whether the user of each [`Request`](crate::Request) may make a change, since
    /// others change its files as well: [`Vfs::checks_callers`](crate::Vfs::checks_callers).
    pub checks_callers: bool,
}

impl FsTraits {
    /// Returns the traits of a wrapper of the file system that has these: its own methods may wait
    /// ([`CachedNames::never_waits`]).
    #[must_use]
    pub fn waiting(mut self) -> Self {
        if let NameStore::Cache(names) = &mut self.names {
            names.never_waits = false;
        }
        self
    }

    /// See [`CachedNames::never_waits`].
    pub(crate) fn never_waits(&self) -> bool {
        matches!(self.names, NameStore::Cache(CachedNames { never_waits: true, .. }))
    }
}

impl Default for FsTraits {
    fn default() -> Self {
        Self {
            type_name: Cow::Borrowed("lightfoot"),
            names: NameStore::default(),
            name_rules: None,
            opens: Opens::No,
            acls: false,
            reflinks: 0,
            is_cancellable: false,
            checks_callers: false,
        }
    }
}

/// Where the names of a file system and the attributes of its files live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStore {
    /// In the cache alone, as in a RAM file system: the VFS evicts none, answers misses and
    /// listings without a call, and keeps the attributes by the rules of POSIX.
    Cache(CachedNames),
    /// In the file system: the cache has copies.
    FileSystem(OwnNames),
}

impl Default for NameStore {
    fn default() -> Self {
        Self::FileSystem(OwnNames::default())
    }
}

/// Properties of a file system whose names live in the cache alone: [`NameStore::Cache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedNames {
    /// The bytes that each entry adds to the `st_size` of its directory.
    pub entry_size: u64,
    /// Its methods wait for nothing but memory, and locks that no thread holds for long: for no device, no other process, no
    /// grace period. The VFS then creates, renames and removes names in the section of the walk, in which no
    /// memory that any thread of the tree replaced is freed. A [`Layer`](crate::Layer) never has it: its own methods may wait.
    /// A front end may serve many callers with one thread: [`Vfs::may_wait`](crate::Vfs::may_wait).
    pub never_waits: bool,
    /// Several threads may create, link, rename and remove different names of one directory at
    /// once. With this property the VFS lets them do so in directories for which threads often
    /// wait. (Directories are moved, and names exchanged, one at a time.) Meanwhile the length,
    /// links and times of that directory in [`Inode::attr`](crate::Inode::attr) lack some of the
    /// changes. The file system must not change these attributes, or mark them stale.
    pub changes_in_parallel: bool,
}

/// Properties of a file system that keeps its own names: [`NameStore::FileSystem`]. Fields may be added: end with `..OwnNames::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnNames {
    /// How long new entries and negative entries are valid, at most: an answer about their directory that is valid for a
    /// time limits them, too.
    pub valid: Valid,
    /// Whole listings may be cached. They answer further listings, and lookups of names that they do not
    /// contain, until the directory changes.
    pub keeps_listings: bool,
    /// Its methods may take long, or hang: it is on a network, or on the other side of a protocol.
    /// The VFS calls such a file system without the lock of a directory. A listing takes the lock
    /// after the call. Creation, `link`, `unlink` and `rename`, with the lookups that they need,
    /// lock the *names* that they change. So one stuck call delays only the removal of the
    /// directory and a second change of the same name; that change fails with `ETIMEDOUT` at its
    /// deadline ([`Context::set_timeout_ns`](crate::Context::set_timeout_ns)). Different names of
    /// one directory change at once, beside lookups, listings, and changes of the directory's own
    /// name. A change locks the directory twice, and a table of locked names.
    pub remote: bool,
    /// The keeper of links, lengths and times.
    pub attributes: Attributes,
    /// The keeper of modes and ACLs.
    pub modes: Modes,
}

/// The keeper of the attributes of files: [`OwnNames::attributes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// The VFS, by the rules of POSIX.
    #[default]
    Cache,
    /// The file system. The attributes that the VFS notes after a change are a guess, and it
    /// requests them ([`FileSystem::attributes`](crate::FileSystem::attributes)) before it shows
    /// them again. The file system also refuses to link a file that has lost its last name
    /// (`ENOENT`).
    FileSystem {
        /// Changes return attributes ([`After`](crate::After)), and the VFS shows these. It
        /// requests attributes only after a change that returned none, and where two changes of one
        /// file overlapped.
        with_changes: bool,
    },
}

/// The keeper of modes and ACLs: [`OwnNames::modes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// The VFS, by the rules of POSIX; the file system stores them.
    #[default]
    Cache,
    /// The file system, by the same rules: it clears set-id bits when a caller without
    /// [`Capabilities::FSETID`](crate::Capabilities::FSETID) changes contents, applies the default ACL of a directory or
    /// the umask ([`Request::umask`](crate::Request::umask)) to new files, and keeps mode and access ACL equal. The VFS only updates
    /// its copies.
    FileSystem {
        /// The VFS obeys the ACLs of the file system, which it reads again by
        /// [`FileSystem::get_xattr`](crate::FileSystem::get_xattr) whenever it reads attributes again. Otherwise it ignores
        /// them: a front end's kernel checks.
        applies_acls: bool,
    },
}

/// Whether the VFS calls a file system when files are opened and closed: [`FsTraits::opens`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opens {
    /// The VFS does not call the file system for opens and closes.
    #[default]
    No,
    /// It calls [`FileSystem::open`](crate::FileSystem::open) and [`FileSystem::release`](crate::FileSystem::release), for regular files
    /// and directories.
    Yes {
        /// It also calls [`FileSystem::flush`](crate::FileSystem::flush), as closing a file can fail.
        flush: bool,
    },
}

/// How a file system hashes and compares names, if not byte by byte: case-insensitive directories. Called in rcu-walk, so
/// it must not block.
pub trait NameRules: Send + Sync + 'static {
    /// Returns the hash of `name`, equal for names that are [`NameRules::equal`]. `key` is random for each tree.
    fn hash(&self, key: u64, name: &[u8]) -> u64;

    /// Returns whether both are the same name.
    fn equal(&self, a: &[u8], b: &[u8]) -> bool;
}

impl core::fmt::Debug for dyn NameRules {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NameRules")
    }
}
