//! The experiments, one file for each line of published work.

mod aim7;
mod common_cwd;
mod containers;
mod create_unlink;
mod dbench;
mod dbench_patched;
mod eras;
mod git_diff;
mod mount_list;
mod open_close;
mod other_tests;
mod reverse_path;
mod rwsem;
mod scalable_rcu;
mod web;
mod whole_paths;
mod writers;

use super::experiment::{Cell, Claim, Drawing, Experiment, Figure, Figures, Outcomes, Row, Sketch};
use super::input::TICK;
use super::published::Published;
use super::tolerance::Tolerance;
use crate::job::{Interrupts, Job, Placement, Simulation, Substrate};
use sim::Machine;

/// Returns all experiments, by year.
pub(super) fn all(published: &Published) -> Vec<Experiment> {
    vec![
        web::experiment(published),
        dbench::all_clients(published),
        dbench::without_statvfs(published),
        dbench_patched::experiment(published),
        mount_list::experiment(),
        git_diff::experiment(published),
        open_close::experiment(published),
        create_unlink::experiment(published),
        common_cwd::experiment(),
        reverse_path::experiment(published),
        other_tests::experiment(),
        aim7::short(published),
        aim7::others(published),
        rwsem::experiment(published),
        scalable_rcu::experiment(),
        containers::experiment(),
        eras::experiment(),
        whole_paths::experiment(),
        writers::experiment(),
    ]
}

/// The common part of an experiment's cells.
#[derive(Clone)]
struct Setting {
    machine: Machine,
    placement: Placement,
    interrupts: Option<Interrupts>,
    workload: &'static str,
    parameters: Vec<(&'static str, u64)>,
    options: Vec<(&'static str, u64)>,
    warm_ns: u64,
    run_ns: u64,
    slack_ns: u64,
}

impl Setting {
    /// `workload` for `run_us` of virtual time on the preset `machine`, a quarter of that before it counts.
    fn new(machine: &str, workload: &'static str, run_us: u64) -> Self {
        let machine = Machine::preset(machine).unwrap_or_else(|| panic!("no preset {machine}"));
        Self {
            machine,
            placement: Placement::Compact,
            interrupts: Some(TICK),
            workload,
            parameters: Vec::new(),
            options: Vec::new(),
            warm_ns: run_us * 250,
            run_ns: run_us * 1_000,
            slack_ns: 0,
        }
    }

    /// Replaces the warm-up.
    fn warm_up(mut self, warm_us: u64) -> Self {
        self.warm_ns = warm_us * 1_000;
        self
    }

    fn set(mut self, name: &'static str, value: u64) -> Self {
        self.parameters.push((name, value));
        self
    }

    /// Sets the instructions that an operation costs an era.
    fn option(mut self, name: &'static str, value: u64) -> Self {
        self.options.push((name, value));
        self
    }

    fn interrupts(mut self, every_ns: u64, mean_ns: u64) -> Self {
        self.interrupts = Some(Interrupts { every_ns, mean_ns });
        self
    }

    fn on_nodes(mut self, nodes: usize) -> Self {
        self.machine = self.machine.with_nodes(nodes).expect("an experiment knows its machine");
        self
    }

    /// Lets CPUs run ahead of the slowest: faster to simulate, and right to a percent where most accesses are reads.
    fn slack(mut self, ns: u64) -> Self {
        self.slack_ns = ns;
        self
    }

    fn spread(mut self) -> Self {
        self.placement = Placement::Spread;
        self
    }

    fn with_workload(mut self, workload: &'static str) -> Self {
        self.workload = workload;
        self
    }

    /// Returns the cell `key`: `era` under `workers` workers, on as many CPUs as there are for
    /// them.
    fn cell(&self, key: impl Into<String>, era: &str, workers: usize) -> Cell {
        let values =
            |list: &[(&'static str, u64)]| list.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        let job = Job {
            era: era.to_owned(),
            era_options: values(&self.options),
            workload: self.workload.to_owned(),
            parameters: values(&self.parameters),
            on: Substrate::Simulated(Box::new(Simulation {
                placement: self.placement,
                threads: workers,
                interrupts: self.interrupts,
                slack_ns: self.slack_ns,
                // Lightfoot runs in user space, where the holder of a lock can lose its CPU.
                ..Simulation::new(self.machine.clone(), workers.min(self.machine.cpus()))
            })),
            seed: 1,
            warm_ns: self.warm_ns,
            run_ns: self.run_ns,
            lockstat: true,
        };
        Cell { key: key.into(), job }
    }
}

/// Returns a row within the tolerance that rows have.
fn row(label: impl Into<String>, published: Option<f64>, read: impl Fn(&Outcomes<'_>) -> f64 + 'static) -> Row {
    Row::new(label, published, read)
}

fn claim(text: &'static str, holds: impl Fn(&Figures<'_>) -> bool + 'static) -> Claim {
    Claim { text, holds: Box::new(holds), unless: None, brief: "" }
}

/// Returns whether `figure` is within `part` of the published one.
fn is_near(figure: f64, published: f64, part: f64) -> bool {
    Tolerance::Part(part).allows(figure, published)
}

/// Returns whether the rate `a` is not above `b`; a rate that is missing is of an era with nearly
/// no operations.
fn at_most(a: f64, b: f64) -> bool {
    a.is_nan() || a <= b
}

/// Returns the change from `before` to `after` in percent.
fn change(before: f64, after: f64) -> f64 {
    100.0 * (after / before - 1.0)
}

/// Returns a plot with one panel of curves.
fn curves(name: &'static str, title: &'static str, unit: &'static str, curves: Vec<Sketch>) -> Figure {
    Figure { name, title, drawing: Drawing::Curves { unit, panels: vec![(String::new(), curves)] } }
}

/// Returns a plot of the rows that have a published figure, by their labels, as parts of it.
fn parts(name: &'static str, title: &'static str, rows: &[Row]) -> Figure {
    let shown = rows.iter().filter(|row| row.published.is_some_and(|figure| figure > 0.0) && !row.is_base);
    let rows = shown.map(|row| (row.label.clone(), row.label.clone())).collect();
    Figure { name, title, drawing: Drawing::Dots { unit: None, rows } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_that_an_experiment_asks_for_is_there() {
        let experiments = all(&Published::new());
        assert_eq!(experiments.len(), 19);
        for experiment in &experiments {
            for source in experiment.sources {
                assert!(!Published::new().source(source).is_empty());
            }
        }
    }

    #[test]
    fn keys_and_labels_are_unique_within_an_experiment() {
        for experiment in all(&Published::new()) {
            let mut keys: Vec<&str> = experiment.cells.iter().map(|cell| cell.key.as_str()).collect();
            let mut labels: Vec<&str> = experiment.rows.iter().map(|row| row.label.as_str()).collect();
            for names in [&mut keys, &mut labels] {
                let count = names.len();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), count, "{}", experiment.name);
            }
        }
    }
}
