//! How a mount in the foreground ends whose connection was aborted.

use crate::mounting::fixture::Fixture;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Aborts the connection of `m` by fusectl, as an administrator does.
fn abort(fixture: &Fixture) {
    let control = fixture.at("control");
    fs::create_dir(&control).expect("a directory");
    mount("none", &control, "fusectl", MountFlags::empty(), None).expect("root may mount");
    let minor = rustix::fs::minor(fs::metadata(fixture.at("m")).expect("it is mounted").dev());
    let aborted = fs::write(control.join(minor.to_string()).join("abort"), "1");
    unmount(&control, UnmountFlags::DETACH).expect("unmounted");
    aborted.expect("aborted");
}

#[test]
fn an_abort_by_somebody_is_an_error_of_the_command_and_nothing_stays_mounted() {
    for carrier in ["no_uring", "uring"] {
        let Some(fixture) = Fixture::new() else { return };
        let offer = fs::read_to_string("/sys/module/fuse/parameters/enable_uring").unwrap_or_default();
        if carrier == "uring" && offer.trim() != "Y" {
            return println!("SKIPPED: io_uring: the kernel does not offer it (tools/check/with-uring)");
        }
        for open in [false, true] {
            let mount = fixture.mount(&["ram:", "m", "-o", carrier]);
            fs::write(fixture.at("m/f"), "x").expect("a file");
            let _open = open.then(|| fs::File::open(fixture.at("m/f")).expect("it can be opened"));
            abort(&fixture);
            let (status, log) = mount.end();
            assert_eq!(status, Some(1), "{carrier}: {log}");
            assert!(log.contains("the connection to the kernel failed: it was aborted"), "{carrier}: {log}");
            assert!(!fixture.is_mounted(), "{carrier}");
            fs::remove_dir(fixture.at("control")).expect("it is empty");
        }
    }
}

#[test]
fn a_forced_unmount_is_an_unmount_unless_the_mount_is_in_use() {
    let Some(fixture) = Fixture::new() else { return };
    for (is_open, expected) in [(false, 0), (true, 1)] {
        let mount = fixture.mount(&["ram:", "m"]);
        // Not a file of this process: each process that another test starts has it open, too, until it runs its program, and the
        // mount is in use for as long.
        let written = Command::new("sh").arg("-c").arg("echo x > m/f").current_dir(fixture.at(".")).status();
        assert!(written.expect("a shell runs").success());
        let _open = is_open.then(|| fs::File::open(fixture.at("m/f")).expect("it can be opened"));
        let unmounted = unmount(fixture.at("m"), UnmountFlags::FORCE);
        assert_eq!(unmounted, if is_open { Err(Errno::BUSY) } else { Ok(()) });
        let (status, log) = mount.end();
        assert!(status == Some(expected) && !fixture.is_mounted(), "{is_open}, {status:?}: {log}");
    }
}
