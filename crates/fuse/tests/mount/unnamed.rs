//! Files without a name: `O_TMPFILE`, in memory and on a host directory.

use crate::support::{HostMount, Mount, wait_for};
use crate::{ram, session};
use hostfs::HostOptions;
use lightfoot_fuse::{Checks, MountOptions, SessionOptions};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, linkat, open};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;

fn link(file: &File, to: &Path) -> Result<(), Errno> {
    linkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), CWD, to, AtFlags::SYMLINK_FOLLOW)
}

/// What the calls return, in a new directory.
fn outcomes(at: &Path) -> Vec<String> {
    let mut seen = Vec::new();
    let dir = at.join("dir");
    fs::create_dir(&dir).unwrap();
    let unnamed = |flags| open(&dir, OFlags::TMPFILE | flags, Mode::from_raw_mode(0o640)).map(File::from);
    let mut file = unnamed(OFlags::RDWR).unwrap();
    file.write_all(b"contents").unwrap();
    let stat = fstat(&file).unwrap();
    seen.push(format!("{:o} {} {} {}", stat.st_mode, stat.st_nlink, stat.st_size, stat.st_uid));
    seen.push(format!("{}", fs::read_dir(&dir).unwrap().count()));
    seen.push(format!("{:?}", link(&file, &dir.join("named"))));
    seen.push(format!("{:?} {:?}", link(&file, &dir.join("named")), link(&file, &dir.join("again"))));
    seen.push(format!("{:?}", fs::read_to_string(dir.join("named"))));
    file.write_all(b", more").unwrap();
    drop(file);
    seen.push(format!("{:?} {}", fs::read_to_string(dir.join("again")), fs::read_dir(&dir).unwrap().count()));
    let exclusive = unnamed(OFlags::RDWR | OFlags::EXCL).unwrap();
    seen.push(format!("{:?}", link(&exclusive, &dir.join("never"))));
    seen.push(format!("{:?}", unnamed(OFlags::RDONLY).err()));
    seen.push(format!("{:?}", unnamed(OFlags::WRONLY).and_then(|file| link(&file, &dir.join("write only")))));
    let other = open(dir.join("named"), OFlags::TMPFILE | OFlags::RDWR, Mode::empty());
    seen.push(format!("{:?}", other.err()));
    let mut left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    seen.push(format!("{left:?}"));
    seen
}

/// The options under which these files are tested.
fn kinds() -> Vec<MountOptions> {
    let session = session();
    let own = SessionOptions { checks: Checks::Own, ..session.clone() };
    let writeback = SessionOptions { writeback: true, ..session.clone() };
    [session, own, writeback].map(|session| MountOptions { session, ..MountOptions::default() }).to_vec()
}

#[test]
fn files_without_a_name_are_as_on_tmpfs() {
    let beside = Path::new("/dev/shm").join(format!("lightfoot-unnamed-{}", std::process::id()));
    fs::create_dir(&beside).unwrap();
    let expected = outcomes(&beside);
    fs::remove_dir_all(&beside).unwrap();
    for options in kinds() {
        let Some(mount) = Mount::new(&ram(), &options) else { return };
        assert_eq!(outcomes(&mount.at), expected, "{options:?}");
        let Some(mount) = HostMount::new(&HostOptions::default(), &options) else { return };
        assert_eq!(outcomes(&mount.at), expected, "a host directory, {options:?}");
    }
    let no_open = MountOptions { session: SessionOptions { no_open: true, ..session() }, ..MountOptions::default() };
    let Some(mount) = Mount::new(&ram(), &no_open) else { return };
    assert_eq!(outcomes(&mount.at), expected, "no_open");
}

#[test]
fn a_file_without_a_name_goes_with_its_last_descriptor() {
    let options = MountOptions { session: session(), ..MountOptions::default() };
    let Some(mount) = Mount::new(&ram(), &options) else { return };
    let free = || rustix::fs::statvfs(&mount.at).unwrap().f_bfree;
    let before = free();
    let mut file = File::from(open(&mount.at, OFlags::TMPFILE | OFlags::RDWR, Mode::empty()).unwrap());
    file.write_all(&[7; 1 << 20]).unwrap();
    assert_eq!(mount.mounted().session().known_nodes(), 2);
    drop(file);
    wait_for("the kernel forgets it", || mount.mounted().session().known_nodes() == 1);
    wait_for("its memory is free", || free() == before);
}
