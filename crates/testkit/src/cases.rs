//! The cases, by subject.
//!
//! # How they are written
//! Each case starts with an empty root. A call that must succeed names itself in the failure, a call that must fail names
//! the expected error, and stored state is checked with a stale cache. Nothing panics.

pub(crate) mod attributes;
pub(crate) mod clones;
pub(crate) mod contents;
pub(crate) mod end;
pub(crate) mod handles;
pub(crate) mod ids;
pub(crate) mod listing;
pub(crate) mod moves;
pub(crate) mod names;
pub(crate) mod open;
pub(crate) mod outside;
pub(crate) mod quotas;
pub(crate) mod races;
pub(crate) mod rights;
pub(crate) mod storage;
pub(crate) mod storing;
pub(crate) mod threads;
pub(crate) mod xattrs;
