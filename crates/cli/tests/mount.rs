//! `lightfoot mount` and what belongs to it, as an operator meets them. As root where there is `/dev/fuse`; elsewhere each
//! test says that it was skipped.

#[path = "mount/place.rs"]
mod place;

use place::{Place, end_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_signal_ends_a_mount_in_the_foreground_cleanly() {
    let Some(place) = Place::new() else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        if is_ignored(signal) {
            println!("SKIPPED: {signal:?} is ignored here, and by what is started from here, as under nohup(1)");
            continue;
        }
        let mount = place.mount(&["ram:", "m", "-o", "size=10m"]);
        fs::create_dir(place.at("m/d")).expect("a directory can be made");
        fs::write(place.at("m/d/f"), "contents").expect("a file can be written");
        assert_eq!(fs::read_to_string(place.at("m/d/f")).expect("it can be read"), "contents");
        assert_eq!(fs::read_dir(place.at("m")).expect("it can be listed").count(), 1);
        mount.signal(signal);
        let (status, said) = mount.end();
        assert_eq!(status, Some(0), "{said}");
        assert!(!place.is_mounted() && said.contains("unmounted"), "{said}");
        assert_eq!(fs::read_dir(place.at("m")).expect("it can be listed").count(), 0);
    }
}

/// Whether this process ignores a signal, which those that it starts then do too.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("it is there");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("it has a line of that");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("it is a number");
    mask & 1 << (signal.as_raw() - 1) != 0
}

#[test]
fn who_has_files_open_when_the_signal_comes_may_end_first() {
    let Some(place) = Place::new() else { return };
    let mut mount = place.mount(&["ram:", "m"]);
    fs::write(place.at("m/f"), "before").expect("a file can be written");
    let mut file = File::options().read(true).append(true).open(place.at("m/f")).expect("it can be opened");
    mount.signal(Signal::TERM);
    place.until("it is detached", || !place.is_mounted());
    file.write_all(b" and after").expect("it can still be written");
    let mut text = String::new();
    file.rewind().expect("it is a file");
    file.read_to_string(&mut text).expect("it can still be read");
    assert!(text == "before and after" && !mount.is_over(), "{text}");
    drop(file);
    let (status, said) = mount.end();
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_second_signal_does_not_wait_for_open_files() {
    let Some(place) = Place::new() else { return };
    let mount = place.mount(&["ram:", "m"]);
    let mut file = File::create(place.at("m/f")).expect("a file can be made");
    mount.signal(Signal::TERM);
    place.until("it is detached", || !place.is_mounted());
    mount.signal(Signal::TERM);
    let (status, said) = mount.end();
    assert_eq!(status, Some(128 + 15), "{said}");
    assert!(file.write_all(b"x").is_err(), "nobody answers");
}

#[test]
fn the_end_of_a_mount_by_others_ends_the_command() {
    let Some(place) = Place::new() else { return };
    let mount = place.mount(&["ram:", "m"]);
    assert!(Command::new("umount").arg(place.at("m")).status().expect("umount runs").success());
    let (status, said) = mount.end();
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_daemon_returns_when_it_has_mounted_and_unmount_when_it_has_ended() {
    let Some(place) = Place::new() else { return };
    let said = place.run(&["mount", "--daemon", "ram:", "m"]);
    assert!(said.status.success() && said.stdout.is_empty() && said.stderr.is_empty(), "{said:?}");
    assert!(place.is_mounted());
    fs::write(place.at("m/f"), "x").expect("it can be used");
    let server = pidfd_open(place.server(), PidfdFlags::empty()).expect("it runs");
    let has_ended = || poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&Timespec::default())) == Ok(1);
    assert!(!has_ended());
    let file = File::open(place.at("m/f")).expect("it can be opened");
    place.refused(&["unmount", "m"], 2, &["in use", "--lazy"]);
    drop(file);
    place.ok(&["unmount", "m"]);
    assert!(!place.is_mounted());
    assert!(has_ended(), "its process");
    place.refused(&["unmount", "m"], 2, &["no mount point"]);
}

#[test]
fn a_lazy_unmount_takes_it_away_from_who_has_no_file_open() {
    let Some(place) = Place::new() else { return };
    place.ok(&["mount", "--daemon", "ram:", "m"]);
    let mut file = File::create(place.at("m/f")).expect("a file can be made");
    place.ok(&["unmount", "--lazy", "m"]);
    assert!(!place.is_mounted());
    file.write_all(b"x").expect("who has it open goes on");
}

#[test]
fn what_cannot_be_mounted_is_said_in_a_sentence() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.at("full/below")).expect("directories");
    fs::create_dir_all(place.at("almost/lost+found")).expect("directories");
    fs::write(place.at("file"), "").expect("a file");
    let mount = place.mount(&["ram:", "m"]);
    let cases: [(&[&str], &[&str]); 13] = [
        (&["ram:", "m"], &["is a mount of Lightfoot already", "lightfoot unmount"]),
        (&["ram:", "full"], &["is not empty", "-o nonempty"]),
        (&["ram:", "none"], &["cannot be used", "mkdir -p"]),
        (&["ram:", "file"], &["is not a directory"]),
        (&["ram:", "almost", "-o", "allow_others"], &["\"allow_others\"", "is allow_other meant?"]),
        (&["ram:", "almost", "-o", "threads=many"], &["\"threads=many\"", "threads=4"]),
        (&["ram:", "almost", "-o", "size=lots"], &["\"size=lots\"", "size=512m"]),
        (&["ram:", "almost", "-o", "remount,ro"], &["unmount it and mount it anew"]),
        (&["none", "almost"], &["there is no \"none\"", "ram:"]),
        (&["/dev/null", "almost"], &["\"/dev/null\" is no directory"]),
        (&["full", "full"], &["on itself"]),
        (&["full", "full/below", "-o", "cross"], &["without end", "leave out `cross`"]),
        (&["ram:", "almost", "--log-file", "none/log"], &["\"none/log\" cannot be written"]),
    ];
    for (words, parts) in cases {
        place.refused(&[&["mount"], words].concat(), 2, parts);
        place.refused(&[&["mount", "--daemon"], words].concat(), 2, parts);
    }
    place.refused(&["mount", "ram:", "almost", "--log-level", "a=b=c"], 2, &["no level of a log"]);
    place.ok(&["mount", "--daemon", "ram:", "almost"]);
    place.ok(&["unmount", "almost"]);
    drop(mount);
}

#[test]
fn a_killed_server_leaves_a_mount_that_the_next_one_cleans_up() {
    let Some(place) = Place::new() else { return };
    fs::create_dir(place.at("src")).expect("a directory");
    place.ok(&["mount", "--daemon", "src", "m"]);
    fs::write(place.at("m/f"), "kept").expect("a file can be written");
    let killed = place.server();
    kill_process(killed, Signal::KILL).expect("it can be killed");
    // `ENOTCONN`, "Transport endpoint is not connected".
    place.until("it is dead", || fs::metadata(place.at("m")).is_err_and(|error| error.raw_os_error() == Some(107)));
    assert_eq!(fs::read_to_string(place.at("src/f")).expect("it is the host's"), "kept");
    place.refused(&["stats", "m"], 1, &["does not answer"]);
    let said = place.run(&["mount", "--daemon", "src", "m"]);
    assert!(said.status.success() && String::from_utf8_lossy(&said.stderr).contains("has gone"), "{said:?}");
    assert_eq!(fs::read_to_string(place.at("m/f")).expect("it is there again"), "kept");
    assert_ne!(place.server(), killed);
    place.ok(&["unmount", "m"]);
}

#[test]
fn a_directory_that_holds_its_own_mount_point_does_not_wait_for_itself() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.at("src/below/m")).expect("directories");
    place.ok(&["mount", "--daemon", "src", "src/below/m"]);
    let found = Command::new("find").arg(place.at("src/below/m")).output().expect("find runs");
    assert!(String::from_utf8_lossy(&found.stdout).contains("below/m/below"), "{found:?}");
    assert!(fs::read_dir(place.at("src/below/m/below/m")).is_err(), "it is not shown in itself");
    place.ok(&["unmount", "src/below/m"]);
}

#[test]
fn a_mount_tells_what_it_did() {
    let Some(place) = Place::new() else { return };
    let _mount = place.mount(&["ram:", "m", "-o", "ttl=0,cache=64m"]);
    fs::write(place.at("m/f"), "x").expect("a file can be written");
    assert!(fs::metadata(place.at("m/none")).is_err());
    let json: Value = serde_json::from_str(&place.ok(&["stats", "m", "--json"])).expect("JSON");
    let ops = json["snapshot"]["ops"].as_array().expect("operations");
    let lookup = ops.iter().find(|op| op["name"] == "lookup").expect("names were looked up");
    assert!(lookup["count"].as_u64() >= Some(2) && lookup["errors"].as_u64() >= Some(1), "{lookup}");
    assert_eq!(json["mountpoint"], place.at("m").to_str().expect("text"));
    assert!(json["memory"]["resident_bytes"].as_u64() > Some(0));
    let table = place.ok(&["stats", "m/."]);
    for part in ["lookup", "p99", "fallbacks", "entries", "budget", "memory", "locks: not measured"] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    let top = place.ok(&["top", "m", "-n", "2", "-d", "0.01"]);
    assert_eq!(top.matches("a second").count(), 2, "{top}");
    assert!(!top.contains('\x1b') && place.ok(&["top", "m", "--once", "-d", "0.01"]).contains("operation"));
    symlink(place.at("m"), place.at("link")).expect("a link");
    place.ok(&["stats", "link", "--interval", "0.01"]);
    place.refused(&["stats", "."], 2, &["no mount point"]);
    place.refused(&["top", "/proc"], 2, &["a mount of proc"]);
}

/// Whether each line is a comment or `name{labels} number`, and each name was described.
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
    let Some(place) = Place::new() else { return };
    fs::create_dir(place.at("src")).expect("a directory");
    let mount = place.mount(&["src", "m", "--metrics", "unix:metrics"]);
    fs::write(place.at("m/f"), "x").expect("a file can be written");
    let page = place.ok(&["stats", "m", "--prometheus"]);
    check_prometheus(&page);
    assert!(page.contains("operation_duration_seconds_count") && page.contains("lightfoot_host_open_fds"), "{page}");
    let mut stream = UnixStream::connect(place.at("metrics")).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    let (head, page) = reply.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.0 200 OK"), "{head}");
    check_prometheus(page);
    mount.signal(Signal::TERM);
    assert_eq!(mount.end().0, Some(0));
    assert!(!place.at("metrics").exists());
}

#[test]
fn the_name_of_a_helper_makes_it_one() {
    let Some(place) = Place::new() else { return };
    symlink(env!("CARGO_BIN_EXE_lightfoot"), place.at("mount.lightfoot")).expect("a link");
    let helper = |words: &[&str]| {
        let mut command = Command::new(place.at("mount.lightfoot"));
        command.current_dir(place.at(".")).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_of(command.spawn().expect("the helper runs"))
    };
    let said = helper(&["ram:", "m", "-n", "-o", "rw,size=1m,noauto,x-systemd.automount", "-t", "lightfoot"]);
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    assert!(place.is_mounted());
    place.ok(&["unmount", "m"]);
    assert_eq!(helper(&["ram:", "m", "-o", "quux"]).status.code(), Some(2));
    assert!(helper(&["ram:", "m", "-s", "-o", "quux"]).status.success(), "sloppy");
    place.ok(&["unmount", "m"]);
    assert!(helper(&["ram:", "m", "-f"]).status.success() && !place.is_mounted(), "fake");
}

#[test]
fn systemd_is_told_and_the_log_is_what_was_asked_for() {
    let Some(place) = Place::new() else { return };
    let socket = UnixDatagram::bind(place.at("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let mut command = place.command(&["mount", "ram:", "m", "--log-file", "log", "--log-format", "json"]);
    command.env("NOTIFY_SOCKET", place.at("notify")).env("LIGHTFOOT_LOG", "info");
    let mount = place.start(command);
    let told = || {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).expect("something is told");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let first = told();
    assert!(first.starts_with("READY=1\n") && first.contains("MAINPID="), "{first}");
    mount.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1\n");
    let (status, said) = mount.end();
    assert_eq!((status, said.as_str()), (Some(0), ""));
    let log = fs::read_to_string(place.at("log")).expect("a log");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|line| line["message"] == "mounted" && line["level"] == "INFO"), "{log}");
}

#[test]
fn a_file_of_mounts_is_one_tree() {
    let Some(place) = Place::new() else { return };
    fs::create_dir(place.at("src")).expect("a directory");
    fs::write(place.at("src/f"), "of the host").expect("a file");
    let text = "[[mount]]\nat = \"/\"\nsource = \"ram:size=1m\"\n[[mount]]\nat = \"/src\"\nsource = \"src\"\noptions = \"ro\"\n";
    fs::write(place.at("tree.toml"), text).expect("a file");
    let _mount = place.mount(&["tree.toml", "m", "-o", "rw"]);
    assert_eq!(fs::read_to_string(place.at("m/src/f")).expect("it is shown"), "of the host");
    fs::write(place.at("m/g"), "in memory").expect("the root can be written");
    // `EROFS`.
    assert_eq!(fs::write(place.at("m/src/g"), "").map_err(|error| error.raw_os_error()), Err(Some(30)));
}
