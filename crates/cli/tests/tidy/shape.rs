//! Shape: how long files and functions are, what files are called, and that each says what it is.

use crate::rule::{Finding, Rule, Tree};
use crate::source::File;

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 500;
const FILE_LINES_AT_MOST: usize = 800;

/// Files that may be longer than [`FILE_LINES`] (never than [`FILE_LINES_AT_MOST`]), and why.
const LONG_FILES: &[(&str, &str)] =
    &[("crates/fuse/src/transport/operations.rs", "one implementation of a trait of forty methods, each a few lines")];

/// File names that say nothing: whatever has no home would end up there.
const NAMES_OF_NOTHING: [&str; 9] = ["utils", "util", "common", "types", "helpers", "helper", "misc", "stuff", "tools"];

pub(crate) fn rules() -> Vec<Rule> {
    let doc = "//! A file.\n";
    let lines = |count: usize| format!("{doc}{}", "const A: u8 = 0;\n".repeat(count - 1));
    let function = |count: usize| format!("fn long() {{\n{}}}\n", "    step(\"}\");\n".repeat(count - 2));
    vec![
        Rule::new("file-length", file_length)
            .bad("crates/vfs/src/walk.rs", lines(501), &[501])
            .bad("crates/cli/tests/walk.rs", lines(801), &[801])
            .good("crates/vfs/src/walk.rs", lines(500))
            .good("docs/walk.md", lines(900)),
        Rule::new("function-length", function_length)
            .bad("crates/vfs/src/walk.rs", function(71), &[1])
            .bad("crates/vfs/tests/walk.rs", format!("mod a {{\n{}}}", function(71)), &[2])
            .good("crates/vfs/src/walk.rs", function(70) + &function(70)),
        Rule::new("file-names", file_names)
            .bad("crates/vfs/src/utils.rs", doc, &[1])
            .bad("crates/vfs/tests/common/mod.rs", doc, &[1])
            .good("crates/vfs/src/dentry.rs", doc),
        Rule::new("module-doc", module_doc)
            .bad("crates/vfs/src/walk.rs", "use a::b;\n//! Too late.\n", &[1])
            .bad("crates/vfs/src/walk.rs", "// Not a doc.\n/// Of the item.\nfn a() {}\n", &[1])
            .good("crates/vfs/src/lib.rs", "#![forbid(unsafe_code)]\n//! The walk.\nuse a::b;\n")
            .good("crates/vfs/tests/walk.rs", "use a::b;\n"),
    ]
}

fn file_length(file: &File, _: &Tree) -> Vec<Finding> {
    let count = file.lines.len();
    let is_excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    let limit = if is_excused { FILE_LINES_AT_MOST } else { FILE_LINES };
    if !file.is_rust() || count <= limit {
        return Vec::new();
    }
    let excuse = if count <= FILE_LINES_AT_MOST { ", or give the reason in LONG_FILES of tidy/shape.rs" } else { "" };
    vec![(count, format!("a file of {count} lines, the limit is {limit}; split it by nouns{excuse}"))]
}

fn function_length(file: &File, _: &Tree) -> Vec<Finding> {
    let too_long = file.functions.iter().filter(|f| f.last - f.first + 1 > FUNCTION_LINES);
    too_long
        .map(|f| {
            let count = f.last - f.first + 1;
            (f.first, format!("`{}` has {count} lines, the limit is {FUNCTION_LINES}; split it by steps", f.name))
        })
        .collect()
}

fn file_names(file: &File, _: &Tree) -> Vec<Finding> {
    let parts = file.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let empty_names = parts.filter(|part| file.is_rust() && NAMES_OF_NOTHING.contains(part));
    empty_names.map(|name| (1, format!("`{name}` names nothing; name the file after its one noun"))).collect()
}

fn module_doc(file: &File, _: &Tree) -> Vec<Finding> {
    let is_attribute = |line: &&String| line.starts_with("#![") || line.trim().is_empty();
    let has_doc = file.lines.iter().find(|line| !is_attribute(line)).is_some_and(|line| line.starts_with("//!"));
    if file.crate_of_src().is_none() || !file.is_rust() || has_doc {
        return Vec::new();
    }
    vec![(1, "no module doc; begin the file with `//!`: what it is, what not, how it is locked, its source".into())]
}
