//! The command as its user meets it: output, exit status, and what it leaves behind.

use crate::command::{check_is_refused, check_makes_no_sense, empty_dir, stderr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

/// A small tree with files at two depths, loops and a name that is not UTF-8.
fn source() -> TempDir {
    let dir = empty_dir();
    fs::create_dir_all(dir.path().join("a/b")).expect("directories");
    for number in 0..20 {
        fs::write(dir.path().join(format!("a/b/f{number}")), "contents").expect("a file");
        fs::write(dir.path().join(format!("g{number}")), "").expect("a file");
    }
    fs::write(dir.path().join(OsStr::from_bytes(b"a/b/\xff\xfe")), "odd").expect("a file");
    symlink("loop", dir.path().join("loop")).expect("a link");
    symlink("..", dir.path().join("a/up")).expect("a link");
    dir
}

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-lab"));
    command.arg("bench").args(arguments).stdin(Stdio::null());
    command
}

/// Runs it with slices so short that only the way is tested; gives its output and its process's number.
fn run(arguments: &[&str], dir: Option<&Path>) -> (Output, u32) {
    let mut command = bench(arguments);
    command.args(["--quick", "--rounds", "5", "--slice-us", "20"]).args(dir);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let id = child.id();
    (child.wait_with_output().expect("the command ends"), id)
}

/// The output of the child, when it has ended; it is killed after a minute, so that a test fails and does not hang.
fn end_of(child: Child) -> Output {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a child that was not waited for");
    let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
    let watch = move || {
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) == Ok(0) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    };
    let watching = thread::spawn(watch);
    let output = child.wait_with_output().expect("a child");
    watching.join().expect("it only waits");
    output
}

/// What the process with number `id` left in the places for temporary files.
fn left_behind(id: u32) -> Vec<PathBuf> {
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let listed = places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten();
    let paths = listed.filter_map(|entry| Some(entry.ok()?.path()));
    let own = format!("lightfoot-bench-{id}");
    paths.filter(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(own.as_bytes()))).collect()
}

#[test]
fn json_has_every_case_at_every_depth_and_what_to_read_it_with() {
    let source = source();
    let (output, id) = run(&["--json"], Some(source.path()));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "no progress bar where there is no terminal");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    for key in ["machine", "tree", "copy_on", "bytes_per_name", "fallbacks", "rows"] {
        assert!(!report[key].is_null(), "{key} is missing");
    }
    assert_eq!(report["tree"]["files"], 41);
    assert_eq!(report["tree"]["symlinks"], 2);
    let rows = report["rows"].as_array().expect("rows");
    for operation in ["stat", "stat_same", "open_close", "creat_unlink"] {
        for side in ["lightfoot", "kernel"] {
            for depth in [1, 3] {
                let is_it = |row: &&Value| row["case"] == format!("{side}.{operation}") && row["depth"] == depth;
                let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{side}.{operation} at depth {depth}"));
                let ns = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
                assert!(ns("min_ns") <= ns("median_ns") && ns("median_ns") <= ns("max_ns"), "{row}");
                assert!(row["rounds"] == 5 && row["threads"].is_u64(), "{row}");
            }
        }
    }
    assert_eq!(left_behind(id), Vec::<PathBuf>::new());
}

#[test]
fn the_table_says_where_the_kernels_copy_was_and_has_the_asked_for_cases_alone() {
    let source = source();
    let (output, id) = run(&["-v", "--cases", "t.stat,kernel.stat_same", "--threads", "1"], Some(source.path()));
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("the table is UTF-8");
    for part in ["machine", "lightfoot.stat ", "kernel.stat_same", "bytes per cached name", "rcu-walk left:"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    for part in ["kernel.stat ", "open_close  "] {
        assert!(!text.contains(part), "{part} is in\n{text}");
    }
    assert!(text.contains("kernel     on "), "{text}");
    assert_eq!(left_behind(id), Vec::<PathBuf>::new());
}

#[test]
fn the_cold_tree_is_measured_with_lightfoot_alone_unless_the_kernel_is_asked_for() {
    for (arguments, expected) in
        [(&["--cold"][..], &["lightfoot.stat"][..]), (&["--cold", "--cold-kernel"], &["lightfoot.stat", "kernel.stat"])]
    {
        let fixed = ["--json", "--cold-files", "2000", "--rounds", "5", "--slice-us", "20", "--threads", "1"];
        let output = bench(arguments).args(fixed).output().expect("the command runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        let rows = report["rows"].as_array().expect("rows");
        let cases: Vec<&str> = rows.iter().filter_map(|row| row["case"].as_str()).collect();
        assert_eq!(cases, expected);
        assert!(rows.iter().all(|row| row["depth"] == 8), "{rows:?}");
        assert_eq!(report["tree"]["files"], 2048);
    }
}

#[test]
fn the_peers_have_a_row_each_at_every_depth_with_one_thread_and_the_null_call_among_them() {
    let (output, id) = run(&["--peers", "--threads", "1", "--json"], None);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = report["rows"].as_array().expect("rows");
    let peers = ["lightfoot", "by-table", "papaya", "dashmap", "locked-tree", "vfs-memoryfs", "kernel", "null-call"];
    for case in peers.map(|peer| format!("{peer}.stat")) {
        for depth in [1, 16] {
            let is_it = |row: &&Value| row["case"] == case && row["depth"] == depth && row["threads"] == 1;
            let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{case} at depth {depth}"));
            assert!(row["median_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        }
    }
    assert_eq!(rows.len(), 2 * peers.len());
    assert_eq!(left_behind(id), Vec::<PathBuf>::new());
}

#[test]
fn the_table_of_the_peers_is_markdown_and_names_the_system_calls() {
    let (output, _) = run(&["--peers", "--threads", "1"], None);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("the table is UTF-8");
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(table.len(), 2 + 8, "{text}");
    assert!(table.iter().all(|line| line.matches('|').count() == 4), "{text}");
    for part in ["function calls", "system calls", "`getppid(2)`", "`vfs::MemoryFS`"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// Runs it and expects status 2 and one sentence with all of `parts`.
fn check_refused(arguments: &[&str], dir: Option<&Path>, parts: &[&str]) {
    let (output, id) = run(arguments, dir);
    check_is_refused(&output, arguments, parts);
    assert_eq!(left_behind(id), Vec::<PathBuf>::new(), "{arguments:?}");
}

#[test]
fn bad_input_gets_one_sentence_that_names_it_and_status_2() {
    let (source, empty) = (source(), empty_dir());
    let file = source.path().join("g0");
    let gone = empty.path().join("gone");
    check_refused(&[], Some(&source.path().join("gone")), &["gone", "no such directory", "omit DIR"]);
    check_refused(&[], Some(&file), &["g0", "not a directory"]);
    check_refused(&[], Some(&file.join("below")), &["below", "not a directory"]);
    check_refused(&[], Some(&source.path().join("loop")), &["loop", "cannot read"]);
    check_refused(&[], Some(empty.path()), &["no regular file"]);
    check_refused(&["--cases", "nonsense"], Some(source.path()), &["nonsense", "lightfoot.stat", "kernel.open_close"]);
    check_refused(&["--threads", "1,4096"], Some(source.path()), &["4096 threads", "--threads"]);
    check_refused(
        &["--scratch", gone.to_str().expect("a path that is UTF-8")],
        Some(source.path()),
        &["gone", "--scratch DIR"],
    );
}

#[test]
fn a_command_line_that_makes_no_sense_has_status_2() {
    for arguments in [
        &["--rounds", "4"][..],
        &["--threads", "0"],
        &["--threads", "x"],
        &["--nonsense"],
        &["a", "b"],
        &["--peers", "a"],
    ] {
        let output = bench(arguments).output().expect("the command runs");
        check_makes_no_sense(&output, arguments);
    }
}

/// Gives `lightfoot` a file system of four pages and prints what it leaves there.
const ON_A_SMALL_TMPFS: &str = "mount -t tmpfs -o size=16k,nr_inodes=8 none \"$1\" || exit 77
    \"$2\" bench --quick --scratch \"$1\" \"$3\"; status=$?; ls -A \"$1\"; exit $status";

#[test]
fn a_full_scratch_directory_is_said_and_cleared() {
    let (source, mount) = (source(), empty_dir());
    // In a separate mount namespace, so that the mount goes with the process.
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_TMPFS, "sh"]);
    let output = command.args([mount.path(), Path::new(env!("CARGO_BIN_EXE_lightfoot-lab")), source.path()]).output();
    let Some(output) = output.ok().filter(|output| stderr(output).starts_with("lightfoot-lab: ")) else {
        eprintln!("SKIPPED: a small tmpfs cannot be mounted here");
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in ["no space left", "tmpfs", "--scratch DIR", &mount.path().display().to_string()] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "what is left there");
}

#[test]
fn a_signal_ends_it_with_nothing_left_behind() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let source = source();
        // The tests may run where the signals are ignored, as after `nohup cargo test &`. Rounds enough for an hour.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_lightfoot-lab"), "bench"]);
        command.args(["--rounds", "999", "--slice-us", "100000"]).arg(source.path());
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the command starts");
        let id = child.id();
        // Its directory shows that it listens for signals.
        while left_behind(id).is_empty() && child.try_wait().expect("a child").is_none() {
            thread::yield_now();
        }
        let sent = Command::new("kill").args(["-s", signal, &id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
        let output = end_of(child);
        assert_eq!(output.status.code(), Some(status), "{signal}");
        assert!(stderr(&output).starts_with("lightfoot-lab: interrupted"), "{}", stderr(&output));
        assert_eq!(left_behind(id), Vec::<PathBuf>::new(), "{signal}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let source = source();
    let mut command = bench(&["--json", "--quick", "--slice-us", "20"]);
    let child = command.arg(source.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}
