//! The tests of `torture.rs` with a table of whole paths that records every path. Debug builds compare each lookup by it with
//! a walk.

#[path = "torture/caching.rs"]
mod caching;
#[path = "torture/everything.rs"]
mod everything;
#[path = "torture/own.rs"]
mod own;
#[allow(dead_code, reason = "each test root uses its own part")]
#[path = "races/race.rs"]
mod race;
#[allow(dead_code, reason = "each test root uses its own part")]
#[path = "namespace/rng.rs"]
mod rng;
#[path = "torture/whole.rs"]
mod whole;

/// The tree of each test.
fn new_tree(fs: impl vfs::FileSystem) -> vfs::Vfs {
    vfs::Vfs::builder().whole_paths(1 << 20).records_every_path(true).build(fs)
}
