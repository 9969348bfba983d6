//! The commit of the source tree that the command runs in.

use std::process::Command;

/// Returns the name of the commit, and whether files differ from the commit. Outcomes and
/// documents, which a report writes, do not count.
pub(crate) fn here() -> String {
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return "unknown (not run in its repository)".into();
    };
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", ":!lab/docs", ":!lab/outcomes"]);
    match changes.as_deref() {
        Some("") => commit,
        _ => format!("{commit} with changes"),
    }
}

/// Returns the output of git, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
