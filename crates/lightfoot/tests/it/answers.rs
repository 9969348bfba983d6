//! What operations answered: error numbers, and the names of a directory in order.

use lightfoot::{Errno, View};
use std::io;

/// The error number of a call that failed.
pub(crate) fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().map(|failed| failed.raw_os_error().expect("an error with a number"))
}

/// The error number that is expected.
pub(crate) fn is(errno: Errno) -> Option<i32> {
    Some(errno.raw())
}

/// The names in a directory, in order.
pub(crate) fn names(view: &View, path: &str) -> Vec<String> {
    let entries = view.read_dir(path).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The error number that the kernel answered; 0 without an error.
pub(crate) fn number<T>(result: rustix::io::Result<T>) -> i32 {
    result.map_or_else(|errno| errno.raw_os_error(), |_| 0)
}

/// The same of Lightfoot's core.
pub(crate) fn raw<T>(result: Result<T, Errno>) -> i32 {
    result.map_or_else(Errno::raw, |_| 0)
}
