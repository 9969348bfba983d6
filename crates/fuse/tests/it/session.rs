//! The session without a transport: the tests call its operations directly.

mod appeared;
mod callers;
mod files;
mod groups;
mod kernel;
mod labels;
mod listing;
mod locks;
mod nodes;
mod numbers;
mod opens;
mod set_ids;
mod storm;
