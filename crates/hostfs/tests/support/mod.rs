//! Directories for tests, and short forms.

#![allow(dead_code, reason = "each test file uses some of it")]

use hostfs::{HostFs, HostHandle, HostOptions};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vfs::{Base, Context, Errno, OpenFile, OpenFlags, Vfs};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that goes with this value.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    pub(crate) fn under(parent: &Path) -> Self {
        let name = format!("lightfoot-hostfs-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tree over a host directory.
pub(crate) struct Tree {
    pub(crate) vfs: Vfs,
    pub(crate) at: Context,
    pub(crate) host: HostHandle,
}

impl Tree {
    pub(crate) fn new(source: &Path, options: &HostOptions) -> Self {
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
        self.at.rename((Base::CWD, old.as_bytes()), (Base::CWD, new.as_bytes()), vfs::RenameFlags::default())
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
