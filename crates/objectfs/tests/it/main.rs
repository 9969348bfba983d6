//! The integration tests of this crate, one module for each subject.

#[cfg(feature = "s3")]
mod s3;
mod suite;
