//! `lightfoot unmount`: ends mounts of Lightfoot, and waits until their processes have written everything and ended.
//!
//! Root unmounts with `umount2(2)`, other users with `fusermount3`. Mounts of other file systems are refused.

use crate::command_error::CommandError;
use crate::control::{self, ControlError};
use crate::output::report;
use clap::Args;
use fuse::message::{Reason, shell_word, show};
use fuse::mountinfo::MountInfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::geteuid;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use thiserror::Error;

/// How long the process of a mount may take to end, in seconds.
const TIMEOUT_S: i64 = 10;

/// Arguments of `lightfoot unmount`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Unmount {
    /// Mounts of Lightfoot
    #[arg(value_name = "MOUNTPOINT", required = true)]
    mountpoints: Vec<PathBuf>,

    /// Detach them now, although files are open; their processes end when these are closed
    #[arg(short, long)]
    lazy: bool,
}

/// Why it is still mounted.
#[derive(Debug, Error)]
pub(crate) enum UnmountError {
    /// It was not found.
    #[error(transparent)]
    Control(#[from] ControlError),

    /// Files are open.
    #[error("{}: in use (close its files, which `fuser -vm {}` lists, or use --lazy)", show(.0), shell_word(.0))]
    InUse(PathBuf),

    /// Another user mounted it.
    #[error("{}: mounted by user {uid} (unmount it as that user or as root)", show(.path))]
    OtherUser { path: PathBuf, uid: u32 },

    /// The helper does not exist.
    #[error("{}: fusermount3 not found, which other users than root need (install the package fuse3)", show(.0))]
    NoHelper(PathBuf),

    /// The kernel or the helper refused.
    #[error("{}: cannot unmount: {reason} (`lightfoot unmount --lazy` detaches it)", show(.path))]
    Refused { path: PathBuf, reason: Reason },
}

impl CommandError for UnmountError {
    fn status(&self) -> u8 {
        match self {
            Self::Control(error) => error.status(),
            Self::InUse(_) | Self::OtherUser { .. } | Self::NoHelper(_) => 2,
            Self::Refused { .. } => 1,
        }
    }
}

/// Unmounts each mount point in turn, also after a failure, and waits for the ends of the processes that served them.
///
/// # Errors
/// The last failure. The others were printed.
pub(crate) fn run(unmount: &Unmount) -> Result<(), UnmountError> {
    let mut result = Ok(());
    for mountpoint in &unmount.mountpoints {
        if let Err(failed) = unmount_one(mountpoint, unmount.lazy)
            && let Err(before) = std::mem::replace(&mut result, Err(failed))
        {
            report(before);
        }
    }
    result
}

fn unmount_one(mountpoint: &Path, is_lazy: bool) -> Result<(), UnmountError> {
    let mount = control::find(mountpoint)?;
    // Before the unmount, after which the process removes its socket. A process that does not accept cannot delay the unmount.
    let process = control::process_of(&mount, Duration::ZERO);
    let flags = if is_lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    let unmounted =
        mount.pin().and_then(|pinned| rustix::mount::unmount(pinned.path(), flags | UnmountFlags::NOFOLLOW));
    match unmounted {
        Ok(()) => {}
        Err(Errno::PERM) if mount.uid != geteuid().as_raw() => {
            return Err(UnmountError::OtherUser { path: mount.mountpoint, uid: mount.uid });
        }
        Err(Errno::PERM) => unmount_by_helper(&mount, is_lazy)?,
        Err(Errno::BUSY) => return Err(UnmountError::InUse(mount.mountpoint)),
        Err(errno) => {
            return Err(UnmountError::Refused { path: mount.mountpoint, reason: io::Error::from(errno).into() });
        }
    }
    if is_lazy {
        return Ok(());
    }
    let process = match process {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => control::process_of(&mount, control::TIMEOUT),
        process => process,
    };
    // If the command cannot find the process, it does not wait.
    if process.is_ok_and(|process| !has_ended(&process)) {
        report(format_args!("{}: unmounted; its process is still running and ends by itself", show(&mount.mountpoint)));
    }
    Ok(())
}

fn unmount_by_helper(mount: &MountInfo, is_lazy: bool) -> Result<(), UnmountError> {
    let refused = |reason: Reason| UnmountError::Refused { path: mount.mountpoint.clone(), reason };
    let mut helper = Command::new("fusermount3");
    helper.arg("-u").args(is_lazy.then_some("-z")).arg("--").arg(&mount.mountpoint);
    let output = helper.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => UnmountError::NoHelper(mount.mountpoint.clone()),
        _ => refused(error.into()),
    })?;
    let message = String::from_utf8_lossy(&output.stderr);
    match message.trim() {
        _ if output.status.success() => Ok(()),
        message if message.contains("busy") => Err(UnmountError::InUse(mount.mountpoint.clone())),
        message => Err(refused(message.trim_start_matches("fusermount3: ").into())),
    }
}

/// Waits for the end of the process; whether it ended in time.
fn has_ended(process: &OwnedFd) -> bool {
    let timeout = Timespec { tv_sec: TIMEOUT_S, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)).is_ok_and(|ended| ended > 0)
}
