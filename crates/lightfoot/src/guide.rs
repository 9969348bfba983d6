//! Guides. These modules have only documentation.

/// Which operations to call directly in a task, and which through `spawn_blocking`.
///
#[doc = include_str!("guide/tokio.md")]
///
/// Documentation of the methods: [`Watch::descriptor`](crate::Watch::descriptor),
/// [`Watch::try_next`](crate::Watch::try_next), [`Resolve::CACHED`](crate::Resolve::CACHED),
/// [`File::try_lock`](crate::File::try_lock).
pub mod tokio {}

/// How to write a file system of your own.
///
#[doc = include_str!("guide/own_file_system.md")]
///
/// Documentation of the types: [`PathFileSystem`](crate::fs::PathFileSystem), [`PathAdapter`](crate::fs::PathAdapter),
/// [`FileSystem`](crate::fs::FileSystem), [`Layer`](crate::fs::Layer), [`Invalidator`](crate::fs::Invalidator).
pub mod own_file_system {}

/// The uses of this crate and of others.
///
#[doc = include_str!("guide/which.md")]
pub mod which {}
