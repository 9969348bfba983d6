//! The process that becomes the command: it restores what `lightfoot try` has changed for itself, and ends with its parent.

use super::{TrialError, failed, namespace};
use clap::Args;
use rustix::fs::Mode;
use rustix::mount::mount_bind;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit, umask,
};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The name of the hidden command.
pub(crate) const NAME: &str = "try-run";

/// Arguments of the hidden command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Runner {
    /// The process with whose end the command ends.
    #[arg(long)]
    parent: i32,

    /// The umask of the command.
    #[arg(long)]
    umask: u32,

    /// The soft limit of open files. `None`: unlimited.
    #[arg(long)]
    files: Option<u64>,

    /// The directory that the command starts in.
    #[arg(long)]
    dir: PathBuf,

    /// A directory to mount over another, in a namespace of this process.
    #[arg(long, requires = "over")]
    show: Option<PathBuf>,

    /// The other.
    #[arg(long)]
    over: Option<PathBuf>,

    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// State of a process that its commands inherit.
pub(super) struct Inherited {
    umask: Mode,
    files: Option<u64>,
}

impl Inherited {
    /// Takes the state of this process, and gives it the state of a server of files: no umask, since the kernel applies the
    /// caller's, and as many open files as it may have.
    pub(super) fn take() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        Self { umask: umask(Mode::empty()), files: limit.current }
    }

    /// Starts this program as a [`Runner`]. `show`: a directory to mount over another.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(
        &self,
        dir: &Path,
        show: Option<(&Path, &Path)>,
        command: &[OsString],
    ) -> Result<Child, TrialError> {
        let mut runner = Command::new("/proc/self/exe");
        runner.arg0("lightfoot").arg(NAME).args(["--parent", &std::process::id().to_string()]);
        runner.args(["--umask", &self.umask.bits().to_string()]);
        runner.args(self.files.map(|files| format!("--files={files}"))).arg("--dir").arg(dir);
        if let Some((show, over)) = show {
            runner.arg("--show").arg(show).arg("--over").arg(over);
        }
        runner.arg("--").args(command).spawn().map_err(failed("start /proc/self/exe"))
    }
}

/// Becomes the command.
///
/// # Errors
/// If it cannot.
pub(crate) fn run(runner: &Runner) -> Result<(), TrialError> {
    if let (Some(show), Some(over)) = (&runner.show, &runner.over) {
        namespace::enter()?;
        mount_bind(show, over).map_err(io::Error::from).map_err(failed("mount the fork over the directory"))?;
    }
    // After a change of the namespace, which may undo it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from).map_err(failed("watch its parent"))?;
    if getppid() != Pid::from_raw(runner.parent) {
        return Err(TrialError::Ended(128 + 9));
    }
    umask(Mode::from_raw_mode(runner.umask));
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: runner.files, maximum });
    std::env::set_current_dir(&runner.dir).map_err(|error| TrialError::Directory {
        path: runner.dir.clone(),
        reason: error.into(),
        cure: "use a directory that you may search",
    })?;
    let (program, arguments) = runner.command.split_at(1.min(runner.command.len()));
    let program = program.first().cloned().unwrap_or_default();
    let error = Command::new(&program).args(arguments).exec();
    let (status, cure) = match error.kind() {
        io::ErrorKind::NotFound => (127, "install it, or name its path"),
        _ => (126, "name a program that you may run"),
    };
    Err(TrialError::CannotRun { command: program, reason: error.into(), cure, status })
}
