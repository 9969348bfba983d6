//! Tests that are a separate program. `fuse` mounts on the host, and tests of `it` copy all mounts of their process into other
//! namespaces (`namespace/kernel/mounts.rs`), where a file system stays until it is unmounted too. `store_free` has an allocator.

mod fuse;
#[allow(dead_code, reason = "the program `it` uses all of it")]
#[path = "../it/namespace/rng.rs"]
mod rng;
mod store_free;
