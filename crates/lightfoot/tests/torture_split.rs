//! The tests of `torture.rs` with every directory split.

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
    vfs::Vfs::builder().splits_every_directory(true).build(fs)
}
