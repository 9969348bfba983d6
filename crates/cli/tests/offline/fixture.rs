//! What the tests of commands on sources have in common: a source, and how the commands are run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that goes with its value.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lightfoot-offline-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a directory for the test");
        Self(fs::canonicalize(path).expect("it is there"))
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A small tree: files at three depths, links that lead to files, up, out, nowhere and to themselves.
pub(crate) fn source() -> Dir {
    let dir = Dir::new();
    fs::create_dir_all(dir.at("a/b")).expect("directories");
    fs::create_dir(dir.at("empty")).expect("a directory");
    fs::write(dir.at("a/f"), "contents\n").expect("a file");
    fs::write(dir.at("a/.hidden"), "").expect("a file");
    fs::write(dir.at("a/b/odd name"), "odd").expect("a file");
    fs::write(dir.at("a/b/long"), vec![b'x'; 5000]).expect("a file");
    for (path, mode) in [("a", 0o755), ("a/b", 0o700), ("empty", 0o755), ("a/f", 0o640), ("a/b/long", 0o444)] {
        fs::set_permissions(dir.at(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let links = [("link", "a/f"), ("in", "/a/f"), ("up", ".."), ("out", "/etc/passwd"), ("dangling", "gone")];
    for (name, body) in links.into_iter().chain([("loop", "loop")]) {
        symlink(body, dir.at(name)).expect("a link");
    }
    dir
}

/// The command.
pub(crate) fn lightfoot() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    command.stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    lightfoot().args(arguments).output().expect("the command runs")
}

/// Runs it and expects nothing but success.
pub(crate) fn checked(arguments: &[&str]) -> Output {
    let output = run(arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {}", stderr(&output));
    output
}

/// Runs it and expects a status, an output, and one sentence with all of `parts`.
pub(crate) fn check(arguments: &[&str], status: i32, expected: &str, parts: &[&str]) {
    let output = run(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
    assert_eq!(stdout(&output), expected, "{arguments:?}");
    assert!(told.starts_with("lightfoot: ") && told.lines().count() == 1, "{arguments:?}: {told}");
    for part in parts {
        assert!(told.contains(part), "{arguments:?}: {part} is not in {told}");
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the errors are UTF-8")
}

/// A path of a test, which is always UTF-8.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is UTF-8")
}
