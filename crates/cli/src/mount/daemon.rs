//! A mount in the background: the command starts itself again as a child, and waits until the mount is ready.
//!
//! # What it is
//! [`start`] is the parent's part. A hidden flag makes a process the child, which reports on standard output: `mounted`, or
//! its exit status and a message. Then it leaves terminal, working directory and standard streams ([`Report`]).
//!
//! # What it is not
//! A fork: the process has threads, and a fork copies only one of them.

use super::error::ServeError;
use crate::command_error::CommandError;
use rustix::process::{chdir, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The flag that makes a process the child.
const FLAG: &str = "--reporting";

/// The child's report when the mount is ready.
const MOUNTED: &str = "mounted";

/// Starts the command again with `arguments`, of which the first is `mount`, and waits until it has mounted.
///
/// # Errors
/// As for the child, with its message and status.
pub(super) fn start(arguments: &[std::ffi::OsString]) -> Result<(), ServeError> {
    let own = env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(own.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    let (subcommand, rest) = arguments.split_at(1.min(arguments.len()));
    command.arg0("lightfoot").args(subcommand).arg(FLAG).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| ServeError::Spawn(error.into()))?;
    let mut report = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_string(&mut report);
    }
    if report.trim_end() == MOUNTED {
        return Ok(());
    }
    let ended = child.wait().map_err(|error| ServeError::Spawn(error.into()))?;
    match report.split_once(' ').map(|(status, message)| (status.parse(), message.trim_end())) {
        Some((Ok(status), message)) => Err(ServeError::Child { status, message: message.into() }),
        _ => Err(ServeError::ChildLost(ended.to_string())),
    }
}

/// The child's part.
pub(super) struct Report {
    is_done: bool,
}

impl Report {
    /// Starts a new session, so that the terminal's signals do not reach this process.
    pub(super) fn begin() -> Self {
        // Fails only for a process-group leader; a child that was just spawned is not one.
        let _ = setsid();
        Self { is_done: false }
    }

    /// Reports that the mount is ready, and drops the inherited state.
    pub(super) fn mounted(&mut self) -> io::Result<()> {
        self.is_done = true;
        chdir("/")?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        // Before the report, so that a reader of the parent's standard error does not wait for this process.
        dup2_stderr(&null)?;
        let mut out = io::stdout();
        // If the parent has exited, the mount still continues.
        let _ = out.write_all(format!("{MOUNTED}\n").as_bytes()).and_then(|()| out.flush());
        dup2_stdout(&null)?;
        Ok(())
    }

    /// Reports an error to the parent; once the parent has exited, logs it.
    pub(super) fn ended(&self, result: Result<(), ServeError>) -> Result<(), ServeError> {
        let Err(error) = result else { return Ok(()) };
        if self.is_done {
            tracing::error!("{error}");
        } else {
            let _ = writeln!(io::stdout(), "{} {error}", error.status());
        }
        Err(ServeError::Reported(error.status()))
    }
}
