//! The rows of the error table: what Linux answers to bad input, and where the border to good input lies.

mod files;
mod names;
mod paths;
mod rights;

use super::errno::*;
use super::ops::flags::*;
use super::ops::*;
use super::shorthand::*;

/// One row: what it shows, operations that succeed, and one more with its answer.
pub(crate) type Row = (&'static str, Vec<Op>, Op, Result<(), Errno>);

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    [paths::rows(), names::rows(), files::rows(), rights::rows()].concat()
}

fn slashes(count: usize) -> String {
    "/".repeat(count)
}

fn name(len: usize) -> String {
    "n".repeat(len)
}
