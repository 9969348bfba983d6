//! `lightfoot-lab list`: what can be run.

use comfy_table::{ContentArrangement, Table, presets};
use eras::workload;

/// Eras, workloads with their parameters, and machines.
pub(crate) fn text() -> String {
    format!(
        "Eras (--era)\n{}\n\nWorkloads (--workload; --set NAME=N)\n{}\n\nMachines (--on native, --on sim:NAME)\n{}\n",
        eras(),
        workloads(),
        machines()
    )
}

/// An empty table as wide as the terminal, or 120 columns.
fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(120).set_header(head);
    table
}

fn eras() -> Table {
    let mut table = table(&["era", "year", "how it locks"]);
    for era in eras::catalogue() {
        table.add_row([era.name, &era.year.to_string(), era.summary]);
    }
    table
}

fn workloads() -> Table {
    let mut table = table(&["workload", "what it does, and for which figures", "parameters and their defaults"]);
    for entry in workload::catalogue() {
        let parameter =
            |parameter: &workload::Parameter| format!("{}={}: {}", parameter.name, parameter.default, parameter.what);
        let parameters: Vec<String> = entry.parameters.iter().map(parameter).collect();
        table.add_row([entry.name, &format!("{}\n[{}]", entry.summary, entry.source), &parameters.join("\n")]);
    }
    table
}

fn machines() -> Table {
    let mut table = table(&["machine", "nodes", "CPUs", "what it is"]);
    for machine in sim::machine::presets() {
        let (nodes, cpus) = (machine.nodes.to_string(), machine.cpus().to_string());
        table.add_row([&machine.name, &nodes, &cpus, &machine.description]);
    }
    table
}
