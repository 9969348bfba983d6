//! What carries requests: its threads, requests that wait or hang, and the end.

use crate::support::{Mount, is_over_ring, new_dir, wait_for};
use crate::{inode, lock_waits, long, ram};
use lightfoot_fuse::{MountError, MountOptions, NoRing, TransportKind, Uring};
use ramfs::RamFs;
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{JoinHandle, spawn};
use testkit::Gate;
use vfs::{Errno, FileSystem, FsTraits, Inode, Layer, NewInode, NextNames, Request, S_IFDIR, S_IFREG, Vfs};

/// The mount point of the process that [`process_that_hangs`] is.
const AT: &str = "LIGHTFOOT_TEST_HANG_AT";

/// Requests that hang.
const HANGING: usize = 8;

/// Lookups of names with an `h` first hang while the gate is closed.
struct Hanging(Gate);

fn closed_gate() -> Gate {
    let gate = Gate::default();
    gate.close();
    gate
}

impl FileSystem for Hanging {
    fn root(&self) -> NewInode {
        inode(1, S_IFDIR | 0o755)
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        if name[0] == b'h' {
            println!("hangs");
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
        FileSystem::traits(&self.0).waiting()
    }
}

/// `stat(2)` of names that hang, each by a thread.
fn stat_each(at: &Path, count: usize) -> Vec<JoinHandle<io::Result<fs::Metadata>>> {
    (0..count).map(|number| at.join(format!("h{number}"))).map(|path| spawn(move || fs::metadata(path))).collect()
}

fn threads(mount: &Mount) -> usize {
    match mount.mounted().transport_kind() {
        TransportKind::Ring { queues, threads } => {
            assert!(is_over_ring() && *queues > 0);
            *threads
        }
        TransportKind::Device { threads, reason } => {
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
    let gate = closed_gate();
    let options = MountOptions { threads: Some(4), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    // One is left, also where all come from one processor.
    let calls = stat_each(&mount.at, if threads(&mount) >= 4 { 3 } else { 1 });
    gate.wait_for(calls.len() as u32);
    for number in 0..100 {
        assert!(fs::metadata(mount.path(&format!("f{number}"))).is_ok());
    }
    gate.open();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_ok()));
}

/// Runs `work` on one processor, so that all of its requests, and those of its threads, come from there.
fn on_one_processor(work: impl FnOnce() + Send) {
    let processor = rustix::thread::sched_getcpu();
    let run = || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(processor);
        rustix::thread::sched_setaffinity(None, &set).unwrap();
        work();
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

#[test]
fn calls_of_which_all_threads_hang_delay_no_others() {
    // More than any queue or mount has threads at first, and fewer than they may have.
    const CALLS: usize = 12;
    let gate = closed_gate();
    let options = MountOptions { threads: Some(2), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    // A file that the kernel knows.
    assert!(fs::metadata(mount.path("f")).is_ok());
    on_one_processor(|| {
        let calls = stat_each(&mount.at, CALLS);
        gate.wait_for(CALLS as u32);
        for number in 0..100 {
            assert!(fs::metadata(mount.path(&format!("f{number}"))).is_ok());
        }
        gate.open();
        assert!(calls.into_iter().all(|call| call.join().unwrap().is_ok()));
    });
    assert!(fs::metadata(mount.path("g")).is_ok());
}

/// The last request that hangs has no other after it that could bring it to a new slot.
#[test]
fn requests_that_hang_one_after_the_other_reach_the_tree_without_others() {
    let gate = closed_gate();
    let options = MountOptions { threads: Some(2), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    // A file that the kernel knows.
    assert!(fs::metadata(mount.path("f")).is_ok());
    on_one_processor(|| {
        for count in 1..=10 {
            let path = mount.path(&format!("h{count}"));
            spawn(move || fs::metadata(path));
            gate.wait_for(count);
        }
        gate.open();
        assert!(fs::metadata(mount.path("g")).is_ok());
    });
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
    let gate = closed_gate();
    let options = MountOptions { threads: Some(HANGING), ..long() };
    let Some(mount) = Mount::new(&Vfs::new(Hanging(gate.clone())), &options) else { return };
    let count = HANGING.min(threads(&mount));
    let calls = stat_each(&mount.at, count);
    // All threads of one processor may hang before others have come.
    gate.wait_for(1);
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

/// Mounts a file system that hangs, in a process that the tests below start. As a test it does nothing. After a line on standard
/// input, its rings fail. Prints how the mount ended.
#[test]
fn process_that_hangs() {
    let Some(at) = std::env::var_os(AT) else { return };
    let uring = if is_over_ring() { Uring::Required } else { Uring::Never };
    let options = MountOptions { threads: Some(2), uring, ..long() };
    let mounted = lightfoot_fuse::mount(&Vfs::new(Hanging(closed_gate())), at.as_ref(), &options).unwrap();
    println!("mounted");
    spawn(|| {
        if io::stdin().read_line(&mut String::new()).is_ok_and(|len| len > 0) {
            break_rings();
            println!("broken");
        }
    });
    println!("ended: {:?}", mounted.wait());
}

/// Puts another file in place of each ring of this process: each further `io_uring_enter(2)` fails.
#[allow(unsafe_code, reason = "descriptors of other owners")]
fn break_rings() {
    let other = fs::File::open("/dev/null").unwrap();
    for entry in fs::read_dir("/proc/self/fd").unwrap().map(Result::unwrap) {
        let is_ring = fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]");
        if is_ring {
            let number = entry.file_name().into_string().unwrap().parse().unwrap();
            // SAFETY: the number stays open, and it is not closed here.
            let mut ring = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
            rustix::io::dup2(&other, &mut ring).unwrap();
        }
    }
}

/// A process that serves a mount that hangs, and what it prints.
struct Server {
    process: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    at: PathBuf,
}

impl Server {
    /// `None`, with the line SKIPPED, if this machine cannot mount, or not over this carrier.
    fn new() -> Option<Self> {
        Self::of("process_that_hangs")
    }

    /// The same with another of the processes above.
    fn of(name: &str) -> Option<Self> {
        drop(Mount::new(&ram(), &long())?);
        let at = new_dir("served");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", &format!("carriers::{name}")]).env(AT, &at);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut server = Self { process, lines, at };
        server.until("mounted");
        Some(server)
    }

    /// The next line that has the word.
    fn until(&mut self, word: &str) -> String {
        let line = self.lines.by_ref().map(Result::unwrap).find(|line| line.contains(word));
        line.unwrap_or_else(|| panic!("the process ended before it printed {word:?}"))
    }

    /// Requests that hang, which the process has all taken.
    fn hang(&mut self) -> Vec<JoinHandle<io::Result<fs::Metadata>>> {
        // A file that the kernel knows.
        assert!(fs::metadata(self.at.join("f")).is_ok());
        let calls = stat_each(&self.at, HANGING);
        (0..HANGING).for_each(|_| _ = self.until("hangs"));
        calls
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = unmount(&self.at, UnmountFlags::DETACH);
        let _ = fs::remove_dir(&self.at);
    }
}

#[test]
fn a_ring_that_fails_ends_the_mount_with_an_error_while_others_hang() {
    if !is_over_ring() {
        return;
    }
    let Some(mut server) = Server::new() else { return };
    let calls = server.hang();
    io::Write::write_all(server.process.stdin.as_mut().unwrap(), b"\n").unwrap();
    server.until("broken");
    // A thread that is inside `io_uring_enter(2)` fails after the next request, of another name each time.
    let mut number = 0;
    wait_for("requests fail", || {
        number += 1;
        fs::metadata(server.at.join(format!("g{number}"))).is_err()
    });
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    assert!(server.until("ended").contains("Err"), "the process learns it");
}

/// Mounts a tree in memory, in a process that the test below starts. As a test it does nothing.
#[test]
fn process_that_serves() {
    let Some(at) = std::env::var_os(AT) else { return };
    let options = MountOptions { uring: Uring::Required, ..long() };
    let mounted = lightfoot_fuse::mount(&ram(), at.as_ref(), &options).unwrap();
    println!("mounted");
    let _ = mounted.wait();
}

#[test]
fn memory_of_long_writes_goes_back_when_a_queue_is_idle() {
    const LEN: usize = 1 << 20;
    if !is_over_ring() {
        return;
    }
    let Some(server) = Server::of("process_that_serves") else { return };
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    let file = fs::File::create(server.at.join("f")).unwrap();
    for byte in 0..4 {
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![byte; LEN], 0).unwrap();
    }
    let most = resident();
    // Nothing else lets go of so much: the file's content stays.
    wait_for("the memory of a request goes back", || resident() + LEN / 10 * 9 < most);
    assert_eq!(fs::read(server.at.join("f")).unwrap(), vec![3; LEN]);
}

/// Aborts the connection of the mount, as an administrator does.
fn abort_by_hand(at: &Path) {
    let control = new_dir("control");
    rustix::mount::mount("none", &control, "fusectl", rustix::mount::MountFlags::empty(), None).unwrap();
    let mounted = lightfoot_fuse::mountinfo::top(&at.canonicalize().unwrap()).unwrap().unwrap();
    let file = control.join(rustix::fs::minor(mounted.device).to_string()).join("abort");
    let aborted = fs::write(file, "1");
    unmount(&control, UnmountFlags::DETACH).unwrap();
    fs::remove_dir(&control).unwrap();
    aborted.unwrap();
}

#[test]
fn an_abort_by_an_administrator_ends_calls_and_a_process_whose_threads_all_hang() {
    let Some(mut server) = Server::new() else { return };
    let calls = server.hang();
    abort_by_hand(&server.at);
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    server.until("ended: Err(Custom { kind: ConnectionAborted");
}

#[test]
fn only_an_abort_of_a_mount_that_is_there_is_an_error() {
    for (flags, is_open, is_error) in [
        (UnmountFlags::FORCE, true, true),
        (UnmountFlags::FORCE, false, false),
        (UnmountFlags::DETACH, true, false),
        (UnmountFlags::empty(), false, false),
    ] {
        let Some(mut mount) = Mount::new(&ram(), &long()) else { return };
        // Not a file of this process: each process that another test starts has it open, too, until it runs its program, and the
        // mount is in use for as long.
        assert!(Command::new("cp").arg("/proc/self/stat").arg(mount.path("f")).status().unwrap().success());
        let open = is_open.then(|| fs::File::open(mount.path("f")).unwrap());
        let done = unmount(&mount.at, flags);
        assert_eq!(done.is_ok(), !is_error, "{flags:?}");
        drop(open);
        let ended = mount.take().wait();
        assert_eq!(ended.map_err(|error| error.kind()).err(), is_error.then_some(io::ErrorKind::ConnectionAborted));
    }
}

#[test]
fn a_lazy_unmount_frees_the_place_while_calls_hang_and_a_kill_ends_them() {
    let Some(mut server) = Server::new() else { return };
    let calls = server.hang();
    unmount(&server.at, UnmountFlags::DETACH).unwrap();
    let next = lightfoot_fuse::mount(&ram(), &server.at, &long()).unwrap();
    fs::write(server.at.join("f"), b"").unwrap();
    assert!(calls.iter().all(|call| !call.is_finished()));
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    drop(next);
}

#[test]
fn requests_that_hang_in_a_process_that_is_killed_fail_and_the_next_mount_takes_its_place() {
    let Some(mut server) = Server::new() else { return };
    let calls = server.hang();
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let next = lightfoot_fuse::mount(&ram(), &server.at, &long()).unwrap();
    assert!(calls.into_iter().all(|call| call.join().unwrap().is_err()));
    fs::write(server.at.join("f"), b"").unwrap();
    drop(next);
}
