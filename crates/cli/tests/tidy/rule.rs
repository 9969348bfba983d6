//! What a rule is: a name, a check of one file, and examples that show the check both biting and keeping still.

use crate::source::File;
use std::collections::BTreeSet;

/// The paths that exist, files and directories, relative to the workspace root.
pub(crate) type Tree = BTreeSet<String>;

/// One violation: a line, and "what is wrong; do this instead".
pub(crate) type Finding = (usize, String);

pub(crate) type Check = fn(&File, &Tree) -> Vec<Finding>;

/// A rule of STYLE.md that can be counted. `name` is what STYLE.md calls it.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) check: Check,
    pub(crate) examples: Vec<Example>,
}

/// A file that the rule must report on exactly these lines.
pub(crate) struct Example {
    path: &'static str,
    text: String,
    lines: Vec<usize>,
}

impl Rule {
    pub(crate) fn new(name: &'static str, check: Check) -> Self {
        Self { name, check, examples: Vec::new() }
    }

    /// A file that must be reported on `lines`.
    pub(crate) fn bad(mut self, path: &'static str, text: impl Into<String>, lines: &[usize]) -> Self {
        assert!(!lines.is_empty(), "{}: a bad example is reported somewhere", self.name);
        self.examples.push(Example { path, text: text.into(), lines: lines.to_vec() });
        self
    }

    /// A file that must not be reported.
    pub(crate) fn good(mut self, path: &'static str, text: impl Into<String>) -> Self {
        self.examples.push(Example { path, text: text.into(), lines: Vec::new() });
        self
    }

    /// What the examples show to be wrong with the rule itself.
    pub(crate) fn self_test(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.examples.iter().any(|example| example.lines.is_empty()) {
            wrong.push(format!("{}: has no good example", self.name));
        }
        if self.examples.iter().all(|example| example.lines.is_empty()) {
            wrong.push(format!("{}: has no bad example", self.name));
        }
        let tree: Tree = ["docs", "docs/here.md", "crates", "crates/sync", "crates/sync/src"].map(String::from).into();
        for Example { path, text, lines } in &self.examples {
            let found = (self.check)(&File::new(path, text), &tree);
            if !found.iter().map(|(line, _)| line).eq(lines) {
                wrong.push(format!("{}: expected lines {lines:?}, reported {found:?} in {path}:\n{text}", self.name));
            }
            wrong.extend(
                found.iter().filter(|(_, message)| !message.contains("; ")).map(|(_, m)| format!("no advice: {m}")),
            );
        }
        wrong
    }
}
