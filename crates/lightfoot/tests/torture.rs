//! All processors change one tree at once, with everything that it can do; a bounded number of operations, a seed printed.
//!
//! What must hold meanwhile: a name that one thread alone makes and takes away is there when it should be, wherever its directory
//! has been moved; a reverse path is one that the file had at one moment; a name that one thread takes through
//! states is seen in their order. What must hold afterwards: as many links as names, no count held, nothing deferred.

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
    vfs::Vfs::new(fs)
}
