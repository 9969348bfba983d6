//! What carries requests: its threads, requests that wait or hang, and the end.

use crate::support::{Mount, is_over_ring, new_dir, wait_for};
use crate::{inode, lock_waits, long, ram};
use lightfoot_fuse::{Carrier, MountError, MountOptions, NoRing, Uring};
use ramfs::RamFs;
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, spawn};
use vfs::{Errno, FileSystem, FsTraits, Inode, Layer, NewInode, Request, S_IFDIR, S_IFREG, Vfs};

/// The mount point of the process that [`process_that_hangs`] is.
const AT: &str = "LIGHTFOOT_TEST_HANG_AT";

/// Requests that hang.
const HANGING: usize = 8;

/// Lookups of names with an `h` first hang until the gate opens.
struct Hanging(Arc<Gate>);

#[derive(Default)]
struct Gate {
    /// How many hang; `None`: it is open.
    state: Mutex<Option<usize>>,
    opened: Condvar,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Some(0)), opened: Condvar::new() })
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if let Some(hanging) = &mut *state {
            *hanging += 1;
            println!("hangs");
        }
        drop(self.opened.wait_while(state, |state| state.is_some()).unwrap());
    }

    fn until_hanging(&self, count: usize) {
        wait_for("so many requests hang", || *self.state.lock().unwrap() == Some(count));
    }

    fn open(&self) {
        *self.state.lock().unwrap() = None;
        self.opened.notify_all();
    }
}

impl FileSystem for Hanging {
    fn root(&self) -> NewInode {
        inode(1, S_IFDIR | 0o755)
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        if name[0] == b'h' {
            self.0.pass();
        }
        Ok(inode(2, S_IFREG | 0o644))
    }
}

/// A tree in memory that does not state that it never waits.
struct Slow(RamFs);

impl Layer for Slow {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn traits(&self) -> FsTraits {
        FsTraits { never_waits: false, ..FileSystem::traits(&self.0) }
    }
}

/// `stat(2)` of names that hang, each by a thread.
fn stat_each(at: &Path, count: usize) -> Vec<JoinHandle<io::Result<fs::Metadata>>> {
    (0..count).map(|number| at.join(format!("h{number}"))).map(|path| spawn(move || fs::metadata(path))).collect()
}

fn threads(mount: &Mount) -> usize {
    match mount.mounted().carrier() {
        Carrier::Ring { queues, threads } => {
            assert!(is_over_ring() && *queues > 0);
            *threads
        }
        Carrier::Device { threads, reason } => {
            assert!(!is_over_ring() && *reason == NoRing::NotWanted);
            *threads
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_tree_that_may_wait_has_more_threads_for_each_queue() {
    let Some(quick) = Mount::new(&ram(), &long()) else { return };
    let Some(slow) = Mount::new(&Vfs::new(Slow(RamFs::new())), &long()) else { return };
    let (quick, slow) = (threads(&quick), threads(&slow));
    assert!(if is_over_ring() { slow >= 2 * quick } else { slow == quick }, "{quick}, {slow}");
}

#[test]
fn io_uring_that_is_required_and_not_offered_is_an_error_of_the_mount() {
    let offer = fs::read_to_string("/sys/module/fuse/parameters/enable_uring").unwrap_or_default();
    let at = new_dir("required");
    let options = MountOptions { uring: Uring::Required, ..long() };
    if rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists() && offer.trim() != "Y" {
        let refused = lightfoot_fuse::mount(&ram(), &at, &options).map(drop);
        assert!(matches!(refused, Err(MountError::NoRing { reason: NoRing::NotOffered, .. })), "{refused:?}");
        assert!(fs::read_dir(&at).is_ok(), "nothing is mounted");
    } else {
        println!("SKIPPED: it is offered, or nothing can be mounted");
    }
    fs::remove_dir(&at).unwrap();
}

#[test]
fn calls_that_hang_delay_no_others_as_long_as_there_is_a_thread() {
    let gate = Gate::closed();
    let options = MountOptions { threads: Some(4), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    // One is left, also where all come from one processor.
    let calls = stat_each(&mount.at, if threads(&mount) >= 4 { 3 } else { 1 });
    gate.until_hanging(calls.len());
    for number in 0..100 {
        assert!(fs::metadata(mount.path(&format!("f{number}"))).is_ok());
    }
    gate.open();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_ok()));
}

#[test]
fn requests_that_wait_leave_slots_for_others() {
    let vfs = Vfs::new(Slow(RamFs::new()));
    let Some(mount) = Mount::new(&vfs, &lock_waits::options()) else { return };
    let file = lock_waits::locked(&vfs, &mount);
    let mut processes: Vec<_> = (0..24).map(|_| lock_waits::spawn(&mount.path("f"), "fcntl")).collect();
    lock_waits::until_waiting(&mount, 24);
    for round in 0..3 {
        fs::write(mount.path("other"), format!("{round}")).unwrap();
    }
    lock_waits::lock(&file, vfs::LockKind::Unlock);
    assert!(processes.iter_mut().all(lock_waits::ended));
}

#[test]
fn an_abort_ends_requests_that_hang_and_the_server_ends_after_them() {
    let gate = Gate::closed();
    let options = MountOptions { threads: Some(HANGING), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    let count = HANGING.min(threads(&mount));
    let calls = stat_each(&mount.at, count);
    // All threads of one processor may hang before others have come.
    wait_for("a request hangs", || gate.state.lock().unwrap().is_some_and(|hanging| hanging > 0));
    let _ = unmount(&mount.at, UnmountFlags::FORCE);
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    gate.open();
    wait_for("the server ends", || mount.mounted().is_over());
    let _ = unmount(&mount.at, UnmountFlags::DETACH);
}

#[test]
fn a_mount_that_was_aborted_does_not_stay_behind() {
    let Some(mut mount) = Mount::new(&ram(), &long()) else { return };
    let mountpoint = mount.mounted().mountpoint().to_path_buf();
    let _open = fs::File::create(mount.path("f")).unwrap();
    assert_eq!(unmount(&mount.at, UnmountFlags::FORCE), Err(rustix::io::Errno::BUSY));
    wait_for("the server ends", || mount.mounted().is_over());
    assert!(fs::metadata(mount.path("f")).is_err());
    mount.end();
    assert!(lightfoot_fuse::mountinfo::top(&mountpoint).unwrap().is_none_or(|top| !top.is_lightfoot()));
    assert!(!mountpoint.exists(), "the directory is removed");
}

#[test]
fn a_detached_mount_serves_open_files_and_ends_with_them() {
    let Some(mount) = Mount::new(&ram(), &long()) else { return };
    fs::write(mount.path("f"), b"one").unwrap();
    let file = fs::File::options().append(true).open(mount.path("f")).unwrap();
    unmount(&mount.at, UnmountFlags::DETACH).unwrap();
    io::Write::write_all(&mut &file, b"two").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 6);
    assert!(!mount.mounted().is_over());
    drop(file);
    wait_for("the server ends", || mount.mounted().is_over());
    assert_eq!(mount.mounted().session().open_handles(), 0);
}

/// Mounts a file system that hangs, in a process that the test below starts. As a test it does nothing.
#[test]
fn process_that_hangs() {
    let Some(at) = std::env::var_os(AT) else { return };
    let uring = if is_over_ring() { Uring::Required } else { Uring::Never };
    let options = MountOptions { threads: Some(HANGING), uring, ..long() };
    let mounted = lightfoot_fuse::mount(&Vfs::new(Hanging(Gate::closed())), at.as_ref(), &options).unwrap();
    println!("mounted");
    mounted.wait().unwrap();
}

#[test]
fn requests_that_hang_in_a_process_that_is_killed_fail_and_the_next_mount_takes_its_place() {
    // Whether this machine can mount, over this carrier.
    let Some(probe) = Mount::new(&ram(), &long()) else { return };
    drop(probe);
    let at = new_dir("killed");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "carriers::process_that_hangs"]).env(AT, &at);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut until = |word: &str| lines.by_ref().any(|line| line.unwrap().contains(word));
    assert!(until("mounted"));
    let calls = stat_each(&at, HANGING);
    assert!(until("hangs"));
    process.kill().unwrap();
    process.wait().unwrap();
    let next = lightfoot_fuse::mount(&ram(), &at, &long()).unwrap();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    fs::write(at.join("f"), b"").unwrap();
    drop(next);
    fs::remove_dir(&at).unwrap();
}
