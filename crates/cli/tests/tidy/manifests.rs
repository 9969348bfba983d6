//! Manifests and scripts: what every crate takes from the workspace, and what every script says of itself.

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
            .bad("scripts/count", "echo\n", &[1])
            .bad("scripts/count", "#!/bin/sh\nset -e\n# Counts. One second.\n", &[2])
            .bad("scripts/count.py", "#!/usr/bin/env python3\n# Counts.\n", &[2])
            .bad(".ci/run", "#!/bin/bash\n#\nset -e\n", &[2])
            .good("scripts/count", "#!/bin/sh\n# Counts instructions.\n# About 20 seconds.\nset -e\n")
            .good("scripts/counts.json", "{}\n")
            .good("docs/a.md", "text\n"),
    ]
}

fn manifests(file: &File, _: &Tree) -> Vec<Finding> {
    if !file.path.starts_with("crates/") || !file.path.ends_with("/Cargo.toml") {
        return Vec::new();
    }
    let missing = INHERITED.iter().filter(|(table, key)| !is_true(file, table, key));
    missing.map(|(table, key)| (1, format!("[{table}] is the crate's own; say `{key} = true` there"))).collect()
}

/// Whether `key = true` stands in `[table]`.
fn is_true(file: &File, table: &str, key: &str) -> bool {
    let start = file.lines.iter().position(|line| *line == format!("[{table}]"));
    let body =
        file.lines.iter().skip(start.map_or(usize::MAX, |line| line + 1)).take_while(|line| !line.starts_with('['));
    body.into_iter().any(|line| line.split_once('=').is_some_and(|(k, v)| k.trim() == key && v.trim() == "true"))
}

fn scripts(file: &File, _: &Tree) -> Vec<Finding> {
    let name = file.path.strip_prefix("scripts/").or(file.path.strip_prefix(".ci/")).unwrap_or(".");
    let is_script = file.lines.first().is_some_and(|line| line.starts_with("#!"));
    if !is_script {
        let is_data = name.contains('.');
        return if is_data { Vec::new() } else { vec![(1, "a script without `#!`; say what runs it".into())] };
    }
    let comment: Vec<&str> = file.lines[1..].iter().map_while(|line| line.strip_prefix('#')).collect();
    let comment = comment.join(" ");
    if words(&comment).any(|word| UNITS_OF_TIME.contains(&word)) {
        return Vec::new();
    }
    vec![(
        2,
        "a script that is silent on itself; say below `#!` what it does and how many seconds or minutes it takes"
            .into(),
    )]
}
