//! Guards that are forgotten. A separate program: such a guard keeps its node for the life of the process.
#![cfg(not(loom))]

mod forgotten;
