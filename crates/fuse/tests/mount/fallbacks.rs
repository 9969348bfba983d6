//! A system that refuses rings to a process where the kernel offers them: each reason is known, and the mount works without.
#![allow(unsafe_code, reason = "filters of system calls")]

use crate::support::{Mount, is_over_ring, new_dir};
use crate::{long, ram};
use lightfoot_fuse::{MountError, MountOptions, NoRing, Uring};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The errno with which `io_uring_setup(2)` fails in the process that [`process_that_is_refused`] is, and its mount point.
const ERRNO: &str = "LIGHTFOOT_TEST_REFUSED_WITH";
const AT: &str = "LIGHTFOOT_TEST_REFUSED_AT";

/// Makes `io_uring_setup(2)` fail in all threads of this process from now on, as the profile of a container does.
fn refuse_rings(errno: u32) {
    let statement = |code: u32, jump: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: jump, k };
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_io_uring_setup as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (mode, all) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the filter lives during the call, and `len` is its length.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, all, &raw const filter) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Mounts, in a process that the test below starts. As a test it does nothing.
#[test]
fn process_that_is_refused() {
    let Some(errno) = std::env::var(ERRNO).ok().and_then(|number| number.parse().ok()) else { return };
    let at = std::env::var_os(AT).unwrap();
    let at = Path::new(&at);
    refuse_rings(errno);
    let mounted = lightfoot_fuse::mount(&ram(), at, &long()).unwrap();
    let reason = mounted.transport_kind().fallback().expect("there is no ring").clone();
    fs::write(at.join("f"), b"x").unwrap();
    assert_eq!(NoRing::of_this_process(), Some(reason.clone()), "as the command's doctor finds");
    mounted.unmount().unwrap();
    drop(mounted);
    let options = MountOptions { uring: Uring::Required, ..long() };
    match lightfoot_fuse::mount(&ram(), at, &options) {
        Err(MountError::NoRing { reason: refused, .. }) => assert_eq!(refused, reason),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(at).unwrap().count(), 0, "nothing is mounted");
    println!("reason: {}: {reason}", reason.name());
}

#[test]
fn each_refusal_of_the_system_is_a_reason_and_the_mount_works() {
    if !is_over_ring() || Mount::new(&ram(), &long()).is_none() {
        return;
    }
    let (at, disabled) = (new_dir("refused"), std::env::temp_dir().join(format!("disabled-{}", std::process::id())));
    fs::write(&disabled, "2\n").unwrap();
    // In a mount namespace the process sees another value of the sysctl.
    let hide = format!("mount --bind {} /proc/sys/kernel/io_uring_disabled; exec \"$@\"", disabled.display());
    for (errno, is_disabled, name) in [
        (libc::EPERM, false, "filtered"),
        (libc::ENOSYS, false, "filtered"),
        (libc::EPERM, true, "disabled"),
        (libc::ENOMEM, false, "no_memory"),
        (libc::EMFILE, false, "failed"),
    ] {
        let mut command = Command::new(if is_disabled { "unshare" } else { "env" });
        if is_disabled {
            command.args(["--mount", "sh", "-ec", &hide, "sh"]);
        }
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "fallbacks::process_that_is_refused"]);
        let output = command.env(ERRNO, errno.to_string()).env(AT, &at).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let is_as_expected = output.status.success() && printed.contains(&format!("reason: {name}: "));
        assert!(is_as_expected, "{errno} {name}: {printed}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    fs::remove_file(disabled).unwrap();
    fs::remove_dir(at).unwrap();
}
