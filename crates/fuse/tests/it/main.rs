//! The integration tests of this crate, except those that `mount` has.

mod appends;
mod host_directory;
mod messages;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod transcript;
mod watch;
