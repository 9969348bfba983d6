//! What is mounted where: one mount of a command line, or those of a TOML file.
//!
//! # What it is
//! ```toml
//! [[mount]]
//! at = "/"
//! source = "ram:size=1g"
//!
//! [[mount]]
//! at = "/src"
//! source = "/home/x/src"      # relative paths start from this file's directory
//! options = "ro,ttl=1s"
//! ```
//! Without a mount at `/` the root is an empty tree in memory. Directories to mount on are made where the mount below is
//! in memory; in a directory of the host they must be there.

use super::host::HostWords;
use super::words::Mounted;
use super::{Problem, SourceError};
use lightfoot::RamOptions;
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The longest file of mounts, in bytes.
const LONGEST: u64 = 1 << 20;

/// One mount, as it is to be made.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Where, as an absolute path without a slash at its end.
    pub(super) at: String,
    pub(super) kind: Kind,
    pub(super) mounted: Mounted,
    /// Where it was said.
    pub(super) place: Option<Place>,
}

/// What is mounted.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A tree in memory.
    Ram(RamOptions, Mounted),
    /// A directory of the host.
    Host(PathBuf, HostWords, Mounted),
    /// What a file says.
    File(PathBuf),
}

/// Where something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    file: PathBuf,
    line: usize,
    key: Option<&'static str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, line {}", self.file, self.line)?;
        self.key.map_or(Ok(()), |key| write!(f, ", {key}"))
    }
}

impl Kind {
    pub(super) fn name(&self) -> OsString {
        match self {
            Self::Ram(..) => "ram".into(),
            Self::Host(path, ..) | Self::File(path) => path.into(),
        }
    }

    pub(super) fn mounted(&self) -> Mounted {
        match self {
            Self::Ram(_, mounted) | Self::Host(_, _, mounted) => *mounted,
            Self::File(_) => Mounted::default(),
        }
    }
}

impl Planned {
    /// Whether `other` is mounted somewhere below this one.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        self.at != other.at && (self.at == "/" || Path::new(&other.at).starts_with(&self.at))
    }

    pub(super) fn wrong(&self, problem: Problem) -> SourceError {
        SourceError { place: self.place.clone(), problem }
    }

    pub(super) fn unusable(&self, path: &Path, error: io::Error) -> SourceError {
        self.wrong(Problem::Unusable { path: path.into(), reason: error.into() })
    }
}

/// A file of mounts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    mount: Vec<Spanned<Entry>>,
}

/// One of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    at: Spanned<String>,
    source: Spanned<String>,
    options: Option<Spanned<String>>,
}

/// A file with its text, to say where something is.
struct Text<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Text<'_> {
    fn place(&self, span: Range<usize>, key: Option<&'static str>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        Place { file: self.path.into(), line: before.matches('\n').count() + 1, key }
    }

    fn wrong(&self, span: Range<usize>, key: &'static str, problem: Problem) -> SourceError {
        SourceError { place: Some(self.place(span, Some(key))), problem }
    }
}

/// The mounts that the file at `path` names, each after those that it may be mounted on.
pub(super) fn read(path: &Path) -> Result<Vec<Planned>, SourceError> {
    let unreadable = |reason| SourceError { place: None, problem: Problem::Unreadable(path.into(), reason) };
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LONGEST) {
        return Err(unreadable("it is longer than a file of mounts can be".into()));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(error.into()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is no text in UTF-8".into()))?;
    parse(&Text { path, text: &text })
}

fn parse(text: &Text<'_>) -> Result<Vec<Planned>, SourceError> {
    let file: File = toml::from_str(text.text).map_err(|error| {
        let message = error.message().split('\n').collect::<Vec<_>>().join(", ");
        let span = error.span().unwrap_or(0..0);
        SourceError { place: Some(text.place(span, None)), problem: Problem::Toml(message) }
    })?;
    if file.mount.is_empty() {
        let problem = Problem::Toml("it names no mount; begin with [[mount]], at and source".into());
        return Err(SourceError { place: Some(text.place(0..0, None)), problem });
    }
    let mut mounts: Vec<Planned> = Vec::new();
    for entry in file.mount {
        let entry = entry.into_inner();
        let span = entry.at.span();
        let planned = entry.plan(text)?;
        if mounts.iter().any(|other| other.at == planned.at) {
            return Err(text.wrong(span, "at", Problem::TwiceAt(planned.at)));
        }
        mounts.push(planned);
    }
    if mounts.iter().all(|mount| mount.at != "/") {
        let kind = Kind::of(OsStr::new(super::RAM), Path::new(""), &[]).map_err(super::at_command_line)?;
        let mounted = kind.mounted();
        mounts.push(Planned { at: "/".into(), kind, mounted, place: None });
    }
    // What lies above comes before what lies below; else they stay in the file's order.
    mounts.sort_by_key(|mount| if mount.at == "/" { 0 } else { mount.at.matches('/').count() });
    Ok(mounts)
}

impl Entry {
    fn plan(self, text: &Text<'_>) -> Result<Planned, SourceError> {
        let at_span = self.at.span();
        let Some(at) = place_in_tree(self.at.as_ref()) else {
            return Err(text.wrong(at_span, "at", Problem::BadPlace(self.at.into_inner())));
        };
        let options: Vec<&str> = self.options.iter().map(|options| options.as_ref().as_str()).collect();
        let from = text.path.parent().unwrap_or(Path::new("/"));
        let source_span = self.source.span();
        let kind = Kind::of(OsStr::new(self.source.as_ref()), from, &options).map_err(|problem| {
            // Words stand in both keys.
            let options = self.options.as_ref().filter(|options| match &problem {
                Problem::Word(error) => error.is_in(options.as_ref()),
                _ => false,
            });
            match options {
                Some(options) => text.wrong(options.span(), "options", problem),
                None => text.wrong(source_span.clone(), "source", problem),
            }
        })?;
        if let Kind::File(path) = kind {
            return Err(text.wrong(source_span, "source", Problem::Nested(path)));
        }
        let mounted = kind.mounted();
        Ok(Planned { at, kind, mounted, place: Some(text.place(at_span, Some("at"))) })
    }
}

/// An absolute path without empty components and slash at its end; `None` if it is no such path.
fn place_in_tree(at: &str) -> Option<String> {
    let names: Vec<&str> = at.strip_prefix('/')?.split('/').filter(|name| !name.is_empty()).collect();
    let is_place = names.iter().all(|name| !matches!(*name, "." | "..") && !name.contains('\0'));
    is_place.then(|| format!("/{}", names.join("/")))
}
