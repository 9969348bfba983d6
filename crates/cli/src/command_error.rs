//! The common part of the errors of all commands: a message and an exit status.

use std::fmt;

/// An error that ends a command.
pub(crate) trait CommandError: fmt::Display {
    /// Returns the exit status: 2 for input that the user can correct, 128 + N after signal N, 1
    /// otherwise.
    fn status(&self) -> u8 {
        1
    }

    /// Returns whether the user has already seen it, so that it must not be printed again.
    fn is_reported(&self) -> bool {
        false
    }
}
