//! open: from a path to an open file.

use crate::base::access::credentials::{Credentials, MAY_WRITE};
use crate::base::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISVTX};
use crate::base::errno::Errno;
use crate::base::flags::{MountFlags, OpenFlags, Resolve};
use crate::cache::budget::SlotKind;
use crate::cache::insert::{ExtraArgs, NewInodeArgs};
use crate::cache::reclaim::MayEvict;
use crate::fs::{InitExtra, Labels, NewNode, Request};
use crate::mount::Mount;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef};
use crate::ops::create::CreateArgs;
use crate::ops::entry::Entry;
use crate::ops::file::OpenFile;
use crate::ops::last_component::{Last, LastKind};
use crate::ops::unlocked::Unlocked;
use crate::slots::dentry::Dentry;
use crate::walk::follow::{LinkStep, leads_to_root};
use crate::walk::permission::{may, may_block, mount_allows};

/// The last component of a path that is opened with `CREAT`.
enum OpenEnd {
    Opened(OpenFile),
    /// A mount point, in a directory with these attributes.
    Mounted(Attr),
    /// A symbolic link to follow: the directory to start from, the text, and the number of links followed
    /// before.
    Link(PathRef, Vec<u8>, u32),
}

impl Context {
    /// Opens the file at `path`, or creates it: `open(2)`. A new file gets `mode`, to which the
    /// umask applies.
    ///
    /// # Errors
    /// `EEXIST`, `EISDIR`, `ENOTDIR`, `ELOOP` (a symbolic link with `NOFOLLOW`), `EACCES`, `ENXIO`
    /// for a device, FIFO or socket, `EINVAL` for `CREAT` with `DIRECTORY` and for `TMPFILE`
    /// without writing, `EPERM` for `NOATIME` by a user other than the owner, `EROFS`, `EACCES` for
    /// a device on a mount with `NODEV`; `EOPNOTSUPP` for `TMPFILE` if the file system does not
    /// support it; errors of a walk and of the file system.
    #[inline]
    pub fn open(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        self.open_labelled(base, path, flags, mode, &[])
    }

    /// [`Context::open`]; a file that it makes has `labels` from its beginning on, as with [`Context::mkdir_labelled`].
    ///
    /// # Errors
    /// As for [`Context::open`] and [`Context::mkdir_labelled`].
    #[inline]
    pub fn open_labelled(
        &self,
        base: Base<'_>,
        path: &[u8],
        flags: OpenFlags,
        mode: u32,
        labels: Labels<'_>,
    ) -> Result<OpenFile, Errno> {
        let flags = flags.cleaned();
        // One variable, so that the compiler makes it in place.
        let mut opened = self.open_once(base, path, flags, (mode, labels));
        if matches!(opened, Err(Errno::ESTALE)) {
            opened = self.open_again(PathAt { base, path }, flags, (mode, labels));
        }
        opened
    }

    #[cold]
    #[inline(never)]
    fn open_again(&self, at: PathAt<'_>, flags: OpenFlags, new: (u32, Labels<'_>)) -> Result<OpenFile, Errno> {
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        self.again(&[at], follow, &|| self.open_once(at.base, at.path, flags, new))
    }

    #[inline(always)]
    fn open_once(
        &self,
        base: Base<'_>,
        path: &[u8],
        flags: OpenFlags,
        new: (u32, Labels<'_>),
    ) -> Result<OpenFile, Errno> {
        if flags.contains(OpenFlags::TMPFILE) {
            return self.open_unnamed(PathAt { base, path }, flags, new);
        }
        if flags.contains(OpenFlags::CREAT) {
            return self.open_or_create(PathAt { base, path }, flags, new);
        }
        self.open_existing(base, path, flags)
    }

    #[inline]
    fn open_existing(&self, base: Base<'_>, path: &[u8], flags: OpenFlags) -> Result<OpenFile, Errno> {
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        if flags.contains(OpenFlags::TRUNC) && base.resolve.contains(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        let (held, cred, timeout) = self.resolve(base, path, follow, |found| {
            let attr = found.attr()?;
            if flags.contains(OpenFlags::PATH) {
                check_directory(attr.mode, flags)?;
            } else {
                let granted = || may(found, attr.rights(), flags.mask());
                check_open(found.mount.get(), &attr, found.cred, flags, granted)?;
            }
            let timeout = self.state(found.guard).timeout;
            Ok((found.pin()?, found.cred.clone(), timeout))
        })?;
        OpenFile::existing(held, flags, cred, timeout)
    }

    /// Opens, with `CREAT`, the root of the mount at a mount point.
    #[cold]
    fn open_mounted(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, dir: &Attr) -> Result<OpenFile, Errno> {
        let plain = flags - (OpenFlags::CREAT | OpenFlags::EXCL);
        let attr = self.attr(base, path, !flags.contains(OpenFlags::NOFOLLOW))?;
        if attr.is_dir() {
            return Err(Errno::EISDIR);
        }
        self.may_create_in_sticky(dir, &attr)?;
        self.open_existing(base, path, plain)
    }

    /// `CREAT` on an existing file of another user in a sticky directory open to all: fails for all but
    /// regular files and FIFOs; for those only by the policy (`fs.protected_regular`, `fs.protected_fifos`).
    fn may_create_in_sticky(&self, dir: &Attr, attr: &Attr) -> Result<(), Errno> {
        let open_to_all = dir.mode & (S_ISVTX | 0o002) == S_ISVTX | 0o002;
        let foreign = attr.uid != self.credentials().uid && attr.uid != dir.uid;
        let policy = self.policy();
        let free = match attr.kind() {
            S_IFREG => !policy.protected_regular,
            S_IFIFO => !policy.protected_fifos,
            _ => false,
        };
        let refused = open_to_all && foreign && !free;
        if refused { Err(Errno::EACCES) } else { Ok(()) }
    }

    /// `O_TMPFILE`.
    #[cold]
    fn open_unnamed(&self, at: PathAt<'_>, flags: OpenFlags, new: (u32, Labels<'_>)) -> Result<OpenFile, Errno> {
        let (PathAt { base, path }, (mode, labels)) = (at, new);
        if !flags.can_write() || flags.contains(OpenFlags::CREAT) {
            return Err(Errno::EINVAL);
        }
        if base.resolve.contains(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        let dir = self
            .resolve(base, path, true, |found| if found.object.is_dir() { found.pin() } else { Err(Errno::ENOTDIR) })?;
        dir.mount().check_writable()?;
        let (sb, (cred, timeout)) = (dir.sb(), self.cred_and_timeout());
        let what = CreateArgs { mode: S_IFREG | mode & 0o7777, rdev: 0, body: None };
        let dir_inode = dir.dentry().inode().ok_or(Errno::ENOENT)?;
        let mut new = NewNode::new(Attr::default());
        let beside = InitExtra::with_labels(self.new_attr(sb, &what, dir_inode, &cred, &mut new.attr)?, labels);
        let beside = beside.as_deref();
        new.beside = beside;
        let request = Request::lent(&cred, timeout, self.umask_for(sb));
        (new.attr.atime, new.attr.mtime, new.attr.ctime) = (request.now(), request.now(), request.now());
        new.attr.nlink = 0;
        let slot = sb.slot(SlotKind::Entry)?;
        let node = sb.fs().create(&request, dir_inode, None, &mut new)?;
        let valid = sb.valid_in(dir.dentry());
        let fresh = NewInodeArgs { node, attr: &new.attr, link_body: None, valid, rare: ExtraArgs::of(beside) };
        let made = dir.beside(sb.add_unnamed(slot, dir.dentry(), &fresh));
        if let Some(inode) = made.dentry().inode().filter(|_| !flags.contains(OpenFlags::EXCL)) {
            inode.set_linkable();
        }
        sb.begin_xattrs(&request, made.dentry(), beside)?;
        OpenFile::new(made, flags, cred, timeout)
    }

    fn open_or_create(&self, at: PathAt<'_>, flags: OpenFlags, new: (u32, Labels<'_>)) -> Result<OpenFile, Errno> {
        let PathAt { base, path } = at;
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let mut links = 0;
        let mut from: Option<(PathRef, Vec<u8>)> = None;
        // A scoped walk stays in its first scope, wherever a link lies.
        let cwd = base.resolve.is_scoped().then(|| self.root_and_cwd().1);
        let scope = base.scope.or(base.dir).or(cwd.as_ref());
        loop {
            let (base, path) = match &from {
                None => (base, path),
                Some((dir, body)) => (Base { dir: Some(dir), scope, ..base }, body.as_slice()),
            };
            let resolve = base.resolve;
            let found = self.in_parent_after(links, base, path, |entry, may_evict| {
                entry.open_or_create(may_evict, flags, new, resolve)
            });
            if found.is_err() && !base.resolve.is_plain() {
                self.check_end(links, base, path)?;
            }
            match found? {
                OpenEnd::Opened(file) => return Ok(file),
                OpenEnd::Mounted(dir) => return self.open_mounted(base, path, flags, &dir),
                OpenEnd::Link(dir, body, followed) => {
                    from = Some((dir, body));
                    links = followed + 1;
                }
            }
        }
    }

    /// Checks first, if the end of a path cannot be created, that it is within the bounds.
    ///
    /// # Errors
    /// `EXDEV`.
    #[cold]
    fn check_end(&self, links: u32, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        // Linux refuses a name with a slash behind it before it walks on.
        if Last::of(path).is_none_or(|last| last.slash && last.kind == LastKind::Normal) {
            return Ok(());
        }
        match self.resolve_after(links, base, path, false, |_| None, |_| Ok(())) {
            Err(Errno::EXDEV) => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }
}

impl Entry<'_, '_> {
    fn open_or_create(
        &self,
        may_evict: &mut MayEvict,
        flags: OpenFlags,
        new: (u32, Labels<'_>),
        resolve: Resolve,
    ) -> Result<OpenEnd, Errno> {
        let exclusive = flags.contains(OpenFlags::EXCL);
        if self.last.kind != LastKind::Normal {
            return Err(if exclusive { Errno::EEXIST } else { Errno::EISDIR });
        }
        if self.last.slash {
            return Err(Errno::EISDIR);
        }
        let entry = match self.find(may_evict)? {
            Some(entry) => entry,
            None => match self.create_and_open(may_evict, flags, new) {
                // Made meanwhile behind the caches: it is looked up.
                Err(Errno::EEXIST) if !exclusive => self.find(may_evict)?.ok_or(Errno::EEXIST)?,
                opened => return opened,
            },
        };
        if exclusive {
            return Err(Errno::EEXIST);
        }
        self.unlocked().into_iter().for_each(Unlocked::give_back);
        if entry.object().is_mountpoint() {
            // The mount on it is opened instead.
            return Ok(OpenEnd::Mounted(self.dir_inode()?.attr()));
        }
        if entry.object().is_link() && !flags.contains(OpenFlags::NOFOLLOW) {
            return self.link_body(entry, resolve);
        }
        if entry.object().is_dir() {
            return Err(Errno::EISDIR);
        }
        let inode = entry.inode().ok_or(Errno::ENOENT)?;
        let attr = self.sb.attr_now(inode)?;
        let cred = self.caller.cred;
        self.context.may_create_in_sticky(&self.dir_inode()?.attr(), &attr)?;
        let granted = || may_block(self.sb, inode, attr.rights(), cred, flags.mask());
        check_open(self.mount.get(), &attr, cred, flags, granted)?;
        let pinned = self.sb.pin(entry).ok_or(Errno::ENOENT)?;
        OpenFile::existing(self.hold(pinned), flags, cred.clone(), self.caller.timeout).map(OpenEnd::Opened)
    }

    fn create_and_open(
        &self,
        may_evict: &mut MayEvict,
        flags: OpenFlags,
        (mode, labels): (u32, Labels<'_>),
    ) -> Result<OpenEnd, Errno> {
        self.mount.check_writable()?;
        let what = CreateArgs { mode: S_IFREG | mode & 0o7777, rdev: 0, body: None };
        let made = self.make(may_evict, &what, labels)?.ok_or(Errno::ESTALE)?;
        // Created under the directory's lock, which is still held, or held by the operation: no other thread can have removed the
        // name.
        let held = self.hold(self.sb.pin_again(made));
        Ok(OpenEnd::Opened(OpenFile::new(held, flags, self.caller.cred.clone(), self.caller.timeout)?))
    }

    fn link_body(&self, entry: &Dentry, resolve: Resolve) -> Result<OpenEnd, Errno> {
        let (cred, root) = (self.caller.cred, self.context.root_and_cwd().0);
        let resolve =
            if self.context.policy().protected_symlinks { resolve.union(Resolve::PROTECTED_LINKS) } else { resolve };
        let step =
            LinkStep { link: entry, mount: self.mount.get(), cred, resolve, followed: self.links, is_last: true };
        step.check()?;
        let body = self.sb.link_body(entry, &self.caller.request())?;
        // In a scope, the root is the start of the scope: the walk, which continues, looks at its
        // mount.
        leads_to_root(&body, resolve, || resolve.is_scoped() || root.mount().borrow().ptr_eq(self.mount))?;
        let dir = self.hold(self.sb.pin_again(self.dir));
        Ok(OpenEnd::Link(dir, body, self.links))
    }
}

fn check_directory(mode: u32, flags: OpenFlags) -> Result<(), Errno> {
    if flags.contains(OpenFlags::DIRECTORY) && mode & S_IFMT != S_IFDIR { Err(Errno::ENOTDIR) } else { Ok(()) }
}

/// Returns whether a file with the attributes `attr` can be opened with `flags`, which do not have
/// `PATH`. `granted` checks the permission.
#[inline(always)]
pub(super) fn check_open(
    mount: &Mount,
    attr: &Attr,
    cred: &Credentials,
    flags: OpenFlags,
    granted: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    // Then the permission decides alone.
    let is_plain = attr.kind() == S_IFREG
        && mount.flags().is_empty()
        && !flags.intersects(OpenFlags::DIRECTORY.union(OpenFlags::NOATIME));
    if !is_plain {
        check_kind(mount, attr, flags)?;
    }
    granted()?;
    if is_plain { Ok(()) } else { check_opened(mount, attr, cred, flags) }
}

/// Checks after the permission check: the flags of the mount, special files, and privileged flags.
#[cold]
fn check_opened(mount: &Mount, attr: &Attr, cred: &Credentials, flags: OpenFlags) -> Result<(), Errno> {
    mount_allows(mount, attr, flags.mask() & MAY_WRITE)?;
    if matches!(attr.kind(), S_IFCHR | S_IFBLK) && mount.has(MountFlags::NODEV) {
        return Err(Errno::EACCES);
    }
    if flags.contains(OpenFlags::NOATIME) && !cred.owns(attr) {
        return Err(Errno::EPERM);
    }
    // Devices, FIFOs and sockets are names here, without a device or peer.
    if matches!(attr.kind(), S_IFIFO | S_IFSOCK | S_IFCHR | S_IFBLK) { Err(Errno::ENXIO) } else { Ok(()) }
}

/// Returns whether a file with the attributes `attr` can be opened with `flags`. Checks for truncation on a read-only mount
/// before the checks of ownership, as Linux does.
#[cold]
fn check_kind(mount: &Mount, attr: &Attr, flags: OpenFlags) -> Result<(), Errno> {
    check_directory(attr.mode, flags)?;
    match attr.kind() {
        S_IFLNK => Err(Errno::ELOOP),
        S_IFDIR if flags.mask() & MAY_WRITE != 0 => Err(Errno::EISDIR),
        S_IFREG if flags.contains(OpenFlags::TRUNC) => mount_allows(mount, attr, MAY_WRITE),
        _ => Ok(()),
    }
}
