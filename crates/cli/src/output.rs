//! Standard output of a command.

use crate::command_error::CommandError;
use fuse::message::Reason;
use std::io::{self, Write};
use thiserror::Error;

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

/// Writes `text` and flushes. A reader that closes the pipe (`lightfoot stats /mnt | head -1`) is not an error.
///
/// # Errors
/// If `out` cannot be written for another reason.
pub(crate) fn print(text: &[u8], out: &mut impl Write) -> Result<Reader, OutputError> {
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
