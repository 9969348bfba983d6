//! Standard output and standard error of a command.

use crate::command_error::CommandError;
use crate::escapes;
use fuse::message::Reason;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use thiserror::Error;
use vfs::Foreign;

/// Standard output cannot be written.
#[derive(Debug, Error)]
#[error("standard output: {0}")]
pub(crate) struct OutputError(Reason);

impl CommandError for OutputError {}

impl From<serde_json::Error> for OutputError {
    fn from(error: serde_json::Error) -> Self {
        Self(io::Error::from(error).into())
    }
}

/// Writes an error, or a note, as one line on standard error.
pub(crate) fn report(message: impl Display) {
    eprintln!("lightfoot: {}", Foreign::text(message));
}

/// Returns the value as a JSON document of several lines.
///
/// # Errors
/// If a value of it cannot be JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String, OutputError> {
    Ok(escapes::json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// Writes lines of text and flushes. A reader that closes the pipe (`lightfoot stats /mnt | head -1`) is not an error.
///
/// # Errors
/// If `out` cannot be written for another reason.
pub(crate) fn print(text: &str, out: &mut impl Write) -> Result<Reader, OutputError> {
    print_own(escapes::lines(text).as_bytes(), out)
}

/// As [`print`], for text that has no word of others.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_own(text: &[u8], out: &mut impl Write) -> Result<Reader, OutputError> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(OutputError(error.into())),
    }
}

/// Whether standard output still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// It has.
    Reads,
    /// The reader closed the pipe.
    Gone,
}
