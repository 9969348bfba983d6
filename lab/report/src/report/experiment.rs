//! One section of the report: jobs to run, figures read from their outcomes, published figures, and
//! claims.
//!
//! An experiment is data with closures: the cells define the runs, the rows define the figures that
//! are read from the outcomes and the published figure beside each, the claims define the
//! statements that must hold in every variation. Only the variables of the published measurement
//! itself can depend on the cell, for cells take the experiment's one set of parameters.

use super::input::Input;
use super::tolerance::{Reason, Tolerance};
use crate::job::Job;
use crate::outcome::Outcome;
use std::cell::Cell as Flag;
use std::collections::BTreeMap;

/// A section of the report.
#[derive(Default)]
pub struct Experiment {
    /// Short name, for `--only` and file names.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The published tables that it reproduces, by their names in `published.toml`.
    pub sources: &'static [&'static str],
    /// The experiment, in Markdown.
    pub about: &'static str,
    /// Numbers that were chosen.
    pub inputs: Vec<Input>,
    /// The runs.
    pub cells: Vec<Cell>,
    /// The figures that are read from them.
    pub rows: Vec<Row>,
    /// Rows that are shown together, in a separate table.
    pub grids: Vec<Grid>,
    /// Why rows are far from the published figures.
    pub reasons: Vec<Reason>,
    /// The statements that must hold.
    pub claims: Vec<Claim>,
    /// The drawings.
    pub figures: Vec<Figure>,
    /// Whether it is run under the corners of the box too.
    pub has_box: bool,
    /// The differences from the publication, with reasons, in Markdown.
    pub remarks: &'static str,
    /// Where another era is ahead of Lightfoot, from the figures.
    pub summary: Option<Summary>,
}

/// Where another era is ahead of Lightfoot: lines of the summary, from the figures.
pub type Summary = Box<dyn Fn(&Figures<'_>) -> Vec<String>>;

/// One run.
pub struct Cell {
    /// The key by which rows find its outcome.
    pub key: String,
    /// The run.
    pub job: Job,
}

/// One figure.
pub struct Row {
    /// Its name, with its unit.
    pub label: String,
    /// The published figure.
    pub published: Option<f64>,
    /// How far the simulated figure may be from it.
    pub tolerance: Tolerance,
    /// Whether it is 1 because it is divided by itself.
    pub is_base: bool,
    /// The simulated figure, from the outcomes.
    pub read: Box<dyn Fn(&Outcomes<'_>) -> f64>,
}

impl Row {
    /// Returns a row, within the tolerance that rows have.
    pub(super) fn new(
        label: impl Into<String>,
        published: Option<f64>,
        read: impl Fn(&Outcomes<'_>) -> f64 + 'static,
    ) -> Self {
        let tolerance = Tolerance::DEFAULT;
        Self { label: label.into(), published, tolerance, is_base: false, read: Box::new(read) }
    }

    /// Returns a row that is 1 since the others are divided by it.
    pub(super) fn base(label: impl Into<String>) -> Self {
        Self { is_base: true, ..Self::new(label, Some(1.0), |_| 1.0) }
    }

    /// With a tolerance in units of the figure.
    pub(super) fn within(self, points: f64) -> Self {
        Self { tolerance: Tolerance::Points(points), ..self }
    }

    /// Returns whether `simulated` is farther from the published figure than it may be.
    #[must_use]
    pub fn is_off(&self, simulated: f64) -> bool {
        self.published.is_some_and(|published| !self.is_base && !self.tolerance.allows(simulated, published))
    }
}

/// Rows of an experiment as a table: a line of figures for each name.
pub struct Grid {
    /// The heads of the columns, the names' head first.
    pub head: Vec<String>,
    /// A name, and the labels of the rows in its line.
    pub lines: Vec<(String, Vec<String>)>,
}

impl Grid {
    /// Returns a table of the names in a column with the head `first`, and columns with these
    /// heads.
    pub(super) fn new(
        first: impl Into<String>,
        head: impl IntoIterator<Item = String>,
        lines: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Self {
        Self { head: [first.into()].into_iter().chain(head).collect(), lines: lines.into_iter().collect() }
    }
}

/// Something that must hold of the figures.
pub struct Claim {
    /// The claim in a sentence.
    pub text: &'static str,
    /// Whether the figures confirm it.
    pub holds: Box<dyn Fn(&Figures<'_>) -> bool>,
    /// The reason why the claim does not hold in every run, if it does not.
    pub unless: Option<&'static str>,
    /// The claim in a few words, for the summary; only if the claim does not hold in every run.
    pub brief: &'static str,
}

impl Claim {
    /// Notes that the claim, in a few words `brief`, does not hold in every run, because of `why`.
    pub(super) fn unless(self, brief: &'static str, why: &'static str) -> Self {
        Self { unless: Some(why), brief, ..self }
    }
}

/// A plot.
pub struct Figure {
    /// The plot's file name, without `.svg`.
    pub name: &'static str,
    /// The plot's heading.
    pub title: &'static str,
    /// The content of the figure.
    pub drawing: Drawing,
}

/// The content of a figure.
pub enum Drawing {
    /// Curves over the number of CPUs; several panels with the same axes, each with its heading.
    Curves {
        /// The unit of the vertical axis.
        unit: &'static str,
        /// The curves of each panel.
        panels: Vec<(String, Vec<Sketch>)>,
    },
    /// A line for each row: the published figure and the range of the simulated ones.
    Dots {
        /// The unit of the horizontal axis; nothing where figures of several units are divided by
        /// the published ones.
        unit: Option<&'static str>,
        /// A short name, and the row's label.
        rows: Vec<(String, String)>,
    },
}

/// A curve before there are figures: where they will come from.
pub struct Sketch {
    /// Its name.
    pub name: String,
    /// The era whose colour it has.
    pub era: &'static str,
    /// Whether it is of published figures.
    pub is_published: bool,
    /// CPUs, and the label of the row whose figure is drawn.
    pub points: Vec<(f64, String)>,
}

impl Sketch {
    /// Returns the simulated curve of `era` through the rows that `points` names.
    pub fn new(name: impl Into<String>, era: &'static str, points: impl Iterator<Item = (f64, String)>) -> Self {
        Self { name: name.into(), era, is_published: false, points: points.collect() }
    }

    /// Returns the published curve beside the curve of `era`.
    pub fn published(name: impl Into<String>, era: &'static str, points: impl Iterator<Item = (f64, String)>) -> Self {
        Self { is_published: true, ..Self::new(name, era, points) }
    }
}

/// The outcomes of an experiment's cells, by key.
pub struct Outcomes<'a> {
    by_key: BTreeMap<&'a str, &'a Outcome>,
    /// Whether a cell with too few operations was read.
    is_thin: Flag<bool>,
}

/// Fewer operations than this are too few for a figure.
pub const MIN_OPERATIONS: u64 = 30;

impl<'a> Outcomes<'a> {
    pub(super) fn new(by_key: BTreeMap<&'a str, &'a Outcome>) -> Self {
        Self { by_key, is_thin: Flag::new(false) }
    }

    /// Returns the figure of `row`; not a number if one of its cells has fewer than
    /// [`MIN_OPERATIONS`].
    pub(super) fn figure(&self, row: &Row) -> f64 {
        self.is_thin.set(false);
        let figure = (row.read)(self);
        if self.is_thin.get() { f64::NAN } else { figure }
    }

    /// Returns the outcome of the cell `key`.
    ///
    /// # Panics
    /// If no cell has that key: a mistake of the experiment, which a test finds.
    #[must_use]
    pub fn of(&self, key: &str) -> &Outcome {
        let outcome = self.by_key.get(key).unwrap_or_else(|| panic!("no cell {key}"));
        self.is_thin.set(self.is_thin.get() || outcome.is_thin());
        outcome
    }

    /// Operations a second of the cell `key`.
    #[must_use]
    pub fn rate(&self, key: &str) -> f64 {
        self.of(key).ops_per_second
    }
}

/// The figures of one variation, by the labels of their rows.
pub struct Figures<'a>(pub BTreeMap<&'a str, f64>);

impl Figures<'_> {
    /// Returns the figure of the row `label`.
    ///
    /// # Panics
    /// If no row has that label: a mistake of the experiment, which a test finds.
    #[must_use]
    pub fn of(&self, label: &str) -> f64 {
        *self.0.get(label).unwrap_or_else(|| panic!("no row {label}"))
    }
}
