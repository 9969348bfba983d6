//! Finds the commit that the program is built from, for `lightfoot --version`.
//!
//! The first of these that has one: the variable `LIGHTFOOT_COMMIT`, which a packager sets; the file that `cargo package`
//! adds to a package; git, if this package is part of a checkout. Without any, the version says that it has no commit.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What `cargo package` adds to a package.
const OF_PACKAGE: &str = ".cargo_vcs_info.json";

/// The variable that a packager sets.
const VARIABLE: &str = "LIGHTFOOT_COMMIT";

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let commit = env::var(VARIABLE).ok().or_else(of_package).or_else(of_checkout);
    let commit = commit.map(|commit| commit.trim().chars().take(DIGITS).collect::<String>());
    let version = env!("CARGO_PKG_VERSION");
    match commit.filter(|commit| !commit.is_empty()) {
        Some(commit) => {
            println!("cargo::rustc-env=LIGHTFOOT_BUILT_FROM={commit}");
            println!("cargo::rustc-env=LIGHTFOOT_VERSION={version} (commit {commit})");
        }
        None => println!("cargo::rustc-env=LIGHTFOOT_VERSION={version} (built without git: no commit known)"),
    }
}

fn of_package() -> Option<String> {
    if !Path::new(OF_PACKAGE).exists() {
        return None;
    }
    println!("cargo::rerun-if-changed={OF_PACKAGE}");
    let text = fs::read_to_string(OF_PACKAGE).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    Some(rest.split('"').nth(1)?.to_owned())
}

/// `None` also if this package only lies inside a checkout of something else.
fn of_checkout() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Changes with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"])
}

/// What git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
