//! The transport of a mount's requests and replies, and the reason why it is not another.
//!
//! # Where it comes from
//! `fs/fuse/dev_uring.c` in Linux; `kernel.io_uring_disabled` in `Documentation/admin-guide/sysctl/kernel.rst`.

use fusedev::{Device, Ring, Waker};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The transport of a mount's requests and replies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// io_uring (Linux 6.14).
    Ring {
        /// Queues of the kernel: the machine's possible processors.
        queues: usize,
        /// Threads that serve them.
        threads: usize,
    },
    /// `read(2)` and `write(2)` of `/dev/fuse`.
    Device {
        /// Threads that do.
        threads: usize,
        /// Why not io_uring.
        reason: NoRing,
    },
}

impl TransportKind {
    /// Returns why it is not io_uring.
    #[must_use]
    pub const fn fallback(&self) -> Option<&NoRing> {
        match self {
            Self::Ring { .. } => None,
            Self::Device { reason, .. } => Some(reason),
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { queues, threads } => write!(f, "io_uring, {threads} threads for {queues} queues"),
            Self::Device { threads, reason } => write!(f, "/dev/fuse, {threads} threads; no io_uring: {reason}"),
        }
    }
}

/// Why requests do not come through io_uring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRing {
    /// [`Uring::Never`](crate::Uring::Never).
    #[error("the option no_uring")]
    NotWanted,
    /// The kernel is older than Linux 6.14, or `/sys/module/fuse/parameters/enable_uring` is `N`.
    #[error("the kernel does not offer it")]
    NotOffered,
    /// The sysctl `kernel.io_uring_disabled`.
    #[error("kernel.io_uring_disabled forbids it")]
    Disabled,
    /// `EPERM` or `ENOSYS`: most likely a filter of system calls, as containers have.
    #[error("a filter of system calls forbids it")]
    Filtered,
    /// `ENOMEM`.
    #[error("too little memory, or locked memory")]
    NoMemory,
    /// Another error of the system.
    #[error("{0}")]
    Failed(String),
}

impl NoRing {
    /// Returns why the system refuses rings to this process; `None`: it does not. Whether the
    /// kernel offers them for FUSE is another question.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let make = || {
            let nothing = Device::from(OwnedFd::from(File::open("/dev/null")?));
            Ring::new(Arc::new(nothing), Arc::new(Waker::new()?), 0)
        };
        make().err().map(|error| Self::of(&error))
    }

    /// Returns one word for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotWanted => "no_uring",
            Self::NotOffered => "not_offered",
            Self::Disabled => "disabled",
            Self::Filtered => "filtered",
            Self::NoMemory => "no_memory",
            Self::Failed(_) => "failed",
        }
    }

    /// Returns why a ring could not be made, or its slots could not be registered.
    pub(crate) fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::PERM) if is_disabled() => Self::Disabled,
            Some(Errno::PERM | Errno::NOSYS) => Self::Filtered,
            Some(Errno::NOMEM) => Self::NoMemory,
            // The administrator has turned it off since INIT.
            Some(Errno::OPNOTSUPP) => Self::NotOffered,
            _ => Self::Failed(error.to_string()),
        }
    }

    /// Returns whether it is unexpected where the kernel offers io_uring.
    pub(crate) fn is_surprise(&self) -> bool {
        !matches!(self, Self::NotWanted | Self::NotOffered)
    }
}

/// Returns whether the sysctl forbids rings to all, or to those without the right.
fn is_disabled() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|value| matches!(value.trim(), "1" | "2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_system_has_its_reason() {
        let reason = |errno: Errno| NoRing::of(&errno.into());
        assert_eq!(reason(Errno::NOSYS), NoRing::Filtered);
        assert_eq!(reason(Errno::PERM), if is_disabled() { NoRing::Disabled } else { NoRing::Filtered });
        assert_eq!(reason(Errno::NOMEM), NoRing::NoMemory);
        assert_eq!(reason(Errno::OPNOTSUPP), NoRing::NotOffered);
        assert!(matches!(reason(Errno::MFILE), NoRing::Failed(_)));
    }
}
