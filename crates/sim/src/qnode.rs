//! Places in a queue of spinning threads, as `prim`'s: a few for each CPU index. Each simulation has its own.

use crate::PerCpu;
use crate::atomic::{AtomicPtr, AtomicU32, AtomicUsize};
use crate::engine::current;
use std::sync::OnceLock;

/// Nodes of one CPU index.
pub const LEVELS: usize = 4;

/// One place in one queue. All zero when free.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Node {
    /// Who queued up behind.
    pub next: AtomicPtr<Node>,
    /// The address of the lock this place is for; 0: free. Written by the owner of the index only.
    pub lock: AtomicUsize,
    /// 1 until whoever is in front hands over.
    pub waiting: AtomicU32,
}

/// The nodes of one CPU index, on lines of their own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Nodes(pub [Node; LEVELS]);

/// The nodes of CPU index `cpu`. They stay where they are, in a simulation until it ends.
#[inline]
#[must_use]
pub fn of(cpu: usize) -> &'static Nodes {
    static OUTSIDE: OnceLock<PerCpu<Nodes>> = OnceLock::new();
    match current::<'static>() {
        Some(engine) => engine.queue_nodes.get_or_init(|| PerCpu::new(Nodes::default)).get(cpu),
        None => OUTSIDE.get_or_init(|| PerCpu::new(Nodes::default)).get(cpu),
    }
}
