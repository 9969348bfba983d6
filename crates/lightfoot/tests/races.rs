//! Threads that change a tree while others look at it. Each change is a step of a [`race::History`], and what a reader sees
//! must fit one of the states that the tree was in while it looked, and none before the state that it saw last.
//!
//! Rounds are bounded. The order of threads is the machine's; all else follows from the seed that each test prints.

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
    lightfoot::Vfs::ram()
}
