//! The facade: what the crates above `prim` may not name, so that loom and the simulator can stand in for the machine;
//! and which words a crate may not know at all.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, find_word, has_word, words};

/// The crates that are compiled a second time on the simulated machine.
const ON_THE_FACADE: [&str; 4] = ["sync", "vfs", "ramfs", "eras"];

/// What they may not name outside tests, and what to use instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("core::sync", "prim::atomic"),
    ("std::sync", "prim::atomic or a primitive of `sync`"),
    ("alloc::sync", "a reference count that is a primitive of `sync`"),
    ("core::cell::UnsafeCell", "prim::cell::UnsafeCell"),
    ("std::cell::UnsafeCell", "prim::cell::UnsafeCell"),
    ("core::hint::spin_loop", "prim::hint::spin_until"),
    ("std::hint::spin_loop", "prim::hint::spin_until"),
    ("std::thread", "prim::thread, prim::hint or prim::park"),
    ("thread_local!", "a prim::PerCpu in the instance"),
    ("std::time", "prim::clock, and core::time::Duration for lengths of time"),
    ("SystemTime", "prim::clock::now_ns"),
    ("Instant", "prim::clock::monotonic_ns"),
    ("HashMap", "BTreeMap, or a table keyed by prim::seed, so that a run replays"),
    ("HashSet", "BTreeSet, or a table keyed by prim::seed, so that a run replays"),
    ("RandomState", "prim::seed"),
    ("parking_lot::", "a lock of `sync`"),
    ("crossbeam::", "a primitive of `sync`"),
    ("crossbeam_epoch::", "sync::rcu"),
    ("crossbeam_utils::", "prim::PerCpu or a primitive of `sync`"),
    ("rustix::", "a call of `prim`, or move it to `hostfs`"),
    ("libc::", "a call of `prim`, or move it to `hostfs`"),
    ("loom::", "`prim`, which is loom's under `--cfg loom`"),
];

/// What a static table may consist of.
const PLAIN_TYPES: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "bool", "char"];

/// Crate, and the words that no identifier of it may contain: they belong to a layer above.
const FOREIGN_WORDS: &[(&str, &[&str])] =
    &[("sync", &["dentry", "inode", "superblock", "path_walk", "pathwalk"]), ("ramfs", &["dentry", "dentries"])];

pub(crate) fn rules() -> Vec<Rule> {
    let test_module = "#[cfg(all(test, not(loom)))]\nmod tests {\n    use std::sync::Arc;\n    static A: u8 = 0;\n}\n";
    vec![
        Rule::new("facade", facade)
            .bad("crates/sync/src/rcu.rs", "use core::sync::atomic::fence;\nuse std::sync::Arc;\n", &[1, 2])
            .bad("crates/vfs/src/walk.rs", "use core::{\n    mem,\n    sync::atomic,\n};\n", &[1])
            .bad("crates/vfs/src/walk.rs", "fn a() {\n    let m = std::collections::HashMap::new();\n}\n", &[2])
            .bad("crates/ramfs/src/node.rs", "use std::{time::SystemTime, thread};\n", &[1, 1, 1])
            .bad("crates/vfs/src/walk.rs", "fn a() {\n    rustix::fs::open();\n    loom::model();\n}\n", &[2, 3])
            .bad("crates/sync/src/rcu.rs", "#[cfg(not(test))]\nmod a {\n    use std::thread;\n}\n", &[3])
            .good("crates/prim/src/park.rs", "use std::sync::Arc;\nuse core::sync::atomic::fence;\n")
            .good("crates/sync/src/rcu.rs", "//! Not `std::sync`.\n// HashMap\nfn a() { f(\"Instant\", 'x') }\n")
            .good("crates/sync/src/rcu.rs", test_module)
            .good("crates/sync/src/rcu.rs", "use prim::atomic::fence;\nconst A: bool = cfg!(loom);\n")
            .good("crates/vfs/src/walk.rs", "use core::{mem, ptr};\nuse sync::rcu;\nstruct HashMapper;\n"),
        Rule::new("statics", statics)
            .bad("crates/vfs/src/walk.rs", "static mut A: u8 = 0;\npub(crate) static B: Lock = new();\n", &[1, 2])
            .bad(
                "crates/vfs/src/walk.rs",
                "static A: [AtomicU8; 2] = new();\nstatic mut B: [u8; 2] = [0; 2];\n",
                &[1, 2],
            )
            .good("crates/vfs/src/walk.rs", "static TABLE: [[u64; 2]; 17] = {\n};\n")
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
            let hits = FORBIDDEN.iter().filter(move |(name, _)| has_word(text, name));
            hits.map(move |(name, instead)| (line, format!("`{name}` goes around the facade; use {instead}")))
        })
        .collect();
    found.sort();
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

/// Whether the line begins a static that nobody can write to: numbers, in arrays or alone.
fn is_table(text: &str) -> bool {
    let is_plain = |word: &str| PLAIN_TYPES.contains(&word) || word.bytes().all(|c| c.is_ascii_digit());
    let of_type = text.split_once(':').and_then(|(_, rest)| rest.split_once('='));
    !has_word(text, "mut") && of_type.is_some_and(|(name, _)| words(name).all(is_plain))
}

fn foreign_words(file: &File, _: &Tree) -> Vec<Finding> {
    let Some((name, foreign)) = FOREIGN_WORDS.iter().find(|(name, _)| file.crate_of_src() == Some(name)) else {
        return Vec::new();
    };
    let hit = |text: &str| {
        words(text).find(|word| foreign.iter().any(|foreign| word.to_lowercase().contains(foreign))).map(String::from)
    };
    let hits = file.product_code().filter_map(|(line, text)| Some((line, hit(text)?)));
    hits.map(|(line, word)| (line, format!("`{word}` is a word above `{name}`; name it by what it is here"))).collect()
}
