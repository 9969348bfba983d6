//! What the tests of each command do with its output.

use std::process::Output;
use tempfile::TempDir;

pub(crate) fn empty_dir() -> TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the errors are UTF-8")
}

/// Expects status 2 and one sentence with all of `parts`.
pub(crate) fn check_is_refused(output: &Output, arguments: &[&str], parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    assert!(text.starts_with("lightfoot-lab: ") && text.lines().count() == 1, "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: {part} is not in {text}");
    }
}

/// Expects status 2, and that the parser of the command line wrote something.
pub(crate) fn check_makes_no_sense(output: &Output, arguments: &[&str]) {
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert_ne!(stderr(output), "", "{arguments:?}");
}
