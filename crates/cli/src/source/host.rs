//! A host directory as a file system: the words of the command line, told to the crate that does it.

use std::io;
use std::path::Path;
use std::time::Duration;

/// How long what was learnt of the host is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// As the file system thinks best.
    #[default]
    Unsaid,
    /// Nobody else changes it: always.
    Always,
    /// So long.
    For(Duration),
    /// It is asked each time.
    Never,
}

/// What the words of a host directory say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostWords {
    /// How long what was learnt of the host is believed.
    pub(crate) trust: Trust,
    /// Whether the host is asked to tell of changes; `None`: as the file system thinks best.
    pub(crate) watch: Option<bool>,
    /// Whether what is mounted below the directory is left out.
    pub(crate) stay: bool,
    /// The most files that are kept open.
    pub(crate) max_fds: Option<usize>,
    /// Whether nothing is changed.
    pub(crate) read_only: bool,
}

use lightfoot::fs::{Attr, S_IFDIR, S_IFLNK};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::{ffi::OsStr, fs, path::PathBuf};
use vfs::{Errno, PathAdapter, PathEntry, PathFileSystem, SetAttr, SetTime, Written};

/// TEMPORARY, until hostfs is there.
pub(crate) struct Stub(PathBuf);

fn errno(error: io::Error) -> Errno {
    match error.raw_os_error() {
        Some(2) => Errno::ENOENT,
        Some(13) => Errno::EACCES,
        Some(17) => Errno::EEXIST,
        Some(20) => Errno::ENOTDIR,
        _ => Errno::EIO,
    }
}
impl Stub {
    fn at(&self, path: &[u8]) -> PathBuf {
        self.0.join(OsStr::from_bytes(path))
    }
}
impl PathFileSystem for Stub {
    fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
        let m = fs::symlink_metadata(self.at(path)).map_err(errno)?;
        let ns = |s: i64, n: i64| s * 1_000_000_000 + n;
        Ok(Attr {
            ino: m.ino(),
            mode: m.mode(),
            nlink: m.nlink() as u32,
            uid: m.uid(),
            gid: m.gid(),
            rdev: 0,
            size: m.size(),
            blocks: m.blocks(),
            atime: ns(m.atime(), m.atime_nsec()),
            mtime: ns(m.mtime(), m.mtime_nsec()),
            ctime: ns(m.ctime(), m.ctime_nsec()),
        })
    }
    fn read_dir(&self, path: &[u8]) -> Result<Vec<PathEntry>, Errno> {
        let entries = fs::read_dir(self.at(path)).map_err(errno)?;
        Ok(entries
            .filter_map(|e| {
                let e = e.ok()?;
                Some(PathEntry { name: e.file_name().as_bytes().into(), kind: e.metadata().ok()?.mode() & 0o170000 })
            })
            .collect())
    }
    fn read_link(&self, path: &[u8]) -> Result<Box<[u8]>, Errno> {
        Ok(fs::read_link(self.at(path)).map_err(errno)?.as_os_str().as_bytes().into())
    }
    fn read_at(&self, path: &[u8], offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        fs::File::open(self.at(path)).and_then(|f| f.read_at(buf, offset)).map_err(errno)
    }
    fn write_at(&self, path: &[u8], offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let file = fs::OpenOptions::new().write(true).open(self.at(path)).map_err(errno)?;
        let len = file.write_at(data, offset).map_err(errno)?;
        Ok(Written { len, blocks: file.metadata().map_err(errno)?.blocks() })
    }
    fn create(&self, path: &[u8], attr: &mut Attr, body: Option<&[u8]>) -> Result<(), Errno> {
        use std::os::unix::fs::OpenOptionsExt;
        let at = self.at(path);
        match attr.mode & 0o170000 {
            S_IFDIR => fs::create_dir(&at).map_err(errno)?,
            S_IFLNK => {
                return std::os::unix::fs::symlink(OsStr::from_bytes(body.unwrap_or_default()), at).map_err(errno);
            }
            _ => drop(fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&at).map_err(errno)?),
        }
        self.set_attr(path, &SetAttr { mode: Some(attr.mode & 0o7777), ..SetAttr::default() })
    }
    fn remove(&self, path: &[u8], is_dir: bool) -> Result<(), Errno> {
        if is_dir { fs::remove_dir(self.at(path)) } else { fs::remove_file(self.at(path)) }.map_err(errno)
    }
    fn set_len(&self, path: &[u8], len: u64) -> Result<u64, Errno> {
        let file = fs::OpenOptions::new().write(true).open(self.at(path)).map_err(errno)?;
        file.set_len(len).map_err(errno)?;
        Ok(file.metadata().map_err(errno)?.blocks())
    }
    fn set_attr(&self, path: &[u8], set: &SetAttr) -> Result<(), Errno> {
        use std::os::unix::fs::PermissionsExt;
        if let Some(mode) = set.mode {
            fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).map_err(errno)?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            std::os::unix::fs::lchown(self.at(path), set.uid, set.gid).map_err(errno)?;
        }
        let _ = SetTime::Now;
        Ok(())
    }
}

impl HostWords {
    pub(crate) fn open(&self, path: &Path) -> io::Result<PathAdapter<Stub>> {
        Ok(PathAdapter::new(Stub(path.into())))
    }
}
