//! The errors of the command, each in one line: the failure, its reason, and a remedy.

use fuse::message::{Reason, show};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the command ends without a result.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// An argument: its name, the reason, and the valid values.
    #[error("invalid {0}")]
    Invalid(String),

    #[error("{}: no such directory (omit DIR for a synthetic tree)", show(.0))]
    SourceMissing(PathBuf),

    #[error("{}: not a directory", show(.0))]
    SourceNotDirectory(PathBuf),

    #[error("{0:?}: no regular file to look up (name a directory with files)")]
    NoFiles(String),

    /// A file or a directory that cannot be read or written: the action, and the reason.
    #[error("{}: cannot {what}: {reason}", show(.path))]
    File { path: PathBuf, what: &'static str, reason: Reason },

    #[error("{}: invalid machine: {reason} (begin with a copy of one of lab/sim/machines)", show(.path))]
    MachineFile { path: PathBuf, reason: Reason },

    #[error(
        "{tried}: cannot create a directory for the kernel's copy: {reason} (name another place with --scratch DIR)"
    )]
    NoScratch { tried: String, reason: Reason },

    /// The place for the kernel's copy is full.
    #[error(
        "{} ({file_system}): no space left after {done} of {entries} entries and {bytes} bytes of contents; {free} bytes \
         were free at the start (name another place with --scratch DIR or TMPDIR, or copy a smaller tree)",
        show(.dir)
    )]
    NoSpace { dir: PathBuf, file_system: String, done: usize, entries: usize, bytes: u64, free: u64 },

    /// An entry, relative to the tree's root, could not be copied to the kernel's or to Lightfoot's side.
    #[error(
        "{}: cannot copy to {side}: {} (leave it out, or name another place with --scratch DIR)",
        show(.path),
        Reason::from(.error)
    )]
    Copy { path: PathBuf, side: &'static str, error: io::Error },

    /// A contender of `bench --peers` holds something else than the others.
    #[error("{contender}: wrong length of {}: {found:?}, not {len} (this is a defect of the benchmark)", show(.path))]
    Disagreement { contender: &'static str, path: PathBuf, len: u64, found: Option<u64> },

    #[error("{case} of {}: {reason} (leave the case out with --cases)", show(.path))]
    Operation { case: String, path: PathBuf, reason: Reason },

    /// Runs of the lab failed: the first failure, and how many more there are.
    #[error("{first}{}", match .more { 0 => String::new(), more => format!("; {more} more runs failed") })]
    Lab { first: lab::Failure, more: usize },

    #[error("the report has claims that do not hold: {0}")]
    Claims(String),

    #[error("process of one run: {0}")]
    Cell(Reason),

    #[error("{0}")]
    Calibration(lab::Failure),

    #[error("standard output: {0}")]
    Output(Reason),

    #[error("interrupted; the temporary directory has been removed")]
    Interrupted(i32),

    /// A signal would leave a temporary directory behind.
    #[error("cannot handle signals: {0} (nothing was started)")]
    Signals(Reason),
}

impl Error {
    /// `argument` is none of those that there are.
    pub(crate) fn no_such(argument: &str, asked: &str, use_what: &str) -> Self {
        Self::Invalid(format!("{argument} {asked:?} (use {use_what})"))
    }

    /// More threads than CPUs.
    pub(crate) fn too_many_threads(asked: usize, cpus: usize) -> Self {
        let why = format!("{asked} threads on {cpus} CPUs measure the scheduler (use at most {cpus})");
        Self::Invalid(format!("--threads: {why}"))
    }

    /// Returns the exit status: 2 for bad input, 128 plus the signal after a signal, 1 otherwise.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Error::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Error::Operation { .. } | Error::Copy { .. } | Error::Output(_) | Error::Signals(_) => 1,
            Error::Lab { .. } | Error::Cell(_) | Error::Claims(_) => 1,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_line_break_stays_on_one_line() {
        assert!(!Error::SourceMissing("a\nb".into()).to_string().contains('\n'));
    }
}
