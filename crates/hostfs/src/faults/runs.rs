//! The tests.
//!
//! Own code.

use super::answers::{errors, is_expected};
use super::script::{GOES_ON, SCRIPT, Scene, USER, furnish};
use super::{Fault, with_fault};
use crate::options::{HostAcls, HostOptions, MountPoints, Revalidate};
use crate::system::{self, Call};
use rustix::fs::OFlags;
use rustix::io::Errno as HostErrno;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The result of an operation, or the number of an error.
pub(super) type Answer = Result<String, i32>;

/// The calls that an operation can make, whoever the caller is.
const OF_OPERATIONS: [Call; 33] = [
    Call::AddWatch,
    Call::Chmod,
    Call::Chown,
    Call::Clone,
    Call::Close,
    Call::Copy,
    Call::Dup,
    Call::Fallocate,
    Call::Fdatasync,
    Call::Fstatfs,
    Call::Fsync,
    Call::Ftruncate,
    Call::Getdents,
    Call::Getflags,
    Call::Getxattr,
    Call::Link,
    Call::Listxattr,
    Call::Lseek,
    Call::Make,
    Call::Mkdir,
    Call::Mknod,
    Call::Open,
    Call::Pread,
    Call::Pwrite,
    Call::Readlink,
    Call::Removexattr,
    Call::Rename,
    Call::Setflags,
    Call::Setxattr,
    Call::Statx,
    Call::Symlink,
    Call::Unlink,
    Call::Utimens,
];

/// How a directory is shown.
struct Mode {
    policy: Revalidate,
    watch: bool,
    mount_points: MountPoints,
    acls: HostAcls,
    owner: Option<u32>,
}

impl Mode {
    fn options(&self) -> HostOptions {
        let Mode { policy, watch, mount_points, acls, .. } = *self;
        HostOptions { policy, watch, mount_points, acls, max_fds: 8, ..HostOptions::default() }
    }

    /// Whether an error is an answer about the file, which the tree may keep.
    fn is_answer(&self, call: Call, error: HostErrno) -> bool {
        match (call, error) {
            (Call::Statx, HostErrno::NOENT) => self.policy == Revalidate::Exclusive,
            (Call::Getxattr, HostErrno::ACCESS | HostErrno::TOOBIG) => self.acls == HostAcls::Apply,
            _ => false,
        }
    }

    /// A new directory of the host, with the files of the script.
    fn source(&self) -> TempDir {
        // Where there is one, a file system in memory: its fsync(2) waits for no disk.
        let source = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        furnish(source.path(), self.owner);
        source
    }
}

const STAY: MountPoints = MountPoints::Stay;

/// A call that fails.
#[derive(Clone, Copy)]
struct Failing {
    operation: usize,
    call: usize,
    fault: Fault,
}

/// What a run of the script gave.
struct Run {
    answers: Vec<Answer>,
    /// The calls of each operation.
    calls: Vec<Vec<Call>>,
    /// What the operation answered in which the call failed.
    failed: Option<Answer>,
}

/// Runs the script, and repeats an operation that failed by the fault.
fn run(mode: &Mode, fault: Option<Failing>, expected: &[Answer]) -> Run {
    let source = mode.source();
    let scene = Scene::new(source.path(), &mode.options(), mode.owner).unwrap();
    let mut run = Run { answers: Vec::new(), calls: Vec::new(), failed: None };
    for (number, (_, made, operation)) in SCRIPT.iter().enumerate() {
        let once = || operation(&scene).map_err(|errno| errno.raw());
        let here = fault.filter(|fault| fault.operation == number);
        let (answer, calls) = with_fault(here.map(|fault| (fault.call, fault.fault)), once);
        run.calls.push(calls);
        if here.is_none() || answer == expected[number] {
            run.failed = run.failed.or_else(|| here.map(|_| answer.clone()));
            run.answers.push(answer);
            continue;
        }
        run.failed = Some(answer);
        let again = once();
        // The host had made the name before the call that failed.
        let is_made = made.is_some_and(|name| again == Err(HostErrno::EXIST.raw_os_error()) && exists(&scene, name));
        run.answers.push(if is_made { expected[number].clone() } else { again });
    }
    compare(&scene, source.path());
    end(scene);
    run
}

fn exists(scene: &Scene, name: &str) -> bool {
    scene.stat(&format!("/{name}")).is_ok()
}

/// Compares the tree with the host.
fn compare(scene: &Scene, source: &Path) {
    scene.at.set_credentials(vfs::Credentials::root());
    let mut open = vec![String::new()];
    while let Some(dir) = open.pop() {
        let mut names = Vec::new();
        for entry in fs::read_dir(source.join(dir.trim_start_matches('/'))).unwrap() {
            let entry = entry.unwrap();
            let (name, metadata) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap());
            names.push(format!("{name} {:o}", metadata.mode() & 0o170_000));
            let path = format!("{dir}/{name}");
            let size = if metadata.is_dir() { 0 } else { metadata.size() };
            let (mode, links) = (metadata.mode(), metadata.nlink());
            let expected = format!("{mode:o} {size} {links} {}:{}", metadata.uid(), metadata.gid());
            assert_eq!(scene.stat(&path), Ok(expected), "{path}");
            if metadata.is_file() {
                assert_eq!(scene.read(&path), Ok(fs::read(entry.path()).unwrap()), "{path}");
            } else if metadata.is_dir() {
                open.push(path);
            }
        }
        names.sort_unstable();
        assert_eq!(scene.names(if dir.is_empty() { "/" } else { &dir }), Ok(names), "{dir}");
    }
}

/// Unmounts, and waits until the last reference to the file system is gone.
fn end(scene: Scene) {
    let Scene { vfs, at, shared } = scene;
    drop(at);
    drop(vfs);
    while shared.upgrade().is_some() {
        std::thread::yield_now();
    }
}

/// How many times the number of descriptors is read: another thread closes the last ones.
const MANY_LOOKS: usize = 100_000;

/// The number of open descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Lets each call fail. Adds those that the script makes to `met`, and returns what was wrong.
fn try_all(mode: &Mode, met: &mut HashSet<Call>, is_tried: impl Fn(Call) -> bool) -> Vec<String> {
    let before = descriptors();
    let first = run(mode, None, &[]);
    let expected = &first.answers;
    met.extend(first.calls.iter().flatten());
    let (mut faults, mut wrong) = (0, Vec::new());
    for (operation, calls) in first.calls.iter().enumerate() {
        let mut seen = HashSet::new();
        for (call, &kind) in calls.iter().enumerate().filter(|(_, kind)| is_tried(**kind)) {
            let all = errors(kind);
            // Of a call that an operation makes often, each time with some of the errors.
            let some = if seen.insert(kind) { all.len() } else { all.len().min(2) };
            for error in all
                .iter()
                .copied()
                .filter(|error| !mode.is_answer(kind, *error))
                .cycle()
                .skip(if some < all.len() { call } else { 0 })
                .take(some)
            {
                faults += 1;
                let name = format!("{}: call {call} {kind:?} fails with {error:?}", SCRIPT[operation].0);
                let fault = Failing { operation, call, fault: Fault::Refused(error) };
                let ran = std::panic::catch_unwind(|| run(mode, Some(fault), expected));
                let Ok(run) = ran else {
                    wrong.push(format!("{name}: panicked, or the tree is not the host's"));
                    continue;
                };
                if !(0..MANY_LOOKS).any(|_| descriptors() == before) {
                    wrong.push(format!("{name}: {before} descriptors, then {}", descriptors()));
                }
                let kind_of = (mode.acls == HostAcls::Apply, GOES_ON.contains(&SCRIPT[operation].0));
                let failing = run.calls[operation].get(call).copied();
                if failing == Some(kind)
                    && let Some(answer) = run.failed
                    && !is_expected(kind, error, (&answer, &expected[operation]), kind_of)
                {
                    wrong.push(format!("{name}: {answer:?}"));
                }
                for (number, answer) in run.answers.iter().enumerate() {
                    if *answer != expected[number] {
                        let after = SCRIPT[number].0;
                        wrong.push(format!("{name}: then {after}: {answer:?}, not {:?}", expected[number]));
                    }
                }
            }
        }
    }
    eprintln!("{faults} faults");
    assert!(faults > 0);
    wrong
}

/// Runs `test`, which has this name, in a process without other tests: it counts descriptors.
fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "LIGHTFOOT_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let output = command.args([&name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_call_fails_once_with_each_error() {
    alone("each_call_fails_once_with_each_error", || {
        let user = system::user().is_root().then_some(USER);
        let mode = |policy, acls, owner| Mode { policy, watch: false, mount_points: STAY, acls, owner };
        let met = &mut HashSet::new();
        let mut wrong = try_all(&mode(Revalidate::Exclusive, HostAcls::Refuse, None), met, |_| true);
        wrong.extend(try_all(&mode(Revalidate::Always, HostAcls::Refuse, user), met, |_| true));
        wrong.extend(try_all(&mode(Revalidate::Exclusive, HostAcls::Apply, user), met, |_| true));
        let long = Revalidate::Ttl(Duration::from_secs(100_000));
        let watching = Mode { policy: long, watch: true, mount_points: STAY, acls: HostAcls::Apply, owner: None };
        wrong.extend(try_all(&watching, met, |call| call == Call::AddWatch));
        // Files may be on other machines.
        let crossing = Mode { mount_points: MountPoints::Cross, ..mode(Revalidate::Exclusive, HostAcls::Refuse, None) };
        wrong.extend(try_all(&crossing, met, |call| matches!(call, Call::Close | Call::Dup | Call::Fdatasync)));
        // The others belong to a mount, or to the switch to another user.
        let missing: Vec<_> = OF_OPERATIONS.iter().filter(|call| !met.contains(call)).collect();
        assert!(missing.is_empty(), "not in the script: {missing:?}");
        report(&wrong);
    });
}

/// The calls that change names.
const OF_NAMES: [Call; 7] =
    [Call::Make, Call::Mkdir, Call::Mknod, Call::Symlink, Call::Link, Call::Unlink, Call::Rename];

#[test]
fn after_a_change_that_failed_too_late_the_tree_is_as_the_host() {
    alone("after_a_change_that_failed_too_late_the_tree_is_as_the_host", || {
        let mode = Mode {
            policy: Revalidate::Exclusive,
            watch: false,
            mount_points: STAY,
            acls: HostAcls::Refuse,
            owner: None,
        };
        let before = descriptors();
        let first = run(&mode, None, &[]);
        let mut wrong = Vec::new();
        for (operation, calls) in first.calls.iter().enumerate() {
            for (call, kind) in calls.iter().enumerate().filter(|(_, kind)| OF_NAMES.contains(kind)) {
                for error in [HostErrno::IO, HostErrno::INTR] {
                    let fault = Failing { operation, call, fault: Fault::Done(error) };
                    let ran = std::panic::catch_unwind(|| run(&mode, Some(fault), &first.answers));
                    if ran.is_err() || !(0..MANY_LOOKS).any(|_| descriptors() == before) {
                        wrong.push(format!("{}: call {call} {kind:?} fails with {error:?}", SCRIPT[operation].0));
                    }
                }
            }
        }
        report(&wrong);
    });
}

#[test]
fn each_call_of_a_mount_fails_once_with_each_error() {
    alone("each_call_of_a_mount_fails_once_with_each_error", || {
        let long = Revalidate::Ttl(Duration::from_secs(100_000));
        let mode = Mode { policy: long, watch: true, mount_points: STAY, acls: HostAcls::Apply, owner: None };
        let source = mode.source();
        let mount = |fault| {
            let (scene, calls) = with_fault(fault, || Scene::new(source.path(), &mode.options(), None));
            let answer = scene.map_err(|error| error.raw_os_error()).map(|scene| {
                compare(&scene, source.path());
                end(scene);
            });
            (answer, calls)
        };
        let before = descriptors();
        let (_, calls) = mount(None);
        let mut wrong = Vec::new();
        for (number, &call) in calls.iter().enumerate() {
            for &error in errors(call) {
                let (answer, _) = mount(Some((number, Fault::Refused(error))));
                // The probes find out what the host lacks. ACLs that cannot be read deny; see `HostAcls::Apply`.
                // What cannot be watched is cached for the ordinary time.
                let may_pass = matches!(
                    call,
                    Call::ProbeOpenat2 | Call::ProbeAcls | Call::ProbeHandles | Call::Getxattr | Call::AddWatch
                );
                let is_right = match answer {
                    Ok(()) => may_pass || error == HostErrno::INTR,
                    Err(raw) => raw == Some(error.raw_os_error()) && error != HostErrno::INTR,
                };
                if !is_right || !(0..MANY_LOOKS).any(|_| descriptors() == before) {
                    wrong.push(format!("{call:?} fails with {error:?}: {answer:?}, {} descriptors", descriptors()));
                }
            }
        }
        assert!(calls.contains(&Call::InotifyInit) && calls.contains(&Call::Realpath), "{calls:?}");
        report(&wrong);
    });
}

#[test]
fn a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more() {
    if !system::user().is_root() {
        eprintln!("SKIPPED: a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more needs root");
        return;
    }
    alone("a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more", || {
        let mode = Mode {
            policy: Revalidate::Always,
            watch: false,
            mount_points: STAY,
            acls: HostAcls::Refuse,
            owner: Some(USER),
        };
        let source = mode.source();
        let scene = Scene::new(source.path(), &mode.options(), mode.owner).unwrap();
        let make = |name: &[u8]| scene.at.mkdir(vfs::Base::CWD, name, 0o755);
        let (_, calls) = with_fault(None, || make(b"/first"));
        let back = calls.iter().position(|call| *call == Call::SwitchBack).unwrap();
        // The thread that keeps the rights ends.
        let thread = || with_fault(Some((back, Fault::Refused(HostErrno::PERM))), || make(b"/second"));
        let (answer, _) = std::thread::scope(|scope| scope.spawn(thread).join().unwrap());
        assert_eq!(answer, Ok(()), "the change was made before");
        assert_eq!(make(b"/third"), Err(vfs::Errno::EPERM));
        assert_eq!(scene.read("/dir/inner").as_deref(), Ok(&b"inner"[..]));
        compare(&scene, source.path());
    });
}

#[test]
fn synchronous_writes_reach_permanent_storage() {
    let mode =
        Mode { policy: Revalidate::Exclusive, watch: false, mount_points: STAY, acls: HostAcls::Refuse, owner: None };
    let source = mode.source();
    let scene = Scene::new(source.path(), &mode.options(), None).unwrap();
    // The flags on the host, and the call that syncs after a write.
    let write = |file: &vfs::OpenFile| {
        let (written, calls) = with_fault(None, || file.write_at(0, b"text"));
        assert_eq!(written.map(|(len, _)| len), Ok(4));
        let synced = calls.into_iter().find(|call| matches!(call, Call::Fsync | Call::Fdatasync));
        (rustix::fs::fcntl_getfl(file.backing().unwrap()).unwrap(), synced)
    };
    let none = vfs::OpenFlags::RDONLY;
    for (sync, on_host, call) in [
        (none, OFlags::empty(), None),
        (vfs::OpenFlags::SYNC, OFlags::SYNC, Some(Call::Fsync)),
        (vfs::OpenFlags::DSYNC, OFlags::DSYNC, Some(Call::Fdatasync)),
    ] {
        for append in [none, vfs::OpenFlags::APPEND] {
            let flags = vfs::OpenFlags::WRONLY.union(sync).union(append);
            let (found, synced) = write(&scene.open("/file", flags).unwrap());
            assert_eq!((found & OFlags::SYNC, synced), (on_host, None), "{flags:?}");
            // The mode of a new file may forbid its maker to open it again. What made it has no such flags.
            let made = |fault| {
                let (file, calls) = with_fault(fault, || scene.open("/made", flags.union(vfs::OpenFlags::CREAT)));
                scene.at.unlink(vfs::Base::CWD, b"/made").unwrap();
                (file.unwrap(), calls.iter().rposition(|call| *call == Call::Open))
            };
            let (_, opened) = made(None);
            let refused = opened.filter(|_| sync != none).map(|call| (call, Fault::Refused(HostErrno::ACCESS)));
            let (found, synced) = write(&made(refused).0);
            assert_eq!((found & OFlags::SYNC, synced), (OFlags::empty(), call), "{flags:?}, a new file");
        }
    }
}
