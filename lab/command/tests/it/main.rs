//! The integration tests of this crate, one module for each subject.

mod bench;
mod lab;
mod report;
