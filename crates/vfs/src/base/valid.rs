//! How long answers are valid.

/// How long an answer of a file system is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Valid {
    /// Until the file system invalidates it by its [`Invalidator`](crate::Invalidator).
    #[default]
    UntilInvalidated,
    /// For this many nanoseconds; 0: the VFS revalidates on each use.
    For(u64),
}
