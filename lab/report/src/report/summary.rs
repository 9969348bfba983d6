//! The whole report, with its summary first.

use super::{Calibrated, Experiment, Origin, Published, Record, Run, section, shown};
use core::fmt::Write as _;

/// How the report begins.
const PREFACE: &str = include_str!("preface.txt");

/// The meaning of the tables' columns.
const READING: &str = include_str!("reading.txt");

/// The text without a kept calibration.
const UNCALIBRATED: &str = include_str!("uncalibrated.txt");

/// An experiment with the record of its outcomes.
pub type Section<'a> = (&'a Experiment, &'a Record, Vec<Run>);

/// Returns the report's text.
#[must_use]
pub fn whole(sections: &[Section<'_>], calibrated: Option<&Calibrated>, published: &Published) -> String {
    let verdict = calibrated.map_or(UNCALIBRATED.to_owned(), Calibrated::text);
    let mut text = format!("{}\n\n{}\n", PREFACE.trim_end(), commits(sections));
    text.push_str(&summary(sections));
    let _ = write!(text, "\n## Calibration\n\n{verdict}\n{}\n", READING.trim_end());
    for (experiment, record, runs) in sections {
        let _ = write!(text, "\n{}", section(experiment, runs, &record.commit, published));
    }
    text
}

/// Returns one page of text: counts by section, the claims that fail, and where another era is
/// ahead of Lightfoot.
#[must_use]
pub fn summary(sections: &[Section<'_>]) -> String {
    let mut text = format!("## What came out and what did not\n\n{}", scores(sections));
    text.push_str(&failed(sections));
    text.push_str("\nWhere another era is ahead of Lightfoot:\n\n");
    for (experiment, _, runs) in sections {
        for line in experiment.summary.iter().flat_map(|behind| behind(&medians(experiment, runs))) {
            let _ = writeln!(text, "- {line}");
        }
    }
    text
}

/// Returns the figures that the tables show.
fn medians<'a>(experiment: &'a Experiment, runs: &[Run]) -> super::Figures<'a> {
    let values: Vec<f64> = (0..experiment.rows.len()).map(|row| shown(runs, row)).collect();
    experiment.figures_of(&values)
}

/// Returns a text that states where the outcomes come from.
fn commits(sections: &[Section<'_>]) -> String {
    let mut commits: Vec<&str> = sections.iter().map(|(_, record, _)| record.commit.as_str()).collect();
    commits.sort_unstable();
    commits.dedup();
    match commits.as_slice() {
        [one] => format!("All outcomes are of commit {one}.\n"),
        several => {
            format!("The outcomes are of several commits: {}. Each section names its own.\n", several.join(", "))
        }
    }
}

/// Returns a line for each section: how many figures are near, and how many claims hold.
fn scores(sections: &[Section<'_>]) -> String {
    let mut text = String::from(
        "| section | published figures | near | of them predicted | near | claims | hold in every run |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut sum = [0; 6];
    for (experiment, _, runs) in sections {
        let compared = experiment.rows.iter().enumerate().filter(|(_, row)| row.published.is_some() && !row.is_base);
        let is_near = |row: usize| !experiment.rows[row].is_off(shown(runs, row));
        let is_predicted = |row: usize| Origin::of(experiment, &experiment.rows[row]).is_predicted();
        let places: Vec<usize> = compared.map(|(place, _)| place).collect();
        let count = |test: &dyn Fn(usize) -> bool| places.iter().filter(|&&row| test(row)).count();
        let held = (0..experiment.claims.len()).filter(|&claim| runs.iter().all(|run| run.holds[claim])).count();
        let line = [
            places.len(),
            count(&is_near),
            count(&is_predicted),
            count(&|row| is_near(row) && is_predicted(row)),
            experiment.claims.len(),
            held,
        ];
        sum.iter_mut().zip(line).for_each(|(sum, count)| *sum += count);
        let _ = writeln!(text, "| {} | {} |", experiment.title, line.map(|count| count.to_string()).join(" | "));
    }
    let _ = writeln!(text, "| all | {} |", sum.map(|count| count.to_string()).join(" | "));
    text.push_str("\nNear: within 25 % of the published figure, or within the points that the row names.\n");
    text
}

/// Returns the claims that do not hold in every run, a line for each section.
fn failed(sections: &[Section<'_>]) -> String {
    let mut text =
        String::from("\nWhat did not come out, with the number of runs in which it did (why: see the sections):\n\n");
    for (experiment, _, runs) in sections {
        let claims = experiment.claims.iter().enumerate().filter_map(|(i, claim)| {
            let held = runs.iter().filter(|run| run.holds[i]).count();
            let count = if held == 0 { "none".to_owned() } else { format!("{held} of {}", runs.len()) };
            (held < runs.len()).then(|| format!("{} ({count})", claim.brief))
        });
        let claims: Vec<String> = claims.collect();
        if !claims.is_empty() {
            let _ = writeln!(text, "- [{}](#{}): {}", experiment.name, anchor(experiment.title), claims.join("; "));
        }
    }
    text
}

/// Where a heading's link leads.
fn anchor(title: &str) -> String {
    let letters = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
