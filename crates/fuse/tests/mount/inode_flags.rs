//! Flags of inodes: `lsattr(1)` and `chattr(1)` on a mount.

use crate::support::HostMount;
use crate::{Mount, long, ram};
use hostfs::HostOptions;
use lightfoot_fuse::{MountOptions, SessionOptions};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

const USER: u32 = 4711;

fn flags(path: &Path) -> Result<IFlags, Errno> {
    ioctl_getflags(File::open(path).unwrap())
}

fn set(path: &Path, flags: IFlags) -> Result<(), Errno> {
    ioctl_setflags(File::open(path).unwrap(), flags)
}

/// What `chattr(1)` prints as this user on its standard error: nothing, if it succeeds.
fn chattr(uid: u32, arguments: &[&str], path: &Path) -> String {
    let output = Command::new("chattr").args(arguments).arg(path).uid(uid).gid(uid).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// A mounted directory of the host whose file system has flags.
fn with_flags() -> Option<HostMount> {
    let options = MountOptions { allow_other: true, ..long() };
    let mount = HostMount::new(&HostOptions::default(), &options)?;
    let probe = mount.host("probe");
    fs::write(&probe, "").unwrap();
    if flags(&probe).is_err() || set(&probe, IFlags::IMMUTABLE).is_err() {
        println!("SKIPPED: the file system of {} has no flags of inodes", probe.display());
        return None;
    }
    set(&probe, IFlags::empty()).unwrap();
    Some(mount)
}

#[test]
fn the_flags_of_a_host_directory_are_those_of_the_host() {
    let Some(mount) = with_flags() else { return };
    fs::write(mount.host("file"), "contents").unwrap();
    fs::create_dir(mount.host("dir")).unwrap();
    for name in ["file", "dir"] {
        let (here, host) = (mount.path(name), mount.host(name));
        let before = flags(&host).unwrap();
        assert_eq!(flags(&here), Ok(before), "{name}");
        set(&here, before | IFlags::NODUMP | IFlags::NOATIME).unwrap();
        assert_eq!(flags(&host), Ok(before | IFlags::NODUMP | IFlags::NOATIME), "{name}");
        set(&host, before | IFlags::APPEND).unwrap();
        assert_eq!(flags(&here), Ok(before | IFlags::APPEND), "{name}");
        set(&here, before | IFlags::IMMUTABLE).unwrap();
        let refused =
            if name == "dir" { File::create(here.join("new")) } else { File::options().write(true).open(&here) };
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(1), "{name}");
        assert_eq!(fs::rename(&here, mount.path("moved")).unwrap_err().raw_os_error(), Some(1), "{name}");
        set(&here, before).unwrap();
        fs::rename(&here, mount.path("moved")).unwrap();
        fs::rename(mount.path("moved"), &here).unwrap();
    }
    std::os::unix::fs::symlink("file", mount.host("link")).unwrap();
    assert_eq!(flags(&mount.path("link")), flags(&mount.host("file")), "a link is followed");
}

#[test]
fn users_change_flags_of_their_files_and_only_some() {
    let Some(mount) = with_flags() else { return };
    if Command::new("chattr").output().is_err() {
        return println!("SKIPPED: no chattr (package e2fsprogs)");
    }
    for (name, owner) in [("own", USER), ("other", 0)] {
        fs::write(mount.host(name), "").unwrap();
        fs::set_permissions(mount.host(name), fs::Permissions::from_mode(0o666)).unwrap();
        chown(mount.host(name), Some(owner), Some(owner)).unwrap();
    }
    fs::set_permissions(&mount.source, fs::Permissions::from_mode(0o755)).unwrap();
    let (own, other) = (mount.path("own"), mount.path("other"));
    assert_eq!(chattr(USER, &["+d"], &own), "");
    assert!(flags(&mount.host("own")).unwrap().contains(IFlags::NODUMP));
    assert!(chattr(USER, &["+i"], &own).contains("Operation not permitted"));
    assert!(chattr(USER, &["+d"], &other).contains("Operation not permitted"));
    assert!(!flags(&mount.host("other")).unwrap().contains(IFlags::NODUMP));
    assert_eq!(chattr(0, &["+i"], &other), "");
    assert!(chattr(USER, &["-i"], &other).contains("Operation not permitted"));
    assert_eq!(chattr(0, &["-i"], &other), "");
    // The same flags by FS_IOC_FSGETXATTR; a project cannot be set.
    let listed = Command::new("lsattr").arg("-p").arg(&own).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let words: Vec<_> = listed.split_whitespace().collect();
    assert!(words[0] == "0" && words[1].contains('d'), "{listed}");
    assert_ne!(chattr(0, &["-p", "5"], &own), "");
}

#[test]
fn a_tree_in_memory_obeys_the_flags_that_tmpfs_has() {
    let writeback = |writeback| MountOptions { session: SessionOptions { writeback, ..long().session }, ..long() };
    for writes_back in [false, true] {
        let Some(mount) = Mount::new(&ram(), &writeback(writes_back)) else { return };
        let path = mount.path("log");
        fs::write(&path, "one ").unwrap();
        assert_eq!(flags(&path), Ok(IFlags::empty()));
        assert_eq!(set(&path, IFlags::COMPRESSED), Err(Errno::OPNOTSUPP));
        assert_eq!(set(&path, IFlags::APPEND | IFlags::NODUMP), Ok(()));
        let mut log = File::options().append(true).open(&path).unwrap();
        log.write_all(b"two").unwrap();
        log.sync_all().unwrap();
        drop(log);
        assert_eq!(fs::read(&path).unwrap(), b"one two", "{writes_back}");
        let refused = [
            File::options().write(true).open(&path).map(drop),
            File::options().write(true).truncate(true).open(&path).map(drop),
            fs::remove_file(&path),
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)),
            fs::hard_link(&path, mount.path("other")),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(1), "{number}");
        }
        set(&path, IFlags::IMMUTABLE).unwrap();
        assert_eq!(File::options().append(true).open(&path).unwrap_err().raw_os_error(), Some(1));
        assert_eq!(fs::read(&path).unwrap(), b"one two");
        set(&path, IFlags::empty()).unwrap();
        set(&mount.at, IFlags::IMMUTABLE).unwrap();
        assert_eq!(fs::remove_file(&path).unwrap_err().raw_os_error(), Some(1));
        assert_eq!(fs::write(mount.path("new"), "").unwrap_err().raw_os_error(), Some(1));
        set(&mount.at, IFlags::empty()).unwrap();
        fs::remove_file(&path).unwrap();
    }
}
