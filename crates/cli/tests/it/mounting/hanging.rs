//! Directories of a server that hangs: calls into them end, and the mount goes on. The server is a mount of Lightfoot that is stopped.

use super::fixture::{Fixture, Stopped, end_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{JoinHandle, spawn};

/// `ETIMEDOUT`.
const TIMED_OUT: Option<i32> = Some(110);

/// A time after which hanging calls end. No other call of these tests takes so long, unless the machine is very busy: then the test tries
/// it again.
const SHORT: &str = "call_timeout=1s";

/// No call takes so long.
const LONG: &str = "call_timeout=1h";

/// Options of `m`. The kernel keeps the name of the directory: it would look that up for one process after the other.
const KEPT: &str = "no_uring,entry_timeout=1h,attr_timeout=1h";

/// Repeats a call that a signal ended. Such a signal needs no handler and no sender: while a thread starts a program, it blocks all
/// signals; if another child of the thread ends just then, the kernel wakes another thread of the process for `SIGCHLD`.
fn uninterrupted<T>(call: impl Fn() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A server `s`, which is stopped later, and a mount `m`: a tree in memory with `s` at `src`.
struct Tree {
    fixture: Fixture,
    server: Pid,
}

impl Tree {
    /// With these options of the server, and of its directory in `m`. `None` where nothing can be mounted.
    fn new(of_server: &str, of_directory: &str) -> Option<Self> {
        let fixture = Fixture::new()?;
        fs::create_dir(fixture.at("s")).expect("a directory");
        // Its kernel would collect writes, which then end at once.
        let options = ["no_uring,nowriteback", of_server].join(",");
        fixture.ok(&["mount", "--daemon", "ram:", "s", "-o", &options]);
        let stats: Value = serde_json::from_str(&fixture.ok(&["stats", "--json", "s"])).expect("JSON");
        let pid = stats["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let server = pid.and_then(Pid::from_raw).expect("a process");
        fs::write(fixture.at("s/known"), "contents").expect("a file");
        let tree = format!("[[mount]]\nat = \"/src\"\nsource = \"s\"\noptions = \"{of_directory}\"\n");
        fs::write(fixture.at("tree.toml"), tree).expect("a file");
        Some(Self { fixture, server })
    }

    fn stop(&self) -> Stopped {
        Stopped::new(&self.fixture, self.server)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.fixture.at(path)
    }

    /// What `call` returns when the machine leaves it the time.
    fn in_time<T>(&self, call: impl Fn() -> io::Result<T>) -> T {
        let mut done = None;
        self.fixture.until("a call ends in time", || {
            done = uninterrupted(&call).map(Some).unwrap_or_else(|error| {
                assert_eq!(error.raw_os_error(), TIMED_OUT, "{error}");
                None
            });
            done.is_some()
        });
        done.expect("it has ended")
    }

    /// A number that `lightfoot stats` shows.
    fn gauge(&self, name: &str) -> u64 {
        let stats: Value = serde_json::from_str(&self.fixture.ok(&["stats", "--json", "m"])).expect("JSON");
        let gauges = stats["snapshot"]["gauges"].as_array().expect("gauges");
        gauges.iter().find(|gauge| gauge[0] == name).and_then(|gauge| gauge[1].as_u64()).expect("a gauge")
    }

    fn until_hanging(&self, count: u64) {
        self.fixture.until("the calls hang", || self.gauge("in_flight") == count);
    }

    /// Looks for names that nobody has looked for.
    fn looks(&self, count: usize) -> Vec<JoinHandle<io::Result<fs::Metadata>>> {
        let names: Vec<_> = (0..count).map(|number| self.at(&format!("m/src/unseen-{number}"))).collect();
        names.into_iter().map(|name| spawn(move || uninterrupted(|| fs::metadata(&name)))).collect()
    }

    /// Everything works again.
    fn check_the_end(&self) {
        self.in_time(|| fs::write(self.at("m/src/last"), "last"));
        assert_eq!(self.in_time(|| fs::read(self.at("m/src/last"))), b"last");
        assert_eq!(self.in_time(|| fs::read(self.at("m/src/known"))), b"contents");
        let is_listed = |name: &str| {
            let names =
                || fs::read_dir(self.at("m/src"))?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
            self.in_time(names).iter().any(|listed| listed == name)
        };
        assert!(is_listed("last") && is_listed("known"));
        fs::write(self.at("m/local"), "local").expect("a file in memory");
    }
}

#[test]
fn each_call_that_hangs_times_out_and_the_mount_goes_on() {
    /// More than the threads that make calls.
    const LOOKS: usize = 40;
    type Act = fn(&Tree, &File) -> io::Result<()>;
    const ACTS: [(&str, Act); 6] = [
        ("stat", |tree, _| fs::metadata(tree.at("m/src/unseen")).map(drop)),
        ("open", |tree, _| File::open(tree.at("m/src/known")).map(drop)),
        ("readdir", |tree, _| fs::read_dir(tree.at("m/src"))?.try_for_each(|entry| entry.map(drop))),
        ("create", |tree, _| File::create(tree.at("m/src/new")).map(drop)),
        ("mkdir", |tree, _| fs::create_dir(tree.at("m/src/dir"))),
        ("write", |_, mut file| file.write_all(b"written")),
    ];
    let Some(tree) = Tree::new("", SHORT) else { return };
    let _mount = tree.fixture.mount(&["tree.toml", "m", "-o", KEPT]);
    let file = tree.in_time(|| File::create(tree.at("m/src/written")));
    let stopped = tree.stop();
    for (name, act) in ACTS {
        let error = uninterrupted(|| act(&tree, &file)).expect_err(name);
        assert_eq!(error.raw_os_error(), TIMED_OUT, "{name}: {error}");
    }
    for look in tree.looks(LOOKS) {
        let error = look.join().expect("no panic").expect_err("the server is stopped");
        assert_eq!(error.raw_os_error(), TIMED_OUT, "{error}");
    }
    drop((stopped, file));
    tree.check_the_end();
    // The write that timed out comes late, if it comes.
    let late = tree.in_time(|| fs::read(tree.at("m/src/written")));
    assert!(late.is_empty() || late == b"written", "{late:?}");
}

#[test]
fn calls_that_hang_delay_no_others_and_end_with_their_callers() {
    const LOOKS: usize = 4;
    let Some(tree) = Tree::new("", LONG) else { return };
    let _mount = tree.fixture.mount(&["tree.toml", "m", "-o", KEPT]);
    assert!(fs::metadata(tree.at("m/src/known")).is_ok());
    let stopped = tree.stop();
    let looks = tree.looks(LOOKS);
    tree.until_hanging(LOOKS as u64);
    fs::write(tree.at("m/local"), "local").expect("a file in memory");
    assert_eq!(fs::read(tree.at("m/local")).expect("it can be read"), b"local");
    // A program that handles a signal.
    let script = r#"trap 'echo caught' USR1; read -r line < "$1"; echo goes on"#;
    let shell = start(Command::new("sh").args(["-c", script, "sh"]).arg(tree.at("m/src/other")));
    tree.until_hanging(LOOKS as u64 + 1);
    kill_process(Pid::from_child(&shell), Signal::USR1).expect("it runs");
    let output = end_of(shell);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "caught\ngoes on\n", "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Interrupted system call"), "{output:?}");
    // And one that does not.
    let killed = start(Command::new("cat").arg(tree.at("m/src/other")));
    tree.until_hanging(LOOKS as u64 + 1);
    kill_process(Pid::from_child(&killed), Signal::INT).expect("it runs");
    assert_eq!(end_of(killed).status.code(), None, "a signal ended it");
    assert!(looks.iter().all(|look| !look.is_finished()));
    drop(stopped);
    for look in looks {
        let error = look.join().expect("no panic").expect_err("there is no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
    tree.check_the_end();
}

/// Starts a program with signals as usual, also where the tests ignore them, and its output.
fn start(command: &mut Command) -> Child {
    let mut clean = Command::new("env");
    clean.args(["--default-signal=INT,TERM,USR1", "LC_ALL=C"]).arg(command.get_program()).args(command.get_args());
    clean.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn a_mount_ends_while_calls_hang() {
    const LOOKS: usize = 4;
    let Some(tree) = Tree::new("", SHORT) else { return };
    for is_signal in [true, false] {
        let mount = tree.fixture.mount(&["tree.toml", "m", "-o", KEPT]);
        tree.in_time(|| fs::metadata(tree.at("m/src/known")));
        let stopped = tree.stop();
        // They call until there is no mount.
        let look = |name: PathBuf| loop {
            let error = uninterrupted(|| fs::metadata(&name)).expect_err("the server is stopped");
            if error.raw_os_error() != TIMED_OUT {
                return error;
            }
        };
        let names = (0..LOOKS).map(|number| tree.at(&format!("m/src/unseen-{number}")));
        let looks: Vec<_> = names.map(|name| spawn(move || look(name))).collect();
        tree.fixture.until("calls hang", || tree.gauge("in_flight") > 0);
        if is_signal {
            mount.signal(Signal::TERM);
        } else {
            tree.fixture.ok(&["unmount", "--lazy", "m"]);
        }
        let (status, log) = mount.end();
        assert_eq!(status, Some(0), "{log}");
        assert!(!tree.fixture.is_mounted());
        for look in looks {
            assert_eq!(look.join().expect("no panic").kind(), io::ErrorKind::NotFound);
        }
        drop(stopped);
    }
}

#[test]
fn files_that_end_while_their_server_hangs_stop_no_thread() {
    /// More than the threads that serve requests.
    const FILES: usize = 100;
    // The kernel tells it of each close, and waits.
    let Some(tree) = Tree::new("locks", LONG) else { return };
    let _mount = tree.fixture.mount(&["tree.toml", "m", "-o", "no_uring"]);
    let before = tree.gauge("nodes");
    let open = |number: usize| {
        let name = tree.at(&format!("m/src/f{number}"));
        fs::write(&name, "contents")?;
        let file = File::open(&name)?;
        assert_eq!(io::read_to_string(&file)?, "contents");
        fs::remove_file(&name)?;
        Ok(file)
    };
    let files: io::Result<Vec<File>> = (0..FILES).map(open).collect();
    let files = files.expect("files");
    let stopped = tree.stop();
    drop(files);
    tree.fixture.until("the kernel has forgotten the files", || tree.gauge("nodes") <= before + 2);
    fs::write(tree.at("m/local"), "local").expect("a file in memory");
    drop(stopped);
    tree.check_the_end();
}

#[test]
fn calls_to_a_server_have_a_deadline_without_an_option() {
    let Some(tree) = Tree::new("", "") else { return };
    fs::create_dir(tree.at("disk")).expect("a directory");
    for (source, options, is_limited) in [
        ("s", "ro", true),
        ("tree.toml", "ro", true),
        ("s", "call_timeout=0", false),
        ("s", "passthrough", false),
        ("disk", "ro", false),
    ] {
        let mount = tree.fixture.mount(&[source, "m", "-o", options, "--log-level", "info"]);
        mount.signal(Signal::TERM);
        let (status, log) = mount.end();
        assert_eq!(status, Some(0), "{source} {options}: {log}");
        assert_eq!(
            log.contains("calls end after 30 s, since this is fuse.lightfoot"),
            is_limited,
            "{source} {options}: {log}"
        );
    }
}
