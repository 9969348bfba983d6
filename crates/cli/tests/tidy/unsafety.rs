//! Unsafe code: where it may stand, and what is written beside it.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, find_word, has_word, is_ident};

/// How far above an unsafe block its reason may stand, in lines.
const REACH: usize = 6;

/// Where unsafe code may stand, and why there.
const HOMES: &[(&str, &str)] = &[
    ("crates/prim/", "the edge to the system calls and to the instruction set"),
    ("crates/sync/", "the home of concurrency that the borrow checker cannot see"),
    ("crates/sim/", "coroutines, an allocator at fixed addresses, and engine state shared between them"),
    ("crates/vfs/src/slot.rs", "type-stable storage of dentries; the one module `vfs` allows itself"),
    ("crates/lightfoot/tests/store_free.rs", "takes the right to write from the cache's memory, to see who writes"),
    ("crates/lightfoot/tests/", "system calls without a safe form: another thread's root, memory made read-only"),
];

/// What a crate's root must say of unsafe code; a crate that is not listed forbids it.
const ATTRIBUTES: &[(&str, Option<&str>)] = &[("prim", None), ("sim", None), ("sync", None), ("vfs", Some("deny"))];

pub(crate) fn rules() -> Vec<Rule> {
    let home = "crates/sync/src/rcu.rs";
    let far = format!("fn f() {{\n    // SAFETY: a.\n{}    unsafe {{ g() }}\n}}\n", "    b();\n".repeat(6));
    vec![
        Rule::new("safety-tags", safety_tags)
            .bad(home, "fn f() {\n    let x = unsafe { g() };\n}\nunsafe impl Send for A {}\n", &[2, 4])
            .bad(home, "/// Doc.\npub unsafe fn f() {}\nunsafe trait T {}\n", &[2, 3])
            .bad(home, far, &[9])
            .good(home, "fn f() {\n    // SAFETY: a.\n    let x = unsafe { g() };\n}\n// SAFETY: b.\nunsafe impl Send for A {}\n")
            .good(home, "fn f() {\n    // SAFETY: a.\n    #[cfg(x)]\n    let x =\n        unsafe { g() };\n}\n")
            .good(home, "/// Doc.\n///\n/// # Safety\n/// Hold it.\n#[inline]\npub unsafe fn f(g: unsafe fn()) {}\n")
            .good(home, "impl L for A {\n    // SAFETY: as the trait asks.\n    unsafe fn unlock(&self) {}\n}\n")
            .good(home, "#![deny(unsafe_code)]\n#[unsafe(no_mangle)]\nfn f() {} // unsafe {}\n"),
        Rule::new("unsafe-homes", unsafe_homes)
            .bad("crates/vfs/src/walk.rs", "fn f() {\n    // SAFETY: a.\n    unsafe { g() }\n}\n", &[3])
            .bad("crates/cli/tests/walk.rs", "unsafe impl Send for A {}\n", &[1])
            .good("crates/vfs/src/slot.rs", "unsafe impl Send for A {}\n")
            .good(home, "unsafe impl Send for A {}\n")
            .good("crates/vfs/src/lib.rs", "//! No unsafe.\n#![deny(unsafe_code)]\n"),
        Rule::new("unsafe-attributes", unsafe_attributes)
            .bad("crates/ramfs/src/lib.rs", "//! Doc.\n#![deny(unsafe_code)]\n", &[1])
            .bad("crates/cli/src/main.rs", "//! #![forbid(unsafe_code)]\nfn main() {}\n", &[1])
            .bad("crates/vfs/src/lib.rs", "//! Doc.\n", &[1])
            .good("crates/ramfs/src/lib.rs", "//! Doc.\n#![forbid(unsafe_code)]\n")
            .good("crates/vfs/src/lib.rs", "//! Doc.\n#![deny(unsafe_code)]\n")
            .good("crates/sync/src/lib.rs", "//! Doc.\n")
            .good("crates/ramfs/src/node.rs", "//! Doc.\n"),
    ]
}

fn safety_tags(file: &File, _: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in file.code() {
        let next = file.code.get(line).map_or("", String::as_str);
        for at in find_word(text, "unsafe") {
            let rest = format!("{} {}", &text[at + "unsafe".len()..], next);
            let rest = rest.trim_start();
            let above = file.comment_above(line);
            if (rest.starts_with('{') || rest.starts_with("impl")) && !file.is_tagged(line, "SAFETY:", REACH) {
                found.push((line, "unsafe code without reason; add `// SAFETY:` that points at an invariant".into()));
            }
            if is_contract(rest) && !above.contains("# Safety") && !above.contains("SAFETY:") {
                found.push((line, "an unsafe contract unsaid; add a `# Safety` section to its doc".into()));
            }
        }
    }
    found
}

/// Whether `rest`, what follows the word `unsafe`, declares a function or a trait (and is not a function's type).
fn is_contract(rest: &str) -> bool {
    let head = rest.strip_prefix("extern").unwrap_or(rest).trim_start();
    let name = head.strip_prefix("fn").or(head.strip_prefix("trait")).unwrap_or("");
    name.starts_with(' ') && name.trim_start().starts_with(is_ident)
}

fn unsafe_homes(file: &File, _: &Tree) -> Vec<Finding> {
    if HOMES.iter().any(|(home, _)| file.path.starts_with(home)) {
        return Vec::new();
    }
    let uses = file.code().filter(|(_, text)| has_word(text, "unsafe") && !has_word(text, "unsafe("));
    uses.map(|(line, _)| (line, "unsafe code outside its homes; move it behind a safe primitive of `sync`".into()))
        .collect()
}

fn unsafe_attributes(file: &File, _: &Tree) -> Vec<Finding> {
    let (Some(name), true) = (file.crate_of_src(), file.is_crate_root()) else {
        return Vec::new();
    };
    let demanded = ATTRIBUTES.iter().find(|(listed, _)| *listed == name).map_or(Some("forbid"), |(_, level)| *level);
    let Some(attribute) = demanded.map(|level| format!("#![{level}(unsafe_code)]")) else {
        return Vec::new();
    };
    if file.code().any(|(_, text)| text.contains(&attribute)) {
        return Vec::new();
    }
    vec![(1, format!("the root of `{name}` is silent on unsafe code; add `{attribute}`"))]
}
