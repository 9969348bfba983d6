//! The errors of `lightfoot mount`.

use crate::command_error::CommandError;
use crate::control::ControlError;
use crate::logging::LogError;
use crate::options::OptionError;
use crate::signals::Interrupted;
use crate::source::SourceError;
use fuse::MountError;
use fuse::message::{Reason, show};
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;
use vfs::Foreign;

/// Why a tree is not mounted, or no longer.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// The source or an option cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// It cannot be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),

    /// The log cannot be written, or its level does not exist.
    #[error(transparent)]
    Log(#[from] LogError),

    /// The mount point cannot be created.
    #[error("{}: cannot create the mount point: {reason} (create it first, or use another)", show(.path))]
    Create { path: PathBuf, reason: Reason },

    /// The mount point is the source.
    #[error("{}: cannot mount a directory on itself (use another mount point)", show(.0))]
    OnItself(PathBuf),

    /// The mount point is shown in the mount.
    #[error(
        "{}: inside {}, so with `cross` the mount would contain itself (use another mount point, or omit cross)",
        show(.mountpoint),
        show(.directory)
    )]
    InItself { mountpoint: PathBuf, directory: PathBuf },

    /// An option does not exist.
    #[error(transparent)]
    Option(#[from] OptionError),

    /// The tree cannot have forks.
    #[error(transparent)]
    Forks(#[from] crate::workspaces_server::ForksError),

    /// The command found no mount of Lightfoot at the path, or the mount's process does not reply.
    #[error(transparent)]
    Control(#[from] ControlError),

    /// The flags of a mount cannot be changed.
    #[error("{}: cannot remount: {reason} ({cure})", show(.path))]
    Remount { path: PathBuf, reason: Reason, cure: &'static str },

    /// The options require `rw`, and the mount began with `ro`.
    #[error("{}: mounted with ro from the beginning, which remount does not change (unmount it and mount it again)", show(.0))]
    StaysReadOnly(PathBuf),

    /// Metrics cannot be served on this address.
    #[error("--metrics {address}: {reason} (use a free address, such as --metrics {free})")]
    Listen { address: String, reason: Reason, free: SocketAddr },

    /// Signals cannot be received.
    #[error("cannot receive signals: {0} (nothing was mounted, because nothing could unmount it)")]
    Signals(Reason),

    /// The process in the background cannot be started.
    #[error("cannot start a background process: {0} (mount without --daemon)")]
    Spawn(Reason),

    /// The process in the background reported an error.
    #[error("{}", Foreign::of(.message))]
    Child { status: u8, message: String },

    /// The process in the background ended without a report.
    #[error("the background process ended before it had mounted: {0} (mount without --daemon to see why)")]
    ChildLost(String),

    /// The transport failed.
    #[error("the connection to the kernel failed: {0} (the mount has ended)")]
    Server(Reason),

    /// A signal arrived before the mount.
    #[error("ended by signal {} before the mount", .0.0)]
    Interrupted(Interrupted),

    /// A second signal arrived before all files were closed.
    #[error("killed by a second signal; files still open are lost")]
    Killed(u8),

    /// This process runs in the background and has reported its error with this status.
    #[error("see the log")]
    Reported(u8),
}

impl CommandError for ServeError {
    fn status(&self) -> u8 {
        match self {
            Self::Child { status, .. } | Self::Reported(status) => *status,
            Self::Killed(signal) | Self::Interrupted(Interrupted(signal)) => 128 + signal,
            Self::Control(error) => error.status(),
            Self::Mount(MountError::Kernel { .. } | MountError::NoRing { .. } | MountError::NoRoot(_)) => 1,
            Self::Mount(MountError::Stale { .. }) => 1,
            Self::Signals(_) | Self::Spawn(_) | Self::ChildLost(_) | Self::Server(_) => 1,
            _ => 2,
        }
    }

    fn is_reported(&self) -> bool {
        matches!(self, Self::Reported(_))
    }
}
