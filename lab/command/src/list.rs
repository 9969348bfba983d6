//! `lightfoot-lab list`: the parts that can be run.

use crate::table::{table, terminal_width};
use comfy_table::ContentArrangement;
use eras::workload;

/// Columns where standard output is not a terminal.
const WIDTH: u16 = 120;

/// Eras, workloads with their parameters, and machines; only those with one of `parts` in their
/// row.
pub(crate) fn text(parts: &[String]) -> String {
    let tables = [
        ("Eras (--era)", &["era", "year", "how it locks"][..], eras()),
        (
            "Workloads (--workload; --set NAME=N)",
            &["workload", "what it does, and for which figures", "parameters and their defaults"],
            workloads(),
        ),
        ("Machines (--on native, --on sim:NAME)", &["machine", "nodes", "CPUs", "what it is"], machines()),
    ];
    let shown = tables.into_iter().filter_map(|(title, head, rows)| {
        let rows: Vec<Vec<String>> = rows.into_iter().filter(|row| is_asked(row, parts)).collect();
        (!rows.is_empty()).then(|| {
            let mut table = table(head, rows);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(terminal_width().unwrap_or(WIDTH));
            format!("{title}\n{table}\n")
        })
    });
    let text = shown.collect::<Vec<String>>().join("\n");
    if text.is_empty() { format!("nothing has {} in its row\n", parts.join(" or ")) } else { text }
}

/// Returns whether a row has one of `parts`, in any case.
fn is_asked(row: &[String], parts: &[String]) -> bool {
    let row = row.join(" ").to_lowercase();
    parts.is_empty() || parts.iter().any(|part| row.contains(&part.to_lowercase()))
}

fn eras() -> Vec<Vec<String>> {
    eras::catalogue().iter().map(|era| vec![era.name.into(), era.year.to_string(), era.summary.into()]).collect()
}

fn workloads() -> Vec<Vec<String>> {
    let row = |entry: &workload::WorkloadEntry| {
        let parameter =
            |parameter: &workload::Parameter| format!("{}={}: {}", parameter.name, parameter.default, parameter.what);
        let parameters: Vec<String> = entry.parameters.iter().map(parameter).collect();
        vec![entry.name.into(), format!("{}\n[{}]", entry.summary, entry.source), parameters.join("\n")]
    };
    workload::catalogue().iter().map(row).collect()
}

fn machines() -> Vec<Vec<String>> {
    let row = |machine: sim::Machine| {
        vec![machine.name.clone(), machine.nodes.to_string(), machine.cpus().to_string(), machine.description.clone()]
    };
    sim::machine::presets().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_selects_rows_by_name_or_by_what_they_say() {
        let of = |part: &str| text(&[part.to_owned()]);
        assert!(of("fastwalk").contains("fastwalk") && !of("fastwalk").contains("lightfoot"), "{}", of("fastwalk"));
        assert!(of("ALTIX").contains("altix64") && !of("ALTIX").contains("Workloads"), "{}", of("ALTIX"));
        assert!(of("nothing like it").starts_with("nothing has"), "{}", of("nothing like it"));
    }
}
