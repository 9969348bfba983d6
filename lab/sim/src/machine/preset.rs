//! The machines that come with the simulator.
//!
//! # What it is
//! The files of `machines/`, compiled in. Each names its model and the source of each number;
//! `unconfirmed` in a comment marks a number for which we could read no source.
//!
//! # What it is not
//! A claim that a machine behaves so: a preset makes shapes and ratios comparable, not nanoseconds.

use super::Machine;

/// Name and text of each preset, oldest machine first. The name is the file's; a test holds the two together.
const PRESETS: [(&str, &str); 9] = [
    ("piii8", include_str!("../../machines/piii8.toml")),
    ("altix64", include_str!("../../machines/altix64.toml")),
    ("power5", include_str!("../../machines/power5.toml")),
    ("niagara2", include_str!("../../machines/niagara2.toml")),
    ("opteron2", include_str!("../../machines/opteron2.toml")),
    ("nehalem-ex", include_str!("../../machines/nehalem-ex.toml")),
    ("dl980", include_str!("../../machines/dl980.toml")),
    ("skylake4", include_str!("../../machines/skylake4.toml")),
    ("epyc192", include_str!("../../machines/epyc192.toml")),
];

impl Machine {
    /// Returns the preset of that name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(preset, _)| *preset == name)?;
        Some(parse(text))
    }
}

/// Returns all presets, oldest machine first.
#[must_use]
pub fn presets() -> Vec<Machine> {
    PRESETS.iter().map(|(_, text)| parse(text)).collect()
}

/// Parses a preset. A test parses every preset, so the call does not panic.
fn parse(text: &str) -> Machine {
    Machine::from_toml(text).expect("the presets are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_parses_and_has_the_name_it_is_found_by() {
        for (name, text) in PRESETS {
            let machine = Machine::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(machine.name, name);
            assert_eq!(Machine::preset(name), Some(machine));
        }
        assert_eq!(presets().len(), PRESETS.len());
        assert_eq!(Machine::preset("vax"), None);
    }

    #[test]
    fn a_preset_survives_the_way_to_toml_and_back() {
        for machine in presets() {
            assert_eq!(Machine::from_toml(&machine.to_toml()).ok(), Some(machine));
        }
    }

    /// Nodes, CPUs, and the classes from node 0 to each node that begins another distance.
    #[test]
    fn the_presets_have_the_distances_of_the_machines_they_are_drawn_from() {
        let check = |name: &str, nodes: usize, cpus: usize, classes: &[(usize, usize)]| {
            let machine = Machine::preset(name).unwrap();
            assert_eq!((machine.nodes, machine.cpus()), (nodes, cpus), "{name}");
            for &(node, class) in classes {
                assert_eq!(machine.class_between(0, node), class, "{name}: 0 to {node}");
                assert_eq!(machine.class_between(node, 0), class, "{name}: {node} to 0");
            }
            let farthest = (0..nodes).map(|node| machine.class_between(0, node)).max();
            assert_eq!(farthest, Some(machine.classes() - 1), "{name}: a class that no two nodes have");
        };
        check("piii8", 2, 8, &[(0, 0), (1, 1)]);
        check("altix64", 32, 64, &[(0, 0), (1, 1), (2, 2), (7, 2), (8, 3), (31, 3)]);
        check("power5", 8, 64, &[(0, 0), (1, 1), (2, 2), (7, 2)]);
        check("niagara2", 1, 64, &[(0, 0)]);
        check("opteron2", 2, 8, &[(0, 0), (1, 1)]);
        check("nehalem-ex", 4, 64, &[(0, 0), (1, 1), (3, 1)]);
        check("dl980", 8, 80, &[(0, 0), (1, 1), (2, 2), (7, 2)]);
        check("skylake4", 4, 96, &[(0, 0), (1, 1), (3, 1)]);
        check("epyc192", 24, 192, &[(0, 0), (1, 1), (11, 1), (12, 2), (23, 2)]);
    }

    #[test]
    fn farther_is_never_nearer_and_a_miss_costs_more_than_a_hit() {
        for machine in presets() {
            for (kind, costs) in machine.miss.by_kind() {
                assert!(costs.is_sorted(), "{}: {kind}", machine.name);
                assert!(costs[0] > machine.hit.load_ns, "{}: {kind}", machine.name);
            }
            assert!(machine.miss.rmw_ns[0] > machine.hit.rmw_ns, "{}", machine.name);
        }
    }

    #[test]
    fn every_number_of_a_preset_has_its_source_or_is_marked() {
        for (name, text) in PRESETS {
            let mut above_is_comment = false;
            for line in text.lines() {
                let is_cost = line.contains("_ns = ") || line.starts_with("keep") || line.starts_with("rest");
                let said = line.contains('#') || above_is_comment;
                assert!(!is_cost || said, "{name}: no source for {line}");
                above_is_comment = line.starts_with('#');
            }
        }
    }
}
