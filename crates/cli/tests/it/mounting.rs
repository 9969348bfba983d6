//! `lightfoot mount`, `unmount`, `stats` and `top` as an operator uses them. They need root and `/dev/fuse`; elsewhere each
//! test prints that it was skipped.

mod aborts;
mod comparing;
mod documents;
mod fixture;
mod hanging;
mod hostile;
mod kept;
mod monitoring;
mod objects;
mod options;
mod plain_user;
#[expect(dead_code, reason = "its faults are for the tests of objectfs")]
#[path = "../../../objectfs/tests/it/s3/server.rs"]
mod server;
mod sources;
mod terminal;
mod trial;
mod workspaces;

use fixture::{Fixture, Stopped, end_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn a_signal_ends_a_mount_in_the_foreground_cleanly() {
    let Some(fixture) = Fixture::new() else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mount = fixture.mount(&["ram:", "m", "-o", "size=10m"]);
        fs::create_dir(fixture.at("m/d")).expect("a directory can be made");
        fs::write(fixture.at("m/d/f"), "contents").expect("a file can be written");
        assert_eq!(fs::read_to_string(fixture.at("m/d/f")).expect("it can be read"), "contents");
        assert_eq!(fs::read_dir(fixture.at("m")).expect("it can be listed").count(), 1);
        mount.signal(signal);
        let (status, log) = mount.end();
        assert_eq!(status, Some(0), "{log}");
        assert!(!fixture.is_mounted() && log.contains("unmounted"), "{log}");
        assert_eq!(fs::read_dir(fixture.at("m")).expect("it can be listed").count(), 0);
    }
}

#[test]
fn a_signal_leaves_programs_time_to_close_their_files() {
    let Some(fixture) = Fixture::new() else { return };
    let mut mount = fixture.mount(&["ram:", "m"]);
    fs::write(fixture.at("m/f"), "before").expect("a file can be written");
    let mut file = File::options().read(true).append(true).open(fixture.at("m/f")).expect("it can be opened");
    mount.signal(Signal::TERM);
    fixture.until("it is detached", || !fixture.is_mounted());
    file.write_all(b" and after").expect("it can still be written");
    let mut text = String::new();
    file.rewind().expect("it is a file");
    file.read_to_string(&mut text).expect("it can still be read");
    assert!(text == "before and after" && !mount.is_over(), "{text}");
    drop(file);
    let (status, log) = mount.end();
    assert_eq!(status, Some(0), "{log}");
}

#[test]
fn a_second_signal_does_not_wait_for_open_files() {
    let Some(fixture) = Fixture::new() else { return };
    let mount = fixture.mount(&["ram:", "m"]);
    let mut file = File::create(fixture.at("m/f")).expect("a file can be made");
    mount.signal(Signal::TERM);
    fixture.until("it is detached", || !fixture.is_mounted());
    mount.signal(Signal::TERM);
    let (status, log) = mount.end();
    assert_eq!(status, Some(128 + 15), "{log}");
    // The kernel may collect writes.
    assert!(file.write_all(b"x").and_then(|()| file.sync_all()).is_err(), "nothing serves it any more");
}

#[test]
fn a_second_signal_does_not_wait_for_requests_that_hang() {
    const CALLS: usize = 8;
    let Some(fixture) = Fixture::new() else { return };
    let offer = fs::read_to_string("/sys/module/fuse/parameters/enable_uring").unwrap_or_default();
    let carriers: &[&str] = if offer.trim() == "Y" { &["no_uring", "uring"] } else { &["no_uring"] };
    // A directory whose server stops.
    fs::create_dir(fixture.at("s")).expect("a directory");
    fixture.ok(&["mount", "--daemon", "ram:", "s", "-o", "no_uring"]);
    let slow: Value = serde_json::from_str(&fixture.ok(&["stats", "--json", "s"])).expect("JSON");
    let slow = Pid::from_raw(slow["pid"].as_i64().expect("a number") as i32).expect("a process");
    fs::write(fixture.at("s/known"), "").expect("a file");
    for carrier in carriers {
        let mount = fixture.mount(&["s", "m", "-o", &[carrier, "call_timeout=0"].join(",")]);
        // Then all requests that hang at once reach the tree, also over io_uring: docs/fuse.md.
        assert!(fs::metadata(fixture.at("m/known")).is_ok());
        let stopped = Stopped::new(&fixture, slow);
        let names: Vec<_> = (0..CALLS).map(|number| fixture.at(&format!("m/h{number}"))).collect();
        let calls: Vec<_> = names.into_iter().map(|name| std::thread::spawn(move || fs::metadata(name))).collect();
        fixture.until("all hang", || {
            let stats: Value = serde_json::from_str(&fixture.ok(&["stats", "--json", "m"])).expect("JSON");
            let gauges = stats["snapshot"]["gauges"].as_array().expect("gauges");
            gauges.iter().any(|gauge| gauge[0] == "in_flight" && gauge[1] == CALLS)
        });
        mount.signal(Signal::TERM);
        fixture.until("it is detached", || !fixture.is_mounted());
        assert!(calls.iter().all(|call| !call.is_finished()), "{carrier}");
        mount.signal(Signal::TERM);
        let (status, log) = mount.end();
        assert_eq!(status, Some(128 + 15), "{carrier}: {log}");
        assert!(calls.into_iter().all(|call| call.join().expect("no panic").is_err()), "{carrier}");
        drop(stopped);
    }
    fixture.unmount("s");
}

#[test]
fn the_end_of_a_mount_by_others_ends_the_command() {
    let Some(fixture) = Fixture::new() else { return };
    let mount = fixture.mount(&["ram:", "m"]);
    assert!(Command::new("umount").arg(fixture.at("m")).status().expect("umount runs").success());
    let (status, log) = mount.end();
    assert_eq!(status, Some(0), "{log}");
}

#[test]
fn a_daemon_returns_when_it_has_mounted_and_unmount_when_it_has_ended() {
    let Some(fixture) = Fixture::new() else { return };
    let output = fixture.run(&["mount", "--daemon", "ram:", "m"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(fixture.is_mounted());
    fs::write(fixture.at("m/f"), "x").expect("it can be used");
    let server = pidfd_open(fixture.server(), PidfdFlags::empty()).expect("it runs");
    let has_ended = || poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&Timespec::default())) == Ok(1);
    assert!(!has_ended());
    let file = File::open(fixture.at("m/f")).expect("it can be opened");
    fixture.refused(&["unmount", "m"], 2, &["in use", "--lazy"]);
    drop(file);
    fixture.unmount("m");
    assert!(!fixture.is_mounted());
    assert!(has_ended(), "its process");
    fixture.refused(&["unmount", "m"], 2, &["not a mount point"]);
}

#[test]
fn a_lazy_unmount_leaves_open_files_usable() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.ok(&["mount", "--daemon", "ram:", "m"]);
    let mut file = File::create(fixture.at("m/f")).expect("a file can be made");
    fixture.ok(&["unmount", "--lazy", "m"]);
    assert!(!fixture.is_mounted());
    file.write_all(b"x").expect("an open file stays usable");
}

#[test]
fn what_cannot_be_mounted_is_reported_in_one_line() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(fixture.at("full/below")).expect("directories");
    fs::create_dir_all(fixture.at("almost/lost+found")).expect("directories");
    fs::write(fixture.at("file"), "").expect("a file");
    let mount = fixture.mount(&["ram:", "m"]);
    let cases: [(&[&str], &[&str]); 16] = [
        (&["ram:", "m"], &["already a mount of Lightfoot", "lightfoot unmount"]),
        (&["ram:", "full"], &["not empty", "-o nonempty"]),
        (&["ram:", "none/x"], &["mkdir -p"]),
        (&["ram:", "file"], &["not a directory"]),
        (&["ram:", "almost", "-o", "allow_others"], &["\"allow_others\"", "did you mean allow_other?"]),
        (&["ram:", "almost", "-o", "threads=many"], &["\"threads=many\"", "threads=4"]),
        (&["ram:", "almost", "-o", "size=lots"], &["\"size=lots\"", "size=512m"]),
        (&["ram:", "almost", "-o", "own_permissions,no_open"], &["nobody would check reading and writing", "omit one"]),
        (&["full", "almost", "-o", "own_permissions,no_open"], &["options own_permissions and no_open"]),
        (&["ram:", "almost", "-o", "allow_other,own_permissions"], &["options own_permissions and allow_other"]),
        (&["full", "almost", "-o", "noacl,allow_other"], &["options noacl and allow_other"]),
        (&["none", "almost"], &["none: no such directory", "ram:"]),
        (&["/dev/null", "almost"], &["/dev/null: not a directory"]),
        (&["full", "full"], &["on itself"]),
        (&["full", "full/below", "-o", "cross"], &["contain itself", "omit cross"]),
        (&["ram:", "almost", "--log-file", "none/log"], &["none/log: cannot write"]),
    ];
    for (words, parts) in cases {
        fixture.refused(&[&["mount"], words].concat(), 2, parts);
        fixture.refused(&[&["mount", "--daemon"], words].concat(), 2, parts);
    }
    fixture.refused(&["mount", "ram:", "almost", "--log-level", "a=b=c"], 2, &["invalid log level", "no part \"a\""]);
    fixture.ok(&["mount", "--daemon", "ram:", "almost"]);
    fixture.unmount("almost");
    drop(mount);
}

#[test]
fn a_killed_server_leaves_a_mount_that_the_next_one_cleans_up() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir(fixture.at("src")).expect("a directory");
    fixture.ok(&["mount", "--daemon", "src", "m"]);
    fs::write(fixture.at("m/f"), "kept").expect("a file can be written");
    let killed = fixture.server();
    kill_process(killed, Signal::KILL).expect("it can be killed");
    // `ENOTCONN`, "Transport endpoint is not connected".
    fixture.until("it is dead", || fs::metadata(fixture.at("m")).is_err_and(|error| error.raw_os_error() == Some(107)));
    assert_eq!(fs::read_to_string(fixture.at("src/f")).expect("it is the host's"), "kept");
    fixture.refused(&["stats", "m"], 1, &["no reply"]);
    let output = fixture.run(&["mount", "--daemon", "src", "m"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains("has exited"), "{output:?}");
    assert_eq!(fs::read_to_string(fixture.at("m/f")).expect("it is there again"), "kept");
    assert_ne!(fixture.server(), killed);
    fixture.unmount("m");
}

#[test]
fn a_killed_server_is_recognised_though_the_kernel_has_the_root_in_its_cache() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.ok(&["mount", "--daemon", "ram:", "m"]);
    fs::metadata(fixture.at("m")).expect("it is mounted");
    let server = pidfd_open(fixture.server(), PidfdFlags::empty()).expect("it runs");
    kill_process(fixture.server(), Signal::KILL).expect("it can be killed");
    fixture.until("it has exited", || {
        poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
    });
    fs::symlink_metadata(fixture.at("m")).expect("the kernel has its attributes");
    let output = fixture.run(&["mount", "--daemon", "ram:", "m"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains("has exited"), "{output:?}");
    fixture.unmount("m");
    assert!(!fixture.is_mounted());
}

#[test]
fn a_mount_waits_for_another_one_on_its_mount_point() {
    let Some(fixture) = Fixture::new() else { return };
    let mountpoint = File::open(fixture.at("m")).expect("a directory");
    flock(&mountpoint, FlockOperation::LockExclusive).expect("no other process uses it");
    let mut command = fixture.command(&["mount", "ram:", "m"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
    let descriptors = format!("/proc/{}/fd", child.id());
    let has_opened_it = || {
        let links = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        links.filter_map(|link| fs::read_link(link.path()).ok()).any(|to| to == fixture.at("m"))
    };
    fixture.until("the command waits", has_opened_it);
    assert!(!fixture.is_mounted());
    let status = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(fixture.at("m")).status();
    assert!(status.expect("mount runs").success());
    fs::write(fixture.at("m/f"), "").expect("a file can be written");
    drop(mountpoint);
    let output = end_of(child);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not empty"), "{output:?}");
}

#[test]
fn a_directory_that_holds_its_own_mount_point_does_not_wait_for_itself() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(fixture.at("src/below/m")).expect("directories");
    fixture.ok(&["mount", "--daemon", "src", "src/below/m"]);
    let found = Command::new("find").arg(fixture.at("src/below/m")).output().expect("find runs");
    assert!(String::from_utf8_lossy(&found.stdout).contains("below/m/below"), "{found:?}");
    assert!(fs::read_dir(fixture.at("src/below/m/below/m")).is_err(), "it is not shown in itself");
    fixture.unmount("src/below/m");
}

#[test]
fn stats_and_top_show_what_happened_on_a_mount() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m", "-o", "ttl=0,cache=64m"]);
    fs::write(fixture.at("m/f"), "four").expect("a file can be written");
    assert_eq!(fs::read(fixture.at("m/f")).expect("it can be read"), b"four");
    assert!(fs::metadata(fixture.at("m/none")).is_err());
    let json: Value = serde_json::from_str(&fixture.ok(&["stats", "m", "--json"])).expect("JSON");
    let ops = json["snapshot"]["ops"].as_array().expect("operations");
    let lookup = ops.iter().find(|op| op["name"] == "lookup").expect("names were looked up");
    assert!(lookup["count"].as_u64() >= Some(2) && lookup["errors"] == 0, "{lookup}");
    assert_eq!(json["mountpoint"], fixture.at("m").to_str().expect("text"));
    assert!(json["memory"]["resident_bytes"].as_u64() > Some(0));
    let of = |name: &str| ops.iter().find(|op| op["name"] == name).unwrap_or(&Value::Null);
    assert_eq!((&of("read")["bytes"], &of("write")["bytes"]), (&4.into(), &4.into()), "{ops:?}");
    assert!(lookup["errnos"].as_array().is_some_and(|errnos| errnos.iter().any(|one| one[0] == "ENOENT")), "{lookup}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    assert!((1..=now).contains(&json["began_s"].as_u64().expect("a time")), "{json}");
    let version = fixture.ok(&["--version"]);
    match json["commit"].as_str() {
        Some(commit) => assert!(version.contains(commit), "{version}"),
        None => assert!(version.contains("no commit known"), "{version}"),
    }
    let table = fixture.ok(&["stats", "m/."]);
    for part in [
        "in flight",
        "read 4 B",
        "written 4 B",
        "lookups of what does not exist",
        "mounted 20",
        "lookup",
        "p99",
        "fallbacks",
        "entries",
        "budget",
        "memory",
        "kernel",
    ] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    let errors = table.lines().find(|line| line.starts_with("errors")).expect("a line of errors");
    assert!(errors.ends_with(" none"), "what does not exist is not an error: {errors}");
    let top = fixture.ok(&["top", "m", "-n", "2", "-d", "0.01"]);
    assert_eq!(top.matches("a second").count(), 2, "{top}");
    assert!(!top.contains('\x1b') && fixture.ok(&["top", "m", "--once", "-d", "0.01"]).contains("operation"));
    symlink(fixture.at("m"), fixture.at("link")).expect("a link");
    fixture.ok(&["stats", "link", "--interval", "0.01"]);
    fixture.refused(&["stats", "."], 2, &["not a mount point"]);
    fixture.refused(&["top", "/proc"], 2, &["a mount of proc"]);
}

/// Whether each line is a comment or `name{labels} number`, and each name was described.
/// The dashboard and the alerts name metrics that there are, and the dashboard is JSON.
fn check_packaging(page: &str) {
    let dashboard = include_str!("../../packaging/dashboard.json");
    let _: Value = serde_json::from_str(dashboard).expect("JSON");
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let mut count = 0;
    for text in [dashboard, include_str!("../../packaging/alerts.yml")] {
        for name in text.split(|letter| !is_of_name(letter)).filter(|word| word.starts_with("lightfoot_")) {
            assert!(page.contains(&format!("\n{name}{{")) || page.contains(&format!("# TYPE {name} ")), "{name}");
            count += 1;
        }
    }
    assert!(count > 10, "{count} names");
}

fn check_prometheus(page: &str) {
    let mut described = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            described.push(rest.split(' ').next().expect("a name"));
        } else if !line.starts_with("# HELP ") {
            let (name, rest) = line.split_once('{').expect("labels");
            let (labels, value) = rest.rsplit_once("} ").expect("a value");
            assert!(labels.starts_with("mount=\"") && value.parse::<f64>().is_ok(), "{line}");
            let is_of = |known: &&&str| {
                name.strip_prefix(**known).is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
            };
            assert!(described.iter().any(|known| is_of(&known)), "{line}");
        }
    }
}

#[test]
fn metrics_are_what_prometheus_reads_by_command_and_by_http() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir(fixture.at("src")).expect("a directory");
    let mount = fixture.mount(&["src", "m", "--metrics", "unix:metrics"]);
    fs::write(fixture.at("m/f"), "x").expect("a file can be written");
    let page = fixture.ok(&["stats", "m", "--prometheus"]);
    check_prometheus(&page);
    for name in ["operation_duration_seconds_count", "host_open_fds", "build_info", "mount_start_time_seconds"] {
        assert!(page.contains(name), "{page}");
    }
    check_packaging(&page);
    assert!(page.contains("op=\"write\"} 1\n") && page.contains("lightfoot_fuse_in_flight{"), "{page}");
    let mut stream = UnixStream::connect(fixture.at("metrics")).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    let (head, page) = reply.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.0 200 OK"), "{head}");
    check_prometheus(page);
    mount.signal(Signal::TERM);
    assert_eq!(mount.end().0, Some(0));
    assert!(!fixture.at("metrics").exists());
}

#[test]
fn a_link_named_mount_lightfoot_is_a_helper_of_mount() {
    let Some(fixture) = Fixture::new() else { return };
    symlink(env!("CARGO_BIN_EXE_lightfoot"), fixture.at("mount.lightfoot")).expect("a link");
    let helper = |words: &[&str]| {
        let mut command = Command::new(fixture.at("mount.lightfoot"));
        command.current_dir(fixture.at(".")).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_of(command.spawn().expect("the helper runs"))
    };
    let output = helper(&["ram:", "m", "-n", "-o", "rw,size=1m,noauto,x-systemd.automount", "-t", "lightfoot"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(fixture.is_mounted());
    fixture.unmount("m");
    assert_eq!(helper(&["ram:", "m", "-o", "quux"]).status.code(), Some(2));
    assert!(helper(&["ram:", "m", "-s", "-o", "quux"]).status.success(), "sloppy");
    fixture.unmount("m");
    assert!(helper(&["ram:", "m", "-f"]).status.success() && !fixture.is_mounted(), "fake");
}

#[test]
fn systemd_is_notified_and_the_log_has_the_given_format_and_place() {
    let Some(fixture) = Fixture::new() else { return };
    let socket = UnixDatagram::bind(fixture.at("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let mut command = fixture.command(&["mount", "ram:", "m", "--log-file", "log", "--log-format", "json"]);
    command.env("NOTIFY_SOCKET", fixture.at("notify")).env("LIGHTFOOT_LOG", "info");
    let mount = fixture.start(command);
    let received = || {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).expect("a notification");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let first = received();
    assert!(first.starts_with("READY=1\n") && first.contains("MAINPID="), "{first}");
    mount.signal(Signal::TERM);
    assert_eq!(received(), "STOPPING=1\n");
    let (status, log) = mount.end();
    assert_eq!((status, log.as_str()), (Some(0), ""));
    let log = fs::read_to_string(fixture.at("log")).expect("a log");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|line| line["message"] == "mounted" && line["level"] == "INFO"), "{log}");
}

#[test]
fn a_missing_mount_point_is_created_and_removed_again() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.ok(&["mount", "--daemon", "ram:", "new"]);
    fs::write(fixture.at("new/f"), "x").expect("a file can be written");
    fixture.unmount("new");
    assert!(!fixture.at("new").exists(), "it is removed");
    fixture.refused(&["mount", "ram:", "new", "--no-create"], 2, &["new"]);
    fixture.refused(&["mount", "ram:", "new", "-o", "cache=1m,quux"], 2, &["quux"]);
    fixture.refused(&["mount", "none", "new"], 2, &["none"]);
    fixture.ok(&["mount", "--fake", "ram:", "new"]);
    assert!(!fixture.at("new").exists(), "nothing was mounted");
    fixture.ok(&["mount", "--daemon", "ram:", "m"]);
    fixture.unmount("m");
    assert!(fixture.at("m").exists(), "it was there before");
}

#[test]
fn a_terminal_gets_hints_and_a_daemon_prints_nothing() {
    let Some(fixture) = Fixture::new() else { return };
    let command = format!("{} mount ram: {}", env!("CARGO_BIN_EXE_lightfoot"), fixture.at("m").display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(fixture.at(".")).stdin(Stdio::null());
    let Ok(child) = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        println!("SKIPPED: script(1) is not installed");
        return;
    };
    fixture.until("it is ready", || fixture.run(&["stats", "m"]).status.success());
    fixture.until("it can be unmounted", || fixture.run(&["unmount", "m"]).status.success());
    let output = end_of(child);
    let shown = String::from_utf8_lossy(&output.stdout);
    for part in ["is mounted on", "ls -la ", "lightfoot stats ", "lightfoot top ", "Ctrl-C", "umount "] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn a_port_in_use_is_reported_with_a_free_one() {
    let Some(fixture) = Fixture::new() else { return };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = fixture.run(&["mount", "ram:", "m", "--metrics", &port]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let (before, free) = message.split_once("(use a free address, such as --metrics 127.0.0.1:").expect("an address");
    assert!(before.contains(&format!("127.0.0.1:{port}: address already in use")), "{message}");
    let free = free.trim_end().trim_end_matches(')');
    assert!(free != port && free.parse::<u16>().is_ok(), "{message}");
}

#[test]
fn a_log_level_of_the_environment_that_does_not_exist_is_an_error() {
    let Some(fixture) = Fixture::new() else { return };
    for (level, expected) in
        [("loud", "\"loud\" in $LIGHTFOOT_LOG (use error, warn"), ("fusee=info", "no part \"fusee\"")]
    {
        let mut command = fixture.command(&["mount", "ram:", "m", "--fake"]);
        let output = command.env("LIGHTFOOT_LOG", level).output().expect("the command runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(expected), "{message}");
    }
    fixture.refused(
        &["mount", "ram:", "m", "--fake", "--log-level", "x"],
        2,
        &["invalid log level \"x\" (use error, warn"],
    );
}
