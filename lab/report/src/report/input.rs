//! The chosen inputs of an experiment: every number that was set, and the figures it was set with a view to.
//!
//! # What it is
//! One list for each experiment. The values are read from the experiment's jobs, so the list cannot differ from what runs.
//! Tests compare it with the jobs: a parameter, an option, the interrupts or a marked value of a machine's file that is not
//! the default must be in the list.
//!
//! # What it is not
//! A place for labels: a figure's [`Origin`](super::Origin) follows from this list.

use super::experiment::Cell;
use crate::job::{Interrupts, Job, Substrate};
use std::collections::BTreeSet;

/// Which rows, by their labels.
pub type Rows = fn(&str) -> bool;

/// A number that was chosen, or several that were chosen together.
pub struct Input {
    /// Its meaning.
    pub what: &'static str,
    /// The numbers that it sets.
    pub numbers: Vec<Number>,
    /// Its source: a sentence for the report.
    pub basis: &'static str,
    /// The rows that were in view.
    pub views: Vec<(View, Rows)>,
}

/// A number that an input sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A parameter of the workload.
    Parameter(&'static str),
    /// An option of the eras.
    Option(&'static str),
    /// The interrupts of the simulated CPUs.
    Interrupts,
    /// A value of the machine's file, as `queue.home_occupancy_ns`.
    Machine(&'static str),
    /// A setting that is not a number of a job, with its value.
    Other(&'static str),
}

/// How rows were in view when an input was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The input was set so that these figures come out.
    Fitted,
    /// These figures were in view, though the input was not fitted to them.
    Seen,
    /// The input was read off the publication, and these figures follow from it by arithmetic.
    ReadOff,
}

/// The interrupts of a cell unless its experiment sets others: a timer tick.
pub(super) const TICK: Interrupts = Interrupts { every_ns: 1_000_000, mean_ns: 3_000 };

impl Input {
    pub(super) fn new(what: &'static str, numbers: impl Into<Vec<Number>>) -> Self {
        Self { what, numbers: numbers.into(), basis: "assumed", views: Vec::new() }
    }

    /// Parameters of the workload that were chosen together.
    pub(super) fn parameters(what: &'static str, names: &[&'static str]) -> Self {
        Self::new(what, names.iter().map(|name| Number::Parameter(name)).collect::<Vec<Number>>())
    }

    /// Returns how long one read keeps the cache of a node, or a line's home, busy.
    pub(super) fn occupancies() -> Self {
        let numbers = [Number::Machine("queue.local_occupancy_ns"), Number::Machine("queue.home_occupancy_ns")];
        Self::new("occupancy of a node, and of a line's home", numbers)
    }

    /// Returns how far the simulator lets a CPU run ahead of the other CPUs.
    pub(super) fn run_ahead() -> Self {
        Self::new("how far a CPU may run ahead of the others", [Number::Other("20 ns")])
            .from("for speed; the figures change by less than 1 % (simulator.md, Speed)")
    }

    /// Returns the cost of a line's way to another CPU.
    pub(super) fn transfer() -> Self {
        let numbers = [Number::Machine("queue.keep"), Number::Machine("queue.rest")];
        Self::new("the owner's keep of a line, and the rest of the transfer", numbers)
            .from("fitted to lock loops on a Zen 5; nothing here was published")
    }

    /// Sets the source of the input, which was chosen with no figure of the experiment in view.
    pub(super) fn from(self, basis: &'static str) -> Self {
        Self { basis, ..self }
    }

    /// Notes that the input was set so that the figures of `rows` come out.
    pub(super) fn fitted(self, basis: &'static str, rows: Rows) -> Self {
        self.with(basis, View::Fitted, rows)
    }

    /// Notes that the figures of `rows` were in view when the input was chosen.
    pub(super) fn seen(self, basis: &'static str, rows: Rows) -> Self {
        self.with(basis, View::Seen, rows)
    }

    /// Notes that the input was read off the publication, and that the figures of `rows` follow
    /// from it.
    pub(super) fn read_off(self, basis: &'static str, rows: Rows) -> Self {
        self.with(basis, View::ReadOff, rows)
    }

    fn with(mut self, basis: &'static str, view: View, rows: Rows) -> Self {
        self.views.push((view, rows));
        Self { basis, ..self }
    }

    /// Returns the values that the jobs of `cells` have, in words.
    #[must_use]
    pub fn values(&self, cells: &[Cell]) -> String {
        let of_number = |number: &Number| {
            let values: BTreeSet<Value> = cells.iter().flat_map(|cell| number.values(&cell.job)).collect();
            values.into_iter().map(|value| value.words).collect::<Vec<String>>().join(", ")
        };
        self.numbers.iter().map(of_number).collect::<Vec<String>>().join("; ")
    }
}

/// A value with its words, in the order of values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value {
    number: u64,
    words: String,
}

impl Number {
    fn values(self, job: &Job) -> Vec<Value> {
        let simulation = match &job.on {
            Substrate::Simulated(simulation) => simulation,
            Substrate::Native { .. } => return Vec::new(),
        };
        let of = |name: &str, number: u64| Value { number, words: words(name, number) };
        match self {
            Self::Parameter(name) => parameter(job, name).map(|value| of(name, value)).into_iter().collect(),
            Self::Option(name) => job.era_options.get(name).map(|&value| of(name, value)).into_iter().collect(),
            Self::Interrupts => simulation
                .interrupts
                .map(|Interrupts { every_ns, mean_ns }| Value {
                    number: every_ns,
                    words: format!("every {}, {} long", time(every_ns as f64), time(mean_ns as f64)),
                })
                .into_iter()
                .collect(),
            Self::Machine(field) => {
                let machine = serde_json::to_value(&simulation.machine).unwrap_or_default();
                let value = field.split('.').fold(&machine, |value, key| &value[key]).as_f64().unwrap_or(f64::NAN);
                let words = if field.ends_with("_ns") { time(value) } else { value.to_string() };
                vec![Value { number: value as u64, words: format!("{}: {words}", simulation.machine.name) }]
            }
            Self::Other(value) => vec![Value { number: 0, words: value.into() }],
        }
    }
}

/// Returns the value of a parameter in a job: the default, if it is not set. Nothing if the
/// workload does not have the parameter.
pub(super) fn parameter(job: &Job, name: &str) -> Option<u64> {
    let entry = eras::workload::find(&job.workload)?;
    let parameter = entry.parameters.iter().find(|parameter| parameter.name == name)?;
    Some(job.parameters.get(name).copied().unwrap_or(parameter.default))
}

/// Returns a number with the unit that its name ends in.
fn words(name: &str, value: u64) -> String {
    match name.rsplit('_').next() {
        Some("ns") => time(value as f64),
        Some("permille") => format!("{value} in 1,000"),
        Some("hundredths") => format!("{:.2}", value as f64 / 100.0),
        _ => value.to_string(),
    }
}

/// Returns a time with the unit that makes it short.
pub(super) fn time(ns: f64) -> String {
    let scale = if ns >= 1e6 {
        (1e6, "ms")
    } else if ns >= 1e3 {
        (1e3, "us")
    } else {
        (1.0, "ns")
    };
    format!("{} {}", (100.0 * ns / scale.0).round() / 100.0, scale.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_unit() {
        for (name, value, text) in [
            ("think_ns", 330_000, "330 us"),
            ("path_ns", 600, "600 ns"),
            ("idle_ns", 2_500_000, "2.5 ms"),
            ("idle_permille", 20, "20 in 1,000"),
            ("depth_hundredths", 479, "4.79"),
            ("depth", 4, "4"),
        ] {
            assert_eq!(words(name, value), text);
        }
    }
}
