//! Whole paths by a table, in front of the walk.
//!
//! # What is in it
//! [`shortcut`]: a lookup by the table; [`table_batch`]: many at once; [`recorder`]: the walk that records a path, by the steps of
//! [`tracer`]. The table itself is [`whole_path`](crate::slots::whole_path).

pub(super) mod recorder;
pub(super) mod shortcut;
pub(super) mod table_batch;
pub(super) mod tracer;
