//! Workspaces in the process of a mount: the forks, and the replies to requests about them.

mod protocol;

pub(crate) use protocol::{ChangeLine, ConflictLine, ForkLine, Reply, Request, Winner};

use crate::options;
use crate::source::Source;
use clap::Args;
use fuse::Ttls;
use fuse::message::Reason;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf, absolute};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};
use thiserror::Error;
use vfs::{Foreign, Vfs};
use workspaces::{
    Commit, CommitOptions, ForkLimits, ForkOptions, OnConflict, Recovered, UpperError, WorkspaceError, Workspaces,
};

/// The reply to a line that is not a request.
const UNKNOWN: &str = r#"{"error":"unknown request (use snapshot)"}"#;

/// The reply to a request whose thread has panicked.
const FAILED: &str = "the process of the mount failed (see its log)";

/// The time between two replies about the progress.
const TICK: Duration = Duration::from_millis(100);

/// The error of a mount without forks.
pub(crate) const NO_FORKS: &str = "the mount has no forks (mount the tree with --workspaces)";

/// Arguments of `lightfoot mount` about forks.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkspaceArguments {
    /// Show the source at MOUNTPOINT/base, read-only, and forks of it at MOUNTPOINT/w/NAME (see `lightfoot fork`)
    #[arg(long)]
    workspaces: bool,

    /// Keep the forks in the directory DIR: they are there again at the next mount, also after a crash (SOURCE must be a directory)
    #[arg(long, value_name = "DIR", requires = "workspaces")]
    upper: Option<PathBuf>,

    /// Note what programs read in the forks, for `lightfoot commit --reads`
    #[arg(long, requires = "workspaces")]
    reads: bool,

    /// The most bytes of contents that all forks together store, such as 8g or 25%; 0: no limit (default: half of the memory;
    /// with --upper, the space there)
    #[arg(long, value_name = "SIZE", requires = "workspaces", value_parser = size_of_memory)]
    forks_size: Option<u64>,
}

/// Why a tree cannot have forks.
#[derive(Debug, Error)]
pub(crate) enum ForksError {
    /// Inode numbers are only unique in one file system.
    #[error("forks need one file system (omit cross, and name one source)")]
    Several,

    /// Only a directory is the same at the next mount.
    #[error("--upper: the source is not a directory (omit --upper, or name a directory as the source)")]
    NotKept,

    /// The source shows the directory, or the forks would change it.
    #[error("--upper {}: is in the source (use a directory beside it)", Foreign::of(.0))]
    Inside(PathBuf),

    /// The directory for the forks cannot be used.
    #[error("--upper {0}")]
    Upper(UpperError),

    /// A commit was cut off, and can neither be completed nor undone.
    #[error("a commit to the source was cut off: {0} (look into .lightfoot-commit there)")]
    CutOff(WorkspaceError),

    /// The root directory cannot be read.
    #[error("no forks of the source: {0} (use a directory that you may read)")]
    Root(Reason),
}

/// The forks of a mount; none without `--workspaces`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forks {
    spaces: Option<Arc<Workspaces>>,
    /// The directory that commits change. Commits and recoveries of all processes lock it.
    directory: Option<PathBuf>,
    /// Commits of this process wait for each other.
    committing: Arc<Mutex<()>>,
}

impl WorkspaceArguments {
    /// Returns the tree that is mounted, and its forks.
    ///
    /// # Errors
    /// If the tree has several file systems, or its root directory cannot be read.
    pub(crate) fn over(&self, tree: Vfs, source: &Source) -> Result<(Vfs, Forks), ForksError> {
        if !self.workspaces {
            return Ok((tree, Forks::default()));
        }
        if source.sources().len() > 1 || source.directories().any(|directory| directory.is_crossed) {
            return Err(ForksError::Several);
        }
        let is_fixed = source.ttls().attr >= Ttls::LONG.attr && !source.reports_changes();
        let directory = source.directories().next().map(|directory| directory.path.to_path_buf());
        let forks = Forks::over(&tree, is_fixed, directory, self.upper.as_deref())?;
        if let Some(spaces) = &forks.spaces {
            if let Some(bytes) = self.forks_size {
                spaces.set_limit(if bytes == 0 { u64::MAX } else { bytes });
            }
            if self.reads {
                spaces.note_reads();
            }
        }
        let mounted = forks.tree().cloned().unwrap_or(tree);
        Ok((mounted, forks))
    }

    /// Returns whether the mount has forks.
    pub(crate) fn is_set(&self) -> bool {
        self.workspaces
    }
}

impl Forks {
    /// Returns forks of a tree: none, or those that the directory `upper` keeps. Completes or undoes a commit to the tree's directory
    /// that was cut off. `is_fixed`: no other program changes the tree.
    ///
    /// # Errors
    /// If the root directory cannot be read, that commit can neither be completed nor undone, or `upper` cannot keep forks.
    pub(crate) fn over(
        tree: &Vfs,
        is_fixed: bool,
        directory: Option<PathBuf>,
        upper: Option<&Path>,
    ) -> Result<Self, ForksError> {
        let spaces = Workspaces::over(tree.context(), is_fixed)
            .map_err(|errno| ForksError::Root(io::Error::from_raw_os_error(errno.raw()).into()))?;
        let mut forks = Self { spaces: Some(Arc::new(spaces)), directory, ..Self::default() };
        // The kept forks need the files of the commit at their places.
        forks.recover()?;
        if let Some(upper) = upper {
            check_beside(upper, forks.directory.as_deref().ok_or(ForksError::NotKept)?)?;
            let spaces = Workspaces::durable(tree.context(), is_fixed, upper).map_err(ForksError::Upper)?;
            for name in spaces.lost() {
                tracing::warn!(fork = %Foreign::of(&name), "{}", WorkspaceError::Lost(name.clone()));
            }
            forks.spaces = Some(Arc::new(spaces));
        }
        Ok(forks)
    }

    /// Returns the tree that shows the forks.
    pub(crate) fn tree(&self) -> Option<&Vfs> {
        self.spaces.as_ref().map(|spaces| spaces.tree())
    }

    /// Completes or undoes a commit to the source that was cut off, unless another process commits now.
    fn recover(&self) -> Result<(), ForksError> {
        let (Some(spaces), Ok(_one)) = (&self.spaces, self.lock()) else { return Ok(()) };
        match spaces.recover() {
            Ok(Recovered::Nothing) => {}
            Ok(Recovered::Completed) => tracing::warn!("a commit to the source that was cut off is complete now"),
            Ok(Recovered::Undone) => tracing::warn!("a commit to the source that was cut off was undone"),
            Err(error) => return Err(ForksError::CutOff(error)),
        }
        Ok(())
    }

    /// Locks the source for a commit, if it is a directory that has its path still.
    ///
    /// # Errors
    /// [`WorkspaceError::CutOff`]: another process has it locked.
    fn lock(&self) -> Result<Option<OwnedFd>, WorkspaceError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let Ok(opened) = open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else { return Ok(None) };
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(WorkspaceError::CutOff),
            _ => Ok(Some(opened)),
        }
    }

    /// Returns the reply to a line, which another process has sent, as a line of JSON. Calls `tick` with lines about the progress.
    pub(crate) fn answer(&self, line: &str, tick: &mut dyn FnMut(&str)) -> serde_json::Result<String> {
        let Ok(request) = serde_json::from_str::<Request>(line) else { return Ok(UNKNOWN.into()) };
        let is_shown = request.shows_progress();
        serde_json::to_string(&if is_shown { self.done_visibly(request, tick) } else { self.done(request) })
    }

    /// Does what a request names in a thread, and reports the progress meanwhile.
    fn done_visibly(&self, request: Request, tick: &mut dyn FnMut(&str)) -> Reply {
        let (end, ended) = channel();
        let again = request.clone();
        thread::scope(|scope| {
            let run = move || end.send(self.done(request));
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                return self.done(again);
            }
            loop {
                let (done, of) = self.spaces.as_ref().map_or((0, 0), |spaces| spaces.progress());
                tick(&(serde_json::to_string(&Reply::Progress { done, of }).unwrap_or_default() + "\n"));
                match ended.recv_timeout(TICK) {
                    Ok(reply) => return reply,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Reply::Refused { error: FAILED.into() },
                }
            }
        })
    }

    /// Does what a request names.
    pub(crate) fn done(&self, request: Request) -> Reply {
        let Some(spaces) = &self.spaces else { return Reply::Refused { error: NO_FORKS.into() } };
        done(self, spaces, request).unwrap_or_else(|error| Reply::Refused { error: error.to_string() })
    }
}

/// Checks that the directory of the forks is not in the source.
fn check_beside(upper: &Path, directory: &Path) -> Result<(), ForksError> {
    let above = upper.ancestors().find_map(|above| absolute(above).ok()?.canonicalize().ok());
    let is_inside =
        directory.canonicalize().is_ok_and(|directory| above.is_some_and(|above| above.starts_with(directory)));
    if is_inside { Err(ForksError::Inside(upper.into())) } else { Ok(()) }
}

/// Does what a request names.
///
/// # Errors
/// See [`WorkspaceError`].
fn done(forks: &Forks, spaces: &Workspaces, request: Request) -> Result<Reply, WorkspaceError> {
    Ok(match request {
        Request::Fork { from, name, bytes, inodes, read_only, origin } => {
            let usual = ForkLimits::default();
            let limits = ForkLimits { bytes: bytes.unwrap_or(usual.bytes), inodes: inodes.unwrap_or(usual.inodes) };
            spaces.fork_with(&from, &name, ForkOptions { limits, is_read_only: read_only, of_origin: origin })?;
            Reply::Done
        }
        Request::Diff { name, other } => {
            let changes = match other {
                Some(other) => spaces.changes_since(&name, &other)?,
                None => spaces.changes(&name)?,
            };
            Reply::Changes(changes.into_iter().map(ChangeLine::from).collect())
        }
        Request::Commit { name, check, conflicts, privileged, reads, .. } => {
            let conflicts = match conflicts {
                Winner::Refuse => OnConflict::Refuse,
                Winner::Mine => OnConflict::Mine,
                Winner::Theirs => OnConflict::Theirs,
            };
            let _alone = forks.committing.lock();
            let _one = if check { None } else { forks.lock()? };
            match spaces.commit(&name, CommitOptions { check_only: check, conflicts, privileged, reads })? {
                Commit::Done(changes) => Reply::Changes(changes.into_iter().map(ChangeLine::from).collect()),
                Commit::Conflicts(conflicts) => {
                    Reply::Conflicts(conflicts.into_iter().map(ConflictLine::from).collect())
                }
            }
        }
        Request::Rollback { name, to } => {
            spaces.roll_back(&name, to.as_deref())?;
            Reply::Done
        }
        Request::Discard { name, lazy, wait, .. } => {
            spaces.discard(&name, lazy)?;
            if wait {
                spaces.wait_until_freed();
            }
            Reply::Done
        }
        Request::List => Reply::Forks(fork_lines(spaces)),
    })
}

fn fork_lines(spaces: &Workspaces) -> Vec<ForkLine> {
    let now = SystemTime::now();
    let line = |fork: workspaces::ForkInfo| ForkLine {
        age_s: now.duration_since(fork.made).unwrap_or_default().as_secs(),
        changes: spaces.changes(&fork.name).map_or(0, |changes| changes.len() as u64),
        name: fork.name,
        parent: fork.parent,
        dir: fork.dir,
        bytes: fork.bytes,
        inodes: fork.inodes,
        open_files: fork.open_files,
    };
    spaces.list().into_iter().map(line).collect()
}

/// Returns a number with a suffix `k`, `m`, `g` or `t` of 1024.
///
/// # Errors
/// If it is another text.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    options::number(text).ok_or_else(|| "use a number such as 512m".into())
}

/// As [`size`]; with `%`, a part of the memory.
fn size_of_memory(text: &str) -> Result<u64, String> {
    options::size_of_memory(text).ok_or_else(|| "use a number such as 512m, or a part of the memory such as 25%".into())
}
