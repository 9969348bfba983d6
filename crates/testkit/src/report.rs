//! The results of all cases.
//!
//! Plain values.

use crate::outcome::Outcome;
use core::fmt;

/// The result of each case.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) outcomes: Vec<(&'static str, Outcome)>,
}

impl Report {
    /// Returns each case's name and outcome, in the order in which they ran.
    pub fn outcomes(&self) -> &[(&'static str, Outcome)] {
        &self.outcomes
    }

    /// Returns the names of the cases that failed.
    #[must_use]
    pub fn failed(&self) -> Vec<&'static str> {
        self.outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(name, _)| *name).collect()
    }

    /// Returns whether none failed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.outcomes.iter().all(|(_, outcome)| outcome.is_ok())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.outcomes {
            match outcome {
                Ok(()) => writeln!(f, "ok      {name}")?,
                Err(failure) => writeln!(f, "FAILED  {name}: {failure}")?,
            }
        }
        Ok(())
    }
}
