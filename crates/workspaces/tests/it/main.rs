//! Tests of forks as file systems.

mod changes;
mod commits;
mod conflicts;
mod directories;
mod durable;
mod lookups;
mod memory;
mod model;
mod parts;
mod publish;
mod races;
mod reads;
mod storage;
mod suite;
mod tree;
