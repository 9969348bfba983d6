//! `lightfoot-lab machines`: the simulated machines and their latencies.

use crate::terminal;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use sim::Machine;

/// All machines in one table, and where their numbers come from.
pub(crate) fn text() -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    terminal::fit(&mut table);
    table.set_header([
        "machine",
        "nodes x CPUs",
        "groups",
        "line",
        "private\ncache",
        "load of a\nmodified line",
        "locked\nread-modify-write",
        "memory",
    ]);
    let machines = sim::machine::presets();
    for machine in &machines {
        table.add_row(row(machine));
    }
    let described: Vec<String> =
        machines.iter().map(|machine| format!("  {:<11} {}\n", machine.name, machine.description)).collect();
    format!("{table}\n{LEGEND}\n{}", described.concat())
}

fn row(machine: &Machine) -> Vec<Cell> {
    let groups: Vec<String> = machine.groups.iter().map(usize::to_string).collect();
    let numbers = [
        format!("{} x {}", machine.nodes, machine.cpus_per_node),
        groups.join(","),
        format!("{} B", machine.line_bytes),
        format!("{} KiB", machine.cache_kib),
        by_distance(&machine.miss.load_modified_ns),
        by_distance(&machine.miss.rmw_ns),
        by_distance(&machine.miss.memory_ns),
    ];
    let numbers = numbers.map(|number| Cell::new(number).set_alignment(CellAlignment::Right));
    [Cell::new(&machine.name)].into_iter().chain(numbers).collect()
}

fn by_distance(ns: &[f64]) -> String {
    let ns: Vec<String> = ns.iter().map(|ns| format!("{ns:.0}")).collect();
    format!("{} ns", ns.join(" / "))
}

const LEGEND: &str = "\
Latencies by distance: in the node, then in each larger group of nodes, then beyond. groups: nodes in each such group.
The files lab/sim/machines/*.toml give each number's source and mark those that are not confirmed. A machine of your
own: copy one, change it, and run --on sim:/path/to/it.toml.
";
