//! Rooms: modules of a crate in an order in which each imports only those before it, so that a reader can begin at the
//! first and stop at any; and crates whose modules need no such order as long as none imports itself by way of others.

use crate::modules::{module_path, reaches};
use crate::rule::{Rule, Violation};
use crate::source::{File, find_word, is_ident};
use std::collections::{BTreeMap, BTreeSet};

/// Crate, and its rooms in order. The root of the crate comes after them all.
const ROOMS: &[(&str, &[&str])] =
    &[("vfs", &["base", "notify", "record_lock", "slots", "fs", "cache", "layers", "mount", "walk", "ops"])];

/// Crate, type, and the rooms besides its own in which it has inherent `impl`s.
const METHODS_ELSEWHERE: &[(&str, &str, &[&str])] = &[("vfs", "Context", &["walk", "ops"])];

/// Crates whose top-level modules form no circle of imports, except among those modules that are one thing in several files.
const WITHOUT_CIRCLES: &[(&str, &[&str])] = &[
    ("cli", &[]),
    ("eras", &[]),
    ("fuse", &[]),
    ("fusedev", &[]),
    ("hostfs", &[]),
    // Operations on paths open files and directories, and these have operations on paths.
    ("lightfoot", &["context", "dir", "file", "read_dir", "view"]),
    ("objectfs", &[]),
    ("pathfs", &[]),
    ("prim", &[]),
    ("ramfs", &[]),
    ("report", &[]),
    // The engine fills what these record, and they read its clock and its state.
    ("sim", &["engine", "footprint", "lockmeter", "per_machine", "profile"]),
    ("sync", &[]),
    ("testkit", &[]),
];

pub(crate) fn rules() -> Vec<Rule> {
    vec![
        with_rooms_examples(Rule::of_all("rooms", rooms)),
        with_impl_examples(Rule::of_all("impl-rooms", impl_rooms)),
        with_circle_examples(Rule::of_all("circles", circles)),
    ]
}

fn with_rooms_examples(rule: Rule) -> Rule {
    let base = ("crates/vfs/src/base/name.rs", "pub struct Name;\n");
    let dentry = "crates/vfs/src/slots/dentry.rs";
    let mount = "crates/vfs/src/mount.rs";
    let walk = "crates/vfs/src/walk/rcu.rs";
    let in_body = "fn f(x: &crate::ops::X) {\n    super::super::ops::g();\n    super::g();\n}\n";
    let tested = "#[cfg(test)]\nmod tests {\n    use crate::ops::Open;\n}\nconst A: u8 = crate::one!();\n";
    rule.example(&[base, (dentry, "use crate::walk::Step;\n")], &["crates/vfs/src/slots/dentry.rs:1"])
        .example(
            &[base, (mount, "use crate::{base::Name, walk::{Step, self}};\nuse crate::Dentry;\n")],
            &["crates/vfs/src/mount.rs:1", "crates/vfs/src/mount.rs:1", "crates/vfs/src/mount.rs:2"],
        )
        .example(&[base, (walk, in_body)], &["crates/vfs/src/walk/rcu.rs:1", "crates/vfs/src/walk/rcu.rs:2"])
        .example(&[base, ("crates/vfs/src/tree.rs", "fn f() {}\n")], &["crates/vfs/src/tree.rs:1"])
        .example(&[base, (walk, "use crate::base::Name;\nuse crate::walk::A;\nuse super::B;\n")], &[])
        .example(&[base, (dentry, tested)], &[])
        .example(&[base, ("crates/vfs/src/lib.rs", "pub use crate::ops::Open;\n")], &[])
        .example(&[base, ("crates/fuse/src/a.rs", "use crate::b::C;\n")], &[])
        .example(&[base, (dentry, "// crate::ops::Open\nconst A: &str = \"crate::ops\";\n")], &[])
}

fn with_impl_examples(rule: Rule) -> Rule {
    let name = ("crates/vfs/src/base/name.rs", "pub struct Name;\nimpl Name {}\n");
    let context = ("crates/vfs/src/mount/context.rs", "pub struct Context<'a>;\n");
    let lock = "crates/vfs/src/record_lock/a.rs";
    let bounded = "impl<'a, T: Into<A>> Context<'a> where T: for<'b> B<'b> {\n}\n";
    rule.example(&[name, (lock, "impl Name {\n}\n")], &["crates/vfs/src/record_lock/a.rs:1"])
        .example(
            &[name, context, (lock, "impl<'a> crate::mount::Context<'a> {\n}\n")],
            &["crates/vfs/src/record_lock/a.rs:1"],
        )
        .example(&[name, context, ("crates/vfs/src/ops/a.rs", bounded)], &[])
        .example(&[name, (lock, "impl From<A> for Name {}\nfn f() -> impl Name {}\nimpl Other {}\n")], &[])
        .example(&[name, ("crates/vfs/src/base/a.rs", "impl Name {}\n")], &[])
        .example(&[name, ("crates/fuse/src/a.rs", "impl Name {}\n")], &[])
}

fn with_circle_examples(rule: Rule) -> Rule {
    let mount = "crates/fuse/src/mount.rs";
    let reason = "crates/fuse/src/reason.rs";
    rule.example(
        &[
            (mount, "use crate::source::Source;\n"),
            ("crates/fuse/src/mount/table.rs", "fn f() {}\n\nuse super::super::reason::A;\n"),
            (reason, "fn f() {\n    crate::source::g();\n}\n"),
            ("crates/fuse/src/source/tree.rs", "use crate::{mount, source::A};\n"),
        ],
        &[
            "crates/fuse/src/mount.rs:1",
            "crates/fuse/src/mount/table.rs:3",
            "crates/fuse/src/reason.rs:2",
            "crates/fuse/src/source/tree.rs:1",
        ],
    )
    .example(&[(mount, "use crate::Error;\n")], &["crates/fuse/src/mount.rs:1"])
    .example(&[(mount, "fn f() {}\nmod imp {\n    use super::Error;\n}\n")], &[])
    .example(
        &[
            ("crates/lightfoot/src/view.rs", "use crate::dir::Dir;\nuse crate::path::Path;\n"),
            ("crates/lightfoot/src/dir.rs", "use crate::view::View;\n"),
            ("crates/lightfoot/src/path.rs", "use crate::view::View;\n"),
        ],
        &["crates/lightfoot/src/view.rs:2", "crates/lightfoot/src/path.rs:1"],
    )
    .example(
        &[
            ("crates/fuse/src/main.rs", "use crate::mount::run;\nuse reason::Reason;\n"),
            (mount, "use crate::reason::A;\nuse self::table::B;\n"),
            (reason, "#[cfg(test)]\nmod tests {\n    use crate::mount::A;\n}\n"),
        ],
        &[],
    )
}

fn of_crate<'a>(files: &'a [File], name: &str) -> Vec<&'a File> {
    files.iter().filter(|file| file.is_rust() && file.crate_of_src() == Some(name)).collect()
}

fn rooms(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for &(name, rooms) in ROOMS {
        for file in of_crate(files, name) {
            found.extend(leaving_its_room(file, rooms).into_iter().map(|finding| (file.path.clone(), finding)));
        }
    }
    found
}

fn leaving_its_room(file: &File, rooms: &[&str]) -> Vec<(usize, String)> {
    let place = |name: &str| rooms.iter().position(|room| *room == name);
    let Some(own) = module_path(file).first().copied() else {
        return Vec::new();
    };
    let Some(own_place) = place(own) else {
        return vec![(1, format!("a module in no room; move it into one of {}", rooms.join(", ")))];
    };
    let wrong = |name: &str| match place(name) {
        None => Some(format!("`crate::{name}` stands at the root; import it from its room")),
        Some(other) if other > own_place => {
            Some(format!("`{own}` imports the later room `{name}`; move the item down, or the caller up"))
        }
        Some(_) => None,
    };
    reaches(file).iter().filter_map(|reach| Some((reach.line, wrong(reach.name)?))).collect()
}

fn impl_rooms(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for &(name, rooms) in ROOMS {
        let in_rooms = of_crate(files, name).into_iter();
        let in_rooms: Vec<(&File, &str)> = in_rooms
            .filter_map(|file| Some((file, *module_path(file).first()?)))
            .filter(|(_, room)| rooms.contains(room))
            .collect();
        let homes: BTreeSet<(&str, &str)> =
            in_rooms.iter().flat_map(|&(file, room)| types(file).into_iter().map(move |name| (name, room))).collect();
        let is_at_home = |item: &str, room: &str| {
            homes.contains(&(item, room))
                || !homes.iter().any(|(known, _)| *known == item)
                || METHODS_ELSEWHERE
                    .iter()
                    .any(|(of, known, also)| (*of, *known) == (name, item) && also.contains(&room))
        };
        for &(file, room) in &in_rooms {
            let strangers = inherent_impls(file).into_iter().filter(|(_, item)| !is_at_home(item, room));
            found.extend(strangers.map(|(line, item)| {
                let message = format!("`impl {item}` outside its type's room; make it a function that takes `&{item}`");
                (file.path.clone(), (line, message))
            }));
        }
    }
    found
}

/// The types and traits that the file's product code defines.
fn types(file: &File) -> Vec<&str> {
    let defined = file.product_code().flat_map(|(_, text)| {
        let keywords = ["struct", "enum", "union", "trait"].into_iter();
        keywords.flat_map(move |word| find_word(text, word).into_iter().map(move |at| ident(&text[at + word.len()..])))
    });
    defined.filter(|name| !name.is_empty()).collect()
}

/// Line and type of each `impl` without a trait in the file's product code.
fn inherent_impls(file: &File) -> Vec<(usize, String)> {
    let text = file.code.join("\n");
    let is_item = |at: usize| text[..at].trim_end().chars().next_back().is_none_or(|c| "{};]".contains(c));
    let mut found = Vec::new();
    for at in find_word(&text, "impl").into_iter().filter(|&at| is_item(at)) {
        let line = text[..at].matches('\n').count() + 1;
        let head = without_generics(&text[at + "impl".len()..]);
        let head = head.split('{').next().unwrap_or_default().split(" where").next().unwrap_or_default();
        if find_word(head, "for").is_empty() && !file.in_test[line - 1] {
            let path = head.trim().trim_start_matches("dyn ");
            found.push((line, ident(path.rsplit("::").next().unwrap_or_default()).into()));
        }
    }
    found
}

/// The text up to the next `{`, without what stands in angle brackets.
fn without_generics(text: &str) -> String {
    let mut depth = 0usize;
    let mut flat = String::new();
    let mut last = ' ';
    for c in text.chars().take_while(|&c| c != '{').map(|c| if c == '\n' { ' ' } else { c }) {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => flat.push(c),
            _ => {}
        }
        last = c;
    }
    flat
}

/// The identifier that `text` begins with, spaces apart.
fn ident(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.find(|c| !is_ident(c)).unwrap_or(text.len())]
}

fn circles(files: &[File]) -> Vec<Violation> {
    WITHOUT_CIRCLES.iter().flat_map(|(name, one)| circles_of(&of_crate(files, name), one)).collect()
}

fn circles_of(files: &[&File], one: &[&str]) -> Vec<Violation> {
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| module_path(file).first().copied()).collect();
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        if let Some(own) = module_path(file).first() {
            imports.entry(own).or_default().extend(reaches(file).iter().map(|reach| reach.name));
        }
    }
    let below: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|&module| (module, reachable(module, &imports))).collect();
    let is_inside = |own: &str, name: &str| one.contains(&own) && one.contains(&name);
    let mut found = Vec::new();
    for file in files {
        let Some(&own) = module_path(file).first() else { continue };
        for reach in reaches(file).iter().filter(|reach| reach.name != own && !is_inside(own, reach.name)) {
            let message = match below.get(reach.name) {
                None => format!("`crate::{}` stands at the root, which imports all; move it to a module", reach.name),
                Some(back) if back.contains(own) => {
                    format!(
                        "`{own}` imports `{}`, which imports `{own}`, maybe through others; break the circle",
                        reach.name
                    )
                }
                Some(_) => continue,
            };
            found.push((file.path.clone(), (reach.line, message)));
        }
    }
    found
}

/// All that `module` imports, also through others.
pub(crate) fn reachable<'a>(module: &'a str, imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![module];
    while let Some(next) = open.pop() {
        let targets = imports.get(next).into_iter().flatten().copied();
        open.extend(targets.filter(|target| found.insert(*target)));
    }
    found
}
