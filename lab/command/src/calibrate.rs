//! `lightfoot-lab calibrate`: lock loops on this machine and on a simulated machine with its latencies.

use crate::error::Error;
use crate::machine::Machine;
use crate::output::{json, write};
use crate::progress::Progress;
use crate::table::table;
use clap::Args;
use comfy_table::Table;
use lab::calibrate::{Calibration, ErrorOf, LoopRow, Options};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// The arguments of `lightfoot-lab calibrate`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Calibrate {
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,

    /// The two CPUs, by the numbers of the system [default: the first two of this process]
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pair: Option<[usize; 2]>,

    /// Nanoseconds of private work between sections
    #[arg(long, value_name = "NS,NS..", value_delimiter = ',', default_values_t = Options::default().private_ns,
          value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    private_ns: Vec<u64>,

    /// Write the measured machine to this file, for --on sim:FILE
    #[arg(long, value_name = "FILE.toml")]
    save: Option<PathBuf>,
}

/// The calibration and its machine.
#[derive(Debug, Serialize)]
struct CalibrationReport<'a> {
    /// Of the source tree that it ran in.
    commit: String,
    machine: Machine,
    calibration: &'a Calibration,
}

/// Calibrates and writes the report to `out`.
pub(crate) fn run(asked: &Calibrate, out: &mut impl Write) -> Result<(), Error> {
    let options = Options { pair: asked.pair, private_ns: asked.private_ns.clone() };
    let progress = Progress::of("calibrating", options.steps());
    let calibration = lab::calibrate::run(&options, &mut || progress.step(1)).map_err(Error::Calibration)?;
    drop(progress);
    if let Some(path) = &asked.save {
        crate::published::save(path, &calibration.machine.to_toml())?;
    }
    let text = match asked.json {
        true => json(&CalibrationReport {
            commit: crate::commit::here(),
            machine: Machine::here(),
            calibration: &calibration,
        }),
        false => text(&calibration),
    };
    write(out, &text)
}

/// Two numbers with a comma between them.
fn pair(text: &str) -> Result<[usize; 2], String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let pair = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    pair.ok_or_else(|| "use the numbers of two CPUs, such as 0,1".into())
}

fn text(calibration: &Calibration) -> String {
    let mut text = head(&Machine::here(), calibration);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{}\n{LEGEND}\n", rows(&calibration.rows));
    for dropped in &calibration.dropped {
        let (lock, lines, private_ns) = (dropped.lock.name(), dropped.data.lines(), dropped.private_ns);
        let _ = writeln!(text, "dropped: {lock}, lines {lines}, private {private_ns} ns: {}", dropped.reason);
    }
    let _ = write!(text, "\n{}\n", errors(&calibration.errors));
    text
}

fn head(machine: &Machine, calibration: &Calibration) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11}{value}");
    };
    line("machine", format!("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel));
    let [a, b] = calibration.cpus;
    let bound = if calibration.is_pinned { "" } else { " (threads could not be bound to them)" };
    line("CPUs", format!("{a} and {b}{bound}"));
    let numbers = &calibration.numbers;
    line(
        "hits",
        format!(
            "load {:.2} ns, store {:.2}, fetch_add {:.2}, fence {:.2}, pause {:.2}",
            numbers.load_ns, numbers.store_ns, numbers.rmw_ns, numbers.fence_ns, numbers.pause_ns
        ),
    );
    let pingpong = numbers.pingpong;
    line(
        "two CPUs",
        format!(
            "a turn of ping-pong {:.1} ns, so {:.1} a transfer; fetch_add on one word {:.2}",
            pingpong.turn_ns,
            pingpong.transfer_ns(),
            pingpong.contended_add_ns
        ),
    );
    text
}

const LEGEND: &str = "\
ns: from one section to the next, all threads together. lines: 1 if the data lies in the lock's line, 2 if it lies in
another. transfer, keep: parameters of the simulated machine of this row, from a ping-pong and two CPUs' fetch_add just
before it. buffered: the error of the same machine with a store buffer. tries: a row is repeated when the ping-pongs
before and after it differ by more than a quarter.";

fn rows(rows: &[LoopRow]) -> Table {
    let columns = [
        "lock",
        "lines",
        "private\nns",
        "transfer\nns",
        "keep",
        "2 threads\nnative ns",
        "simulated\nns",
        "error",
        "buffered",
        "1 thread\nnative ns",
        "simulated\nns",
        "tries",
    ];
    let cells = |row: &LoopRow| {
        [
            row.lock.name().into(),
            row.data.lines().to_string(),
            row.private_ns.to_string(),
            format!("{:.1}", row.pingpong.transfer_ns()),
            format!("{:.2}", row.keep),
            format!("{:.1}", row.native_ns[0]),
            format!("{:.1}", row.simulated_ns[0]),
            format!("{:+.0} %", 100.0 * row.error()),
            format!("{:+.0} %", 100.0 * row.error_buffered()),
            format!("{:.1}", row.native_ns[1]),
            format!("{:.1}", row.simulated_ns[1]),
            row.tries.to_string(),
        ]
        .into()
    };
    table(&columns, rows.iter().map(cells))
}

fn errors(errors: &[ErrorOf]) -> Table {
    let cells = |of: &ErrorOf| {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        [
            of.data.lines().to_string(),
            of.private_ns.to_string(),
            of.rows.to_string(),
            percent(of.median),
            percent(of.worst),
            percent(of.median_buffered),
        ]
        .into()
    };
    table(&["lines", "private ns", "rows", "median error", "worst", "median, buffered"], errors.iter().map(cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::calibrate::{DataLine, Kind, Pingpong};

    #[test]
    fn a_pair_is_two_numbers() {
        assert_eq!(pair("0,12"), Ok([0, 12]));
        for text in ["", "1", "1,", "1,2,3", "a,b", "-1,2"] {
            assert!(pair(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_table_says_the_error_of_each_row_with_its_sign() {
        let row = LoopRow {
            lock: Kind::Ticket,
            data: DataLine::Own,
            private_ns: 100,
            pingpong: Pingpong { turn_ns: 44.0, contended_add_ns: 9.0 },
            keep: 1.3,
            native_ns: [100.0, 110.0],
            simulated_ns: [85.0, 111.0],
            buffered_ns: 93.0,
            tries: 1,
        };
        let text = rows(&[row]).to_string();
        for part in ["TicketLock", "22.0", "1.30", "-15 %", "-7 %", "110.0", "111.0"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
