//! Room 9, `ops`: the operations of the system calls of the same names.
//!
//! # What is in it
//! - [`entry`]: from a path to a locked directory and a name, or to a locked name ([`unlocked`]);
//!   [`last_component`]: a path cut before its last component
//! - [`create`], [`remove`], [`rename`], [`open`], [`query`], [`attributes`], [`xattrs`]:
//!   operations on names
//! - [`path_ref`]: operations on held places, without a path; [`handles`]: bytes that lead to a
//!   place
//! - [`working_dir`]: root, working directory and paths of a context
//! - [`mounting`], [`pivot_root`], [`mount_list`]: changes and lists of mounts
//! - [`mod@file`]: open files; [`publish`]: events for watches
//! - [`checks`]: parts of operations that are the same with a lock and with a locked name;
//!   [`estale_retry`]: operations that fail with `ESTALE`, and run again
//!
//! Imports `base`, `notify`, `record_lock`, `slots`, `fs`, `cache`, `layers`, `mount`, `walk`.
//!
//! The order of checks, and so the choice between two errors, is Linux's;
//! `crates/lightfoot/tests/it/kernel.rs` compares.

pub(crate) mod attributes;
mod checks;
pub(crate) mod create;
pub(crate) mod entry;
mod estale_retry;
pub(crate) mod file;
pub(crate) mod handles;
pub(crate) mod last_component;
pub(crate) mod mount_list;
pub(crate) mod mounting;
pub(crate) mod open;
pub(crate) mod path_ref;
pub(crate) mod pivot_root;
pub(crate) mod publish;
pub(crate) mod query;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod unlocked;
pub(crate) mod working_dir;
pub(crate) mod xattrs;
