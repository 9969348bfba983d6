//! What a mount of a file system in memory takes.

use lightfoot_ramfs::RamFs;
use vfs::{Base, MountFlags, UnmountFlags, Vfs};

/// A figure of `/proc/self/status` in bytes.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok()).expect("a number of kB") * 1024
}

#[test]
fn a_mount_takes_less_than_40_kib_and_its_addresses_once() {
    const MOUNTS: usize = 1_000;
    // It measures its process.
    if testkit::ran_alone("many_mounts::a_mount_takes_less_than_40_kib_and_its_addresses_once") {
        return;
    }
    let vfs = Vfs::new(RamFs::new());
    let context = vfs.context();
    for number in 0..MOUNTS {
        context.mkdir(Base::CWD, format!("/{number}").as_bytes(), 0o755).expect("a new directory");
    }
    let (resident, size) = (status("VmRSS:"), status("VmSize:"));
    for number in 0..MOUNTS {
        let path = format!("/{number}");
        context.mount(RamFs::new(), Base::CWD, path.as_bytes(), MountFlags::empty()).expect("a directory");
    }
    let (resident, size) = (status("VmRSS:") - resident, status("VmSize:") - size);
    assert!(resident / MOUNTS < 40 << 10, "{} bytes a mount", resident / MOUNTS);
    assert!(size / MOUNTS < 5 << 19, "{} addresses a mount", size / MOUNTS);
    for number in 0..MOUNTS {
        context.unmount(Base::CWD, format!("/{number}").as_bytes(), UnmountFlags::empty()).expect("a mount");
    }
    vfs.barrier();
}
