//! What can go wrong with a mount, each as one sentence that names the thing and the way out.

use crate::error::Reason;
use fuse::MountError;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no mount, or none that can be asked.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// It cannot be mounted.
    #[error(transparent)]
    Fuse(#[from] MountError),

    /// A word after `-o` that nobody knows.
    #[error("there is no option {word:?}{}; docs/mounting.md and `lightfoot mount --help` have them all", meant(.near))]
    UnknownWord {
        /// What was said.
        word: String,
        /// What could have been meant.
        near: Vec<&'static str>,
    },

    /// A word after `-o` with a value that it cannot have, or without one that it needs.
    #[error("the option {word:?} is not understood; say it as {example}")]
    BadValue {
        /// What was said.
        word: String,
        /// What could have been said.
        example: String,
    },

    /// `-o remount`.
    #[error("a mount of Lightfoot cannot be changed while it is there; unmount it and mount it anew")]
    Remount,

    /// The directory was to be shown on itself.
    #[error("{0:?} cannot be mounted on itself: nobody could reach what is below; choose another mount point")]
    OnItself(PathBuf),

    /// The mount would show itself.
    #[error(
        "the mount point {mountpoint:?} is in {source_dir:?}, which with `cross` would show the mount in itself without end; \
         choose another mount point, or leave out `cross`"
    )]
    InItself {
        /// Where it was to be mounted.
        mountpoint: PathBuf,
        /// What was to be mounted.
        source_dir: PathBuf,
    },

    /// Nothing is mounted there.
    #[error("{0:?} is no mount point; `findmnt -t fuse.lightfoot` lists the mounts of Lightfoot")]
    NoMount(PathBuf),

    /// Something else is mounted there.
    #[error("{path:?} is a mount of {kind}, not of Lightfoot; `umount {}` unmounts it", .path.display())]
    NotOurs {
        /// Where.
        path: PathBuf,
        /// Of what.
        kind: String,
    },

    /// Files are open.
    #[error(
        "{0:?} is in use (`fuser -vm` shows by whom); end that, or unmount it with --lazy, so that who uses it may end first"
    )]
    InUse(PathBuf),

    /// Somebody else mounted it.
    #[error("{path:?} was mounted by user {uid}; unmount it as that user or as root")]
    NotYours {
        /// Where.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },

    /// It cannot be unmounted.
    #[error("{path:?} cannot be unmounted ({reason}); `lightfoot unmount --lazy` takes it away at once")]
    Unmount {
        /// Where.
        path: PathBuf,
        /// What the kernel or the helper says.
        reason: Reason,
    },

    /// The process behind a mount does not answer.
    #[error(
        "the process behind {path:?} does not answer on {socket:?} ({reason}); ask as its owner or root, if it still runs"
    )]
    NoAnswer {
        /// The mount.
        path: PathBuf,
        /// Where it was asked.
        socket: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// Metrics cannot be served there.
    #[error(
        "metrics cannot be served on {address} ({reason}); say --metrics with a free address, such as 127.0.0.1:9180"
    )]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        reason: Reason,
    },

    /// There is no log.
    #[error("the log {path:?} cannot be written ({reason}); name a file that you may write to")]
    LogFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Reason,
    },

    /// A level that is none.
    #[error("{0:?} is no level of a log; say error, warn, info, debug, trace or off, or for parts: info,fuse=debug")]
    LogLevel(String),

    /// Signals cannot be waited for.
    #[error("signals cannot be waited for ({0}), so the mount could not end cleanly; nothing was mounted")]
    Signals(Reason),

    /// The process in the background cannot be started.
    #[error("no process for the mount can be started ({0}); mount without --daemon")]
    Spawn(Reason),

    /// The process in the background said why it could not.
    #[error("{sentence}")]
    Child {
        /// What it ended with.
        status: u8,
        /// Why.
        sentence: String,
    },

    /// The process in the background ended without a word.
    #[error("the process for the mount ended before it had mounted ({0}); mount without --daemon to see why")]
    ChildLost(String),

    /// What answers for the mount failed.
    #[error("the connection to the kernel failed ({0}); the mount has ended")]
    Server(Reason),

    /// A second signal came before files were closed.
    #[error("ended by a second signal; who still had files open has lost them")]
    Forced(u8),
}

impl Failure {
    /// The exit status: 2 for what the caller can mend, 1 for the rest; 128 and the signal after two.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Child { status, .. } => *status,
            Self::Forced(signal) => 128 + signal,
            Self::Fuse(MountError::Kernel { .. } | MountError::NoRoot(_) | MountError::Stale { .. }) => 1,
            Self::Signals(_) | Self::Spawn(_) | Self::ChildLost(_) | Self::Server(_) => 1,
            Self::Unmount { .. } | Self::NoAnswer { .. } => 1,
            _ => 2,
        }
    }
}

fn meant(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        near => format!(" (is {} meant?)", near.join(" or ")),
    }
}
