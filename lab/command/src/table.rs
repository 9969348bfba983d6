//! The tables of `lightfoot-lab run`.

use crate::run_report::{RunReport, RunRow};
use crate::terminal;
use comfy_table::{Cell, CellAlignment, Table, presets};
use lab::LockRow;

fn empty(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(head);
    terminal::fit(&mut table);
    table
}

/// Adds a row whose first cell is text and the rest numbers.
fn add(table: &mut Table, name: &str, numbers: Vec<String>) {
    let numbers = numbers.into_iter().map(|number| Cell::new(number).set_alignment(CellAlignment::Right));
    table.add_row([Cell::new(name)].into_iter().chain(numbers));
}

/// Throughput of each row, what it is to others, and simulated what the time went to.
pub(crate) fn throughput(report: &RunReport) -> Table {
    let other_roles: Vec<String> =
        report.rows.iter().find(|row| row.is_done()).map_or_else(Vec::new, |row| {
            row.roles.iter().skip(1).map(|role| format!("{}s'\nops/s", role.role)).collect()
        });
    let mut head = vec!["era", "CPUs", "threads", "ops/s", "ops/s\nper CPU", "vs own\nfirst row", "vs first\nera"];
    head.extend(other_roles.iter().map(String::as_str));
    if report.is_simulated() {
        head.extend(["user", "spin", "sleeping\nlocks", "counts", "idle"]);
    }
    head.push("host");
    let mut table = empty(&head);
    for row in &report.rows {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), quantity);
        let times = |ratio: Option<f64>| ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}×"));
        let mut numbers = vec![
            row.cpus.to_string(),
            row.threads.to_string(),
            rate(row.ops_per_second),
            rate(row.ops_per_second_per_cpu),
            times(row.times_own_first),
            times(row.times_first_era),
        ];
        numbers.extend((1..=other_roles.len()).map(|role| rate(row.roles.get(role).map(|role| role.ops_per_second))));
        if report.is_simulated() {
            numbers.extend(shares(row));
        }
        numbers.push(row.host_seconds.map_or_else(|| "-".into(), |seconds| format!("{seconds:.1} s")));
        add(&mut table, &row.era, numbers);
    }
    table
}

/// What is spent computing, spinning, in sleeping locks, on reference counts, and not at all.
fn shares(row: &RunRow) -> [String; 5] {
    const TAGS: [&[&str]; 5] =
        [&["User"], &["SpinLock", "RwLock", "SeqLock"], &["Mutex", "RwSem"], &["Ref"], &["Idle"]];
    TAGS.map(|tags| if row.is_done() { format!("{:.1} %", row.share(tags)) } else { "-".into() })
}

/// Lockmeter's columns for the locks of each row that were taken, or nothing if none was.
pub(crate) fn locks(report: &RunReport) -> Option<Table> {
    let mut table = empty(&[
        "era",
        "CPUs",
        "lock",
        "UTIL",
        "CON",
        "HOLD\nmean (max)",
        "WAIT\nmean (max)",
        "WAIT\n% of CPU",
        "TOTAL",
        "NOWAIT",
        "SPIN",
    ]);
    for row in &report.rows {
        for lock in row.locks.iter().filter(|lock| lock.acquisitions > 0) {
            let mut numbers = vec![row.cpus.to_string(), lock.name.clone()];
            numbers.extend(columns(lock));
            add(&mut table, &row.era, numbers);
        }
    }
    (!table.is_empty()).then_some(table)
}

fn columns(lock: &LockRow) -> [String; 8] {
    let percent = |percent: f64| format!("{percent:.1} %");
    let us = |mean: f64, max: f64| format!("{mean:.2} us ({max:.0} us)");
    [
        percent(lock.utilization_percent),
        percent(lock.contention_percent),
        us(lock.hold_mean_us, lock.hold_max_us),
        us(lock.wait_mean_us, lock.wait_max_us),
        format!("{:.2} %", lock.wait_cpu_percent),
        lock.acquisitions.to_string(),
        percent(lock.nowait_percent),
        percent(lock.spin_percent),
    ]
}

/// The stalls of a run, if they were requested: nanoseconds of a CPU for each step of the first role.
pub(crate) fn stalls(row: &RunRow) -> Option<String> {
    /// Places of a cache line that are named.
    const NAMED: usize = 6;
    let steps = row.roles.first().filter(|role| role.ops > 0)?.ops as f64;
    let (places, lines): (Vec<_>, Vec<_>) = row.stalls.iter().partition(|stall| stall.cache_lines.is_some());
    if places.is_empty() {
        return None;
    }
    let mut text = format!("stalls of {}, {} CPUs, in nanoseconds a step\n", row.era, row.cpus);
    for (head, stalls) in [("source line", places), ("cache line, by its source lines", lines)] {
        text += &format!("{:>9}{:>9}{:>9}  {head}\n", "ns", "misses", "lines");
        for stall in stalls {
            let (ns, misses) = (stall.ns / steps, stall.misses as f64 / steps);
            let named = stall.places.iter().take(NAMED).map(String::as_str).collect::<Vec<&str>>().join(" ");
            text += &format!("{ns:>9.1}{misses:>9.3}{:>9}  {named}\n", stall.cache_lines.unwrap_or(1));
        }
    }
    Some(text)
}

/// Three digits and a unit: "1.23 M".
pub(crate) fn quantity(value: f64) -> String {
    let scales = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    // What rounds to 1000 belongs to the next unit.
    let (scale, unit) = scales.into_iter().find(|(scale, _)| value >= scale * 0.9995).unwrap_or((1.0, ""));
    let value = value / scale;
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_three_digits_and_a_unit() {
        let values = [
            (0.0, "0.00"),
            (9.996, "10.0"),
            (123.4, "123"),
            (999.6, "1.00 k"),
            (45_678.0, "45.7 k"),
            (1.5e6, "1.50 M"),
        ];
        for (value, expected) in values {
            assert_eq!(quantity(value), expected, "{value}");
        }
    }
}
