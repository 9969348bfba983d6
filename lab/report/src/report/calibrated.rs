//! The result of the last calibration, as the report shows it: `lab/outcomes/calibration.json`,
//! which is the output of `lightfoot-lab calibrate --json`.

use crate::calibrate::{DataLine, Dropped, ErrorOf, LoopRow};
use core::fmt::Write as _;
use serde::Deserialize;

/// A row is near if its error is at most this.
const NEAR: f64 = 0.3;

/// The part of a calibration's output that the report shows.
#[derive(Clone, Debug, Deserialize)]
pub struct Calibrated {
    commit: String,
    machine: Host,
    calibration: Rows,
}

#[derive(Clone, Debug, Deserialize)]
struct Host {
    cpu: String,
    cpus: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct Rows {
    rows: Vec<LoopRow>,
    dropped: Vec<Dropped>,
    errors: Vec<ErrorOf>,
}

impl Calibrated {
    /// Returns the verdict in Markdown.
    #[must_use]
    pub fn text(&self) -> String {
        let Rows { rows, dropped, .. } = &self.calibration;
        let mut errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
        let near = errors.iter().filter(|&&error| error <= NEAR).count();
        let factors = rows.iter().map(|row| 1.0 + row.error());
        let (least, most) = factors.fold((f64::INFINITY, 0.0_f64), |(a, b), of| (a.min(of), b.max(of)));
        let mut text = format!(
            "Lock loops of two CPUs, simulated and on real hardware ({}, {} CPUs; commit {}): the median error is {}, and \
             {near} of {} loops are within 30 % (goal: 15 %, and all). A simulated loop takes {least:.2} to {most:.2} times as \
             long as the real one. **A difference between saturated locks that is smaller than these factors means \
             nothing.** [How it was measured, and what was tried](simulator.md#calibration). The machines of this report \
             have no store buffer. These two CPUs are near each other; on a processor whose CPUs are far apart, an older run \
             found saturated locks 1.5 to 4 times too slow.\n\n",
            self.machine.cpu,
            self.machine.cpus,
            self.commit,
            percent(crate::calibrate::median(&mut errors)),
            rows.len() + dropped.len(),
        );
        text.push_str(&self.groups());
        text.push_str(&self.off());
        for Dropped { lock, data, private_ns, reason } in dropped {
            let _ = writeln!(text, "\nNo result for {}, {}, {private_ns} ns: {reason}.", lock.name(), place(*data));
        }
        text
    }

    fn groups(&self) -> String {
        let mut text = String::from(
            "| data | private work between sections | loops | median error | worst | median with a store buffer |\n\
             |---|--:|--:|--:|--:|--:|\n",
        );
        for of in &self.calibration.errors {
            let errors = [of.median, of.worst, of.median_buffered].map(percent).join(" | ");
            let _ = writeln!(text, "| {} | {} ns | {} | {errors} |", place(of.data), of.private_ns, of.rows);
        }
        text
    }

    /// Returns the rows that are not near.
    fn off(&self) -> String {
        let mut text = String::new();
        for row in self.calibration.rows.iter().filter(|row| row.error().abs() > NEAR) {
            if text.is_empty() {
                text.push_str(
                    "\n| off by more than 30 % | real ns | simulated ns | error | because |\n|---|--:|--:|--:|---|\n",
                );
            }
            let _ = writeln!(
                text,
                "| {}, {}, {} ns | {:.0} | {:.0} | {:+.0} % | {} |",
                row.lock.name(),
                place(row.data),
                row.private_ns,
                row.native_ns[0],
                row.simulated_ns[0],
                100.0 * row.error(),
                because(row),
            );
        }
        text
    }
}

/// Why a row is off.
fn because(row: &LoopRow) -> &'static str {
    match (row.error() > 0.0, row.data) {
        (false, _) => {
            "a line that no CPU is waiting for yet takes two to three times as long as in the ping-pong that the transfer was \
             measured by"
        }
        (true, DataLine::Own) => {
            "the processor fetches the data's line while it waits for the lock's; the simulated one waits for one after the \
             other"
        }
        (true, DataLine::Locks) => {
            "how long an owner keeps a line that another CPU wants is one number (`keep`), fitted to additions, and not the \
             same for each lock"
        }
    }
}

fn place(data: DataLine) -> &'static str {
    match data {
        DataLine::Locks => "in the lock's line",
        DataLine::Own => "in another line",
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{Kind, Pingpong};

    fn row(lock: Kind, data: DataLine, native_ns: f64, simulated_ns: f64) -> LoopRow {
        let pingpong = Pingpong { turn_ns: 60.0, contended_add_ns: 20.0 };
        let (native_ns, simulated_ns, buffered_ns) = ([native_ns; 2], [simulated_ns; 2], simulated_ns);
        LoopRow { lock, data, private_ns: 100, pingpong, keep: 0.5, native_ns, simulated_ns, buffered_ns, tries: 1 }
    }

    fn calibrated(rows: Vec<LoopRow>, dropped: Vec<Dropped>) -> Calibrated {
        let machine = Host { cpu: "a processor".into(), cpus: 2 };
        let of = |median| ErrorOf {
            data: DataLine::Own,
            private_ns: 100,
            rows: rows.len(),
            median,
            worst: 0.5,
            median_buffered: 0.25,
        };
        let errors = vec![of(0.05)];
        Calibrated { commit: "0123456789".into(), machine, calibration: Rows { rows, dropped, errors } }
    }

    #[test]
    fn the_verdict_names_each_loop_that_is_off_and_why_and_each_that_has_no_result() {
        let rows = vec![
            row(Kind::Tas, DataLine::Own, 100.0, 95.0),
            row(Kind::Mcs, DataLine::Locks, 100.0, 50.0),
            row(Kind::Queued, DataLine::Own, 100.0, 150.0),
        ];
        let reason = String::from("too few undisturbed bursts");
        let dropped = vec![Dropped { lock: Kind::Ticket, data: DataLine::Own, private_ns: 300, reason }];
        let text = calibrated(rows, dropped).text();
        for part in [
            "the median error is 50 %",
            "1 of 4 loops",
            "0.50 to 1.50 times",
            "| in another line | 100 ns | 3 | 5 % | 50 % | 25 % |",
            "| McsLock, in the lock's line, 100 ns | 100 | 50 | -50 % | a line that no CPU is waiting for yet",
            "| QueuedLock, in another line, 100 ns | 100 | 150 | +50 % | the processor fetches the data's line",
            "No result for TicketLock, in another line, 300 ns: too few undisturbed bursts.",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("| TasLock"), "{text}");
    }

    #[test]
    fn loops_that_are_all_near_have_no_second_table() {
        let text = calibrated(vec![row(Kind::Tas, DataLine::Own, 100.0, 129.0)], Vec::new()).text();
        assert!(text.contains("1 of 1 loops") && !text.contains("off by more"), "{text}");
    }
}
