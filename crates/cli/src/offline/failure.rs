//! What went wrong with one path, and what is to be done about it. The others are gone on with.

use crate::error::{Error, Reason};
use lightfoot::Errno;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Bytes of a path that are told.
const LONGEST: usize = 400;

/// Something that could not be done with a path.
#[derive(Debug)]
pub(crate) struct Failure {
    /// "listed", "read".
    verb: &'static str,
    path: Vec<u8>,
    /// The source that it is a path of; `None` for one of the host.
    source: Option<String>,
    reason: Reason,
    /// The number of what the system says; 0 if it says nothing.
    errno: i32,
    /// What to do, if it is not what is done about such a number.
    way_out: Option<&'static str>,
}

impl Failure {
    pub(super) fn new(verb: &'static str, path: &[u8], source: Option<&str>, error: io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self { verb, path: path.into(), source: source.map(str::to_owned), reason: error.into(), errno, way_out: None }
    }

    /// One that the system knows nothing of.
    pub(super) fn said(
        verb: &'static str,
        path: &[u8],
        source: Option<&str>,
        reason: &'static str,
        way_out: &'static str,
    ) -> Self {
        let source = source.map(str::to_owned);
        Self { verb, path: path.into(), source, reason: reason.into(), errno: 0, way_out: Some(way_out) }
    }

    /// 2 for what the caller can mend, 1 for the rest.
    fn status(&self) -> u8 {
        if self.way_out.is_some() || way_out(self.errno).is_some() { 2 } else { 1 }
    }
}

/// What to do about an error number, if the caller can do something.
fn way_out(errno: i32) -> Option<&'static str> {
    let known = [
        (Errno::ENOENT, "lightfoot ls shows what is there"),
        (Errno::ENOTDIR, "name a directory, or leave out what follows the file"),
        (Errno::EISDIR, "name a file"),
        (Errno::EACCES, "ask as somebody who may"),
        (Errno::EPERM, "ask as somebody who may"),
        (Errno::ELOOP, "name what the symbolic links should lead to"),
        (Errno::ENAMETOOLONG, "name something shorter"),
        (Errno::EINVAL, "name something else"),
        (Errno::EEXIST, "name a place that is free"),
        (Errno::EROFS, "leave ro out of the options"),
        (Errno::EXDEV, "with -o cross what is mounted there is shown"),
    ];
    known.iter().find(|(known, _)| known.raw() == errno).map(|(_, way_out)| *way_out)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.path.len().min(LONGEST);
        if longest < self.path.len() {
            // Its end says more than its beginning.
            write!(f, "..")?;
        }
        write!(f, "{:?}", OsStr::from_bytes(&self.path[self.path.len() - longest..]))?;
        if let Some(source) = &self.source {
            write!(f, " of {source}")?;
        }
        write!(f, " cannot be {} ({})", self.verb, self.reason)?;
        let is_of_host = self.source.is_none() && self.errno == Errno::ENOENT.raw();
        let here = is_of_host.then_some("name something that is there");
        let way_out = self.way_out.or(here).or_else(|| way_out(self.errno)).unwrap_or("leave it out, or try again");
        write!(f, "; {way_out}")
    }
}

/// Failures that were told.
#[derive(Default)]
pub(super) struct Troubles {
    /// The greatest status that one of them asks for.
    worst: Cell<u8>,
}

impl Troubles {
    /// Tells one.
    pub(super) fn tell(&self, failure: &Failure) {
        eprintln!("lightfoot: {failure}");
        self.worst.set(self.worst.get().max(failure.status()));
    }

    /// The status that they ask for.
    pub(super) fn end(&self) -> Result<(), Error> {
        match self.worst.get() {
            0 => Ok(()),
            status => Err(Error::Told(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_path_source_reason_and_a_way_out() {
        let cases = [
            (
                2,
                2,
                "\"/a\\nb\" of \"ram\" cannot be read (no such file or directory); lightfoot ls shows what is there",
            ),
            (5, 1, "\"/a\\nb\" of \"ram\" cannot be read (input/output error); leave it out, or try again"),
        ];
        for (errno, status, text) in cases {
            let error = io::Error::from_raw_os_error(errno);
            let failure = Failure::new("read", b"/a\nb", Some("\"ram\""), error);
            assert_eq!((failure.status(), failure.to_string().as_str()), (status, text));
        }
        let long = Failure::new("read", &[b'x'; 5000], None, io::Error::from_raw_os_error(36)).to_string();
        assert!(long.starts_with("..\"xxx") && long.len() < 500, "{long}");
        let of_host = Failure::new("copied", b"/x", None, io::Error::from_raw_os_error(2)).to_string();
        assert_eq!(of_host, "\"/x\" cannot be copied (no such file or directory); name something that is there");
    }
}
