//! The modules of a crate, seen from its root: which of them a file belongs to, and which it imports.

use crate::source::{File, find_word, is_ident};
use std::collections::BTreeSet;

/// A name directly below the crate root that a line reaches, by `crate::name` or through `super`.
pub(crate) struct Reach<'a> {
    pub(crate) line: usize,
    pub(crate) name: &'a str,
}

/// The names of the modules that enclose what stands in the file, outermost first; empty for a crate's root.
pub(crate) fn module_path(file: &File) -> Vec<&str> {
    let below = file.path.split_once("/src/").map_or("", |(_, below)| below);
    let mut modules: Vec<&str> = below.strip_suffix(".rs").unwrap_or(below).split('/').collect();
    if modules.last() == Some(&"mod") || matches!(modules.as_slice(), ["lib" | "main" | ""]) {
        modules.pop();
    }
    modules
}

/// Everything below the root that the file's product code reaches; macros apart, whose names ignore modules.
pub(crate) fn reaches(file: &File) -> Vec<Reach<'_>> {
    let depth = |line: usize| {
        let inline = file.inline_modules.iter().filter(|(first, last)| (first..=last).contains(&&line)).count();
        module_path(file).len() + inline
    };
    let imports = file.imports.iter().map(|import| (import.first, import.path.as_str()));
    let named = imports.chain(paths_in_bodies(file)).filter(|(line, _)| !file.in_test[line - 1]);
    let mut found: Vec<Reach<'_>> =
        named.filter_map(|(line, path)| Some(Reach { line, name: below_root(path, depth(line))? })).collect();
    found.sort_by_key(|reach| (reach.line, reach.name));
    found
}

/// What follows each `crate` or `super` outside of `use` items, with its line.
fn paths_in_bodies(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.code().filter(|&(line, _)| !file.is_import(line)).flat_map(|(line, text)| {
        let starts = ["crate", "super"].into_iter().flat_map(move |word| find_word(text, word));
        // `pub(in crate::a)` imports nothing.
        let is_first = |at: &usize| !text[..*at].ends_with("::") && !text[..*at].ends_with("(in ");
        starts.filter(is_first).map(move |at| (line, &text[at..])).collect::<Vec<_>>()
    })
}

/// Every module or item that the file's product code reaches inside its crate, as the names that lead to it from the root:
/// a path of a `use` item may also begin with a module directly below the file's own, of which `modules` has all.
pub(crate) fn reached_paths<'a>(file: &'a File, modules: &BTreeSet<Vec<&str>>) -> BTreeSet<Vec<&'a str>> {
    let inline =
        |line: usize| file.inline_modules.iter().filter(|(first, last)| (first..=last).contains(&&line)).count();
    let own = module_path(file);
    let from_root = |line: usize, path: &'a str| {
        let mut names = path.split("::").map(|name| name.split(|c| !is_ident(c)).next().unwrap_or_default()).peekable();
        let mut at = match *names.peek()? {
            "crate" => Vec::new(),
            "super" | "self" => own.clone(),
            first => {
                let below: Vec<&str> = own.iter().copied().chain([first]).collect();
                return modules.contains(&below).then(|| own.iter().copied().chain(names).collect());
            }
        };
        let ups = path.split("::").take_while(|name| *name == "super").count();
        let leaves = if path.starts_with("super") { ups.saturating_sub(inline(line)) } else { 0 };
        at.truncate(at.len().saturating_sub(leaves));
        at.extend(names.skip(ups.max(1)).take_while(|name| !name.is_empty()));
        Some(at)
    };
    let imports = file.imports.iter().map(|import| (import.first, import.path.as_str()));
    let named = imports.chain(paths_in_bodies(file)).filter(|(line, _)| !file.in_test[line - 1]);
    named.filter_map(|(line, path)| from_root(line, path)).collect()
}

/// The name that follows the root in `path`, as it reads in a module `depth` below the root.
fn below_root(path: &str, depth: usize) -> Option<&str> {
    let mut rest = path;
    let mut ups = 0;
    while let Some(after) = rest.strip_prefix("super::") {
        (rest, ups) = (after, ups + 1);
    }
    let below = if ups > 0 && ups == depth { rest } else { path.strip_prefix("crate::")? };
    let end = below.find(|c| !is_ident(c)).unwrap_or(below.len());
    let (name, after) = below.split_at(end);
    (!name.is_empty() && !after.starts_with('!')).then_some(name)
}
