//! Reading a machine from a file, and the checks of a machine.
//!
//! # What it is
//! The way from a user's TOML to a [`Machine`] that the engine can run: every error names the field
//! and the values that are allowed there.
//!
//! # What it is not
//! A judgement: a machine whose memory is nearer than its cache is accepted.

use super::Machine;
use core::fmt::Display;

/// The most CPUs that a machine may have: the engine was measured with so many.
const MAX_CPUS: usize = 1024;

/// The most nodes: the engine keeps sets of them in one word.
const MAX_NODES: usize = 64;

/// The most stores and misses in flight: no CPU has more.
const MAX_WINDOW: usize = 1024;

/// The longest time that a field may hold: 100 s, far from the end of 64 bits of picoseconds.
const MAX_NS: f64 = 1e11;

/// Why a machine was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// Not TOML, or a field is missing, unknown, or of another type.
    #[error("{0}")]
    Toml(Box<toml::de::Error>),
    /// A field has a value that no machine has.
    #[error("{field} is {found}; it must be {allowed}")]
    #[non_exhaustive]
    Field {
        /// The field, with its table: `miss.rmw_ns`.
        field: &'static str,
        /// The value that was found.
        found: String,
        /// The values that are allowed there.
        allowed: String,
    },
}

impl MachineError {
    pub(super) fn field(field: &'static str, found: impl Display, allowed: impl Into<String>) -> Self {
        Self::Field { field, found: found.to_string(), allowed: allowed.into() }
    }
}

impl Machine {
    /// Returns the machine that a TOML file describes; the presets in `machines/` are examples.
    ///
    /// # Errors
    /// When the text is not such a file, or [`validate`](Self::validate) refuses the machine.
    pub fn from_toml(text: &str) -> Result<Self, MachineError> {
        let machine: Self = toml::from_str(text).map_err(|error| MachineError::Toml(Box::new(error)))?;
        machine.validate()?;
        Ok(machine)
    }

    /// Returns the machine as a TOML file that [`from_toml`](Self::from_toml) reads back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain tables of numbers and strings")
    }

    /// Returns whether the engine can run this machine.
    ///
    /// # Errors
    /// The first field whose value is not allowed, and what is.
    pub fn validate(&self) -> Result<(), MachineError> {
        self.check_shape()?;
        self.check_cache()?;
        self.check_costs()?;
        self.check_queue()
    }

    fn check_shape(&self) -> Result<(), MachineError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            let allowed = "letters, digits, - and _, as it comes after sim: on a command line";
            return Err(MachineError::field("name", format_args!("{:?}", self.name), allowed));
        }
        for (field, count, most) in [("nodes", self.nodes, MAX_NODES), ("cpus_per_node", self.cpus_per_node, MAX_CPUS)]
        {
            if !(1..=most).contains(&count) {
                return Err(MachineError::field(field, count, format!("1 to {most}")));
            }
        }
        if self.cpus() > MAX_CPUS {
            let allowed = format!("such that nodes * cpus_per_node is at most {MAX_CPUS}");
            return Err(MachineError::field("cpus_per_node", self.cpus_per_node, allowed));
        }
        let mut below = 1;
        for &size in &self.groups {
            let is_unit =
                size > below && size.is_multiple_of(below) && size < self.nodes && self.nodes.is_multiple_of(size);
            if !is_unit {
                let allowed = format!(
                    "sizes that grow, each a multiple of the one before, below nodes = {0} and a divisor of it",
                    self.nodes
                );
                return Err(MachineError::field("groups", format_args!("{:?}", self.groups), allowed));
            }
            below = size;
        }
        Ok(())
    }

    fn check_cache(&self) -> Result<(), MachineError> {
        if !self.line_bytes.is_power_of_two() || !(16..=4096).contains(&self.line_bytes) {
            return Err(MachineError::field("line_bytes", self.line_bytes, "a power of two from 16 to 4096"));
        }
        if !(1..=1 << 20).contains(&self.cache_kib) {
            return Err(MachineError::field("cache_kib", self.cache_kib, "1 to 1048576, which is 1 GiB"));
        }
        let lines = self.cache_kib * 1024 / self.line_bytes;
        if !(1..=lines).contains(&self.cache_ways) || !lines.is_multiple_of(self.cache_ways) {
            let allowed = format!("a divisor of the cache's {lines} lines");
            return Err(MachineError::field("cache_ways", self.cache_ways, allowed));
        }
        Ok(())
    }

    fn check_costs(&self) -> Result<(), MachineError> {
        let (hit, system) = (&self.hit, &self.system);
        let costs = [
            ("hit.load_ns", hit.load_ns),
            ("hit.store_ns", hit.store_ns),
            ("hit.rmw_ns", hit.rmw_ns),
            ("hit.fence_ns", hit.fence_ns),
            ("hit.pause_ns", hit.pause_ns),
            ("hit.spin_turn_ns", hit.spin_turn_ns),
            ("system.call_ns", system.call_ns),
            ("system.wake_ns", system.wake_ns),
            ("system.wake_latency_ns", system.wake_latency_ns),
            ("system.sleep_ns", system.sleep_ns),
            ("system.switch_ns", system.switch_ns),
            ("system.slice_ns", system.slice_ns),
        ];
        for (field, cost) in costs {
            check_cost(field, cost)?;
        }
        for (field, costs) in self.miss.by_kind() {
            if costs.len() != self.classes() {
                let allowed = format!("{} numbers, one for each distance class", self.classes());
                return Err(MachineError::field(field, format_args!("{} numbers", costs.len()), allowed));
            }
            for &cost in costs {
                check_cost(field, cost)?;
            }
        }
        Ok(())
    }

    fn check_queue(&self) -> Result<(), MachineError> {
        let queue = &self.queue;
        let occupancies = [
            ("queue.local_occupancy_ns", queue.local_occupancy_ns),
            ("queue.home_occupancy_ns", queue.home_occupancy_ns),
        ];
        for (field, cost) in occupancies {
            if !(0.0..=MAX_NS).contains(&cost) {
                return Err(MachineError::field(field, cost, format!("0 to {MAX_NS:e} ns")));
            }
        }
        for (field, fraction) in [("queue.keep", queue.keep), ("queue.rest", queue.rest)] {
            if !(0.0..=10.0).contains(&fraction) {
                return Err(MachineError::field(field, fraction, "0 to 10 times the transfer"));
            }
        }
        let window = &self.window;
        if window.stores > MAX_WINDOW {
            return Err(MachineError::field("window.stores", window.stores, format!("0 to {MAX_WINDOW}")));
        }
        if !(1..=MAX_WINDOW).contains(&window.misses) {
            return Err(MachineError::field("window.misses", window.misses, format!("1 to {MAX_WINDOW}")));
        }
        Ok(())
    }
}

/// Time must pass, or a loop in the simulated program would never end.
fn check_cost(field: &'static str, cost: f64) -> Result<(), MachineError> {
    if (0.001..=MAX_NS).contains(&cost) {
        return Ok(());
    }
    Err(MachineError::field(field, cost, format!("0.001 to {MAX_NS:e} ns")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces a line of the dl980's file, and expects that the error names the field and the
    /// allowed values.
    fn check(line: &str, replacement: &str, field: &str, allowed: &str) {
        let good = Machine::preset("dl980").unwrap().to_toml();
        assert!(good.contains(line), "{line} is not in\n{good}");
        let error = Machine::from_toml(&good.replace(line, replacement)).expect_err(replacement);
        let message = error.to_string();
        assert!(message.contains(field), "{replacement}: {message}");
        assert!(message.contains(allowed), "{replacement}: {message}");
    }

    #[test]
    fn a_refused_machine_names_the_field_and_what_is_allowed() {
        check("name = \"dl980\"", "name = \"\"", "name is \"\"", "letters, digits");
        check("name = \"dl980\"", "name = \"my box\"", "name is \"my box\"", "letters, digits");
        check("\nnodes = 8", "\nnodes = 0", "nodes is 0", "1 to 64");
        check("\nnodes = 8", "\nnodes = 66", "nodes is 66", "1 to 64");
        check("cpus_per_node = 10", "cpus_per_node = 0", "cpus_per_node is 0", "1 to 1024");
        check("cpus_per_node = 10", "cpus_per_node = 129", "cpus_per_node is 129", "at most 1024");
        check("groups = [2]", "groups = [3]", "groups is [3]", "a divisor of it");
        check("groups = [2]", "groups = [1]", "groups is [1]", "sizes that grow");
        check("groups = [2]", "groups = [8]", "groups is [8]", "below nodes = 8");
        check("groups = [2]", "groups = [4, 2]", "groups is [4, 2]", "sizes that grow");
        check("groups = [2]", "groups = [2, 4]", "miss.load_modified_ns is 3 numbers", "4 numbers");
        check("groups = [2]", "groups = []", "miss.load_modified_ns is 3 numbers", "2 numbers");
        check("line_bytes = 64", "line_bytes = 48", "line_bytes is 48", "a power of two from 16 to 4096");
        check("line_bytes = 64", "line_bytes = 8192", "line_bytes is 8192", "a power of two from 16 to 4096");
        check("cache_kib = 256", "cache_kib = 0", "cache_kib is 0", "1 to 1048576");
        check("cache_ways = 8", "cache_ways = 0", "cache_ways is 0", "4096 lines");
        check("cache_ways = 8", "cache_ways = 8192", "cache_ways is 8192", "4096 lines");
        check("cache_ways = 8", "cache_ways = 7", "cache_ways is 7", "4096 lines");
        check("\nload_ns = 2.3", "\nload_ns = 0.0", "hit.load_ns is 0", "0.001 to 1e11 ns");
        check("pause_ns = 5.0", "pause_ns = -5.0", "hit.pause_ns is -5", "0.001 to 1e11 ns");
        check("slice_ns = 3000000.0", "slice_ns = nan", "system.slice_ns is NaN", "0.001 to 1e11 ns");
        check("wake_ns = 700.0", "wake_ns = inf", "system.wake_ns is inf", "0.001 to 1e11 ns");
        check("rmw_ns = [56.3, ", "rmw_ns = [-1.0, ", "miss.rmw_ns is -1", "0.001 to 1e11 ns");
        check("rmw_ns = [56.3, ", "rmw_ns = [", "miss.rmw_ns is 2 numbers", "3 numbers");
        check("home_occupancy_ns = 60.0", "home_occupancy_ns = -1.0", "queue.home_occupancy_ns is -1", "0 to");
        check("keep = 0.5", "keep = 11.0", "queue.keep is 11", "0 to 10");
        check("rest = 0.6", "rest = -0.1", "queue.rest is -0.1", "0 to 10");
        check("stores = 0", "stores = 1025", "window.stores is 1025", "0 to 1024");
        check("misses = 1", "misses = 0", "window.misses is 0", "1 to 1024");
    }

    #[test]
    fn units_lie_in_one_another() {
        let mut machine = Machine::preset("epyc192").unwrap();
        machine.groups = vec![8, 12];
        let message = machine.validate().expect_err("a unit of 12 would cut one of 8").to_string();
        assert!(message.contains("groups is [8, 12]; it must be sizes that grow, each a multiple"), "{message}");
    }

    #[test]
    fn a_missing_an_unknown_and_a_mistyped_field_are_named() {
        check("pause_ns = 5.0\n", "", "pause_ns", "missing field");
        check("pause_ns = 5.0", "pause_ns = 5.0\nnap_ns = 1.0", "nap_ns", "unknown field");
        check("\nnodes = 8", "\nnodes = \"eight\"", "nodes", "expected");
    }

    #[test]
    fn the_first_nodes_of_a_machine_have_the_distances_that_they_had() {
        let whole = Machine::preset("altix64").unwrap();
        for nodes in 1..=whole.nodes {
            let part = whole.clone().with_nodes(nodes).unwrap();
            assert_eq!(part.cpus(), 2 * nodes);
            for a in 0..nodes {
                for b in 0..nodes {
                    let class = part.class_between(a, b);
                    assert_eq!(class, whole.class_between(a, b), "{a} to {b} of {nodes}");
                    assert!(class < part.classes(), "{a} to {b} of {nodes}: class {class}");
                }
            }
            let farthest = (0..nodes).map(|node| part.class_between(0, node)).max();
            assert_eq!(farthest, Some(part.classes() - 1), "a class that no two of {nodes} nodes have");
            for (kind, costs) in part.miss.by_kind() {
                assert_eq!(costs.len(), part.classes(), "{kind} of {nodes} nodes");
            }
        }
        let error = |nodes| whole.clone().with_nodes(nodes).expect_err("not so many nodes").to_string();
        assert_eq!(error(0), "nodes is 0; it must be 1 to 32 on altix64");
        assert_eq!(error(33), "nodes is 33; it must be 1 to 32 on altix64");
    }

    #[test]
    fn another_queue_leaves_the_rest_alone() {
        let machine = Machine::preset("dl980").unwrap();
        let other = machine.clone().with_queue(1.0, 0.25);
        assert_eq!((other.queue.keep, other.queue.rest), (1.0, 0.25));
        assert_eq!(other.with_queue(machine.queue.keep, machine.queue.rest), machine);
    }
}
