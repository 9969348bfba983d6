//! Shape: how long files are, what they are called, and that each begins with a doc.

use crate::modules::module_path;
use crate::rule::{Finding, Rule, Tree, Violation};
use crate::source::{File, has_word};
use std::collections::BTreeMap;

/// Crates whose modules list what is in them, if that is more than one file.
const WITH_LISTS: &[&str] = &["vfs"];

/// Documents that list the files below a directory.
const LISTING_DOCUMENTS: &[(&str, &str)] = &[("docs/walk.md", "crates/vfs/src/walk/")];

/// Lines of code of a file; of tests there may be more.
const CODE_LINES: usize = 400;
const CODE_LINES_OF_TESTS: usize = 500;

/// Files that may have more (never more than [`CODE_LINES_OF_TESTS`]), and why.
const LONG_FILES: &[(&str, &str)] = &[
    ("fuzz/src/session.rs", "one request of the protocol each"),
    ("lab/eras/src/tree/operations.rs", "one operation of the eras' trait each"),
];

/// File names that every crate may have any number of.
const NAMES_OF_MANY: [&str; 4] = ["mod.rs", "tests.rs", "lib.rs", "main.rs"];

/// File names without a noun: anything could end up there.
const NAMES_OF_NOTHING: [&str; 9] = ["utils", "util", "common", "types", "helpers", "helper", "misc", "stuff", "tools"];

pub(crate) fn rules() -> Vec<Rule> {
    let doc = "//! A file.\n";
    let lines = |count: usize| format!("{doc}{}", "const A: u8 = 0;\n".repeat(count - 1));
    vec![
        Rule::new("file-length", file_length)
            .bad("crates/vfs/src/walk.rs", lines(402), &[402])
            .bad("crates/cli/tests/walk.rs", lines(502), &[502])
            .good("crates/vfs/src/walk.rs", lines(401))
            .good("crates/vfs/src/walk.rs", doc.repeat(900))
            .good("docs/walk.md", lines(900)),
        Rule::new("file-names", file_names)
            .bad("crates/vfs/src/utils.rs", doc, &[1])
            .bad("crates/vfs/tests/common/mod.rs", doc, &[1])
            .good("crates/vfs/src/dentry.rs", doc)
            .good("tools/tidy/tests/house/shape.rs", doc),
        Rule::of_all("shared-names", shared_names)
            .example(
                &[("crates/vfs/src/mount/place.rs", doc), ("crates/vfs/src/walk/place.rs", doc)],
                &["crates/vfs/src/mount/place.rs:1", "crates/vfs/src/walk/place.rs:1"],
            )
            .example(
                &[
                    ("crates/vfs/src/mount/mod.rs", doc),
                    ("crates/vfs/src/walk/mod.rs", doc),
                    ("crates/vfs/src/walk/tests.rs", doc),
                    ("crates/vfs/src/slots/tests.rs", doc),
                    ("crates/vfs/src/slots/place.rs", doc),
                    ("crates/vfs/tests/place.rs", doc),
                    ("crates/fuse/src/place.rs", doc),
                ],
                &[],
            ),
        Rule::new("module-doc", module_doc)
            .bad("crates/vfs/src/walk.rs", "use a::b;\n//! Too late.\n", &[1])
            .bad("crates/vfs/src/walk.rs", "// Not a doc.\n/// Of the item.\nfn a() {}\n", &[1])
            .good("crates/vfs/src/lib.rs", "#![forbid(unsafe_code)]\n//! The walk.\nuse a::b;\n")
            .good("crates/vfs/tests/walk.rs", "use a::b;\n"),
        Rule::new("module-lists", module_list)
            .bad("crates/vfs/src/walk.rs", "//! [`a`] and b.\n\nmod a;\npub(crate) mod b;\n", &[4])
            .bad("crates/vfs/src/walk.rs", "//! No code.\n#[cfg(unix)]\nmod a;\nmod b;\n", &[3, 4])
            .good("crates/vfs/src/walk.rs", "//! [`mod@a`], [b](b::B), `c.rs`.\n\nmod a;\nmod b;\nmod c;\n")
            .good("crates/vfs/src/walk.rs", "//! [`a`].\n\nmod a;\n#[cfg(test)]\nmod tests;\nfn f() {}\n")
            .good("crates/vfs/src/walk.rs", "//! One.\n\nmod a;\nmod b {\n}\n")
            .good("crates/vfs/src/lib.rs", "//! One.\n\nmod a;\nmod b;\n")
            .good("crates/fuse/src/a.rs", "//! One.\n\nmod b;\nmod c;\n"),
        Rule::of_all("document-lists", document_lists)
            .example(
                &[
                    ("docs/walk.md", "| `crates/vfs/src/walk/a.rs`, `b.rs` |\n"),
                    ("crates/vfs/src/walk/a.rs", doc),
                    ("crates/vfs/src/walk/b.rs", doc),
                    ("crates/vfs/src/walk/a/c.rs", doc),
                    ("crates/vfs/src/walk/a/tests.rs", doc),
                ],
                &["docs/walk.md:1"],
            )
            .example(&[("docs/walk.md", "`a/c.rs`\n"), ("crates/vfs/src/walk/a/c.rs", doc)], &[]),
    ]
}

fn file_length(file: &File, _: &Tree) -> Vec<Finding> {
    let lines: Vec<usize> = (1..=file.lines.len()).filter(|&line| file.has_code(line)).collect();
    let is_excused =
        LONG_FILES.iter().any(|(path, _)| *path == file.path) || file.in_test.iter().all(|&in_test| in_test);
    let limit = if is_excused { CODE_LINES_OF_TESTS } else { CODE_LINES };
    if !file.is_rust() || lines.len() <= limit {
        return Vec::new();
    }
    let message = format!(
        "{} lines of code, the limit is {limit}; split the file by nouns, or give the reason in LONG_FILES of tidy/shape.rs",
        lines.len()
    );
    vec![(lines[limit], message)]
}

fn file_names(file: &File, _: &Tree) -> Vec<Finding> {
    let below_street = file.path.split('/').skip(1);
    let parts = below_street.map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let empty_names = parts.filter(|part| file.is_rust() && NAMES_OF_NOTHING.contains(part));
    empty_names
        .map(|name| (1, format!("`{name}` is not the name of one thing; name the file after its noun")))
        .collect()
}

fn shared_names(files: &[File]) -> Vec<Violation> {
    let mut by_name: BTreeMap<(&str, &str), Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if let Some(of) = file.crate_of_src().filter(|_| !NAMES_OF_MANY.contains(&name)) {
            by_name.entry((of, name)).or_default().push(file);
        }
    }
    let shared = by_name.into_iter().filter(|(_, files)| files.len() > 1);
    let message =
        |of: &str, name: &str| (1, format!("`{of}` has more than one `{name}`; name each after what it holds"));
    shared
        .flat_map(|((of, name), files)| files.into_iter().map(move |file| (file.path.clone(), message(of, name))))
        .collect()
}

fn module_doc(file: &File, _: &Tree) -> Vec<Finding> {
    let is_attribute = |line: &&String| line.starts_with("#![") || line.trim().is_empty();
    let has_doc = file.lines.iter().find(|line| !is_attribute(line)).is_some_and(|line| line.starts_with("//!"));
    if file.crate_of_src().is_none() || !file.is_rust() || has_doc {
        return Vec::new();
    }
    vec![(
        1,
        "no module doc; begin the file with `//!`: what it is, what it is not, how it is locked, its source".into(),
    )]
}

/// The modules that the file declares, other than for tests, with their lines.
fn declared<'a>(file: &'a File) -> Vec<(usize, &'a str)> {
    let module = |(line, text): (usize, &'a str)| {
        let (visibility, name) = text.trim_end().strip_suffix(';')?.rsplit_once(' ')?;
        (!text.starts_with(' ') && has_word(visibility, "mod")).then_some((line, name))
    };
    file.product_code().filter_map(module).collect()
}

fn module_list(file: &File, _: &Tree) -> Vec<Finding> {
    let is_checked = file.crate_of_src().is_some_and(|of| WITH_LISTS.contains(&of)) && !module_path(file).is_empty();
    let declared = declared(file);
    if !is_checked || declared.len() < 2 {
        return Vec::new();
    }
    let head: Vec<&str> = file.lines.iter().filter_map(|line| line.strip_prefix("//!")).collect();
    let head = head.join("\n");
    let is_named = |name: &str| {
        let ways = [format!("`{name}`"), format!("`mod@{name}`"), format!("{name}.rs`"), format!("]({name}")];
        ways.iter().any(|way| head.contains(way.as_str()))
    };
    let unnamed = declared.into_iter().filter(|(_, name)| !is_named(name));
    unnamed.map(|(line, name)| (line, format!("the module's doc lacks `{name}`; say there what is in it"))).collect()
}

fn document_lists(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, dir) in LISTING_DOCUMENTS {
        let Some(document) = files.iter().find(|file| file.path == *path) else { continue };
        let text = document.lines.join("\n");
        let below =
            files.iter().filter_map(|file| file.path.strip_prefix(dir)).filter(|name| !name.ends_with("tests.rs"));
        let unnamed = below.filter(|name| {
            let ends = [format!("/{name}`"), format!("`{name}`")];
            !ends.iter().any(|end| text.contains(end.as_str()))
        });
        found.extend(unnamed.map(|name| {
            let message = format!("the table of files lacks `{dir}{name}`; say what it has");
            (document.path.clone(), (1, message))
        }));
    }
    found
}
