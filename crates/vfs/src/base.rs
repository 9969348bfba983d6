//! Room 1, `base`: values that need no tree. Names and numbers of POSIX and Linux, rules on arguments alone,
//! and the order of the crate's locks.
//!
//! Imports no other room.

pub(crate) mod access;
pub(crate) mod attr;
pub(crate) mod cancel;
pub(crate) mod deadline;
pub(crate) mod errno;
pub(crate) mod file_time;
pub(crate) mod flags;
pub(crate) mod monitor;
pub(crate) mod name;
pub(crate) mod packed_attr;
pub(crate) mod rank;
#[cfg(feature = "serde")]
pub(crate) mod serde;
pub(crate) mod valid;
pub(crate) mod workers;
