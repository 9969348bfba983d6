//! Manifests: keys that each crate inherits from the workspace. Scripts: the comment below the first line.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, words};

/// Table and key that each crate's manifest inherits from the workspace.
const INHERITED: [(&str, &str); 4] = [
    ("package", "edition.workspace"),
    ("package", "rust-version.workspace"),
    ("package", "license.workspace"),
    ("lints", "workspace"),
];

const UNITS_OF_TIME: [&str; 8] = ["second", "seconds", "minute", "minutes", "hour", "hours", "s", "min"];

pub(crate) fn rules() -> Vec<Rule> {
    let inherited = "edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n";
    let manifest = |package: &str, lints: &str| format!("[package]\nname = \"a\"\n{package}\n[lints]\n{lints}\n");
    vec![
        Rule::new("manifests", manifests)
            .bad("crates/sync/Cargo.toml", manifest(inherited, "rust.missing_docs = \"warn\""), &[1])
            .bad(
                "crates/sync/Cargo.toml",
                manifest("license = \"MIT\"\nedition = \"2024\"", "workspace = true"),
                &[1, 1, 1],
            )
            .bad("crates/sync/Cargo.toml", format!("[package]\n{inherited}\n[lints.rust]\nworkspace = true\n"), &[1])
            .good("crates/sync/Cargo.toml", manifest(inherited, "workspace = true"))
            .good("Cargo.toml", "[workspace]\n"),
        Rule::new("scripts", scripts)
            .bad("tools/count", "echo\n", &[1])
            .bad("tools/check/soak", "echo\n", &[1])
            .bad("tools/count", "#!/bin/sh\nset -e\n# Counts. One second.\n", &[2])
            .bad("tools/count.py", "#!/usr/bin/env python3\n# Counts.\n", &[2])
            .bad("tools/count", "#!/bin/sh\n# Counts instructions.\n# About 20 seconds.\nset -e\n", &[2])
            .bad(".ci/run", "#!/bin/bash\n#\nset -e\n", &[2])
            .good("tools/count", "#!/bin/sh\n# Counts instructions: 20 seconds.\n# Needs valgrind.\nset -e\n")
            .good(".ci/run", "#!/bin/sh\n# Checks all.\n# About 20 minutes.\nset -e\n")
            .good("tools/counts.json", "{}\n")
            .good("tools/tidy/Cargo.toml", "[package]\n")
            .good("docs/a.md", "text\n"),
    ]
}

fn manifests(file: &File, _: &Tree) -> Vec<Finding> {
    let is_member = ["crates/", "lab/", "tools/"].iter().any(|street| file.path.starts_with(street));
    if !is_member || !file.path.ends_with("/Cargo.toml") {
        return Vec::new();
    }
    let missing = INHERITED.iter().filter(|(table, key)| !is_true(file, table, key));
    missing
        .map(|(table, key)| (1, format!("[{table}] does not inherit from the workspace; write `{key} = true` there")))
        .collect()
}

/// Whether `key = true` stands in `[table]`.
fn is_true(file: &File, table: &str, key: &str) -> bool {
    let start = file.lines.iter().position(|line| *line == format!("[{table}]"));
    let body =
        file.lines.iter().skip(start.map_or(usize::MAX, |line| line + 1)).take_while(|line| !line.starts_with('['));
    body.into_iter().any(|line| line.split_once('=').is_some_and(|(k, v)| k.trim() == key && v.trim() == "true"))
}

fn scripts(file: &File, _: &Tree) -> Vec<Finding> {
    let is_of_scripts = ["tools/", ".ci/"].iter().any(|dir| file.path.starts_with(dir));
    let name = file.path.rsplit('/').next().filter(|_| is_of_scripts).unwrap_or(".");
    let is_script = file.lines.first().is_some_and(|line| line.starts_with("#!"));
    if !is_script {
        let is_data = name.contains('.');
        return if is_data { Vec::new() } else { vec![(1, "a script without `#!`; name its interpreter".into())] };
    }
    // `tools/run` lists the second line of each script.
    let lines = if file.path.starts_with("tools/") { 1 } else { usize::MAX };
    let comment = file.lines[1..].iter().take(lines).map_while(|line| line.strip_prefix('#'));
    let comment: String = comment.collect::<Vec<_>>().join(" ");
    if words(&comment).any(|word| UNITS_OF_TIME.contains(&word)) {
        return Vec::new();
    }
    vec![(
        2,
        "a script without description; write in the line below `#!` what it does and how many seconds or minutes it takes"
            .into(),
    )]
}
