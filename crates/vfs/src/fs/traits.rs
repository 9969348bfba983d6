//! Constant properties of a file system, read once, when it is mounted.

use crate::base::valid::Valid;
use std::borrow::Cow;

/// Constant properties of a file system: [`FileSystem::traits`](crate::FileSystem::traits). The default fits
/// a file system that keeps its own names and has no changes behind the cache. Fields may be added: end with
/// `..FsTraits::default()`.
pub struct FsTraits {
    /// The name of its type in a list of mounts.
    pub type_name: Cow<'static, str>,
    /// All names live in the dentry cache (a RAM file system): the VFS answers misses and listings without a
    /// call.
    pub names_in_cache: bool,
    /// Whole listings may be cached. They answer further listings, and lookups of names that they do not
    /// contain, until the directory changes.
    pub keeps_listings: bool,
    /// How long new entries and negative entries are valid, at most: an answer about their directory that is valid for a
    /// time limits them, too.
    pub valid: Valid,
    /// How names are compared, unless byte by byte.
    pub name_rules: Option<Box<dyn NameRules>>,
    /// [`FileSystem::open`](crate::FileSystem::open) and [`FileSystem::release`](crate::FileSystem::release) are called, for
    /// regular files and directories.
    pub wants_opens: bool,
    /// With `wants_opens`: [`FileSystem::flush`](crate::FileSystem::flush) is called, as closing a file can fail.
    pub wants_flushes: bool,
    /// The file system itself keeps modes and ACLs by the rules of POSIX: it clears set-id bits when a caller without
    /// [`Capabilities::FSETID`](crate::Capabilities::FSETID) changes contents, applies the default ACL of a directory or
    /// the umask ([`Request::umask`](crate::Request::umask)) to new files, and keeps mode and access ACL equal. The VFS then only updates its copies.
    pub keeps_modes: bool,
    /// ACLs may be set: the file system stores them as extended attributes, and returns them with each inode
    /// ([`NewInode::access_acl`](crate::NewInode::access_acl)). Otherwise they are refused with `EOPNOTSUPP`: a file whose ACL is lost
    /// with its cached inode would have more rights than the ACL gave.
    pub acls: bool,
    /// With `keeps_modes`: the VFS obeys the ACLs of the file system, which it reads again by
    /// [`FileSystem::get_xattr`](crate::FileSystem::get_xattr) whenever it reads attributes again. Otherwise it ignores
    /// them: a front end's kernel checks.
    pub applies_acls: bool,
    /// Attributes are the file system's: what the VFS notes after a change is a guess, and it requests the attributes
    /// ([`FileSystem::attributes`](crate::FileSystem::attributes)) before it shows them again. The file system also refuses to link a
    /// file that has lost its last name (`ENOENT`).
    pub reports_attributes: bool,
    /// With `reports_attributes`: changes return attributes ([`After`](crate::After)), and the VFS shows these. It requests
    /// attributes only after a change that returned none, and where two changes of one file met.
    pub returns_attributes: bool,
    /// The bytes of a block, if files can share blocks ([`Copying::Share`](crate::Copying::Share)); 0 if they cannot. The VFS checks
    /// that what is shared begins and ends at blocks. With 1, the file system checks it (`EINVAL`).
    pub reflinks: u32,
    /// The bytes that each entry adds to the `st_size` of its directory.
    pub entry_size: u64,
    /// Its methods wait for nothing but memory, and locks that no thread holds for long: for no device, no other process, no
    /// grace period. With `names_in_cache`, the VFS then creates, renames and removes names in the section of the walk, in which no
    /// memory that any thread of the tree replaced is freed. A [`Layer`](crate::Layer) never has it: its own methods may wait.
    /// A front end may serve many callers with one thread: [`Vfs::may_wait`](crate::Vfs::may_wait).
    pub never_waits: bool,
    /// With `names_in_cache`: several threads may create, link, rename and remove different names of one directory at once. The VFS then
    /// lets them where threads often wait for a directory. (Directories move, and names are exchanged, one at a time.) Meanwhile the length, links and times of that directory, as
    /// [`Inode::attr`](crate::Inode::attr) has them, lack some of the changes, and the file system must not change them, or mark
    /// them stale.
    pub changes_in_parallel: bool,
    /// Its methods may take long, or hang: it is on a network, or on the other side of a protocol. The VFS then calls it without the
    /// lock of a directory: a listing takes it afterwards, and creation, `link`, `unlink` and `rename`, with the lookups that they
    /// need, reserve the *names* that they change. So one stuck call delays only a second change of the same name, which fails with `ETIMEDOUT` at its deadline
    /// ([`Context::set_timeout_ns`](crate::Context::set_timeout_ns)), and the removal of the directory. Changes of different names of
    /// one directory come at once, beside lookups and listings, and beside changes of the directory's own name. A change locks
    /// the directory twice, and a table of reserved names. Ignored with `names_in_cache`.
    pub slow: bool,
    /// A call whose caller cancels it ends soon, with `EINTR`: [`Cancel`](crate::Cancel). [`Bounded`](crate::Bounded) has it. A front end
    /// then cancels what a signal interrupts: [`Vfs::is_cancellable`](crate::Vfs::is_cancellable).
    pub is_cancellable: bool,
}

impl FsTraits {
    /// Whether names are created, renamed and removed in the walk's section.
    pub(crate) fn is_quick(&self) -> bool {
        self.never_waits && self.is_all_in_cache()
    }

    /// Whether directories are split where threads wait for them.
    pub(crate) fn may_split(&self) -> bool {
        self.changes_in_parallel && self.is_all_in_cache()
    }

    /// Whether the cache answers for names and rights.
    fn is_all_in_cache(&self) -> bool {
        self.names_in_cache && !self.keeps_modes && !self.reports_attributes
    }
}

impl Default for FsTraits {
    fn default() -> Self {
        Self {
            type_name: Cow::Borrowed("lightfoot"),
            names_in_cache: false,
            keeps_listings: false,
            valid: Valid::UntilInvalidated,
            name_rules: None,
            wants_opens: false,
            wants_flushes: false,
            keeps_modes: false,
            acls: false,
            applies_acls: false,
            reports_attributes: false,
            returns_attributes: false,
            reflinks: 0,
            entry_size: 0,
            never_waits: false,
            changes_in_parallel: false,
            slow: false,
            is_cancellable: false,
        }
    }
}

impl core::fmt::Debug for FsTraits {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FsTraits")
            .field("type_name", &self.type_name)
            .field("names_in_cache", &self.names_in_cache)
            .field("keeps_listings", &self.keeps_listings)
            .field("valid", &self.valid)
            .field("has_name_rules", &self.name_rules.is_some())
            .field("wants_opens", &self.wants_opens)
            .field("wants_flushes", &self.wants_flushes)
            .field("keeps_modes", &self.keeps_modes)
            .field("acls", &self.acls)
            .field("applies_acls", &self.applies_acls)
            .field("reports_attributes", &self.reports_attributes)
            .field("reflinks", &self.reflinks)
            .field("entry_size", &self.entry_size)
            .field("never_waits", &self.never_waits)
            .field("changes_in_parallel", &self.changes_in_parallel)
            .field("slow", &self.slow)
            .field("is_cancellable", &self.is_cancellable)
            .finish()
    }
}

/// How a file system hashes and compares names, if not byte by byte: case-insensitive directories. Called in rcu-walk, so
/// it must not block.
pub trait NameRules: Send + Sync + 'static {
    /// The hash of `name`, equal for names that are [`NameRules::equal`]. `key` is random for each tree.
    fn hash(&self, key: u64, name: &[u8]) -> u64;

    /// Whether both are the same name.
    fn equal(&self, a: &[u8], b: &[u8]) -> bool;
}
