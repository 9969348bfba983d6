//! What the fuzz targets share. Each target's function takes bytes, never fails on any, and panics on a broken promise.
//!
//! # What it is not
//! A driver: `targets/` hands the functions to libFuzzer, one binary each.
//!
//! # Where it comes from
//! libFuzzer (LLVM); own functions.

#![forbid(unsafe_code)]

pub mod acl;
pub(crate) mod guarded_tree;
pub mod input;
pub mod listing;
pub mod messages;
pub mod mount_options;
pub mod mounts_file;
pub mod names;
pub mod operations;
pub mod path_walk;
pub mod session;
pub mod static_fs;
pub mod tree;
pub mod upper;

/// The parser of listings, from its own sources: nothing else of its crate is needed.
#[path = "../../crates/objectfs/src/bucket"]
#[allow(dead_code, reason = "the crate uses the rest")]
mod objects {
    pub(crate) mod cursor;
    pub(crate) mod page;
    pub(crate) mod xml;
}

/// The parsers of the command, from its own sources: a program has no library, and a library would bring its other
/// dependencies into this build.
#[path = "../../crates/cli/src"]
#[allow(dead_code, unused_imports, reason = "the command uses the rest")]
mod cli {
    pub(crate) mod options;
    pub(crate) mod paragraph;
    pub(crate) mod source;
}

// Where these modules expect each other.
use cli::{options, paragraph};
