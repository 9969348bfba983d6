//! What can go wrong, each as one sentence that names the thing and the way out.

use crate::mount::Failure;
use crate::source::SourceError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the command ends without a result.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The directory to copy is not there.
    #[error("there is no {}; name a directory that is there, or none for a synthetic tree", show(.0))]
    SourceMissing(PathBuf),

    /// The directory to copy is none.
    #[error("{} is no directory; name a directory, such as the one that it lies in", show(.0))]
    SourceNoDirectory(PathBuf),

    /// The directory to copy cannot be listed.
    #[error("{} cannot be read ({reason}); name a directory that you may list", show(.path))]
    SourceUnreadable {
        /// The directory.
        path: PathBuf,
        /// What the kernel says.
        reason: Reason,
    },

    /// There is nothing to look up.
    #[error("{0:?} holds no regular file that can be looked up; name a directory with files in it")]
    NoFiles(String),

    /// `--cases` leaves nothing.
    #[error("no case has any of \"{asked}\" in its name; there are {there}")]
    NoSuchCase {
        /// What was asked for.
        asked: String,
        /// The cases that there are.
        there: String,
    },

    /// More threads than CPUs.
    #[error("{asked} threads on {cpus} CPUs would measure the scheduler; ask --threads for at most {cpus}")]
    TooManyThreads {
        /// The number asked for.
        asked: usize,
        /// CPUs that this process may use.
        cpus: usize,
    },

    /// No place for the kernel's copy.
    #[error(
        "no directory for the kernel's copy can be made in {tried} ({reason}); name another place with --scratch DIR"
    )]
    NoScratch {
        /// The places tried.
        tried: String,
        /// What the kernel says of the last.
        reason: Reason,
    },

    /// The place for the kernel's copy is full.
    #[error(
        "no space left in {} ({file_system}) after {done} of {entries} entries and {bytes} bytes of contents, with {free} \
         bytes free at the start; name another place with --scratch DIR or TMPDIR, or copy a smaller tree",
        show(.dir)
    )]
    NoSpace {
        /// Where the copy was to be.
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
        "{} cannot be copied to {side} ({}); leave it out, or name another place with --scratch DIR",
        show(.path),
        Reason::from(.error)
    )]
    Copy {
        /// The entry, relative to the tree's root.
        path: PathBuf,
        /// The kernel or Lightfoot.
        side: &'static str,
        /// What it says.
        error: io::Error,
    },

    /// An operation that was to be measured failed.
    #[error("{case} of {} failed ({reason}), so nothing can be measured; leave the case out with --cases", show(.path))]
    Operation {
        /// The case.
        case: String,
        /// The path it was done on.
        path: PathBuf,
        /// What it says.
        reason: Reason,
    },

    /// `--era` names none.
    #[error("there is no era {asked:?}; there are {there}, and all for all of them")]
    NoSuchEra {
        /// What was asked for.
        asked: String,
        /// The eras that there are.
        there: String,
    },

    /// `--workload` names none.
    #[error("there is no workload {asked:?}; there are {there}")]
    NoSuchWorkload {
        /// What was asked for.
        asked: String,
        /// The workloads that there are.
        there: String,
    },

    /// `--set` sets what cannot be set.
    #[error("--set for the workload {workload}: {reason}")]
    BadParameter {
        /// The workload.
        workload: String,
        /// What is wrong, and what there is.
        reason: String,
    },

    /// `--era-set` sets what cannot be set.
    #[error("--era-set: {0}")]
    BadEraOption(String),

    /// `--on` names neither this machine nor a simulated one.
    #[error(
        "{0:?} is no place to run; say --on native, or --on sim:NAME with a name that lightfoot lab machines shows"
    )]
    NoSuchPlace(String),

    /// No such preset.
    #[error("there is no simulated machine {asked:?}; there are {there}, or name a file: sim:/path/to/machine.toml")]
    NoSuchMachine {
        /// What was asked for.
        asked: String,
        /// The presets that there are.
        there: String,
    },

    /// More nodes than the machine has, or none.
    #[error("{asked:?} is no number of nodes of {machine}; name one from 1 to {nodes}")]
    NoSuchNodes {
        /// What was asked for.
        asked: String,
        /// The machine.
        machine: String,
        /// Its nodes.
        nodes: usize,
    },

    /// A file that describes no machine.
    #[error(
        "{} describes no machine ({reason}); begin with a copy of one of crates/sim/machines",
        show(.path)
    )]
    MachineFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: Reason,
    },

    /// More CPUs than the machine has.
    #[error("{asked} CPUs are more than {machine} has; ask --cpus for at most {cpus}")]
    TooManyCpus {
        /// The number asked for.
        asked: usize,
        /// The machine.
        machine: String,
        /// Its CPUs.
        cpus: usize,
    },

    /// `--interrupts-us` has not two numbers.
    #[error(
        "--interrupts-us takes two numbers, the microseconds between interrupts and those of each, such as 300,100; or 0 \
         for none"
    )]
    BadInterrupts,

    /// An option that means nothing on this machine.
    #[error("{0} is for simulated machines; leave it out, or say --on sim:NAME")]
    OnlySimulated(&'static str),

    /// Runs of the lab failed.
    #[error("{first}{}", match .more { 0 => String::new(), more => format!("; and {more} more runs failed") })]
    Lab {
        /// The first failure.
        first: lab::Failure,
        /// How many there are besides.
        more: usize,
    },

    /// The report has no section of that name.
    #[error("the report has no section \"{asked}\"; there are {there}")]
    NoSuchSection {
        /// What was asked for.
        asked: String,
        /// The sections that there are.
        there: String,
    },

    /// Claims of the report do not hold.
    #[error("not all that the report claims holds: {0}")]
    Claims(String),

    /// A file cannot be written.
    #[error("{} cannot be written ({reason}); name a place that you may write to", show(.path))]
    Save {
        /// The file asked for.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// The lab's child process cannot be started, or cannot be talked to.
    #[error("the lab's process for one run failed ({0})")]
    Cell(Reason),

    /// This machine cannot be measured.
    #[error("{0}")]
    Calibration(lab::calibrate::CalibrateError),

    /// The plot cannot be written.
    #[error("the plot cannot be written to {} ({reason}); name a file in a directory that you may write to", show(.path))]
    Plot {
        /// The file asked for.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// Standard output cannot be written.
    #[error("the report cannot be written to standard output ({0})")]
    Output(Reason),

    /// The tree that was asked for cannot be made.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// There is no mount, or none that can be asked.
    #[error(transparent)]
    Mount(#[from] Failure),

    /// `lightfoot man` of a command that there is not.
    #[error("{of} has no command {asked:?}; there are {there}")]
    NoSuchCommand {
        /// What was asked for.
        asked: String,
        /// Below what.
        of: String,
        /// What there is.
        there: String,
    },

    /// Something failed, and was told when it did; with the status to end with.
    #[error("some of it failed")]
    Told(u8),

    /// A signal asked for the end.
    #[error("interrupted; the temporary directory has been removed")]
    Interrupted(i32),

    /// The process cannot be set up.
    #[error("signals cannot be handled ({0}), so a temporary directory could be left behind; nothing was begun")]
    Signals(Reason),
}

impl Error {
    /// The exit status: 2 for what the caller can mend, 128 and the signal after one, 1 for the rest.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Error::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Error::Operation { .. } | Error::Copy { .. } | Error::Output(_) | Error::Signals(_) => 1,
            &Error::Told(status) => status,
            Error::Mount(failure) => failure.status(),
            Error::Lab { .. } | Error::Cell(_) | Error::Claims(_) => 1,
            _ => 2,
        }
    }
}

/// What the system says, without the number: "permission denied".
#[derive(Debug)]
pub(crate) struct Reason(String);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&io::Error> for Reason {
    fn from(error: &io::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        let mut letters = text.chars();
        Self(letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect()))
    }
}

/// A path on one line: in quotes, with what cannot be printed escaped.
fn show(path: &Path) -> String {
    format!("{path:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_number_and_no_capital() {
        assert_eq!(Reason::from(io::Error::from_raw_os_error(2)).to_string(), "no such file or directory");
    }

    #[test]
    fn a_path_with_a_line_break_stays_on_one_line() {
        assert!(!Error::SourceMissing("a\nb".into()).to_string().contains('\n'));
    }
}
