//! Lightfoot through FUSE: mounts a tree of [`vfs`], so that any program can use it.
//!
//! # What it is
//! Two layers. The [`Session`] implements the operations of FUSE on a tree. It records the kernel's
//! state (nodes, the lookup count of each node, open handles) and does not depend on how requests
//! arrive. The transport receives requests through io_uring or from `/dev/fuse`. [`mount`] combines
//! both layers.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tree = vfs::Vfs::new(ramfs::RamFs::new());
//! let mounted = lightfoot_fuse::mount(&tree, "/mnt".as_ref(), &lightfoot_fuse::MountOptions::default())?;
//! mounted.wait()?; // until it is unmounted
//! # Ok(())
//! # }
//! ```
//!
//! # How it is locked
//! `nodes` and `handles` have sharded locks, which no thread holds during a call into the tree. A
//! separate thread sends notices to the kernel; a thread that serves a request never does.
//!
//! # Where it comes from
//! `Documentation/filesystems/fuse.rst` in Linux; libfuse's low-level interface.

#![forbid(unsafe_code)]

mod checkers;
mod cures;
mod handles;
pub mod message;
mod metrics;
mod mount;
pub mod mountinfo;
mod nodes;
mod notices;
mod options;
mod panics;
pub mod prometheus;
mod session;
mod transport;
mod transport_kind;

pub use checkers::{CheckedOptions, Checker, Refusal, Right, checker, default_checks, refusal, right};
pub use metrics::{Gauge, Metrics, NameStats, Op, OpStats, Snapshot};
pub use mount::{MountError, Mounted, check_options, mount, mount_part, remount};
pub use options::{Checks, MountOptions, SessionOptions, Shown, Ttls, Uring};
pub use session::{
    AttrReply, Caller, Entry, FileLock, Listed, LockAnswer, LockFamily, LockOwner, NameIn, NewMode, Opened, Part,
    ROOT_NODE, Serving, Session, Unlisted, User, Who,
};
pub use transport::{Channel, Next, Transport};
pub use transport_kind::{NoRing, TransportKind};
