//! A directory with a mount point, and the command on it. Whatever is left is ended, unmounted and removed at the end.
//!
//! Waiting is for conditions, a bounded number of times; the kernel tells when the table of mounts changes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How often a condition is looked at, at most; at least this many tenths of a second pass.
const ROUNDS: usize = 300;

/// A directory with an empty mount point `m`.
pub(super) struct Place {
    dir: PathBuf,
}

impl Place {
    /// None where nothing can be mounted; says so.
    pub(super) fn new() -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let can_mount = rustix::process::geteuid().is_root()
            && File::options().read(true).write(true).open("/dev/fuse").is_ok()
            && Command::new("umount").arg("--version").output().is_ok();
        if !can_mount {
            println!("SKIPPED: it needs root, /dev/fuse and umount(8)");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lightfoot-mount-test-{}-{number}", std::process::id()));
        fs::create_dir_all(dir.join("m")).expect("a directory for the test");
        let dir = dir.canonicalize().expect("it is there");
        Some(Self { dir })
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// `lightfoot` with these words, in the place's directory.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
        command.args(words).current_dir(&self.dir).stdin(Stdio::null());
        command.env_remove("LIGHTFOOT_LOG").env_remove("NOTIFY_SOCKET");
        command
    }

    /// The same, to its end.
    pub(super) fn run(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        end_of(child)
    }

    /// The same, which must succeed; what it printed.
    pub(super) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The same, which must fail with `status` and one sentence that has all `parts`.
    pub(super) fn refused(&self, words: &[&str], status: i32, parts: &[&str]) {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        assert!(said.starts_with("lightfoot: "), "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?}: {part:?} is not in {said}");
        }
    }

    /// `lightfoot mount` with these words, which stays; returns when it has mounted.
    pub(super) fn mount(&self, words: &[&str]) -> Mount {
        self.start(self.command(&[&["mount"], words].concat()))
    }

    /// The same, of a command that was made ready.
    pub(super) fn start(&self, mut command: Command) -> Mount {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
        let mut mount = Mount { child: Some(child) };
        self.until("it is mounted", || self.is_mounted() || mount.is_over());
        assert!(self.is_mounted(), "{:?}", mount.end());
        mount
    }

    /// Whether something is mounted on `m`.
    pub(super) fn is_mounted(&self) -> bool {
        self.mounts().any(|at| at == self.at("m"))
    }

    /// What is mounted in the place, the last first.
    fn mounts(&self) -> impl Iterator<Item = PathBuf> {
        let table = fs::read_to_string("/proc/self/mountinfo").expect("a table of mounts");
        let places: Vec<PathBuf> = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect();
        let dir = self.dir.clone();
        places.into_iter().rev().filter(move |at| at.starts_with(&dir))
    }

    /// Waits until `is_so`.
    pub(super) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let table = File::open("/proc/self/mountinfo").expect("a table of mounts");
        let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        for _ in 0..ROUNDS {
            if is_so() {
                return;
            }
            let _ = poll(&mut [PollFd::new(&table, PollFlags::PRI)], Some(&tenth));
        }
        panic!("waited in vain until {what}");
    }

    /// The process that answers for `m`, by what it tells.
    pub(super) fn server(&self) -> Pid {
        let status: serde_json::Value = serde_json::from_str(&self.ok(&["stats", "m", "--json"])).expect("JSON");
        let pid = status["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        pid.and_then(Pid::from_raw).expect("a process")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mounts: Vec<_> = self.mounts().collect();
        for at in mounts {
            umount_lazily(&at);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// What the child said, when it has ended; after half a minute it is killed, so that a test fails and does not hang.
pub(super) fn end_of(child: Child) -> Output {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a child that nobody waited for");
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    let watch = move || {
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)) == Ok(0) {
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

/// A `lightfoot mount` that stays. It is killed at the end.
pub(super) struct Mount {
    child: Option<Child>,
}

impl Mount {
    pub(super) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it can be signalled");
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some())
    }

    /// Waits for its end; its status and what it said on standard error.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
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
