//! The errors of the command, each in one line: what, why, and what to do.

use fuse::message::{Reason, show};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the command ends without a result.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The directory to copy does not exist.
    #[error("{}: no such directory (omit DIR for a synthetic tree)", show(.0))]
    SourceMissing(PathBuf),

    /// The source to copy is not a directory.
    #[error("{}: not a directory", show(.0))]
    SourceNotDirectory(PathBuf),

    /// The directory to copy cannot be listed.
    #[error("{}: cannot read: {reason}", show(.path))]
    SourceUnreadable {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        reason: Reason,
    },

    /// There is nothing to look up.
    #[error("{0:?}: no regular file to look up (name a directory with files)")]
    NoFiles(String),

    /// `--cases` selects nothing.
    #[error("invalid --cases \"{asked}\" (use part of {there})")]
    NoSuchCase {
        /// The requested name.
        asked: String,
        /// The cases.
        there: String,
    },

    /// More threads than CPUs.
    #[error("invalid --threads: {asked} threads on {cpus} CPUs measure the scheduler (use at most {cpus})")]
    TooManyThreads {
        /// The requested number.
        asked: usize,
        /// CPUs that this process may use.
        cpus: usize,
    },

    /// No place for the kernel's copy.
    #[error(
        "{tried}: cannot create a directory for the kernel's copy: {reason} (name another place with --scratch DIR)"
    )]
    NoScratch {
        /// The places tried.
        tried: String,
        /// The kernel's error for the last.
        reason: Reason,
    },

    /// The place for the kernel's copy is full.
    #[error(
        "{} ({file_system}): no space left after {done} of {entries} entries and {bytes} bytes of contents; {free} bytes \
         were free at the start (name another place with --scratch DIR or TMPDIR, or copy a smaller tree)",
        show(.dir)
    )]
    NoSpace {
        /// The place of the copy.
        dir: PathBuf,
        /// Its file system.
        file_system: String,
        /// Entries copied.
        done: usize,
        /// Entries to copy.
        entries: usize,
        /// Bytes of contents copied.
        bytes: u64,
        /// Bytes that were free before.
        free: u64,
    },

    /// An entry could not be copied.
    #[error(
        "{}: cannot copy to {side}: {} (leave it out, or name another place with --scratch DIR)",
        show(.path),
        Reason::from(.error)
    )]
    Copy {
        /// The entry, relative to the tree's root.
        path: PathBuf,
        /// The kernel or Lightfoot.
        side: &'static str,
        /// Its error.
        error: io::Error,
    },

    /// A contender of `bench --peers` holds something else than the others.
    #[error("{contender}: wrong length of {}: {found:?}, not {len} (this is a defect of the benchmark)", show(.path))]
    Disagreement {
        /// The contender.
        contender: &'static str,
        /// The file.
        path: PathBuf,
        /// Its length.
        len: u64,
        /// What the contender returns, if it finds the file.
        found: Option<u64>,
    },

    /// An operation of a measured case failed.
    #[error("{case} of {}: {reason} (leave the case out with --cases)", show(.path))]
    Operation {
        /// The case.
        case: String,
        /// The path of the operation.
        path: PathBuf,
        /// Its error.
        reason: Reason,
    },

    /// `--era` names no era.
    #[error("invalid --era {asked:?} (use {there}, or all)")]
    NoSuchEra {
        /// The requested name.
        asked: String,
        /// The eras.
        there: String,
    },

    /// `--workload` names no workload.
    #[error("invalid --workload {asked:?} (use {there})")]
    NoSuchWorkload {
        /// The requested name.
        asked: String,
        /// The workloads.
        there: String,
    },

    /// `--set` has an invalid name or value.
    #[error("invalid --set for the workload {workload}: {reason}")]
    BadParameter {
        /// The workload.
        workload: String,
        /// Why it is invalid, and what is valid.
        reason: String,
    },

    /// `--era-set` has an invalid name or value.
    #[error("invalid --era-set: {0}")]
    BadEraOption(String),

    /// `--on` names neither this machine nor a simulated one.
    #[error("invalid --on {0:?} (use --on native, or --on sim:NAME with a name that lightfoot-lab machines shows)")]
    NoSuchPlace(String),

    /// No such preset.
    #[error("invalid simulated machine {asked:?} (use {there}, or a file: sim:/path/to/machine.toml)")]
    NoSuchMachine {
        /// The requested name.
        asked: String,
        /// The presets.
        there: String,
    },

    /// More nodes than the machine has, or none.
    #[error("invalid number of nodes {asked:?} of {machine} (use 1 to {nodes})")]
    NoSuchNodes {
        /// The requested name.
        asked: String,
        /// The machine.
        machine: String,
        /// Its nodes.
        nodes: usize,
    },

    /// A file that does not describe a machine.
    #[error("{}: invalid machine: {reason} (begin with a copy of one of lab/sim/machines)", show(.path))]
    MachineFile {
        /// The file.
        path: PathBuf,
        /// Why it is invalid.
        reason: Reason,
    },

    /// More CPUs than the machine has.
    #[error("invalid --cpus: {machine} does not have {asked} CPUs (use at most {cpus})")]
    TooManyCpus {
        /// The requested number.
        asked: usize,
        /// The machine.
        machine: String,
        /// Its CPUs.
        cpus: usize,
    },

    /// `--interrupts-us` does not have two numbers.
    #[error(
        "invalid --interrupts-us (use two numbers, the microseconds between interrupts and the length of each, such as \
         300,100; or 0 for none)"
    )]
    BadInterrupts,

    /// An option for simulated machines only.
    #[error("invalid {0}: it is for simulated machines (leave it out, or use --on sim:NAME)")]
    OnlySimulated(&'static str),

    /// Runs of the lab failed.
    #[error("{first}{}", match .more { 0 => String::new(), more => format!("; {more} more runs failed") })]
    Lab {
        /// The first failure.
        first: lab::Failure,
        /// How many more there are.
        more: usize,
    },

    /// The report has no section of that name.
    #[error("invalid section \"{asked}\" (use {there})")]
    NoSuchSection {
        /// The requested name.
        asked: String,
        /// The sections.
        there: String,
    },

    /// Claims of the report do not hold.
    #[error("the report has claims that do not hold: {0}")]
    Claims(String),

    /// Kept outcomes cannot be read, or are of another version of their experiment.
    #[error("{}: cannot use these outcomes: {reason}", show(.path))]
    Outcomes {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// A file cannot be written.
    #[error("{}: cannot write: {reason}", show(.path))]
    Save {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// A child process for one run cannot be started, or its pipes fail.
    #[error("process of one run: {0}")]
    Cell(Reason),

    /// This machine cannot be measured.
    #[error("{0}")]
    Calibration(lab::Failure),

    /// The plot cannot be written.
    #[error("{}: cannot write the plot: {reason}", show(.path))]
    Plot {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(Reason),

    /// A signal ended the run.
    #[error("interrupted; the temporary directory has been removed")]
    Interrupted(i32),

    /// Signal handlers cannot be installed, so a signal would leave a temporary directory behind.
    #[error("cannot handle signals: {0} (nothing was started)")]
    Signals(Reason),
}

impl Error {
    /// The exit status: 2 for bad input, 128 plus the signal after a signal, 1 otherwise.
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
