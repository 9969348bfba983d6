//! Standard output.

use crate::error::Error;
use serde::Serialize;
use std::io::{self, Write};

/// Writes `text`. A reader that closed its end early is not an error.
pub(crate) fn write(out: &mut impl Write, text: &str) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Error::Output(error.into())),
    }
}

/// `report` as one JSON document.
pub(crate) fn json(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
