//! Lightfoot through FUSE.

#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the session takes it up")]
mod handles;
pub mod metrics;
#[allow(dead_code, reason = "the session takes it up")]
mod nodes;
#[allow(dead_code, reason = "the session takes it up")]
mod notices;
