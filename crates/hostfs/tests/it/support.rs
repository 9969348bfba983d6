//! Temporary directories, and a tree over one with short forms of its operations.

use lightfoot_hostfs::{HostFs, HostHandle, HostOptions};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vfs::{Base, Context, Errno, OpenFile, OpenFlags, PathAt, Vfs};

/// A new directory, removed when it is dropped.
pub(crate) fn temp_dir() -> TempDir {
    dir_in(&std::env::temp_dir())
}

/// Where file systems are in memory, if the machine has that. A directory there costs no time of a disk: on ext4, making a file after many
/// were removed takes the longer the more they were.
pub(crate) fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// As [`temp_dir`], in [`memory`].
pub(crate) fn memory_dir() -> TempDir {
    dir_in(&memory())
}

/// A new directory below `parent`, removed when it is dropped.
pub(crate) fn dir_in(parent: &Path) -> TempDir {
    let mode = Permissions::from_mode(0o755);
    tempfile::Builder::new().prefix("lightfoot-hostfs-").permissions(mode).tempdir_in(parent).unwrap()
}

/// The seed of this run: `LIGHTFOOT_SEED` if it is set, otherwise a random one. Tests print it.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("LIGHTFOOT_SEED").ok();
    given.map_or_else(|| fastrand::u64(..=u64::MAX / 2), |seed| seed.parse().expect("LIGHTFOOT_SEED: a number"))
}

/// Whether this process is root's; otherwise prints that `test` is skipped.
pub(crate) fn is_root_for(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED {test}: needs root");
    }
    is_root
}

/// A tree over a host directory.
pub(crate) struct Tree {
    pub(crate) vfs: Vfs,
    pub(crate) at: Context,
    pub(crate) host: HostHandle,
}

impl Tree {
    pub(crate) fn new(source: impl AsRef<Path>, options: &HostOptions) -> Self {
        let fs = HostFs::new(source, options).unwrap();
        let host = fs.handle();
        let vfs = Vfs::new(fs);
        let at = vfs.context();
        at.set_umask(0);
        Self { vfs, at, host }
    }

    pub(crate) fn attr(&self, path: &str) -> Result<vfs::Attr, Errno> {
        self.at.attr(Base::CWD, path.as_bytes(), false)
    }

    pub(crate) fn open(&self, path: &str, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.at.open(Base::CWD, path.as_bytes(), flags, 0o644)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        read_all(&self.open(path, OpenFlags::RDONLY)?)
    }

    pub(crate) fn write(&self, path: &str, data: &[u8]) -> Result<(), Errno> {
        let file = self.open(path, OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::TRUNC))?;
        file.write_at(0, data).map(drop)
    }

    pub(crate) fn mkdir(&self, path: &str) -> Result<(), Errno> {
        self.at.mkdir(Base::CWD, path.as_bytes(), 0o755)
    }

    pub(crate) fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.at.unlink(Base::CWD, path.as_bytes())
    }

    pub(crate) fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        self.at.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), vfs::RenameFlags::default())
    }

    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Errno> {
        let dir = self.open(path, OpenFlags::RDONLY.union(OpenFlags::DIRECTORY))?;
        let mut names = Vec::new();
        loop {
            let some = dir.next_entries()?;
            if some.is_empty() {
                names.sort_unstable();
                return Ok(names);
            }
            names.extend(some.into_iter().map(|entry| entry.name.escape_ascii().to_string()));
        }
    }
}

pub(crate) fn read_all(file: &OpenFile) -> Result<Vec<u8>, Errno> {
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match file.read_at(all.len() as u64, &mut buf)? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buf[..read]),
        }
    }
}
