//! The parts of a simulated machine: how far the CPUs are from each other, and the cost of an
//! access at that distance.
//!
//! # What it is
//! Numbers, in nanoseconds, as in a TOML file; the presets are such files (`machines/`), each number with its
//! source beside it. The engine turns them into picoseconds once.
//!
//! # What it is not
//! A pipeline: no overlapping loads, no SMT, no link bandwidth. `lab/docs/simulator.md` lists the
//! omissions and their effect on the figures.
//!
//! ```
//! use lightfoot_sim::Machine;
//!
//! let machine = Machine::preset("dl980").unwrap();
//! assert_eq!((machine.cpus(), machine.classes()), (80, 3));
//! assert_eq!([0, 1, 2].map(|node| machine.class_between(0, node)), [0, 1, 2]);
//! let half = machine.with_nodes(4).unwrap();
//! assert_eq!(half.cpus(), 40);
//! ```

mod check;
mod preset;

pub use check::MachineError;
pub use preset::presets;

use serde::{Deserialize, Serialize};

/// A machine. Misses are given by distance class: 0 is the same node, higher classes are farther; see
/// [`groups`](Self::groups).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name after `sim:`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Nodes: sockets, or another unit that shares memory and perhaps a cache.
    pub nodes: usize,
    /// CPUs in each node.
    pub cpus_per_node: usize,
    /// The number of nodes in each larger unit, smallest unit first. The distance class of two
    /// nodes is the smallest unit that has both nodes; two nodes without a common unit are in the
    /// class after the last. `[2]` with eight nodes: a pair is class 1, the rest class 2.
    #[serde(default)]
    pub groups: Vec<usize>,
    /// Bytes of a cache line; a power of two.
    pub line_bytes: usize,
    /// The largest cache of one CPU alone, in KiB.
    pub cache_kib: usize,
    /// Its associativity.
    pub cache_ways: usize,
    /// Accesses to lines that the CPU has.
    pub hit: Hit,
    /// Accesses to lines that it has not.
    pub miss: Miss,
    /// The behaviour when several want one line.
    pub queue: Queue,
    /// The behaviour of a CPU while lines are on their way. Without it a CPU waits for each.
    #[serde(default)]
    pub window: Window,
    /// The system's charges for sleeping, waking and switching.
    pub system: System,
}

impl Machine {
    /// Returns the number of CPUs of all nodes; CPU `c` belongs to node `c / cpus_per_node`.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.nodes * self.cpus_per_node
    }

    /// Returns the number of distance classes. Each vector of [`Miss`] has a number for each class.
    #[must_use]
    pub fn classes(&self) -> usize {
        if self.nodes == 1 { 1 } else { self.groups.len() + 2 }
    }

    /// Returns the distance class of two nodes: 0 for a node and itself, 1 for two nodes in the
    /// smallest unit of [`groups`](Self::groups), and so on; nodes without a common unit are in the
    /// last class.
    #[must_use]
    pub fn class_between(&self, node_a: usize, node_b: usize) -> usize {
        if node_a == node_b {
            return 0;
        }
        let unit = self.groups.iter().position(|size| node_a / size == node_b / size);
        unit.unwrap_or(self.groups.len()) + 1
    }

    /// Returns this machine with the first `nodes` of its nodes, as when a run is bound to these
    /// nodes. Drops the units and distance classes that no two of these nodes need.
    ///
    /// # Errors
    /// When `nodes` is 0 or more than the machine has.
    pub fn with_nodes(mut self, nodes: usize) -> Result<Self, MachineError> {
        if nodes == 0 || nodes > self.nodes {
            return Err(MachineError::field("nodes", nodes, format!("1 to {} on {}", self.nodes, self.name)));
        }
        self.nodes = nodes;
        self.groups.retain(|size| *size < nodes);
        let classes = self.classes();
        for (_, costs) in self.miss.by_kind_mut() {
            costs.truncate(classes);
        }
        Ok(self)
    }

    /// Returns this machine with other [`Queue::keep`] and [`Queue::rest`], for a sensitivity
    /// study.
    #[must_use]
    pub fn with_queue(mut self, keep: f64, rest: f64) -> Self {
        (self.queue.keep, self.queue.rest) = (keep, rest);
        self
    }

    /// This machine with another [`Window`], for a sensitivity study: the presets have none.
    #[must_use]
    pub fn with_window(mut self, stores: usize, misses: usize) -> Self {
        self.window = Window { stores, misses };
        self
    }
}

/// Nanoseconds of an access to a line that the CPU has in the state it needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// A load.
    pub load_ns: f64,
    /// A store.
    pub store_ns: f64,
    /// A locked read-modify-write.
    pub rmw_ns: f64,
    /// A full fence.
    pub fence_ns: f64,
    /// One pause instruction (or the period's code in its place).
    pub pause_ns: f64,
    /// One turn of a waiting loop.
    pub spin_turn_ns: f64,
}

/// Nanoseconds of an access to a line that the CPU has not, by distance class.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Miss {
    /// A load of a line that another CPU has written.
    pub load_modified_ns: Vec<f64>,
    /// A load of a line that others only read.
    pub load_shared_ns: Vec<f64>,
    /// A store that takes the line from others.
    pub store_ns: Vec<f64>,
    /// A locked read-modify-write that takes the line from others.
    pub rmw_ns: Vec<f64>,
    /// A line in no cache, by the distance of its memory.
    pub memory_ns: Vec<f64>,
}

impl Miss {
    /// Returns the vectors with the names they have in a file.
    fn by_kind_mut(&mut self) -> [(&'static str, &mut Vec<f64>); 5] {
        [
            ("miss.load_modified_ns", &mut self.load_modified_ns),
            ("miss.load_shared_ns", &mut self.load_shared_ns),
            ("miss.store_ns", &mut self.store_ns),
            ("miss.rmw_ns", &mut self.rmw_ns),
            ("miss.memory_ns", &mut self.memory_ns),
        ]
    }

    /// Returns the vectors with the names they have in a file.
    fn by_kind(&self) -> [(&'static str, &[f64]); 5] {
        [
            ("miss.load_modified_ns", &self.load_modified_ns),
            ("miss.load_shared_ns", &self.load_shared_ns),
            ("miss.store_ns", &self.store_ns),
            ("miss.rmw_ns", &self.rmw_ns),
            ("miss.memory_ns", &self.memory_ns),
        ]
    }
}

/// The behaviour of a line while several want it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Whether one fetch serves the whole node (an inclusive cache shared by its CPUs).
    pub shared_cache: bool,
    /// Nanoseconds that a read served inside the node keeps the node's cache busy with the line.
    pub local_occupancy_ns: f64,
    /// Nanoseconds that a read served by the line's home keeps the home busy with it.
    pub home_occupancy_ns: f64,
    /// How long the owner keeps a line that others want, as a fraction of the transfer that follows.
    pub keep: f64,
    /// The cost of a transfer that had to wait, as a fraction of one that had not.
    pub rest: f64,
    /// Requests of the owner's node that may overtake older ones of other nodes.
    #[serde(default)]
    pub overtake: u16,
}

/// The limits of a CPU's work while it waits for lines.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Stores that have not retired; 0: a CPU waits for the line of each store.
    pub stores: usize,
    /// Lines that a CPU may have requested and not received.
    pub misses: usize,
}

impl Default for Window {
    /// Returns a CPU that waits for each line.
    fn default() -> Self {
        Self { stores: 0, misses: 1 }
    }
}

/// Nanoseconds of the operating system's actions.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// A system call that does nothing.
    pub call_ns: f64,
    /// For the waker: waking one sleeper.
    pub wake_ns: f64,
    /// From the wake to the first instruction of the woken.
    pub wake_latency_ns: f64,
    /// Going to sleep.
    pub sleep_ns: f64,
    /// Switching from one thread to another.
    pub switch_ns: f64,
    /// How long a thread runs while others wait for its CPU.
    pub slice_ns: f64,
}
