//! Tests of forks as file systems.

mod changes;
mod memory;
mod model;
mod races;
mod suite;
mod tree;
