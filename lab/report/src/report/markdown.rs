//! The report as Markdown.

use super::{Experiment, Origin, Published, Run};
use core::fmt::Write as _;

/// The lines of the report's table of claims.
#[must_use]
pub fn index(sections: &[(&Experiment, Vec<Run>)]) -> String {
    let mut text = String::from("| section | claim | holds |\n|---|---|---|\n");
    for (experiment, runs) in sections {
        for (i, claim) in experiment.claims.iter().enumerate() {
            let _ = writeln!(text, "| {} | {} | {} |", experiment.title, claim.text, verdict(runs, i));
        }
    }
    text
}

/// The section of one experiment. The table shows the first run. The runs of all seeds make the first range, those of the
/// corners the second.
#[must_use]
pub fn section(experiment: &Experiment, runs: &[Run], published: &Published) -> String {
    let mut text = format!("## {}\n\n{}\n", experiment.title, experiment.about.trim());
    text.push('\n');
    for source in experiment.sources {
        let _ = writeln!(text, "- Published as `{source}`: {}.", published.source(source));
    }
    let _ = writeln!(text, "- Run again: `lightfoot-lab report --only {}`.\n", experiment.name);
    text.push_str(&tuned(experiment));
    text.push_str(&table(experiment, runs));
    for figure in &experiment.figures {
        let _ = writeln!(text, "![{}](plots/{}.svg)\n", figure.title, figure.name);
    }
    text.push_str("| claim | holds |\n|---|---|\n");
    for (i, claim) in experiment.claims.iter().enumerate() {
        let _ = writeln!(text, "| {} | {} |", claim.text, verdict(runs, i));
    }
    let _ = writeln!(text, "\n{}", experiment.remarks.trim());
    text
}

fn tuned(experiment: &Experiment) -> String {
    let mut text = String::from("| parameter | value | set to match |\n|---|---|---|\n");
    for tuned in &experiment.tuned {
        let _ = writeln!(text, "| {} | {} | {} |", tuned.what, tuned.value, tuned.on);
    }
    text.push('\n');
    text
}

fn table(experiment: &Experiment, runs: &[Run]) -> String {
    let mut text = String::from(
        "| figure | published | simulated | ratio | 3 seeds | box | origin |\n|---|---|---|---|---|---|---|\n",
    );
    for (i, row) in experiment.rows.iter().enumerate() {
        let simulated = runs[0].values[i];
        let published = row.published.map_or("-".to_owned(), figure);
        let ratio = row.published.map_or("-".to_owned(), |published| ratio(simulated, published));
        let seeds = range(runs.iter().filter(|run| run.variation.is_seed()), i);
        let corners = range(runs.iter().filter(|run| !run.variation.is_seed()), i);
        let origin = if row.published.is_none() && row.origin == Origin::Predicted { "new" } else { row.origin.word() };
        let _ = writeln!(
            text,
            "| {} | {published} | {} | {ratio} | {seeds} | {corners} | {origin} |",
            row.label,
            figure(simulated)
        );
    }
    text.push('\n');
    text
}

/// Lowest and highest figure number `i` of `runs`.
fn range<'a>(runs: impl Iterator<Item = &'a Run>, i: usize) -> String {
    let values = runs.map(|run| run.values[i]);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high { "-".to_owned() } else { format!("{} .. {}", figure(low), figure(high)) }
}

fn verdict(runs: &[Run], claim: usize) -> String {
    let failed: Vec<&str> = runs.iter().filter(|run| !run.holds[claim]).map(|run| run.variation.name).collect();
    let (held, all) = (runs.len() - failed.len(), runs.len());
    let no = if runs[0].holds[claim] { "" } else { "**no**; " };
    match held {
        0 => format!("**no**; in none of {all}"),
        _ if held == all => format!("in all {all}"),
        _ => format!("{no}in {held} of {all}; not with {}", failed.join(", ")),
    }
}

/// Simulated divided by published; none where the signs differ or the published figure is 0.
fn ratio(simulated: f64, published: f64) -> String {
    if published == 0.0 || simulated * published < 0.0 {
        "-".to_owned()
    } else {
        format!("{:.2}", simulated / published)
    }
}

/// Three digits that count, and no exponent.
fn figure(x: f64) -> String {
    if !x.is_finite() {
        return "-".to_owned();
    }
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).clamp(0, 3) };
    format!("{x:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::super::Variation;
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        for (x, text) in
            [(0.0, "0"), (0.0123, "0.012"), (1.5, "1.50"), (12.34, "12.3"), (-0.8, "-0.800"), (110139.61, "110140")]
        {
            assert_eq!(figure(x), text);
        }
        assert_eq!(figure(f64::NAN), "-");
    }

    #[test]
    fn a_verdict_counts_the_runs_in_which_a_claim_holds() {
        let runs = |holds: [bool; 3]| -> Vec<Run> {
            let run = |(variation, holds)| Run { variation, values: Vec::new(), holds: vec![holds] };
            Variation::seeds().into_iter().zip(holds).map(run).collect()
        };
        for (holds, text) in [
            ([true; 3], "in all 3"),
            ([true, false, false], "in 1 of 3; not with seed 2, seed 3"),
            ([false, true, true], "**no**; in 2 of 3; not with seed 1"),
            ([false; 3], "**no**; in none of 3"),
        ] {
            assert_eq!(verdict(&runs(holds), 0), text);
        }
    }

    #[test]
    fn a_ratio_across_signs_is_not_shown() {
        assert_eq!(ratio(0.3, -0.8), "-");
        assert_eq!(ratio(2.0, 4.0), "0.50");
    }
}
