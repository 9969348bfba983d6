//! Calls of the host stand in two modules: those that change it in `calls.rs`, where each takes the right to make it, the
//! others in `system`. Each goes through one function, in which a test can let it fail.

use std::fs;
use std::path::{Path, PathBuf};

/// The functions of `rustix` that change the host.
const CHANGES: [&str; 29] = [
    "mkdir",
    "mkdirat",
    "symlink",
    "symlinkat",
    "mknodat",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat_with",
    "chown",
    "chownat",
    "fchown",
    "chmod",
    "chmodat",
    "fchmod",
    "utimensat",
    "futimens",
    "ftruncate",
    "fallocate",
    "setxattr",
    "fsetxattr",
    "removexattr",
    "fremovexattr",
    "pwrite",
    "pwritev2",
    "ioctl_setflags",
];

/// Types of `rustix` that call the host when they are used.
const CALLING_TYPES: [&str; 3] = ["RawDir", "Dir", "Reader"];

/// Functions of `rustix` that only compute.
const COMPUTATIONS: [&str; 1] = ["makedev"];

/// Functions that cannot fail, or whose failure has no effect.
const UNFAILING: [&str; 8] =
    ["geteuid", "getegid", "getrlimit", "capabilities_secure_bits", "write", "remove_watch", "poll", "new"];

/// The last parts of the paths in `line` that begin with `rustix::`, or with one of its modules that was imported, as calls.
fn called(line: &str) -> Vec<&str> {
    let starts = ["rustix::", "inotify::", "std::fs::"];
    let is_start =
        |at: usize| at == 0 || !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'));
    let paths = starts.iter().flat_map(|start| line.match_indices(start)).filter(|(at, _)| is_start(*at));
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let last = |at: usize| line[at..].split(|c| !is_path(c)).next().and_then(|path| path.rsplit("::").next());
    let names = paths.filter_map(|(at, _)| last(at));
    names.filter(|name| name.starts_with(|c: char| c.is_lowercase()) && !COMPUTATIONS.contains(name)).collect()
}

/// The parts of each `use` of `rustix`.
fn imported(text: &str) -> Vec<&str> {
    let uses = text.split("use rustix::").skip(1).filter_map(|rest| rest.split(';').next());
    let words = uses.flat_map(|items| items.split(|c: char| !c.is_alphanumeric() && c != '_'));
    // A path begins with modules; `self` imports one.
    let modules = ["fs", "io", "process", "thread", "event", "inotify", "as"];
    words.filter(|word| !word.is_empty() && !modules.contains(word)).collect()
}

/// The lines before the tests.
fn product(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| *line != "#[cfg(test)]" || !text.contains("mod tests {")).filter(|line| {
        let line = line.trim();
        !line.starts_with("//")
    })
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let is_product = |path: &PathBuf| !path.ends_with("faults.rs") && !path.iter().any(|part| part == "faults");
    sources.into_iter().filter(is_product).map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn only_one_module_changes_the_host() {
    assert_eq!(called("    rustix::fs::mkdirat(dir, name, mode)?;"), ["mkdirat"]);
    for (path, text) in all_sources() {
        let found: Vec<_> =
            product(&text).filter(|line| called(line).iter().any(|name| CHANGES.contains(name))).collect();
        assert_eq!(found.is_empty(), !path.ends_with("calls.rs"), "{}: {found:#?}", path.display());
    }
}

#[test]
fn only_two_modules_call_the_host() {
    assert_eq!(
        imported("use rustix::fs::inotify::{self,\nReader, WatchFlags}; other"),
        ["self", "Reader", "WatchFlags"]
    );
    assert_eq!(called("let a = rustix::io::Errno::INTR; x.map(rustix::fs::makedev)"), Vec::<&str>::new());
    for (path, text) in all_sources() {
        if path.ends_with("calls.rs") || path.iter().any(|part| part == "system") {
            continue;
        }
        let text = product(&text).collect::<Vec<_>>().join("\n");
        let is_call = |name: &&&str| CALLING_TYPES.contains(*name) || name.starts_with(|c: char| c.is_lowercase());
        assert_eq!(imported(&text).iter().find(is_call), None, "{}", path.display());
        for line in text.lines() {
            assert_eq!(called(line), Vec::<&str>::new(), "{}: {line}", path.display());
        }
    }
}

#[test]
fn each_call_can_be_let_fail() {
    for (path, text) in all_sources() {
        let lines: Vec<_> = product(&text).collect();
        for (number, line) in lines.iter().enumerate() {
            if line.trim().starts_with("use ") || called(line).iter().all(|name| UNFAILING.contains(name)) {
                continue;
            }
            // The function through which it goes begins a few lines before.
            let before = &lines[number.saturating_sub(5)..=number];
            let seams = ["call(Call::", "call(call_as", "restarted(Call::"];
            let is_seamed = before.iter().any(|line| seams.iter().any(|seam| line.contains(seam)));
            assert!(is_seamed, "{}: {line}", path.display());
        }
    }
}
