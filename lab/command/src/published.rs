//! `lightfoot-lab report`: published tables beside simulated figures.

use crate::error::Error;
use crate::figure;
use crate::interrupt::Interrupt;
use crate::output::write;
use crate::run::in_children;
use clap::Args;
use lab::Job;
use lab::report::{self, Experiment, Published, Run, Variation};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `lightfoot-lab report`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArguments {
    /// Where lab-report.md and plots/ are written
    #[arg(long, value_name = "DIR", default_value = "lab/docs", conflicts_with = "only")]
    out: PathBuf,

    /// Write only these sections, to standard output
    #[arg(long, value_name = "NAME,NAME..", value_delimiter = ',')]
    only: Vec<String>,

    /// One seed and no box: takes an eighth of the time
    #[arg(long, requires = "only")]
    quick: bool,

    /// Exit with status 1 if a claim does not hold with seed 1
    #[arg(long)]
    check: bool,

    /// Simulations at a time [default: as many as there are CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

/// Simulates, and writes the report or, with `--only`, its sections to `out`.
pub(crate) fn run(asked: &ReportArguments, out: &mut impl Write) -> Result<(), Error> {
    let experiments = chosen(&asked.only)?;
    let measured = measure(&experiments, asked)?;
    let sections: Vec<(&Experiment, Vec<Run>)> = experiments.iter().zip(measured).collect();
    let published = Published::new();
    let texts = sections.iter().map(|(experiment, runs)| report::section(experiment, runs, &published));
    let text = texts.collect::<Vec<String>>().join("\n");
    if asked.only.is_empty() {
        save(&asked.out, &sections, &text)?;
    } else {
        write(out, &text)?;
    }
    if asked.check { check(&sections) } else { Ok(()) }
}

/// The experiments of these names, or all.
fn chosen(only: &[String]) -> Result<Vec<Experiment>, Error> {
    let all = report::experiments();
    if let Some(unknown) = only.iter().find(|name| all.iter().all(|experiment| experiment.name != name.as_str())) {
        let there: Vec<&str> = all.iter().map(|experiment| experiment.name).collect();
        return Err(Error::NoSuchSection { asked: unknown.clone(), there: there.join(", ") });
    }
    Ok(all.into_iter().filter(|e| only.is_empty() || only.iter().any(|name| name == e.name)).collect())
}

/// Runs each experiment under each of its variations.
fn measure(experiments: &[Experiment], asked: &ReportArguments) -> Result<Vec<Vec<Run>>, Error> {
    let plan: Vec<(usize, Variation)> = experiments
        .iter()
        .enumerate()
        .flat_map(|(i, experiment)| experiment.variations(asked.quick).into_iter().map(move |variation| (i, variation)))
        .collect();
    let jobs: Vec<Job> = plan.iter().flat_map(|(i, variation)| experiments[*i].jobs(variation)).collect();
    let results = in_children(&jobs, asked.jobs, &Interrupt::listen()?)?;
    let outcomes = results.into_iter().collect::<Result<Vec<_>, _>>().map_err(|first| Error::Lab { first, more: 0 })?;
    let mut rest = outcomes.as_slice();
    let mut runs: Vec<Vec<Run>> = experiments.iter().map(|_| Vec::new()).collect();
    for (i, variation) in &plan {
        let (of_this, others) = rest.split_at(experiments[*i].cells.len());
        rest = others;
        runs[*i].push(experiments[*i].read(variation, of_this));
    }
    Ok(runs)
}

/// Writes the whole report and its plots into `dir`.
fn save(dir: &Path, sections: &[(&Experiment, Vec<Run>)], text: &str) -> Result<(), Error> {
    let plots = dir.join("plots");
    let refuse = |path: &Path, error: std::io::Error| Error::Save { path: path.into(), reason: error.into() };
    fs::create_dir_all(&plots).map_err(|error| refuse(&plots, error))?;
    for (experiment, runs) in sections {
        for drawn in &experiment.figures {
            let path = plots.join(drawn.name).with_extension("svg");
            let svg = figure::draw(drawn, &experiment.curves(drawn, &runs[0]))
                .map_err(|error| Error::Plot { path: path.clone(), reason: error.to_string().as_str().into() })?;
            fs::write(&path, svg).map_err(|error| refuse(&path, error))?;
        }
    }
    let path = dir.join("lab-report.md");
    let whole = format!("{}\n\n{}\n{text}", report::PREFACE.trim_end(), report::index(sections));
    fs::write(&path, whole).map_err(|error| refuse(&path, error))
}

/// Fails if a claim does not hold with seed 1.
fn check(sections: &[(&Experiment, Vec<Run>)]) -> Result<(), Error> {
    let failed = sections.iter().flat_map(|(experiment, runs)| {
        let claims = experiment.claims.iter().enumerate();
        claims.filter(|&(i, _)| !runs[0].holds[i]).map(|(_, claim)| format!("{}: {}", experiment.name, claim.text))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(Error::Claims(failed.join("; "))) }
}
