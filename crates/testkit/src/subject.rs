//! What is tested: a file system, and the hand that changes its storage from outside.
//!
//! Plain values. Own code.

use vfs::FileSystem;

/// Changes to the storage that do not go through the tree: another program's. Whoever makes one tells the caches
/// ([`vfs::Invalidator`]) or says that answers are good for a time only ([`vfs::Valid::For`] 0 here: the cases do not
/// wait). Paths have no slash before them.
pub trait Outside: Send + Sync {
    /// Makes a file with these contents, or gives the file that is there these.
    fn write(&self, path: &[u8], contents: &[u8]);

    /// Takes a file away.
    fn remove(&self, path: &[u8]);
}

/// A file system to be tested.
pub struct Subject {
    pub(crate) fs: Box<dyn FileSystem>,
    pub(crate) outside: Option<Box<dyn Outside>>,
}

impl Subject {
    /// `fs`, whose storage `outside` can change behind the tree's back.
    pub fn with_outside(fs: impl FileSystem, outside: impl Outside + 'static) -> Self {
        Self { fs: Box::new(fs), outside: Some(Box::new(outside)) }
    }
}

impl<F: FileSystem> From<F> for Subject {
    fn from(fs: F) -> Self {
        Self { fs: Box::new(fs), outside: None }
    }
}

impl core::fmt::Debug for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subject").field("outside", &self.outside.is_some()).finish_non_exhaustive()
    }
}
