//! Shared ownership: `std`'s `Arc`, or loom's under `--cfg loom` (which sees the ordering of its drops, and leaks).

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::Arc;
// One that loom does not follow: for values that are not sized, or have weak references. Two names for one type in
// production.
pub use std::sync::{Arc as PlainArc, Weak};

/// A value behind a trait, as in the simulator.
pub type DynArc<T> = std::sync::Arc<T>;

/// A value whose type only its owner has.
pub type AnyArc = DynArc<dyn core::any::Any + Send + Sync>;
