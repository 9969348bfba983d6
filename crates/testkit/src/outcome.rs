//! The result of a case: nothing, or the expected and the returned value.
//!
//! Plain values.

use core::fmt::{self, Debug, Display};
use vfs::Errno;

/// The expected and the returned value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(String);

impl Failure {
    /// Returns a failure with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Failure {}

/// The result of a case.
pub type Outcome = Result<(), Failure>;

/// Ends a case that has nothing more to check if the file system lacks a feature that it needs.
macro_rules! needs {
    ($has:expr) => {
        if !$has {
            return Ok(());
        }
    };
}
pub(crate) use needs;

/// Checks that both values are the same; the failure shows them.
pub(crate) fn same<T: PartialEq + Debug>(what: impl Display, got: T, expected: T) -> Outcome {
    if got == expected {
        return Ok(());
    }
    Err(Failure(format!("{what}: expected {}, got {}", shown(&expected), shown(&got))))
}

/// Returns a value as text, cut if it is long.
fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(400) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

/// For a call that must succeed: its value, or a failure that names the call.
pub(crate) trait OrFail<T> {
    fn or_fail(self, what: impl Display) -> Result<T, Failure>;
}

impl<T> OrFail<T> for Result<T, Errno> {
    fn or_fail(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|errno| Failure(format!("{what}: expected success, got {}", errno.name())))
    }
}
