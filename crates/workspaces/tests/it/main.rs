//! Tests of forks as file systems.

mod changes;
mod model;
mod suite;
mod tree;
