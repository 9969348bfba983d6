//! The loom models of this crate: CONTRIBUTING.md has the command. Empty outside loom.
#![cfg(loom)]

mod cancel;
mod inode;
mod lookups;
mod model;
mod renames;
mod reserved;
mod tree;
mod unasked;
mod whole_path;

// The files that `whole_path` compiles import these from the root.
use whole_path::{base, slots};
