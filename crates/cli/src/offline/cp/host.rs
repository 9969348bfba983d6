//! The host as an end of a copy, through the kernel.

use super::end::{Contents, End, Facts};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};

const SECOND_NS: i64 = 1_000_000_000;

/// The host, as this process sees it.
pub(super) struct Host {
    umask: u32,
}

impl Host {
    pub(super) fn new() -> Self {
        Self { umask: crate::offline::own_umask() }
    }
}

impl Contents for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl End for Host {
    fn source(&self) -> Option<&str> {
        None
    }

    fn facts(&self, path: &[u8], follows: bool) -> io::Result<Facts> {
        let path = OsStr::from_bytes(path);
        let metadata = if follows { std::fs::metadata(path)? } else { std::fs::symlink_metadata(path)? };
        let ns = |seconds: i64, ns: i64| seconds.saturating_mul(SECOND_NS).saturating_add(ns);
        let (major, minor) = (fs::major(metadata.rdev()), fs::minor(metadata.rdev()));
        Ok(Facts {
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            len: metadata.len(),
            blocks: metadata.blocks(),
            // As Linux keeps it.
            rdev: minor & 0xff | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12,
            identity: (metadata.dev(), metadata.ino()),
            atime: ns(metadata.atime(), metadata.atime_nsec()),
            mtime: ns(metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let names = std::fs::read_dir(OsStr::from_bytes(path))?.map(|entry| Ok(entry?.file_name().into_vec()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        Ok(std::fs::read_link(OsStr::from_bytes(path))?.into_os_string().into_vec())
    }

    fn canonical(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        Ok(std::fs::canonicalize(OsStr::from_bytes(path))?.into_os_string().into_vec())
    }

    fn open(&self, path: &[u8]) -> io::Result<Box<dyn Contents>> {
        // Not blocking: a FIFO that took the file's place keeps nobody waiting.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(Box::new(File::from(fs::open(path, flags, Mode::empty())?)))
    }

    fn create(&self, path: &[u8], mode: u32, follows: bool) -> io::Result<Box<dyn Contents>> {
        let nofollow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK | nofollow;
        Ok(Box::new(File::from(fs::open(path, flags, Mode::from_raw_mode(mode))?)))
    }

    fn mkdir(&self, path: &[u8], mode: u32) -> io::Result<()> {
        Ok(fs::mkdir(path, Mode::from_raw_mode(mode))?)
    }

    fn symlink(&self, body: &[u8], path: &[u8]) -> io::Result<()> {
        Ok(fs::symlink(body, path)?)
    }

    fn mknod(&self, path: &[u8], mode: u32, rdev: u32) -> io::Result<()> {
        let (major, minor) = crate::offline::entry::device_numbers(rdev.into());
        let (major, minor) = (u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0));
        let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode & 0o7777));
        Ok(fs::mknodat(CWD, path, kind, mode, fs::makedev(major, minor))?)
    }

    fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        Ok(fs::unlink(path)?)
    }

    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        Ok(fs::chmod(path, Mode::from_raw_mode(mode))?)
    }

    fn chown(&self, path: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        Ok(fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn set_times(&self, path: &[u8], atime: i64, mtime: i64) -> io::Result<()> {
        let time = |ns: i64| Timespec { tv_sec: ns.div_euclid(SECOND_NS), tv_nsec: ns.rem_euclid(SECOND_NS) };
        let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
        Ok(fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn umask(&self) -> u32 {
        self.umask
    }
}
