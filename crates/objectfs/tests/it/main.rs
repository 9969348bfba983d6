//! The integration tests of this crate, one module for each subject.

mod s3;
mod suite;
