//! The integration tests of this crate, one module for each subject.

mod clones;
mod many_mounts;
mod memory;
mod suite;
mod unnamed;
