//! Checks the house rules of CONTRIBUTING.md that can be counted, on every source file of the workspace, and reports all
//! violations at once as `path:line: what is wrong; do this instead [rule]`.
//!
//! A rule is a small function with examples that it must report and examples that it must pass. To add one, write it in the
//! file of its kind, list it in that file's `rules`, and put its mark into CONTRIBUTING.md.

mod code_lines;
mod docs;
mod facade;
mod foreign;
mod habits;
mod knots;
mod manifests;
mod modules;
mod ordering;
mod rooms;
mod rule;
mod shape;
mod source;
mod words;

use rule::{Rule, Tree};
use source::File;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use words::Verdict;

/// The directories that are checked; the files of the root are, too.
const ROOTS: [&str; 6] = ["crates", "lab", "tools", "fuzz", "docs", ".ci"];

/// All rules.
fn rules() -> Vec<Rule> {
    let kinds = [
        shape::rules,
        rooms::rules,
        knots::rules,
        facade::rules,
        ordering::rules,
        habits::rules,
        foreign::rules,
        manifests::rules,
        docs::rules,
    ];
    kinds.iter().flat_map(|kind| kind()).collect()
}

#[test]
fn the_workspace_keeps_the_house_rules() {
    let (tree, files) = load(&workspace());
    let mut violations = Vec::new();
    for rule in &rules() {
        let found = rule.violations(&files, &tree).into_iter();
        violations.extend(found.map(|(path, (line, message))| format!("{path}:{line}: {message} [{}]", rule.name)));
    }
    violations.sort();
    assert!(violations.is_empty(), "{} violations of CONTRIBUTING.md:\n{}\n", violations.len(), violations.join("\n"));
}

#[test]
fn every_rule_reports_its_bad_examples_and_passes_its_good_ones() {
    let wrong: Vec<String> = rules().iter().flat_map(Rule::self_test).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn known_files_are_read_and_build_output_is_not() {
    let (tree, files) = load(&workspace());
    for path in ["Cargo.toml", "CONTRIBUTING.md", "crates/prim/src/lib.rs", "tools/tidy/tests/house/main.rs", ".ci/run"]
    {
        assert!(files.iter().any(|file| file.path == path), "{path} was not read");
        assert!(tree.contains(path), "{path} is not in the tree");
    }
    assert!(tree.contains("crates/prim/src"), "directories belong to the tree");
    assert!(!tree.iter().any(|path| path.starts_with("target") || path.starts_with(".git/")), "build output was read");
}

#[test]
fn style_names_every_rule_and_no_other() {
    let style = fs::read_to_string(workspace().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md is there");
    let marks = style.split("`tidy: ").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0));
    let named: BTreeSet<&str> = marks.flat_map(|mark| mark.split(", ")).collect();
    let there: BTreeSet<&str> = rules().iter().map(|rule| rule.name).collect();
    assert_eq!(named, there, "left: the `tidy: ...` marks of CONTRIBUTING.md; right: the rules of this test");
}

#[test]
fn the_counted_phrases_become_fewer() {
    check_ratchet(words::COUNTS, words::compare);
}

#[test]
fn the_product_does_not_grow() {
    check_ratchet(code_lines::COUNTS, code_lines::compare);
}

/// Fails if the counts of the workspace differ from those that the file `path` has; `TIDY_LOWER` rewrites the file if they fell.
fn check_ratchet(path: &str, compare: fn(&[File], &str) -> Verdict) {
    let counts = workspace().join(path);
    let committed = fs::read_to_string(&counts).unwrap_or_else(|error| panic!("{path}: {error}"));
    match compare(&load(&workspace()).1, &committed) {
        Verdict::Same => {}
        Verdict::Higher(risen) => panic!("{path}: counts that may only fall:\n{risen}"),
        Verdict::Lower(text) if env::var_os("TIDY_LOWER").is_some() => fs::write(&counts, text).expect(path),
        Verdict::Lower(_) => panic!("{path}: the counts fell, or moved: run {}", words::LOWER),
    }
}

/// The nearest directory at or above the crate's whose Cargo.toml makes a workspace.
fn workspace() -> PathBuf {
    let is_root = |dir: &&Path| {
        fs::read_to_string(dir.join("Cargo.toml")).is_ok_and(|text| text.lines().any(|line| line == "[workspace]"))
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(is_root).expect("the crate lies in a workspace").into()
}

/// Every path below the root that is checked, and the text files among them.
fn load(root: &Path) -> (Tree, Vec<File>) {
    let mut paths = Vec::new();
    for name in entries(root) {
        let is_dir = root.join(&name).is_dir();
        if !is_dir {
            paths.push(name);
        } else if ROOTS.contains(&name.as_str()) {
            collect(root, name, &mut paths);
        }
    }
    let text_files = paths.iter().filter(|path| root.join(path).is_file());
    let files = text_files.filter_map(|path| Some(File::new(path, &fs::read_to_string(root.join(path)).ok()?)));
    (paths.iter().cloned().collect(), files.collect())
}

/// Adds `path` and all below it, but no build output.
fn collect(root: &Path, path: String, paths: &mut Vec<String>) {
    for name in entries(&root.join(&path)) {
        let below = format!("{path}/{name}");
        let is_dir = root.join(&below).is_dir();
        match name.as_str() {
            "target" | ".git" => {}
            _ if is_dir => collect(root, below, paths),
            _ => paths.push(below),
        }
    }
    paths.push(path);
}

/// The names in a directory, sorted, so that reports do not depend on the file system.
fn entries(dir: &Path) -> BTreeSet<String> {
    let listed = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
