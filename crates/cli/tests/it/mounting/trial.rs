//! `lightfoot try` as a stranger and as a script use it.

use super::fixture::{Fixture, end_of};
use super::terminal::Terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns a fixture with the files `d/a` and `d/sub/b`.
fn fixture() -> Option<Fixture> {
    let fixture = Fixture::new()?;
    fill(&fixture);
    Some(fixture)
}

fn fill(fixture: &Fixture) {
    fs::create_dir_all(fixture.at("d/sub")).expect("directories");
    for (file, text) in [("d/a", "old\n"), ("d/sub/b", "b\n")] {
        fs::write(fixture.at(file), text).expect("a file");
    }
}

/// The standard output and standard error of a command, which must have `status`. Nothing is changed, mounted or left afterwards.
fn check(fixture: &Fixture, arguments: &[&str], status: i32) -> (String, String) {
    let output = fixture.run(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
    check_unchanged(fixture);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

fn check_unchanged(fixture: &Fixture) {
    let names = |at: &str| {
        let entries = fs::read_dir(fixture.at(at)).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort_unstable();
        names
    };
    assert_eq!((names("d"), names("d/sub")), (vec!["a".to_owned(), "sub".to_owned()], vec!["b".to_owned()]));
    let text = |file: &str| fs::read_to_string(fixture.at(file)).expect("a file");
    assert_eq!((text("d/a"), text("d/sub/b")), ("old\n".to_owned(), "b\n".to_owned()));
    let table = fs::read_to_string("/proc/self/mountinfo").expect("a table of mounts");
    let mut places = table.lines().filter_map(|line| line.split(' ').nth(4));
    assert!(!places.any(|place| Path::new(place).starts_with(fixture.at("d"))), "{table}");
}

/// A command that changes everything.
const CHANGE: &str = "echo new >> a; rm -r sub; mkdir -p n/m; echo 1 > n/m/1";

/// Its changes.
const CHANGES: &str = "M a\nA n (and 2 below it)\nD sub\n5 changes: 3 added, 1 modified, 1 removed\n";

#[test]
fn a_command_works_in_a_fork_under_the_same_paths_and_the_directory_stays_as_it_was() {
    let Some(fixture) = fixture() else { return };
    let script = format!("cat a sub/b; {CHANGE}; cat a n/m/1; ls; pwd; umask; ulimit -n");
    let here = Command::new("sh").args(["-c", "umask; ulimit -n"]).output().expect("sh runs");
    let here = String::from_utf8(here.stdout).expect("text");
    let path = fixture.at("d");
    let path = path.to_str().expect("text");
    let expected = format!("old\nb\nold\nnew\n1\na\nn\n{path}\n{here}");
    symlink(path, fixture.at("link")).expect("a link");
    for dir in ["d", "./d/", path, "link"] {
        let (shown, errors) = check(&fixture, &["try", "--drop", dir, "--", "sh", "-c", &script], 0);
        assert_eq!((shown, errors), (expected.clone(), CHANGES.to_owned()), "{dir}");
    }
    // The working directory is in the fork, whatever the names that led to it.
    for (dir, at) in [(".", "d/sub"), ("..", "d/sub"), (path, "link/sub"), ("../sub", "d/sub")] {
        let mut command =
            fixture.command(&["try", "--drop", dir, "--", "sh", "-c", "cat b; echo 2 > b; cat b; pwd -P"]);
        command.current_dir(fixture.at(at)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = end_of(command.spawn().expect("the command runs"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("b\n2\n{path}/sub\n"), "{dir}: {output:?}");
        check_unchanged(&fixture);
    }
    // The directory, where the working directory is not in it.
    let (shown, errors) = check(&fixture, &["try", "d/sub", "--drop", "--", "pwd"], 0);
    assert_eq!((shown, errors.as_str()), (format!("{path}/sub\n"), "no changes\n"));
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let Some(fixture) = fixture() else { return };
    let cases: [(&[&str], i32, &str); 7] = [
        (&["sh", "-c", "exit 7"], 7, "no changes\n"),
        (&["sh", "-c", "kill -9 $$"], 137, "no changes\n"),
        (&["sh", "-c", "echo 2 > a; kill -TERM $$"], 143, "M a\n1 change: 1 modified\n"),
        (
            &["no\u{1b}such"],
            127,
            "lightfoot: no\\u{1b}such: no such file or directory (install it, or name its path)\nno changes\n",
        ),
        (&["./a"], 126, "lightfoot: ./a: permission denied (name a program that you may run)\nno changes\n"),
        (&["./sub"], 126, "lightfoot: ./sub: permission denied (name a program that you may run)\nno changes\n"),
        (&["--drop"], 127, "lightfoot: --drop: no such file or directory (install it, or name its path)\nno changes\n"),
    ];
    for (command, status, errors) in cases {
        let shown = check(&fixture, &[&["try", "--drop", "d", "--"], command].concat(), status);
        assert_eq!(shown, (String::new(), errors.to_owned()), "{command:?}");
        // Without changes, and after a failure, there is nothing to apply.
        let (_, shown) = check(&fixture, &[&["try", "--apply", "d", "--"], command].concat(), status);
        assert!(shown.starts_with(errors) && shown.ends_with("its changes are dropped\n"), "{shown}");
    }
}

#[test]
fn changes_are_applied_all_or_none() {
    let Some(fixture) = fixture() else { return };
    let output = fixture.run(&["try", "--apply", "d", "--", "sh", "-c", CHANGE]);
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), CHANGES));
    assert_eq!(fs::read_to_string(fixture.at("d/a")).expect("a file"), "old\nnew\n");
    assert_eq!(fs::read_to_string(fixture.at("d/n/m/1")).expect("a file"), "1\n");
    let names = || {
        let names =
            fs::read_dir(fixture.at("d")).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().expect("text")).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a", "n"]);
    // Another program changes a file meanwhile: the command itself does it, through a descriptor of the directory.
    fs::create_dir(fixture.at("outside")).expect("a directory");
    let mut command = fixture.command(&[
        "try",
        "--apply",
        "d",
        "--",
        "sh",
        "-c",
        "echo 2 > a; echo 2 > b; echo > ../ready; cat ../go",
    ]);
    let go = Command::new("mkfifo").arg(fixture.at("go")).status().expect("mkfifo runs");
    assert!(go.success());
    command.env("TMPDIR", fixture.at("outside"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
    fixture.until("the command has changed its files", || fixture.at("ready").exists());
    fs::write(fixture.at("d/a"), "other\n").expect("a write");
    fs::write(fixture.at("go"), "").expect("a pipe");
    let output = end_of(child);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{errors}");
    assert!(errors.contains("C a: ") && errors.contains("the changes are not applied"), "{errors}");
    assert_eq!(fs::read_to_string(fixture.at("d/a")).expect("a file"), "other\n");
    assert_eq!(names(), ["a", "n"]);
    // The changes are not lost.
    let saved =
        fs::read_dir(fixture.at("outside")).expect("a directory").next().expect("an archive").expect("an entry");
    let saved = saved.path();
    assert!(errors.contains(&format!("the changes are in {} (", saved.display())), "{errors}");
    let unpacked = Command::new("tar").arg("-xf").arg(&saved).arg("-C").arg(fixture.at("outside")).status();
    assert!(unpacked.expect("tar runs").success());
    let read = |name: &str| fs::read_to_string(fixture.at("outside").join(name)).expect("a file");
    assert_eq!((&*read("a"), &*read("b")), ("2\n", "2\n"));
    // With a mount the fork stays.
    let _mount = fixture.mount(&["d", "m", "--workspaces"]);
    let output = fixture.run(&["try", "--apply", "d", "--", "mknod", "device", "c", "1", "3"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("C device: ") && errors.contains("kept: "), "{errors}");
    let output = fixture.run(&["try", "--apply", "--privileged", "d", "--", "mknod", "device", "c", "1", "3"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(names(), ["a", "device", "n"]);
}

#[test]
fn what_cannot_be_done_is_refused_before_the_command_runs() {
    let Some(fixture) = fixture() else { return };
    let run = ["--", "touch", "../ran"];
    let cases: [(&[&str], &[&str]); 8] = [
        (&["/proc", "--drop"], &["/proc: this program needs it to mount (use another directory)"]),
        (&["/dev", "--drop"], &["/dev: this program needs it"]),
        (&["d"], &["no terminal to ask on", "(name one of --apply, --keep NAME, --drop)"]),
        (&["d", "--keep", "x"], &["--keep x: no mount has forks of ", "/d MNT --workspaces"]),
        (&["/", "--drop"], &["/: nothing can be mounted over the root directory (use a directory below it)"]),
        (&["d/a", "--drop"], &["d/a: not a directory (use a directory)"]),
        (&["none", "--drop"], &["none: no such file or directory (use a directory)"]),
        (&["m", "--keep", "x/y"], &["x/y: not the name of a fork"]),
    ];
    fs::create_dir(fixture.at("tree")).expect("a directory");
    let _mount = fixture.mount(&["tree", "m", "--workspaces"]);
    fixture.ok(&["fork", "m", "x"]);
    for (arguments, parts) in cases {
        let dir = if arguments[0] == "m" { "m/w/x" } else { arguments[0] };
        let mut command = Command::new("setsid");
        command.args(["-w", env!("CARGO_BIN_EXE_lightfoot"), "try", dir]).args(&arguments[1..]).args(run);
        command.current_dir(fixture.at(".")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(child) = command.spawn() else { return println!("SKIPPED: setsid(1) is not installed") };
        let output = end_of(child);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), message.lines().count()), (Some(125), 1), "{arguments:?}: {message}");
        assert!(message.starts_with("lightfoot: ") && parts.iter().all(|part| message.contains(part)), "{message}");
    }
    for wrong in [&["--drop", "--apply"][..], &["--drop", "--keep", "x"], &["--drop", "--privileged"]] {
        let output = fixture.run(&[&["try", "d"], wrong, &run].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    assert!(!fixture.at("ran").exists());
    check_unchanged(&fixture);
}

#[test]
fn a_mount_that_has_the_directory_as_its_tree_makes_the_fork_and_can_keep_it() {
    let Some(fixture) = fixture() else { return };
    let _mount = fixture.mount(&["d", "m", "--workspaces"]);
    let forks = || fixture.ok(&["list", "m"]);
    let (shown, errors) =
        check(&fixture, &["try", "d", "--drop", "--", "sh", "-c", "echo 2 > a; lightfoot=1; cat a; ls ../m/w"], 0);
    assert!(shown.starts_with("2\ntry-") && errors == "M a\n1 change: 1 modified\n", "{shown}{errors}");
    assert!(forks().starts_with("no forks"), "{}", forks());
    let path = fixture.at("d/sub");
    let run = ["--", "sh", "-c", "pwd; echo kept > c"];
    let (shown, errors) = check(&fixture, &[&["try", "d/sub", "--keep", "k"], &run[..]].concat(), 0);
    assert_eq!(shown.trim_end(), path.to_str().expect("text"));
    assert_eq!(errors, format!("A sub/c\n1 change: 1 added\nlightfoot: kept: {}\n", fixture.at("m/w/k/sub").display()));
    assert_eq!(fs::read_to_string(fixture.at("m/w/k/sub/c")).expect("a file"), "kept\n");
    // A fork of a fork, under the paths of the first.
    let run = ["--", "sh", "-c", "cat c; echo more >> c; exit 3"];
    let (shown, errors) = check(&fixture, &[&["try", "m/w/k/sub", "--keep", "l"], &run[..]].concat(), 3);
    assert_eq!((shown.as_str(), errors.lines().next()), ("kept\n", Some("M sub/c")));
    let text = |fork: &str| fs::read_to_string(fixture.at(fork)).expect("a file");
    assert_eq!((text("m/w/k/sub/c").as_str(), text("m/w/l/sub/c").as_str()), ("kept\n", "kept\nmore\n"));
    fixture.refused(&["try", "d", "--keep", "k", "--", "true"], 125, &["k: this fork exists"]);
    assert!(forks().contains("\nl ") && forks().contains("\nk ") && forks().lines().count() == 3, "{}", forks());
    // A mount without forks, and a directory that is not in the tree, have their own mount.
    for dir in ["m/base/sub", "tree"] {
        fs::create_dir_all(fixture.at("tree")).expect("a directory");
        let _ = check(&fixture, &["try", dir, "--drop", "--", "touch", "/dev/null"], 0);
    }
}

/// A process, which a test waits for.
fn process(fixture: &Fixture, file: &str) -> OwnedFd {
    let number = || fs::read_to_string(fixture.at(file)).ok()?.trim_end().parse().ok();
    let mut pid = None;
    fixture.until("the command runs", || {
        pid = number();
        pid.is_some()
    });
    pidfd_open(pid.and_then(Pid::from_raw).expect("a process"), PidfdFlags::empty()).expect("it runs")
}

fn has_ended(process: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
}

#[test]
fn whatever_ends_it_ends_the_command_and_nothing_stays_mounted() {
    let Some(fixture) = fixture() else { return };
    for (signal, status) in [(Signal::KILL, None), (Signal::TERM, Some(143)), (Signal::HUP, Some(129))] {
        let _ = fs::remove_file(fixture.at("pid"));
        // The shell becomes `sleep`, so the file has the number of the command.
        let script = format!("{CHANGE}; echo $$ > ../new; mv ../new ../pid; exec sleep 60 > ../out 2>&1");
        let mut command = fixture.command(&["try", "--drop", "d", "--", "sh", "-c", &script]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let sleep = process(&fixture, "pid");
        assert!(!has_ended(&sleep));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let output = end_of(child);
        assert_eq!(output.status.code(), status, "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing is listed");
        fixture.until("the command has ended", || has_ended(&sleep));
        check_unchanged(&fixture);
    }
}

#[test]
fn programs_that_the_command_leaves_behind_lose_the_fork_and_hold_up_nothing() {
    let Some(fixture) = fixture() else { return };
    let script = "top=${PWD%/*}; (exec >/dev/null 2>&1; cd sub; echo 1 > c; touch $top/ready; sleep 0.01; \
        while test -e c; do sleep 0.01; done; touch $top/lost) & until test -e $top/ready; do sleep 0.01; done";
    let (_, errors) = check(&fixture, &["try", "--drop", "d", "--", "sh", "-c", script], 0);
    assert_eq!(errors, "A sub/c\n1 change: 1 added\n");
    fixture.until("the program has lost the fork", || fixture.at("lost").exists());
    check_unchanged(&fixture);
}

/// `try` on a terminal, with the question on the screen.
fn asked(fixture: &Fixture, arguments: &[&str], question: &str) -> Option<Terminal> {
    let mut terminal = Terminal::start(fixture, &[&["try"], arguments].concat(), (24, 100))?;
    terminal.until("the question comes", |text| text.contains(question));
    Some(terminal)
}

#[test]
fn the_terminal_is_asked_and_ctrl_c_ends_the_command_and_then_drops() {
    let Some(fixture) = fixture() else { return };
    let question = "apply or drop them? [a/d] ";
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    let Some(mut terminal) = asked(&fixture, &["d", "--", "sh", "-c", "echo 2 > a; exit 4"], question) else { return };
    assert!(terminal.text().contains("M a\n1 change: 1 modified\n"), "{}", terminal.text());
    terminal.type_in("k\n");
    terminal.until("the question comes again", |text| text.matches(question).count() == 2);
    terminal.type_in("d\n");
    let (status, text) = terminal.end();
    assert_eq!((status, last(&text)), (Some(4), format!("{question}d")), "{text}");
    check_unchanged(&fixture);
    let script = "echo 2 > a; trap '' QUIT; echo ready; read answer";
    let mut terminal = Terminal::start(&fixture, &["try", "d", "--", "sh", "-c", script], (24, 100)).expect("setsid");
    terminal.until("the command runs", |text| text.contains("ready"));
    // Ctrl-\ and then Ctrl-C.
    terminal.type_in("\x1c");
    terminal.type_in("\x03");
    terminal.until("the question comes", |text| text.contains(question));
    terminal.type_in("\x03");
    let (status, text) = terminal.end();
    assert_eq!((status, last(&text)), (Some(130), "dropped".to_owned()), "{text}");
    check_unchanged(&fixture);
    // Without changes there is nothing to ask.
    let mut terminal = Terminal::start(&fixture, &["try", "d", "--", "true"], (24, 100)).expect("setsid");
    assert_eq!(terminal.end(), (Some(0), "no changes".to_owned()));
    let _mount = fixture.mount(&["d", "m", "--workspaces"]);
    let arguments = ["d/sub", "--", "sh", "-c", "echo 2 > c"];
    let mut terminal = asked(&fixture, &arguments, "apply, keep or drop them? [a/k/d] ").expect("setsid");
    terminal.type_in("keep\n");
    let (status, text) = terminal.end();
    let kept = text.rsplit_once("kept: ").expect("the path").1.replace('\n', "");
    assert_eq!(status, Some(0));
    assert_eq!(fs::read_to_string(Path::new(&kept).join("c")).expect("the fork"), "2\n");
    check_unchanged(&fixture);
}

/// `user CMD`: as a user without rights, in a mount namespace where everybody may open `/dev/fuse`.
const BEFORE: &str = r#"
    set -eu
    mkdir -p dev; mount -t tmpfs none dev
    mknod -m 666 dev/fuse c 10 229; mount --bind dev/fuse /dev/fuse
    chown -R 1001:1001 d; cp "$LIGHTFOOT" lf
    user() { setpriv --reuid=1001 --regid=1001 --groups=2000 env HOME=/ "$@"; }
    not() { if "$@"; then echo "did not fail: $*" >&2; return 1; fi; }
    same() { if [ "$1" != "$2" ]; then echo "$1, and not $2" >&2; return 1; fi; }
"#;

/// The output of a script in new namespaces. `None`: the programs are not installed.
fn in_namespaces(fixture: &Fixture, kinds: &str, script: &str) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.args([kinds, "sh", "-c", script]).current_dir(fixture.at("")).stdin(Stdio::null());
    command.env("LIGHTFOOT", env!("CARGO_BIN_EXE_lightfoot")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().ok().filter(|_| Command::new("setpriv").arg("--version").output().is_ok());
    if child.is_none() {
        println!("SKIPPED: it needs unshare and setpriv");
    }
    child.map(end_of)
}

#[test]
fn a_user_without_rights_has_the_same_in_a_user_namespace() {
    let Some(fixture) = fixture() else { return };
    let script = format!(
        r#"{BEFORE}
        echo theirs > d/theirs; chown 1002:2000 d/theirs; chown 1001:2000 d/a
        user sh -c 'cd d && ../lf try --drop -- sh -c "{CHANGE}; not() {{ ! \"\$@\"; }}; id -u; id -g; pwd; cat a theirs; not rm theirs;
            not umount .; stat -c %u:%g n/m/1; grep -c \" $PWD rw\" /proc/self/mountinfo"; echo $?' > out
        user sh -c 'cd d && ../lf try --apply -- sh -c "echo applied > b; mv sub sub2; chmod 600 a"' 2> applied
        same "$(cat d/b; ls d/sub2; stat -c %u:%g:%a d/b d/a | xargs)" "applied
b
1001:1001:644 1001:2000:600"
        rm d/b; mv d/sub2 d/sub; chmod 644 d/a
        rm d/theirs; chown -R 0:0 d; cat out
        not grep " $PWD/d " /proc/self/mountinfo
        "#
    );
    let Some(output) = in_namespaces(&fixture, "-m", &script) else { return };
    let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let path = fixture.at("d");
    let expected = format!("1001\n1001\n{}\nold\nnew\ntheirs\n1001:1001\n2\n0\n", path.display());
    assert_eq!((output.status.code(), shown.as_ref()), (Some(0), expected.as_str()), "{errors}");
    assert!(errors.ends_with(CHANGES), "{errors}");
    check_unchanged(&fixture);
}

#[test]
fn a_user_keeps_a_fork_in_a_mount_by_the_helper() {
    let Some(fixture) = fixture() else { return };
    if Command::new("fusermount3").arg("--version").output().is_err() {
        return println!("SKIPPED: it needs fusermount3");
    }
    // The helper mounts only for a user with a name.
    let script = format!(
        r#"{BEFORE}
        mkdir run; chown nobody run d m
        user() {{ setpriv --reuid=nobody --regid=65534 --clear-groups env HOME=/ XDG_RUNTIME_DIR="$PWD/run" "$@"; }}
        user ./lf mount d m --workspaces --daemon
        user ./lf try d --keep k -- sh -c 'pwd; echo kept > c; grep CapEff /proc/self/status'
        same "$(user cat m/w/k/c)" kept
        not test -e d/c
        user ./lf unmount m; chown -R 0:0 d
        "#
    );
    let Some(output) = in_namespaces(&fixture, "-m", &script) else { return };
    let expected = format!("{}\nCapEff:\t0000000000000000\n", fixture.at("d").display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check_unchanged(&fixture);
}

#[test]
fn a_machine_that_lets_no_user_mount_is_one_clear_error() {
    let Some(fixture) = fixture() else { return };
    // Root without capabilities in a new user namespace, which may have no others: a switch of this machine stays as it is.
    let without = "echo 0 > /proc/sys/user/max_user_namespaces; \
        exec setpriv --bounding-set=-all --inh-caps=-all $LIGHTFOOT try --drop d -- touch ran";
    // A process in another root directory than its namespace's may not make a user namespace.
    let elsewhere = "mkdir root; mount --rbind / root; PATH=$PATH:/usr/sbin; chroot root \
        setpriv --reuid=1001 --regid=1001 --clear-groups sh -c \"cd $PWD && exec ./lf try --drop d -- touch ran\"";
    let cases = [
        (
            "-mUr",
            without,
            "no user namespace to mount in: no space left on device (run `sysctl user.max_user_namespaces=",
        ),
        (
            "-m",
            elsewhere,
            "no user namespace to mount in: operation not permitted (run this as root; a container needs",
        ),
        (
            "-m",
            "chmod 600 dev/fuse; user ./lf try --drop d -- touch ran",
            "/dev/fuse: Permission denied (run as root, or let your user read and write the device)",
        ),
        (
            "-m",
            "mount -t tmpfs none /dev; user ./lf try --drop d -- touch ran",
            "/dev/fuse: no such device (load the kernel module",
        ),
    ];
    for (kinds, script, expected) in cases {
        let before = if kinds == "-m" { BEFORE } else { "" };
        let Some(output) = in_namespaces(&fixture, kinds, &format!("{before}{script}")) else { return };
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{script}: {message}");
        assert!(message.starts_with(&format!("lightfoot: {expected}")) && message.lines().count() == 1, "{message}");
        assert!(!fixture.at("d/ran").exists() && !fixture.at("ran").exists());
    }
}
