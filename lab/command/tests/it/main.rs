//! The integration tests of this crate, one module for each subject.

mod bench;
mod command;
mod lab;
mod report;
