//! Habits: no FIXMEs, tests that do not depend on time, names with the suffix `_rcu`, one type for the user of a request.

use crate::rule::{Finding, Rule, Tree};
use crate::source::{File, has_word};

/// The crates in which the suffix `_rcu` is a promise.
const RCU_CRATES: [&str; 4] = ["sync", "vfs", "ramfs", "eras"];

/// The sources in which the user of a request is a `Who`, and the two files that know its numbers.
const WITH_USERS: &str = "crates/fuse/src/";
const KNOW_NUMBERS: [&str; 2] = ["crates/fuse/src/session/who.rs", "crates/fuse/src/transport/convert.rs"];

/// The number of a user, where a `Who` must stand.
const NUMBERS: [&str; 7] =
    ["header.uid", "header.gid", "caller.uid", "caller.gid", "user.uid ==", "user.uid !=", "InHeader { uid"];

pub(crate) fn rules() -> Vec<Rule> {
    let session = "crates/fuse/src/session/files.rs";
    let walk = "crates/vfs/src/walk.rs";
    let test = "crates/vfs/tests/walk.rs";
    vec![
        Rule::new("fixme", fixme)
            .bad(walk, "fn f() {} // FIXME: later\n", &[1])
            .good(walk, "fn f() {\n    g(\"FIXME\");\n}\n"),
        Rule::new("timed-tests", timed_tests)
            .bad(test, "#[test]\n#[ignore]\nfn f() {\n    std::thread::sleep(ms(1));\n}\n", &[2, 4])
            .bad(test, "use std::{thread::sleep};\n", &[1])
            .bad(walk, "#[cfg(test)]\nmod tests {\n    #[ignore = \"slow\"]\n    fn f() {}\n}\n", &[3])
            .bad(test, "fn f() {\n    assert!(start.elapsed() < limit);\n}\n", &[2])
            .good(walk, "fn f() {\n    thread::sleep(ms(1));\n    x.ignore();\n}\n")
            .good(test, "fn f() {\n    // thread::sleep\n    assert!(is_done(\"#[ignore]\"));\n}\n"),
        Rule::new("who-asks", who_asks)
            .bad(session, "fn f() {\n    let is_root = caller.uid == 0;\n}\n", &[2])
            .bad(session, "fn f() {\n    if user.uid != own {}\n    g(request.header.uid);\n}\n", &[2, 3])
            .good(session, "fn f() {\n    let is_root = caller.who.is_root(); // not caller.uid\n}\n")
            .good(session, "#[cfg(test)]\nmod tests {\n    fn f() {\n        g(header.uid);\n    }\n}\n")
            .good("crates/fuse/src/transport/convert.rs", "fn f() {\n    Who::of(header.uid, header.gid)\n}\n")
            .good(walk, "fn f() {\n    g(caller.uid);\n}\n"),
        Rule::new("rcu-names", rcu_names)
            .bad(walk, "fn permission_rcu(\n    inode: &Inode,\n) -> Answer {\n}\n", &[1])
            .good(walk, "fn permission_rcu(\n    inode: &Inode,\n    guard: &ReadGuard,\n) -> Answer {\n}\n")
            .good(walk, "fn step_rcu<'g>(walk: Cursor<'g>) {}\nfn drop_rcu(walk: &mut RcuWalk) {}\nfn rcu() {}\n")
            .good(test, "fn freed_by_rcu() {}\n"),
    ]
}

fn fixme(file: &File, _: &Tree) -> Vec<Finding> {
    let comments = file.comments.iter().enumerate();
    let left = comments.filter(|(_, text)| has_word(text, "FIXME"));
    left.map(|(i, _)| (i + 1, "FIXME; mend it, or describe it under `# Limitations`".into())).collect()
}

fn timed_tests(file: &File, _: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in file.code().filter(|&(line, _)| file.in_test[line - 1]) {
        if text.contains("#[ignore") {
            found.push((line, "an ignored test; make it fast enough to run, or make it an example".into()));
        }
        let sleeps = |path: &str| has_word(path, "thread::sleep");
        if sleeps(text) || file.imports.iter().any(|import| import.first == line && sleeps(&import.path)) {
            found.push((line, "a test that sleeps; wait for a condition, a channel or a barrier".into()));
        }
        if text.contains("assert") && text.contains("elapsed()") {
            found.push((line, "a test that asserts a time; assert an order or a count".into()));
        }
    }
    found
}

fn who_asks(file: &File, _: &Tree) -> Vec<Finding> {
    let is_checked = file.path.starts_with(WITH_USERS) && !KNOW_NUMBERS.contains(&&*file.path);
    let product = file.code().filter(|&(line, _)| is_checked && !file.in_test[line - 1]);
    let bare = product.filter(|(_, text)| NUMBERS.iter().any(|number| text.contains(number)));
    bare.map(|(line, _)| (line, "a bare number of a user; use `Who`, which may be `Unknown`".into())).collect()
}

fn rcu_names(file: &File, _: &Tree) -> Vec<Finding> {
    let is_promise = |name: &str| name.ends_with("_rcu");
    let is_kept = |signature: &str| ["Guard", "Walk", "'g"].iter().any(|proof| signature.contains(proof));
    let is_checked = file.crate_of_src().is_some_and(|name| RCU_CRATES.contains(&name));
    let named = file.functions.iter().filter(|f| is_checked && !file.in_test[f.first - 1] && is_promise(&f.name));
    let broken = named.filter(|f| !is_kept(&f.signature));
    broken.map(|f| (f.first, format!("`{}` takes no read guard; take `&ReadGuard`, or rename it", f.name))).collect()
}
