//! Documents: every relative link and every path in backticks exists; the types of the public face have examples; the
//! documentation of a function begins with a verb.

use crate::rule::{Finding, Rule, Tree};
use crate::source::File;

/// Paths in backticks are checked if they begin with one of these directories.
const CHECKED_ROOTS: [&str; 6] = ["crates/", "lab/", "tools/", "fuzz/", "docs/", ".ci/"];

/// History: it may name paths that no longer exist.
const HISTORY: &str = "CHANGELOG.md";

/// The source of the public face.
const FACE: &str = "crates/lightfoot/src/";

/// What makes a type public there. Types of other crates are exported one at a time, each with its own documentation.
const PUBLIC: [&str; 7] = [
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub use vfs::",
    "pub use ramfs::",
    "pub use hostfs::",
    "pub use ::fuse::",
];

/// The words with which a noun phrase begins.
const NOUN_STARTS: [&str; 11] = ["The", "A", "An", "All", "One", "Its", "Of", "How", "Whether", "Each", "Every"];

pub(crate) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("function-docs", function_docs)
            .bad("crates/vfs/src/a.rs", "/// The length.\n#[inline]\npub fn len() -> u64 {\n}\n", &[3])
            .bad(
                "crates/vfs/src/a.rs",
                "impl A {\n    /// Whether it is full.\n    fn is_full() -> bool {\n    }\n}\n",
                &[3],
            )
            .good(
                "crates/vfs/src/a.rs",
                "/// Returns the length.\npub fn len() -> u64 {\n}\n\n/// The length.\nstruct Len;\n",
            )
            .good("crates/vfs/src/a.rs", "#[cfg(test)]\nmod tests {\n    /// The length.\n    fn len() {\n    }\n}\n"),
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
        Rule::new("examples", examples)
            .bad(
                "crates/lightfoot/src/a.rs",
                "/// Text.\n#[derive(Clone)]\npub struct A;\n\npub use vfs::{Attr, Valid};\n",
                &[3, 5],
            )
            .bad("crates/lightfoot/src/a.rs", "/// ```\n/// ```\npub enum A {}\npub trait B {}\n", &[4])
            .bad("crates/lightfoot/src/a.rs", "/// # Group\nimpl A {\n    pub fn f() {}\n}\n", &[2])
            .good(
                "crates/lightfoot/src/a.rs",
                "/// ```\n/// ```\n#[doc(inline)]\npub use vfs::A;\n\npub(crate) struct B;\n",
            )
            .good(
                "crates/lightfoot/src/a.rs",
                "pub use vfs::{S_IFDIR, S_IFMT};\n\nimpl A {}\n/// Text.\nimpl A for B {}\n",
            )
            .good("crates/vfs/src/a.rs", "pub struct A;\n"),
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

/// Functions whose documentation begins with a noun phrase.
fn function_docs(file: &File, _: &Tree) -> Vec<Finding> {
    let is_noun = |first: usize| {
        let above = file.comment_above(first);
        let start = above.lines().find_map(|line| line.trim().strip_prefix("///"));
        start.and_then(|text| text.split_whitespace().next()).is_some_and(|word| NOUN_STARTS.contains(&word))
    };
    let product = file.functions.iter().filter(|f| file.path.contains("/src/") && !file.in_test[f.first - 1]);
    let found = product.filter(|f| is_noun(f.first));
    found.map(|f| (f.first, format!("the documentation of `{}` names no action; begin with a verb", f.name))).collect()
}

/// Types of the public face, and groups of methods, whose documentation has no example.
fn examples(file: &File, _: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut has_docs, mut has_example) = (false, false);
    for (i, line) in file.lines.iter().enumerate().filter(|_| file.path.starts_with(FACE)) {
        has_docs |= line.starts_with("///");
        has_example |= line.starts_with("/// ```");
        if line.starts_with("///") || line.starts_with("#[") {
            continue;
        }
        // The names of constants have no small letters.
        let names = line.rsplit("::").next().unwrap_or_default();
        let is_type = PUBLIC.iter().any(|start| line.starts_with(start)) && names.contains(|c: char| c.is_lowercase());
        let is_group = has_docs && line.starts_with("impl ") && !line.contains(" for ");
        if (is_type || is_group) && !has_example {
            found.push((
                i + 1,
                "public without an example; write a short one, in a fenced block of its documentation".into(),
            ));
        }
        (has_docs, has_example) = (false, false);
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
