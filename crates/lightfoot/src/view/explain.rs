//! Why a walk failed: which component, in which directory.
//!
//! # What it is
//! An error is only a number, like a system call's. For a message with more detail a program calls
//! [`View::explain`](crate::View::explain) afterwards: the call repeats the walk with one component
//! more each time, until the walk fails. It replaces a symbolic link on the way by the link's
//! target.
//!
//! # What it is not
//! Part of any walk: an explanation costs many walks, and only its callers pay. If the tree changed
//! after the failure, the explanation is about the changed tree.
//!
//! # Where it comes from
//! `namei -l` of util-linux.

use super::View;
use crate::path::path_buf;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use vfs::{Errno, Foreign, PathRef, Resolve};

/// The most symbolic links that an explanation reads; walks follow as many.
const MAX_LINKS: usize = 40;

/// Where a walk failed, and why: [`View::explain`].
///
/// ```
/// use lightfoot::{Errno, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.symlink("/gone/for/good", "/link")?;
/// if let Err(error) = ctx.read("/link") {
///     let why = ctx.explain("/link").expect("it still fails");
///     assert_eq!(why.errno, Errno::ENOENT);
///     assert_eq!(why.component, "gone"); // Not `link`: that one exists.
///     eprintln!("{why} ({error})");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkFailure {
    /// Why.
    pub errno: Errno,
    /// The path of the caller.
    pub path: PathBuf,
    /// The part of the path before the failure, which leads to the directory in which the walk
    /// failed. Empty for the start of the path.
    pub walked: PathBuf,
    /// The component that failed. Empty for an empty path.
    pub component: OsString,
    /// The symbolic link whose target has the component, if it is not in the path itself.
    pub link: Option<PathBuf>,
    /// The path leads outside of the directory handle, which limits it: [`Dir::scoped`](crate::Dir::scoped). The error
    /// number is `EXDEV`.
    pub leads_outside: bool,
}

impl fmt::Display for WalkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot walk `{}`: ", Foreign::of(&self.path))?;
        if self.component.is_empty() {
            return self.reason(f);
        }
        let walked = if self.walked.as_os_str().is_empty() { Path::new(".") } else { &self.walked };
        write!(f, "`{}` in `{}`", Foreign::of(&self.component), Foreign::of(walked))?;
        if let Some(link) = &self.link {
            write!(f, ", to which the symbolic link `{}` leads", Foreign::of(link))?;
        }
        f.write_str(": ")?;
        self.reason(f)
    }
}

impl WalkFailure {
    fn reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.leads_outside {
            f.write_str("the path leads outside of the directory handle: ")?;
        }
        fmt::Display::fmt(&self.errno, f)
    }
}

impl std::error::Error for WalkFailure {}

impl From<WalkFailure> for std::io::Error {
    /// Returns an error of the kind of the error number, with the failure inside; the number is
    /// `WalkFailure::errno`.
    fn from(failure: WalkFailure) -> Self {
        std::io::Error::new(crate::error::error(failure.errno).kind(), failure)
    }
}

impl View {
    /// Returns the result of [`View::explain`].
    pub(super) fn failure(&self, path: &[u8]) -> Option<WalkFailure> {
        let errno = self.walk(path, true).err()?;
        let failure =
            WalkFailure { leads_outside: errno == Errno::EXDEV && self.leads_outside(path), ..self.find(errno, path) };
        Some(failure)
    }

    /// Returns whether a walk that fails with `EXDEV` fails because of the handle's scope, and not
    /// at a mount point.
    fn leads_outside(&self, path: &[u8]) -> bool {
        let scope = self.limits() & Resolve::BENEATH;
        let walks_out = |held: &PathRef| self.at(held.clone(), scope).walk(path, true) == Err(Errno::EXDEV);
        self.held().is_some_and(walks_out)
    }

    /// Returns the component that fails. `errno`: of the whole walk.
    fn find(&self, errno: Errno, path: &[u8]) -> WalkFailure {
        let mut text = path.to_vec();
        let mut link = None;
        let mut first = None;
        for _ in 0..MAX_LINKS {
            let Some(failed) = self.failing(&text) else { break };
            let here = report(errno, path, &text, &failed, link);
            match self.look_into(&text, &failed) {
                Some((target, by)) if target.len() <= vfs::PATH_MAX => {
                    (text, link) = (target, Some(by));
                    first.get_or_insert(here);
                }
                _ => return here,
            }
        }
        // A loop of links, more links than walks follow, or the tree changed: the failure of the whole walk.
        first.unwrap_or_else(|| report(errno, path, path, &Component::default(), None))
    }

    fn walk(&self, path: &[u8], follow: bool) -> Result<(), Errno> {
        self.inner.attr(self.base(), path, follow).map(drop)
    }

    /// Returns the first component at which the walk fails.
    fn failing(&self, text: &[u8]) -> Option<Component> {
        let components = Component::all(text);
        // A path can also fail as a whole, because of a slash at its end.
        let last = components.last().copied();
        let mut all = components.into_iter();
        all.find(|at| self.walk(&text[..at.end], true).is_err())
            .or_else(|| last.filter(|_| self.walk(text, true).is_err()))
    }

    /// Reads the link at the component `failed` of `text`. Returns `text` with the target of the
    /// link in place of the component, and the path of the link. Returns `None` if the component is
    /// not a symbolic link that can be read.
    fn look_into(&self, text: &[u8], failed: &Component) -> Option<(Vec<u8>, PathBuf)> {
        let path = &text[..failed.end];
        self.walk(path, true).err()?;
        let body = self.inner.read_link(self.base(), path).ok()?;
        let before: &[u8] = if body.first() == Some(&b'/') { b"" } else { &text[..failed.start] };
        Some(([before, &body, &text[failed.end..]].concat(), path_buf(path.to_vec())))
    }
}

/// The place of a component in a text.
#[derive(Clone, Copy, Default)]
struct Component {
    start: usize,
    end: usize,
}

impl Component {
    /// Returns all components of a text.
    fn all(text: &[u8]) -> Vec<Self> {
        let mut found = Vec::new();
        let mut start = 0;
        for piece in text.split(|&byte| byte == b'/') {
            let end = start + piece.len();
            if !piece.is_empty() {
                found.push(Self { start, end });
            }
            start = end + 1;
        }
        found
    }
}

#[cold]
fn report(errno: Errno, path: &[u8], text: &[u8], failed: &Component, link: Option<PathBuf>) -> WalkFailure {
    let before = &text[..failed.start];
    // Without the slashes at its end, unless it has nothing else.
    let end = before.iter().rposition(|&byte| byte != b'/').map_or(before.len().min(1), |last| last + 1);
    WalkFailure {
        errno,
        path: path_buf(path.to_vec()),
        walked: path_buf(before[..end].to_vec()),
        component: OsString::from_vec(text[failed.start..failed.end].to_vec()),
        link,
        leads_outside: false,
    }
}
