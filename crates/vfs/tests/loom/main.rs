//! The loom models of this crate: CONTRIBUTING.md has the command. Empty outside loom.
#![cfg(loom)]

mod cancel;
mod inode;
mod lookups;
mod model;
mod name_locks;
mod prime;
mod renames;
mod tree;
mod whole_path;

// The files that `whole_path` compiles import these from the root.
use whole_path::{base, slots};
