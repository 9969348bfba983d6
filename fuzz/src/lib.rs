//! What the fuzz targets share. Each target's function takes bytes, never fails on any, and panics on a broken promise.
//!
//! # What it is not
//! A driver: `targets/` hands the functions to libFuzzer, one binary each.
//!
//! # Where it comes from
//! libFuzzer (LLVM); own functions.

#![forbid(unsafe_code)]

pub mod acl;
pub mod input;
pub mod names;
pub mod operations;
pub mod path_walk;
pub mod static_fs;
pub mod tree;
