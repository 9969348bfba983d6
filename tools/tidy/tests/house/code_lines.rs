//! The ratchet of size: lines of product code, without tests, comments and blank lines. The rows of `code-lines.txt`, one a
//! crate, show where they are; their sum may only fall.

use crate::source::File;
use crate::words::Verdict;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where the rows are committed, relative to the workspace root.
pub(crate) const COUNTS: &str = "tools/tidy/code-lines.txt";

/// Capabilities that came after the ratchet: the name of the row, the beginnings of its paths, and the most lines. They do not count
/// in the sum. The design gives the crate about 5,000 lines (shared/design/workspaces.md, section 4); forks of a directory, reads, the
/// limit of all forks, progress, directories that a base cannot rename, and damage of a log came after that count. Its commands, among
/// them the archive of what `try` could not apply, and the common budget of the caches of forks are beside it.
const LATER: &[(&str, &str, usize)] = &[
    ("workspaces", "crates/workspaces/", 5760),
    ("commands", "crates/cli/src/workspaces", 1890),
    ("forks", "crates/vfs/src/cache/shared_budget.rs", 140),
    ("members", "crates/vfs/src/slots/slot/members.rs", 30),
];

/// Lines of code of each crate below `crates/`.
type Rows = BTreeMap<String, usize>;

/// Compares the product code of `files` with `committed`, the text of `code-lines.txt`.
pub(crate) fn compare(files: &[File], committed: &str) -> Verdict {
    let rows = rows(files);
    let later = |name: &str| LATER.iter().find(|(of, ..)| *of == name);
    let sum_of_rows = rows.iter().filter(|(name, _)| later(name).is_none()).map(|(_, count)| count).sum::<usize>();
    let (total, limit) = (sum_of_rows, sum(committed));
    let is_over = rows.iter().any(|(name, count)| later(name).is_some_and(|(.., most)| count > most));
    if total > limit || is_over {
        return Verdict::Higher(format!("{total} lines of product code, the limit is {limit}:\n{}", table(&rows)));
    }
    let text = head(committed) + &table(&rows);
    if text == committed { Verdict::Same } else { Verdict::Lower(text) }
}

fn rows(files: &[File]) -> Rows {
    let mut rows = Rows::new();
    let product = || files.iter().filter(|file| file.is_rust() && file.path.starts_with("crates/"));
    let test_modules: Vec<String> = product().flat_map(test_modules).collect();
    let is_test = |path: &str| {
        let below =
            |module: &String| path.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with(['.', '/']));
        test_modules.iter().any(below)
    };
    for file in product() {
        if let Some(of) = file.crate_of_src().filter(|_| !is_test(&file.path)) {
            let of = LATER.iter().find(|(_, paths, _)| file.path.starts_with(paths)).map_or(of, |(name, ..)| name);
            *rows.entry(of.into()).or_default() += file.product_code().filter(|&(line, _)| file.has_code(line)).count();
        }
    }
    rows
}

/// The modules in other files that `file` declares for tests alone: their paths without `.rs`.
fn test_modules(file: &File) -> Vec<String> {
    let dir = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let dir = ["/lib", "/main", "/mod"].iter().find_map(|root| dir.strip_suffix(root)).unwrap_or(dir);
    let name = |code: &str| Some(code.trim().strip_prefix("mod ")?.strip_suffix(';')?.to_string());
    let declared = file.code().filter(|&(line, _)| file.in_test[line - 1]);
    declared.filter_map(|(_, code)| Some(format!("{dir}/{}", name(code)?))).collect()
}

fn head(committed: &str) -> String {
    committed.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

fn sum(committed: &str) -> usize {
    let last_word = |line: &str| line.split_whitespace().last()?.parse::<usize>().ok();
    let is_later = |line: &&str| LATER.iter().any(|(name, ..)| line.split_whitespace().next() == Some(*name));
    committed.lines().filter(|line| !line.starts_with('#') && !is_later(line)).filter_map(last_word).sum()
}

fn table(rows: &Rows) -> String {
    rows.iter().fold(String::new(), |mut text, (name, count)| {
        let _ = writeln!(text, "{name:<10} {count:>6}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "//! A doc.\n\nconst A: &str = \"\n    text\n\";\n/* c */ fn f() {} // d\n#[cfg(test)]\nmod tests {\n}\n";

    #[test]
    fn comments_blank_lines_and_tests_are_not_counted() {
        let check = |path: &str, expected: &[(&str, usize)]| {
            let expected = expected.iter().map(|&(name, count)| (name.to_string(), count)).collect::<Rows>();
            assert_eq!(rows(&[File::new(path, TEXT)]), expected, "{path}");
        };
        check("crates/vfs/src/a.rs", &[("vfs", 4)]);
        check("crates/vfs/src/a/tests.rs", &[("vfs", 0)]);
        check("crates/vfs/tests/a.rs", &[]);
        check("lab/eras/src/a.rs", &[]);
    }

    #[test]
    fn modules_for_tests_alone_are_not_counted() {
        let root = "#[cfg(test)]\nmod faults;\nmod fault;\n";
        let paths =
            ["fault.rs", "faults.rs", "faults/runs.rs", "fault/faults.rs"].map(|name| format!("crates/a/src/{name}"));
        let mut files: Vec<File> = paths.iter().map(|path| File::new(path, "f();\n")).collect();
        files.push(File::new("crates/a/src/lib.rs", root));
        files.push(File::new("crates/b/src/c.rs", root));
        files.push(File::new("crates/b/src/c/faults.rs", "f();\n"));
        assert_eq!(rows(&files), Rows::from([("a".into(), 3), ("b".into(), 1)]));
    }

    #[test]
    fn the_sum_may_not_rise_and_lines_may_move_between_crates() {
        let files = [File::new("crates/a/src/lib.rs", "f();\n"), File::new("crates/b/src/lib.rs", "f();\ng();\n")];
        let check = |committed: &str, expected: Verdict| assert_eq!(compare(&files, committed), expected);
        let now = "# Head.\na               1\nb               2\n";
        check(now, Verdict::Same);
        check("# Head.\na 2\nb 1\n", Verdict::Lower(now.into()));
        check("# Head.\na 9\n", Verdict::Lower(now.into()));
        assert!(matches!(compare(&files, "a 1\nb 1\n"), Verdict::Higher(_)));
    }
}
