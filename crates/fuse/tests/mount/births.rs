//! `statx(2)` with `STATX_BTIME`: the kernel requests the time when a file was made by an operation that has other attributes, too.

use crate::support::{HostMount, Mount};
use crate::{ram, session};
use hostfs::HostOptions;
use lightfoot_fuse::{MountOptions, Op, SessionOptions, Ttls};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Statx, StatxFlags, Timespec, Timestamps, makedev, mknodat, statx, utimensat,
};
use std::fs;
use std::path::Path;
use std::time::Duration;

const BOTH: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// The kernel caches no attributes: it does not request a time of birth while those are valid.
fn options() -> MountOptions {
    let ttls = Ttls { attr: Duration::ZERO, ..Ttls::LONG };
    MountOptions { session: SessionOptions { ttls, ..session() }, nodev: false, ..MountOptions::default() }
}

fn seen(path: &Path, mask: StatxFlags) -> Statx {
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, mask).unwrap()
}

fn births_asked(mount: &Mount) -> u64 {
    let ops = mount.mounted().session().metrics().snapshot().ops;
    ops.iter().find(|op| op.name == Op::Statx.name()).map_or(0, |op| op.count)
}

/// All that both kinds of requests report.
fn basic(stat: &Statx) -> String {
    let times = [stat.stx_atime, stat.stx_mtime, stat.stx_ctime].map(|time| (time.tv_sec, time.tv_nsec));
    let device = makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
    let numbers = (stat.stx_nlink, stat.stx_uid, stat.stx_gid, stat.stx_ino, stat.stx_size, stat.stx_blocks);
    format!("{:o} {} {numbers:?} {times:?} {device:x}", stat.stx_mode, stat.stx_blksize)
}

/// Makes a file of each type; returns their names.
fn furnish(at: &Path) -> [&'static str; 4] {
    fs::write(at.join("file"), [1; 5000]).unwrap();
    fs::create_dir(at.join("dir")).unwrap();
    std::os::unix::fs::symlink("file", at.join("link")).unwrap();
    let device = makedev(0x123, 0x4_5678);
    mknodat(CWD, at.join("device"), FileType::BlockDevice, Mode::from_raw_mode(0o640), device).unwrap();
    ["file", "dir", "link", "device"]
}

#[test]
fn a_host_directory_reports_the_births_of_its_files() {
    let Some(mount) = HostMount::new(&HostOptions::default(), &options()) else { return };
    for name in furnish(&mount.source) {
        let (host, found) = (seen(&mount.host(name), BOTH), seen(&mount.path(name), BOTH));
        assert_eq!(basic(&found), basic(&seen(&mount.path(name), StatxFlags::BASIC_STATS)), "{name}");
        assert_eq!(found.stx_mask & BOTH.bits(), host.stx_mask & BOTH.bits(), "{name}");
        let birth = |stat: &Statx| (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        assert_eq!(birth(&found), birth(&host), "{name}");
    }
    if births_asked(&mount) == 0 {
        println!("SKIPPED: the kernel requests no times of birth: before Linux 6.6");
    }
}

#[test]
fn a_tree_in_memory_reports_the_births_of_its_files() {
    let Some(mount) = Mount::new(&ram(), &options()) else { return };
    let birth = |stat: &Statx| (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
    for name in furnish(&mount.at) {
        let at = mount.path(name);
        let found = seen(&at, BOTH);
        assert_eq!(basic(&found), basic(&seen(&at, StatxFlags::BASIC_STATS)), "{name}");
        if births_asked(&mount) == 0 {
            println!("SKIPPED: the kernel requests no times of birth: before Linux 6.6");
            return;
        }
        assert_eq!(found.stx_mask & BOTH.bits(), BOTH.bits(), "{name}");
        let old = Timespec { tv_sec: 1, tv_nsec: 2 };
        let times = Timestamps { last_access: old, last_modification: old };
        utimensat(CWD, &at, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let moved = mount.path("moved");
        fs::rename(&at, &moved).unwrap();
        let later = seen(&moved, BOTH);
        assert_eq!((birth(&later), later.stx_mtime.tv_sec), (birth(&found), 1), "{name}");
        assert!(birth(&found).0 > 1_000_000_000, "{name}: {:?}", birth(&found));
        fs::rename(&moved, &at).unwrap();
    }
}
