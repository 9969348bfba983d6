//! Attributes and extended attributes.
//!
//! # What it is
//! Attributes are read by a descriptor if one is open, otherwise by directory and name; in that
//! case they are used only if the file at the name is the right one. Attributes are changed through
//! a descriptor, as the caller ([`crate::caller`]); calls that refuse an `O_PATH` descriptor use
//! `/proc/self/fd`.
//!
//! A lookup reads POSIX ACLs only with [`HostAcls::Apply`], since that is a second call for each
//! file and a third for each directory. With [`HostAcls::Refuse`] ACLs have no effect, and cannot
//! be set, so that no program relies on them.
//!
//! # How it is locked
//! No lock is held during a call to the host.
//!
//! # Where it comes from
//! `statx(2)`, `utimensat(2)`, `xattr(7)`.

use crate::caller::Acting;
use crate::errno::errno;
use crate::host::{self, ProcPath};
use crate::identity::birth;
use crate::options::HostAcls;
use crate::shared::Shared;
use crate::system;
use rustix::fs::{Gid, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno as HostErrno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vfs::{After, Attr, Errno, Inode, Request, S_IFMT, SetAttr, SetTime, SetXattr, StatFs};

/// The prefix of the ACLs' names.
const ACL: &[u8] = b"system.posix_acl_";

impl Shared {
    /// See [`vfs::FileSystem::attributes`].
    pub(crate) fn attributes(&self, inode: &Inode) -> Result<Attr, Errno> {
        let node = self.node(inode)?;
        let stat = self.stat(node)?;
        self.note_removal(node, &stat);
        self.note_names(node, &stat);
        self.note_contents(node, &stat);
        Ok(self.identities.attr(&stat))
    }

    /// See [`vfs::FileSystem::birth`].
    pub(crate) fn birth(&self, inode: &Inode) -> Result<Option<i64>, Errno> {
        Ok(birth(&self.stat(self.node(inode)?)?))
    }

    /// See [`vfs::FileSystem::set_attr`].
    pub(crate) fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        self.check_writable()?;
        let rest = SetAttr { size: None, ..*set };
        if set.size.is_some() && rest == SetAttr::default() {
            return Ok(After::NONE);
        }
        let fd = self.proc_fd(self.node(inode)?)?;
        let _change = self.begin_change_of(inode);
        let acting = self.daemon.act(request)?;
        change(&acting, &fd, inode.mode() & S_IFMT, &rest).map_err(errno)?;
        Ok(After::NONE)
    }

    /// See [`vfs::FileSystem::get_xattr`].
    pub(crate) fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        let fd = self.proc_fd(self.node(inode)?)?;
        let path = ProcPath::new(&fd);
        host::xattr(|buf| system::getxattr(path.bytes(), name, buf))
    }

    /// See [`vfs::FileSystem::set_xattr`].
    pub(crate) fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.check_writable()?;
        if name.starts_with(ACL) && self.options.acls == HostAcls::Refuse {
            return Err(Errno::EOPNOTSUPP);
        }
        let fd = self.proc_fd(self.node(inode)?)?;
        let flags = match how {
            SetXattr::Any => XattrFlags::empty(),
            SetXattr::Create => XattrFlags::CREATE,
            SetXattr::Replace => XattrFlags::REPLACE,
        };
        let _change = self.begin_change_of(inode);
        self.daemon.act(request)?.set_xattr(&fd, name, value, flags).map_err(errno)
    }

    /// See [`vfs::FileSystem::remove_xattr`].
    pub(crate) fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.check_writable()?;
        let fd = self.proc_fd(self.node(inode)?)?;
        let _change = self.begin_change_of(inode);
        self.daemon.act(request)?.remove_xattr(&fd, name).map_err(errno)
    }

    /// See [`vfs::FileSystem::list_xattrs`].
    pub(crate) fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        let fd = self.proc_fd(self.node(inode)?)?;
        let path = ProcPath::new(&fd);
        let names = host::xattr(|buf| system::listxattr(path.bytes(), buf))?;
        let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(Into::into).collect())
    }

    /// See [`vfs::FileSystem::statfs`].
    pub(crate) fn statfs(&self, _: &Inode) -> Result<StatFs, Errno> {
        let stat = system::fstatfs(&self.root_fd).map_err(errno)?;
        Ok(StatFs {
            kind: stat.f_type as u64,
            block_size: u32::try_from(stat.f_bsize).unwrap_or(4096),
            blocks: stat.f_blocks,
            blocks_free: stat.f_bfree,
            blocks_available: stat.f_bavail,
            files: stat.f_files,
            files_free: stat.f_ffree,
            name_max: u32::try_from(stat.f_namelen).unwrap_or(255),
        })
    }
}

/// Changes attributes of a file of this type through `fd`, which may be an `O_PATH` descriptor. First the owner, which may
/// clear mode bits (a change of nothing clears set-id bits), then the mode, then the times.
fn change(acting: &Acting<'_>, fd: &Arc<OwnedFd>, kind: u32, set: &SetAttr) -> Result<(), HostErrno> {
    if set.uid.is_some() || set.gid.is_some() || *set == SetAttr::default() {
        let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
        acting.chown(fd, uid, gid)?;
    }
    if let Some(mode) = set.mode {
        acting.chmod(fd, kind | mode & 0o7777)?;
    }
    if set.atime.is_some() || set.mtime.is_some() {
        let times = Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) };
        acting.set_times(fd, &times)?;
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

#[cfg(test)]
mod tests {
    use crate::filesystem::HostFs;
    use crate::options::{HostOptions, Revalidate};
    use std::sync::Arc;
    use vfs::{Base, Errno, Vfs};

    #[test]
    fn a_removed_source_is_logged() {
        let parent = tempfile::tempdir().unwrap();
        let source = parent.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let fs = HostFs::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() }).unwrap();
        let shared = Arc::clone(&fs.shared);
        let vfs = Vfs::new(fs);
        let at = vfs.context();
        let stat = |path: &[u8]| at.attr(Base::CWD, path, false).map(drop);
        assert_eq!((stat(b"/none"), stat(b"/")), (Err(Errno::ENOENT), Ok(())));
        assert!(!shared.has_logged_removal());
        std::fs::remove_dir(&source).unwrap();
        assert_eq!((stat(b"/none"), stat(b"/")), (Err(Errno::ENOENT), Ok(())));
        assert!(shared.has_logged_removal());
    }
}
