//! Room 6, `layers`: file systems around file systems that need the cache.
//!
//! # What is in it
//! [`bounded`]: one that ends calls at their deadlines, by [`workers`](crate::base::workers). The trait that layers have in common is
//! [`Layer`](crate::fs::layer::Layer).
//!
//! Imports `base`, `notify`, `record_lock`, `slots`, `fs`, `cache`.

pub(crate) mod bounded;
