//! `lightfoot diff --stat`, `--patch` and `--tar`: git and tar make the tree of the fork out of them.

use super::fixture::{Fixture, Mount};
use super::workspaces::shell;
use rustix::process::Signal;
use std::fs;
use std::process::Stdio;

/// Makes a tree of everything that a patch can have.
const TREE: &str = r#"
    mkdir -p src/deep keep 'with space' lost
    for n in $(seq 100); do echo "line $n"; done | tee src/long > src/deep/long
    printf 'no end' > src/no-end; : > empty; head -c 3000 /dev/urandom > binary; head -c 9000 /dev/zero > zeros
    echo text > to-link; ln -s to-link link; ln -s there link-to-text; echo x > run; echo lost > lost/f; ln -s away src/kind; echo tab > "$(printf 'a\tb')"
    echo s > 'with space/f g'; printf 'n\n' > "$(printf 'new\nline')"; printf 'b\n' > "$(printf '\377byte')"; echo ü > ü
    echo one > one; echo two > two; mkdir was-dir; echo f > was-dir/f; echo file > was-file; echo 1 > keep/same
"#;

/// Changes all of it.
const CHANGE: &str = r#"
    mv src lib; rm lib/kind; echo a file > lib/kind; sed -i 's/line 50$/changed/' lib/deep/long; sed -i '3d; 99a added' lib/long; printf ' now' >> lib/no-end
    echo full > empty; head -c 500 /dev/urandom > binary; printf x | dd of=zeros bs=1 seek=5000 conv=notrunc status=none
    rm to-link; ln -s elsewhere to-link; ln -sfn other link; rm link-to-text; echo text > link-to-text; chmod +x run
    rm -r lost; echo t >> "$(printf 'a\tb')"; mv 'with space' 'more  space'; echo g >> 'more  space/f g'
    echo m >> "$(printf 'new\nline')"; echo c >> "$(printf '\377byte')"; mv ü ö
    mv one swap; mv two one; mv swap two; rm -r was-dir; echo file > was-dir; rm was-file; mkdir was-file; echo g > was-file/g
    mkdir new; echo n > new/n; : > new/empty; ln new/n new/hard
"#;

fn mounted() -> Option<(Fixture, Mount)> {
    let fixture = Fixture::new()?;
    fs::create_dir(fixture.at("repo")).expect("a directory");
    shell(&fixture.at("repo"), TREE);
    let mount = fixture.mount(&["repo", "m", "--workspaces"]);
    fixture.ok(&["fork", "m/base", "a"]);
    shell(&fixture.at("m/w/a"), CHANGE);
    Some((fixture, mount))
}

/// Writes the output of the command into a file.
fn saved(fixture: &Fixture, arguments: &[&str], file: &str) {
    let output = fixture.run(arguments);
    assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]), "{output:?}");
    fs::write(fixture.at(file), output.stdout).expect("the file");
}

#[test]
fn git_applies_a_patch_and_takes_it_back() {
    let Some((fixture, _mount)) = mounted() else { return };
    saved(&fixture, &["diff", "m/w/a", "--patch"], "a.patch");
    let script = "cp -a repo there; cd there; git init -q .; git apply --check ../a.patch; git apply ../a.patch; \
        rm -r .git; diff -r --no-dereference . ../m/w/a; test -x run; \
        git init -q .; git apply -R ../a.patch; rm -r .git; diff -r --no-dereference . ../repo; test ! -x run";
    assert_eq!(shell(&fixture.at(""), script), "");
    // A file that moved and changed is a rename, not two files.
    let patch = fs::read(fixture.at("a.patch")).expect("the patch");
    let patch = String::from_utf8_lossy(&patch);
    assert!(patch.contains("rename from src/long\nrename to lib/long\n"), "{patch}");
    assert!(!patch.contains("line 7"), "{patch}");
    // Also from the base to the fork.
    saved(&fixture, &["diff", "m/w/a", "m/base", "--patch"], "b.patch");
    assert_eq!(
        fs::read(fixture.at("b.patch")).expect("the patch"),
        fs::read(fixture.at("a.patch")).expect("the patch")
    );
    assert_eq!(fixture.ok(&["list", "m"]).lines().count(), 2, "the temporary forks are discarded");
}

#[test]
fn an_archive_has_the_changes_and_the_removals() {
    let Some((fixture, _mount)) = mounted() else { return };
    shell(
        &fixture.at("m/w/a"),
        "python3 -c 'import os; os.setxattr(\"new/n\", \"user.k\", b\"v\")'; mkfifo new/pipe; touch -d @1.25 new/empty; chmod 4750 run",
    );
    saved(&fixture, &["diff", "m/w/a", "--tar"], "a.tar");
    let script = "tar tf a.tar | sort > names; cp -a repo there; cd there; \
        find ../names -exec grep -F .wh. {} + | sed 's/.*names://; s/\\.wh\\.//' | while read -r name; do rm -r \"$name\"; done; \
        tar xpf ../a.tar --xattrs --exclude='.wh.*' --recursive-unlink --unlink-first; diff -r --no-dereference -x pipe . ../m/w/a; \
        list() { (cd $1; find . ! -name . -printf '%p %y %m %l %n\\n' | sort); }; list . > ../one; list ../m/w/a > ../other; \
        diff ../one ../other; python3 -c 'import os; print(os.getxattr(\"new/n\", \"user.k\").decode(), end=\"\")'; stat -c ' %.2Y' new/empty; grep -c keep ../names || true";
    assert_eq!(shell(&fixture.at(""), script), "v 1.25\n0\n");
    assert_eq!(fixture.ok(&["list", "m"]).lines().count(), 2, "the temporary forks are discarded");
}

#[test]
fn a_summary_counts_lines() {
    let Some((fixture, _mount)) = mounted() else { return };
    fixture.ok(&["fork", "m/w/a", "b"]);
    let script = "seq 60 > new/n; rm lib/deep/long; mv two three; printf '\\0' > empty; chmod 600 run";
    shell(&fixture.at("m/w/b"), script);
    let stat = fixture.run(&["diff", "m/w/b", "--stat"]);
    let expected = " empty         | Bin 5 -> 1 bytes\n \
        lib/deep/long | 100 ----------------------------------------\n \
        new/n         |  61 ++++++++++++++++++++++++-\n \
        run           |   0\n \
        two => three  |   0\n \
        5 files changed; lines: 60 added, 101 removed\n";
    assert_eq!(String::from_utf8_lossy(&stat.stdout), expected);
    assert_eq!(stat.status.code(), Some(1));
    fixture.ok(&["fork", "m/w/b", "c"]);
    let empty = fixture.run(&["diff", "m/w/c", "--stat"]);
    assert_eq!((empty.status.code(), &*empty.stdout), (Some(0), &b" 0 files changed; lines: 0 added, 0 removed\n"[..]));
}

#[test]
fn a_comparison_that_is_ended_leaves_no_fork() {
    let Some((fixture, _mount)) = mounted() else { return };
    shell(&fixture.at("m/w/a"), "head -c 30000000 /dev/urandom | base64 > many");
    let mut child = fixture.command(&["diff", "m/w/a", "--patch"]).stdout(Stdio::piped()).spawn().expect("it runs");
    // The pipe is full before the patch is complete.
    fixture.until("the forks are there", || fixture.ok(&["list", "m"]).lines().count() == 4);
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, Signal::TERM).expect("it runs still");
    drop(child.stdout.take());
    let ended = child.wait().expect("it ends");
    assert!(!ended.success());
    assert_eq!(fixture.ok(&["list", "m"]).lines().count(), 2);
}

#[test]
fn a_file_that_a_form_cannot_have_is_named() {
    let Some((fixture, _mount)) = mounted() else { return };
    fixture.ok(&["fork", "m/w/a", "b", "--read-only"]);
    shell(&fixture.at("m/w"), "! touch b/x 2>/dev/null");
    shell(&fixture.at("m/w/a"), "mkfifo pipe; echo > .wh.x");
    let patch = fixture.run(&["diff", "m/w/a", "m/w/b", "--patch"]);
    let errors = String::from_utf8_lossy(&patch.stderr).into_owned();
    assert_eq!(
        (patch.status.code(), &*errors),
        (Some(1), "lightfoot: pipe: not in the patch (only files and symbolic links are)\n")
    );
    fixture.refused(&["diff", "m/w/a", "--tar"], 2, &[".wh.x: a layer cannot have", "--patch"]);
    assert_eq!(fixture.run(&["diff", "m/w/a", "--tar", "--stat"]).status.code(), Some(2));
    fixture.refused(&["diff", "m/w/none", "--stat"], 2, &["none: no such fork"]);
}
