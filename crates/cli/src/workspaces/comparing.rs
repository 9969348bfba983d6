//! `lightfoot diff`: the changes of a fork, as a list, a summary, a patch or an archive.
//!
//! # What it is
//! The list comes from the process of the mount. For the other forms this process makes two read-only forks, of the old and of the
//! new state, reads the files that the list names ([`sides`]), and discards both forks.

mod layer;
mod patch;
mod sides;
mod stat;

use super::place::Place;
use super::{WorkspacesError, exchange, print_all, write_back};
use crate::command_error::CommandError;
use clap::Args;
use fuse::message::{Reason, show};
use rustix::termios::isatty;
use sides::Sides;
pub(super) use sides::{Server, listed};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Arguments of `lightfoot diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Diff {
    /// The fork
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Compare with this fork of the same mount, or with MNT/base (default: with the beginning of the fork)
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,

    #[command(flatten)]
    form: Form,
}

/// The form of the output; without one of these, a line for each path.
#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
struct Form {
    /// Print a JSON object for each change
    #[arg(long)]
    json: bool,

    /// Print the numbers of lines added to and removed from each file
    #[arg(long)]
    stat: bool,

    /// Print a patch for `git apply`: files, symbolic links and execute permissions
    #[arg(short, long)]
    patch: bool,

    /// Write a layer of an OCI image: a tar archive of what is new or changed, with `.wh.NAME` for what was removed
    #[arg(long)]
    tar: bool,
}

/// Why changes cannot be written.
#[derive(Debug, Error)]
pub(crate) enum CompareError {
    /// A file cannot be read.
    #[error("{}: {reason}", show(.path))]
    File { path: PathBuf, reason: Reason },

    /// A file does not fit into memory.
    #[error("{}: {bytes} bytes are too many for a patch (use --tar)", show(.path))]
    TooLarge { path: PathBuf, bytes: u64 },

    /// The name would be read as the removal of another.
    #[error("{}: a layer cannot have a name that begins with .wh. (use --patch)", show(.0))]
    Whiteout(PathBuf),

    /// An archive would disturb the terminal.
    #[error("--tar: standard output is a terminal (redirect it to a file)")]
    Terminal,

    /// A signal of this number arrived.
    #[error("ended by signal {0}")]
    Interrupted(u8),

    /// No signal can be received.
    #[error("cannot receive signals: {0}")]
    Signals(io::Error),

    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl CompareError {
    /// Returns the error of a file.
    fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File { path: path.into(), reason: error.into() }
    }
}

impl CommandError for CompareError {
    fn status(&self) -> u8 {
        if let Self::Interrupted(number) = self { 128 + number } else { 2 }
    }
}

/// Prints the changes of a fork.
///
/// # Errors
/// See [`WorkspacesError`].
pub(super) fn run(diff: &Diff, out: &mut impl Write) -> Result<(), WorkspacesError> {
    let place = Place::of(&diff.path)?;
    let (name, form) = (place.fork()?, &diff.form);
    let other = diff.other.as_ref().map(|other| place.beside(other)).transpose()?;
    if form.tar && isatty(io::stdout()) {
        return Err(CompareError::Terminal.into());
    }
    write_back(&place.mount.mountpoint);
    let request = |request: &_| exchange(&place.mount, request);
    let server = Server { mountpoint: &place.mount.mountpoint, request: &request };
    let has_changes = if form.stat || form.patch || form.tar {
        let sides = Sides::new(server, &name, other.as_deref())?;
        match written(form, &sides, &mut BufWriter::new(out)) {
            // A reader that closes the pipe is not an error.
            Err(CompareError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
        !sides.changes.is_empty()
    } else {
        let changes = listed(server, name, other)?;
        print_all(&changes, form.json, out)?;
        !changes.is_empty()
    };
    if has_changes { Err(WorkspacesError::Differs) } else { Ok(()) }
}

/// Writes the changes of a fork since its beginning as an archive: see [`layer`].
///
/// # Errors
/// As for [`run`].
pub(super) fn archive(server: Server<'_>, name: &str, out: impl Write) -> Result<(), WorkspacesError> {
    let mut out = BufWriter::new(out);
    layer::write(&Sides::new(server, name, None)?, &mut out)?;
    Ok(out.flush().map_err(CompareError::Output)?)
}

fn written(form: &Form, sides: &Sides<'_>, out: &mut impl Write) -> Result<(), CompareError> {
    if form.tar {
        layer::write(sides, &mut *out)?;
    } else if form.stat {
        stat::write(sides, out)?;
    } else {
        patch::write(sides, out)?;
    }
    Ok(out.flush()?)
}
