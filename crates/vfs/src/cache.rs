//! Room 5, `cache`: the names and inodes of file systems, and their life.
//!
//! # What is in it
//! - [`tree`]: state shared by all its file systems and mounts; [`superblock`]: one file system
//! - [`insert`], [`unnamed`], [`moving`], [`end`], [`prune`]: insertion, moves and removal of
//!   entries
//! - [`sharded`]: directories that several threads change at once; [`name_locks`]: names that one
//!   thread at a time changes
//! - [`budget`], [`shared_budget`], [`reclaim`]: budgets, also of many file systems, and eviction
//! - [`inode_table`]: inodes by node; [`listings`]: cached listings
//! - [`invalidate`], [`observer`]: invalidation by file systems, and observers that are notified of
//!   it; [`fetch`]: requests for stale attributes and link bodies; [`returned`]: attributes that
//!   changes return; [`flight`]: lookups in progress
//! - [`acls`], [`mountpoints`], [`fallback`]: ACLs of inodes, dentries that are mount points,
//!   counters of the walk's fallbacks
//!
//! Imports `base`, `notify`, `record_lock`, `slots`, `fs`.

pub(crate) mod acls;
pub(crate) mod budget;
pub(crate) mod end;
pub(crate) mod fallback;
pub(crate) mod fetch;
pub(crate) mod flight;
pub(crate) mod inode_table;
pub(crate) mod insert;
pub(crate) mod invalidate;
pub(crate) mod listings;
pub(crate) mod mountpoints;
pub(crate) mod moving;
pub(crate) mod name_locks;
pub(crate) mod observer;
pub(crate) mod prune;
pub(crate) mod reclaim;
pub(crate) mod returned;
pub(crate) mod sharded;
pub(crate) mod shared_budget;
pub(crate) mod superblock;
pub(crate) mod tree;
pub(crate) mod unnamed;
