//! Circles of imports inside the rooms of a crate. A module that imports itself by way of others can be read only together
//! with all of them, so each room has a list of the sizes of its circles, which only becomes shorter.

use crate::modules::{module_path, reached_paths};
use crate::rooms::reachable;
use crate::rule::{Rule, Violation};
use crate::source::File;
use std::collections::{BTreeMap, BTreeSet};

/// Crate, room, and the number of modules in each circle inside the room, the largest first. A room that is not listed has none.
/// A file and the directory of its name are one module; the file of the room itself is a module of the room.
const CIRCLES: &[(&str, &str, &[usize])] = &[
    ("vfs", "cache", &[10]),
    ("vfs", "notify", &[2]),
    ("vfs", "ops", &[2]),
    ("vfs", "record_lock", &[3]),
    ("vfs", "slots", &[7]),
    ("vfs", "walk", &[2]),
];

/// The crates whose rooms are searched.
const CRATES: &[&str] = &["vfs"];

pub(crate) fn rules() -> Vec<Rule> {
    vec![with_examples(Rule::of_all("room-circles", room_circles))]
}

fn with_examples(rule: Rule) -> Rule {
    let head = ("crates/vfs/src/mount.rs", "fn f() {}\n");
    let place = "crates/vfs/src/mount/place.rs";
    let context = "crates/vfs/src/mount/context.rs";
    let below = "crates/vfs/src/mount/context/own.rs";
    let above = ("crates/vfs/src/mount/list.rs", "use crate::mount::place::A;\n");
    rule.example(
        &[head, (place, "use crate::mount::context::A;\n"), above, (below, "use super::super::place::B;\n")],
        &["crates/vfs/src/mount.rs:1"],
    )
    .example(
        &[("crates/vfs/src/mount.rs", "use place::A;\n"), (place, "fn f() {\n    super::g();\n}\n")],
        &["crates/vfs/src/mount.rs:1"],
    )
    .example(&[("crates/vfs/src/mount.rs", "use place::f;\n"), (place, "pub(in crate::mount) fn f() {}\n")], &[])
    .example(&[head, ("crates/vfs/src/base.rs", "use crate::mount::A;\n"), (place, "use crate::base::A;\n")], &[])
    .example(
        &[
            head,
            (place, "mod a {\n    use super::B;\n}\n"),
            (context, "use crate::mount::place::A;\n"),
            (below, "use super::A;\n"),
        ],
        &[],
    )
    .example(
        &[
            head,
            (place, "use crate::mount::context::A;\n"),
            (context, "#[cfg(test)]\nmod tests {\n    use crate::mount::place::A;\n}\n"),
        ],
        &[],
    )
}

fn room_circles(files: &[File]) -> Vec<Violation> {
    CRATES.iter().flat_map(|name| circles_in_rooms(files, name)).collect()
}

fn circles_in_rooms(files: &[File], name: &str) -> Vec<Violation> {
    let of_crate: Vec<&File> = files.iter().filter(|f| f.is_rust() && f.crate_of_src() == Some(name)).collect();
    let rooms: BTreeSet<&str> = of_crate.iter().filter_map(|file| module_path(file).first().copied()).collect();
    let mut found = Vec::new();
    for room in rooms {
        let in_room: Vec<&File> =
            of_crate.iter().copied().filter(|file| module_path(file).first() == Some(&room)).collect();
        let circles = circles(&in_room);
        let sizes: Vec<usize> = circles.iter().map(BTreeSet::len).collect();
        let listed =
            CIRCLES.iter().find(|(of, known, _)| (*of, *known) == (name, room)).map_or(&[][..], |known| known.2);
        let is_there = in_room.iter().any(|file| module_path(file).len() == 1);
        if sizes != listed && is_there {
            let named: Vec<String> =
                circles.iter().map(|circle| circle.iter().copied().collect::<Vec<_>>().join(", ")).collect();
            let message = format!(
                "circles of {sizes:?} modules in `{room}`, where knots.rs lists {listed:?}: [{}]; cut an import, or list the lower number",
                named.join("] [")
            );
            found.push((format!("crates/{name}/src/{room}.rs"), (1, message)));
        }
    }
    found
}

/// The sets of modules of one room of which each imports all others, maybe through others; the largest first.
fn circles<'a>(files: &[&'a File]) -> Vec<BTreeSet<&'a str>> {
    let with_parents = |path: Vec<&'a str>| (1..=path.len()).map(move |len| path[..len].to_vec());
    let modules: BTreeSet<Vec<&str>> = files.iter().flat_map(|file| with_parents(module_path(file))).collect();
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let own = module_path(file);
        let targets = reached_paths(file, &modules).into_iter().filter(|path| path.first() == own.first());
        let targets =
            targets.map(|path| if path.len() > 1 && modules.contains(&path[..2]) { path[1] } else { path[0] });
        let from = own.get(1).copied().unwrap_or(own[0]);
        imports.entry(from).or_default().extend(targets.filter(|to| *to != from));
    }
    let below: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|&at| (at, reachable(at, &imports))).collect();
    let leads = |from: &str, to: &str| below.get(from).is_some_and(|all| all.contains(to));
    let circle = |&at: &&'a str| imports.keys().copied().filter(|&to| leads(at, to) && leads(to, at)).collect();
    let all: BTreeSet<BTreeSet<&str>> = imports.keys().filter(|at| leads(at, at)).map(circle).collect();
    let mut all: Vec<BTreeSet<&str>> = all.into_iter().collect();
    all.sort_by_key(|circle| core::cmp::Reverse(circle.len()));
    all
}
