//! Documents: every relative link and every path in backticks exists.

use crate::rule::{Finding, Rule, Tree};
use crate::source::File;

/// Paths in backticks are checked if they begin with one of these directories.
const CHECKED_ROOTS: [&str; 6] = ["crates/", "lab/", "tools/", "fuzz/", "docs/", ".ci/"];

/// History: it may name paths that no longer exist.
const HISTORY: &str = "CHANGELOG.md";

pub(crate) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("doc-links", doc_links)
            .bad("docs/walk.md", "See [a](gone.md) and [b](../gone/).\n\n[c]: gone.md\n", &[1, 1, 3])
            .bad("README.md", "![plot](docs/gone.svg \"title\") [x](docs/here.md) [y](/gone)\n", &[1, 1])
            .good("docs/walk.md", "[a](here.md#part) [b](../docs/) [c](#part) [d](https://a.b/c) [e](../crates/sync)\n")
            .good("docs/walk.md", "`[a](gone.md)`\n```\n[a](gone.md)\n```\n")
            .good("crates/sync/src/rcu.rs", "//! [a](gone.md)\n"),
        Rule::new("doc-paths", doc_paths)
            .bad("docs/walk.md", "In `crates/gone/src` and `docs/here.md`,\n`tools/gone --gate`.\n", &[1, 2])
            .good("docs/walk.md", "In `crates/sync/src/`, `docs/here.md:12`, `crates/*/gone`, `cargo run`.\n")
            .good("docs/walk.md", "```\n`crates/gone`\n```\n")
            .good("CHANGELOG.md", "`crates/gone`\n"),
    ]
}

fn doc_links(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in prose(file) {
        let outside_code: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = outside_code.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let reference = outside_code.starts_with('[').then(|| outside_code.split_once("]: ")).flatten();
        for target in inline.chain(reference.map(|(_, target)| target)) {
            let path = target.split(['#', ' ']).next().unwrap_or_default();
            let is_elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            if !is_elsewhere && !exists(&resolve(&file.path, path), tree) {
                found.push((line, format!("a link to `{path}`, which does not exist; correct it")));
            }
        }
    }
    found
}

fn doc_paths(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in prose(file).filter(|_| file.path != HISTORY) {
        for span in text.split('`').skip(1).step_by(2) {
            let path = span.split([' ', ':', '#']).next().unwrap_or_default();
            let is_checked = CHECKED_ROOTS.iter().any(|root| path.starts_with(root));
            let is_pattern = path.contains(['*', '{', '<', '$']) || path.contains("..");
            if is_checked && !is_pattern && !exists(path, tree) {
                found.push((line, format!("`{path}` does not exist; correct it, or drop it")));
            }
        }
    }
    found
}

/// The lines of a document outside fenced code.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let is_document = file.path.ends_with(".md");
    let mut is_fenced = false;
    file.lines.iter().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (is_document && !is_fenced && !is_fence).then_some((i + 1, line.as_str()))
    })
}

fn exists(path: &str, tree: &Tree) -> bool {
    let path = path.trim_end_matches('/');
    path.is_empty() || tree.contains(path)
}

/// The `target` of a link in the document at `from`, relative to the workspace root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = if target.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop(); // The document's own name.
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
