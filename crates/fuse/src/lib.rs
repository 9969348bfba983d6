//! Lightfoot through FUSE: a tree of [`vfs`] becomes a mount that any program can use.
//!
//! # What it is
//! Two layers. The [`Session`] knows what the kernel knows (nodes, how often each was looked up, open handles) and answers
//! operations; it does not know how they arrive. The transport carries them over `/dev/fuse`. [`mount`] puts both together.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tree = vfs::Vfs::new(ramfs::RamFs::new());
//! let mounted = fuse::mount(&tree, "/mnt".as_ref(), &fuse::MountOptions::default())?;
//! mounted.wait()?; // until somebody unmounts it
//! # Ok(())
//! # }
//! ```
//!
//! # How it is locked
//! `nodes` and `handles` have locks in shards, held for no call into the tree. Notices to the kernel leave by a queue with a thread
//! of its own, never from a handler.
//!
//! # Where it comes from
//! `Documentation/filesystems/fuse.rst` of Linux; libfuse's low-level interface.

#![forbid(unsafe_code)]

mod handles;
mod metrics;
mod mount;
mod nodes;
mod notices;
mod options;
mod session;
mod transport;

pub use metrics::{Gauge, Metrics, Op, OpStats, Snapshot};
pub use mount::{MountError, Mounted, device_of, mount};
pub use options::{Checks, MountOptions, SessionOptions, Shown, Ttls};
pub use session::{Caller, Entry, FileLock, Listed, Opened, ROOT_NODE, Session};
