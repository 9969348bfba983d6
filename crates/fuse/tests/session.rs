//! The session without a transport: the tests call its operations directly.

#[path = "session/appeared.rs"]
mod appeared;
#[path = "session/callers.rs"]
mod callers;
#[path = "session/files.rs"]
mod files;
#[path = "session/groups.rs"]
mod groups;
#[path = "session/kernel.rs"]
mod kernel;
#[path = "session/labels.rs"]
mod labels;
#[path = "session/listing.rs"]
mod listing;
#[path = "session/locks.rs"]
mod locks;
#[path = "session/nodes.rs"]
mod nodes;
#[path = "session/numbers.rs"]
mod numbers;
#[path = "session/opens.rs"]
mod opens;
#[path = "session/set_ids.rs"]
mod set_ids;
#[path = "session/storm.rs"]
mod storm;
