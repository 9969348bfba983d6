//! Mounts in the kernel: behaviour that a session alone cannot show. Prints SKIPPED without root or `/dev/fuse`.
//!
//! A separate program: it runs all its tests a second time over io_uring, some of them empty the kernel's caches, and some
//! run processes that have copies of all mounts.

mod births;
mod carriers;
mod close_errors;
mod copies;
mod durable;
mod fallbacks;
mod handles;
mod inode_flags;
mod interrupts;
mod labels;
mod limits;
mod listed_inodes;
mod lock_waits;
mod no_open;
mod panics;
mod requests;
#[path = "../support/mod.rs"]
mod support;
mod timeouts;
mod unnamed;
mod users;

use lightfoot_fuse::{MountOptions, Op, SessionOptions, Ttls};
use prim::clock::monotonic_ns;
use ramfs::RamFs;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use support::{Mount, wait_for};
use testkit::{Call, Gate, Store};
use vfs::{Attr, NewInode, Vfs};

fn ram() -> Vfs {
    Vfs::new(RamFs::new())
}

fn session() -> SessionOptions {
    SessionOptions { ttls: Ttls::LONG, ..SessionOptions::default() }
}

fn long() -> MountOptions {
    MountOptions { session: session(), ..MountOptions::default() }
}

#[test]
fn all_of_these_over_io_uring() {
    support::again_over_ring("", "all_of_these_over_io_uring");
}

#[test]
fn the_kernel_sees_files_and_links_as_they_are() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    fs::create_dir(mount.path("dir")).unwrap();
    fs::write(mount.path("dir/file"), b"contents").unwrap();
    fs::hard_link(mount.path("dir/file"), mount.path("again")).unwrap();
    std::os::unix::fs::symlink("dir/file", mount.path("link")).unwrap();
    assert_eq!(fs::read(mount.path("link")).unwrap(), b"contents");
    let (one, other) = (fs::metadata(mount.path("dir/file")).unwrap(), fs::metadata(mount.path("again")).unwrap());
    assert_eq!((one.ino(), one.nlink(), one.dev()), (other.ino(), 2, other.dev()));
    let seen = vfs.context().attr(vfs::Base::CWD, b"/dir/file", false).unwrap();
    assert_eq!((one.ino(), one.size(), one.mode()), (seen.ino, seen.size, seen.mode));
    fs::rename(mount.path("again"), mount.path("dir/other")).unwrap();
    let mut names: Vec<_> = fs::read_dir(mount.path("dir")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "other"]);
}

#[test]
fn a_file_that_lost_a_name_during_a_listing_of_another_directory_can_be_linked() {
    const ROUNDS: usize = 1500;
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    ["a", "b"].iter().for_each(|dir| fs::create_dir(mount.path(dir)).unwrap());
    let (one, other) = (mount.path("a/f"), mount.path("b/f"));
    fs::write(&other, b"x").unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                // Another listing each time, so that the kernel does not have it.
                fs::write(mount.path("b/new"), b"").unwrap();
                assert!(fs::read_dir(mount.path("b")).unwrap().count() >= 2);
                fs::remove_file(mount.path("b/new")).unwrap();
                assert!(fs::read_dir(mount.path("b")).unwrap().count() >= 1);
            }
        });
        let rounds = (0..ROUNDS).try_for_each(|_| {
            fs::hard_link(&other, &one)?;
            fs::remove_file(&one)
        });
        is_done.store(true, Relaxed);
        rounds.unwrap();
    });
}

#[test]
fn a_number_is_the_same_before_and_after_the_kernel_forgot_it() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    let names: Vec<PathBuf> = (0..50).map(|number| mount.path(&format!("f{number}"))).collect();
    names.iter().for_each(|name| fs::write(name, b"x").unwrap());
    let numbers = |names: &[PathBuf]| names.iter().map(|name| fs::metadata(name).unwrap().ino()).collect::<Vec<_>>();
    let before = numbers(&names);
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    assert_eq!(numbers(&names), before);
}

#[test]
fn a_file_lives_on_without_a_name_and_grows_holes() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    let mut options = fs::File::options();
    let mut file = options.read(true).write(true).create(true).truncate(true).open(mount.path("f")).unwrap();
    file.write_all(b"one").unwrap();
    fs::remove_file(mount.path("f")).unwrap();
    file.write_all_at(b"two", 1 << 20).unwrap();
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.len(), &text[..3], &text[1 << 20..]), ((1 << 20) + 3, "one", "two"));
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    assert!(fs::metadata(mount.path("f")).is_err());
    drop(file);
    let session = mount.mounted().session();
    wait_for("the handle is released", || session.open_handles() == 0);
}

#[test]
fn a_listing_of_many_names_has_each_once() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    for number in 0..3000 {
        fs::write(mount.path(&format!("{number}")), b"").unwrap();
    }
    let mut numbers: Vec<u32> = fs::read_dir(&mount.at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
}

#[test]
fn the_kernel_drops_names_when_it_has_too_many() {
    let vfs = ram();
    let options = MountOptions { session: SessionOptions { max_nodes: 500, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&vfs, &options) else { return };
    let session = mount.mounted().session();
    let mut most = 0;
    for number in 0..5000 {
        fs::write(mount.path(&format!("{number}")), b"").unwrap();
        most = most.max(session.known_nodes());
    }
    println!("at most {most} of 5000 names were known");
    // Each lookup makes the session ask the kernel to drop some.
    let mut number = 0;
    wait_for("the kernel lets go", || {
        number += 1;
        let _ = fs::metadata(mount.path(&format!("{}", number % 5000)));
        session.known_nodes() <= 600
    });
    assert_eq!(fs::read_dir(&mount.at).unwrap().count(), 5000, "nothing is lost");
}

#[test]
fn an_unmount_with_a_file_open_ends_the_mount_for_all_others() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &long()) else { return };
    let file = fs::File::create(mount.path("f")).unwrap();
    mount.mounted().unmount().unwrap();
    assert!(fs::metadata(mount.path("f")).is_err(), "the directory below is seen");
    drop(file);
    wait_for("the server ends", || mount.mounted().is_over());
}

#[test]
fn credentials_and_umask_are_the_callers() {
    let vfs = ram();
    let Some(mount) = Mount::new(&vfs, &MountOptions { allow_other: true, ..long() }) else { return };
    let run = |script: &str| {
        let mut command = Command::new("setpriv");
        let command = command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script]);
        command.current_dir(&mount.at).output().unwrap().status.success()
    };
    assert!(!run("touch refused"), "the root directory is root's");
    fs::create_dir(mount.path("open")).unwrap();
    fs::set_permissions(mount.path("open"), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(run("umask 027; touch open/made; mkdir open/dir"));
    let made = fs::metadata(mount.path("open/made")).unwrap();
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (65534, 65534, 0o640));
    assert_eq!(fs::metadata(mount.path("open/dir")).unwrap().mode() & 0o7777, 0o750);
    fs::write(mount.path("open/roots"), b"secret").unwrap();
    fs::set_permissions(mount.path("open/roots"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!run("cat open/roots"));
    assert!(!run("rm -f open/roots"), "sticky");
}

#[test]
fn many_threads_open_a_file_with_passthrough_at_once() {
    let source = std::env::temp_dir().join(format!("lightfoot-source-{}", std::process::id()));
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("file"), b"first").unwrap();
    let vfs = Vfs::new(hostfs::HostFs::new(&source, &hostfs::HostOptions::default()).unwrap());
    let options =
        MountOptions { session: SessionOptions { passthrough: true, ..session() }, ..MountOptions::default() };
    if let Some(mount) = Mount::new(&vfs, &options) {
        let path = mount.path("file");
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..300 {
                        assert_eq!(&fs::read(&path).unwrap()[..5], b"first");
                    }
                });
            }
        });
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        file.write_all(b", second").unwrap();
        assert_eq!(file.metadata().unwrap().len(), 13);
        drop(file);
        assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().len()), (b"first, second".to_vec(), 13));
        assert_eq!(fs::read(source.join("file")).unwrap(), b"first, second");
    }
    fs::remove_dir_all(&source).unwrap();
}

#[test]
fn data_is_found_where_it_was_written() {
    let source = std::env::temp_dir().join(format!("lightfoot-data-{}", std::process::id()));
    fs::create_dir_all(&source).unwrap();
    for passthrough in [false, true] {
        let host = hostfs::HostFs::new(&source, &hostfs::HostOptions::default()).unwrap();
        let options = MountOptions { session: SessionOptions { passthrough, ..session() }, ..MountOptions::default() };
        let Some(mount) = Mount::new(&Vfs::new(host), &options) else { break };
        let mut file = fs::File::create(mount.path("file")).unwrap();
        file.write_all(b"data").unwrap();
        // Of a file that was just written, before its attributes were read; and past its end, on both sides.
        assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0)), Ok(0), "{passthrough}");
        for offset in [4, 1 << 40, u64::MAX] {
            let found = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(offset));
            assert_eq!(found, Err(rustix::io::Errno::NXIO), "{passthrough} {offset}");
        }
    }
    fs::remove_dir_all(&source).unwrap();
}

fn inode(node: u64, mode: u32) -> NewInode {
    NewInode { node, attr: Attr { ino: node, mode, nlink: 1, ..Attr::default() }, ..NewInode::default() }
}

#[test]
fn data_that_the_kernel_has_not_sent_are_found() {
    use rustix::fs::{SeekFrom::Data, SeekFrom::Hole, seek};
    let options = MountOptions { session: SessionOptions { writeback: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&ram(), &options) else { return };
    let file = fs::File::options().read(true).write(true).create(true).truncate(true).open(mount.path("f")).unwrap();
    file.write_all_at(&[1; 10], 1 << 20).unwrap();
    for file in [&file, &fs::File::open(mount.path("f")).unwrap()] {
        assert_eq!((seek(file, Data(0)), seek(file, Hole(1 << 20))), (Ok(1 << 20), Ok((1 << 20) + 10)));
    }
    file.write_all_at(&[2; 10], 0).unwrap();
    assert_eq!((seek(&file, Data(0)), seek(&file, Hole(0)), seek(&file, Data(5000))), (Ok(0), Ok(4096), Ok(1 << 20)));
    let mut all = Vec::new();
    fs::File::open(mount.path("f")).unwrap().read_to_end(&mut all).unwrap();
    assert!(all.len() == (1 << 20) + 10 && all[..10] == [2; 10] && all[1 << 20..] == [1; 10]);
}

#[test]
fn the_time_of_a_request_includes_its_work() {
    let (store, gate, stopped_ns) = (Store::with_paths(&["f"]), Gate::default(), Arc::new(AtomicU64::new(0)));
    let options = MountOptions { session: SessionOptions { locks: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&store.tree(), &options) else { return };
    let path = mount.path("f");
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    let lock = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
    let requests: [(Op, &(dyn Fn() + Sync)); 3] = [
        (Op::Setattr, &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap()),
        // The session opens the file to test locks.
        (Op::Getlk, &|| assert!(rustix::process::fcntl_getlk(&file, &lock).unwrap().is_none())),
        (Op::Open, &|| drop(fs::File::open(&path).unwrap())),
    ];
    let (at_gate, stopped) = (gate.clone(), stopped_ns.clone());
    store.before(move |call| {
        if matches!(call, Call::SetAttr { .. } | Call::Open { .. }) {
            let began_ns = monotonic_ns();
            at_gate.pass();
            stopped.store((monotonic_ns() - began_ns) as u64, Relaxed);
        }
        Ok(())
    });
    let metrics = mount.mounted().session().metrics();
    for (op, request) in requests {
        let before = metrics.snapshot();
        gate.close();
        std::thread::scope(|s| {
            s.spawn(request);
            gate.wait_for(1);
            // Each of these is a request, so that much more time passes than a reply takes.
            (0..100).for_each(|_| _ = rustix::fs::statfs(&mount.at));
            gate.open();
        });
        let recorded = || metrics.snapshot().since(&before).ops.into_iter().find(|stats| stats.name == op.name());
        wait_for("the request is recorded", || recorded().is_some());
        let (stats, stopped_ns) = (recorded().unwrap(), stopped_ns.load(Relaxed));
        assert_eq!(stats.count, 1, "{op:?}");
        assert!(stats.sum_ns >= stopped_ns, "{op:?}: {} ns of at least {stopped_ns} ns", stats.sum_ns);
    }
}
