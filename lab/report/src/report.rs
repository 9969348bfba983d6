//! The report: each published table with our figures beside it, and their worth.
//!
//! # What it is
//! A list of experiments, run under every variation, and a Markdown text made of the results. Each
//! figure has its range over three seeds and over the box of the model's least certain numbers;
//! each claim reports in how many of them it holds. The results are kept as [data](Record), and the
//! text is made of the data alone.
//!
//! # What it is not
//! A fit: no number is chosen for a cell. An experiment's chosen numbers are few and are in its
//! section, and the label of each figure follows from them.

mod calibrated;
mod experiment;
mod experiments;
mod input;
mod markdown;
mod origin;
mod owing;
mod published;
mod reading;
mod record;
mod summary;
mod tolerance;
mod variation;

pub use calibrated::Calibrated;
pub use experiment::{
    Cell, Claim, Drawing, Experiment, Figure, Figures, Grid, MIN_OPERATIONS, Outcomes, Row, Sketch, Summary,
};
pub use input::{Input, Number, Rows, View};
pub use markdown::section;
pub use origin::Origin;
pub use owing::owing;
pub use published::{Key, Published};
pub use record::{Record, Window};
pub use summary::{Section, summary, whole};
pub use tolerance::{Reason, Tolerance};
pub use variation::Variation;

use crate::job::{Job, Substrate};
use crate::outcome::Outcome;
use std::collections::BTreeMap;

/// Returns the experiments, in the order of the years.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    experiments::all(&Published::new())
}

/// The figures of an experiment under one variation.
#[derive(Clone, Debug)]
pub struct Run {
    /// Under which.
    pub variation: Variation,
    /// The figures, in the order of the rows. A figure is not a number if a cell had too few
    /// operations.
    pub values: Vec<f64>,
    /// Whether each claim holds.
    pub holds: Vec<bool>,
    /// How long cells ran.
    pub windows: Vec<Window>,
    /// Cells in which a thread had not finished its first operation when the window began.
    pub cold: Vec<String>,
}

impl Run {
    /// Returns a run with these figures. Claims are judged from them.
    fn new(
        experiment: &Experiment,
        variation: Variation,
        values: Vec<f64>,
        windows: Vec<Window>,
        cold: Vec<String>,
    ) -> Self {
        let figures = experiment.figures_of(&values);
        let holds = experiment.claims.iter().map(|claim| (claim.holds)(&figures)).collect();
        Self { variation, values, holds, windows, cold }
    }
}

/// How often a cell with too few operations runs again, four times as long each time.
pub const LONGER_RUNS: usize = 3;

impl Experiment {
    /// Returns the jobs of this experiment under `variation`, in the order of its cells.
    #[must_use]
    pub fn jobs(&self, variation: &Variation) -> Vec<Job> {
        self.cells.iter().map(|cell| variation.apply(&cell.job)).collect()
    }

    /// Returns the figures that follow from the outcomes of [`jobs`](Self::jobs).
    #[must_use]
    pub fn read(&self, variation: &Variation, outcomes: &[Outcome]) -> Run {
        let by_key = Outcomes::new(self.cells.iter().map(|cell| cell.key.as_str()).zip(outcomes).collect());
        let values = self.rows.iter().map(|row| rounded(by_key.figure(row))).collect();
        let mut windows: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for outcome in outcomes {
            *windows.entry((outcome.job.warm_ns / 1000, outcome.job.run_ns / 1000)).or_default() += 1;
        }
        let windows = windows.into_iter().map(|((warm_us, run_us), cells)| Window { warm_us, run_us, cells });
        let cold = self.cells.iter().zip(outcomes).filter(|(_, outcome)| outcome.counter("cold_threads") > 0.0);
        let cold = cold.map(|(cell, _)| cell.key.clone()).collect();
        Run::new(self, variation.clone(), values, windows.collect(), cold)
    }

    /// Returns the variations of this experiment: the machine as it is first, with three seeds,
    /// then the corners of the box. For a quick look, the first alone.
    #[must_use]
    pub fn variations(&self, quick: bool) -> Vec<Variation> {
        let all = Variation::seeds().into_iter().chain(Variation::corners().into_iter().filter(|_| self.has_box));
        if quick { all.take(1).collect() } else { all.collect() }
    }

    /// `values` by the labels of the rows.
    #[must_use]
    pub fn figures_of(&self, values: &[f64]) -> Figures<'_> {
        Figures(self.rows.iter().map(|row| row.label.as_str()).zip(values.iter().copied()).collect())
    }

    /// Returns the place of the row `label`.
    #[must_use]
    pub fn place(&self, label: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.label == label)
    }

    /// Why `row` is off, if the experiment has one.
    #[must_use]
    pub fn reason(&self, row: &Row) -> Option<&'static str> {
        self.reasons.iter().find(|reason| (reason.rows)(&row.label)).map(|reason| reason.why)
    }

    /// Returns the curves of `sketches`, from the medians of `runs`.
    #[must_use]
    pub fn curves(&self, sketches: &[Sketch], runs: &[Run]) -> Vec<Curve> {
        let point = |label: &str, is_published: bool| {
            let row = self.place(label)?;
            let value = if is_published { self.rows[row].published? } else { shown(runs, row) };
            Some(value).filter(|value| value.is_finite())
        };
        let curve = |sketch: &Sketch| {
            let points = sketch.points.iter();
            Curve {
                name: sketch.name.clone(),
                era: sketch.era,
                is_published: sketch.is_published,
                points: points.filter_map(|(cpus, label)| Some((*cpus, point(label, sketch.is_published)?))).collect(),
            }
        };
        sketches.iter().map(curve).collect()
    }

    /// Returns the published figure and the range of the simulated ones for each of `rows`.
    #[must_use]
    pub fn dots(&self, rows: &[(String, String)], runs: &[Run]) -> Vec<Dot> {
        let dot = |(name, label): &(String, String)| {
            let row = self.place(label)?;
            let values = || runs.iter().map(|run| run.values[row]).filter(|value| value.is_finite());
            Some(Dot {
                name: name.clone(),
                published: self.rows[row].published,
                simulated: shown(runs, row),
                range: (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)),
            })
        };
        rows.iter().filter_map(dot).filter(|dot| dot.simulated.is_finite()).collect()
    }
}

/// Returns the figure that the table shows: the median over the seeds.
#[must_use]
pub fn shown(runs: &[Run], row: usize) -> f64 {
    let of_seeds = runs.iter().filter(|run| run.variation.is_seed()).map(|run| run.values[row]);
    let mut values: Vec<f64> = of_seeds.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Five digits that count, as in the record, so that the text is the same from memory and from the
/// file.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(f64::NAN)
}

/// `job` again, four times as long.
#[must_use]
pub fn longer(job: &Job) -> Job {
    Job { warm_ns: 4 * job.warm_ns, run_ns: 4 * job.run_ns, ..job.clone() }
}

/// Returns the cost of simulating `job`, in nanoseconds of its CPUs.
#[must_use]
pub fn cost(job: &Job) -> f64 {
    let cpus = match &job.on {
        Substrate::Simulated(simulation) => simulation.cpus,
        Substrate::Native { threads } => *threads,
    };
    (job.warm_ns + job.run_ns) as f64 * cpus as f64
}

/// One curve of a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// The era whose colour it has.
    pub era: &'static str,
    /// Whether it is of published figures.
    pub is_published: bool,
    /// CPUs, and the figure there.
    pub points: Vec<(f64, f64)>,
}

/// One line of a plot of rows.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Its name.
    pub name: String,
    /// The published figure.
    pub published: Option<f64>,
    /// The median over the seeds.
    pub simulated: f64,
    /// The least and the greatest figure of all runs.
    pub range: (f64, f64),
}
