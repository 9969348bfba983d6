//! `lightfoot mount --workspaces --upper DIR`: forks that are there again after the end of the daemon, however it ends.

use super::fixture::{Fixture, Mount};
use super::workspaces::shell;
use rustix::process::Signal;
use std::fs;
use std::process::Command;

fn mounted(fixture: &Fixture) -> Mount {
    fixture.mount(&["tree", "m", "--workspaces", "--upper", "up"])
}

/// Kills the daemon, and mounts again.
fn again(fixture: &Fixture, mount: Mount) -> Mount {
    mount.signal(Signal::KILL);
    drop(mount);
    fixture.unmount("m");
    mounted(fixture)
}

/// Returns a fixture with some files in `tree`, mounted with forks at `m`.
fn with_tree() -> Option<(Fixture, Mount)> {
    let fixture = Fixture::new()?;
    shell(&fixture.at("."), "mkdir -p tree/src && for n in 1 2 3; do seq 9999 > tree/src/f$n; done");
    let mount = mounted(&fixture);
    Some((fixture, mount))
}

#[test]
fn forks_outlive_their_daemon() {
    let Some((fixture, mount)) = with_tree() else { return };
    for (from, name) in [("m/base", "a"), ("m/w/a", "b"), ("m/base", "c")] {
        fixture.ok(&["fork", from, name]);
        let script = "mv src lib; echo new > n; echo more >> lib/f1; rm lib/f2; ln -s lib/f1 l; chmod 700 lib; truncate -s 5 lib/f3; \
                      python3 -c 'import os; os.setxattr(\"n\", \"user.a\", b\"value\")'";
        shell(&fixture.at(&format!("m/w/{name}")), if name == "b" { "echo b > b; rm n" } else { script });
    }
    fixture.ok(&["discard", "m/w/c"]);
    fixture.ok(&["fork", "--read-only", "m/w/b", "fixed"]);
    let seen = || {
        let script = "(cd m/w; for f in *; do find $f -printf '%p %y %m %s %T@ %l %n\\n' | sort; \
                      find $f -type f | sort | xargs sha1sum; done); \
                      python3 -c 'import os; print(os.getxattr(\"m/w/a/n\", \"user.a\"))'; \
                      ./lf list m | awk '{ print $1, $2, $4, $5, $6 }'";
        let diff = |name: &str| String::from_utf8(fixture.run(&["diff", &format!("m/w/{name}")]).stdout).expect("text");
        (shell(&fixture.at("."), script), ["a", "b", "fixed"].map(diff))
    };
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lightfoot"), fixture.at("lf")).expect("a link");
    let before = seen();
    assert!(before.1[0].contains("R src -> lib") && before.1[1].contains("A b"), "{before:?}");
    let mut mount = again(&fixture, mount);
    assert_eq!(seen(), before);
    fixture.unmount("m");
    mount = {
        drop(mount);
        mounted(&fixture)
    };
    assert_eq!(seen(), before, "after an orderly end");
    assert!(fs::write(fixture.at("m/w/fixed/x"), "x").is_err_and(|error| error.raw_os_error() == Some(30)));
    shell(&fixture.at("m/w/b"), "echo again >> lib/f1");
    fixture.ok(&["commit", "m/w/b"]);
    fixture.ok(&["commit", "m/w/a"]);
    assert_eq!(shell(&fixture.at("tree"), "tail -n 2 lib/f1; cat b; ls"), "more\nagain\nb\nb\nl\nlib\n");
    let mount = again(&fixture, mount);
    assert_eq!(shell(&fixture.at("m/w/a"), "tail -n 2 lib/f1; ls"), "more\nagain\nb\nl\nlib\n");
    assert_eq!(fixture.ok(&["diff", "m/w/a"]), "");
    fixture.ok(&["discard", "m/w/a", "m/w/b", "m/w/fixed"]);
    let _mount = again(&fixture, mount);
    assert_eq!(shell(&fixture.at("."), "ls m/w"), "");
}

/// A program writes files, and after each a line elsewhere. The daemon is killed meanwhile.
#[test]
fn a_killed_daemon_loses_no_call_that_returned() {
    let Some((fixture, mut mount)) = with_tree() else { return };
    fixture.ok(&["fork", "m/base", "a"]);
    fixture.ok(&["fork", "m/base", "other"]);
    for round in 0..8 {
        let script = format!(
            "exec 3>> done; for n in $(seq 500); do echo {round} $n > m/w/a/{round}-$n && mv m/w/a/{round}-$n m/w/a/x{round}-$n && \
             echo line >> m/w/a/src/f1 || exit; echo x{round}-$n >&3; done"
        );
        let mut writer =
            Command::new("bash").args(["-c", &script]).current_dir(fixture.at(".")).spawn().expect("bash runs");
        let lines = || fs::read_to_string(fixture.at("done")).unwrap_or_default().lines().count();
        let start = lines();
        fixture.until("it writes", || lines() > start + 7 * (round + 1));
        mount.signal(Signal::KILL);
        writer.wait().expect("it ends");
        mount = again(&fixture, mount);
        let script = "for name in $(cat done); do [ \"$(cat m/w/a/$name)\" = \"$(echo $name | tr -d x | tr - ' ')\" ] || echo $name; done";
        assert_eq!(shell(&fixture.at("."), script), "", "round {round}: files that are missing");
        let more = shell(&fixture.at("m/w/a"), "grep -c line src/f1");
        assert!(more.trim().parse::<usize>().expect("a number") >= lines(), "round {round}: {more}");
    }
    assert_eq!(fixture.ok(&["diff", "m/w/other"]), "");
}

#[test]
fn a_directory_that_cannot_keep_the_forks_is_refused() {
    let Some((fixture, mount)) = with_tree() else { return };
    let upper = |source: &str, upper: &str, parts: &[&str]| {
        fixture.refused(&["mount", source, "n", "--workspaces", "--upper", upper], 2, parts);
    };
    upper("tree", "up", &["another mount keeps its forks here"]);
    upper("ram:", "up", &["the source is not a directory"]);
    upper("tree", "tree/src/up", &["is in the source", "beside it"]);
    assert_eq!(
        fixture.run(&["mount", "tree", "n", "--upper", "up"]).status.code(),
        Some(2),
        "--upper needs --workspaces"
    );
    fixture.unmount("m");
    drop(mount);
    fs::create_dir(fixture.at("other")).expect("a directory");
    upper("other", "up", &["has the forks of another directory"]);
    upper("other", ".", &["has other files"]);
}

#[test]
fn a_full_disk_is_an_error_and_removals_work() {
    let Some(fixture) = Fixture::new() else { return };
    shell(
        &fixture.at("."),
        "mkdir -p tree/d up && echo text | tee tree/d/f tree/g && mount -t tmpfs -o size=16m none up",
    );
    let mount = mounted(&fixture);
    fixture.ok(&["fork", "m/base", "a"]);
    let fill = "head -c 5000000 /dev/urandom > one; for n in $(seq 100); do head -c 1000000 /dev/urandom > x$n || exit 0; done 2> /dev/null";
    shell(&fixture.at("m/w/a"), fill);
    let error = fs::write(fixture.at("m/w/a/more"), vec![1; 1 << 20]).expect_err("the disk is full");
    assert_eq!(error.raw_os_error(), Some(28));
    let sum = shell(&fixture.at("m/w/a"), "sha1sum < one");
    shell(&fixture.at("m/w/a"), "rm x* more; rm -r d; sync one");
    // The mark has freed the pages.
    shell(&fixture.at("m/w/a"), "head -c 8000000 /dev/zero > again");
    let mount = again(&fixture, mount);
    let space = || shell(&fixture.at("."), "du -k up/pages | cut -f 1").trim().parse::<u64>().expect("a number");
    shell(&fixture.at("m/w/a"), "rm again");
    fixture.until("the space is free", || space() < 6000);
    shell(&fixture.at("m/w/a"), "echo text > again");
    assert_eq!(shell(&fixture.at("m/w/a"), "ls; sha1sum < one"), format!("again\ng\none\n{sum}"));
    fixture.unmount("m");
    drop(mount);
    shell(&fixture.at("."), "umount up");
}
