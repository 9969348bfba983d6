//! The tests that read what simulated threads have left. It lies in memory that the next simulation of the process clears, so they
//! are not in one program with other tests that simulate, and one of them runs at a time.

mod scalability;

#[global_allocator]
static ARENA: sim::Arena = sim::Arena;
