//! Memory ordering: no sequentially consistent access, and a reason beside every ordering stronger than Relaxed.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, find_word, is_ident};

const CHECKED: [&str; 7] = ["prim", "sync", "vfs", "ramfs", "lightfoot", "locks", "eras"];

/// How far above a use its tag may stand, in lines.
const REACH: usize = 8;

pub(crate) fn rules() -> Vec<Rule> {
    let far =
        format!("fn f() {{\n    // ORDERING: pairs with a.\n{}    a.load(Acquire);\n}}\n", "    b();\n".repeat(8));
    let block = format!("// ORDERING: pairs with a.\n{}a.load(Acquire);\n", "// More.\n".repeat(12));
    vec![
        Rule::new("seqcst", seqcst)
            .bad(
                "crates/sync/src/rcu.rs",
                "fn f() {\n    a.load(SeqCst);\n    b.store(1, Ordering::SeqCst);\n}\n",
                &[2, 3],
            )
            .bad(
                "crates/sync/src/rcu.rs",
                "fn f() {\n    fence(SeqCst); a.swap(\n        1,\n        SeqCst);\n}\n",
                &[4],
            )
            .good("crates/sync/src/rcu.rs", "use a::{Relaxed, SeqCst};\nfn f() {\n    fence(SeqCst);\n}\n")
            .good("crates/sync/src/rcu.rs", "fn f() {\n    compiler_fence(\n        Ordering::SeqCst,\n    );\n}\n")
            .good("crates/sync/src/rcu.rs", "// SeqCst\nfn f() {}\n")
            .good("lab/report/src/era.rs", "fn f() {\n    a.load(SeqCst);\n}\n"),
        Rule::new("ordering-tags", ordering_tags)
            .bad("crates/sync/src/rcu.rs", "fn f() {\n    a.load(Acquire);\n    fence(SeqCst);\n}\n", &[2, 3])
            .bad(
                "crates/vfs/src/walk.rs",
                "fn f() {\n    a.swap(\n        1,\n        Ordering::AcqRel\n    );\n}\n",
                &[4],
            )
            .bad("crates/vfs/src/walk.rs", "const ORDER: Ordering = Release;\n", &[1])
            .bad("crates/vfs/src/walk.rs", far, &[11])
            .bad(
                "crates/vfs/src/walk.rs",
                "fn a() {\n    // ORDERING: pairs with b.\n    x()\n}\nfn b() {\n    y.load(Acquire)\n}\n",
                &[6],
            )
            .good("crates/sync/src/rcu.rs", "fn f() {\n    // ORDERING: pairs with g.\n    a.load(Acquire);\n}\n")
            .good("crates/sync/src/rcu.rs", "fn f() {\n    a.load(Acquire); // ORDERING: pairs with g.\n}\n")
            .good("crates/sync/src/rcu.rs", block)
            .good(
                "crates/sync/src/rcu.rs",
                "use a::{Acquire, Release};\nuse a::{\n    AcqRel,\n};\nfn fence(o: O) {}\n",
            )
            .good(
                "crates/sync/src/rcu.rs",
                "// Acquire)\nfn f() {\n    a.load(Relaxed);\n}\nstruct Release { a: u8 }\n",
            )
            .good(
                "crates/sync/src/rcu.rs",
                "#[cfg(test)]\nmod tests {\n    fn f() {\n        a.load(Acquire);\n    }\n}\n",
            ),
    ]
}

fn is_checked(file: &File) -> bool {
    file.crate_of_src().is_some_and(|name| CHECKED.contains(&name))
}

fn seqcst(file: &File, _: &Tree) -> Vec<Finding> {
    if !is_checked(file) {
        return Vec::new();
    }
    let text = file.code.join("\n");
    let is_in_fence = |at: usize| {
        let before = text[..at].trim_end_matches(|c: char| is_ident(c) || c == ':').trim_end();
        before.ends_with("fence(")
    };
    let uses = find_word(&text, "SeqCst").into_iter().filter(|&at| !is_in_fence(at));
    let lines = uses.map(|at| text[..at].matches('\n').count() + 1).filter(|&line| !file.is_import(line));
    lines
        .map(|line| (line, "a SeqCst access; use Acquire/Release, or a fence where a store meets a load".into()))
        .collect()
}

fn ordering_tags(file: &File, _: &Tree) -> Vec<Finding> {
    if !is_checked(file) {
        return Vec::new();
    }
    let uses = file.product_code().filter(|&(line, text)| !file.is_import(line) && orders(text));
    let untagged = uses.filter(|&(line, _)| !file.is_tagged(line, "ORDERING:", REACH));
    untagged
        .map(|(line, _)| (line, "an ordering without a reason; add `// ORDERING:` that names its partner".into()))
        .collect()
}

/// Whether the line passes an ordering stronger than Relaxed, or fences.
fn orders(text: &str) -> bool {
    let is_argument = |end: usize| text[end..].trim_start().chars().next().is_none_or(|c| ",;)}]".contains(c));
    let is_call = |at: usize| !text[..at].trim_end().ends_with("fn");
    ["Acquire", "Release", "AcqRel"]
        .iter()
        .any(|name| find_word(text, name).iter().any(|at| is_argument(at + name.len())))
        || ["fence(", "compiler_fence("].iter().any(|name| find_word(text, name).into_iter().any(is_call))
}
