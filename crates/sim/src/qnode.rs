//! Places in a queue of spinning threads, as `prim`'s: a few for each CPU index. Each simulation has its own.

#[path = "../../prim/src/qnode/node.rs"]
mod node;

pub use node::{LEVELS, Node, Nodes};

use crate::PerCpu;
use crate::engine::current;
use std::sync::OnceLock;

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
