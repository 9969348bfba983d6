//! The integration tests of this crate, except those that `alone` has.

mod acl;
mod answers;
mod api;
mod closing;
mod counts;
mod dir;
mod errors;
mod fallbacks;
mod inode_flags;
mod kernel;
mod leaks;
mod listed;
mod many;
mod mounts;
mod namespace;
mod races;
mod root_and_cwd;
mod scope;
mod serialized;
mod sharded_renames;
mod torture;
mod tree_kind;
mod watched;
