//! Room 3, `dcache`: the trait of file systems and the cache of their names and inodes.
//!
//! # What is in it
//! - [`fs`]: the trait `FileSystem` and its arguments; [`layer`]: file systems around file systems; [`bounded`]: one that ends
//!   calls at their deadlines, by [`workers`]
//! - [`tree`]: state shared by all its file systems and mounts; [`superblock`]: one file system
//! - [`dentry`], [`object`], [`inode`], [`slot`]: a name, its word for the file, the file, and their memory (the crate's `unsafe`)
//! - [`insert`], [`unnamed`], [`moving`], [`end`], [`children`], [`prune`]: insertion, moves and removal of entries
//! - [`split`]: directories that several threads change at once
//! - [`reclaim`]: budgets and eviction; [`inode_table`]: inodes by node; [`listings`]: cached listings
//! - [`invalidate`], [`observer`]: invalidation by file systems, and keepers of copies that hear of it; [`fetch`]: requests for stale attributes and link
//!   bodies; [`returned`]: attributes that changes return; [`flight`]: lookups in progress
//! - [`whole_path`]: the table of whole paths, and what makes its entries useless
//! - [`acls`], [`mountpoints`], [`fallback`]: ACLs of inodes, dentries that are mount points, counters of the walk's fallbacks
//!
//! Imports `base`, `notify`, `record_lock`. Inside this room modules import one another freely: it is one data structure.

pub(crate) mod acls;
pub(crate) mod bounded;
pub(crate) mod children;
pub(crate) mod dentry;
pub(crate) mod end;
mod expiry;
pub(crate) mod fallback;
pub(crate) mod fetch;
pub(crate) mod flight;
pub(crate) mod fs;
pub(crate) mod inode;
pub(crate) mod inode_table;
pub(crate) mod insert;
pub(crate) mod invalidate;
pub(crate) mod layer;
pub(crate) mod listings;
pub(crate) mod mountpoints;
pub(crate) mod moving;
pub(crate) mod object;
pub(crate) mod object_word;
pub(crate) mod observer;
pub(crate) mod prune;
pub(crate) mod reclaim;
pub(crate) mod reserved;
pub(crate) mod returned;
#[allow(unsafe_code, reason = "the one module that turns links into references; its invariants are at its head")]
pub(crate) mod slot;
pub(crate) mod split;
pub(crate) mod superblock;
pub(crate) mod tree;
pub(crate) mod unnamed;
pub(crate) mod versions;
pub(crate) mod whole_path;
pub(crate) mod workers;
