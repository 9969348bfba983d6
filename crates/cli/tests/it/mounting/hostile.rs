//! Names that others chose: no command prints or logs a control character, a mark of direction or a line of them.

use super::fixture::{Fixture, end_of};
use rustix::fs::{major, minor};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect, listen, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Names that a terminal, or a reader of lines, would obey. A line that begins with `FORGED` is another's.
const NAMES: [&[u8]; 9] = [
    b"a\x1b]0;x\x07",
    b"a\nFORGED: line",
    b"a\rFORGED",
    "a\u{202e}txt".as_bytes(),
    "a\u{2028}FORGED\u{2066}\u{200f}".as_bytes(),
    "a\u{9b}31m\u{85}".as_bytes(),
    b"a\x9b31m\xff",
    b"a\x7f\x08",
    b"a\tb",
];

/// Beginnings of lines on standard error: of errors, of clap, and of the log, whose lines begin with the year.
const ERRORS: [&str; 8] =
    ["lightfoot: ", "error: ", "  tip: ", "Usage: ", "  [possible values: ", "For more information", "  <", "20"];

/// All commands, and the arguments with which a test runs each. `@` stands for the hostile name.
const COMMANDS: [(&str, &[&str]); 43] = [
    ("mount", &["mount", "@", "m"]),
    ("mount", &["mount", "ram:", "@/below"]),
    ("mount", &["mount", "ram:@", "m"]),
    ("mount", &["mount", "s3://@/p", "m", "-o", "timeout=1ms"]),
    ("mount", &["mount", "s3://b", "m", "-o", "endpoint=@,timeout=1ms"]),
    ("mount", &["mount", "ram:", "m", "-o", "@"]),
    ("mount", &["mount", "ram:", "m", "-o", "size=@"]),
    ("mount", &["mount", "ram:", "m", "--fake", "--sloppy", "-o", "@"]),
    ("mount", &["mount", "ram:", "@", "-o", "remount,ro"]),
    ("mount", &["mount", "ram:", "m", "-o", "remount,@"]),
    ("mount", &["mount", "ram:", "m", "--daemon", "-o", "@"]),
    ("mount", &["mount", "ram:", "m", "--log-level", "@"]),
    ("mount", &["mount", "ram:", "m", "--log-level", "@=info"]),
    ("mount", &["mount", "ram:", "m", "--log-format", "@"]),
    ("mount", &["mount", "ram:", "m", "--log-file", "/no/such/@"]),
    ("mount", &["mount", "ram:", "m", "--metrics", "@"]),
    ("mount", &["mount", "ram:", "m", "--metrics", "unix:/no/such/@"]),
    ("mount", &["mount", "ram:", "m", "--workspaces", "--forks-size", "@"]),
    ("mount", &["mount", "file", "@", "--@"]),
    ("mount", &["mount", "@.toml", "m", "--fake"]),
    ("unmount", &["unmount", "@", "/no/such/@", "/proc"]),
    ("unmount", &["unmount", "--lazy", "@", "-@"]),
    ("list", &["list", "--json", "@"]),
    ("fork", &["fork", "@", "a"]),
    ("fork", &["fork", "m", "@", "--size", "@"]),
    ("diff", &["diff", "@", "--patch"]),
    ("diff", &["diff", "m/w/@", "@"]),
    ("discard", &["discard", "@", "m/@", "--wait"]),
    ("commit", &["commit", "@", "--check"]),
    ("commit", &["commit", "@", "--conflicts", "@"]),
    ("rollback", &["rollback", "@", "m/@"]),
    ("try", &["try", "@", "--drop", "--", "true"]),
    ("try", &["try", "--keep", "@", "--", "@"]),
    ("try", &["try", "--@", "--", "true"]),
    ("stats", &["stats", "@"]),
    ("stats", &["stats", "m", "--interval", "@"]),
    ("top", &["top", "--once", "@"]),
    ("top", &["top", "m", "-n", "@"]),
    ("doctor", &["doctor", "@"]),
    ("completions", &["completions", "@"]),
    ("man", &["man", "@"]),
    ("man", &["man", "--dir", "file/@"]),
    ("", &["@"]),
];

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).escape_debug().to_string()
}

/// Fails if `text` has a character that a terminal obeys, or a line that does not begin as one of `beginnings`.
fn check(what: &str, text: &[u8], beginnings: &[&str]) {
    let shown = lossy(text);
    let text = str::from_utf8(text).unwrap_or_else(|_| panic!("{what}: not UTF-8: {shown}"));
    let is_obeyed = |letter: char| {
        letter != '\n' && letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(is_obeyed), "{what}: {shown}");
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(!line.trim_start().starts_with("FORGED"), "{what}: {shown}");
        let is_expected = beginnings.is_empty() || beginnings.iter().any(|beginning| line.starts_with(beginning));
        assert!(is_expected, "{what}: {line:?} in {shown}");
    }
}

fn check_output(what: &str, output: &Output) {
    check(&format!("{what}, standard output"), &output.stdout, &[]);
    check(&format!("{what}, standard error"), &output.stderr, &ERRORS);
}

/// The arguments with `name` in the place of `@`.
fn with_name(arguments: &[&str], name: &[u8]) -> Vec<OsString> {
    let filled = |argument: &&str| argument.as_bytes().split(|&byte| byte == b'@').collect::<Vec<_>>().join(name);
    arguments.iter().map(|argument| OsString::from_vec(filled(argument))).collect()
}

fn run(mut command: Command) -> Output {
    end_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs"))
}

#[test]
fn every_command_has_a_row_with_hostile_names() {
    let fixture = Fixture::without_mounting();
    fixture.ok(&["man", "--dir", "pages"]);
    let pages = fs::read_dir(fixture.at("pages")).expect("the pages");
    let names = pages.map(|page| page.expect("a page").file_name().into_string().expect("text"));
    let commands: BTreeSet<String> =
        names.filter_map(|page| Some(page.strip_prefix("lightfoot-")?.strip_suffix(".1")?.to_owned())).collect();
    let rows: BTreeSet<String> =
        COMMANDS.iter().map(|(command, _)| (*command).to_owned()).filter(|command| !command.is_empty()).collect();
    assert_eq!(rows, commands, "left: the table of this test; right: the commands");
}

#[test]
fn no_command_obeys_a_name_in_its_arguments() {
    let fixture = Fixture::without_mounting();
    fs::write(fixture.at("file"), "x").expect("a file");
    let mut wrong = Vec::new();
    for name in NAMES {
        for (_, arguments) in COMMANDS {
            let mut command = fixture.command(&[]);
            command.args(with_name(arguments, name));
            let output = run(command);
            let what = format!("{arguments:?} with {}", lossy(name));
            assert!(output.status.code().is_some(), "{what}: {output:?}");
            wrong.extend(std::panic::catch_unwind(|| check_output(&what, &output)).err().map(|_| what));
        }
        let mut command = fixture.command(&["mount", "ram:", "m", "--fake"]);
        let output = run({
            command.env("LIGHTFOOT_LOG", OsStr::from_bytes(name));
            command
        });
        check_output("LIGHTFOOT_LOG", &output);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_of_mounts_forges_a_line() {
    let fixture = Fixture::without_mounting();
    // As TOML writes them: a file of mounts is text, and its strings have escapes.
    let names = [r"a\u001b]0;x\u0007", r"a\nFORGED", r"a\rFORGED", r"a\u202e", r"a\u009b31m", r"a\u007f\b\t"];
    let files = [
        "[[mount]]\nat = \"/\"\nsource = \"ram:\"\n\"@\" = 1\n",
        "\"@\" = 1\n",
        "[[mount]]\nat = \"@\"\nsource = \"ram:\"\n",
        "[[mount]]\nat = \"/@\"\nsource = \"ram:\"\n[[mount]]\nat = \"/@\"\nsource = \"ram:\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"@\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"ram:@\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"s3://@\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"s3://b\"\noptions = \"endpoint=@\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"ram:\"\noptions = \"@\"\n",
        "[[mount]]\nat = \"/\"\nsource = \"file\"\n",
        "[[mount]]\nat = \"/\"\nsource = \".\"\n[[mount]]\nat = \"/@/b\"\nsource = \"ram:\"\n",
        "[[mount]]\nat = [\"@\"]\nsource = \"ram:\"\n",
        "[[mount]]\nat = \"/\" @\n",
    ];
    fs::write(fixture.at("file"), "x").expect("a file");
    let raw = NAMES.map(|name| String::from_utf8_lossy(name).into_owned());
    for name in names.iter().map(|name| (*name).to_owned()).chain(raw) {
        for file in files {
            for (at, place) in [("tree.toml", "m"), ("a\u{1b}[2J\nFORGED.toml", "m")] {
                let text = file.replace('@', &name);
                fs::write(fixture.at(at), &text).expect("a file");
                // A tree that can be made is not mounted: its mount point is a file.
                let mut command = fixture.command(&["mount", at, "file"]);
                command.arg("--no-create").env_remove(place);
                check_output(&format!("{text:?}"), &run(command));
            }
        }
    }
}

/// A mount in its own mount namespace, where no other test sees its names.
struct Hidden<'f> {
    fixture: &'f Fixture,
    server: Option<Child>,
    pid: i32,
    mountpoint: PathBuf,
}

impl<'f> Hidden<'f> {
    /// Mounts `source` on `mountpoint` with `more` arguments, and returns when it is ready.
    fn new(fixture: &'f Fixture, source: &OsStr, mountpoint: &Path, more: &[&str]) -> Self {
        let notified = fixture.at("notify");
        let _ = fs::remove_file(&notified);
        let socket = UnixDatagram::bind(&notified).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let mut command = Command::new("unshare");
        command.args(["--mount", "env", "--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_lightfoot"), "mount"]);
        command.arg(source).arg(mountpoint).args(more).current_dir(fixture.at("."));
        command.env_remove("LIGHTFOOT_LOG").env("NOTIFY_SOCKET", &notified);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it runs");
        let pid = i32::try_from(child.id()).expect("a process");
        let hidden = Self { fixture, server: Some(child), pid, mountpoint: mountpoint.into() };
        let mut state = [0; 4096];
        let Ok(len) = socket.recv(&mut state) else { panic!("{:?}", hidden.end()) };
        check("the state for systemd", &state[..len], &["READY=1", "MAINPID=", "STATUS="]);
        assert_eq!(state[..len].split(|&byte| byte == b'\n').count(), 4, "{}", lossy(&state[..len]));
        hidden
    }

    /// The output of a command in the namespace; `@` is the mount point.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.pid)).arg(env!("CARGO_BIN_EXE_lightfoot"));
        command.args(with_name(arguments, self.mountpoint.as_os_str().as_bytes())).stdin(Stdio::null());
        run(command)
    }

    /// A path of the mount, as a process outside sees it.
    fn inside(&self, name: &[u8]) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let at = self.mountpoint.strip_prefix("/").expect("an absolute path");
        root.join(at).join(OsStr::from_bytes(name))
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["stats", "--json", "@"]).stdout).expect("JSON")
    }

    /// Runs every command that finds the mount. `what` serves it.
    fn check_commands(&self, what: &str) {
        let commands: [&[&str]; 9] = [
            &["list"],
            &["list", "--json"],
            &["stats", "@"],
            &["stats", "--json", "@"],
            &["stats", "--prometheus", "@"],
            &["stats", "--interval", "0.01", "@"],
            &["top", "--once", "--delay", "0.01", "@"],
            &["mount", "ram:", "@", "-o", "remount,nosuid"],
            &["mount", "ram:", "@"],
        ];
        for arguments in commands {
            check_output(&format!("{arguments:?}, {what}"), &self.run(arguments));
        }
    }

    /// Ends it; its standard error.
    fn end(mut self) -> Vec<u8> {
        let _ = kill_process(Pid::from_raw(self.pid).expect("a process"), Signal::TERM);
        end_of(self.server.take().expect("it runs")).stderr
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = self.fixture;
    }
}

/// All names in one, which is short enough for a component.
fn all_names() -> Vec<u8> {
    NAMES.concat()
}

/// A process that serves the socket at `path`, and replies `reply` to each request.
fn serve(path: &Path, reply: Vec<u8>) {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path).expect("a socket");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let mut line = String::new();
            let _ = BufReader::new(&client).read_line(&mut line);
            let _ = client.write_all(&reply);
        }
    });
}

/// The control socket of the mount at `path`.
fn socket_of(path: &Path) -> String {
    let device = fs::metadata(path).expect("the root").dev();
    format!("/run/lightfoot/mount-{}:{}.sock", major(device), minor(device))
}

/// Adds the hostile names to each string but the mount point, which the commands check.
fn poison(value: &mut Value) {
    match value {
        Value::String(text) => *text += &String::from_utf8_lossy(&all_names()),
        Value::Array(values) => values.iter_mut().for_each(poison),
        Value::Object(fields) => {
            fields.iter_mut().filter(|(name, _)| *name != "mountpoint").for_each(|(_, of)| poison(of))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn no_name_of_a_mount_reaches_a_terminal_a_page_or_a_log() {
    let Some(fixture) = Fixture::new() else { return };
    let name = OsString::from_vec(all_names());
    let (source, mountpoint) = (fixture.at("source").join(&name), fixture.at("points").join(&name));
    for dir in [&source, &mountpoint] {
        fs::create_dir_all(dir).expect("a directory");
    }
    for (format, beginning) in [("text", "20"), ("json", "{")] {
        let log = fixture.at(format);
        let socket = fixture.at("metrics\u{1b}[2J\nFORGED");
        let metrics = format!("unix:{}", socket.to_str().expect("text"));
        let log_arguments = ["--log-level", "trace", "--log-format", format, "--log-file", log.to_str().expect("text")];
        let more =
            [&log_arguments[..], &["--metrics", &metrics, "--sloppy", "-o", "a\u{1b}]0;x\u{7}\nFORGED\u{202e},ttl=0"]]
                .concat();
        let hidden = Hidden::new(&fixture, source.as_os_str(), &mountpoint, &more);
        fs::write(hidden.inside(b"f\x1b[2J\nFORGED\x9b"), "x").expect("a file");
        hidden.check_commands("of Lightfoot");
        let mut client = UnixStream::connect(&socket).expect("the metrics");
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
        let mut page = Vec::new();
        client.read_to_end(&mut page).expect("a reply");
        let head = page.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        check("metrics", &page[head + 4..], &["# HELP lightfoot_", "# TYPE lightfoot_", "lightfoot_"]);
        let open = fs::File::open(hidden.inside(b"f\x1b[2J\nFORGED\x9b")).expect("a file");
        let in_use = hidden.run(&["unmount", "@"]);
        check_output("unmount of a mount in use", &in_use);
        assert_eq!(in_use.status.code(), Some(2), "{in_use:?}");
        drop(open);
        // The source is removed, which is logged with its name.
        fs::remove_file(source.join(OsStr::from_bytes(b"f\x1b[2J\nFORGED\x9b"))).expect("the file");
        fs::remove_dir(&source).expect("the source");
        let _ = fs::metadata(hidden.inside(b""));
        let _ = fs::metadata(hidden.inside(b"absent"));
        fs::create_dir(&source).expect("a directory");
        check(&format!("standard error, {format}"), &hidden.end(), &["lightfoot: "]);
        let log = fs::read(log).expect("the log");
        check(&format!("log, {format}"), &log, &[beginning]);
        let text = str::from_utf8(&log).expect("text");
        for event in ["mounted", "unknown option ignored", "the source directory was removed"] {
            assert!(text.contains(event), "{event} is not in {}", lossy(&log));
        }
        if format == "json" {
            text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect(line)));
        }
    }
}

#[test]
fn no_reply_of_another_process_reaches_a_terminal() {
    let Some(fixture) = Fixture::new() else { return };
    let mountpoint = fixture.at("points").join(OsString::from_vec(all_names()));
    fs::create_dir_all(&mountpoint).expect("a directory");
    let hidden = Hidden::new(&fixture, OsStr::new("ram:"), &mountpoint, &[]);
    let mut status = hidden.status();
    let socket = socket_of(&hidden.inside(b""));
    poison(&mut status);
    serve(Path::new(&socket), format!("{status}\n").into_bytes());
    let source = status["source"].as_str().expect("text").to_owned();
    assert!(source.contains('\u{1b}') && hidden.status()["source"].as_str().expect("text").contains(r"\u{1b}"));
    hidden.check_commands("of another");
    serve(Path::new(&socket), [&all_names()[..], b"\n"].concat());
    hidden.check_commands("that replies no JSON");
    check_output("unmount", &hidden.run(&["unmount", "@"]));
    let _ = fs::remove_file(&socket);
    check("standard error", &hidden.end(), &["lightfoot: ", "20"]);
}

#[test]
fn a_process_that_accepts_nobody_does_not_delay_the_unmount() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m"]);
    let socket = socket_of(&fixture.at("m"));
    fs::remove_file(&socket).expect("the socket");
    let unix = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("a socket");
    let (listener, address) = (unix(), SocketAddrUnix::new(&*socket).expect("a path"));
    bind(&listener, &address).expect("a name");
    listen(&listener, 0).expect("it listens");
    let mut waiting = vec![unix()];
    while connect(waiting.last().expect("one"), &address).is_ok() {
        waiting.push(unix());
    }
    let mut command = fixture.command(&["unmount", "m"]);
    let mut unmounting = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    fixture.until("it is unmounted", || !fixture.is_mounted());
    // The queue was full before the unmount, so the connection that the test waits for is made after it.
    fixture.until("the command connects", || {
        assert!(unmounting.try_wait().expect("a child").is_none(), "the command waits for nobody");
        accept(&listener).is_ok_and(|client| {
            let client = socket_peercred(&client).expect("its process").pid;
            client == Pid::from_child(&unmounting)
        })
    });
    // It waits for the end of the process that listens, which is this test.
    unmounting.kill().expect("a child");
    unmounting.wait().expect("a child");
    let _ = fs::remove_file(&socket);
}
