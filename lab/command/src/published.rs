//! `lightfoot-lab report`: published tables beside simulated figures.

use crate::commit;
use crate::error::Error;
use crate::figure;
use crate::interrupt::Interrupt;
use crate::output::write;
use crate::run::in_children;
use clap::Args;
use fuse::message::Reason;
use lab::report::{self, Calibrated, Experiment, Published, Record, Run, Section, Variation};
use lab::{Job, Outcome};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `lightfoot-lab report`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArguments {
    /// Where lab-report.md and plots/ are written
    #[arg(long, value_name = "DIR", default_value = "lab/docs")]
    out: PathBuf,

    /// Where the outcomes are kept
    #[arg(long, value_name = "DIR", default_value = "lab/outcomes")]
    outcomes: PathBuf,

    /// Run only these sections; the others keep their outcomes
    #[arg(long, value_name = "NAME,NAME..", value_delimiter = ',')]
    only: Vec<String>,

    /// Simulate only the unchanged machine, with one seed: takes an eighth of the time; write the sections to standard output, keep nothing
    #[arg(long)]
    quick: bool,

    /// Run nothing: write the report from the kept outcomes
    #[arg(long, conflicts_with_all = ["only", "quick"])]
    from_outcomes: bool,

    /// Exit with status 1 if a claim fails in a run without a reason in the code
    #[arg(long)]
    check: bool,

    /// Simulations at a time [default: as many as there are CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

/// Simulates, keeps the outcomes, and writes the report; with `--quick`, only sections to `out`.
pub(crate) fn run(asked: &ReportArguments, out: &mut impl Write) -> Result<(), Error> {
    let all = report::experiments();
    let chosen = chosen(&all, &asked.only)?;
    let measured = if asked.from_outcomes { Vec::new() } else { measure(&chosen, asked)? };
    if asked.quick {
        let published = Published::new();
        let commit = commit::here();
        let text =
            |(experiment, runs): &(&Experiment, Vec<Run>)| report::section(experiment, runs, &commit, &published);
        write(out, &measured.iter().map(text).collect::<Vec<String>>().join("\n"))?;
        return if asked.check { check(&measured) } else { Ok(()) };
    }
    let commit = commit::here();
    for (experiment, runs) in &measured {
        let record = Record::new(experiment, &commit, runs);
        save(&place(&asked.outcomes, experiment), &record.json())?;
    }
    let records = all.iter().map(|experiment| kept(&asked.outcomes, experiment)).collect::<Result<Vec<_>, Error>>()?;
    let sections: Vec<Section<'_>> =
        all.iter().zip(&records).map(|(experiment, (record, runs))| (experiment, record, runs.clone())).collect();
    render(asked, &sections)?;
    for sentence in sections.iter().flat_map(|(experiment, _, runs)| report::owing(experiment, runs)) {
        eprintln!("lightfoot-lab: the code owes a reason, or has one without need: {sentence}");
    }
    let runs: Vec<(&Experiment, Vec<Run>)> =
        sections.into_iter().map(|(experiment, _, runs)| (experiment, runs)).collect();
    if asked.check { check(&runs) } else { Ok(()) }
}

/// Returns the experiments of these names, or all.
fn chosen<'a>(all: &'a [Experiment], only: &[String]) -> Result<Vec<&'a Experiment>, Error> {
    if let Some(unknown) = only.iter().find(|name| all.iter().all(|experiment| experiment.name != name.as_str())) {
        let there: Vec<&str> = all.iter().map(|experiment| experiment.name).collect();
        return Err(Error::no_such("section", unknown, &there.join(", ")));
    }
    Ok(all.iter().filter(|e| only.is_empty() || only.iter().any(|name| name == e.name)).collect())
}

/// Runs each experiment under each of its variations; cells with too few operations again, for longer.
fn measure<'a>(
    experiments: &[&'a Experiment],
    asked: &ReportArguments,
) -> Result<Vec<(&'a Experiment, Vec<Run>)>, Error> {
    let plan: Vec<(usize, Variation)> = experiments
        .iter()
        .enumerate()
        .flat_map(|(i, experiment)| experiment.variations(asked.quick).into_iter().map(move |variation| (i, variation)))
        .collect();
    let jobs: Vec<Job> = plan.iter().flat_map(|(i, variation)| experiments[*i].jobs(variation)).collect();
    let interrupt = Interrupt::listen()?;
    let mut outcomes = done(&jobs, asked, &interrupt)?;
    for _ in 0..report::LONGER_RUNS {
        let thin: Vec<usize> = (0..outcomes.len()).filter(|&i| outcomes[i].is_thin()).collect();
        let longer: Vec<Job> = thin.iter().map(|&i| report::longer(&outcomes[i].job)).collect();
        for (i, outcome) in thin.into_iter().zip(done(&longer, asked, &interrupt)?) {
            outcomes[i] = outcome;
        }
    }
    let mut rest = outcomes.as_slice();
    let mut runs: Vec<(&Experiment, Vec<Run>)> = experiments.iter().map(|&e| (e, Vec::new())).collect();
    for (i, variation) in &plan {
        let (of_this, others) = rest.split_at(experiments[*i].cells.len());
        rest = others;
        runs[*i].1.push(experiments[*i].read(variation, of_this));
    }
    Ok(runs)
}

/// Returns the outcomes of `jobs`, all of them.
fn done(jobs: &[Job], asked: &ReportArguments, interrupt: &Interrupt) -> Result<Vec<Outcome>, Error> {
    let results = in_children(jobs, asked.jobs, interrupt)?;
    results.into_iter().collect::<Result<Vec<_>, _>>().map_err(|first| Error::Lab { first, more: 0 })
}

/// Where the outcomes of an experiment are.
fn place(dir: &Path, experiment: &Experiment) -> PathBuf {
    dir.join(experiment.name).with_extension("json")
}

fn kept(dir: &Path, experiment: &Experiment) -> Result<(Record, Vec<Run>), Error> {
    let path = place(dir, experiment);
    let record: Record = read(&path)?;
    let runs = record.runs_of(experiment).map_err(|reason| unusable(&path, reason.as_str().into()))?;
    Ok((record, runs))
}

fn unusable(path: &Path, reason: Reason) -> Error {
    Error::File { path: path.into(), what: "use these outcomes", reason }
}

/// Returns the contents of the file at `path`.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(|error| unusable(path, error.into()))?;
    serde_json::from_str(&text).map_err(|error| unusable(path, error.to_string().as_str().into()))
}

/// Writes the whole report and its plots.
fn render(asked: &ReportArguments, sections: &[Section<'_>]) -> Result<(), Error> {
    let calibration = asked.outcomes.join("calibration.json");
    let calibrated: Option<Calibrated> = calibration.exists().then(|| read(&calibration)).transpose()?;
    let plots = asked.out.join("plots");
    for (experiment, _, runs) in sections {
        for drawn in &experiment.figures {
            let path = plots.join(drawn.name).with_extension("svg");
            let svg = figure::draw(drawn, experiment, runs).map_err(|error| Error::File {
                path: path.clone(),
                what: "write the plot",
                reason: error.to_string().as_str().into(),
            })?;
            save(&path, &svg)?;
        }
    }
    let text = report::whole(sections, calibrated.as_ref(), &Published::new());
    save(&asked.out.join("lab-report.md"), &text)
}

/// Writes a file, and the directory that it is in.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Error> {
    let refuse = |error: io::Error| Error::File { path: path.into(), what: "write", reason: error.into() };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(refuse)?;
    fs::write(path, text).map_err(refuse)
}

/// Fails if a claim without a reason fails in a run.
fn check(measured: &[(&Experiment, Vec<Run>)]) -> Result<(), Error> {
    let failed = measured.iter().flat_map(|(experiment, runs)| {
        let claims = experiment.claims.iter().enumerate().filter(|(_, claim)| claim.unless.is_none());
        claims.filter_map(move |(i, claim)| {
            let run = runs.iter().find(|run| !run.holds[i])?;
            Some(format!("{}, {}: {}", experiment.name, run.variation.name, claim.text))
        })
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(Error::Claims(failed.join("; "))) }
}
