//! A directory with a mount point, and the command in it. At the end its mounts are unmounted and it is removed.
//!
//! A test waits for a condition, a bounded number of times; the kernel notifies it when the table of mounts changes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a condition is checked, at most; at least this many tenths of a second pass.
const ROUNDS: usize = 300;

/// A directory with an empty mount point `m`.
pub(crate) struct Fixture {
    dir: PathBuf,
}

impl Fixture {
    /// `None` where nothing can be mounted, which it prints.
    pub(crate) fn new() -> Option<Self> {
        let can_mount = rustix::process::geteuid().is_root()
            && File::options().read(true).write(true).open("/dev/fuse").is_ok()
            && Command::new("umount").arg("--version").output().is_ok();
        if !can_mount {
            println!("SKIPPED: it needs root, /dev/fuse and umount(8)");
        }
        can_mount.then(Self::without_mounting)
    }

    /// The same for tests that mount nothing.
    pub(crate) fn without_mounting() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lightfoot-mount-test-{}-{number}", std::process::id()));
        fs::create_dir_all(dir.join("m")).expect("a directory for the test");
        let dir = dir.canonicalize().expect("it is there");
        Self { dir }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// `lightfoot` with these arguments, in this directory. It receives the signals that end a mount, also where the tests
    /// ignore them, as after `nohup cargo test &`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_lightfoot")]);
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command.env_remove("LIGHTFOOT_LOG").env_remove("NOTIFY_SOCKET");
        command
    }

    /// The same, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        end_of(child)
    }

    /// The same, which must succeed; what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// `lightfoot unmount` of `at`, which must succeed. A process that another test starts has the open files of this one until it
    /// runs its program, so the mount may be in use for a moment.
    pub(crate) fn unmount(&self, at: &str) {
        let mut output = self.run(&["unmount", at]);
        self.until("it is not in use", || {
            let is_in_use = String::from_utf8_lossy(&output.stderr).contains(": in use (");
            if is_in_use {
                output = self.run(&["unmount", at]);
            }
            !is_in_use
        });
        assert!(output.status.success(), "{at}: {output:?}");
    }

    /// The same, which must fail with `status` and one line that has all `parts`.
    pub(crate) fn refused(&self, arguments: &[&str], status: i32, parts: &[&str]) {
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.starts_with("lightfoot: "), "{arguments:?}: {message}");
        for part in parts {
            assert!(message.contains(part), "{arguments:?}: {part:?} is not in {message}");
        }
    }

    /// `lightfoot mount` with these arguments, in the foreground; returns when it has mounted.
    pub(crate) fn mount(&self, arguments: &[&str]) -> Mount {
        self.start(self.command(&[&["mount"], arguments].concat()))
    }

    /// The same with a prepared command.
    pub(crate) fn start(&self, mut command: Command) -> Mount {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let mut mount = Mount { child: Some(child) };
        let is_there = self.comes(|| self.is_mounted() || mount.is_over());
        assert!(is_there && self.is_mounted(), "not mounted: {:?}", mount.stop());
        let mut last = None;
        let is_ready = self.comes(|| last.insert(self.run(&["stats", "m"])).status.success());
        assert!(is_ready, "not ready: {last:?}; the mount: {:?}", mount.stop());
        mount
    }

    /// Whether something is mounted on `m`.
    pub(crate) fn is_mounted(&self) -> bool {
        self.mounts().any(|at| at == self.at("m"))
    }

    /// What is mounted in this directory, the last first.
    fn mounts(&self) -> impl Iterator<Item = PathBuf> {
        let table = fs::read_to_string("/proc/self/mountinfo").expect("a table of mounts");
        let places: Vec<PathBuf> = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect();
        let dir = self.dir.clone();
        places.into_iter().rev().filter(move |at| at.starts_with(&dir))
    }

    /// Waits until `is_so`.
    pub(crate) fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        assert!(self.comes(is_so), "waited in vain until {what}");
    }

    /// Waits for `is_so`, and returns whether it came.
    fn comes(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let table = File::open("/proc/self/mountinfo").expect("a table of mounts");
        let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        for _ in 0..ROUNDS {
            if is_so() {
                return true;
            }
            let _ = poll(&mut [PollFd::new(&table, PollFlags::PRI)], Some(&tenth));
        }
        false
    }

    /// The process that serves `m`, as it reports.
    pub(crate) fn server(&self) -> Pid {
        let status: serde_json::Value = serde_json::from_str(&self.ok(&["stats", "m", "--json"])).expect("JSON");
        let pid = status["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        pid.and_then(Pid::from_raw).expect("a process")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let mounts: Vec<_> = self.mounts().collect();
        for at in mounts {
            umount_lazily(&at);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The output of the child, when it has ended; it is killed after half a minute, so that a test fails and does not hang.
pub(crate) fn end_of(child: Child) -> Output {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a child that was not waited for");
    let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
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

fn umount_lazily(at: &Path) {
    let _ = Command::new("umount").args([OsStr::new("-l"), at.as_os_str()]).output();
}

/// A `lightfoot mount` in the foreground. It is killed at the end.
pub(crate) struct Mount {
    child: Option<Child>,
}

impl Mount {
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it can be signalled");
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some())
    }

    /// Kills it; its status and standard error.
    fn stop(mut self) -> (Option<i32>, String) {
        if !self.is_over() {
            self.signal(Signal::KILL);
        }
        self.end()
    }

    /// Waits for its end; its status and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let output = end_of(self.child.take().expect("it runs"));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process that is stopped. It continues when this is dropped, and after a minute at the latest, so that a test fails and does
/// not hang: a process that waits for a request of a stopped FUSE server cannot be killed once the server has read the request.
pub(crate) struct Stopped {
    end: Option<Sender<()>>,
    continuing: Option<JoinHandle<()>>,
}

impl Stopped {
    /// Stops the process. None of its threads runs any more when this returns, so none reads a request that comes later.
    pub(crate) fn new(fixture: &Fixture, process: Pid) -> Self {
        let (end, ended) = channel::<()>();
        kill_process(process, Signal::STOP).expect("it runs");
        let continuing = thread::spawn(move || {
            let _ = ended.recv_timeout(Duration::from_secs(60));
            let _ = kill_process(process, Signal::CONT);
        });
        let stopped = Self { end: Some(end), continuing: Some(continuing) };
        fixture.until("all its threads are stopped", || {
            let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it is there");
            threads.map(|thread| thread.expect("an entry").path().join("stat")).all(|stat| {
                // A thread that ends meanwhile reads nothing either.
                fs::read_to_string(stat)
                    .map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T')))
            })
        });
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.end.take();
        if let Some(continuing) = self.continuing.take() {
            let _ = continuing.join();
        }
    }
}
