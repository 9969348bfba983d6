//! Mounts for the tests that need a kernel.

#![allow(dead_code, reason = "each test target uses a part")]

use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{MountOptions, Mounted};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vfs::Vfs;

/// A mount on a new directory; a drop removes both.
pub(crate) struct Mount {
    mounted: Option<Mounted>,
    pub(crate) at: PathBuf,
}

impl Mount {
    /// `None`, with the line SKIPPED, if this process cannot mount.
    pub(crate) fn new(vfs: &Vfs, options: &MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let at = new_dir("mount");
        let mounted = lightfoot_fuse::mount(vfs, &at, options).expect("root may mount");
        Some(Self { mounted: Some(mounted), at })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    pub(crate) fn mounted(&self) -> &Mounted {
        self.mounted.as_ref().expect("until it is dropped")
    }

    /// Unmounts.
    fn end(&mut self) {
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

fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("SKIPPED: mounting needs root and /dev/fuse");
    }
    can
}

fn new_dir(what: &str) -> PathBuf {
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
