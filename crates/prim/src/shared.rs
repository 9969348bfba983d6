//! Shared ownership: `std`'s `Arc`, or loom's under `--cfg loom` (which sees the ordering of its drops, and leaks).

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::{Arc, Weak};
