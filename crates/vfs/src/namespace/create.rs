//! mkdir, mknod, symlink, link: new names.

use super::{Base, Entry, Kind};
use crate::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_ISGID, S_ISVTX, node_type};
use crate::context::{Context, Held};
use crate::cred::{Capabilities, Credentials, MAY_EXEC, MAY_WRITE};
use crate::dentry::Dentry;
use crate::errno::Errno;
use crate::fs::Request;
use crate::name::PATH_MAX;

/// Links that a directory or file has at most.
const LINK_MAX: u32 = 65_000 * 1_000;

/// What to make.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    /// Type and permission bits, without the umask.
    pub(crate) mode: u32,
    pub(crate) rdev: u32,
    pub(crate) body: Option<&'a [u8]>,
}

impl<'t> Entry<'t, '_> {
    /// Makes the entry, which is known not to be there.
    pub(crate) fn make(&self, what: &Making<'_>) -> Result<&'t Dentry, Errno> {
        if self.last.name.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let dir = self.dir_inode()?;
        let dir_attr = dir.attr();
        // Filled in where it is, and read field by field: a copy on the way would load wide what was just stored narrow.
        let mut attr = Attr::default();
        let request = self.context.with_cred(|cred| self.new_attr(what, &dir_attr, cred, &mut attr))?;
        let is_dir = attr.is_dir();
        if is_dir && dir_attr.nlink >= LINK_MAX {
            return Err(Errno::EMLINK);
        }
        let node = self.tree.fs.create(&request, dir, self.last.name, &mut attr, what.body)?;
        self.tree.forget_negative(self.dir, self.last.name, self.hash);
        let made = self.tree.add(self.dir, (self.last.name, self.hash), &attr, node, what.body);
        self.tree.touch_dir(self.dir, 1, i32::from(is_dir), request.now);
        Ok(made)
    }

    /// Checks that `cred` may make the entry, and fills in what the new inode starts with.
    #[inline(always)]
    fn new_attr(&self, what: &Making<'_>, dir: &Attr, cred: &Credentials, attr: &mut Attr) -> Result<Request, Errno> {
        cred.may(dir, MAY_WRITE | MAY_EXEC)?;
        let kind = what.mode & S_IFMT;
        // A whiteout (character device 0:0) may be made by everyone.
        let device = matches!(kind, S_IFCHR | S_IFBLK) && (kind, what.rdev) != (S_IFCHR, 0);
        if device && !cred.capabilities.contains(Capabilities::MKNOD) {
            return Err(Errno::EPERM);
        }
        let request = Request::of(cred);
        attr.mode = if kind == S_IFLNK { S_IFLNK | 0o777 } else { what.mode & !self.context.umask() };
        attr.nlink = if kind == S_IFDIR { 2 } else { 1 };
        attr.uid = cred.uid;
        attr.gid = cred.gid;
        attr.rdev = what.rdev;
        attr.size = what.body.map_or(0, |body| body.len() as u64);
        (attr.atime, attr.mtime, attr.ctime) = (request.now, request.now, request.now);
        if dir.mode & S_ISGID != 0 {
            attr.gid = dir.gid;
            if kind == S_IFDIR {
                attr.mode |= S_ISGID;
            }
            // By the mode asked for: the umask may have taken the group's execute bit and with it the reason.
            let setgid_executable = what.mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
            let keeps = cred.in_group(dir.gid) || cred.capabilities.contains(Capabilities::FSETID);
            if kind != S_IFDIR && setgid_executable && !keeps {
                attr.mode &= !S_ISGID;
            }
        }
        Ok(request)
    }

    /// Checks that the entry can be made: a name, not there, no slash after what is no directory.
    fn check_free(&self, is_dir: bool) -> Result<(), Errno> {
        if self.last.kind != Kind::Normal || self.find()?.is_some() {
            return Err(Errno::EEXIST);
        }
        if self.last.slash && !is_dir { Err(Errno::ENOENT) } else { Ok(()) }
    }
}

impl Context {
    /// Makes a directory: `mkdir(2)`. `mode` is masked by the umask.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`, `EACCES`, `EMLINK`, those of a walk, and the file system's.
    pub fn mkdir(&self, base: Base<'_>, path: &[u8], mode: u32) -> Result<(), Errno> {
        let what = Making { mode: S_IFDIR | mode & (0o777 | S_ISVTX), rdev: 0, body: None };
        self.make(base, path, &what)
    }

    /// Makes a regular file, FIFO, socket or device node: `mknod(2)`.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `EINVAL` for another type, `EPERM` for a directory, or a device without the capability.
    pub fn mknod(&self, base: Base<'_>, path: &[u8], mode: u32, rdev: u32) -> Result<(), Errno> {
        let kind = node_type(mode)?;
        self.make(base, path, &Making { mode: kind | mode & 0o7777, rdev, body: None })
    }

    /// Makes a symbolic link that says `body`: `symlink(2)`.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `ENOENT` for an empty body, `ENAMETOOLONG` for one of more than 4095 bytes, `EINVAL` for
    /// one with a NUL byte.
    pub fn symlink(&self, body: &[u8], base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        match body {
            [] => return Err(Errno::ENOENT),
            body if body.len() > PATH_MAX => return Err(Errno::ENAMETOOLONG),
            body if body.contains(&0) => return Err(Errno::EINVAL),
            _ => {}
        }
        self.make(base, path, &Making { mode: S_IFLNK | 0o777, rdev: 0, body: Some(body) })
    }

    #[inline]
    fn make(&self, base: Base<'_>, path: &[u8], what: &Making<'_>) -> Result<(), Errno> {
        self.in_parent(base, path, |entry| {
            entry.check_free(what.mode & S_IFMT == S_IFDIR)?;
            entry.make(what).map(drop)
        })
    }

    /// Gives the file at `old` the further name `new`: `link(2)`. A symbolic link at `old` is not followed.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `EPERM` for a directory, `ENOENT` for a file whose last name has gone, `EMLINK`.
    pub fn link(&self, old_base: Base<'_>, old: &[u8], new_base: Base<'_>, new: &[u8]) -> Result<(), Errno> {
        let held = self.hold(old_base, old, false)?;
        self.in_parent(new_base, new, |entry| entry.link(&held))
    }

    /// Walks to `path` and holds what is there, as `open(2)` with `O_PATH` does.
    ///
    /// # Errors
    /// Those of a walk.
    pub fn hold(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Held, Errno> {
        let pinned = self.resolve(base, path, follow, |found| found.pin())?;
        Ok(Held::new(self.shared_tree().clone(), pinned))
    }
}

impl Entry<'_, '_> {
    fn link(&self, held: &Held) -> Result<(), Errno> {
        self.check_free(false)?;
        if self.last.name.contains(&0) {
            return Err(Errno::EINVAL);
        }
        self.context.may_change(self.dir)?;
        let inode = held.dentry().inode().ok_or(Errno::ENOENT)?;
        let attr = inode.attr();
        if attr.is_dir() {
            return Err(Errno::EPERM);
        }
        if attr.nlink >= LINK_MAX {
            return Err(Errno::EMLINK);
        }
        let request = self.context.request();
        // One step under the inode's lock, so that a file cannot lose its last name and gain another.
        inode.update(|attr| {
            if attr.nlink == 0 {
                return Err(Errno::ENOENT);
            }
            attr.nlink += 1;
            attr.ctime = request.now;
            Ok(())
        })?;
        if let Err(errno) = self.tree.fs.link(&request, self.dir_inode()?, self.last.name, inode) {
            inode.link_changed(-1, attr.ctime);
            return Err(errno);
        }
        self.tree.forget_negative(self.dir, self.last.name, self.hash);
        self.tree.add_alias(self.dir, self.last.name, self.hash, inode);
        self.tree.touch_dir(self.dir, 1, 0, request.now);
        Ok(())
    }
}
