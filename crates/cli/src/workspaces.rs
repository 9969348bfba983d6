//! Workspaces: forks of the tree of a mount, made with `lightfoot mount --workspaces`.
//!
//! # What it is
//! `fork`, `diff`, `discard` and the list of forks send a [`Request`] as a line of JSON through the control socket of the mount, and
//! print its reply. [`crate::workspaces_server`] replies.

mod comparing;
mod merging;
mod place;
mod trial;

use crate::command_error::CommandError;
use crate::control::{self, ControlError};
use crate::escapes;
use crate::output::{OutputError, json, print, print_own};
use crate::workspaces_server::{ForkLine, Reply, Request, size};
use clap::{Args, Subcommand};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use comparing::CompareError;
use fuse::message::show;
use fuse::mountinfo::MountInfo;
use indicatif::{ProgressBar, ProgressStyle};
use place::{Place, write_back};
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use trial::{Runner, Trial, TrialError};
use vfs::Foreign;

/// How long a command waits for a reply: a commit of a large tree takes long.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a copy-on-write fork of a tree, and print its path
    ///
    /// The tree must be mounted with `lightfoot mount --workspaces`: MNT/base is the tree, MNT/w/NAME are its forks. A fork takes
    /// microseconds, whatever the size of the tree.
    Fork(Fork),

    /// Show the changes of a fork since it was made, or since another fork
    ///
    /// One line for each path: A added, M modified, D removed, R renamed (with the old path). The exit status is 0 without changes and
    /// 1 with changes.
    Diff(comparing::Diff),

    /// Make the changes of a fork changes of the tree that it was made from
    ///
    /// All or nothing. The changes of a fork of MNT/base are written into the source. Prints the changes as `lightfoot diff` does. If
    /// a file was changed on both sides, prints the conflicts, changes nothing, and has exit status 3.
    Commit(merging::Commit),

    /// Return a fork to its beginning, to its last commit, or to the state of another fork
    Rollback(merging::Rollback),

    /// Discard forks with their changes
    Discard(Discard),

    /// Run a command in a fork of a directory, show its changes, and ask whether to apply them
    ///
    /// The command sees the fork in the place of the directory, under the same paths; no other program sees it. It is not a
    /// sandbox: files outside of the directory are changed as usual. The exit status is the command's (128 + N if signal N ended
    /// it), 126 or 127 if it cannot be run, and 125 if lightfoot fails.
    Try(Trial),

    /// Become the command of `try`.
    #[command(name = trial::RUNNER, hide = true)]
    TryRun(Runner),
}

/// Arguments of `lightfoot fork`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Fork {
    /// The fork, or MNT/base; or a directory in it, which the new fork shows alone
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// The name of the new fork
    #[arg(value_name = "NAME")]
    name: String,

    /// Refuse all changes of it
    #[arg(long)]
    read_only: bool,

    /// The most bytes of its changes, such as 512m (default: 8g)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,

    /// The most files and directories that it may make, such as 100k (default: 4m)
    #[arg(long, value_name = "NUMBER", value_parser = size)]
    inodes: Option<u64>,
}

/// Arguments of `lightfoot discard`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Discard {
    /// The forks
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Also while programs use them: their files stay until they are closed
    #[arg(short, long)]
    lazy: bool,

    /// Return when the memory of the forks is free
    #[arg(long)]
    wait: bool,
}

/// Why a command about forks fails.
#[derive(Debug, Error)]
pub(crate) enum WorkspacesError {
    /// No mount of Lightfoot is there, or it does not reply.
    #[error(transparent)]
    Control(#[from] ControlError),

    /// The path is in a mount, but is not a fork.
    #[error("{}: not a fork (use {}/w/NAME)", show(.path), show(.mountpoint))]
    NotAFork { path: PathBuf, mountpoint: PathBuf },

    /// The process of the mount refuses.
    #[error("{}", Foreign::of(.0))]
    Refused(String),

    /// Two paths are in two mounts.
    #[error("{}: in another mount (name a fork of the same mount)", show(.0))]
    OtherMount(PathBuf),

    /// The fork has changes.
    #[error("the fork has changes")]
    Differs,

    /// A commit has conflicts, which were printed.
    #[error("the commit has conflicts")]
    Conflicts,

    /// The changes cannot be written in this form.
    #[error(transparent)]
    Compare(#[from] CompareError),

    /// A command in a fork fails.
    #[error(transparent)]
    Trial(#[from] TrialError),

    /// Standard output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl WorkspacesError {
    /// Returns the error of a reply that does not belong to the request.
    fn other_reply() -> Self {
        Self::Refused("the process of the mount sent another reply".into())
    }
}

impl CommandError for WorkspacesError {
    fn status(&self) -> u8 {
        match self {
            Self::Control(error) => error.status(),
            Self::Trial(error) => error.status(),
            Self::Compare(error) => error.status(),
            Self::NotAFork { .. } | Self::Refused(_) | Self::OtherMount(_) => 2,
            Self::Conflicts => 3,
            Self::Differs | Self::Output(_) => 1,
        }
    }

    fn is_reported(&self) -> bool {
        match self {
            Self::Trial(error) => error.is_reported(),
            error => matches!(error, Self::Differs | Self::Conflicts),
        }
    }
}

/// Runs a subcommand.
///
/// # Errors
/// See [`WorkspacesError`].
pub(crate) fn run(verb: &Verb, out: &mut impl Write) -> Result<(), WorkspacesError> {
    match verb {
        Verb::Fork(fork) => make(fork, out),
        Verb::Diff(diff) => comparing::run(diff, out),
        Verb::Commit(commit) => merging::commit(commit, out),
        Verb::Rollback(rollback) => merging::roll_back(rollback),
        Verb::Discard(discard) => discard.paths.iter().try_for_each(|path| end(path, discard)),
        Verb::Try(trial) => Ok(trial::run(trial)?),
        Verb::TryRun(runner) => Ok(trial::become_command(runner)?),
    }
}

/// Sends a request to the process of a mount.
fn exchange(mount: &MountInfo, request: &Request) -> Result<Reply, WorkspacesError> {
    let line = serde_json::to_string(request).map_err(OutputError::from)? + "\n";
    let mut bar = None;
    let is_last = |reply: &Reply| {
        if let Reply::Progress { done, of } = *reply {
            draw(&mut bar, done, of);
        }
        !matches!(reply, Reply::Progress { .. })
    };
    let reply = control::ask(mount, &line, PATIENCE, is_last);
    bar.iter().for_each(ProgressBar::finish_and_clear);
    match reply?.0 {
        Reply::Refused { error } => Err(WorkspacesError::Refused(error)),
        reply => Ok(reply),
    }
}

/// Returns whether a request shows its progress.
fn shows_progress() -> bool {
    std::io::stderr().is_terminal()
}

/// Draws how far a request is. `of`: 0 if the number of its parts is not known.
fn draw(bar: &mut Option<ProgressBar>, done: u64, of: u64) {
    let bar = bar.get_or_insert_with(ProgressBar::no_length);
    let template = if of == 0 { "{spinner} {elapsed}" } else { "{bar:40} {pos}/{len} files and steps, {elapsed}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_length(of);
    bar.set_position(done);
    bar.tick();
}

fn make(fork: &Fork, out: &mut impl Write) -> Result<(), WorkspacesError> {
    let place = Place::of(&fork.path)?;
    write_back(&place.mount.mountpoint);
    let from = place.directory()?;
    let &Fork { ref name, read_only, size: bytes, inodes, .. } = fork;
    exchange(&place.mount, &Request::Fork { from, name: name.clone(), bytes, inodes, read_only, origin: false })?;
    let path = place.mount.mountpoint.join("w").join(&fork.name);
    print(&format!("{}\n", show(&path)), out)?;
    Ok(())
}

/// Prints changes or conflicts.
fn print_all<T: Serialize + Display>(lines: &[T], is_json: bool, out: &mut impl Write) -> Result<(), WorkspacesError> {
    for line in lines {
        if is_json {
            let line = serde_json::to_string(line).map_err(OutputError::from)? + "\n";
            print_own(escapes::json(&line).as_bytes(), out)?;
        } else {
            print(&format!("{line}\n"), out)?;
        }
    }
    Ok(())
}

fn end(path: &Path, how: &Discard) -> Result<(), WorkspacesError> {
    let (place, progress) = (Place::of(path)?, how.wait && shows_progress());
    let name = place.fork()?;
    let root = place.mount.mountpoint.join("w").join(&name);
    exchange(&place.mount, &Request::Discard { name, lazy: how.lazy, wait: how.wait, progress })?;
    // The kernel forgets the files of the fork when it looks up the name, and the process of the mount frees them then.
    drop(root.symlink_metadata());
    Ok(())
}

/// Prints the forks of the mount at `path`: `lightfoot list MNT`.
///
/// # Errors
/// See [`WorkspacesError`].
pub(crate) fn list(path: &Path, is_json: bool, out: &mut impl Write) -> Result<(), WorkspacesError> {
    let Reply::Forks(forks) = exchange(&Place::of(path)?.mount, &Request::List)? else {
        return Err(WorkspacesError::other_reply());
    };
    let text = if is_json { json(&forks)? } else { table(&forks) };
    print(&text, out)?;
    Ok(())
}

/// Returns a table without lines around its cells, or a sentence.
fn table(forks: &[ForkLine]) -> String {
    if forks.is_empty() {
        return "no forks (make one with `lightfoot fork MNT/base NAME`)\n".into();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "PARENT", "AGE", "KIB", "INODES", "CHANGES", "OPEN", "DIRECTORY"]);
    // Only a fork of a directory has one.
    let has_directory = forks.iter().any(|fork| !fork.dir.is_empty());
    for fork in forks {
        let name = |name: &str| show(Path::new(name)).to_string();
        let numbers =
            [fork.bytes.div_ceil(1024), fork.inodes, fork.changes, fork.open_files].map(|number| number.to_string());
        let age = format!("{} s", fork.age_s);
        table.add_row([name(&fork.name), name(&fork.parent), age].into_iter().chain(numbers).chain([name(&fork.dir)]));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    if let Some(directories) = table.column_mut(7).filter(|_| !has_directory) {
        directories.set_constraint(ColumnConstraint::Hidden);
    }
    table.trim_fmt() + "\n"
}
