//! Users other than root on a mount of a host directory, which the host changes too.

use crate::{Mount, long};
use hostfs::{HostFs, HostOptions, Revalidate};
use lightfoot_fuse::MountOptions;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use vfs::Vfs;

/// The tree caches as long as the kernel.
const HOUR: Revalidate = Revalidate::Ttl(Duration::from_secs(3600));

/// The user and group.
const USER: u32 = 1001;

/// A directory of the host, mounted for all users. A drop unmounts it and removes both.
struct Mirror {
    mount: Option<Mount>,
    source: PathBuf,
}

impl Mirror {
    /// `None`, with the line SKIPPED, if this process cannot mount.
    fn new(options: &MountOptions, policy: Revalidate) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let source = std::env::temp_dir().join(format!("lightfoot-mirror-{}-{number}", std::process::id()));
        fs::create_dir(&source).unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
        let vfs = Vfs::new(HostFs::new(&source, &HostOptions { policy, ..HostOptions::default() }).unwrap());
        let options = MountOptions { allow_other: true, ..options.clone() };
        let mirror = Self { mount: Mount::new(&vfs, &options), source };
        mirror.mount.is_some().then_some(mirror)
    }

    /// Whether the user can do this in the mount, by the shell.
    fn user(&self, script: &str) -> bool {
        let mut command = Command::new("setpriv");
        let ids = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()];
        let command = command.args(ids).args(["sh", "-c", script]).current_dir(&self.mount.as_ref().unwrap().at);
        let output = command.output().unwrap();
        println!("{script}: {}", String::from_utf8_lossy(&output.stderr));
        output.status.success()
    }

    /// Makes a file on the host.
    fn make(&self, name: &str, contents: &str, (uid, mode): (u32, u32)) {
        let path = self.source.join(name);
        fs::write(&path, contents).unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn contents(&self, name: &str) -> String {
        fs::read_to_string(self.source.join(name)).unwrap()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        drop(self.mount.take());
        let _ = fs::remove_dir_all(&self.source);
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
        let after = fs::metadata(mirror.source.join(&name)).unwrap();
        assert_eq!((after.uid(), after.mode() & 0o7777), file, "{script}");
    }
}
