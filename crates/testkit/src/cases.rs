//! The cases, by what they are about.
//!
//! # How they are written
//! Each works from an empty root. What must succeed says what it did; what must be refused, by which error; and what
//! a file system stored is looked at with the cache in doubt. Nothing panics.
//!
//! # Where it comes from
//! Own code.

pub(crate) mod attributes;
pub(crate) mod contents;
pub(crate) mod end;
pub(crate) mod listing;
pub(crate) mod moves;
pub(crate) mod names;
pub(crate) mod open;
pub(crate) mod outside;
pub(crate) mod storage;
pub(crate) mod threads;
pub(crate) mod xattrs;
