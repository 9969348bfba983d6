//! A rule: a name, a check, and examples that the check must report and must pass.

use crate::source::File;
use std::collections::BTreeSet;

/// The paths that exist, files and directories, relative to the workspace root.
pub(crate) type Tree = BTreeSet<String>;

/// One violation in a file that is known: a line, and "what is wrong; do this instead".
pub(crate) type Finding = (usize, String);

/// One violation: the path of its file, and the finding.
pub(crate) type Violation = (String, Finding);

enum Check {
    /// Looks at one file at a time.
    File(fn(&File, &Tree) -> Vec<Finding>),
    /// Needs all files to judge one.
    All(fn(&[File]) -> Vec<Violation>),
}

/// A rule of CONTRIBUTING.md that can be counted. `name` is its mark there.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    check: Check,
    examples: Vec<Example>,
}

/// Files, and the `path:line` at which the rule must report them.
struct Example {
    files: Vec<(&'static str, String)>,
    reported: Vec<String>,
}

impl Rule {
    pub(crate) fn new(name: &'static str, check: fn(&File, &Tree) -> Vec<Finding>) -> Self {
        Self { name, check: Check::File(check), examples: Vec::new() }
    }

    /// A rule whose check needs all files.
    pub(crate) fn of_all(name: &'static str, check: fn(&[File]) -> Vec<Violation>) -> Self {
        Self { name, check: Check::All(check), examples: Vec::new() }
    }

    /// A file that must be reported on `lines`.
    pub(crate) fn bad(mut self, path: &'static str, text: impl Into<String>, lines: &[usize]) -> Self {
        assert!(!lines.is_empty(), "{}: a bad example is reported somewhere", self.name);
        let reported = lines.iter().map(|line| format!("{path}:{line}")).collect();
        self.examples.push(Example { files: vec![(path, text.into())], reported });
        self
    }

    /// A file that must not be reported.
    pub(crate) fn good(mut self, path: &'static str, text: impl Into<String>) -> Self {
        self.examples.push(Example { files: vec![(path, text.into())], reported: Vec::new() });
        self
    }

    /// Files that together must be reported at each `path:line` of `reported`, or not at all.
    pub(crate) fn example(mut self, files: &[(&'static str, &str)], reported: &[&str]) -> Self {
        let files = files.iter().map(|&(path, text)| (path, text.into())).collect();
        self.examples.push(Example { files, reported: reported.iter().map(|at| at.to_string()).collect() });
        self
    }

    /// Every violation of the rule, in the order of the files.
    pub(crate) fn violations(&self, files: &[File], tree: &Tree) -> Vec<Violation> {
        match self.check {
            Check::All(check) => check(files),
            Check::File(check) => files
                .iter()
                .flat_map(|file| check(file, tree).into_iter().map(|found| (file.path.clone(), found)))
                .collect(),
        }
    }

    /// What the examples show to be wrong with the rule itself.
    pub(crate) fn self_test(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.examples.iter().any(|example| example.reported.is_empty()) {
            wrong.push(format!("{}: has no good example", self.name));
        }
        if self.examples.iter().all(|example| example.reported.is_empty()) {
            wrong.push(format!("{}: has no bad example", self.name));
        }
        let tree: Tree = ["docs", "docs/here.md", "crates", "crates/sync", "crates/sync/src"].map(String::from).into();
        for Example { files, reported } in &self.examples {
            let loaded: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
            let found = self.violations(&loaded, &tree);
            let places: Vec<String> = found.iter().map(|(path, (line, _))| format!("{path}:{line}")).collect();
            if places != *reported {
                wrong.push(format!("{}: expected {reported:?}, reported {found:?} in {files:?}", self.name));
            }
            let without_advice = found.iter().filter(|(_, (_, message))| !message.contains("; "));
            wrong.extend(without_advice.map(|(_, (_, message))| format!("no advice: {message}")));
        }
        wrong
    }
}
