//! `lightfoot try`: runs a command in a fork of a directory, shows the changes, and applies, keeps or drops them.
//!
//! # What it is
//! The fork is mounted over the directory in a new mount namespace, so paths are unchanged for the command, and no other
//! program sees the fork. If a mount with forks serves the directory, it has the fork. Otherwise this process enters the namespace
//! and serves the fork itself ([`forked`]). In both cases it starts itself again as [`runner`], which becomes the command.
//! Whatever ends this process ends the command and the namespace, and with it the mount.
//!
//! # What it is not
//! A sandbox: the command changes files outside of the directory as usual.
//!
//! # Where it comes from
//! `user_namespaces(7)`, `mount_namespaces(7)`; the exit statuses of `env(1)` and `timeout(1)`.

mod forked;
mod namespace;
mod question;
mod runner;

pub(crate) use runner::{NAME as RUNNER, Runner, run as become_command};

use super::WorkspacesError;
use crate::command_error::CommandError;
use crate::output::{print, report};
use crate::signals::{Signals, Woken};
use crate::source::SourceError;
use crate::workspaces_server::{ChangeLine, ForksError};
use clap::Args;
use forked::Forked;
use fuse::MountError;
use fuse::message::{Reason, shell_word, show};
use question::{Answer, Terminal};
use rustix::fs::{Access, access};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thiserror::Error;
use vfs::Foreign;

/// Directories that this process uses while it mounts.
const OWN: [&str; 2] = ["/proc", "/dev"];

/// Arguments of `lightfoot try`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Trial {
    /// The directory to fork
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    #[command(flatten)]
    after: After,

    /// Also apply set-id bits, devices, and other owners than the user
    #[arg(long, conflicts_with_all = ["keep", "drop"])]
    privileged: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The use of the changes; without one of these, a question on the terminal.
#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
struct After {
    /// Apply the changes if the command succeeds, otherwise drop them
    #[arg(long)]
    apply: bool,

    /// Keep the changes as the fork NAME of the mount that has DIR as its tree
    #[arg(long, value_name = "NAME")]
    keep: Option<String>,

    /// Drop the changes
    #[arg(long)]
    drop: bool,
}

impl After {
    fn has_question(&self) -> bool {
        !self.apply && !self.drop && self.keep.is_none()
    }
}

/// Why the command does not run, or has a status that this process returns.
#[derive(Debug, Error)]
pub(crate) enum TrialError {
    /// The directory cannot be used.
    #[error("{}: {reason} ({cure})", show(.path))]
    Directory { path: PathBuf, reason: Reason, cure: &'static str },

    /// Nobody can answer the question.
    #[error("no terminal to ask on: {0} (name one of --apply, --keep NAME, --drop)")]
    NoTerminal(Reason),

    /// A fork of this process ends with it.
    #[error("--keep {}: no mount has forks of {} (first run `lightfoot mount {} MNT --workspaces --daemon`)", Foreign::of(.name), show(.dir), shell_word(.dir))]
    CannotKeep { name: String, dir: PathBuf },

    /// The namespace cannot be made.
    #[error("{what}: {reason} ({cure})")]
    Namespace { what: &'static str, reason: Reason, cure: String },

    /// The directory cannot be the base of a fork.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// The directory cannot be read.
    #[error(transparent)]
    Forks(#[from] ForksError),

    /// The fork cannot be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),

    /// The fork cannot be made, compared or discarded.
    #[error(transparent)]
    Workspaces(#[from] Box<WorkspacesError>),

    /// A system call failed.
    #[error("cannot {what}: {reason}")]
    System { what: &'static str, reason: Reason },

    /// The program of the command cannot be run.
    #[error("{}: {reason} ({cure})", Foreign::of(.command))]
    CannotRun { command: OsString, reason: Reason, cure: &'static str, status: u8 },

    /// The changes cannot be applied, for reasons that were printed.
    #[error(
        "the changes are not applied: the directory has changed meanwhile, or a privilege is missing (drop them, or use --privileged)"
    )]
    NotApplied,

    /// The command ended with this status.
    #[error("the command ended with status {0}")]
    Ended(u8),
}

impl CommandError for TrialError {
    /// Returns 125 if `lightfoot` fails, so that scripts can tell it from the command.
    fn status(&self) -> u8 {
        match self {
            Self::Ended(status) | Self::CannotRun { status, .. } => *status,
            _ => 125,
        }
    }

    fn is_reported(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

impl From<WorkspacesError> for TrialError {
    fn from(error: WorkspacesError) -> Self {
        Box::new(error).into()
    }
}

/// Returns the error of a system call.
fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TrialError {
    move |error| TrialError::System { what, reason: error.into() }
}

/// How the command ended.
struct End {
    status: u8,
    /// A signal requested the end of this process meanwhile.
    signal: Option<u8>,
}

/// Runs the command in a fork, and applies, keeps or drops its changes.
///
/// # Errors
/// See [`TrialError`].
pub(crate) fn run(trial: &Trial) -> Result<(), TrialError> {
    let dir = directory(&trial.dir)?;
    let terminal = trial.after.has_question().then(Terminal::open).transpose()?;
    note_git(&dir);
    let mut signals = Signals::listen().map_err(failed("receive signals"))?;
    // The terminal sends these to the command.
    signal_hook::flag::register(SIGQUIT, Arc::new(AtomicBool::new(false))).map_err(failed("receive signals"))?;
    let forked = Forked::new(&dir, trial.after.keep.as_deref())?;
    let child = forked.start(&working_dir(&dir), &trial.command).inspect_err(|_| forked.discard())?;
    let end = wait(child, &mut signals).inspect_err(|_| forked.discard())?;
    forked.detach();
    if let Some(signal) = end.signal {
        forked.discard();
        return Err(TrialError::Ended(128 + signal));
    }
    let changes = forked.changes()?;
    let _ = print(&listing(&changes), &mut io::stderr());
    match terminal.filter(|_| !changes.is_empty()) {
        Some(terminal) => ask(&terminal, &forked, trial.privileged)?,
        None => finish(&trial.after, &forked, end.status, trial.privileged)?,
    }
    if end.status == 0 { Ok(()) } else { Err(TrialError::Ended(end.status)) }
}

/// Returns the absolute path of the directory to fork, without symbolic links.
///
/// # Errors
/// If it cannot be forked.
fn directory(given: &Path) -> Result<PathBuf, TrialError> {
    let wrong = |reason: Reason, cure| TrialError::Directory { path: given.into(), reason, cure };
    let dir = given.canonicalize().map_err(|error| wrong(error.into(), "use a directory"))?;
    if !dir.is_dir() {
        return Err(wrong("not a directory".into(), "use a directory"));
    }
    if dir.parent().is_none() {
        return Err(wrong("nothing can be mounted over the root directory".into(), "use a directory below it"));
    }
    // A mount over these would wait for this process, which reads them to serve it.
    if OWN.iter().any(|own| dir.starts_with(own)) {
        return Err(wrong("this program needs it to mount".into(), "use another directory"));
    }
    let is_usable = access(&dir, Access::READ_OK | Access::EXEC_OK);
    is_usable.map_err(|errno| wrong(io::Error::from(errno).into(), "use a directory that you may read"))?;
    Ok(dir)
}

/// Returns the directory that the command starts in: the working directory if it is in the fork.
fn working_dir(dir: &Path) -> PathBuf {
    std::env::current_dir().ok().filter(|at| at.starts_with(dir)).unwrap_or_else(|| dir.into())
}

/// Notes that a fork of a part of a git tree is not a repository.
fn note_git(dir: &Path) {
    let has_git = |at: &&Path| at.join(".git").exists();
    if let Some(top) = dir.ancestors().find(has_git).filter(|top| *top != dir) {
        let (below, top) = (show(dir), show(top));
        report(format_args!(
            "{}: without the .git of {}, so git finds no repository (name {} to fork all of it)",
            below, top, top
        ));
    }
}

/// Waits for the end of the command. The terminal sends its signals to the command, too; others are passed on. A second one ends
/// the wait, and the end of this process then kills the command.
fn wait(mut child: Child, signals: &mut Signals) -> Result<End, TrialError> {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from);
    let process = process.map_err(failed("wait for the command"))?;
    let mut signal = None;
    loop {
        match signals.wait(process.as_fd()).map_err(failed("wait for the command"))? {
            Woken::Ended => break,
            Woken::Signal(number) if i32::from(number) == SIGINT => {}
            Woken::Signal(number) if signal.is_some() => return Err(TrialError::Ended(128 + number)),
            Woken::Signal(number) => {
                signal = Some(number);
                let passed = Signal::from_named_raw(number.into()).unwrap_or(Signal::TERM);
                let _ = pidfd_send_signal(&process, passed);
            }
        }
    }
    let ended = child.wait().map_err(failed("wait for the command"))?;
    let code = ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap_or(125);
    Ok(End { status: u8::try_from(code).unwrap_or(125), signal })
}

/// Does what the options name. Without an option, nothing has changed.
fn finish(after: &After, forked: &Forked, status: u8, is_privileged: bool) -> Result<(), TrialError> {
    if after.keep.is_some() {
        forked.keep();
        return Ok(());
    }
    let applied = match (after.apply, status) {
        (true, 0) => forked.apply(is_privileged),
        (true, _) => {
            report("the command failed, so its changes are dropped");
            Ok(())
        }
        (false, _) => Ok(()),
    };
    if applied.is_ok() {
        forked.discard();
    } else if forked.can_keep() {
        forked.keep();
    } else if let Err(error) = forked.save() {
        report(error);
    }
    applied
}

/// Repeats the question until the answer can be done.
fn ask(terminal: &Terminal, forked: &Forked, is_privileged: bool) -> Result<(), TrialError> {
    loop {
        match terminal.ask(forked.can_keep())? {
            Answer::Apply => match forked.apply(is_privileged) {
                Ok(()) => forked.discard(),
                Err(error) => {
                    report(error);
                    continue;
                }
            },
            Answer::Keep => forked.keep(),
            Answer::Drop => forked.discard(),
        }
        return Ok(());
    }
}

/// Returns a line for each change, as `lightfoot diff` prints it, and a summary. A new directory is one line with everything in it.
fn listing(changes: &[ChangeLine]) -> String {
    let mut below: BTreeMap<&Path, usize> =
        changes.iter().filter(|line| line.kind == 'A').map(|line| (&*line.of.path, 0)).collect();
    let (mut lines, mut counts) = (Vec::new(), [0_usize; 4]);
    for change in changes {
        counts["AMDR".find(change.kind).unwrap_or(1)] += 1;
        let new = change.of.path.ancestors().skip(1).filter(|dir| change.kind == 'A' && below.contains_key(dir)).last();
        match new.and_then(|dir| below.get_mut(dir)) {
            Some(count) => *count += 1,
            None => lines.push(change),
        }
    }
    let mut text = String::new();
    for line in lines {
        text += &line.to_string();
        let count = below.get(&*line.of.path).filter(|count| line.kind == 'A' && **count > 0);
        text += &count.map_or("\n".into(), |count| format!(" (and {count} below it)\n"));
    }
    let kinds = counts.into_iter().zip(["added", "modified", "removed", "renamed"]).filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
    text + &match changes.len() {
        0 => "no changes\n".into(),
        1 => format!("1 change: {}\n", kinds.join(", ")),
        sum => format!("{sum} changes: {}\n", kinds.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workspaces::{Change, ChangeKind};

    #[test]
    fn a_new_directory_is_one_line_and_the_summary_counts_everything() {
        let line = |kind, path: &str| ChangeLine::from(Change { path: path.into(), kind });
        let changes = [
            line(ChangeKind::Modified, "a"),
            line(ChangeKind::Added, "new"),
            line(ChangeKind::Added, "new-file"),
            line(ChangeKind::Added, "new/dir"),
            line(ChangeKind::Added, "new/dir/f"),
            line(ChangeKind::Removed, "old\u{1b}"),
            line(ChangeKind::Renamed(b"x".into()), "new/y"),
        ];
        let expected = "M a\nA new (and 2 below it)\nA new-file\nD \"old\\u{1b}\"\nR x -> new/y\n\
            7 changes: 4 added, 1 modified, 1 removed, 1 renamed\n";
        assert_eq!(listing(&changes), expected);
        assert_eq!(listing(&changes[..1]), "M a\n1 change: 1 modified\n");
        assert_eq!(listing(&[]), "no changes\n");
    }
}
