//! The outcomes of an experiment as they are kept: `lab/outcomes/NAME.json`.
//!
//! # What it is
//! The figure of each row in each run, with the commit and the windows. The report's text, its claims and its plots follow
//! from these files alone, so a test can compare them with the committed text. One row is one line of the file.
//!
//! # What it is not
//! A trace: counts of a run besides the rows are not kept.

use super::{Experiment, Run, Variation};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The outcomes of one experiment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Record {
    /// The commit that was run.
    pub commit: String,
    /// How long cells were measured, and how long they ran before.
    pub windows: Vec<Window>,
    /// The cells in which a thread had not finished its first operation when the window began.
    pub cold: Vec<String>,
    /// The names of the variations, in the order of each row's figures.
    pub runs: Vec<String>,
    /// Label and figures of each row; nothing where a cell had too few operations.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// Cells with the same times.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Window {
    /// Microseconds of warm-up.
    pub warm_us: u64,
    /// Microseconds that were counted.
    pub run_us: u64,
    /// How many cells of the first run.
    pub cells: usize,
}

impl Record {
    /// Returns the record of `runs`.
    #[must_use]
    pub fn new(experiment: &Experiment, commit: &str, runs: &[Run]) -> Self {
        let row = |(i, row): (usize, &super::Row)| {
            let figures = runs.iter().map(|run| Some(run.values[i]).filter(|value| value.is_finite()));
            (row.label.clone(), figures.collect())
        };
        Self {
            commit: commit.into(),
            windows: runs.first().map_or_else(Vec::new, |run| run.windows.clone()),
            cold: runs.first().map_or_else(Vec::new, |run| run.cold.clone()),
            runs: runs.iter().map(|run| run.variation.name.to_owned()).collect(),
            rows: experiment.rows.iter().enumerate().map(row).collect(),
        }
    }

    /// Returns the runs, if they are of this experiment as it is now.
    ///
    /// # Errors
    /// A sentence about what differs.
    pub fn runs_of(&self, experiment: &Experiment) -> Result<Vec<Run>, String> {
        let stale = |what: &str| {
            let name = experiment.name;
            format!("outcomes of {name}: {what} differ (run `lightfoot-lab report --only {name}`)")
        };
        let labels = || self.rows.iter().map(|(label, _)| label.as_str());
        if !labels().eq(experiment.rows.iter().map(|row| row.label.as_str())) {
            return Err(stale("the rows"));
        }
        let expected = experiment.variations(false);
        if !self.runs.iter().map(String::as_str).eq(expected.iter().map(|variation| variation.name)) {
            return Err(stale("the variations"));
        }
        if self.rows.iter().any(|(_, figures)| figures.len() != self.runs.len()) {
            return Err(stale("the numbers of figures"));
        }
        let run = |(i, variation): (usize, Variation)| {
            let values = self.rows.iter().map(|(_, figures)| figures[i].unwrap_or(f64::NAN)).collect();
            Run::new(experiment, variation, values, self.windows.clone(), self.cold.clone())
        };
        Ok(expected.into_iter().enumerate().map(run).collect())
    }

    /// Returns the file's text.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "\"commit\": {},", line(&self.commit));
        let _ = writeln!(text, "\"windows\": {},", line(&self.windows));
        let _ = writeln!(text, "\"cold\": {},", line(&self.cold));
        let _ = writeln!(text, "\"runs\": {},", line(&self.runs));
        let rows: Vec<String> = self.rows.iter().map(line).collect();
        let _ = write!(text, "\"rows\": [\n{}\n]\n}}\n", rows.join(",\n"));
        text
    }
}

/// Anything as one line of JSON.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let record = Record {
            commit: "0123abc".into(),
            windows: vec![Window { warm_us: 1, run_us: 4, cells: 2 }],
            cold: vec!["a 192".into()],
            runs: vec!["seed 1".into(), "seed 2".into()],
            rows: vec![("first, \"x\"".into(), vec![Some(1.5), None]), ("second".into(), vec![Some(-2.0), Some(0.0)])],
        };
        assert_eq!(serde_json::from_str::<Record>(&record.json()).ok(), Some(record.clone()), "{}", record.json());
        assert!(record.json().contains("\n[\"second\",[-2.0,0.0]]\n"), "{}", record.json());
    }
}
