//! Room 1, `base`: values that need no tree. Names and numbers of POSIX and Linux, rules on arguments alone,
//! and the order of the crate's locks.
//!
//! # What is in it
//! - [`errno`], [`attr`], [`packed_attr`], [`flags`], [`file_time`], [`name`]: numbers, attributes (also as an inode keeps them), sets of
//!   flags, times, names; `serde`: how they are serialized
//! - [`access`]: credentials, ACLs, rules of extended attributes
//! - [`valid`]: how long answers are valid
//! - [`deadline`], [`cancel`], [`monitor`], [`workers`]: the end of waits, values that threads wait for, threads for calls that may hang
//! - [`rank`]: the order of locks
//! - [`foreign`]: names and words of others as text to show
//!
//! Imports no other room.

pub(crate) mod access;
pub(crate) mod attr;
pub(crate) mod cancel;
pub(crate) mod deadline;
pub(crate) mod errno;
pub(crate) mod file_time;
pub(crate) mod flags;
pub(crate) mod foreign;
pub(crate) mod monitor;
pub(crate) mod name;
pub(crate) mod packed_attr;
pub(crate) mod rank;
#[cfg(feature = "serde")]
pub(crate) mod serde;
pub(crate) mod valid;
pub(crate) mod workers;
