//! Tables for the terminal, and the tables of `lightfoot-lab run`.

use crate::run_report::RunReport;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use lab::{Job, LockRow, Outcome};
use std::io::{self, IsTerminal as _};

/// Returns a table with words to the left and numbers to the right. Where the terminal is narrower,
/// cells are broken.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(head);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    let aligned = |text: String| {
        let is_word = text.starts_with(|first: char| first.is_alphabetic());
        Cell::new(text).set_alignment(if is_word { CellAlignment::Left } else { CellAlignment::Right })
    };
    table.add_rows(rows.into_iter().map(|row| row.into_iter().map(aligned).collect::<Vec<Cell>>()));
    table
}

/// Returns the columns of the terminal on standard output.
pub(crate) fn terminal_width() -> Option<u16> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out)).and_then(Result::ok)?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// Throughput of each row, its ratio to others, and simulated the use of the time.
pub(crate) fn throughput(report: &RunReport<'_>) -> Table {
    let roles = report.done().next().map_or(&[][..], |outcome| &outcome.roles[1..]);
    let other_roles: Vec<String> = roles.iter().map(|role| format!("{}s'\nops/s", role.role)).collect();
    let mut head = vec!["era", "CPUs", "threads", "ops/s", "ops/s\nper CPU", "vs own\nfirst row", "vs first\nera"];
    head.extend(other_roles.iter().map(String::as_str));
    if report.is_simulated() {
        head.extend(["user", "spin", "sleeping\nlocks", "counts", "idle"]);
    }
    head.push("host");
    let rows = report.rows().map(|(job, result)| {
        let outcome = result.as_ref().ok();
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), quantity);
        let times = |other: Option<f64>| {
            let ratio = outcome.and_then(|outcome| Some(outcome.ops_per_second / other?));
            ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}×"))
        };
        let mut row = vec![
            job.era.clone(),
            job.on.cpus().to_string(),
            job.on.threads().to_string(),
            rate(outcome.map(|outcome| outcome.ops_per_second)),
            rate(outcome.map(|outcome| outcome.ops_per_second_per_cpu)),
            times(rate_of(report, |other| other.era == job.era)),
            times(rate_of(report, |other| other.era == report.jobs[0].era && is_beside(other, job))),
        ];
        let of_role = |role: usize| Some(outcome?.roles.get(role)?.ops_per_second);
        row.extend((1..=other_roles.len()).map(|role| rate(of_role(role))));
        if report.is_simulated() {
            row.extend(shares(outcome));
        }
        row.push(outcome.map_or_else(|| "-".into(), |outcome| format!("{:.1} s", outcome.host_seconds)));
        row
    });
    table(&head, rows)
}

/// Returns the rate of the first of these jobs, if it has one.
fn rate_of(report: &RunReport<'_>, is_it: impl Fn(&Job) -> bool) -> Option<f64> {
    let (_, result) = report.rows().find(|(job, _)| is_it(job))?;
    result.as_ref().ok().map(|outcome| outcome.ops_per_second).filter(|rate| *rate > 0.0)
}

fn is_beside(one: &Job, other: &Job) -> bool {
    (one.on.cpus(), one.on.threads()) == (other.on.cpus(), other.on.threads())
}

/// Returns the time spent computing, spinning, in sleeping locks, on reference counts, and not at
/// all.
fn shares(outcome: Option<&Outcome>) -> [String; 5] {
    const TAGS: [&[&str]; 5] =
        [&["User"], &["SpinLock", "RwLock", "SeqLock"], &["Mutex", "RwSem"], &["Ref"], &["Idle"]];
    TAGS.map(|tags| {
        let sum = |outcome: &Outcome| tags.iter().map(|tag| outcome.share(tag)).sum::<f64>();
        outcome.map_or_else(|| "-".into(), |outcome| format!("{:.1} %", sum(outcome)))
    })
}

/// Lockmeter's columns for the locks of each row that were taken, or nothing if none was.
pub(crate) fn locks(report: &RunReport<'_>) -> Option<Table> {
    let head = [
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
    ];
    let locks = report.done().flat_map(|outcome| outcome.locks.iter().map(move |lock| (outcome, lock)));
    let rows = locks.filter(|(_, lock)| lock.acquisitions > 0).map(|(outcome, lock)| {
        let job = &outcome.job;
        [job.era.clone(), job.on.cpus().to_string(), lock.name.clone()].into_iter().chain(columns(lock)).collect()
    });
    let table = table(&head, rows);
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

/// Returns the stalls of a run, if they were requested: nanoseconds of a CPU for each step of the
/// first role.
pub(crate) fn stalls(outcome: &Outcome) -> Option<String> {
    /// Places of a cache line that are named.
    const NAMED: usize = 6;
    let steps = outcome.roles.first().filter(|role| role.ops > 0)?.ops as f64;
    let (places, lines): (Vec<_>, Vec<_>) = outcome.stalls.iter().partition(|stall| stall.cache_lines.is_some());
    if places.is_empty() {
        return None;
    }
    let job = &outcome.job;
    let mut text = format!("stalls of {}, {} CPUs, in nanoseconds a step\n", job.era, job.on.cpus());
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
    // A value that rounds to 1000 belongs to the next unit.
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
