//! The integration tests of this crate, one module for each subject.

mod bounded;
mod faults;
mod store;
