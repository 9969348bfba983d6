//! The machine as the engine uses it: picoseconds, and tables instead of arithmetic.

use crate::config::Placement;
use crate::machine::Machine;

/// Picoseconds of a nanosecond.
pub(crate) const NS: u64 = 1000;

/// Converts once; a machine has no times below a picosecond.
pub(crate) fn ps(ns: f64) -> u64 {
    (ns * NS as f64).round() as u64
}

/// The costs of accesses and system calls, in picoseconds; the names are [`Machine`]'s.
pub(crate) struct Costs {
    pub(crate) load: u64,
    pub(crate) store: u64,
    pub(crate) rmw: u64,
    pub(crate) fence: u64,
    pub(crate) pause: u64,
    pub(crate) spin_turn: u64,
    pub(crate) load_modified: Vec<u64>,
    pub(crate) load_shared: Vec<u64>,
    pub(crate) store_miss: Vec<u64>,
    pub(crate) rmw_miss: Vec<u64>,
    pub(crate) memory: Vec<u64>,
    /// How long an owner keeps a line, by the distance of the next owner.
    pub(crate) keep: Vec<u64>,
    /// In 256ths.
    pub(crate) rest: u64,
    pub(crate) local_occupancy: u64,
    pub(crate) home_occupancy: u64,
    pub(crate) shared_cache: bool,
    pub(crate) overtake: u16,
    pub(crate) stores: usize,
    pub(crate) misses: usize,
    pub(crate) call: u64,
    pub(crate) wake: u64,
    pub(crate) wake_latency: u64,
    pub(crate) sleep: u64,
    pub(crate) switch: u64,
    pub(crate) slice: u64,
}

impl Costs {
    pub(crate) fn new(machine: &Machine) -> Self {
        let classes = machine.classes();
        let row = |values: &[f64]| -> Vec<u64> {
            assert_eq!(values.len(), classes, "machine {}: a row of miss costs, one for each class", machine.name);
            values.iter().map(|&ns| ps(ns)).collect()
        };
        let (hit, miss, queue, system) = (&machine.hit, &machine.miss, &machine.queue, &machine.system);
        let rmw_miss = row(&miss.rmw_ns);
        Self {
            load: ps(hit.load_ns),
            store: ps(hit.store_ns),
            rmw: ps(hit.rmw_ns),
            fence: ps(hit.fence_ns),
            pause: ps(hit.pause_ns).max(1),
            spin_turn: ps(hit.spin_turn_ns).max(1),
            load_modified: row(&miss.load_modified_ns),
            load_shared: row(&miss.load_shared_ns),
            store_miss: row(&miss.store_ns),
            keep: rmw_miss.iter().map(|&ps| (ps as f64 * queue.keep) as u64).collect(),
            rmw_miss,
            memory: row(&miss.memory_ns),
            rest: (256.0 * queue.rest) as u64,
            local_occupancy: ps(queue.local_occupancy_ns),
            home_occupancy: ps(queue.home_occupancy_ns),
            shared_cache: queue.shared_cache,
            overtake: queue.overtake,
            stores: machine.window.stores,
            misses: machine.window.misses.max(1),
            call: ps(system.call_ns),
            wake: ps(system.wake_ns),
            wake_latency: ps(system.wake_latency_ns),
            sleep: ps(system.sleep_ns),
            switch: ps(system.switch_ns),
            slice: ps(system.slice_ns).max(1),
        }
    }
}

/// The node of each CPU, and the distances of nodes from each other.
pub(crate) struct Places {
    pub(crate) nodes: usize,
    pub(crate) node_of: Vec<u16>,
    distance: Vec<u8>,
    /// For each node the words of the bit set of its CPUs.
    pub(crate) cpus_of: Vec<u64>,
    pub(crate) words: usize,
}

impl Places {
    pub(crate) fn new(machine: &Machine, cpus: usize, placement: Placement) -> Self {
        let (nodes, per_node) = (machine.nodes, machine.cpus_per_node);
        let has = machine.cpus();
        assert!((1..=64).contains(&nodes), "machine {}: {nodes} nodes, of 1 to 64", machine.name);
        assert!((1..=has).contains(&cpus), "machine {} has {has} CPUs, not {cpus}", machine.name);
        assert!(cpus <= 1024, "{cpus} CPUs, of at most 1024");
        let node_of: Vec<u16> = (0..cpus)
            .map(|cpu| match placement {
                Placement::Compact => (cpu / per_node) as u16,
                Placement::Spread => (cpu % nodes) as u16,
            })
            .collect();
        let words = cpus.div_ceil(64);
        let mut cpus_of = vec![0; nodes * words];
        for (cpu, &node) in node_of.iter().enumerate() {
            cpus_of[usize::from(node) * words + cpu / 64] |= 1 << (cpu % 64);
        }
        let distance = (0..nodes * nodes).map(|pair| machine.class_between(pair / nodes, pair % nodes) as u8).collect();
        Self { nodes, node_of, distance, cpus_of, words }
    }

    #[inline]
    pub(crate) fn node(&self, cpu: usize) -> usize {
        usize::from(self.node_of[cpu])
    }

    /// Returns the class of the distance of two nodes.
    #[inline]
    pub(crate) fn distance(&self, a: usize, b: usize) -> usize {
        usize::from(self.distance[a * self.nodes + b])
    }

    /// Returns the distance classes from `node` to the nearest and to the farthest node of `set`,
    /// which is not empty.
    #[inline]
    pub(crate) fn range(&self, node: usize, mut set: u64) -> (usize, usize) {
        let (mut nearest, mut farthest) = (usize::MAX, 0);
        while set != 0 {
            let distance = self.distance(node, set.trailing_zeros() as usize);
            nearest = nearest.min(distance);
            farthest = farthest.max(distance);
            set &= set - 1;
        }
        (nearest, farthest)
    }
}
