//! The tests of `races.rs` with a table of whole paths that records every path. Debug builds compare each lookup by it with a
//! walk.

#[path = "races/listing.rs"]
mod listing;
#[path = "races/moving.rs"]
mod moving;
#[path = "races/names.rs"]
mod names;
#[path = "races/race.rs"]
mod race;
#[path = "races/rename.rs"]
mod rename;
#[allow(dead_code, reason = "each test root uses its own part")]
#[path = "namespace/rng.rs"]
mod rng;
#[path = "races/storm.rs"]
mod storm;
#[path = "races/view.rs"]
mod view;

/// The tree of each test.
fn new_tree() -> lightfoot::Vfs {
    let builder = lightfoot::Vfs::builder().whole_paths(1 << 20).records_every_path(true);
    builder.build(lightfoot::RamFs::new())
}
