//! What can go wrong, each as one sentence that names the thing and the way out.

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
