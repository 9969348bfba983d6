//! A mount in the background: the command starts itself anew, and waits until it is told that the mount is there.
//!
//! # What it is
//! [`start`] is the parent's part. The child is told by a flag, and says by its standard output how it went: `mounted`, or
//! the status it ends with and a sentence. Then it lets go of terminal, directory and standard streams ([`Report`]).
//!
//! # What it is not
//! A fork: the process that serves has threads, which a fork would not take along.

use super::failure::Failure;
use crate::error::Error;
use rustix::process::{chdir, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The flag that makes a child of it.
const FLAG: &str = "--reporting";

/// What the child says when the mount is there.
const MOUNTED: &str = "mounted";

/// Starts the command anew with `arguments`, of which the first is `mount`, and waits until it has mounted.
///
/// # Errors
/// What the child says, with its status.
pub(super) fn start(arguments: &[std::ffi::OsString]) -> Result<(), Failure> {
    let own = env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(own.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    let (subcommand, rest) = arguments.split_at(1.min(arguments.len()));
    command.arg0("lightfoot").args(subcommand).arg(FLAG).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Failure::Spawn(error.into()))?;
    let mut said = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_string(&mut said);
    }
    if said.trim_end() == MOUNTED {
        return Ok(());
    }
    let ended = child.wait().map_err(|error| Failure::Spawn(error.into()))?;
    match said.split_once(' ').map(|(status, sentence)| (status.parse(), sentence.trim_end())) {
        Some((Ok(status), sentence)) => Err(Failure::Child { status, sentence: sentence.into() }),
        _ => Err(Failure::ChildLost(ended.to_string())),
    }
}

/// The child's part.
pub(super) struct Report {
    is_done: bool,
}

impl Report {
    /// In a session of its own, so that the terminal's signals are for others.
    pub(super) fn begin() -> Self {
        // It cannot fail but in a leader of a group, which nobody is who was just started.
        let _ = setsid();
        Self { is_done: false }
    }

    /// Says that the mount is there, and lets go of what the parent had.
    pub(super) fn mounted(&mut self) -> io::Result<()> {
        self.is_done = true;
        chdir("/")?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        // Before it is said: who reads it to its end is not kept waiting.
        dup2_stderr(&null)?;
        let mut out = io::stdout();
        // Nobody may listen any more; the mount is there all the same.
        let _ = out.write_all(format!("{MOUNTED}\n").as_bytes()).and_then(|()| out.flush());
        dup2_stdout(&null)?;
        Ok(())
    }

    /// Says what `result` is, if the mount never was there; else it is for the log.
    pub(super) fn ended(&self, result: Result<(), Error>) -> Result<(), Error> {
        let Err(error) = result else { return Ok(()) };
        if self.is_done {
            tracing::error!("{error}");
        } else {
            let _ = writeln!(io::stdout(), "{} {error}", error.status());
        }
        Err(Error::Told(error.status()))
    }
}
