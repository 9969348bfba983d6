//! Lightfoot through FUSE.

#![forbid(unsafe_code)]
