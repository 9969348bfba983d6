//! `lightfoot cat`: contents of files of a source.

use super::failure::Failure;
use super::{Opened, from_root};
use crate::source::SourceArguments;
use std::ffi::OsString;
use std::io::{self, Read, Write};

/// Bytes that are read at a time.
const BUFFER: usize = 128 << 10;

/// What `lightfoot cat` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// What to write, one after the other, as paths of SOURCE
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
}

/// Writes what `cat` asks for.
pub(super) fn run(cat: &Cat, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    for path in cat.paths.iter().map(from_root) {
        if let Err(failure) = write(opened, &path, &mut buffer, out)? {
            opened.troubles.tell(&failure);
        }
    }
    Ok(())
}

/// Writes one file. The outer error is the output's, the inner one the file's.
fn write(opened: &Opened, path: &[u8], buffer: &mut [u8], out: &mut impl Write) -> io::Result<Result<(), Failure>> {
    let failure = |error| opened.failure("read", path, error);
    // What is no regular file may keep who opens it waiting.
    let file = opened.context.metadata(path).and_then(|metadata| {
        let is_openable = metadata.is_file() || metadata.is_dir();
        if is_openable { opened.context.open(path) } else { Err(lightfoot::Errno::EINVAL.into()) }
    });
    let mut file = match file {
        Ok(file) => file,
        Err(error) => return Ok(Err(failure(error))),
    };
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(Ok(())),
            Ok(len) => out.write_all(&buffer[..len])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(failure(error))),
        }
    }
}
