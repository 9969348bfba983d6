//! The progress bar: on standard error, and only if that is a terminal. It is drawn between slices
//! by the thread that waits, never by another thread, which would take CPU time from the
//! measurement.

use indicatif::{ProgressBar, ProgressStyle};

/// One bar, which is cleared when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Returns a bar for `len` steps of `what`, with an estimate of the time left.
    pub(crate) fn of(what: &'static str, len: usize) -> Self {
        Self::with(ProgressBar::new(len as u64), "{msg:9} [{bar:40}] {percent} %, {eta} left", what)
    }

    /// Returns a count of `what` without a given end.
    pub(crate) fn counting(what: &'static str) -> Self {
        Self::with(ProgressBar::no_length(), "{msg:9} {pos}", what)
    }

    fn with(bar: ProgressBar, template: &str, what: &'static str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        Self { bar }
    }

    /// Adds `count` steps.
    pub(crate) fn step(&self, count: usize) {
        self.bar.inc(count as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
