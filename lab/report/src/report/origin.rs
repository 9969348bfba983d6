//! Where a simulated figure comes from. The label follows from the experiment's [inputs](super::input), and nothing else
//! can make one: the type has no constructor outside this file.

use super::experiment::{Experiment, Row};
use super::input::View;

/// The label of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Base,
    Tuned,
    InView,
    Input,
    Predicted,
    New,
}

impl Origin {
    /// Returns the label of `row`: the worst that any chosen input makes of it.
    #[must_use]
    pub fn of(experiment: &Experiment, row: &Row) -> Self {
        let has = |view: View| {
            let views = experiment.inputs.iter().flat_map(|input| &input.views);
            views.filter(|(of, _)| *of == view).any(|(_, rows)| rows(&row.label))
        };
        Self(if row.is_base {
            Kind::Base
        } else if has(View::Fitted) {
            Kind::Tuned
        } else if has(View::Seen) {
            Kind::InView
        } else if has(View::ReadOff) {
            Kind::Input
        } else if row.published.is_none() {
            Kind::New
        } else {
            Kind::Predicted
        })
    }

    /// As the table shows it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self.0 {
            Kind::Base => "base",
            Kind::Tuned => "tuned",
            Kind::InView => "in view",
            Kind::Input => "input",
            Kind::Predicted => "predicted",
            Kind::New => "new",
        }
    }

    /// Returns whether nothing was chosen with a view to the figure.
    #[must_use]
    pub fn is_predicted(self) -> bool {
        self.0 == Kind::Predicted
    }
}
