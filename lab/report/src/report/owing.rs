//! The debts of an experiment to its reader after its outcomes: a reason for each figure that is
//! off and for each claim that fails, and no reason without need.

use super::{Experiment, Run, shown};

/// Returns the missing parts in the code of `experiment`, a sentence each. `runs` has the runs of
/// all variations.
#[must_use]
pub fn owing(experiment: &Experiment, runs: &[Run]) -> Vec<String> {
    let mut owed: Vec<String> = Vec::new();
    for (i, row) in experiment.rows.iter().enumerate() {
        let simulated = shown(runs, i);
        if row.is_off(simulated) && experiment.reason(row).is_none() {
            owed.push(format!("{}: {} is {simulated} and has no reason", row.label, row.published.unwrap_or(f64::NAN)));
        }
        if !row.is_base && row.published == Some(1.0) && runs.iter().all(|run| run.values[i] == 1.0) {
            owed.push(format!("{} is 1 in every run, so it is a base", row.label));
        }
    }
    for reason in &experiment.reasons {
        let mut explained = experiment
            .rows
            .iter()
            .enumerate()
            .filter(|(i, row)| row.is_off(shown(runs, *i)) && experiment.reason(row) == Some(reason.why));
        if explained.next().is_none() {
            owed.push(format!("no figure is off because {:?}", reason.why));
        }
    }
    for (i, claim) in experiment.claims.iter().enumerate() {
        let failed: Vec<&str> = runs.iter().filter(|run| !run.holds[i]).map(|run| run.variation.name).collect();
        match (claim.unless, failed.is_empty()) {
            (None, false) => owed.push(format!("{:?} fails with {} and has no reason", claim.text, failed.join(", "))),
            (Some(_), false) if claim.brief.is_empty() => owed.push(format!("{:?} has no brief", claim.text)),
            (Some(_), true) => owed.push(format!("{:?} holds in every run and needs no reason", claim.text)),
            _ => {}
        }
    }
    owed.into_iter().map(|sentence| format!("{}: {sentence}", experiment.name)).collect()
}
