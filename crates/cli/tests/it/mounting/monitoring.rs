//! What `lightfoot stats` reports of a tree of several sources.

use crate::mounting::fixture::Fixture;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Files in each of the directories of [`DIRS`].
const FILES: u64 = 40;

/// Directories in a source.
const DIRS: u64 = 5;

/// A tree with a directory of this machine at `/a` and one at `/b`, each with directories and files, and memory at `/`.
fn make_sources(fixture: &Fixture) {
    let mut mounts = String::new();
    for (source, cache) in [("a", "16m"), ("b", "32m")] {
        for dir in 0..DIRS {
            let dir = fixture.at(&format!("{source}/d{dir}"));
            fs::create_dir_all(&dir).expect("a directory");
            (0..FILES).for_each(|file| fs::write(dir.join(format!("f{file}")), "").expect("a file"));
        }
        mounts +=
            &format!("[[mount]]\nat = \"/{source}\"\nsource = \"{source}\"\noptions = \"exclusive,cache={cache}\"\n");
    }
    fs::write(fixture.at("tree.toml"), mounts).expect("a file");
}

/// Hits and misses of the file system at `at`.
fn names(fixture: &Fixture, at: &str) -> (u64, u64) {
    let json: Value = serde_json::from_str(&fixture.ok(&["stats", "m", "--json"])).expect("JSON");
    let all = json["file_systems"].as_array().expect("file systems");
    let of = all.iter().find(|of| of["at"] == at).unwrap_or_else(|| panic!("{at} is not in {json}"));
    let figure = |name: &str| of[name].as_u64().expect("a number");
    (figure("hits"), figure("misses"))
}

fn find(fixture: &Fixture, path: &str) -> u64 {
    let found = Command::new("find").arg(fixture.at(path)).output().expect("find runs");
    assert!(found.status.success(), "{found:?}");
    String::from_utf8_lossy(&found.stdout).lines().count() as u64
}

#[test]
fn hits_and_misses_of_a_find_add_up_and_each_file_system_has_its_own() {
    let Some(fixture) = Fixture::new() else { return };
    make_sources(&fixture);
    // The kernel caches no name, so it requests each in each run.
    let _mount = fixture.mount(&["tree.toml", "m", "-o", "ttl=0"]);
    let below = DIRS + DIRS * FILES;
    assert_eq!(find(&fixture, "m/a"), below + 1);
    let (hits, misses) = names(&fixture, "/a");
    assert_eq!(misses, below, "each name is unknown once; {hits} hits");
    assert_eq!(names(&fixture, "/b"), (0, 0), "nobody has looked there");
    let (in_root, of_root) = names(&fixture, "/");
    assert!(in_root >= 1 && of_root == 0, "the names of a tree in memory are in the cache");
    find(&fixture, "m/a");
    let (again, asked) = names(&fixture, "/a");
    assert_eq!(asked, misses, "all names are in the cache");
    assert!(again >= hits + below, "{again} hits, {hits} before");
}

#[test]
fn each_file_system_of_a_tree_is_shown_with_its_budget() {
    let Some(fixture) = Fixture::new() else { return };
    make_sources(&fixture);
    let _mount = fixture.mount(&["tree.toml", "m"]);
    find(&fixture, "m");
    let table = fixture.ok(&["stats", "m"]);
    let (root, rest) = table.split_once("file system /a (").expect("the first directory");
    let root = root.split_once("file system / (ram)").expect("the root").1;
    assert!(root.contains("misses 0") && !root.contains("negative entries"), "{table}");
    let row: Vec<&str> = root.lines().rfind(|line| !line.is_empty()).unwrap_or("").split_whitespace().collect();
    assert_eq!((row[0], row[row.len() - 2], row[row.len() - 1]), ("entries", "-", "-"), "{table}");
    let (first, second) = rest.split_once("file system /b (").expect("the second directory");
    assert!(first.contains("12.8 MiB") && second.contains("25.6 MiB"), "eight tenths are for entries: {table}");
    let page = fixture.ok(&["stats", "m", "--prometheus"]);
    for (at, is_limited) in [("/", false), ("/a", true), ("/b", true)] {
        let has = |name: &str, label: &str| {
            let start = format!("lightfoot_{name}{{mount=\"{}\",at=\"{at}\",{label}", fixture.at("m").display());
            page.lines().any(|line| line.starts_with(&start))
        };
        assert!(has("names_total", "result=\"hit\"") && has("cache_used_bytes", "cache=\"listings\""), "{at}: {page}");
        assert_eq!(has("cache_budget_bytes", "cache=\"entries\""), is_limited, "{at}: {page}");
    }
}
