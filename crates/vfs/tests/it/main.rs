//! The integration tests of this crate, one module for each subject.
#![cfg(not(loom))]

mod batch;
mod bounded;
mod budget;
mod callbacks;
mod callers;
mod grace;
mod handles;
mod invalidation;
mod listed_inodes;
mod lock_waits;
mod lookup_fs;
mod lookup_many;
mod name_locks;
mod names;
mod new_node;
mod next_names;
mod path_lists;
mod single_flight;
mod truth;
mod whole_path;
