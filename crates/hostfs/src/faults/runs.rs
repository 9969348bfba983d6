//! The tests.

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

macro_rules! calls {
    ($($name:ident)*) => { &[$(Call::$name),*] };
}

/// The calls that an operation can make, whoever the caller is.
const OF_OPERATIONS: &[Call] = calls![
    AddWatch Chmod Chown Clone Close Copy Dup Fallocate Fdatasync Fstatfs Fsync Ftruncate Getdents Getflags Getxattr
    Link Listxattr Lseek Make Mkdir Mknod Open Pread Pwrite Readlink Removexattr Rename Setflags Setxattr Statx
    Symlink Unlink Utimens
];

/// How a directory is shown.
struct Mode {
    policy: Revalidate,
    watch: bool,
    mount_points: MountPoints,
    acls: HostAcls,
    owner: Option<u32>,
}

/// As one that only this process changes, without ACLs.
const EXCLUSIVE: Mode = Mode {
    policy: Revalidate::Exclusive,
    watch: false,
    mount_points: MountPoints::Stay,
    acls: HostAcls::Refuse,
    owner: None,
};

impl Mode {
    fn options(&self) -> HostOptions {
        let Mode { policy, watch, mount_points, acls, .. } = *self;
        HostOptions { policy, watch, mount_points, acls, max_fds: 8, ..HostOptions::default() }
    }

    /// Returns whether an error is an answer about the file, which the tree may keep.
    fn is_answer(&self, call: Call, error: HostErrno) -> bool {
        match (call, error) {
            (Call::Statx, HostErrno::NOENT) => self.policy == Revalidate::Exclusive,
            (Call::Getxattr, HostErrno::ACCESS | HostErrno::TOOBIG) => self.acls == HostAcls::Apply,
            _ => false,
        }
    }

    /// Returns a new directory of the host, with the files of the script.
    fn source(&self) -> TempDir {
        // Where there is one, a file system in memory: its fsync(2) waits for no disk.
        let source = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        furnish(source.path(), self.owner);
        source
    }
}

/// A call that fails.
#[derive(Clone, Copy)]
struct Failing {
    operation: usize,
    call: usize,
    /// The kind of that call, if the calls before it are as without faults.
    kind: Call,
    fault: Fault,
}

impl core::fmt::Display for Failing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { operation, call, kind, fault } = self;
        write!(f, "{}: call {call} {kind:?} fails with {fault:?}", SCRIPT[*operation].0)
    }
}

/// The result of a run of the script.
struct Run {
    answers: Vec<Answer>,
    /// The calls of each operation.
    calls: Vec<Vec<Call>>,
    /// The first answer of each operation.
    first: Vec<Answer>,
}

/// Runs the script with these faults, each in another operation, and repeats an operation that failed by one.
fn run(mode: &Mode, faults: &[Failing], expected: &[Answer]) -> Run {
    let source = mode.source();
    let scene = Scene::new(source.path(), &mode.options(), mode.owner).unwrap();
    let mut run = Run { answers: Vec::new(), calls: Vec::new(), first: Vec::new() };
    for (number, (_, made, operation)) in SCRIPT.iter().enumerate() {
        let once = || operation(&scene).map_err(|errno| errno.raw());
        let here = faults.iter().find(|fault| fault.operation == number);
        let (answer, calls) = with_fault(here.map(|fault| (fault.call, fault.kind, fault.fault)), once);
        run.calls.push(calls);
        run.first.push(answer.clone());
        if here.is_none() || answer == expected[number] {
            run.answers.push(answer);
            continue;
        }
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

/// Unmounts, and waits until the last reference to the file system is dropped.
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

/// Returns the number of open descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the errors of a run with these faults, after which there are as many descriptors as
/// `before`; and the faults that did not occur, because an earlier one led to other calls.
fn attempt(mode: &Mode, before: usize, faults: &[Failing], expected: &[Answer]) -> (Vec<String>, Vec<Failing>) {
    let names = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", and ");
    let Ok(run) = std::panic::catch_unwind(|| run(mode, faults, expected)) else {
        return (vec![format!("{names}: panicked, or the tree is not the host's")], Vec::new());
    };
    let mut wrong = Vec::new();
    if !(0..MANY_LOOKS).any(|_| descriptors() == before) {
        wrong.push(format!("{names}: {before} descriptors, then {}", descriptors()));
    }
    let came = |failing: &Failing| run.calls[failing.operation].get(failing.call) == Some(&failing.kind);
    for failing @ Failing { operation, kind, fault, .. } in faults.iter().copied().filter(came) {
        let (Fault::Refused(error) | Fault::Done(error)) = fault;
        let kind_of = (mode.acls == HostAcls::Apply, GOES_ON.contains(&SCRIPT[operation].0));
        let answer = &run.first[operation];
        if matches!(fault, Fault::Refused(_)) && !is_expected(kind, error, (answer, &expected[operation]), kind_of) {
            wrong.push(format!("{failing}: {answer:?}"));
        }
    }
    for (number, (answer, expected)) in run.answers.iter().zip(expected).enumerate() {
        let is_late = faults.iter().any(|failing| matches!(failing.fault, Fault::Done(_)));
        if answer != expected && !is_late {
            wrong.push(format!("{names}: then {}: {answer:?}, not {expected:?}", SCRIPT[number].0));
        }
    }
    (wrong, faults.iter().copied().filter(|failing| !came(failing)).collect())
}

/// Tries each of these faults, by operation. As many come in one run as there are operations with
/// one left; a fault that does not occur there, and all faults of a run with an error, have a run
/// alone.
fn try_each(mode: &Mode, before: usize, mut left: Vec<Vec<Failing>>, expected: &[Answer]) -> Vec<String> {
    eprintln!("{} faults", left.iter().map(Vec::len).sum::<usize>());
    let (mut wrong, mut alone) = (Vec::new(), 0);
    loop {
        let faults: Vec<_> = left.iter_mut().filter_map(Vec::pop).collect();
        if faults.is_empty() {
            eprintln!("{alone} of them alone");
            return wrong;
        }
        let (of_all, missed) = attempt(mode, before, &faults, expected);
        let again = if of_all.is_empty() { missed } else { faults };
        alone += again.len();
        let of_each: Vec<_> = again.iter().flat_map(|failing| attempt(mode, before, &[*failing], expected).0).collect();
        wrong.extend(if of_each.is_empty() { of_all } else { of_each });
    }
}

/// Makes each call fail. Adds the calls that the script makes to `met`, and returns the errors.
fn try_all(mode: &Mode, met: &mut HashSet<Call>, is_tried: impl Fn(Call) -> bool) -> Vec<String> {
    let before = descriptors();
    let first = run(mode, &[], &[]);
    met.extend(first.calls.iter().flatten());
    let mut faults = Vec::new();
    for (operation, calls) in first.calls.iter().enumerate() {
        let mut seen = HashSet::new();
        faults.push(Vec::new());
        for (call, &kind) in calls.iter().enumerate().filter(|(_, kind)| is_tried(**kind)) {
            let all = errors(kind);
            // Of a call that an operation makes often, each time with some of the errors.
            let some = if seen.insert(kind) { all.len() } else { all.len().min(2) };
            let skipped = if some < all.len() { call } else { 0 };
            let kept = all.iter().copied().filter(|error| !mode.is_answer(kind, *error));
            let tried = kept.cycle().skip(skipped).take(some);
            faults[operation].extend(tried.map(|error| Failing {
                operation,
                call,
                kind,
                fault: Fault::Refused(error),
            }));
        }
    }
    assert!(faults.iter().any(|faults| !faults.is_empty()));
    try_each(mode, before, faults, &first.answers)
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_call_fails_once_with_each_error() {
    // It counts descriptors.
    if testkit::ran_alone("faults::runs::each_call_fails_once_with_each_error") {
        return;
    }
    let user = system::user().is_root().then_some(USER);
    let mode = |policy, acls, owner| Mode { policy, acls, owner, ..EXCLUSIVE };
    let met = &mut HashSet::new();
    let mut wrong = try_all(&EXCLUSIVE, met, |_| true);
    wrong.extend(try_all(&mode(Revalidate::Always, HostAcls::Refuse, user), met, |_| true));
    wrong.extend(try_all(&mode(Revalidate::Exclusive, HostAcls::Apply, user), met, |_| true));
    let long = Revalidate::Ttl(Duration::from_secs(100_000));
    let watching = Mode { policy: long, watch: true, acls: HostAcls::Apply, ..EXCLUSIVE };
    wrong.extend(try_all(&watching, met, |call| call == Call::AddWatch));
    // Files may be on other machines.
    let crossing = Mode { mount_points: MountPoints::Cross, ..EXCLUSIVE };
    wrong.extend(try_all(&crossing, met, |call| matches!(call, Call::Close | Call::Dup | Call::Fdatasync)));
    // The others belong to a mount, or to the switch to another user.
    let missing: Vec<_> = OF_OPERATIONS.iter().filter(|call| !met.contains(call)).collect();
    assert!(missing.is_empty(), "not in the script: {missing:?}");
    report(&wrong);
}

/// The calls that change names.
const OF_NAMES: &[Call] = calls![Make Mkdir Mknod Symlink Link Unlink Rename];

#[test]
fn after_a_change_that_failed_too_late_the_tree_is_as_the_host() {
    // It counts descriptors.
    if testkit::ran_alone("faults::runs::after_a_change_that_failed_too_late_the_tree_is_as_the_host") {
        return;
    }
    let before = descriptors();
    let first = run(&EXCLUSIVE, &[], &[]);
    let changes = |(operation, calls): (usize, &Vec<Call>)| {
        let of_names = calls.iter().enumerate().filter(|(_, kind)| OF_NAMES.contains(kind));
        let late = of_names.flat_map(|(call, &kind)| {
            [HostErrno::IO, HostErrno::INTR].map(|error| Failing { operation, call, kind, fault: Fault::Done(error) })
        });
        late.collect()
    };
    let faults = first.calls.iter().enumerate().map(changes).collect();
    report(&try_each(&EXCLUSIVE, before, faults, &first.answers));
}

#[test]
fn each_call_of_a_mount_fails_once_with_each_error() {
    // It counts descriptors.
    if testkit::ran_alone("faults::runs::each_call_of_a_mount_fails_once_with_each_error") {
        return;
    }
    let long = Revalidate::Ttl(Duration::from_secs(100_000));
    let mode = Mode { policy: long, watch: true, acls: HostAcls::Apply, ..EXCLUSIVE };
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
            let (answer, _) = mount(Some((number, call, Fault::Refused(error))));
            // The probes find out what the host lacks. ACLs that cannot be read deny; see
            // `HostAcls::Apply`. A directory that cannot be watched is cached for the ordinary
            // time.
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
}

#[test]
fn a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more() {
    if !system::user().is_root() {
        eprintln!("SKIPPED: a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more needs root");
        return;
    }
    // It counts descriptors.
    if testkit::ran_alone("faults::runs::a_thread_that_keeps_the_rights_of_a_caller_changes_nothing_more") {
        return;
    }
    let mode = Mode { policy: Revalidate::Always, owner: Some(USER), ..EXCLUSIVE };
    let source = mode.source();
    let scene = Scene::new(source.path(), &mode.options(), mode.owner).unwrap();
    let make = |name: &[u8]| scene.at.mkdir(vfs::Base::CWD, name, 0o755);
    let (_, calls) = with_fault(None, || make(b"/first"));
    let back = calls.iter().position(|call| *call == Call::SwitchBack).unwrap();
    // The thread that keeps the rights ends.
    let thread = || with_fault(Some((back, Call::SwitchBack, Fault::Refused(HostErrno::PERM))), || make(b"/second"));
    let (answer, _) = std::thread::scope(|scope| scope.spawn(thread).join().unwrap());
    assert_eq!(answer, Ok(()), "the change was made before");
    assert_eq!(make(b"/third"), Err(vfs::Errno::EPERM));
    assert_eq!(scene.read("/dir/inner").as_deref(), Ok(&b"inner"[..]));
    compare(&scene, source.path());
}

#[test]
fn synchronous_writes_reach_permanent_storage() {
    let mode = EXCLUSIVE;
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
            // The mode of a new file may forbid its maker to open it again. The descriptor that
            // made it has no such flags.
            let made = |fault| {
                let (file, calls) = with_fault(fault, || scene.open("/made", flags.union(vfs::OpenFlags::CREAT)));
                scene.at.unlink(vfs::Base::CWD, b"/made").unwrap();
                (file.unwrap(), calls.iter().rposition(|call| *call == Call::Open))
            };
            let (_, opened) = made(None);
            let refused =
                opened.filter(|_| sync != none).map(|call| (call, Call::Open, Fault::Refused(HostErrno::ACCESS)));
            let (found, synced) = write(&made(refused).0);
            assert_eq!((found & OFlags::SYNC, synced), (OFlags::empty(), call), "{flags:?}, a new file");
        }
    }
}
