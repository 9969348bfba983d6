//! Names that another party chose: the product writes them through `Foreign`, and the command through one function.
//!
//! A textual rule cannot see types. It sees `display()`, and the words by which this code calls names.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, find_word, has_word};

/// Words for values that another party chose.
const NAMES: [&str; 11] =
    ["path", "mountpoint", "source", "dir", "directory", "file_name", "key", "url", "link", "component", "fs_type"];

/// Macros that write text.
const WRITERS: [&str; 9] =
    ["print!", "println!", "eprint!", "eprintln!", "write!", "writeln!", "format!", "format_args!", "panic!"];

/// The crate of the command, its file that may write to standard error, and the file for hints, which has several lines.
const COMMAND: &str = "crates/cli/src/";
const DOORS: [&str; 2] = ["crates/cli/src/output.rs", "crates/cli/src/mount/hints.rs"];

/// Code for tests, whose text no user reads.
const NO_PRODUCT: [&str; 2] = ["crates/testkit/", "crates/hostfs/src/faults/"];

/// The errors of this crate have the keys of objects, and the words of servers.
const WITH_FOREIGN_ERRORS: &str = "crates/objectfs/src/";

pub(crate) fn rules() -> Vec<Rule> {
    let host = "crates/hostfs/src/shared.rs";
    let cli = "crates/cli/src/list.rs";
    vec![
        Rule::new("foreign-names", foreign_names)
            .bad(host, "fn f() {\n    let a = source.display();\n}\n", &[2])
            .bad(host, "fn f() {\n    format!(\"{}\", name.to_string_lossy());\n}\n", &[2])
            .bad(host, "fn f() {\n    format!(\"{path}\");\n    format!(\"at {path:?}\");\n}\n", &[2, 3])
            .bad(host, "#[error(\"{url:>9}: {reason}\")]\nstruct A;\n", &[1])
            .bad(host, "fn f() {\n    tracing::warn!(%path, \"a\");\n    tracing::warn!(?key, \"a\");\n}\n", &[2, 3])
            .bad(
                host,
                "fn f() {\n    tracing::warn!(key, \"a\");\n    tracing::warn!(at = ?path, \"a\");\n}\n",
                &[2, 3],
            )
            .bad(host, "fn f() {\n    tracing::warn!(\n        ms,\n        %path,\n        \"a\"\n    );\n}\n", &[4])
            .bad("crates/objectfs/src/store.rs", "fn f() {\n    tracing::debug!(%error, \"a\");\n}\n", &[2])
            .bad(cli, "fn f() {\n    eprintln!(\"lightfoot: {error}\");\n}\n", &[2])
            .good(cli, "fn f() {\n    report(error);\n}\n")
            .good("crates/cli/src/output.rs", "fn f() {\n    eprintln!(\"lightfoot: {}\", Foreign::text(error));\n}\n")
            .good(host, "fn f() {\n    tracing::warn!(path = %Foreign::of(path), %error, \"a\");\n}\n")
            .good(host, "fn f() {\n    g(%path, key, \"a path: {{path}}\");\n    // a.display()\n}\n")
            .good(host, "#[cfg(test)]\nmod tests {\n    fn f() {\n        a.display();\n    }\n}\n")
            .good("crates/hostfs/tests/a.rs", "fn f() {\n    a.display();\n}\n")
            .good("lab/report/src/a.rs", "fn f() {\n    a.display();\n}\n"),
    ]
}

fn foreign_names(file: &File, _: &Tree) -> Vec<Finding> {
    let is_product = file.path.starts_with("crates/") && file.crate_of_src().is_some();
    if !is_product || NO_PRODUCT.iter().any(|dir| file.path.starts_with(dir)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    // The parentheses of an event that are open at the end of a line.
    let mut open = 0;
    for (line, code) in file.product_code() {
        let begins = find_word(code, "tracing").first().map_or("", |&at| &code[at..]);
        let event = if open > 0 { code } else { begins };
        open = (open + event.matches('(').count()).saturating_sub(event.matches(')').count());
        let writes = !event.is_empty() || WRITERS.iter().any(|writer| has_word(code, writer));
        if code.contains(".display()") || writes && code.contains("to_string_lossy()") {
            found.push((line, "a path as it is; write `Foreign::of(path)`".into()));
        }
        if let Some(name) = NAMES.iter().find(|name| has_capture(&file.literals[line - 1], name)) {
            found.push((line, format!("`{{{name}}}` as it is; write `{{}}` and `Foreign::of({name})`")));
        }
        if let Some(name) = field(event, &file.path) {
            found.push((line, format!("`{name}` in an event as it is; write `{name} = %Foreign::of({name})`")));
        }
        if has_word(code, "eprintln!") && file.path.starts_with(COMMAND) && !DOORS.contains(&&*file.path) {
            found.push((line, "a second door to standard error; use `output::report`".into()));
        }
    }
    found
}

/// Whether a format string has the variable `name` in braces, with or without a format.
fn has_capture(literal: &str, name: &str) -> bool {
    let ends = |rest: &str| rest.starts_with([':', '}']);
    let starts = |before: &str| before.ends_with('{') && !before.ends_with("{{");
    literal.match_indices(name).any(|(at, _)| starts(&literal[..at]) && ends(&literal[at + name.len()..]))
}

/// The first name that is a field of an event: `%path`, `?path`, or `path` between commas.
fn field(code: &str, path: &str) -> Option<&'static str> {
    let is_field = |name: &str| {
        find_word(code, name).into_iter().any(|at| {
            let (before, after) = (code[..at].trim_end(), code[at + name.len()..].trim_start());
            before.ends_with(['%', '?'])
                || before.ends_with(['(', ',']) && after.starts_with(',') && !before.contains("::of(")
        })
    };
    let error = path.starts_with(WITH_FOREIGN_ERRORS).then_some("error");
    NAMES.into_iter().chain(error).find(|name| is_field(name))
}
