//! Checks the house rules of STYLE.md that can be counted, on every source file of the workspace, and reports all
//! violations at once as `path:line: what is wrong; do this instead [rule]`.
//!
//! A rule is one small function with examples that it must and must not report; add one in the file of its kind, list
//! it in that file's `rules`, and name it in STYLE.md.

#[path = "tidy/docs.rs"]
mod docs;
#[path = "tidy/facade.rs"]
mod facade;
#[path = "tidy/habits.rs"]
mod habits;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/ordering.rs"]
mod ordering;
#[path = "tidy/rule.rs"]
mod rule;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/unsafety.rs"]
mod unsafety;

use rule::{Rule, Tree};
use source::File;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What is checked: everything below these directories, and the files of the root itself.
const ROOTS: [&str; 4] = ["crates", "docs", "scripts", ".ci"];

/// Every rule there is.
fn rules() -> Vec<Rule> {
    let kinds =
        [shape::rules, facade::rules, ordering::rules, unsafety::rules, habits::rules, manifests::rules, docs::rules];
    kinds.iter().flat_map(|kind| kind()).collect()
}

#[test]
fn the_workspace_keeps_the_house_rules() {
    let (tree, files) = load(&workspace());
    let rules = rules();
    let mut violations = Vec::new();
    for file in &files {
        for rule in &rules {
            let found = (rule.check)(file, &tree).into_iter();
            violations.extend(found.map(|(line, message)| format!("{}:{line}: {message} [{}]", file.path, rule.name)));
        }
    }
    assert!(violations.is_empty(), "{} violations of STYLE.md:\n{}\n", violations.len(), violations.join("\n"));
}

#[test]
fn every_rule_reports_its_bad_examples_and_passes_its_good_ones() {
    let wrong: Vec<String> = rules().iter().flat_map(Rule::self_test).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_walk_over_the_tree_finds_what_is_known_to_be_there() {
    let (tree, files) = load(&workspace());
    for path in ["Cargo.toml", "STYLE.md", "crates/prim/src/lib.rs", "crates/cli/tests/tidy.rs", ".ci/run"] {
        assert!(files.iter().any(|file| file.path == path), "{path} was not read");
        assert!(tree.contains(path), "{path} is not in the tree");
    }
    assert!(tree.contains("crates/prim/src"), "directories belong to the tree");
    assert!(!tree.iter().any(|path| path.starts_with("target") || path.starts_with(".git/")), "build output was read");
}

#[test]
fn style_names_every_rule_and_no_other() {
    let style = fs::read_to_string(workspace().join("STYLE.md")).expect("STYLE.md is there");
    let marks = style.split("`tidy: ").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0));
    let named: BTreeSet<&str> = marks.flat_map(|mark| mark.split(", ")).collect();
    let there: BTreeSet<&str> = rules().iter().map(|rule| rule.name).collect();
    assert_eq!(named, there, "left: the `tidy: ...` marks of STYLE.md; right: the rules of this test");
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
