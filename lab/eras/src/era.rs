//! The interface of every generation of the directory cache, so that all of them run under the same
//! workloads and the same tests.
//!
//! Paths are bytes; one that begins with a slash starts at the root, any other at the working
//! directory. There are no permissions and no symbolic links here: eras differ in their locks, not
//! in their answers. (Lightfoot has both; the adapter does not use them.)

use locks::lockstat::Class;

/// Why an operation failed: the few errors that a tree without permissions has, by their `errno(3)` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ENOENT`: the name does not exist.
    NoEntry,
    /// `EEXIST`: the name is taken.
    Exists,
    /// `ENOTDIR`: a component that is not the last is not a directory.
    NotDirectory,
    /// `EISDIR`: a directory where a file is needed.
    IsDirectory,
    /// `ENOTEMPTY`: a directory with names in it.
    NotEmpty,
    /// `EINVAL`: a directory moved below itself; an empty path; `.`, `..` or the root renamed (`EBUSY` of Linux).
    Invalid,
    /// `ENAMETOOLONG`: a name of more than 255 bytes, a path of more than 4095.
    NameTooLong,
    /// `ENOSPC`: the era's fixed table of entries is full.
    NoSpace,
    /// `EOPNOTSUPP`: this era does not have the operation.
    Unsupported,
}

/// An answer or an [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

/// The result of `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The file's number: the same for each name of it, and different from every other live file's.
    pub inode: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Links: for a file, its names; for a directory, 2 and one for each directory in it.
    pub links: u32,
}

/// The result of `statvfs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemStatus {
    /// Files that exist.
    pub files: u64,
    /// Whether the mount is read-only.
    pub is_read_only: bool,
}

/// One generation with its own tree.
pub trait Era: Send + Sync {
    /// Returns a new process: root and working directory are the tree's root. Its threads share it.
    fn process(&self) -> Box<dyn Process + '_>;

    /// Calls `visit` with the class of each lock that the period's lock statistics showed, so that it can be enabled,
    /// reset and read.
    fn visit_locks(&self, visit: &mut dyn FnMut(&Class));

    /// Calls `visit` with the counts of the era's sleeping locks since it was made: how often their
    /// slow paths were taken. Looks at everything; nothing is charged for it on a simulated
    /// machine.
    fn visit_counters(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}

    /// Checks counts, chains and lists when no process and no open file is left; returns the
    /// errors. For tests: looks at everything, and is right only while no other thread uses the
    /// era.
    fn verify(&self) -> core::result::Result<(), String> {
        Ok(())
    }
}

/// A process of an era: the system calls of its threads.
pub trait Process: Send + Sync {
    /// `chdir(2)`.
    fn change_directory(&self, path: &[u8]) -> Result<()>;

    /// `stat(2)`: resolve: the walk, and no more of the last component than its attributes.
    fn stat(&self, path: &[u8]) -> Result<Attributes>;

    /// `open(2)` of what exists: the walk, and a count on the last component until [`close`](Self::close).
    fn open(&self, path: &[u8]) -> Result<Handle>;

    /// `open(2)` with `O_CREAT | O_EXCL`.
    fn create(&self, path: &[u8]) -> Result<Handle>;

    /// `close(2)`.
    fn close(&self, handle: Handle);

    /// `mkdir(2)`.
    fn make_directory(&self, path: &[u8]) -> Result<()>;

    /// `unlink(2)`.
    fn unlink(&self, path: &[u8]) -> Result<()>;

    /// `rename(2)`, also over an existing file.
    fn rename(&self, from: &[u8], to: &[u8]) -> Result<()>;

    /// Calls `visit` with each name of a directory, in no order; `.` and `..` are not among them.
    fn list(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Writes the path of an open file, from the tree's root, into `path` (cleared first):
    /// `d_path`.
    fn reverse_path(&self, handle: &Handle, path: &mut Vec<u8>) -> Result<()>;

    /// Does the work of `dget_parent` and `dput`: takes a reference to the directory of an open
    /// file, works for `work_ns` (simulated), and returns the reference.
    fn hold_parent(&self, handle: &Handle, work_ns: u64) -> Result<()>;

    /// `statvfs(3)`.
    fn status(&self, path: &[u8]) -> Result<FileSystemStatus>;

    /// Calls `mount(2)` with `MS_BIND`: shows a directory at its own place once more. The directory
    /// is in use until it is unmounted.
    fn mount(&self, _path: &[u8]) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Calls `umount(2)`: undoes the last [`mount`](Self::mount) at the path. Fails with
    /// [`Error::Invalid`] if nothing is mounted there.
    fn unmount(&self, _path: &[u8]) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Calls `pread(2)`, which holds the file's semaphore shared for `work_ns` (simulated).
    fn read(&self, handle: &Handle, work_ns: u64) -> Result<()>;

    /// Calls `pwrite(2)`, which holds the file's semaphore alone for `work_ns` (simulated).
    fn write(&self, handle: &Handle, work_ns: u64) -> Result<()>;
}

/// An open file. [`Process::close`] of the process that opened the file takes the handle back. A
/// handle that is dropped instead leaks a count.
#[derive(Debug)]
#[must_use = "an open file is closed by `close`"]
pub struct Handle(pub(crate) HandleOf);

/// The target of a handle: an entry of a period's tree, or an open file of Lightfoot.
#[derive(Debug)]
pub(crate) enum HandleOf {
    /// The entry's number.
    Entry(u32),
    Lightfoot(Box<vfs::OpenFile>),
}
