//! The report: each published table with our figures beside it, and what they are worth.
//!
//! # What it is
//! A list of experiments, run under every variation, and a Markdown text made of what came out. Each figure has its
//! range over three seeds and over the box of the model's least certain numbers; each claim says in how many of them it
//! holds.
//!
//! # What it is not
//! A fit: no number is chosen for a cell. An experiment's tuned numbers are few and stand in its section.

mod experiment;
mod experiments;
mod markdown;
mod published;
mod reading;

pub use experiment::{Cell, Claim, Experiment, Figure, Figures, Origin, Outcomes, Row, Sketch, Tuned, Variation};
pub use markdown::{index, section};
pub use published::{Key, Published};

use crate::job::Job;
use crate::outcome::Outcome;

/// The experiments, in the order of the years.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    experiments::all(&Published::new())
}

/// How the report begins.
pub const PREFACE: &str = include_str!("report/preface.txt");

/// What an experiment's figures are under one variation.
#[derive(Clone, Debug)]
pub struct Run {
    /// Under which.
    pub variation: Variation,
    /// The figures, in the order of the rows.
    pub values: Vec<f64>,
    /// Whether each claim holds.
    pub holds: Vec<bool>,
}

impl Experiment {
    /// The jobs of this experiment under `variation`, in the order of its cells.
    #[must_use]
    pub fn jobs(&self, variation: &Variation) -> Vec<Job> {
        self.cells.iter().map(|cell| variation.apply(&cell.job)).collect()
    }

    /// What follows from the outcomes of [`jobs`](Self::jobs).
    #[must_use]
    pub fn read(&self, variation: &Variation, outcomes: &[Outcome]) -> Run {
        let by_key = Outcomes(self.cells.iter().map(|cell| cell.key.as_str()).zip(outcomes).collect());
        let values: Vec<f64> = self.rows.iter().map(|row| (row.read)(&by_key)).collect();
        let labels = self.rows.iter().map(|row| row.label.as_str());
        let figures = Figures(labels.zip(values.iter().copied()).collect());
        let holds = self.claims.iter().map(|claim| (claim.holds)(&figures)).collect();
        Run { variation: variation.clone(), values, holds }
    }

    /// What this experiment is run under: the machine as it is first, with three seeds, then the corners of the box. For a
    /// quick look, the first alone.
    #[must_use]
    pub fn variations(&self, quick: bool) -> Vec<Variation> {
        let all = Variation::seeds().into_iter().chain(Variation::corners().into_iter().filter(|_| self.has_box));
        if quick { all.take(1).collect() } else { all.collect() }
    }

    /// The points of a figure's curves, from one run.
    #[must_use]
    pub fn curves(&self, figure: &Figure, run: &Run) -> Vec<Curve> {
        let point = |label: &str, is_published: bool| {
            let row = self.rows.iter().position(|row| row.label == label)?;
            if is_published { self.rows[row].published } else { Some(run.values[row]) }
        };
        let curve = |sketch: &Sketch| {
            let points = sketch.points.iter();
            Curve {
                name: sketch.name.clone(),
                is_published: sketch.is_published,
                points: points.filter_map(|(cpus, label)| Some((*cpus, point(label, sketch.is_published)?))).collect(),
            }
        };
        figure.curves.iter().map(curve).collect()
    }
}

/// One curve of a figure.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Whether it is of published figures.
    pub is_published: bool,
    /// CPUs, and the figure there.
    pub points: Vec<(f64, f64)>,
}
