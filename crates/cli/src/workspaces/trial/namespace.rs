//! A mount namespace of this process, and for other users than root a user namespace in which the user has the same numbers.
//!
//! # Where it comes from
//! `unshare(1)`, `user_namespaces(7)`.

use super::TrialError;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use std::fs;
use std::io;

/// Files with switches that forbid user namespaces, the value that forbids, and the cure.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// Moves this process, which must have one thread, to a mount namespace whose mounts no other process sees. Mounts and unmounts
/// of others still arrive, so the namespace keeps no file system busy that others unmount.
///
/// # Errors
/// If the kernel, or its administrator, does not let this user.
pub(super) fn enter() -> Result<(), TrialError> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    match unshare(CloneFlags::CLONE_NEWNS) {
        Err(Errno::EPERM) => {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(|errno| refused(errno.into()))?;
            let maps = [
                ("setgroups", "deny".into()),
                ("uid_map", format!("{uid} {uid} 1")),
                ("gid_map", format!("{gid} {gid} 1")),
            ];
            maps.iter().try_for_each(|(file, text)| fs::write(format!("/proc/self/{file}"), text)).map_err(refused)?;
        }
        entered => entered.map_err(|errno| refused(errno.into()))?,
    }
    let alone = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", alone).map_err(|errno| refused(errno.into()))
}

/// Returns the error of a namespace, with its cure.
pub(super) fn refused(error: io::Error) -> TrialError {
    let cure = cure(|file| fs::read_to_string(file).ok());
    TrialError::Namespace { what: "no user namespace to mount in", reason: error.into(), cure }
}

fn cure(read: impl Fn(&str) -> Option<String>) -> String {
    let is_set = |(file, forbids, _): &&(&str, &str, &str)| read(file).is_some_and(|value| value.trim() == *forbids);
    match SWITCHES.iter().find(is_set) {
        Some((_, _, command)) => format!("run `{command}` as root, or run this as root"),
        None => "run this as root; a container needs a security profile that allows user namespaces and mounts".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cure_names_the_switch_that_forbids() {
        for (file, forbids, command) in SWITCHES {
            let of = |value: &str| cure(|name| Some(if name == file { value } else { "5" }.into()));
            assert!(of(&format!("{forbids}\n")).contains(command), "{file}");
            assert!(of("5\n").starts_with("run this as root"), "{file}");
        }
        assert!(cure(|_| None).starts_with("run this as root"));
    }
}
