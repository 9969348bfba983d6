//! A file of mounts: several sources in one tree.
//!
//! ```toml
//! [[mount]]
//! at = "/"
//! source = "ram:size=1g"
//!
//! [[mount]]
//! at = "/src"
//! source = "/home/x/src"      # a relative path starts from this file's directory
//! options = "ro,ttl=1s"
//! ```
//! Without a mount at `/` the root is an empty tree in memory. Mount points are created where the tree below is in memory;
//! in a directory of this machine they must exist.

use super::{Kind, Named, PlannedMount, Problem, SourceError, on_command_line};
use crate::options::{OptionError, Place, Settings};
use fuse::message::show;
use serde::Deserialize;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The longest file of mounts, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A place in a file of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    file: PathBuf,
    line: usize,
    key: Option<&'static str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", show(&self.file), self.line)?;
        self.key.map_or(Ok(()), |of| write!(f, ", {of}"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MountsFile {
    #[serde(default)]
    mount: Vec<Spanned<MountEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MountEntry {
    at: Spanned<String>,
    source: Spanned<String>,
    options: Option<Spanned<String>>,
}

/// A file with its text, to compute lines.
struct FileText<'a> {
    path: &'a Path,
    text: &'a str,
}

impl FileText<'_> {
    fn origin(&self, span: Range<usize>, key: Option<&'static str>) -> Origin {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        Origin { file: self.path.into(), line: before.matches('\n').count() + 1, key }
    }

    fn wrong(&self, span: Range<usize>, key: impl Into<Option<&'static str>>, problem: Problem) -> SourceError {
        SourceError { origin: Some(self.origin(span, key.into())), problem: Box::new(problem) }
    }
}

/// Returns the mounts of the file at `path`, each after those that it may be mounted on.
pub(super) fn read(path: &Path) -> Result<Vec<PlannedMount>, SourceError> {
    let unreadable = |reason| on_command_line(Problem::Unreadable { path: path.into(), reason });
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
        return Err(unreadable("longer than 1 MiB".into()));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(error.into()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8 text".into()))?;
    parse(&FileText { path, text: &text })
}

fn parse(text: &FileText<'_>) -> Result<Vec<PlannedMount>, SourceError> {
    let file: MountsFile = toml::from_str(text.text).map_err(|error| {
        let message = error.message().split('\n').collect::<Vec<_>>().join(", ");
        text.wrong(error.span().unwrap_or(0..0), None, Problem::Toml(message))
    })?;
    if file.mount.is_empty() {
        return Err(text.wrong(0..0, None, Problem::Toml("no [[mount]], with `at` and `source`".into())));
    }
    let mut mounts: Vec<PlannedMount> = Vec::new();
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
        mounts.push(PlannedMount { at: "/".into(), kind: Kind::Ram, settings: Settings::new(), origin: None });
    }
    // Parents before children; otherwise the file's order.
    mounts.sort_by_key(|mount| if mount.at == "/" { 0 } else { mount.at.matches('/').count() });
    Ok(mounts)
}

impl MountEntry {
    fn plan(self, text: &FileText<'_>) -> Result<PlannedMount, SourceError> {
        let (at_span, source_span) = (self.at.span(), self.source.span());
        let Some(at) = normalized(self.at.as_ref()) else {
            return Err(text.wrong(at_span, "at", Problem::BadMountPoint(self.at.into_inner())));
        };
        let in_source = |problem: Problem| text.wrong(source_span.clone(), "source", problem);
        let source = OsStr::new(self.source.as_ref());
        let from = text.path.parent().unwrap_or(Path::new("/"));
        let kind = match Named::of(source, from).map_err(in_source)? {
            Named::Kind(kind) => kind,
            Named::MountsFile(path) => return Err(in_source(Problem::Nested(path))),
        };
        let mut settings = Settings::new();
        kind.add_own_options(source, &mut settings).map_err(|error| in_source(error.into()))?;
        if let Some(options) = &self.options {
            let wrong = |error: OptionError| text.wrong(options.span(), "options", error.into());
            settings.add(options.as_ref(), Place::Source(kind.owner()), false).map_err(wrong)?;
        }
        Ok(PlannedMount { at, kind, settings, origin: Some(text.origin(at_span, Some("at"))) })
    }
}

/// Returns `at` as an absolute path without empty components and final slash; `None` if it is not
/// an absolute path, or has `.` or `..`.
fn normalized(at: &str) -> Option<String> {
    let names: Vec<&str> = at.strip_prefix('/')?.split('/').filter(|name| !name.is_empty()).collect();
    let is_normal = names.iter().all(|name| !matches!(*name, "." | "..") && !name.contains('\0'));
    is_normal.then(|| format!("/{}", names.join("/")))
}
