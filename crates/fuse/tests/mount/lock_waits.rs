//! Processes that wait for a lock, and end: killed, unmounted, aborted.

use crate::support::{Mount, wait_for};
use crate::{ram, session};
use lightfoot_fuse::{Gauge, MountOptions, SessionOptions};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno as HostErrno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use vfs::{Base, LockKind, LockWait, OpenFile, OpenFlags, Vfs};

/// The file and the call for the process that [`spawn`] starts.
const FILE: &str = "LIGHTFOOT_TEST_LOCK_FILE";
const CALL: &str = "LIGHTFOOT_TEST_LOCK_CALL";

const CALLS: [&str; 2] = ["fcntl", "flock"];

/// Waits for a lock on the file, in a process that [`spawn`] starts. As a test it does nothing.
#[test]
fn process_that_waits() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let is_flock = std::env::var(CALL).unwrap() == "flock";
    let call = if is_flock { flock::<&fs::File> } else { fcntl_lock::<&fs::File> };
    call(&file, FlockOperation::LockExclusive).unwrap();
}

pub(crate) fn spawn(file: &Path, call: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "lock_waits::process_that_waits"]).env(FILE, file).env(CALL, call);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A file `f` in the mount, locked by another user of the tree.
pub(crate) fn locked(vfs: &Vfs, mount: &Mount) -> OpenFile {
    fs::write(mount.path("f"), b"").unwrap();
    let file = vfs.context().open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    lock(&file, LockKind::Exclusive);
    file
}

pub(crate) fn lock(file: &OpenFile, kind: LockKind) {
    file.lock_range(kind, 0..u64::MAX, LockWait::Never).unwrap();
    file.flock(kind, LockWait::Never).unwrap();
}

pub(crate) fn options() -> MountOptions {
    MountOptions { session: SessionOptions { locks: true, ..session() }, threads: Some(2), ..MountOptions::default() }
}

pub(crate) fn until_waiting(mount: &Mount, count: u64) {
    let metrics = mount.mounted().session().metrics();
    wait_for("so many requests wait", || metrics.get(Gauge::LockWaiters) == count);
}

/// Waits for the end of the process; whether it was successful.
pub(crate) fn ended(process: &mut Child) -> bool {
    wait_for("the process ends", || process.try_wait().unwrap().is_some());
    process.wait().unwrap().success()
}

#[test]
fn a_process_that_waits_for_a_lock_can_be_killed() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &options()) else { return };
    let file = locked(&vfs, &mount);
    for call in CALLS {
        let mut processes: Vec<_> = (0..8).map(|_| spawn(&mount.path("f"), call)).collect();
        until_waiting(&mount, 8);
        // The requests hold no thread.
        fs::write(mount.path("other"), call).unwrap();
        let mut last = processes.pop().unwrap();
        for process in &mut processes {
            process.kill().unwrap();
            assert!(!ended(process), "{call}");
        }
        until_waiting(&mount, 1);
        // A signal that does nothing interrupts the call, and the kernel starts it again.
        let pid = Pid::from_raw(last.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        until_waiting(&mount, 0);
        kill_process(pid, Signal::CONT).unwrap();
        until_waiting(&mount, 1);
        lock(&file, LockKind::Unlock);
        assert!(ended(&mut last), "{call}");
        wait_for("the lock ended with its process", || {
            file.lock_range(LockKind::Exclusive, 0..u64::MAX, LockWait::Never).is_ok()
                && file.flock(LockKind::Exclusive, LockWait::Never).is_ok()
        });
    }
}

#[test]
fn a_detached_mount_ends_when_the_processes_that_wait_are_killed() {
    for call in CALLS {
        let vfs = ram();
        let Some(mount) = Mount::new(&vfs, &options()) else { return };
        let _locked = locked(&vfs, &mount);
        let mut processes: Vec<_> = (0..8).map(|_| spawn(&mount.path("f"), call)).collect();
        until_waiting(&mount, 8);
        unmount(&mount.at, UnmountFlags::DETACH).unwrap();
        assert!(!mount.mounted().is_over());
        for process in &mut processes {
            process.kill().unwrap();
            ended(process);
        }
        wait_for("the server ends", || mount.mounted().is_over());
        until_waiting(&mount, 0);
    }
}

#[test]
fn an_abort_ends_the_processes_that_wait() {
    for call in CALLS {
        let vfs = ram();
        let Some(mount) = Mount::new(&vfs, &options()) else { return };
        let _locked = locked(&vfs, &mount);
        let mut processes: Vec<_> = (0..8).map(|_| spawn(&mount.path("f"), call)).collect();
        until_waiting(&mount, 8);
        // It is busy, but the connection is over.
        assert_eq!(unmount(&mount.at, UnmountFlags::FORCE), Err(HostErrno::BUSY));
        assert!(processes.iter_mut().all(|process| !ended(process)), "{call}");
        wait_for("the server ends", || mount.mounted().is_over());
        until_waiting(&mount, 0);
        // A drop leaves a mount whose server has ended.
        unmount(&mount.at, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_lock_of_flock_ends_with_the_last_descriptor() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &options()) else { return };
    let tree_s = locked(&vfs, &mount);
    lock(&tree_s, LockKind::Unlock);
    let file = fs::File::open(mount.path("f")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let twin = file.try_clone().unwrap();
    drop(file);
    assert_eq!(tree_s.flock(LockKind::Shared, LockWait::Never), Err(vfs::Errno::EAGAIN));
    assert_eq!(tree_s.lock_range(LockKind::Exclusive, 0..9, LockWait::Never), Ok(()), "another family");
    drop(twin);
    // RELEASE is sent after `close(2)`.
    wait_for("the lock ends", || tree_s.flock(LockKind::Exclusive, LockWait::Never).is_ok());
}
