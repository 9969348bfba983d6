//! The subject of a test: a file system, and changes of its storage from outside.
//!
//! Plain values.

use vfs::FileSystem;

/// Changes to the storage that bypass the tree, as by another program. The implementation invalidates the caches
/// ([`vfs::Invalidator`]), or the file system's answers must not be cached ([`vfs::Valid::For`] 0: the cases do not wait).
/// Paths have no leading slash.
pub trait Outside: Send + Sync {
    /// Replaces the contents of a file; creates it if it is missing.
    fn write(&self, path: &[u8], contents: &[u8]);

    /// Removes a file.
    fn remove(&self, path: &[u8]);
}

/// Makes the file system anew over the same storage.
pub(crate) type Restart = dyn Fn() -> Box<dyn FileSystem> + Send + Sync;

/// A file system to test.
pub struct Subject {
    pub(crate) fs: Box<dyn FileSystem>,
    pub(crate) outside: Option<Box<dyn Outside>>,
    pub(crate) is_sharded: bool,
    pub(crate) restart: Option<Box<Restart>>,
}

impl Subject {
    /// Returns a subject of `fs`, whose storage `outside` can change without the tree.
    pub fn with_outside(fs: impl FileSystem, outside: impl Outside + 'static) -> Self {
        Self { outside: Some(Box::new(outside)), ..fs.into() }
    }

    /// Returns a subject of `fs` in which every directory is split.
    pub fn split(fs: impl FileSystem) -> Self {
        Self { is_sharded: true, ..fs.into() }
    }

    /// Returns a subject that can begin again: `restart` returns a file system over the same
    /// storage, and shares nothing else.
    #[must_use]
    pub fn restarting<F: FileSystem>(self, restart: impl Fn() -> F + Send + Sync + 'static) -> Self {
        Self { restart: Some(Box::new(move || Box::new(restart()))), ..self }
    }
}

impl<F: FileSystem> From<F> for Subject {
    fn from(fs: F) -> Self {
        Self { fs: Box::new(fs), outside: None, is_sharded: false, restart: None }
    }
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subject").field("outside", &self.outside.is_some()).finish_non_exhaustive()
    }
}
