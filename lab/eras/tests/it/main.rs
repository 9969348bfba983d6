//! The integration tests of this crate, except those that `alone` has.

mod mechanisms;
mod oracle;
mod torture;

#[global_allocator]
static ARENA: sim::Arena = sim::Arena;
