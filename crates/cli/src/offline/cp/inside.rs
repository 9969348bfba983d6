//! A source as an end of a copy.

use super::end::{Contents, End, Facts};
use crate::offline::Opened;
use crate::offline::walk::names;
use lightfoot::{Context, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// `O_NOFOLLOW`, as [`OpenOptions::custom_flags`] has it.
const NOFOLLOW: u32 = 0o400_000;

/// An opened source.
pub(super) struct Inside {
    opened: Opened,
}

impl Inside {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened }
    }

    fn context(&self) -> &Context {
        &self.opened.context
    }
}

impl Contents for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        File::read_at(self, buffer, offset)
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        File::write_all_at(self, data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl End for Inside {
    fn source(&self) -> Option<&str> {
        Some(&self.opened.name)
    }

    fn facts(&self, path: &[u8], follows: bool) -> io::Result<Facts> {
        let context = self.context();
        let metadata = if follows { context.metadata(path)? } else { context.symlink_metadata(path)? };
        Ok(Facts {
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            len: metadata.len(),
            blocks: metadata.blocks(),
            rdev: u32::try_from(metadata.rdev()).unwrap_or(0),
            identity: (metadata.dev(), metadata.ino()),
            atime: metadata.atime_ns(),
            mtime: metadata.mtime_ns(),
        })
    }

    fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let names = names(&self.context().open_dir(path)?, |_| true)?;
        Ok(names.into_iter().map(OsStringExt::into_vec).collect())
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.context().read_link(path)?.into_os_string().into_vec())
    }

    fn canonical(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.context().canonicalize(path)?.into_os_string().into_vec())
    }

    fn open(&self, path: &[u8]) -> io::Result<Box<dyn Contents>> {
        Ok(Box::new(self.context().open(path)?))
    }

    fn create(&self, path: &[u8], mode: u32, follows: bool) -> io::Result<Box<dyn Contents>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(mode).custom_flags(if follows { 0 } else { NOFOLLOW });
        Ok(Box::new(options.open(self.context(), path)?))
    }

    fn mkdir(&self, path: &[u8], mode: u32) -> io::Result<()> {
        self.context().mkdir(path, mode)
    }

    fn symlink(&self, body: &[u8], path: &[u8]) -> io::Result<()> {
        self.context().symlink(body, path)
    }

    fn mknod(&self, path: &[u8], mode: u32, rdev: u32) -> io::Result<()> {
        self.context().mknod(path, mode, rdev.into())
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        self.context().remove_file(path)
    }

    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        self.context().set_permissions(path, Permissions::from_mode(mode))
    }

    fn chown(&self, path: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        self.context().lchown(path, Some(uid), Some(gid))
    }

    fn set_times(&self, path: &[u8], atime: i64, mtime: i64) -> io::Result<()> {
        self.context().set_times_ns(path, atime, mtime, false)
    }

    fn umask(&self) -> u32 {
        self.context().umask()
    }
}
