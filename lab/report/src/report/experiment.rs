//! One section of the report: jobs to run, figures read from their outcomes, what was published, and what must hold.
//!
//! An experiment is data with closures: the cells say what runs, the rows say what is read from the outcomes and set
//! beside which published figure, the claims say what must hold in every variation. Nothing in it can depend on the cell
//! but what the published measurement itself varied, for cells take the experiment's one set of parameters.

use crate::job::{Job, Substrate};
use crate::outcome::Outcome;
use std::collections::BTreeMap;

/// A section of the report.
pub struct Experiment {
    /// Short name, for `--only` and file names.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The published tables that it answers, by their names in `published.toml`.
    pub sources: &'static [&'static str],
    /// What is run, in Markdown.
    pub about: &'static str,
    /// Numbers that were chosen: what, its value, and on which cells it was tuned.
    pub tuned: Vec<Tuned>,
    /// What runs.
    pub cells: Vec<Cell>,
    /// What is read from it.
    pub rows: Vec<Row>,
    /// What must hold.
    pub claims: Vec<Claim>,
    /// What is drawn.
    pub figures: Vec<Figure>,
    /// Whether it is run under the corners of the box too.
    pub has_box: bool,
    /// What differs from what was published, and why, in Markdown.
    pub remarks: &'static str,
}

/// A number that was chosen.
pub struct Tuned {
    /// What it is.
    pub what: &'static str,
    /// Its value, with its unit.
    pub value: String,
    /// The published cells that it was tuned on, or what else it comes from.
    pub on: &'static str,
}

/// One run.
pub struct Cell {
    /// By what rows find its outcome.
    pub key: String,
    /// What runs.
    pub job: Job,
}

/// One figure.
pub struct Row {
    /// What it is, with its unit.
    pub label: String,
    /// What was published.
    pub published: Option<f64>,
    /// Where the simulated figure comes from.
    pub origin: Origin,
    /// The simulated figure, from the outcomes.
    pub read: Box<dyn Fn(&Outcomes<'_>) -> f64>,
}

/// Where a simulated figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A chosen number was set so that this figure comes out.
    Tuned,
    /// The figure follows from what was read off the publication.
    Input,
    /// Nothing was chosen with a view to it.
    Predicted,
}

impl Origin {
    /// As the table shows it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Origin::Tuned => "tuned",
            Origin::Input => "input",
            Origin::Predicted => "predicted",
        }
    }
}

/// Something that must hold of the figures.
pub struct Claim {
    /// In a sentence.
    pub text: &'static str,
    /// Whether the figures say so.
    pub holds: Box<dyn Fn(&Figures<'_>) -> bool>,
}

/// Curves over the number of CPUs.
pub struct Figure {
    /// The plot's file name, without `.svg`.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What the vertical axis shows.
    pub unit: &'static str,
    /// What is drawn in it.
    pub curves: Vec<Sketch>,
}

/// A curve before there are figures: where they will come from.
pub struct Sketch {
    /// Its name.
    pub name: String,
    /// Whether it is of published figures.
    pub is_published: bool,
    /// CPUs, and the label of the row whose figure is drawn.
    pub points: Vec<(f64, String)>,
}

impl Sketch {
    /// A curve through the rows that `points` names.
    pub fn new(name: impl Into<String>, is_published: bool, points: impl Iterator<Item = (f64, String)>) -> Self {
        Self { name: name.into(), is_published, points: points.collect() }
    }
}

/// The outcomes of an experiment's cells, by key.
pub struct Outcomes<'a>(pub BTreeMap<&'a str, &'a Outcome>);

impl Outcomes<'_> {
    /// The outcome of the cell `key`.
    ///
    /// # Panics
    /// If no cell has that key: a mistake of the experiment, which a test finds.
    #[must_use]
    pub fn of(&self, key: &str) -> &Outcome {
        self.0.get(key).unwrap_or_else(|| panic!("no cell {key}"))
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
    /// The figure of the row `label`.
    ///
    /// # Panics
    /// If no row has that label: a mistake of the experiment, which a test finds.
    #[must_use]
    pub fn of(&self, label: &str) -> f64 {
        *self.0.get(label).unwrap_or_else(|| panic!("no row {label}"))
    }
}

/// What is varied without being tuned: the seed, and the box of the model's least certain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// As the report names it.
    pub name: &'static str,
    /// Seed of the run.
    pub seed: u64,
    /// Replaces the machine's `queue.keep`.
    pub keep: Option<f64>,
    /// Multiplies the machine's occupancies.
    pub occupancy: f64,
    /// Replaces the machine's `queue.overtake`.
    pub overtake: Option<u16>,
}

impl Variation {
    const fn seed(name: &'static str, seed: u64) -> Self {
        Self { name, seed, keep: None, occupancy: 1.0, overtake: None }
    }

    /// The machine as it is, with three seeds.
    #[must_use]
    pub const fn seeds() -> [Self; 3] {
        [Self::seed("seed 1", 1), Self::seed("seed 2", 2), Self::seed("seed 3", 3)]
    }

    /// The corners of the box that the simulator's report names: keep 0.25 and 1, occupancy halved and doubled, four
    /// local requests may overtake.
    #[must_use]
    pub const fn corners() -> [Self; 5] {
        let base = Self::seed("", 1);
        [
            Self { name: "keep 0.25", keep: Some(0.25), ..base },
            Self { name: "keep 1", keep: Some(1.0), ..base },
            Self { name: "occupancy x0.5", occupancy: 0.5, ..base },
            Self { name: "occupancy x2", occupancy: 2.0, ..base },
            Self { name: "overtake 4", overtake: Some(4), ..base },
        ]
    }

    /// Whether this is the machine as it is.
    #[must_use]
    pub fn is_seed(&self) -> bool {
        self.keep.is_none() && self.overtake.is_none() && self.occupancy == 1.0
    }

    /// `job` on the machine so varied.
    #[must_use]
    pub fn apply(&self, job: &Job) -> Job {
        let mut job = job.clone();
        job.seed = self.seed;
        if let Substrate::Simulated(simulation) = &mut job.on {
            let machine = &mut simulation.machine;
            machine.queue.keep = self.keep.unwrap_or(machine.queue.keep);
            machine.queue.overtake = self.overtake.unwrap_or(machine.queue.overtake);
            machine.queue.local_occupancy_ns *= self.occupancy;
            machine.queue.home_occupancy_ns *= self.occupancy;
        }
        job
    }
}
