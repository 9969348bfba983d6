//! The facade: what the crates on `prim` must not use besides, so that loom and the simulator can stand in for the machine;
//! and which words a crate must not use at all.
//!
//! Most of the facade is in `clippy.toml`. Here is what clippy cannot see: types that `prim` re-exports from the standard
//! library have one definition by two paths, and a dependency is not code.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, find_word, has_word, words};

/// The crates that are compiled a second time on the simulated machine. The others (`hostfs`, `fuse` and those above) run
/// on the machine alone and may use the standard library and rustix.
const ON_THE_FACADE: [&str; 5] = ["sync", "vfs", "ramfs", "eras", "locks"];

/// Their dependencies, tests apart. `lock_api` has traits alone, `random` arithmetic alone; `serde` and `bitflags` derive
/// code for plain values.
const DEPENDENCIES: [&str; 9] = ["prim", "sync", "vfs", "ramfs", "locks", "lock_api", "random", "serde", "bitflags"];

/// The modules of the standard library that `prim` stands for, and the lints that check the rest.
const MODULES: [&str; 3] = ["core::sync", "std::sync", "alloc::sync"];
const LINTS: [&str; 3] = ["clippy::disallowed_macros", "clippy::disallowed_methods", "clippy::disallowed_types"];

/// What a static table may consist of.
const PLAIN_TYPES: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "bool", "char"];

/// Crate, and the words that no identifier of it may contain: they belong to a layer above.
const FOREIGN_WORDS: &[(&str, &[&str])] =
    &[("sync", &["dentry", "inode", "superblock", "path_walk", "pathwalk"]), ("ramfs", &["dentry", "dentries"])];

pub(crate) fn rules() -> Vec<Rule> {
    let test_module = "#[cfg(all(test, not(loom)))]\nmod tests {\n    use std::sync::Arc;\n    static A: u8 = 0;\n}\n";
    let all_lints = "#![cfg_attr(\n    not(test),\n    warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)\n)]\n";
    vec![
        Rule::new("facade", facade)
            .bad("crates/sync/src/rcu.rs", "use core::sync::atomic::fence;\nuse std::sync::Arc;\n", &[1, 2])
            .bad("crates/vfs/src/walk.rs", "use core::{\n    mem,\n    sync::atomic,\n};\n", &[1])
            .bad("lab/locks/src/mcs.rs", "fn a() {\n    let m = std::sync::Mutex::new(0);\n}\n", &[2])
            .bad("crates/sync/src/rcu.rs", "#[cfg(not(test))]\nmod a {\n    use std::sync;\n}\n", &[3])
            .bad("crates/ramfs/src/lib.rs", "#![warn(clippy::disallowed_methods, clippy::disallowed_types)]\n", &[1])
            .good("crates/vfs/src/lib.rs", all_lints)
            .good("crates/prim/src/park.rs", "use std::sync::Arc;\nuse core::sync::atomic::fence;\n")
            .good("crates/hostfs/src/lib.rs", "use std::sync::Arc;\n")
            .good("crates/sync/src/rcu.rs", "//! Not `std::sync`.\n// core::sync\nfn a() { f(\"std::sync\", 'x') }\n")
            .good("crates/sync/src/rcu.rs", test_module)
            .good("crates/vfs/src/walk.rs", "use core::{mem, ptr};\nuse sync::rcu;\nuse prim::atomic::fence;\n"),
        Rule::new("facade-dependencies", facade_dependencies)
            .bad("crates/vfs/Cargo.toml", "[dependencies]\nsync.workspace = true\nrustix = \"1\"\n", &[3])
            .bad(
                "lab/eras/Cargo.toml",
                "[target.'cfg(not(loom))'.dependencies]\n# Fast.\nparking_lot = { version = \"1\" }\n",
                &[3],
            )
            .good(
                "crates/sync/Cargo.toml",
                "[dependencies]\nprim.workspace = true\n\n[dev-dependencies]\nrustix = \"1\"\n",
            )
            .good("crates/hostfs/Cargo.toml", "[dependencies]\nrustix = \"1\"\n"),
        Rule::new("statics", statics)
            .bad("crates/vfs/src/walk.rs", "static mut A: u8 = 0;\npub(crate) static B: Lock = new();\n", &[1, 2])
            .bad(
                "crates/vfs/src/walk.rs",
                "static A: [AtomicU8; 2] = new();\nstatic mut B: [u8; 2] = [0; 2];\n",
                &[1, 2],
            )
            .good("crates/vfs/src/walk.rs", "static TABLE: [[u64; 2]; 17] = {\n};\n")
            .good("lab/locks/src/node.rs", "static NODES: PerMachine<PerCpu<Nodes>> = PerMachine::new(|| new());\n")
            .good("crates/vfs/src/walk.rs", "const A: &'static str = \"static B\"; // static\nfn f<T: 'static>() {}\n")
            .good("crates/sync/src/rcu.rs", test_module),
        Rule::new("foreign-words", foreign_words)
            .bad("crates/sync/src/rcu.rs", "struct A {\n    inode_count: u8,\n}\nfn get(d: &Dentry) {}\n", &[2, 4])
            .bad("crates/ramfs/src/node.rs", "struct DentryCache;\n", &[1])
            .good("crates/sync/src/rcu.rs", "/// As a dentry has.\nfn begin_odd() {} // inode\n")
            .good("crates/ramfs/src/node.rs", "struct Inode; // A dentry is none of our business.\n"),
    ]
}

fn is_on_the_facade(file: &File) -> bool {
    file.crate_of_src().is_some_and(|name| ON_THE_FACADE.contains(&name))
}

fn facade(file: &File, _: &Tree) -> Vec<Finding> {
    if !is_on_the_facade(file) {
        return Vec::new();
    }
    let in_line = file.product_code().filter(|&(line, _)| !file.is_import(line));
    let imported = file.imports.iter().map(|import| (import.first, import.path.as_str()));
    let named = in_line.chain(imported.filter(|(line, _)| !file.in_test[line - 1]));
    let mut found: Vec<Finding> = named
        .flat_map(|(line, text)| {
            let hits = MODULES.iter().filter(move |name| has_word(text, name));
            hits.map(move |name| {
                (line, format!("`{name}` goes around the facade; use `prim` or a primitive of `sync`"))
            })
        })
        .collect();
    let has_lint = |lint: &&str| file.code().any(|(_, text)| text.contains(*lint));
    let missing = LINTS.iter().filter(|lint| file.is_crate_root() && !has_lint(lint));
    found.extend(
        missing.map(|lint| (1, format!("the root of a crate on the facade; turn on `{lint}` outside of tests"))),
    );
    found.sort();
    found
}

fn facade_dependencies(file: &File, _: &Tree) -> Vec<Finding> {
    let dir = file.path.strip_suffix("/Cargo.toml").and_then(|dir| dir.rsplit('/').next());
    let is_checked = dir.is_some_and(|name| ON_THE_FACADE.contains(&name)) && !file.path.contains("/twins/");
    let mut is_listed = false;
    let mut found = Vec::new();
    for (i, line) in file.lines.iter().enumerate().filter(|_| is_checked) {
        if line.starts_with('[') {
            is_listed = line.ends_with("dependencies]") && !line.ends_with("-dependencies]");
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if is_listed && name.starts_with(char::is_alphabetic) && !DEPENDENCIES.contains(&name) {
            let message =
                format!("`{name}` below the facade; do without it, or show in facade.rs that it touches no machine");
            found.push((i + 1, message));
        }
    }
    found
}

fn statics(file: &File, _: &Tree) -> Vec<Finding> {
    if !is_on_the_facade(file) {
        return Vec::new();
    }
    let is_item = |text: &str| find_word(text, "static").iter().any(|&at| !text[..at].ends_with('\''));
    let items = file.product_code().filter(|(_, text)| is_item(text) && !is_table(text));
    items.map(|(line, _)| (line, "a static; make it a const, or hang the state off an instance".into())).collect()
}

/// Whether the line begins a static that is allowed: numbers, in arrays or alone, which no thread can write to; or a
/// `PerMachine`, of which each simulation and each execution of a loom model has its own.
fn is_table(text: &str) -> bool {
    let is_plain = |word: &str| PLAIN_TYPES.contains(&word) || word.bytes().all(|c| c.is_ascii_digit());
    let of_type = text.split_once(':').and_then(|(_, rest)| rest.split_once('='));
    !has_word(text, "mut")
        && of_type.is_some_and(|(name, _)| words(name).all(is_plain) || name.trim().starts_with("PerMachine<"))
}

fn foreign_words(file: &File, _: &Tree) -> Vec<Finding> {
    let Some((name, foreign)) = FOREIGN_WORDS.iter().find(|(name, _)| file.crate_of_src() == Some(name)) else {
        return Vec::new();
    };
    let hit = |text: &str| {
        words(text).find(|word| foreign.iter().any(|foreign| word.to_lowercase().contains(foreign))).map(String::from)
    };
    let hits = file.product_code().filter_map(|(line, text)| Some((line, hit(text)?)));
    hits.map(|(line, word)| (line, format!("`{word}` belongs to a layer above `{name}`; use a word of this layer")))
        .collect()
}
