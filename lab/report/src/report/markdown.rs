//! One section of the report as Markdown.

use super::input::Number;
use super::tolerance::Tolerance;
use super::{Experiment, Grid, Origin, Published, Run, Window, shown};
use core::fmt::Write as _;

/// Returns the section of one experiment. The table shows medians over the seeds. The runs of all
/// seeds make the first range, the runs of the corners the second.
#[must_use]
pub fn section(experiment: &Experiment, runs: &[Run], commit: &str, published: &Published) -> String {
    let mut text = format!("## {}\n\n{}\n", experiment.title, experiment.about.trim());
    text.push('\n');
    for source in experiment.sources {
        let _ = writeln!(text, "- Published as `{source}`: {}.", published.source(source));
    }
    let (name, times) = (experiment.name, windows(runs.first().map_or(&[], |run| &run.windows)));
    let _ = writeln!(text, "- Commit {commit}. {times}");
    if let Some(cold) = runs.first().and_then(|run| cold(&run.cold)) {
        let _ = writeln!(text, "- {cold}");
    }
    let _ = writeln!(text, "- Run again: `lightfoot-lab report --only {name}`.\n");
    text.push_str(&inputs(experiment));
    text.push_str(&table(experiment, runs));
    for shown in &experiment.grids {
        text.push_str(&grid(experiment, shown, runs));
    }
    for figure in &experiment.figures {
        let _ = writeln!(text, "![{}](plots/{}.svg)\n", figure.title, figure.name);
    }
    if !experiment.claims.is_empty() {
        text.push_str("| claim | holds |\n|---|---|\n");
        for (i, claim) in experiment.claims.iter().enumerate() {
            let why = claim.unless.map_or(String::new(), |why| format!(". {why}"));
            let _ = writeln!(text, "| {} | {}{why} |", claim.text, verdict(runs, i));
        }
        text.push('\n');
    }
    text.push_str(experiment.remarks.trim());
    text.push('\n');
    text
}

/// Returns how long the cells ran.
fn windows(windows: &[Window]) -> String {
    let times = |window: &Window| {
        let ms = |us: u64| us as f64 / 1000.0;
        format!("{} ms after {} ms of the same work on every CPU", ms(window.run_us), ms(window.warm_us))
    };
    match windows {
        [] => String::new(),
        [one] => format!("Each cell is measured for {}.", times(one)),
        [most, longer @ ..] => {
            let longer = longer.iter().map(|window| format!("{} cells for {}", window.cells, times(window)));
            let longer = longer.collect::<Vec<String>>().join(", ");
            format!("Cells are measured for {}; since that gave too few operations, {longer}.", times(most))
        }
    }
}

/// Which cells were not warm.
fn cold(cells: &[String]) -> Option<String> {
    let some = cells.iter().take(4).map(String::as_str).collect::<Vec<&str>>().join(", ");
    let more = cells.len().saturating_sub(4);
    match (cells.len(), more) {
        (0, _) => None,
        (count, 0) => Some(format!("In {count} cells a thread had not ended its first operation by then: {some}.")),
        (count, more) => Some(format!(
            "In {count} cells a thread had not ended its first operation by then: {some} and {more} others."
        )),
    }
}

fn inputs(experiment: &Experiment) -> String {
    let mut text = String::from("| chosen input | value | where from |\n|---|---|---|\n");
    for input in &experiment.inputs {
        let names = input.numbers.iter().filter_map(|number| match number {
            Number::Parameter(name) | Number::Option(name) | Number::Machine(name) => Some(format!("`{name}`")),
            Number::Interrupts | Number::Other(_) => None,
        });
        let names: Vec<String> = names.collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let _ = writeln!(text, "| {}{names} | {} | {} |", input.what, input.values(&experiment.cells), input.basis);
    }
    text.push_str("| everything else | defaults of workload, eras and machine | chosen before, with none of these figures in view |\n\n");
    text
}

fn table(experiment: &Experiment, runs: &[Run]) -> String {
    let is_elsewhere = |label: &str| {
        let lines = experiment.grids.iter().flat_map(|grid| &grid.lines);
        lines.flat_map(|(_, labels)| labels).any(|shown| shown == label)
    };
    let rows: Vec<_> = experiment.rows.iter().enumerate().filter(|(_, row)| !is_elsewhere(&row.label)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "| figure | published | simulated | ratio | 3 seeds | box | origin | off because |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (i, row) in rows {
        let simulated = shown(runs, i);
        let published = row.published.map_or("-".to_owned(), figure);
        let ratio = row.published.map_or("-".to_owned(), |published| ratio(simulated, published));
        let seeds = range(runs.iter().filter(|run| run.variation.is_seed()), i);
        let corners = range(runs.iter().filter(|run| !run.variation.is_seed()), i);
        let points = if row.tolerance == Tolerance::DEFAULT {
            String::new()
        } else {
            format!(" (within {})", row.tolerance.words())
        };
        let why = if row.is_off(simulated) { experiment.reason(row).unwrap_or("**no reason is known**") } else { "" };
        let _ = writeln!(
            text,
            "| {}{points} | {published} | {} | {ratio} | {seeds} | {corners} | {} | {why} |",
            row.label,
            figure(simulated),
            Origin::of(experiment, row).word(),
        );
    }
    text.push('\n');
    text
}

/// Some rows as a table of medians.
fn grid(experiment: &Experiment, grid: &Grid, runs: &[Run]) -> String {
    let mut text = format!("| {} |\n|{}\n", grid.head.join(" | "), "---|".repeat(grid.head.len()));
    for (name, labels) in &grid.lines {
        let figures =
            labels.iter().map(|label| experiment.place(label).map_or("-".into(), |row| figure(shown(runs, row))));
        let _ = writeln!(text, "| {name} | {} |", figures.collect::<Vec<String>>().join(" | "));
    }
    text.push('\n');
    text
}

/// Lowest and highest figure number `i` of `runs`.
fn range<'a>(runs: impl Iterator<Item = &'a Run>, i: usize) -> String {
    let values = runs.map(|run| run.values[i]).filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high { "-".to_owned() } else { format!("{} .. {}", figure(low), figure(high)) }
}

fn verdict(runs: &[Run], claim: usize) -> String {
    let failed: Vec<&str> = runs.iter().filter(|run| !run.holds[claim]).map(|run| run.variation.name).collect();
    let (held, all) = (runs.len() - failed.len(), runs.len());
    match held {
        _ if held == all => format!("in {all} of {all} runs"),
        0 => format!("**in none of {all} runs**"),
        _ => format!("**in {held} of {all} runs**, not with {}", failed.join(", ")),
    }
}

/// Simulated divided by published; none where the signs differ or the published figure is 0.
fn ratio(simulated: f64, published: f64) -> String {
    if published == 0.0 || simulated * published < 0.0 || !simulated.is_finite() {
        "-".to_owned()
    } else {
        format!("{:.2}", simulated / published)
    }
}

/// Three digits that count, and no exponent.
pub(super) fn figure(x: f64) -> String {
    if !x.is_finite() {
        return "no figure".to_owned();
    }
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).clamp(0, 4) };
    format!("{x:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::super::Variation;
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        for (x, text) in
            [(0.0, "0"), (0.0123, "0.0123"), (1.5, "1.50"), (12.34, "12.3"), (-0.8, "-0.800"), (110139.61, "110140")]
        {
            assert_eq!(figure(x), text);
        }
        assert_eq!(figure(f64::NAN), "no figure");
    }

    #[test]
    fn a_verdict_counts_the_runs_in_which_a_claim_holds() {
        let runs = |holds: [bool; 3]| -> Vec<Run> {
            let run = |(variation, holds)| Run {
                variation,
                values: Vec::new(),
                holds: vec![holds],
                windows: Vec::new(),
                cold: Vec::new(),
            };
            Variation::seeds().into_iter().zip(holds).map(run).collect()
        };
        for (holds, text) in [
            ([true; 3], "in 3 of 3 runs"),
            ([true, false, true], "**in 2 of 3 runs**, not with seed 2"),
            ([false; 3], "**in none of 3 runs**"),
        ] {
            assert_eq!(verdict(&runs(holds), 0), text);
        }
    }

    #[test]
    fn a_ratio_across_signs_is_not_shown() {
        assert_eq!(ratio(0.3, -0.8), "-");
        assert_eq!(ratio(2.0, 4.0), "0.50");
    }

    #[test]
    fn windows_are_told_with_their_warm_up() {
        let window = |warm_us, run_us, cells| Window { warm_us, run_us, cells };
        assert_eq!(
            windows(&[window(500, 2000, 4)]),
            "Each cell is measured for 2 ms after 0.5 ms of the same work on every CPU."
        );
        let text = windows(&[window(500, 2000, 4), window(2000, 8000, 2)]);
        assert!(text.contains("2 cells for 8 ms after 2 ms"), "{text}");
    }
}
