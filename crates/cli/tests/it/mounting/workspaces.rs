//! `lightfoot mount --workspaces`, `fork`, `diff`, `discard` and `list MNT` as agents and builds use them.

use super::fixture::Fixture;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// Runs a shell script in a directory. Returns its standard output.
pub(super) fn shell(at: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-ec", script]).current_dir(at).output().expect("bash runs");
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns a fixture with a repository in `repo`, mounted with forks at `m`.
fn mounted() -> Option<(Fixture, super::fixture::Mount)> {
    let fixture = Fixture::new()?;
    fs::create_dir(fixture.at("repo")).expect("a directory");
    let script = "git init -q . && mkdir src && for n in 1 2 3; do echo $n > src/f$n; done && echo all > README \
        && git add -A && git -c user.name=n -c user.email=e commit -qm first";
    shell(&fixture.at("repo"), script);
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    Some((fixture, mount))
}

#[test]
fn agents_work_in_forks_and_the_tree_stays_as_it_was() {
    let Some((fixture, _mount)) = mounted() else { return };
    let path = fixture.ok(&["fork", "m/base", "a"]);
    assert_eq!(path.trim_end(), fixture.at("m/w/a").to_str().expect("text"));
    assert_eq!(shell(&fixture.at("m/w/a"), "git status --short"), "");
    // A command that reads makes no change but git's own index.
    shell(
        &fixture.at("m/w/a"),
        "rm -rf .git; mv src lib; echo new > lib/new; rm README; echo 1 >> lib/f1; chmod 700 lib",
    );
    fixture.ok(&["fork", "m/w/a", "b"]);
    shell(&fixture.at("m/w/b"), "echo 2 >> lib/f2");
    let changes = fixture.run(&["diff", "m/w/a"]);
    let text = String::from_utf8_lossy(&changes.stdout).into_owned();
    // (The repository, which was removed, is one line.)
    assert_eq!(text, "D .git\nD README\nM lib\nR src -> lib\nM lib/f1\nA lib/new\n");
    assert_eq!(changes.status.code(), Some(1));
    let changes = fixture.run(&["diff", "m/w/b", "--json"]);
    let change: Value = serde_json::from_slice(&changes.stdout).expect("JSON");
    assert_eq!(change, json!({ "kind": "M", "path": "lib/f2" }));
    let between = |one: &str, other: &str| String::from_utf8(fixture.run(&["diff", one, other]).stdout).expect("text");
    assert_eq!((between("m/w/b", "m/w/a"), between("m/w/a", "m/w/b")), ("M lib/f2\n".into(), "M lib/f2\n".into()));
    assert_eq!(between("m/w/b", "m/base"), text.replace("M lib/f1\n", "M lib/f1\nM lib/f2\n"));
    fixture.refused(&["diff", "m/w/b", "repo"], 2, &["not a mount point"]);
    assert_eq!(shell(&fixture.at("m/w/b"), "cat lib/f1 lib/f2"), "1\n1\n2\n2\n");
    assert_eq!(shell(&fixture.at("repo"), "git status --short; cat src/f1"), "1\n");
    let list = fixture.ok(&["list", "m"]);
    let words: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&words[1][..2], &words[2][..2]), (&["a", "base"][..], &["b", "a"][..]), "{list}");
    let open = File::open(fixture.at("m/w/a/lib/f1")).expect("a file");
    let forks: Value = serde_json::from_str(&fixture.ok(&["list", "m", "--json"])).expect("JSON");
    assert_eq!((&forks[0]["open_files"], &forks[1]["open_files"]), (&1.into(), &0.into()), "{forks}");
    fixture.refused(&["discard", "m/w/a"], 2, &["a: files of the fork are open", "--lazy"]);
    drop(open);
    // The kernel closes the file after `close(2)` has returned.
    fixture.until("nothing is open", || fixture.run(&["discard", "m/w/a"]).status.success());
    fixture.until("the kernel has dropped the name", || !fixture.at("m/w/a").exists());
    assert_eq!(shell(&fixture.at("m/w/b"), "cat lib/f1"), "1\n1\n");
    // The name is free, and shows the new fork.
    fixture.ok(&["fork", "m", "a"]);
    assert_eq!(shell(&fixture.at("m/w/a"), "cat README; git status --short"), "all\n");
}

#[test]
fn a_commit_writes_into_the_source_and_a_conflict_changes_nothing() {
    let Some((fixture, _mount)) = mounted() else { return };
    for name in ["a", "b"] {
        fixture.ok(&["fork", "m/base", name]);
    }
    shell(&fixture.at("m/w/a"), "echo a >> src/f1; mv src/f2 README2; mkdir -p new/dir; echo x > new/dir/x");
    shell(&fixture.at("m/w/b"), "echo b >> src/f1; echo b > b");
    let expected = "M src/f1\nA new\nA new/dir\nA new/dir/x\nR src/f2 -> README2\n";
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let before = shell(&fixture.at("repo"), "find . -path ./.git -prune -o -print | sort; cat src/*");
    assert_eq!(sorted(&fixture.ok(&["commit", "m/w/a", "--check"])), sorted(expected));
    assert_eq!(shell(&fixture.at("repo"), "find . -path ./.git -prune -o -print | sort; cat src/*"), before);
    assert_eq!(sorted(&fixture.ok(&["commit", "m/w/a"])), sorted(expected));
    assert_eq!(
        shell(&fixture.at("repo"), "cat src/f1 README2 new/dir/x; ls -A"),
        "1\na\n2\nx\n.git\nREADME\nREADME2\nnew\nsrc\n"
    );
    assert_eq!(fixture.ok(&["diff", "m/w/a"]), "");
    // The other fork sees the new files, and its own change.
    fixture.until("the kernel has the new names", || fixture.at("m/w/b/new/dir/x").exists());
    assert_eq!(shell(&fixture.at("m/w/b"), "cat src/f1"), "1\nb\n");
    let refused = fixture.run(&["commit", "m/w/b"]);
    let conflicts = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{conflicts}");
    assert!(conflicts.contains("C src/f1: "), "{conflicts}");
    assert_eq!(shell(&fixture.at("repo"), "cat src/f1; ls"), "1\na\nREADME\nREADME2\nnew\nsrc\n");
    let lines = fixture.run(&["commit", "m/w/b", "--json"]).stdout;
    let first = String::from_utf8_lossy(&lines).lines().next().map(String::from).expect("a line");
    assert_eq!(serde_json::from_str::<Value>(&first).expect("JSON")["path"], "src/f1");
    // Without the change of the file that both have changed.
    fixture.ok(&["rollback", "m/w/b"]);
    fixture.until("the kernel has the old contents", || {
        shell(&fixture.at("m/w/b"), "cat src/f1; ls b || true") == "1\na\n"
    });
    // A fork of a fork is committed to that fork.
    fixture.ok(&["fork", "m/w/b", "c"]);
    shell(&fixture.at("m/w/c"), "echo c > c");
    assert_eq!(fixture.ok(&["commit", "m/w/c"]), "A c\n");
    fixture.until("the parent has the file", || fixture.at("m/w/b/c").exists());
    assert!(!fixture.at("repo/c").exists());
    assert_eq!(fixture.ok(&["commit", "m/w/b"]), "A c\n");
    assert!(fixture.at("repo/c").exists());
    fixture.ok(&["rollback", "m/w/c", "m/base"]);
    // Another program has a file in the way of the commit's own.
    shell(&fixture.at("m/w/b"), "echo d > d");
    fs::write(fixture.at("repo/.lightfoot-commit"), "").expect("a file");
    fixture.refused(&["commit", "m/w/b"], 2, &["the commit failed", "the fork stays"]);
    fs::remove_file(fixture.at("repo/.lightfoot-commit")).expect("a file");
    fixture.until("the mount has dropped the name", || fixture.run(&["commit", "m/w/b"]).status.success());
    assert!(fixture.at("repo/d").exists());
    fixture.refused(&["commit", "m/base"], 2, &["not a fork"]);
    fixture.refused(&["rollback", "m/w/c", "m/w/missing"], 2, &["missing: no such fork"]);
    fixture.ok(&["discard", "m/w/b", "--lazy", "--wait"]);
    fixture.refused(&["commit", "m/w/c"], 2, &["b: no such fork"]);
}

#[test]
fn paths_of_changes_and_conflicts_are_exact() {
    let Some((fixture, _mount)) = mounted() else { return };
    let names: [&[u8]; 5] = [b"a\nb", b"a\x1bb", b"a\xffb", "a\u{9b}b".as_bytes(), "ü".as_bytes()];
    let shown = [r#""a\nb""#, r#""a\u{1b}b""#, r#""a\xffb""#, r#""a\u{9b}b""#, "ü"];
    for fork in ["a", "b"] {
        fixture.ok(&["fork", "m/base", fork]);
        for name in names {
            fs::write(fixture.at("m/w").join(fork).join(OsStr::from_bytes(name)), fork).expect("a file");
        }
    }
    let lines = |arguments: &[&str]| {
        let output = String::from_utf8(fixture.run(arguments).stdout).expect("text");
        output.lines().map(String::from).collect::<BTreeSet<String>>()
    };
    let with = |beginning: &str, end: &str| shown.map(|name| format!("{beginning} {name}{end}")).into();
    let exact = |arguments: &[&str]| {
        let lines = lines(arguments).into_iter().map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        lines.map(|line| (line["path"].clone(), line["bytes"][0].clone())).collect::<Vec<_>>()
    };
    let check = |paths: Vec<(Value, Value)>| {
        assert_eq!(paths.len(), names.len());
        for name in names {
            let has_bytes = name != "ü".as_bytes();
            let bytes = if has_bytes { json!(name) } else { Value::Null };
            assert!(paths.contains(&(String::from_utf8_lossy(name).into(), bytes)), "{name:?} in {paths:?}");
        }
    };
    assert_eq!(lines(&["diff", "m/w/a"]), with("A", ""));
    check(exact(&["diff", "m/w/a", "--json"]));
    fixture.ok(&["commit", "m/w/a"]);
    assert_eq!(lines(&["commit", "m/w/b"]), with("C", ": changed or replaced here and in the parent"));
    check(exact(&["commit", "m/w/b", "--json"]));
}

#[test]
fn a_fork_that_cannot_be_made_is_a_clear_error() {
    let Some((fixture, _mount)) = mounted() else { return };
    fixture.ok(&["fork", "m", "a", "--size", "64k", "--inodes", "10"]);
    fixture.refused(&["fork", "m/w/x", "b"], 2, &["x: no such fork"]);
    fixture.refused(&["fork", "m", "a"], 2, &["a: this fork exists", "another name"]);
    for name in ["a/b", "..", "base", ""] {
        fixture.refused(&["fork", "m", name], 2, &["not the name of a fork"]);
    }
    fixture.refused(&["diff", "m/base"], 2, &["not a fork", "m/w/NAME"]);
    fixture.refused(&["discard", "m/w/a/src"], 2, &["not a fork"]);
    fixture.refused(&["fork", "repo", "b"], 2, &["not a mount point"]);
    let mut fill = Command::new("dd");
    fill.args(["if=/dev/zero", "of=big", "bs=4096", "count=100"]).current_dir(fixture.at("m/w/a"));
    let full = fill.output().expect("dd runs");
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left on device"), "{full:?}");
    shell(&fixture.at("m/w/a"), "rm -rf big src");
    assert!(fs::write(fixture.at("m/base/README"), "x").is_err_and(|error| error.raw_os_error() == Some(30)));
}

#[test]
fn a_mount_without_forks_names_the_cure() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m"]);
    fixture.refused(&["fork", "m", "a"], 2, &["the mount has no forks", "--workspaces"]);
    fixture.refused(&["list", "m"], 2, &["the mount has no forks"]);
    fixture.unmount("m");
    fs::create_dir(fixture.at("tree")).expect("a directory");
    fixture.refused(&["mount", "tree", "m", "--workspaces", "-o", "cross"], 2, &["one file system", "omit cross"]);
}

#[test]
fn files_of_many_forks_have_the_numbers_of_the_base_or_their_own() {
    let Some((fixture, _mount)) = mounted() else { return };
    for number in 0..15 {
        fixture.ok(&["fork", "m", &format!("f{number}")]);
    }
    let numbers = |path: &str| fs::metadata(fixture.at(path)).map(|file| (file.dev(), file.ino())).expect("a file");
    let mut seen: Vec<(u64, u64)> = (0..15).map(|number| numbers(&format!("m/w/f{number}/README"))).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 15, "two forks share an inode number");
    for number in 0..15 {
        let fork = format!("m/w/f{number}");
        let before = numbers(&format!("{fork}/README"));
        shell(
            &fixture.at(&fork),
            &format!("echo {number} >> README; mv README READ; mv READ README; git status --short"),
        );
        assert_eq!(numbers(&format!("{fork}/README")), before);
        assert_eq!(shell(&fixture.at(&fork), "cat README"), format!("all\n{number}\n"));
    }
}

#[test]
fn one_side_of_a_commit_wins() {
    let Some(fixture) = Fixture::new() else { return };
    shell(&fixture.at("."), "mkdir repo; cd repo; echo 0 > f; echo 0 > g");
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    for (side, expected) in [("theirs", "theirs\n"), ("mine", "mine\n")] {
        shell(&fixture.at("repo"), "echo 0 > f; rm -f new");
        fixture
            .until("the mount shows the directory", || shell(&fixture.at("m/base"), "cat f; ls new || true") == "0\n");
        fixture.ok(&["fork", "m/base", side]);
        shell(&fixture.at("m/w").join(side), "echo mine > f; echo new > new");
        shell(&fixture.at("repo"), "echo theirs > .f; mv .f f");
        fixture.until("the mount shows the new file", || shell(&fixture.at("m/base"), "cat f") == "theirs\n");
        let path = format!("m/w/{side}");
        assert_eq!(fixture.run(&["commit", &path]).status.code(), Some(3), "{side}");
        assert_eq!(shell(&fixture.at("repo"), "cat f; ls"), "theirs\nf\ng\n", "{side}");
        let done = fixture.ok(&["commit", &path, "--conflicts", side]);
        assert!(done.contains("A new\n"), "{side}: {done}");
        assert_eq!(shell(&fixture.at("repo"), "cat f new; ls"), format!("{expected}new\nf\ng\nnew\n"), "{side}");
        fixture.until("the fork shows the directory", || shell(&fixture.at(&path), "cat f") == expected);
        assert_eq!(fixture.ok(&["diff", &path]), "", "{side}");
    }
    let other = fixture.run(&["commit", "m/w/mine", "--conflicts", "ours"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("possible values: refuse, mine, theirs"), "{other:?}");
    drop(mount);
}

#[test]
fn a_commit_reports_what_has_changed_since_it_was_read() {
    let Some(fixture) = Fixture::new() else { return };
    shell(&fixture.at("."), "mkdir repo; cd repo; echo 1 > f; echo 0 > g");
    let mount = fixture.mount(&["repo", "m", "--workspaces", "--reads"]);
    for (name, script, status) in [("one", "cat f > own", 3), ("two", "cat g > other", 0)] {
        fixture.ok(&["fork", "m/base", name]);
        shell(&fixture.at("m/w").join(name), script);
        shell(&fixture.at("repo"), "echo 2 > .f; mv .f f");
        let path = format!("m/w/{name}");
        let done = fixture.run(&["commit", &path, "--reads"]);
        let text = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(status), "{done:?}");
        assert_eq!(text == "C f: read here, and changed in the parent since\n", status == 3, "{text}");
        fixture.ok(&["commit", &path]);
    }
    fixture.unmount("m");
    drop(mount);
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    fixture.ok(&["fork", "m/base", "one"]);
    let refused = fixture.run(&["commit", "m/w/one", "--reads"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("mount with --reads"), "{refused:?}");
    drop(mount);
}

#[test]
fn a_fork_of_a_directory_shows_it_alone() {
    let Some(fixture) = Fixture::new() else { return };
    shell(
        &fixture.at("."),
        "mkdir -p repo/src/lib; cd repo; echo 0 > f; echo 0 > src/g; ln -s src link; echo 0 > src/lib/h",
    );
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    for from in ["m/base/src", "m/base/link", "m/w/m-base-src/lib/"] {
        let name = from.trim_end_matches('/').replace('/', "-");
        assert_eq!(fixture.ok(&["fork", from, &name]), format!("{}\n", fixture.at("m/w").join(&name).display()));
    }
    assert_eq!(
        shell(&fixture.at("m/w"), "find . | sort"),
        ".\n./m-base-link\n./m-base-link/g\n./m-base-link/lib\n./m-base-link/lib/h\n./m-base-src\n./m-base-src/g\n./m-base-src/lib\n./m-base-src/lib/h\n./m-w-m-base-src-lib\n./m-w-m-base-src-lib/h\n"
    );
    shell(&fixture.at("m/w/m-base-link"), "echo 1 > g; mv lib moved; git diff --no-index --quiet /dev/null /dev/null");
    assert_eq!(
        fixture
            .ok(&["list", "m"])
            .lines()
            .map(|line| line.split_whitespace().last().unwrap_or_default())
            .collect::<Vec<_>>(),
        ["DIRECTORY", "src", "src", "src/lib"]
    );
    let patch = String::from_utf8(fixture.run(&["diff", "--patch", "m/w/m-base-link"]).stdout).expect("text");
    assert!(patch.contains("a/g b/g") && patch.contains("rename to moved/h"), "{patch}");
    assert_eq!(fixture.ok(&["commit", "m/w/m-base-link"]), "M g\nR lib -> moved\n");
    assert_eq!(shell(&fixture.at("repo"), "cat src/g f; ls src"), "1\n0\ng\nmoved\n");
    for (args, why) in [
        (["fork", "m/base/f", "x"], "f: not a directory of the tree (name one of it, without links)"),
        (
            ["diff", "m/w/m-base-src", "m/base"],
            "base: shows another directory of the tree (name a fork that shows the same)",
        ),
        (["rollback", "m/w/m-base-src", "m/base"], "base: shows another directory"),
        (["fork", "m/w", "x"], "m/w: not a fork (use "),
    ] {
        let refused = fixture.run(&args);
        assert!(String::from_utf8_lossy(&refused.stderr).contains(why), "{refused:?}");
    }
    drop(mount);
}

#[test]
fn all_forks_together_have_a_limit() {
    let Some(fixture) = Fixture::new() else { return };
    let mount = fixture.mount(&["ram:", "m", "--workspaces", "--forks-size", "1m"]);
    ["a", "b"].iter().for_each(|name| drop(fixture.ok(&["fork", "m/base", name])));
    let free = |name: &str| {
        shell(&fixture.at("m/w"), &format!("df --output=avail -B 4k {name} | tail -n 1")).trim().to_owned()
    };
    assert_eq!(free("a"), "256");
    shell(&fixture.at("m/w"), "head -c 512k /dev/zero > a/f; ! head -c 1m /dev/zero > b/f");
    assert_eq!([free("a"), free("b")], ["0", "0"]);
    fixture.ok(&["discard", "--wait", "m/w/b"]);
    // The kernel forgets the files of the fork a little later.
    fixture.until("the space of the fork is free", || free("a") == "128");
    let wrong = fixture.run(&["mount", "ram:", "n", "--workspaces", "--forks-size", "much"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("use a number such as 512m"), "{wrong:?}");
    drop(mount);
}

fn connected(mount: &Path) -> UnixStream {
    let device = fs::metadata(mount).expect("a mount").dev();
    let socket = format!("/run/lightfoot/mount-{}:{}.sock", rustix::fs::major(device), rustix::fs::minor(device));
    UnixStream::connect(socket).expect("a control socket")
}

/// Sends a request to the control socket of a mount. Returns all replies.
fn replies(mount: &Path, request: &Value) -> Vec<Value> {
    let mut stream = connected(mount);
    writeln!(stream, "{request}").expect("a request");
    let lines = BufReader::new(stream).lines();
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect()
}

#[test]
fn a_commit_replies_how_far_it_is() {
    let Some(fixture) = Fixture::new() else { return };
    shell(&fixture.at("."), "mkdir repo");
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    fixture.ok(&["fork", "m/base", "a"]);
    shell(&fixture.at("m/w/a"), "for n in $(seq 300); do echo $n > $n; done");
    let commit = json!({"verb": "commit", "name": "a", "progress": true});
    let replies = replies(&fixture.at("m"), &commit);
    let (last, progress) = replies.split_last().expect("a reply");
    assert_eq!(last["changes"].as_array().map(Vec::len), Some(300), "{last}");
    let parts = |reply: &Value| ["done", "of"].map(|part| reply["progress"][part].as_u64().expect("a number"));
    assert!(!progress.is_empty() && progress.iter().map(parts).all(|[done, of]| done <= of), "{progress:?}");
    let discard = json!({"verb": "discard", "name": "a", "wait": true, "progress": true});
    assert_eq!(super::workspaces::replies(&fixture.at("m"), &discard).last(), Some(&json!("done")));
    drop(mount);
}

/// The requests with a name that the kernel has sent so far.
fn requests(fixture: &Fixture, name: &str) -> u64 {
    let status: Value = serde_json::from_str(&fixture.ok(&["stats", "m", "--json"])).expect("JSON");
    let ops = status["snapshot"]["ops"].as_array().expect("operations");
    ops.iter().find(|op| op["name"] == name).map_or(0, |op| op["count"].as_u64().expect("a count"))
}

#[test]
fn the_kernel_reads_unchanged_files_of_a_read_only_fork_itself() {
    let Some(fixture) = Fixture::new() else { return };
    shell(&fixture.at("."), "mkdir tree && echo old > tree/f && cp tree/f tree/g");
    let mount = fixture.mount(&["tree", "m", "--workspaces", "-o", "passthrough"]);
    fixture.ok(&["fork", "m/base", "a"]);
    shell(&fixture.at("m/w/a"), "echo changed > f");
    fixture.ok(&["fork", "m/w/a", "fixed", "--read-only"]);
    assert_eq!(shell(&fixture.at("m/w/fixed"), "cat g"), "old\n");
    if requests(&fixture, "read") > 0 {
        println!("SKIPPED: the kernel has no passthrough (Linux 6.9)");
        return;
    }
    assert_eq!(shell(&fixture.at("m/w/fixed"), "cat f g"), "changed\nold\n");
    assert_eq!(requests(&fixture, "read"), 1, "of the changed file");
    shell(&fixture.at("m/w/a"), "cat g; echo more >> g");
    assert_eq!(shell(&fixture.at("m/w"), "cat fixed/g a/g"), "old\nold\nmore\n");
    drop(mount);
}

#[test]
fn a_client_that_sends_nothing_delays_no_other() {
    let Some((fixture, mount)) = mounted() else { return };
    let clients: Vec<_> = (0..10).map(|_| connected(&fixture.at("m"))).collect();
    // A client waits 5 seconds at most.
    fixture.ok(&["stats", "m"]);
    drop((clients, mount));
}

#[test]
fn commits_at_once_wait_for_each_other() {
    let Some((fixture, mount)) = mounted() else { return };
    let names: Vec<String> = (0..8).map(|number| format!("a{number}")).collect();
    for name in &names {
        fixture.ok(&["fork", "m/base", name]);
        shell(&fixture.at("m/w").join(name), &format!("for n in $(seq 30); do echo {name} > {name}-$n; done"));
    }
    std::thread::scope(|scope| {
        let commit = |name: &String| replies(&fixture.at("m"), &json!({"verb": "commit", "name": name}));
        let all: Vec<_> = names.iter().map(|name| scope.spawn(move || commit(name))).collect();
        for one in all {
            let replies = one.join().expect("a reply");
            assert_eq!(replies[0]["changes"].as_array().map(Vec::len), Some(30), "{replies:?}");
        }
    });
    assert_eq!(shell(&fixture.at("repo"), "ls | grep -c ^a"), "240\n");
    drop(mount);
}
