//! Workers that rename a file to and fro: they move names beside the load of a figure.
//!
//! A private file is in `/tmp`, where no other worker has one; `reverse-path` moves the components of a common path.

use super::{Worker, layout, pace};
use crate::era::{Process, Result};

/// The meaning of the parameter `pause_ns` of each workload with renamers of private files.
pub(super) const PAUSE: &str = "a renamer's time between two renames (chosen here)";

/// Makes the private files of `renamers` workers, which have the first indexes.
pub(super) fn files(process: &dyn Process, renamers: usize) -> Result<()> {
    layout::directories(process, "/tmp")?;
    layout::files(process, "/tmp", renamers).map(drop)
}

/// Returns the worker that moves private file number `index`.
pub(super) fn of_private<'era>(
    process: Box<dyn Process + 'era>,
    index: usize,
    pause_ns: u64,
) -> Box<dyn Worker + 'era> {
    to_and_fro(process, format!("/tmp/f{index}"), format!("/tmp/moved{index}"), move || pause_ns)
}

/// Returns a worker that waits and renames `from` to `to`, and the next time back.
pub(super) fn to_and_fro<'era>(
    process: Box<dyn Process + 'era>,
    mut from: String,
    mut to: String,
    mut pause_ns: impl FnMut() -> u64 + 'era,
) -> Box<dyn Worker + 'era> {
    Box::new(move || {
        pace::user(pause_ns());
        process.rename(from.as_bytes(), to.as_bytes())?;
        core::mem::swap(&mut from, &mut to);
        Ok(())
    })
}
