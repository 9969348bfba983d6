//! A watched host directory in the kernel: which of the host's changes it learns of, and what its notices leave alone. Prints
//! SKIPPED without root or `/dev/fuse`.

use crate::support::{HostMount, wait_for};
use hostfs::{HostOptions, Revalidate};
use lightfoot_fuse::{MountOptions, SessionOptions, Ttls};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::mount::{MountFlags, UnmountFlags, mount as mount_tmpfs, unmount};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use vfs::Base;

/// A directory, and a mount of it whose caches keep for a day what the directory's events do not invalidate.
fn watched(max_nodes: usize) -> Option<HostMount> {
    let policy = Revalidate::Ttl(Duration::from_millis(100));
    let ttls = Ttls { negative: Duration::from_millis(100), ..Ttls::LONG };
    let session = SessionOptions { ttls, reports_changes: true, max_nodes, ..SessionOptions::default() };
    let options = MountOptions { session, ..MountOptions::default() };
    HostMount::new(&HostOptions { policy, watch: true, ..HostOptions::default() }, &options)
}

/// Waits until the kernel has the notices of all changes of the host so far.
fn wait_for_notices(mount: &HostMount) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let witness = format!("witness{}", NUMBER.fetch_add(1, Relaxed));
    fs::write(mount.host(&witness), b"1").unwrap();
    wait_for("the witness is there", || mount.path(&witness).exists());
    fs::metadata(mount.path(&witness)).unwrap();
    fs::write(mount.host(&witness), b"22").unwrap();
    wait_for("its change is visible", || fs::metadata(mount.path(&witness)).unwrap().size() == 2);
    mount.mounted().session().flush_notices();
}

#[test]
fn all_of_these_over_io_uring() {
    crate::support::again_over_ring("watch::", "watch::all_of_these_over_io_uring");
}

#[test]
fn a_change_of_the_host_reaches_the_kernel_whatever_it_has_requested_before() {
    let Some(mount) = watched(1000) else { return };
    type Meanwhile = fn(&Path);
    let meanwhile: [Meanwhile; 4] = [
        |_| (),
        |path| assert!(fs::metadata(path).unwrap().is_file()),
        |path| drop(fs::File::open(path).unwrap()),
        |path| assert_ne!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0),
    ];
    for (number, meanwhile) in meanwhile.into_iter().enumerate() {
        for text in ["two\n", "one\ntwo\n"] {
            let name = format!("f{number}-{}", text.len());
            let (host, path) = (mount.host(&name), mount.path(&name));
            fs::write(&host, "one\n").unwrap();
            wait_for("it is there", || path.exists());
            assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
            fs::metadata(&path).unwrap();
            wait_for_notices(&mount);
            fs::read(&path).unwrap();
            fs::OpenOptions::new().write(true).open(&host).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
            meanwhile(&path);
            wait_for("the contents", || fs::read_to_string(&path).unwrap() == text);
            fs::set_permissions(&host, fs::Permissions::from_mode(0o640)).unwrap();
            meanwhile(&path);
            wait_for("the mode", || fs::metadata(&path).unwrap().mode() & 0o777 == 0o640);
            fs::remove_file(&host).unwrap();
            wait_for("the end of the name", || !path.exists());
        }
    }
}

/// A process whose working directory is `dir`, until this is dropped.
struct Shell(Child);

impl Shell {
    fn new(dir: &Path) -> Self {
        Self(Command::new("sleep").arg("1000").current_dir(dir).stdin(Stdio::null()).spawn().unwrap())
    }

    fn cwd(&self) -> PathBuf {
        fs::read_link(format!("/proc/{}/cwd", self.0.id())).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Changes of the host after which `d/e` and `d/file` lead to the same files as before.
fn change_around(mount: &HostMount) {
    for path in ["d", "d/e", "d/file"] {
        let host = mount.host(path);
        fs::set_permissions(&host, fs::Permissions::from_mode(0o750)).unwrap();
        let away = host.with_extension("away");
        fs::rename(&host, &away).unwrap();
        fs::rename(&away, &host).unwrap();
        wait_for_notices(mount);
    }
}

#[test]
fn notices_leave_working_directories_open_files_and_mounts_alone() {
    let Some(mount) = watched(1000) else { return };
    fs::create_dir_all(mount.host("d/e")).unwrap();
    fs::write(mount.host("d/file"), b"text").unwrap();
    let dir = mount.path("d/e");
    wait_for("it is there", || dir.exists());
    mount_tmpfs("none", &dir, "tmpfs", MountFlags::empty(), None).unwrap();
    let mounted_at = dir.metadata().unwrap().dev();
    let (shell, file) = (Shell::new(&mount.path("d")), fs::File::open(mount.path("d/file")).unwrap());
    change_around(&mount);
    let device = dir.metadata().unwrap().dev();
    let name = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file))).unwrap();
    let cwd = shell.cwd();
    let _ = unmount(&dir, UnmountFlags::DETACH);
    assert_eq!(device, mounted_at, "what was mounted there is still mounted");
    assert_eq!((name, cwd), (mount.path("d/file"), mount.path("d")));
}

#[test]
fn a_kernel_with_too_many_names_forgets_none_in_use() {
    let Some(mount) = watched(50) else { return };
    fs::create_dir_all(mount.host("d/e")).unwrap();
    (0..500).for_each(|number| fs::write(mount.host(&format!("d/f{number}")), b"").unwrap());
    wait_for("it is there", || mount.path("d/e").exists());
    let (shell, file) = (Shell::new(&mount.path("d/e")), fs::File::open(mount.path("d/f0")).unwrap());
    let session = mount.mounted().session();
    let mut most = 0;
    for round in 0..3 {
        for number in 1..500 {
            assert!(mount.path(&format!("d/f{number}")).exists(), "round {round}");
            session.flush_notices();
            most = most.max(session.known_nodes());
        }
    }
    assert!(most < 450, "{most}");
    let name = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file))).unwrap();
    assert_eq!((name, shell.cwd()), (mount.path("d/f0"), mount.path("d/e")));
}

/// The events of the files that are watched in the mount: which file, and what happened.
fn events(inotify: &OwnedFd, files: &[i32]) -> Vec<(usize, ReadFlags)> {
    let (mut buffer, mut all) = ([MaybeUninit::uninit(); 4096], Vec::new());
    let mut reader = Reader::new(inotify, &mut buffer);
    while let Ok(event) = reader.next() {
        all.extend(files.iter().position(|file| *file == event.wd()).map(|file| (file, event.events())));
    }
    all
}

#[test]
fn who_watches_a_file_in_the_mount_is_told_that_the_host_removed_it() {
    const NAMES: [&str; 5] = ["removed", "open", "linked", "moved", "dir"];
    let Some(mount) = watched(1000) else { return };
    NAMES[..4].iter().for_each(|name| fs::write(mount.host(name), b"text").unwrap());
    fs::create_dir(mount.host("dir")).unwrap();
    fs::hard_link(mount.host("linked"), mount.host("other")).unwrap();
    let inotify = init(CreateFlags::NONBLOCK).unwrap();
    wait_for("all are there", || NAMES.iter().all(|name| mount.path(name).exists()));
    // The events of their creation make the names stale.
    wait_for_notices(&mount);
    assert!(NAMES.iter().all(|name| mount.path(name).exists()));
    // The host's write may have come after the kernel's lookup. The kernel then requests the attributes alone, and the
    // tree does not know whether the name still leads to the file until the next lookup.
    let tree = mount.mounted().session().vfs().context();
    assert!(NAMES.iter().all(|name| tree.attr(Base::CWD, name.as_bytes(), true).is_ok()));
    let wanted = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    let files = NAMES.map(|name| add_watch(&inotify, mount.path(name), wanted).unwrap());
    let open = fs::File::open(mount.path("open")).unwrap();
    ["removed", "open", "linked"].iter().for_each(|name| fs::remove_file(mount.host(name)).unwrap());
    fs::rename(mount.host("moved"), mount.host("away")).unwrap();
    fs::remove_dir(mount.host("dir")).unwrap();
    wait_for_notices(&mount);
    assert_eq!(events(&inotify, &files), [(0, ReadFlags::DELETE_SELF), (0, ReadFlags::IGNORED)]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &open, &mut text).unwrap();
    assert_eq!((text.as_str(), open.metadata().unwrap().nlink()), ("text", 0));
    drop(open);
    // Of a file that is open, when it is closed: as on other file systems. The kernel closes it a little later.
    let mut last = Vec::new();
    wait_for("the end of the file", || {
        last.extend(events(&inotify, &files));
        last == [(1, ReadFlags::DELETE_SELF), (1, ReadFlags::IGNORED)]
    });
    assert_eq!(fs::metadata(mount.path("other")).unwrap().nlink(), 1);
    assert!(NAMES.iter().all(|name| !mount.path(name).exists()));
}
