//! Mounts for the tests that need a kernel.

#![allow(dead_code, reason = "each test target uses a part")]

use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{MountError, MountOptions, Mounted, NoRing, Uring};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vfs::Vfs;

/// The carrier of the mounts of this process: with [`RING`] io_uring, else `/dev/fuse`.
const CARRIER: &str = "LIGHTFOOT_TEST_CARRIER";
const RING: &str = "io_uring";

/// A mount on a new directory; a drop removes both.
pub(crate) struct Mount {
    mounted: Option<Mounted>,
    pub(crate) at: PathBuf,
}

impl Mount {
    /// `None`, with the line SKIPPED, if this process cannot mount, or not over the [`CARRIER`].
    pub(crate) fn new(vfs: &Vfs, options: &MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let at = new_dir("mount");
        let uring = if is_over_ring() { Uring::Required } else { Uring::Never };
        match lightfoot_fuse::mount(vfs, &at, &MountOptions { uring, ..options.clone() }) {
            Err(MountError::NoRing { reason: reason @ NoRing::NotOffered, .. }) => {
                println!("SKIPPED: io_uring: {reason}");
                let _ = fs::remove_dir(&at);
                None
            }
            mounted => Some(Self { mounted: Some(mounted.expect("root may mount")), at }),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    pub(crate) fn mounted(&self) -> &Mounted {
        self.mounted.as_ref().expect("until it is dropped")
    }

    /// The mount without its directory.
    pub(crate) fn take(&mut self) -> Mounted {
        self.mounted.take().expect("until it is dropped")
    }

    /// Unmounts.
    pub(crate) fn end(&mut self) {
        drop(self.mounted.take());
        let _ = fs::remove_dir(&self.at);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.end();
    }
}

/// A new directory of the host, and a mount of it; a drop removes both.
pub(crate) struct HostMount {
    mount: Mount,
    pub(crate) source: PathBuf,
}

impl HostMount {
    /// `None`, with the line SKIPPED, if this process cannot mount.
    pub(crate) fn new(host: &HostOptions, options: &MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let source = new_dir("source");
        let vfs = Vfs::new(HostFs::new(&source, host).expect("a new directory"));
        Mount::new(&vfs, options).map(|mount| Self { mount, source })
    }
}

impl HostMount {
    /// The path of `name` on the host.
    pub(crate) fn host(&self, name: &str) -> PathBuf {
        self.source.join(name)
    }
}

impl Deref for HostMount {
    type Target = Mount;

    fn deref(&self) -> &Mount {
        &self.mount
    }
}

impl Drop for HostMount {
    fn drop(&mut self) {
        self.mount.end();
        let _ = fs::remove_dir_all(&self.source);
    }
}

pub(crate) fn is_over_ring() -> bool {
    std::env::var_os(CARRIER).is_some_and(|carrier| carrier == RING)
}

/// Runs the tests of a module of this program again, with mounts over io_uring. `prefix`: that of their names. `this`: the name of
/// the test that calls it.
pub(crate) fn again_over_ring(prefix: &str, this: &str) {
    if is_over_ring() || !can_mount() {
        return;
    }
    let offer = fs::read_to_string("/sys/module/fuse/parameters/enable_uring").unwrap_or_default();
    let program = std::env::current_exe().expect("this program");
    let all = Command::new(&program).args([prefix, "--list", "--format=terse"]).output().expect("it runs").stdout;
    let rows = String::from_utf8_lossy(&all).lines().filter(|line| line.ends_with(": test")).count() - 1;
    if offer.trim() != "Y" {
        return println!("SKIPPED: {rows} rows over io_uring: the kernel does not offer it (tools/check/with-uring)");
    }
    let ran = Command::new(program).args([prefix, "--skip", this]).env(CARRIER, RING).output().expect("it runs");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "over io_uring:\n{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
    println!("{rows} rows over io_uring");
}

fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("SKIPPED: mounting needs root and /dev/fuse");
    }
    can
}

pub(crate) fn new_dir(what: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let at = std::env::temp_dir().join(format!("lightfoot-{what}-{}-{number}", std::process::id()));
    fs::create_dir(&at).expect("a new directory");
    at
}

/// Waits, with a limit, until another thread or process makes `is_so` true.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let came = (0..3_000_000).any(|_| {
        std::thread::yield_now();
        is_so()
    });
    assert!(came, "{what}");
}
