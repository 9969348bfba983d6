//! A host directory as a file system for `lightfoot-vfs`.
//!
//! # What it is
//! [`HostFs`] shows a directory of the host: names, attributes and contents come from the host, and
//! changes are made there. The VFS answers from its caches; this crate answers the requests that
//! the caches cannot. A lookup is one system call and opens nothing; a budget limits the open
//! descriptors ([`HostOptions::max_fds`]).
//!
//! ```
//! use lightfoot_hostfs::{HostFs, HostOptions};
//!
//! let source = std::env::temp_dir();
//! let fs = HostFs::new(&source, &HostOptions::default())?;
//! let tree = vfs::Vfs::new(fs);
//! let entries = tree.context().open(vfs::Base::CWD, b"/", vfs::OpenFlags::DIRECTORY, 0)?.next_entries()?;
//! # let _ = entries;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Containment
//! The host never gets a path, only single names below the descriptor of a directory, and neither
//! `..` nor symbolic links (which the VFS follows within its own tree). If another program moves a
//! cached directory out of the source, this file system still has the directory open. The directory
//! stays visible until its name is looked up again, and nothing above it becomes visible.
//!
//! # Mount points
//! File systems that are mounted below the source are entered only with [`MountPoints::Cross`]. A
//! front end may show this file system on a mount point below the source itself (FUSE). It must
//! exclude the device of that mount by [`HostHandle::exclude_dev`]. Names on an excluded device fail
//! with `ELOOP` and are never opened. Detecting such a name needs no reply of the front end:
//! attributes are requested with `AT_STATX_DONT_SYNC`, which FUSE answers from its cache.
//!
//! # Identity
//! A file is identified by device, inode number, type and time of birth; see `identity.rs`.
//!
//! # Attributes
//! Attributes are the host's. After each change through this file system, the VFS requests them again
//! ([`vfs::Attributes::FileSystem`]). A change by a process of root is made with the caller's user and groups, so the host
//! decides by the present owner and mode, whatever the caches show: see `caller.rs`.
//!
//! # ACLs
//! See [`HostAcls`]. The host gives that ACL to a new file in a directory with a default ACL; the
//! umask does not apply.
//!
//! # Limitations
//! - Lookups, listings and opens have the rights of the process; changes have the caller's rights
//!   ([`Ownership`]). A host that does not trust root (NFS with `root_squash`) refuses access to
//!   files that their owners may use.
//! - Capabilities of callers other than root have no effect on the host: a caller that may make a change only by a
//!   capability (`CAP_DAC_OVERRIDE`, `CAP_FOWNER`, `CAP_CHOWN`) is refused.
//! - If another program puts a file in the place of one that is being removed, between two calls of
//!   this file system, the new file may be removed instead.
//! - If another program replaces a file while its name is cached, the next open fails once with `ESTALE`; the lookup
//!   after that finds the new file.
//! - Locks are the VFS's: other programs of the host do not see them.
//! - A drop of an open file loses the errors of `close(2)` on the host: [`vfs::OpenFile::flush`],
//!   which a mount calls, and [`vfs::OpenFile::sync`] return these errors.
//!
//! # Errors of the host
//! An error of the host reaches the caller unchanged, except:
//! - A call that a signal interrupts is repeated, unless it changes names or extended attributes:
//!   such a call fails with `EINTR`.
//! - Where descriptors are exhausted (`EMFILE`, `ENFILE`), this file system closes half of the
//!   descriptors that are not in use, and repeats the open once.
//! - A file that is not where it was fails with `ESTALE`; a walk looks its name up again.
//! - Where the host refuses the rights of a caller, a change fails with `EPERM`.
//!
//! After an error the host may have made a new file nevertheless, and after `EIO` or `EINTR` it may have removed or moved a
//! name: the names are looked up again.
//!
//! # Limits of the process
//! An open file keeps a descriptor. Users other than root and the user of the process share three
//! quarters of `RLIMIT_NOFILE` for open files. Each of these users can have half of the descriptors
//! that the others leave; a further open fails with `EMFILE`.
//!
//! A write beyond `RLIMIT_FSIZE` of the process raises `SIGXFSZ`, whose default action ends the process: a process that
//! serves other users must ignore that signal, or handle it. The write then fails with `EFBIG`.
//!
//! # Requirements
//! Linux 5.8 or later with `/proc` mounted; `openat2(2)` is used if the host has it.
//!
//! # Modules
//! Each module uses only modules of the lines above its own:
//! 1. `system` (system calls)
//! 2. `errno`, `options`, `caller` (with whose rights the host is changed), `identity` (nodes and
//!    attributes), `version` (of contents), `node` (the record of a file), `opens` (open files, in all and of each user)
//! 3. `host` (answers that need several calls), `calls` (calls that change the host), `table` (the
//!    records), `budget` (of descriptors), `closing` (of the descriptors of evicted inodes)
//! 4. `watches` (inotify), `settling` (files whose events may be own ones)
//! 5. `shared` (the state that all parts share)
//! 6. `descriptors` (from a record to a descriptor), `change` (a change by this file system)
//! 7. `attributes`, `create`, `data`, `events` (changes by other programs), `ids`, `listing`, `names`
//! 8. `handle`, `filesystem` (the trait)
//!
//! # How it is locked
//! See the modules: each table has its lock, and no lock is held during a call to the host.
//!
//! # Where it comes from
//! libfuse's `passthrough_hp`, NFS servers' file caches.

#![forbid(unsafe_code)]

mod attributes;
mod budget;
mod caller;
mod calls;
mod change;
mod closing;
mod counts;
mod create;
mod data;
mod descriptors;
mod errno;
mod events;
#[cfg(test)]
mod faults;
mod filesystem;
mod handle;
mod host;
mod identity;
mod ids;
mod listing;
mod names;
mod node;
mod opens;
mod options;
mod pieces;
mod settling;
mod shared;
mod system;
mod table;
mod version;
mod watches;

pub use filesystem::HostFs;
pub use handle::{HostHandle, HostStats};
pub use options::{AccessTimes, HostAcls, HostOptions, MountPoints, Ownership, Revalidate};
