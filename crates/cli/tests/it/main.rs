//! The integration tests of this crate, one module for each subject.

mod manual_pages;
mod mounting;
