//! Users other than root on a mount of a host directory, which the host changes too.

use crate::support::{HostMount, Mount};
use crate::{long, session};
use hostfs::{HostOptions, Revalidate};
use lightfoot_fuse::{MountOptions, SessionOptions};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The tree caches as long as the kernel.
const HOUR: Revalidate = Revalidate::Ttl(Duration::from_secs(3600));

/// The user and group.
const USER: u32 = 1001;

/// A directory of the host, mounted for all users.
struct Mirror(HostMount);

impl Mirror {
    /// `None`, with the line SKIPPED, if this process cannot mount.
    fn new(options: &MountOptions, policy: Revalidate) -> Option<Self> {
        let options = MountOptions { allow_other: true, ..options.clone() };
        let mount = HostMount::new(&HostOptions { policy, ..HostOptions::default() }, &options)?;
        fs::set_permissions(&mount.source, fs::Permissions::from_mode(0o777)).unwrap();
        Some(Self(mount))
    }

    /// Whether the user can do this in the mount, by the shell.
    fn user(&self, script: &str) -> bool {
        user_in(&self.0.at, script)
    }

    /// The mode on the host.
    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.0.source.join(name)).unwrap().mode() & 0o7777
    }

    /// Makes a file on the host.
    fn make(&self, name: &str, contents: &str, (uid, mode): (u32, u32)) {
        let path = self.0.source.join(name);
        fs::write(&path, contents).unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn contents(&self, name: &str) -> String {
        fs::read_to_string(self.0.source.join(name)).unwrap()
    }
}

/// Whether the user can do this in `dir`, by the shell.
fn user_in(dir: &Path, script: &str) -> bool {
    let mut command = Command::new("setpriv");
    let ids = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()];
    let output = command.args(ids).args(["sh", "-c", script]).current_dir(dir).output().unwrap();
    println!("{script}: {}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

#[test]
fn set_id_bits_are_cleared_as_on_the_host() {
    let session = session();
    let passthrough = SessionOptions { passthrough: true, ..session.clone() };
    let writeback = SessionOptions { writeback: true, ..session.clone() };
    let sessions = [("default", session), ("passthrough", passthrough), ("writeback", writeback)];
    for (label, session) in sessions {
        for policy in [HOUR, Revalidate::Exclusive] {
            let options = MountOptions { session: session.clone(), ..long() };
            let Some(mirror) = Mirror::new(&options, policy) else { return };
            println!("{label} {policy:?}");
            check_set_ids(&mirror, label);
        }
    }
}

fn check_set_ids(mirror: &Mirror, label: &str) {
    let scripts = [
        "echo x >> f",
        "echo x > f",
        "truncate -s 3 f",
        "fallocate -l 10000 f",
        "fallocate -l 2 f",
        "dd if=/dev/zero of=f bs=4096 count=1 conv=notrunc,fsync status=none",
        // The user writes to what root has opened.
        "echo x >&3",
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        // The last: the group may not execute the file, so its members would keep the bit.
        for (mode, gid) in [(0o4777, 0), (0o6777, USER), (0o2777, 0), (0o6666, 0)] {
            for is_known in [true, false] {
                let is_ours = script == "echo x >&3" || label == "passthrough" && !is_known;
                if mode & 0o010 == 0 && is_ours {
                    // The groups of this process decide.
                    continue;
                }
                let (name, plain) = (format!("m{number}-{mode:o}-{is_known}"), "plain");
                for name in [&name, plain] {
                    mirror.make(name, "secret", (0, 0o777));
                    chown(mirror.0.source.join(name), Some(0), Some(gid)).unwrap();
                }
                let mounted = &mirror.0.at;
                if !is_known {
                    fs::metadata(mounted.join(&name)).unwrap();
                }
                // In the latter case behind the caches.
                for name in [&name, plain] {
                    fs::set_permissions(mirror.0.source.join(name), fs::Permissions::from_mode(mode)).unwrap();
                }
                let run = |dir: &Path, name: &str| {
                    let script = script.replace(" f", &format!(" {name}")).replace("of=f", &format!("of={name}"));
                    roots_in(dir, name, &script)
                };
                assert!(run(&mirror.0.source, plain), "{script} on the host");
                let what = format!("{label}: {script}, {mode:o}, known: {is_known}");
                assert!(run(mounted, &name), "{what}");
                fs::File::open(mounted.join(&name)).unwrap().sync_all().unwrap();
                assert_eq!(format!("{:o}", mirror.mode(&name)), format!("{:o}", mirror.mode(plain)), "{what}");
                // Only the mode, which the kernel has cached.
                let shown = statx(CWD, mounted.join(&name), AtFlags::empty(), StatxFlags::MODE).unwrap().stx_mode;
                let shown = u32::from(shown) & 0o7777;
                assert!(!is_known || shown == mirror.mode(&name), "{what}: the kernel has {shown:o}");
                fs::remove_file(mirror.0.source.join(plain)).unwrap();
            }
        }
    }
}

/// Whether the user can do this in `dir`, with the file `name` open for appending by root as descriptor 3.
fn roots_in(dir: &Path, name: &str, script: &str) -> bool {
    let user = format!("exec setpriv --reuid={USER} --regid={USER} --clear-groups sh -c '{script}'");
    let redirect = if script.contains(">&3") { format!("exec 3>>{name}; ") } else { String::new() };
    let output = Command::new("sh").arg("-c").arg(format!("{redirect}{user}")).current_dir(dir).output().unwrap();
    println!("{script}: {}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

#[test]
fn a_mount_of_root_has_nosuid_and_nodev_unless_requested() {
    let vfs = crate::ram();
    for (options, flags) in [(long(), true), (MountOptions { nosuid: false, nodev: false, ..long() }, false)] {
        let Some(mount) = Mount::new(&vfs, &options) else { return };
        let flagged = rustix::fs::statvfs(&mount.at).unwrap().f_flag;
        let has = [rustix::fs::StatVfsMountFlags::NOSUID, rustix::fs::StatVfsMountFlags::NODEV]
            .map(|flag| flagged.contains(flag));
        assert_eq!(has, [flags; 2]);
    }
}

#[test]
fn a_file_that_appeared_behind_a_cached_negative_is_checked() {
    for policy in [HOUR, Revalidate::Always] {
        let Some(mirror) = Mirror::new(&long(), policy) else { return };
        check_appeared(&mirror);
    }
}

fn check_appeared(mirror: &Mirror) {
    // The owner and mode of the file that appears, what the user does, whether that works, and the contents after it.
    let cases = [
        ((0, 0o600), "echo mine >> f", false, "secret\n"),
        ((0, 0o600), "echo mine > f", false, "secret\n"),
        ((0, 0o600), "echo mine 1<> f >&1", false, "secret\n"),
        ((0, 0o644), "echo mine >> f", false, "secret\n"),
        ((0, 0o666), "echo mine >> f", true, "secret\nmine\n"),
        ((USER, 0o600), "echo mine >> f", true, "secret\nmine\n"),
        ((USER, 0o600), "echo mine > f", true, "mine\n"),
        ((USER, 0o600), "set -C; echo mine > f", false, "secret\n"),
        ((USER, 0o400), "echo mine > f", false, "secret\n"),
        ((USER, 0o600), "mkdir f", false, "secret\n"),
        ((USER, 0o600), "mkfifo f", false, "secret\n"),
        ((USER, 0o600), "ln -s x f", false, "secret\n"),
        ((USER, 0o600), "touch other; ln other f", false, "secret\n"),
    ];
    for (number, (file, script, works, contents)) in cases.into_iter().enumerate() {
        let name = format!("f{number}");
        let script = script.replace(" f", &format!(" {name}"));
        assert!(mirror.user(&format!("! test -e {name}")), "{name}: the kernel caches that it does not exist");
        mirror.make(&name, "secret\n", file);
        assert_eq!(mirror.user(&script), works, "{file:?}: {script}");
        assert_eq!(mirror.contents(&name), contents, "{file:?}: {script}");
        let after = fs::metadata(mirror.0.source.join(&name)).unwrap();
        assert_eq!((after.uid(), after.mode() & 0o7777), file, "{script}");
    }
}
