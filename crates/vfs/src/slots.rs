//! Room 3, `slots`: one slot in memory: a name, and the file beside it.
//!
//! # What is in it
//! - [`dentry`], [`object`], [`object_word`], [`inode`]: a name, its word for the file, and the
//!   file
//! - [`slot`]: their memory (the crate's `unsafe`)
//! - [`children`]: the entries of a directory, in order; [`shard`]: the entries of a sharded one;
//!   [`versions`]: counters of changes of directories; [`expiry`]: until when an entry is valid
//! - [`whole_path`]: the table of whole paths, and the counters of changes that make its entries
//!   useless
//!
//! Imports `base`, `notify`, `record_lock`. Nothing here calls a file system.

pub(crate) mod children;
pub(crate) mod dentry;
pub(crate) mod expiry;
pub(crate) mod inode;
pub(crate) mod object;
pub(crate) mod object_word;
pub(crate) mod shard;
#[allow(unsafe_code, reason = "the one module that turns links into references; its invariants are at its head")]
pub(crate) mod slot;
pub(crate) mod versions;
pub(crate) mod whole_path;
