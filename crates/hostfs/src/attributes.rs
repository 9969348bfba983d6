//! Attributes, and extended ones.
//!
//! # What it is
//! Attributes are asked for by a descriptor if one is open, else by directory and name, and are the file's only if it
//! is the same. They are changed through a descriptor; what takes none with `O_PATH` goes through `/proc/self/fd`.
//!
//! POSIX ACLs are read with a lookup only if [`crate::HostOptions::acls`] says so, for that is a second call for each
//! file and a third for each directory. Otherwise they are shown and not heeded, and, so that nobody relies on them,
//! not set.
//!
//! # How it is locked
//! Nothing is held while the host is asked.
//!
//! # Where it comes from
//! `statx(2)`, `utimensat(2)`, `xattr(7)`.

use crate::core::Core;
use crate::errno::errno;
use crate::host::ProcPath;
use crate::identity::change_hash;
use rustix::fs::{AtFlags, Gid, Mode, Statx, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vfs::{Acl, AclKind, Attr, Errno, Inode, SetAttr, SetTime, SetXattr, StatFs};

/// Longest value of an extended attribute, and longest list of names: `xattr(7)`.
const LONGEST: usize = 65_536;

/// The room that is tried first.
const MOSTLY: usize = 512;

/// For so long after it a change may not have been noted.
const FRESH: Duration = Duration::from_millis(200);

/// What names of ACLs begin with.
const ACL: &[u8] = b"system.posix_acl_";

impl Core {
    /// See [`vfs::FileSystem::attributes`].
    pub(crate) fn attributes(&self, inode: &Inode) -> Result<Attr, Errno> {
        let node = self.node(inode)?;
        node.set_doubted(false);
        let are_two = node.begin_asking();
        let stat = self.stat(node);
        node.end_asking();
        let stat = stat?;
        node.note_told(change_hash(&stat));
        if are_two || is_fresh(&stat) {
            self.doubt(inode);
        }
        Ok(self.identities.attr(&stat))
    }

    /// See [`vfs::FileSystem::set_attr`].
    pub(crate) fn set_attr(&self, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.check_writable()?;
        let set = SetAttr { size: None, ..*set };
        if set == SetAttr::default() {
            return Ok(());
        }
        let fd = self.some_fd(self.node(inode)?)?;
        let _change = self.change_of(inode);
        change(&fd, &set).map_err(errno)
    }

    /// See [`vfs::FileSystem::get_xattr`].
    pub(crate) fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        let fd = self.some_fd(self.node(inode)?)?;
        let path = ProcPath::new(&fd);
        grown(|buf| rustix::fs::getxattr(path.bytes(), name, buf))
    }

    /// See [`vfs::FileSystem::set_xattr`].
    pub(crate) fn set_xattr(&self, inode: &Inode, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        self.check_writable()?;
        if name.starts_with(ACL) && !self.has_acls {
            return Err(Errno::EOPNOTSUPP);
        }
        let fd = self.some_fd(self.node(inode)?)?;
        let flags = match how {
            SetXattr::Any => XattrFlags::empty(),
            SetXattr::Create => XattrFlags::CREATE,
            SetXattr::Replace => XattrFlags::REPLACE,
        };
        let _change = self.change_of(inode);
        rustix::fs::setxattr(ProcPath::new(&fd).bytes(), name, value, flags).map_err(errno)
    }

    /// See [`vfs::FileSystem::remove_xattr`].
    pub(crate) fn remove_xattr(&self, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.check_writable()?;
        let fd = self.some_fd(self.node(inode)?)?;
        let _change = self.change_of(inode);
        rustix::fs::removexattr(ProcPath::new(&fd).bytes(), name).map_err(errno)
    }

    /// See [`vfs::FileSystem::list_xattrs`].
    pub(crate) fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        let fd = self.some_fd(self.node(inode)?)?;
        let path = ProcPath::new(&fd);
        let names = grown(|buf| rustix::fs::listxattr(path.bytes(), buf))?;
        let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(Into::into).collect())
    }

    /// The ACL of `name` in `dir`, if it has one.
    pub(crate) fn acl(&self, dir: &OwnedFd, name: &[u8], kind: AclKind) -> Result<Option<Acl>, Errno> {
        let mut path = ProcPath::new(dir).bytes().to_vec();
        path.push(b'/');
        path.extend_from_slice(name);
        match grown(|buf| rustix::fs::lgetxattr(&*path, kind.xattr_name(), buf)) {
            Ok(value) => Acl::from_xattr(&value),
            Err(Errno::ENODATA | Errno::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// See [`vfs::FileSystem::statfs`].
    pub(crate) fn statfs(&self) -> Result<StatFs, Errno> {
        let told = rustix::fs::fstatfs(&self.root_fd).map_err(errno)?;
        Ok(StatFs {
            kind: told.f_type as u64,
            block_size: u32::try_from(told.f_bsize).unwrap_or(4096),
            blocks: told.f_blocks,
            blocks_free: told.f_bfree,
            blocks_available: told.f_bavail,
            files: told.f_files,
            files_free: told.f_ffree,
            name_max: u32::try_from(told.f_namelen).unwrap_or(255),
        })
    }
}

/// Whether a file changed just now: by a change that the VFS may not have noted yet, and that it would then count
/// twice. As with the index of git, what changed too near to the question is asked for again.
fn is_fresh(stat: &Statx) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(stat.stx_ctime.tv_sec.try_into().unwrap_or(0), stat.stx_ctime.tv_nsec);
    now.abs_diff(changed) < FRESH
}

/// Changes attributes of what `fd` is of, which may be an `O_PATH` descriptor: owner, then mode, then times, for each
/// may undo what comes before it otherwise.
fn change(fd: &Arc<OwnedFd>, set: &SetAttr) -> Result<(), HostErrno> {
    let path = ProcPath::new(fd.as_fd());
    if set.uid.is_some() || set.gid.is_some() {
        let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
        rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = set.mode {
        rustix::fs::chmod(path.bytes(), Mode::from_raw_mode(mode & 0o7777))?;
    }
    if set.atime.is_some() || set.mtime.is_some() {
        let times = Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) };
        rustix::fs::utimensat(fd, c"", &times, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(ns)) => {
            Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
        }
    }
}

/// What `read` puts into a buffer, which is made as large as it must be.
fn grown(read: impl Fn(&mut [u8]) -> Result<usize, HostErrno>) -> Result<Box<[u8]>, Errno> {
    for room in [MOSTLY, LONGEST] {
        let mut buf = vec![0; room];
        match read(&mut buf) {
            Ok(len) => {
                buf.truncate(len);
                return Ok(buf.into());
            }
            Err(HostErrno::RANGE) => {}
            Err(error) => return Err(errno(error)),
        }
    }
    Err(Errno::E2BIG)
}
