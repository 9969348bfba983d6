//! A host directory mounted for several users: the host decides over changes. Prints SKIPPED without root or `/dev/fuse`.

use crate::support::{HostMount, wait_for};
use hostfs::{HostOptions, Revalidate};
use lightfoot_fuse::{MountOptions, SessionOptions, Ttls};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const USER: u32 = 1001;
const TEAM: u32 = 3001;

/// A directory, and a mount of it that caches for longer than the test takes.
fn mounted() -> Option<HostMount> {
    let policy = Revalidate::Ttl(Duration::from_secs(100_000));
    let session = SessionOptions { ttls: Ttls::LONG, ..SessionOptions::default() };
    let options = MountOptions { session, allow_other: true, ..MountOptions::default() };
    HostMount::new(&HostOptions { policy, ..HostOptions::default() }, &options)
}

/// Runs a script in the mount as [`USER`], a member of [`TEAM`].
fn run(mount: &HostMount, script: &str) -> Output {
    let mut command = Command::new("setpriv");
    let user = format!("--reuid={USER}");
    let command = command.args([&*user, "--regid=2001", &format!("--groups={TEAM}"), "sh", "-ec", script]);
    command.current_dir(&mount.at).output().unwrap()
}

fn set(path: &Path, owner: u32, group: u32, mode: u32) {
    chown(path, Some(owner), Some(group)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_of_these_over_io_uring() {
    crate::support::again_over_ring("host_directory::", "host_directory::all_of_these_over_io_uring");
}

#[test]
fn a_member_of_a_supplementary_group_uses_the_groups_directory() {
    let Some(mount) = mounted() else { return };
    fs::create_dir(mount.source.join("d")).unwrap();
    set(&mount.source.join("d"), 0, TEAM, 0o770);
    fs::write(mount.source.join("d/roots"), b"text").unwrap();
    set(&mount.source.join("d/roots"), 0, TEAM, 0o660);
    let done = run(
&mount, "cd d; mkdir dir; mkfifo fifo; ln -s body link; echo text > file; touch roots; setfattr -n user.x -v 1 roots || :
         ln file other; mv other moved; chgrp 3001 file; rm moved link; rmdir dir",
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = fs::metadata(mount.source.join("d/file")).unwrap();
    assert_eq!((file.uid(), file.gid()), (USER, TEAM));
    let mut left: Vec<_> = fs::read_dir(mount.source.join("d")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["fifo", "file", "roots"]);
}

#[test]
fn the_kernel_names_the_group_of_who_makes_a_file() {
    let Some(mount) = mounted() else { return };
    fs::create_dir(mount.source.join("d")).unwrap();
    set(&mount.source.join("d"), 0, TEAM, 0o770);
    let script = "echo; read go; : >create";
    let user = [&format!("--reuid={USER}"), "--regid=2001", &format!("--groups={TEAM}"), "sh", "-ec", script];
    let mut maker = Command::new("setpriv");
    maker.args(user).current_dir(mount.path("d")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut maker = maker.spawn().unwrap();
    maker.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // From here on `/proc` has no groups of it.
    let status = format!("/proc/{}/status", maker.id());
    let hidden = Command::new("mount").args(["--bind", "/dev/null", &status]).status().unwrap();
    maker.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let made = maker.wait().unwrap();
    if !hidden.success() || !mount.mounted().session().names_groups() {
        return println!("SKIPPED: the kernel does not name groups (Linux 6.3), or /proc cannot be hidden");
    }
    assert!(mount.source.join("d/create").exists(), "{made}");
}

#[test]
fn a_write_by_another_user_succeeds_and_takes_the_capabilities_from_a_file() {
    let Some(mount) = mounted() else { return };
    let path = mount.source.join("program");
    fs::write(&path, b"text").unwrap();
    set(&path, 0, 0, 0o777);
    // `CAP_DAC_OVERRIDE`, permitted and effective, in the format of `linux/capability.h`.
    let value: Vec<u8> = [0x0200_0001u32, 2, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    setxattr(&path, "security.capability", &value, XattrFlags::empty()).unwrap();
    let done = run(&mount, "printf other > program");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read(&path).unwrap(), b"other");
    let mut kept = [0; 32];
    assert_eq!(getxattr(&path, "security.capability", &mut kept), Err(rustix::io::Errno::NODATA));
}

#[test]
fn a_former_owner_cannot_change_what_the_kernel_still_shows_as_its_own() {
    let Some(mount) = mounted() else { return };
    let path = mount.source.join("program");
    fs::write(&path, b"text").unwrap();
    set(&path, USER, 2001, 0o755);
    assert_eq!(run(&mount, "stat -c %u program").stdout, format!("{USER}\n").as_bytes());
    set(&path, 0, 0, 0o755);
    // Both caches still show the former owner.
    for script in ["chmod 4755 program", "chgrp 3001 program", "touch -d @0 program", "chmod 0777 program"] {
        let done = run(&mount, script);
        assert!(!done.status.success(), "{script}");
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (0, 0, 0o755), "{script}");
    }
}

#[test]
fn a_program_of_the_mount_and_one_of_the_host_append_to_one_file() {
    use std::io::Write as _;
    const LINES: usize = 2000;
    let Some(mount) = mounted() else { return };
    let log = mount.source.join("log");
    fs::write(&log, b"").unwrap();
    set(&log, USER, USER, 0o644);
    // Each line is one write(2). Both programs begin when both have the file open.
    let append = |name: &str, dir: &Path| {
        let script =
            format!("exec 3>>log; read go; i=0; while [ $i -lt {LINES} ]; do echo {name} $i >&3; i=$((i+1)); done");
        let mut command = Command::new("sh");
        command.args(["-ec", &script]).current_dir(dir).stdin(std::process::Stdio::piped()).spawn().unwrap()
    };
    let mut programs = [append("mount", &mount.at), append("host", &mount.source)];
    for program in &mut programs {
        program.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    assert!(programs.each_mut().iter_mut().all(|program| program.wait().unwrap().success()));
    let text = fs::read_to_string(&log).unwrap();
    // The kernel cuts a write of the mount at the end of a page that it does not have whole. So a line of the host may be inside one.
    let (mut rest, mut of_mount) = (text.as_str(), String::new());
    for number in 0..LINES {
        let (before, after) =
            rest.split_once(&format!("host {number}\n")).unwrap_or_else(|| panic!("{number}:\n{text}"));
        of_mount.push_str(before);
        rest = after;
    }
    of_mount.push_str(rest);
    let expected: String = (0..LINES).map(|number| format!("mount {number}\n")).collect();
    assert!(of_mount == expected, "{text}");
    // The kernel has cached its data at the places where it expected them, until the notices reach it.
    const LOOKS: usize = 100_000;
    let is_seen = (0..LOOKS).any(|_| fs::read_to_string(mount.at.join("log")).unwrap() == text);
    assert!(is_seen, "{}", fs::read_to_string(mount.at.join("log")).unwrap());
}

/// Writes `contents` into a file of the host, and keeps the file's length and time.
fn rewrite(path: &Path, contents: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let before = file.metadata().unwrap();
    file.write_all_at(contents, 0).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    let after = file.metadata().unwrap();
    assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
}

#[test]
fn contents_that_another_program_changed_are_seen_at_the_next_open_whatever_the_size_and_time() {
    let Some(mount) = mounted() else { return };
    fs::write(mount.host("f"), b"old").unwrap();
    assert_eq!(fs::read(mount.path("f")).unwrap(), b"old");
    for contents in [b"new", b"yet"] {
        rewrite(&mount.host("f"), contents);
        assert_eq!(fs::read(mount.path("f")).unwrap(), contents);
    }
}

#[test]
fn names_that_another_program_made_are_listed_whatever_the_time_of_the_directory() {
    let Some(mount) = mounted() else { return };
    let listed = || {
        let names = fs::read_dir(mount.path("d")).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let dir = mount.host("d");
    fs::create_dir(&dir).unwrap();
    let mut expected = listed();
    for name in ["a", "b"] {
        let time = fs::metadata(&dir).unwrap().modified().unwrap();
        fs::write(dir.join(name), b"").unwrap();
        fs::File::open(&dir).unwrap().set_modified(time).unwrap();
        expected.insert(name.into());
        assert_eq!(listed(), expected);
    }
}

#[test]
fn an_open_file_shows_what_another_program_wrote_whatever_the_size_and_time() {
    let policy = Revalidate::Ttl(Duration::from_millis(1));
    let ttls = Ttls { attr: Duration::from_millis(1), ..Ttls::LONG };
    let session = SessionOptions { ttls, ..SessionOptions::default() };
    let options = MountOptions { session, ..MountOptions::default() };
    let Some(mount) = HostMount::new(&HostOptions { policy, ..HostOptions::default() }, &options) else { return };
    fs::write(mount.host("f"), b"old").unwrap();
    let file = fs::File::open(mount.path("f")).unwrap();
    let read = || {
        let mut buf = [0; 3];
        file.read_exact_at(&mut buf, 0).map(|()| buf).unwrap()
    };
    assert_eq!(&read(), b"old");
    let made = fs::metadata(mount.host("f")).unwrap();
    wait_for("a later time", || prim::clock::now_ns() > made.ctime() * 1_000_000_000 + made.ctime_nsec());
    rewrite(&mount.host("f"), b"new");
    wait_for("the new contents", || read() == *b"new");
}
