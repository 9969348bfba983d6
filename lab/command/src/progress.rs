//! The progress bar: on standard error, and only if that is a terminal. It is drawn between slices by the thread that
//! waits, never by another thread, which would take CPU time from what is measured.

use crate::estimate::Estimate;
use indicatif::{ProgressBar, ProgressStyle};

/// One bar, which goes when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `len` steps of `what`, with an estimate of the time left.
    pub(crate) fn of(what: &'static str, len: usize) -> Self {
        let style = ProgressStyle::with_template("{msg:9} [{bar:40}] {pos} of {len}, {eta} left");
        Self::with(ProgressBar::new(len as u64), style.unwrap_or_else(|_| ProgressStyle::default_bar()), what)
    }

    /// A bar for jobs, which moves by what they cost; see [`Estimate`].
    pub(crate) fn of_jobs(what: &'static str, estimate: &Estimate) -> Self {
        let style = ProgressStyle::with_template("{msg:9} [{bar:40}] {percent} %, {eta} left");
        let bar = ProgressBar::new(estimate.total() as u64);
        Self::with(bar, style.unwrap_or_else(|_| ProgressStyle::default_bar()), what)
    }

    /// Moves the bar to what is done, and its end to what will have been.
    pub(crate) fn show(&self, estimate: &Estimate) {
        self.bar.set_length(estimate.total() as u64);
        self.bar.set_position(estimate.accesses() as u64);
    }

    /// A count of `what` with no known end.
    pub(crate) fn counting(what: &'static str) -> Self {
        let style = ProgressStyle::with_template("{msg:9} {pos}");
        Self::with(ProgressBar::no_length(), style.unwrap_or_else(|_| ProgressStyle::default_spinner()), what)
    }

    fn with(bar: ProgressBar, style: ProgressStyle, what: &'static str) -> Self {
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        Self { bar }
    }

    /// One step more.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
