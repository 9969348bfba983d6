//! mkdir, mknod, symlink, link: creation of names.

use crate::base::access::credentials::{Capabilities, Credentials, MAY_EXEC, MAY_WRITE};
use crate::base::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_ISGID, S_ISVTX, node_type};
use crate::base::errno::Errno;
use crate::base::flags::InodeFlags;
use crate::base::name::PATH_MAX;
use crate::cache::budget::SlotKind;
use crate::cache::insert::{ExtraArgs, NewInodeArgs};
use crate::cache::reclaim::MayEvict;
use crate::cache::returned::Files;
use crate::cache::superblock::SuperBlock;
use crate::fs::{InitExtra, Labels, NewNode};
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef};
use crate::ops::checks::{LINK_MARKS, add_link, end_link};
use crate::ops::entry::{Entry, Operation};
use crate::ops::last_component::LastKind;
use crate::ops::publish;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{Inode, InodeRef};
use crate::walk::permission::{flags_allow, may_block};

/// The most links of a directory or file.
const LINK_MAX: u32 = 65_000 * 1_000;

#[derive(Clone, Copy)]
pub(crate) struct CreateArgs<'a> {
    /// Type and permission bits, without the umask.
    pub(crate) mode: u32,
    pub(crate) rdev: u32,
    pub(crate) body: Option<&'a [u8]>,
}

impl<'a> CreateArgs<'a> {
    #[inline(always)]
    fn dir(mode: u32) -> Self {
        Self { mode: S_IFDIR | mode & (0o777 | S_ISVTX), rdev: 0, body: None }
    }

    /// `EINVAL`, `EPERM`: not a type that `mknod(2)` makes.
    #[inline(always)]
    fn node(mode: u32, rdev: u32) -> Result<Self, Errno> {
        Ok(Self { mode: node_type(mode)? | mode & 0o7777, rdev, body: None })
    }

    /// `ENOENT`, `ENAMETOOLONG`, `EINVAL`: not the body of a link.
    fn link(body: &'a [u8]) -> Result<Self, Errno> {
        match body {
            [] => Err(Errno::ENOENT),
            body if body.len() > PATH_MAX => Err(Errno::ENAMETOOLONG),
            body if body.contains(&0) => Err(Errno::EINVAL),
            _ => Ok(Self { mode: S_IFLNK | 0o777, rdev: 0, body: Some(body) }),
        }
    }
}

impl Operation for CreateArgs<'_> {
    #[inline(always)]
    fn apply(&self, entry: &Entry<'_, '_>, may_evict: &mut MayEvict) -> Result<(), Errno> {
        entry.make_free(may_evict, self, &[])
    }
}

impl Entry<'_, '_> {
    /// Creates the entry, if it can be created.
    #[inline(always)]
    fn make_free(&self, may_evict: &mut MayEvict, what: &CreateArgs<'_>, labels: Labels<'_>) -> Result<(), Errno> {
        self.check_free(may_evict, what.mode & S_IFMT == S_IFDIR)?;
        self.make(may_evict, what, labels).map(drop)
    }

    /// Creates the entry, which does not exist. `None`: it was made, and its directory was replaced in the cache meanwhile.
    #[inline(always)]
    pub(crate) fn make<'r>(
        &'r self,
        may_evict: &'r mut MayEvict,
        what: &CreateArgs<'_>,
        labels: Labels<'_>,
    ) -> Result<Option<&'r Dentry>, Errno> {
        if self.last.has_nul() {
            return Err(Errno::EINVAL);
        }
        let dir = self.dir_inode()?;
        if self.section().is_some() && dir.has_default_acl() {
            return Err(self.leave());
        }
        // Filled in place and read field by field: a copy would stall, with wide loads over fresh
        // narrow stores.
        let mut new = NewNode::new(Attr::default());
        let beside = self.context.new_attr(self.sb, what, dir, self.caller.cred, &mut new.attr)?;
        let beside = InitExtra::with_labels(beside, labels);
        let beside = beside.as_deref();
        (new.link_body, new.beside) = (what.body, beside);
        let is_dir = new.attr.is_dir();
        if is_dir {
            self.check_links(dir)?;
        }
        if let Some(unlocked) = self.unlocked() {
            return self.make_name_locked(unlocked, &mut new);
        }
        let request = self.making();
        let now = request.now();
        (new.attr.atime, new.attr.mtime, new.attr.ctime) = (now, now, now);
        let slot = self.sb.slot_in(SlotKind::Entry, self.dir, may_evict)?;
        let pre_attrs = self.pre_attrs(Files { dir: Some((dir, 1)), ..Files::default() });
        let created = self.sb.fs().create(&request, dir, Some(self.last.name), &mut new);
        // After any result: if the name exists, the cached negative entry is wrong, and after
        // another error the file system may have made the name. (In a section the cache has all
        // names.)
        if self.section().is_none() && !self.dir.object().is_complete() {
            self.sb.forget_negative(self.dir, self.named());
        }
        let node = created?;
        let valid = self.sb.valid_in(self.dir);
        let fresh = NewInodeArgs { node, attr: &new.attr, link_body: what.body, valid, rare: ExtraArgs::of(beside) };
        let made = match self.section() {
            Some(guard) => self.sb.add_in(guard, self.names, slot, self.dir, self.named(), &fresh),
            None => self.sb.add_in(&self.sb.domain.read(), self.names, slot, self.dir, self.named(), &fresh),
        };
        let begun = self.sb.begin_xattrs(&request, made, beside);
        self.touch_dir(dir, 1, i32::from(is_dir), now);
        pre_attrs.post_attrs(&new.after);
        publish::created(self.sb, self.dir, made, self.last.name, is_dir);
        if let Err(errno) = begun {
            // An entry that cannot be removed stays without its label.
            let _ = self.take_back(made, is_dir);
            return Err(errno);
        }
        Ok(Some(made))
    }

    /// Checks that the directory may have another subdirectory.
    #[inline]
    fn check_links(&self, dir: &Inode) -> Result<(), Errno> {
        match self.names {
            None if dir.links() >= LINK_MAX => Err(Errno::EMLINK),
            // So all shards together cannot pass the limit. Near the limit, the whole directory is
            // locked.
            Some(names) if dir.links() >= LINK_MAX / 2 || !names.may_add_subdir(LINK_MAX / 2) => Err(self.leave()),
            _ => Ok(()),
        }
    }

    /// Checks that the entry can be created: it is a name that does not exist, and only a directory may have
    /// a slash after it.
    #[inline(always)]
    fn check_free(&self, may_evict: &mut MayEvict, is_dir: bool) -> Result<(), Errno> {
        if self.last.kind != LastKind::Normal || self.find(may_evict)?.is_some() {
            return Err(Errno::EEXIST);
        }
        if self.last.slash && !is_dir {
            return Err(Errno::ENOENT);
        }
        self.mount.check_writable()
    }

    fn link(&self, may_evict: &mut MayEvict, held: &PathRef) -> Result<(), Errno> {
        self.check_free(may_evict, false)?;
        if self.last.has_nul() {
            return Err(Errno::EINVAL);
        }
        if !held.mount().borrow().ptr_eq(self.mount) {
            return Err(Errno::EXDEV);
        }
        let inode = held.dentry().inode().ok_or(Errno::ENOENT)?;
        // Of a directory only mode and owner matter. Its other attributes may need its lock, which must not be taken here.
        let attr = if held.dentry().object().is_dir() { inode.attr() } else { held.attr()? };
        self.context.may_link(self.sb, inode, &attr)?;
        self.context.may_change(self.sb, self.dir)?;
        flags_allow(self.sb, inode, self.caller.cred, InodeFlags::FIXED)?;
        if attr.is_dir() {
            return Err(Errno::EPERM);
        }
        if attr.nlink >= LINK_MAX {
            return Err(Errno::EMLINK);
        }
        if let Some(unlocked) = self.unlocked() {
            return self.link_name_locked(unlocked, inode, attr.ctime);
        }
        let (dir, request) = (self.dir_inode()?, self.context.request());
        let slot = self.sb.slot_in(SlotKind::Entry, self.dir, may_evict)?;
        let pre_attrs =
            self.pre_attrs(Files { file: Some((inode, LINK_MARKS)), dir: Some((dir, 1)), ..Files::default() });
        add_link(inode, request.now())?;
        let linked = self.sb.fs().link(&request, dir, self.last.name, inode);
        // As for a new file.
        self.sb.forget_negative(self.dir, self.named());
        let after = end_link(inode, linked, attr.ctime)?;
        let (inode, valid) = (InodeRef::again(inode), self.sb.valid_in(self.dir));
        let made = self.sb.add_alias(self.names, slot, self.dir, self.named(), inode, valid);
        self.sb.note_change(self.dir);
        self.touch_dir(dir, 1, 0, request.now());
        pre_attrs.post_attrs(&after);
        publish::created(self.sb, self.dir, made, self.last.name, false);
        Ok(())
    }
}

impl Context {
    /// Checks that `cred` may create the entry, and fills in the initial attributes of the new inode.
    #[inline(always)]
    pub(super) fn new_attr<'b>(
        &self,
        sb: &SuperBlock,
        what: &CreateArgs<'_>,
        dir_inode: &Inode,
        cred: &Credentials,
        attr: &mut Attr,
    ) -> Result<Option<Box<InitExtra<'b>>>, Errno> {
        let dir = dir_inode.rights();
        may_block(sb, dir_inode, dir, cred, MAY_WRITE | MAY_EXEC)?;
        let kind = what.mode & S_IFMT;
        // Everyone may create a whiteout (character device 0:0).
        let device = matches!(kind, S_IFCHR | S_IFBLK) && (kind, what.rdev) != (S_IFCHR, 0);
        if device && !cred.capabilities.contains(Capabilities::MKNOD) {
            return Err(Errno::EPERM);
        }
        let mut beside = None;
        attr.mode = if kind == S_IFLNK {
            S_IFLNK | 0o777
        } else if sb.fs_keeps_modes {
            what.mode
        } else if dir_inode.has_default_acl() {
            let mut mode = what.mode;
            beside = sb.new_acls(dir_inode, &mut mode).map(InitExtra::new);
            mode
        } else {
            what.mode & !self.umask()
        };
        attr.nlink = if kind == S_IFDIR { 2 } else { 1 };
        attr.uid = cred.uid;
        attr.gid = cred.gid;
        attr.rdev = what.rdev;
        attr.size = what.body.map_or(0, |body| body.len() as u64);
        if dir.mode & S_ISGID != 0 {
            attr.gid = dir.gid;
            if kind == S_IFDIR {
                attr.mode |= S_ISGID;
            }
            // By the requested mode: the umask may have cleared the group's execute bit.
            let setgid_executable = what.mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
            let keeps = cred.in_group(dir.gid) || cred.capabilities.contains(Capabilities::FSETID);
            if kind != S_IFDIR && setgid_executable && !keeps {
                attr.mode &= !S_ISGID;
            }
        }
        Ok(beside)
    }

    /// Creates a directory: `mkdir(2)`. The umask applies to `mode`.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`, `EACCES`, `EMLINK`; errors of a walk and of the file system.
    pub fn mkdir(&self, base: Base<'_>, path: &[u8], mode: u32) -> Result<(), Errno> {
        self.in_parent_quick(base, path, &CreateArgs::dir(mode))
    }

    /// Creates a regular file, FIFO, socket or device node: `mknod(2)`. `rdev` has 32 bits: 12 major, 20
    /// minor.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `EINVAL` for another type, `EPERM` for a directory, or a device without the capability.
    pub fn mknod(&self, base: Base<'_>, path: &[u8], mode: u32, rdev: u32) -> Result<(), Errno> {
        self.in_parent_quick(base, path, &CreateArgs::node(mode, rdev)?)
    }

    /// Creates a symbolic link with the text `body`: `symlink(2)`.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `ENOENT` for an empty body, `ENAMETOOLONG` for a body of more
    /// than 4095 bytes, `EINVAL` for a body with a NUL byte.
    pub fn symlink(&self, body: &[u8], base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        self.in_parent_quick(base, path, &CreateArgs::link(body)?)
    }

    /// [`Context::mkdir`] of a directory that has `labels` from its beginning on. No rights are checked for them: they come from a
    /// security module.
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; an error of the file system that cannot store a label: then the directory is not made.
    pub fn mkdir_labelled(&self, base: Base<'_>, path: &[u8], mode: u32, labels: Labels<'_>) -> Result<(), Errno> {
        self.make_labelled(PathAt { base, path }, &CreateArgs::dir(mode), labels)
    }

    /// [`Context::mknod`] in the same way.
    ///
    /// # Errors
    /// As for [`Context::mknod`] and [`Context::mkdir_labelled`].
    pub fn mknod_labelled(
        &self,
        base: Base<'_>,
        path: &[u8],
        mode: u32,
        rdev: u32,
        labels: Labels<'_>,
    ) -> Result<(), Errno> {
        self.make_labelled(PathAt { base, path }, &CreateArgs::node(mode, rdev)?, labels)
    }

    /// [`Context::symlink`] in the same way.
    ///
    /// # Errors
    /// As for [`Context::symlink`] and [`Context::mkdir_labelled`].
    pub fn symlink_labelled(&self, body: &[u8], base: Base<'_>, path: &[u8], labels: Labels<'_>) -> Result<(), Errno> {
        self.make_labelled(PathAt { base, path }, &CreateArgs::link(body)?, labels)
    }

    fn make_labelled(&self, at: PathAt<'_>, what: &CreateArgs<'_>, labels: Labels<'_>) -> Result<(), Errno> {
        if labels.is_empty() {
            return self.in_parent_quick(at.base, at.path, what);
        }
        self.in_parent(at.base, at.path, |entry, may_evict| entry.make_free(may_evict, what, labels))
    }

    /// Creates `new` as a further name of the file at `old`: `linkat(2)`. A symbolic link at `old`
    /// is followed if `follow` is set. With an empty path in `old`, the file is its base
    /// (`AT_EMPTY_PATH`), which may have no name (`O_TMPFILE`).
    ///
    /// # Errors
    /// As for [`Context::mkdir`]; `EPERM` for a directory, by the policy, or by the file's flags; `ENOENT` for a file whose last
    /// name was removed; `EMLINK`; `EXDEV` to another mount.
    pub fn link(&self, old: PathAt<'_>, new: PathAt<'_>, follow: bool) -> Result<(), Errno> {
        let link = |held: &PathRef| self.in_parent(new.base, new.path, |entry, may_evict| entry.link(may_evict, held));
        match old.base.dir {
            Some(held) if old.path.is_empty() => link(held),
            _ => self.on_held(old.base, old.path, follow, link),
        }
    }

    /// Walks to `path` and holds the file there, as `open(2)` with `O_PATH` does.
    ///
    /// # Errors
    /// The errors of a walk.
    pub fn hold(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<PathRef, Errno> {
        self.resolve(base, path, follow, |found| found.pin())
    }
}
