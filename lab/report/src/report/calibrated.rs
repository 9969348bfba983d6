//! What the last calibration found, as the report shows it: `lab/outcomes/calibration.json`, which is the output of
//! `lightfoot-lab calibrate --json`.

use serde::Deserialize;
use std::fmt::Write as _;

/// The part of a calibration's output that the report shows.
#[derive(Clone, Debug, Deserialize)]
pub struct Calibrated {
    machine: Host,
    calibration: Errors,
}

#[derive(Clone, Debug, Deserialize)]
struct Host {
    cpu: String,
    cpus: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct Errors {
    rows: Vec<LoopError>,
    errors: Vec<Group>,
}

/// One lock loop: nanoseconds of two threads together, and of one alone.
#[derive(Clone, Debug, Deserialize)]
struct LoopError {
    native_ns: [f64; 2],
    simulated_ns: [f64; 2],
}

/// Loops of one kind.
#[derive(Clone, Debug, Deserialize)]
struct Group {
    data: String,
    private_ns: u64,
    rows: usize,
    median: f64,
    worst: f64,
}

impl Calibrated {
    /// The verdict in Markdown.
    #[must_use]
    pub fn text(&self) -> String {
        let mut errors: Vec<f64> = self.calibration.rows.iter().map(LoopError::error).collect();
        errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let median = errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN).abs();
        let near = errors.iter().filter(|error| error.abs() <= 0.3).count();
        let slowest = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut text = format!(
            "Lock loops of two CPUs, simulated and on real hardware ({}, {} CPUs): the median error is {:.0} %; {near} of {} \
             loops are within 30 %; the slowest simulated loop takes {:.1} times as long as the real one. **A difference \
             between saturated locks that is smaller than that factor means nothing.**\n\n\
             | data | private work between sections | loops | median error | worst |\n|---|---|---|---|---|\n",
            self.machine.cpu,
            self.machine.cpus,
            100.0 * median,
            errors.len(),
            1.0 + slowest,
        );
        for group in &self.calibration.errors {
            let place = if group.data == "locks" { "in the lock's line" } else { "in another line" };
            let _ = writeln!(
                text,
                "| {place} | {} ns | {} | {:.0} % | {:.0} % |",
                group.private_ns,
                group.rows,
                100.0 * group.median,
                100.0 * group.worst
            );
        }
        text
    }
}

impl LoopError {
    fn error(&self) -> f64 {
        self.simulated_ns[0] / self.native_ns[0] - 1.0
    }
}
