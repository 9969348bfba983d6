//! SOURCE: the tree that a command line names.
//!
//! # What it is
//! A SOURCE has one of four forms: `ram:LIST`, a tree in memory; a directory of this machine;
//! `s3://BUCKET/PREFIX`, an object store; a TOML file that combines several of these into one tree.
//! [`Source::parse`] finds out which form it has; [`Source::open`] makes the tree.
//!
//! A directory whose name begins with `ram:` is written `./ram:x`.
//!
//! # What it is not
//! A mount: `lightfoot mount` mounts the tree.

mod bucket;
mod call_timeout;
mod kernel;
mod mounts_file;

pub(crate) use bucket::StoreHandle;

use crate::options::{OptionError, Owner, Place, Settings};
use fuse::message::{Reason, show};
use fuse::{Checks, Shown};
use hostfs::{AccessTimes, HostAcls, HostFs, HostHandle, HostOptions, Ownership};
use lightfoot::{MountFlags, RamFs};
use mounts_file::Origin;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use vfs::{Base, Bounded, Context, Errno, FileSystem, Foreign, Vfs};

/// The beginning of a SOURCE that is a tree in memory.
const RAM: &str = "ram:";

/// A tree to make.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: OsString,
    /// The mounts, each after the mount that it is mounted on; the first is the root.
    mounts: Vec<PlannedMount>,
}

/// A command line's source, and the mount settings of its options.
#[derive(Debug)]
pub(crate) struct SourceAndSettings {
    /// The tree to make.
    pub(crate) source: Source,
    /// Of the mount.
    pub(crate) settings: Settings,
}

/// One mount inside the tree.
#[derive(Clone, Debug)]
struct PlannedMount {
    /// Where, as an absolute path without a slash at its end.
    at: String,
    kind: Kind,
    settings: Settings,
    /// Where it was written, if not on the command line.
    origin: Option<Origin>,
}

/// Handles of the file systems in a tree that Lightfoot does not keep in memory.
#[derive(Default)]
pub(crate) struct Handles {
    /// Of the directories of this machine, in the order of [`Source::directories`].
    pub(crate) hosts: Vec<HostHandle>,
    /// Of the stores.
    pub(crate) stores: Vec<StoreHandle>,
}

/// The thing that a SOURCE names.
enum Named {
    Kind(Kind),
    /// A file of mounts, by its absolute path.
    MountsFile(PathBuf),
}

/// A source that can be mounted in a tree.
#[derive(Clone, Debug)]
enum Kind {
    /// A tree in memory.
    Ram,
    /// A directory, by its absolute path.
    Directory(PathBuf),
    /// An object store, by its URL.
    Objects(String),
}

/// Why there is no tree.
#[derive(Debug, Error)]
#[error("{}{problem}", origin.as_ref().map_or(String::new(), |origin| format!("{origin}: ")))]
pub(crate) struct SourceError {
    /// Where it was written, if not on the command line.
    origin: Option<Origin>,
    problem: Box<Problem>,
}

/// The defect of a source.
#[derive(Debug, Error)]
enum Problem {
    #[error("{}: no such directory or file (use a directory, a TOML file of mounts, s3://BUCKET/PREFIX, or {RAM} for memory)", show(.0))]
    Missing(PathBuf),

    #[error("{}: not a directory (use a directory, a TOML file of mounts, s3://BUCKET/PREFIX, or {RAM} for memory)", show(.0))]
    NotADirectory(PathBuf),

    #[error("{}: {reason} (use a directory that you may read)", show(.path))]
    Unusable { path: PathBuf, reason: Reason },

    #[error("{}: {} (docs/objects.md describes options and credentials)", Foreign::of(.url), Foreign::of(.reason))]
    Objects { url: String, reason: String },

    #[error("{0}")]
    Option(#[from] OptionError),

    #[error("{error}; each source has its own `options` in {}", show(.path))]
    OptionOfFile { error: OptionError, path: PathBuf },

    #[error("{}: cannot read the file of mounts: {reason}", show(.path))]
    Unreadable { path: PathBuf, reason: Reason },

    #[error("{} (docs/mounting.md describes the format)", Foreign::of(.0))]
    Toml(String),

    #[error("invalid mount point {:?} (use an absolute path without . and .., such as /src)", Foreign::of(.0))]
    BadMountPoint(String),

    #[error("two mounts at {:?}: one would hide the other (remove one)", Foreign::of(.0))]
    TwiceAt(String),

    #[error("{}: a file of mounts inside another (copy its mounts into this file)", show(.0))]
    Nested(PathBuf),

    #[error("no directory {:?} to mount on in {on}: {reason} (create it there, or use another mount point)", Foreign::of(.at))]
    NoMountPoint { at: String, on: String, reason: Reason },

    #[error("cannot mount at {:?}: {reason} (use another mount point)", Foreign::of(.at))]
    Mount { at: String, reason: Reason },
}

impl Source {
    /// Returns the tree that `source` names, with the lists of options that follow `-o`. With
    /// `is_sloppy`, unknown options there are ignored.
    ///
    /// # Errors
    /// If `source` does not exist, or an option cannot be used.
    pub(crate) fn parse(source: &OsStr, lists: &[String], is_sloppy: bool) -> Result<SourceAndSettings, SourceError> {
        let named = Named::of(source, Path::new("")).map_err(on_command_line)?;
        let mut settings = Settings::new();
        let owner = match &named {
            Named::Kind(kind) => {
                kind.add_own_options(source, &mut settings).map_err(on_command_line)?;
                Some(kind.owner())
            }
            Named::MountsFile(_) => None,
        };
        for list in lists {
            let added = settings.add(list, Place::CommandLine(owner), is_sloppy);
            added.map_err(|error| match (&named, error) {
                (Named::MountsFile(path), error @ OptionError::Misplaced { .. }) => {
                    on_command_line(Problem::OptionOfFile { error, path: path.clone() })
                }
                (_, error) => on_command_line(error),
            })?;
        }
        let mut source = match named {
            Named::Kind(kind) => {
                if matches!(kind, Kind::Objects(_)) {
                    settings.share_ttl();
                }
                let (name, settings) = (kind.name(), settings.clone());
                Self { name, mounts: vec![PlannedMount { at: "/".into(), kind, settings, origin: None }] }
            }
            Named::MountsFile(path) => Self { mounts: mounts_file::read(&path)?, name: path.into() },
        };
        if let Some(access_times) = settings.access_times {
            // The sources in a file of mounts have their own lists, which come before.
            source.mounts.iter_mut().for_each(|mount| mount.settings.set_access_times(access_times));
        }
        // A kernel that accesses the files itself waits without a deadline.
        if settings.mount.session.passthrough {
            source.mounts.iter_mut().for_each(|mount| _ = mount.settings.host.call_timeout.get_or_insert_default());
        }
        settings.mount.session.checks = settings.checks();
        let acls = acls_of(&settings);
        source.mounts.iter_mut().for_each(|mount| mount.settings.host.acls = Some(acls));
        // The host does not have owners and modes that are only shown, so it would refuse
        // operations that the shown owners and modes allow.
        if settings.mount.session.shown != Shown::default() {
            source.mounts.iter_mut().for_each(|mount| mount.settings.host.ownership = Some(Ownership::Daemon));
        }
        Ok(SourceAndSettings { source, settings })
    }

    /// Returns its name in a list of mounts: `ram`, or the absolute path of the directory or file.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Makes the tree. Its contexts have root's credentials. Adds to `handles`.
    ///
    /// # Errors
    /// If a directory cannot be used, or a mount point inside the tree does not exist.
    pub(crate) fn open(&self, handles: &mut Handles) -> Result<Vfs, SourceError> {
        let mut tree = None;
        for mount in &self.mounts {
            self.add(&mut tree, mount, handles)?;
        }
        let vfs = tree.unwrap_or_else(|| Vfs::new(RamFs::new()));
        let context = vfs.context();
        // At the end, because mount points are created in trees that may become read-only.
        for mount in self.mounts.iter().filter(|mount| mount.settings.flags != MountFlags::default()) {
            let flagged = context.remount(Base::CWD, mount.at.as_bytes(), mount.settings.flags);
            flagged.map_err(|errno| mount.cannot_mount(errno))?;
        }
        Ok(vfs)
    }

    /// Makes the tree of its root, or mounts one of the others in it.
    fn add(&self, tree: &mut Option<Vfs>, mount: &PlannedMount, handles: &mut Handles) -> Result<(), SourceError> {
        let below = self.mounts.iter().rev().find(|other| other.is_above(mount));
        if let (Some(tree), Some(PlannedMount { kind: Kind::Ram, at: above, .. })) = (&*tree, below) {
            make_dirs(&tree.context(), mount.at.as_bytes(), above.len()).map_err(|errno| mount.cannot_mount(errno))?;
        }
        let added = match &mount.kind {
            Kind::Ram => mount.add_to(tree, RamFs::with_options(&mount.settings.ram)),
            Kind::Directory(path) => {
                let host = mount.open_directory(path)?;
                handles.hosts.push(host.handle());
                match mount.call_timeout(path) {
                    Some(timeout) => mount.add_to(tree, Bounded::of(Box::new(host), timeout)),
                    None => mount.add_to(tree, host),
                }
            }
            Kind::Objects(url) => {
                let store = bucket::open(mount, url).map_err(|problem| mount.wrong(problem))?;
                handles.stores.push(StoreHandle::new(url, &store));
                mount.add_to(tree, store)
            }
        };
        added.map_err(|errno| match errno {
            Errno::ENOENT | Errno::ENOTDIR => {
                let on = below.map_or(String::new(), |below| show(Path::new(&below.kind.name())));
                mount.wrong(Problem::NoMountPoint { at: mount.at.clone(), on, reason: reason(errno) })
            }
            errno => mount.cannot_mount(errno),
        })
    }
}

/// Returns the use of the ACLs of directories: if the kernel checks permissions, it reads the ACLs
/// that it needs. Where the session checks, and root mounts, all callers are root, to whom no ACL
/// refuses anything.
fn acls_of(settings: &Settings) -> HostAcls {
    let is_roots = rustix::process::geteuid().is_root();
    match (settings.mount.session.acl, settings.mount.session.checks) {
        (false, _) => HostAcls::Refuse,
        (true, Checks::Own) if !is_roots => HostAcls::Apply,
        (true, _) => HostAcls::Store,
    }
}

/// Creates the directory at the absolute `path`, and missing ones above it, except for the first `len` bytes.
fn make_dirs(context: &Context, path: &[u8], len: usize) -> Result<(), Errno> {
    let ends = path.iter().enumerate().skip(len + 1).filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    for end in ends.chain([path.len()]) {
        match context.mkdir(Base::CWD, &path[..end], 0o755) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl PlannedMount {
    /// Returns whether `other` is mounted somewhere below this one.
    fn is_above(&self, other: &Self) -> bool {
        self.at != other.at && (self.at == "/" || Path::new(&other.at).starts_with(&self.at))
    }

    /// Makes a tree of `fs`, or mounts it in the one that exists.
    fn add_to(&self, tree: &mut Option<Vfs>, fs: impl FileSystem) -> Result<(), Errno> {
        let (at, budget) = (self.at.as_bytes(), self.settings.budget);
        match tree {
            None => *tree = Some(Vfs::with_budget(fs, budget)),
            Some(tree) => tree.context().mount_with(fs, Base::CWD, at, MountFlags::default(), budget)?,
        }
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> Result<HostFs, SourceError> {
        let (host, usual) = (&self.settings.host, HostOptions::default());
        let options = HostOptions {
            policy: host.policy.unwrap_or(usual.policy),
            mount_points: host.mount_points.unwrap_or(usual.mount_points),
            max_fds: host.max_fds.unwrap_or(usual.max_fds),
            watch: host.watch.unwrap_or(usual.watch),
            ownership: host.ownership.unwrap_or(usual.ownership),
            acls: host.acls.unwrap_or(usual.acls),
            read_only: self.settings.has(MountFlags::RDONLY),
            access_times: if self.settings.has(MountFlags::NOATIME) {
                AccessTimes::Keep
            } else if self.settings.has(MountFlags::NODIRATIME) {
                AccessTimes::NotOfDirectories
            } else {
                AccessTimes::Host
            },
        };
        HostFs::new(path, &options)
            .map_err(|error| self.wrong(Problem::Unusable { path: path.into(), reason: error.into() }))
    }

    /// Returns how long a call into the directory at `path` may take; `None`: without a limit.
    fn call_timeout(&self, path: &Path) -> Option<Duration> {
        let given = self.settings.host.call_timeout;
        given.map_or_else(|| call_timeout::default_at(path), |given| Some(given).filter(|given| !given.is_zero()))
    }

    fn wrong(&self, problem: Problem) -> SourceError {
        SourceError { origin: self.origin.clone(), problem: Box::new(problem) }
    }

    fn cannot_mount(&self, errno: Errno) -> SourceError {
        self.wrong(Problem::Mount { at: self.at.clone(), reason: reason(errno) })
    }
}

impl Named {
    /// Returns the thing that `source` names; relative paths start from `from`.
    fn of(source: &OsStr, from: &Path) -> Result<Self, Problem> {
        if source.as_bytes().starts_with(RAM.as_bytes()) {
            return Ok(Self::Kind(Kind::Ram));
        }
        if let Some(url) = source.to_str().filter(|source| source.starts_with(bucket::S3)) {
            bucket::check(url)?;
            return Ok(Self::Kind(Kind::Objects(url.into())));
        }
        let path = from.join(source);
        let unusable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Problem::Missing(path.clone()),
            _ => Problem::Unusable { path: path.clone(), reason: error.into() },
        };
        let metadata = fs::metadata(&path).map_err(unusable)?;
        // Absolute, because a process in the background changes its working directory.
        let absolute = fs::canonicalize(&path).map_err(unusable)?;
        if metadata.is_dir() {
            Ok(Self::Kind(Kind::Directory(absolute)))
        } else if metadata.is_file() {
            Ok(Self::MountsFile(absolute))
        } else {
            Err(Problem::NotADirectory(path))
        }
    }
}

impl Kind {
    /// Adds the options in `source` itself, which only a tree in memory has.
    fn add_own_options(&self, source: &OsStr, settings: &mut Settings) -> Result<(), OptionError> {
        let Some(list) = source.as_bytes().strip_prefix(RAM.as_bytes()) else { return Ok(()) };
        settings.add(&String::from_utf8_lossy(list), Place::Source(self.owner()), false)
    }

    fn owner(&self) -> Owner {
        match self {
            Self::Ram => Owner::Ram,
            Self::Directory(_) => Owner::Directory,
            Self::Objects(_) => Owner::Objects,
        }
    }

    fn name(&self) -> OsString {
        match self {
            Self::Ram => "ram".into(),
            Self::Directory(path) => path.into(),
            Self::Objects(url) => url.into(),
        }
    }
}

fn on_command_line(problem: impl Into<Problem>) -> SourceError {
    SourceError { origin: None, problem: Box::new(problem.into()) }
}

fn reason(errno: Errno) -> Reason {
    io::Error::from_raw_os_error(errno.raw()).into()
}
