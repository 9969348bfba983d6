//! Names that the host creates while the caches of the tree and of the kernel have that they do not exist.

use crate::session::kernel::{DIR, Kernel, PLAIN, RDWR, SUPER, USER, WRONLY};
use hostfs::{HostFs, HostOptions, Revalidate};
use lightfoot_fuse::{Checks, NameIn, ROOT_NODE, SessionOptions};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use vfs::{Errno, OpenFlags};

const EXCL: u32 = OpenFlags::EXCL.bits();
const TRUNC: u32 = OpenFlags::TRUNC.bits();

/// With this, the tree's cache denies the name too.
const HOUR: Revalidate = Revalidate::Ttl(Duration::from_secs(3600));

/// A directory of the host; a drop removes it.
struct Source(PathBuf);

impl Source {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let at = std::env::temp_dir().join(format!("lightfoot-appeared-{}-{number}", std::process::id()));
        fs::create_dir(&at).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o777)).unwrap();
        Self(at)
    }

    fn kernel(&self, checks: Checks, policy: Revalidate) -> Kernel {
        let fs = HostFs::new(&self.0, &HostOptions { policy, ..HostOptions::default() }).unwrap();
        Kernel::over(fs, SessionOptions { checks, ..SessionOptions::default() })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn create_never_opens_a_file_that_the_kernel_has_not_looked_up() {
    let checks_and_policies =
        [(Checks::Kernel, HOUR), (Checks::Kernel, Revalidate::Always), (Checks::Own, Revalidate::Always)];
    for (checks, policy) in checks_and_policies {
        for caller in [SUPER, USER] {
            for flags in [RDWR, WRONLY | TRUNC, RDWR | EXCL] {
                let source = Source::new();
                let kernel = source.kernel(checks, policy);
                let label = format!("{checks:?} {policy:?} {:?} {flags:o}", caller.who);
                assert_eq!(kernel.lookup(&caller, ROOT_NODE, b"f").map(drop), Err(Errno::ENOENT), "{label}");
                fs::write(source.0.join("f"), b"secret").unwrap();
                fs::set_permissions(source.0.join("f"), fs::Permissions::from_mode(0o600)).unwrap();
                // The kernel looks it up again after ESTALE, and checks what it finds.
                let expected = if flags & EXCL != 0 { Errno::EEXIST } else { Errno::ESTALE };
                let made = kernel.create(&caller, ROOT_NODE, b"f", PLAIN, flags);
                assert_eq!(made.map(drop), Err(expected), "{label}");
                assert_eq!(fs::read(source.0.join("f")).unwrap(), b"secret", "{label}");
                let found = kernel.lookup(&caller, ROOT_NODE, b"f").map(|entry| entry.attr.mode & 0o777);
                assert_eq!(found, Ok(0o600), "{label}: the tree has learned of it");
                assert_eq!(kernel.open_handles(), 0, "{label}");
            }
        }
    }
}

#[test]
fn a_name_that_appeared_is_found_after_eexist() {
    type Ask = fn(&Kernel, u64) -> Result<(), Errno>;
    let asks: [(&str, Ask); 4] = [
        ("mknod", |k, _| k.mknod(&SUPER, ROOT_NODE, b"f", PLAIN, 0).map(drop)),
        ("mkdir", |k, _| k.mkdir(&SUPER, ROOT_NODE, b"f", DIR).map(drop)),
        ("symlink", |k, _| k.symlink(&SUPER, ROOT_NODE, b"f", b"x", &[]).map(drop)),
        ("link", |k, other| k.link(&SUPER, other, ROOT_NODE, b"f").map(drop)),
    ];
    for (what, ask) in asks {
        let source = Source::new();
        let kernel = source.kernel(Checks::Kernel, HOUR);
        let other = kernel.file("other").node;
        assert_eq!(kernel.look("f").map(drop), Err(Errno::ENOENT), "{what}");
        fs::write(source.0.join("f"), b"secret").unwrap();
        assert_eq!(ask(&kernel, other), Err(Errno::EEXIST), "{what}");
        assert_eq!(kernel.look("f").map(|entry| entry.attr.size), Ok(6), "{what}");
        assert_eq!(fs::read(source.0.join("f")).unwrap(), b"secret", "{what}");
    }
}

#[test]
fn a_rename_without_replacement_leaves_a_name_that_appeared() {
    const NOREPLACE: u32 = 1;
    let source = Source::new();
    let kernel = source.kernel(Checks::Kernel, HOUR);
    kernel.file("other");
    assert_eq!(kernel.look("f").map(drop), Err(Errno::ENOENT));
    fs::write(source.0.join("f"), b"secret").unwrap();
    let (from, to) = (NameIn::new(ROOT_NODE, b"other"), NameIn::new(ROOT_NODE, b"f"));
    assert_eq!(kernel.rename(&SUPER, from, to, NOREPLACE), Err(Errno::EEXIST));
    assert_eq!(fs::read(source.0.join("f")).unwrap(), b"secret");
}
