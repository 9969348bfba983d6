//! Calls that change the host stand in one module, where each takes the right to make it.

use std::fs;
use std::path::Path;

/// The functions of `rustix` that change the host.
const CHANGES: [&str; 26] = [
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
    "pwrite",
];

/// The lines that call one of them.
fn changes(text: &str) -> Vec<&str> {
    let is_change = |line: &&str| {
        let calls = line.match_indices("rustix::").map(|(start, _)| &line[start..]);
        let mut names = calls.filter_map(|call| call.split(['(', ' ', ',', ';']).next()?.rsplit("::").next());
        names.any(|name| CHANGES.contains(&name))
    };
    text.lines().filter(is_change).collect()
}

#[test]
fn only_one_module_changes_the_host() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(changes("    rustix::fs::mkdirat(dir, name, mode)?;").len(), 1);
    for file in fs::read_dir(source).unwrap() {
        let path = file.unwrap().path();
        let found = fs::read_to_string(&path).unwrap();
        let found = changes(&found);
        assert_eq!(found.is_empty(), !path.ends_with("calls.rs"), "{}: {found:#?}", path.display());
    }
}
