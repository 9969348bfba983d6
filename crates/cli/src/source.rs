//! SOURCE: what a tree is made of, as it is said on the command line.
//!
//! # What it is
//! One of three: `ram:` and words, for a tree in memory; a directory of the host; a TOML file that names several of
//! these and where in one tree they are. [`Source::parse`] finds out which, without touching what it names;
//! [`Source::open`] makes the tree.
//!
//! A directory whose name begins with `ram:` is said as `./ram:x`.
//!
//! # What it is not
//! Mounted anywhere: that is `lightfoot mount`'s to do with the tree.
//!
//! # Where it comes from
//! The words are those of `mount(8)` and `tmpfs(5)`, where these have such words.

mod host;
mod kernel;
mod plan;
mod words;

pub(crate) use plan::Place;
pub(crate) use words::{duration, size};

use crate::error::Reason;
use host::HostWords;
use hostfs::{HostFs, HostHandle};
use lightfoot::{MountFlags, RamFs};
use plan::{Kind, Planned};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use vfs::{Base, Errno, Vfs};
use words::WordError;

/// What begins a tree in memory.
const RAM: &str = "ram:";

/// Which tree, for every command that has one.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SourceArguments {
    /// ram:[WORD,WORD..], a directory of this machine, or a TOML file that names several mounts
    ///
    /// A file of mounts says of each where it is (at), what (source) and how (options):
    ///
    ///     [[mount]]
    ///     at = "/"
    ///     source = "ram:size=1g"
    ///
    ///     [[mount]]
    ///     at = "/src"
    ///     source = "/home/x/src"
    ///     options = "ro,ttl=1s"
    ///
    /// Relative paths in it start from its own directory. Without a mount at / the root is in memory. Directories to
    /// mount on are made in memory; in a directory of this machine they must be there. A directory whose name begins
    /// with ram: is said as ./ram:x.
    #[arg(value_name = "SOURCE", value_hint = clap::ValueHint::AnyPath, verbatim_doc_comment)]
    pub(crate) source: OsString,

    /// How SOURCE is used; may be given more than once
    #[command(flatten)]
    pub(crate) words: WordArguments,
}

/// How a source is used.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct WordArguments {
    /// Options of SOURCE, such as ro or ttl=1s; for a directory: ttl=TIME, always, exclusive, watch, nowatch, cross,
    /// stay, fds=N; in memory: size=BYTES, nr_inodes=N, mode=OCTAL, uid=N, gid=N; for both: ro, nosuid, nodev, noexec,
    /// cache=BYTES
    #[arg(short = 'o', long = "options", value_name = "WORD,WORD..")]
    pub(crate) options: Vec<String>,
}

/// What a tree is made of.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: OsString,
    /// Each after what it is mounted on; the first is the root.
    mounts: Vec<Planned>,
}

/// Why there is no tree.
#[derive(Debug, Error)]
#[error("{}{problem}", place.as_ref().map_or(String::new(), |place| format!("{place}: ")))]
pub(crate) struct SourceError {
    /// Where it was said, if not on the command line.
    place: Option<Place>,
    problem: Problem,
}

/// What is wrong.
#[derive(Debug, Error)]
enum Problem {
    #[error("there is no {0:?}; name a directory, a TOML file of mounts, or {RAM} for a tree in memory")]
    Missing(PathBuf),

    #[error("{0:?} is no directory; name a directory, a TOML file of mounts, or {RAM} for a tree in memory")]
    NoDirectory(PathBuf),

    #[error("{path:?} cannot be used ({reason}); name a directory that you may read")]
    Unusable { path: PathBuf, reason: Reason },

    #[error("{0}")]
    Word(#[from] WordError),

    #[error("options are given for each [[mount]] of {0:?}, not beside it; write them there")]
    OptionsOfFile(PathBuf),

    #[error("{0:?} cannot be read ({1}); name a file that you may read")]
    Unreadable(PathBuf, Reason),

    #[error("{0}; see lightfoot ls --help for what such a file says")]
    Toml(String),

    #[error("{0:?} is no place in a tree; say an absolute path without . and .., such as /src")]
    BadPlace(String),

    #[error("two mounts at {0:?} would hide one another; leave one out")]
    TwiceAt(String),

    #[error("{0:?} names mounts itself; name a directory or {RAM} here, and put its mounts into this file")]
    Nested(PathBuf),

    #[error("there is no directory {at:?} to mount on in {on:?} ({reason}); make it there, or choose another place")]
    NoMountPoint { at: String, on: String, reason: Reason },

    #[error("nothing can be mounted at {at:?} ({reason}); choose another place")]
    Mount { at: String, reason: Reason },
}

impl Source {
    /// What `source` names, used as `options` say, each of which may have several words.
    ///
    /// # Errors
    /// If it names nothing of the kind, or a word is none.
    pub(crate) fn parse(source: &OsStr, options: &[String]) -> Result<Self, SourceError> {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let kind = Kind::of(source, Path::new(""), &options).map_err(at_command_line)?;
        let name = kind.name();
        if let Kind::File(path) = kind {
            if options.iter().any(|words| !words.is_empty()) {
                return Err(at_command_line(Problem::OptionsOfFile(path)));
            }
            return Ok(Self { name, mounts: plan::read(&path)? });
        }
        let mounted = kind.mounted();
        Ok(Self { name, mounts: vec![Planned { at: "/".into(), kind, mounted, place: None }] })
    }

    /// What a table of mounts calls it: `ram`, or the absolute path of the directory or file.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Makes the tree. Its contexts are root's until they are given other credentials.
    ///
    /// # Errors
    /// If a directory is not there or may not be used, or a mount point is not there.
    pub(crate) fn open(&self) -> Result<Vfs, SourceError> {
        self.open_telling(&mut |_| {})
    }

    /// The same; `tell` is given a handle of each directory of the host, for statistics and for devices that are not to
    /// be entered.
    ///
    /// # Errors
    /// As for [`Source::open`].
    pub(crate) fn open_telling(&self, tell: &mut dyn FnMut(HostHandle)) -> Result<Vfs, SourceError> {
        let mut open_host = |mount: &Planned, path: &Path, words: &HostWords| {
            let fs = words.open(path).map_err(|error| mount.unusable(path, error))?;
            tell(fs.handle());
            Ok(fs)
        };
        let Some((root, others)) = self.mounts.split_first() else {
            return Ok(Vfs::new(RamFs::new()));
        };
        let budget = root.mounted.budget;
        let vfs = match &root.kind {
            Kind::Ram(options, _) => Vfs::with_budget(RamFs::with_options(options), budget),
            Kind::Host(path, words, _) => Vfs::with_budget(open_host(root, path, words)?, budget),
            Kind::File(path) => return Err(root.wrong(Problem::Nested(path.clone()))),
        };
        let context = vfs.context();
        for mount in others {
            self.attach(&context, mount, &mut open_host)?;
        }
        // At the end, because mount points are made in what may be read-only.
        for mount in self.mounts.iter().filter(|mount| mount.mounted.flags != MountFlags::default()) {
            let flagged = context.remount(Base::CWD, mount.at.as_bytes(), mount.mounted.flags);
            flagged.map_err(|errno| mount.wrong(Problem::Mount { at: mount.at.clone(), reason: reason(errno) }))?;
        }
        Ok(vfs)
    }

    /// Mounts one that is not the root.
    fn attach(
        &self,
        context: &vfs::Context,
        mount: &Planned,
        open_host: &mut dyn FnMut(&Planned, &Path, &HostWords) -> Result<HostFs, SourceError>,
    ) -> Result<(), SourceError> {
        let at = mount.at.as_bytes();
        let below = self.mounts.iter().rev().find(|other| other.is_above(mount));
        if let Some(Planned { kind: Kind::Ram(..), at: above, .. }) = below {
            make_dirs(context, at, above.len())
                .map_err(|errno| mount.wrong(Problem::Mount { at: mount.at.clone(), reason: reason(errno) }))?;
        }
        let (flags, budget) = (MountFlags::default(), mount.mounted.budget);
        let attached = match &mount.kind {
            Kind::Ram(options, _) => context.mount_with(RamFs::with_options(options), Base::CWD, at, flags, budget),
            Kind::Host(path, words, _) => {
                context.mount_with(open_host(mount, path, words)?, Base::CWD, at, flags, budget)
            }
            Kind::File(path) => return Err(mount.wrong(Problem::Nested(path.clone()))),
        };
        attached.map_err(|errno| {
            let (at, on) = (mount.at.clone(), below.map_or(OsString::new(), |below| below.kind.name()));
            mount.wrong(match errno {
                Errno::ENOENT | Errno::ENOTDIR => {
                    Problem::NoMountPoint { at, on: on.to_string_lossy().into(), reason: reason(errno) }
                }
                errno => Problem::Mount { at, reason: reason(errno) },
            })
        })
    }
}

/// Makes the directory at the absolute `path`, and those above it that are missing, but for the first `len` bytes of it.
fn make_dirs(context: &vfs::Context, path: &[u8], len: usize) -> Result<(), Errno> {
    let ends = path.iter().enumerate().skip(len + 1).filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    for end in ends.chain([path.len()]) {
        match context.mkdir(Base::CWD, &path[..end], 0o755) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Kind {
    /// What `source` names; relative paths start from `from`.
    fn of(source: &OsStr, from: &Path, options: &[&str]) -> Result<Self, Problem> {
        if let Some(words) = source.as_bytes().strip_prefix(RAM.as_bytes()) {
            let words = String::from_utf8_lossy(words);
            let texts: Vec<&str> = [&*words].into_iter().chain(options.iter().copied()).collect();
            let (ram, mounted) = words::of_ram(&texts, own_ids())?;
            return Ok(Self::Ram(ram, mounted));
        }
        let path = from.join(source);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Problem::Missing(path)),
            Err(error) => return Err(Problem::Unusable { path, reason: error.into() }),
        };
        // So that it stays what it is when the process goes elsewhere.
        let path = match fs::canonicalize(&path) {
            Ok(path) => path,
            Err(error) => return Err(Problem::Unusable { path, reason: error.into() }),
        };
        if metadata.is_dir() {
            let (host, mounted) = words::of_host(options)?;
            Ok(Self::Host(path, host, mounted))
        } else if metadata.is_file() {
            Ok(Self::File(path))
        } else {
            Err(Problem::NoDirectory(path))
        }
    }
}

/// To whom a tree in memory belongs: who runs this, as with a tmpfs.
fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn at_command_line(problem: Problem) -> SourceError {
    SourceError { place: None, problem }
}

fn reason(errno: Errno) -> Reason {
    std::io::Error::from_raw_os_error(errno.raw()).into()
}
