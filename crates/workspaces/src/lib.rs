//! Copy-on-write forks of a tree, as file systems for [`vfs`].
//!
//! # What it is
//! A [`Fork`] has a *base*, a tree that no fork changes, and a persistent map of its changes over it (`map`, `record`, `tree`).
//! A new fork copies the root pointer of the map and some numbers, whatever the size of the tree, and forks of forks cost the same:
//! there are no layers. Contents are persistent maps of pages over a file of the base (`contents`). [`ForkFs`] is a fork as a
//! [`vfs::FileSystem`], `lower` reads the base through a cache that all forks share, `diff` compares a fork with its origin, and
//! `usage` limits it, `fork` makes the next. `commit` merges a fork into its parent, `publish` into the base; `undo` lets one side
//! win, `progress` counts the steps, and `reads` notes the names that programs read, for a commit that checks them. `upper` keeps forks
//! in a directory of the host, `open_files` has the open files, `xattrs` attributes and ACLs. [`Workspaces`] has forks by name in one
//! tree, and `background` frees the forks that it discards.
//!
//! # What it is not
//! A union of directories by paths: records belong to nodes. So a rename moves one entry, hard links lead to one file whichever
//! name is written first, and there are no opaque directories.
//!
//! # How it is locked
//! See `state`.

#![forbid(unsafe_code)]

mod background;
mod commit;
mod contents;
mod diff;
mod fork;
mod fork_fs;
mod gate;
mod lower;
mod map;
mod names;
mod open_files;
mod page;
mod progress;
mod publish;
mod reads;
mod record;
mod remade;
mod rollback;
mod state;
mod store;
mod tree;
mod undo;
mod upper;
mod usage;
mod workspace_error;
mod workspaces;
mod xattrs;

pub use commit::{Commit, CommitOptions, Conflict, ConflictKind, OnConflict};
pub use diff::{Change, ChangeKind};
pub use fork_fs::ForkFs;
pub use publish::Recovered;
pub use store::Fork;
pub use upper::UpperError;
pub use usage::ForkLimits;
pub use workspace_error::WorkspaceError;
pub use workspaces::{BASE, ForkInfo, ForkOptions, Workspaces};
