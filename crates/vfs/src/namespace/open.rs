//! open: from a path to a file that can be read and written.

use super::create::Making;
use super::{Base, Entry, Kind};
use crate::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISVTX};
use crate::context::{Context, Held};
use crate::cred::{Credentials, MAY_READ, MAY_WRITE};
use crate::dcache::Fresh;
use crate::dentry::{DIR, Dentry, LINK, MOUNTED};
use crate::errno::Errno;
use crate::file::OpenFile;
use crate::flag_set::flag_set;
use crate::mount::{Mount, MountFlags};
use crate::permission::{may, may_block, mount_allows};
use crate::walk::arrive::protected_link;
use crate::walk::rcu_walk::MAX_LINKS;
use crate::walk::resolve::Resolve;

/// Flags of `open(2)`, by Linux's numbers on x86-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags(u32);

flag_set!(OpenFlags);

impl OpenFlags {
    /// Read only.
    pub const RDONLY: Self = Self(0);
    /// Write only.
    pub const WRONLY: Self = Self(1);
    /// Read and write.
    pub const RDWR: Self = Self(2);
    /// Make the file if it is not there.
    pub const CREAT: Self = Self(0o100);
    /// With `CREAT`: it must not be there.
    pub const EXCL: Self = Self(0o200);
    /// Cut it to nothing.
    pub const TRUNC: Self = Self(0o1000);
    /// Each write goes to the end.
    pub const APPEND: Self = Self(0o2000);
    /// It must be a directory.
    pub const DIRECTORY: Self = Self(0o200_000);
    /// It must not be a symbolic link.
    pub const NOFOLLOW: Self = Self(0o400_000);
    /// Do not record accesses; for the owner.
    pub const NOATIME: Self = Self(0o1_000_000);
    /// A place, not an open file: nothing can be read or written.
    pub const PATH: Self = Self(0o10_000_000);
    /// A file without a name, in the directory at the path; [`Context::link`] gives it one, unless `EXCL` is there too.
    pub const TMPFILE: Self = Self(0o20_000_000 | 0o200_000);

    /// What `open(2)` knows; others are `EINVAL` to `openat2(2)` only, and kept and ignored here.
    const ACCESS_AND_PATH: u32 = 0o10_000_000 | 0o200_000 | 0o400_000;

    /// Flags out of Linux's numbers. Those that mean nothing here (`O_CLOEXEC`, `O_NONBLOCK`, ...) are kept and ignored.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether the file can be read.
    #[must_use]
    pub const fn can_read(self) -> bool {
        matches!(self.0 & 3, 0 | 2) && !self.has(Self::PATH)
    }

    /// Whether the file can be written.
    #[must_use]
    pub const fn can_write(self) -> bool {
        matches!(self.0 & 3, 1 | 2) && !self.has(Self::PATH)
    }

    /// With `PATH`, nothing but `DIRECTORY` and `NOFOLLOW` means anything.
    fn cleaned(self) -> Self {
        if self.has(Self::PATH) { Self(self.0 & Self::ACCESS_AND_PATH) } else { self }
    }

    /// What must be allowed on a file that was there before.
    pub(super) fn mask(self) -> u32 {
        let read = if self.can_read() { MAY_READ } else { 0 };
        let write = if self.can_write() || self.has(Self::TRUNC) { MAY_WRITE } else { 0 };
        read | write
    }
}

/// What stands at the last component of a path that is opened with `CREAT`.
enum Last {
    Opened(OpenFile),
    /// Something is mounted there, in a directory with these attributes.
    Mounted(Attr),
    /// A symbolic link to be followed: from this directory on by this text, after so many others.
    Link(Held, Vec<u8>, u32),
}

impl Context {
    /// Opens what `path` leads to, or makes it: `open(2)`. `mode` is that of a new file, masked by the umask.
    ///
    /// # Errors
    /// `EEXIST`, `EISDIR`, `ENOTDIR`, `ELOOP` (a symbolic link with `NOFOLLOW`), `EACCES`, `ENXIO` for a device, FIFO or socket,
    /// `EINVAL` for `CREAT` with `DIRECTORY` and for `TMPFILE` without writing, `EPERM` for `NOATIME` by another than the owner,
    /// `EROFS`, `EACCES` for a device where devices are not opened; `EOPNOTSUPP` for `TMPFILE` where there is no such thing; those of
    /// a walk, and the file system's.
    #[inline]
    pub fn open(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        let flags = flags.cleaned();
        if flags.has(OpenFlags::TMPFILE) {
            return self.open_unnamed(base, path, flags, mode);
        }
        if flags.has(OpenFlags::CREAT) {
            return self.open_or_create(base, path, flags, mode);
        }
        self.open_existing(base, path, flags)
    }

    #[inline]
    fn open_existing(&self, base: Base<'_>, path: &[u8], flags: OpenFlags) -> Result<OpenFile, Errno> {
        let follow = !flags.has(OpenFlags::NOFOLLOW);
        if flags.has(OpenFlags::TRUNC) && base.resolve.has(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        let (held, cred) = self.resolve(base, path, follow, |found| {
            let attr = found.attr()?;
            if flags.has(OpenFlags::PATH) {
                check_directory(attr.mode, flags)?;
                return Ok((found.pin()?, found.cred.clone()));
            }
            check_kind(attr.mode, flags)?;
            check_cut(found.mount.get(), &attr, flags)?;
            may(found, &attr, flags.mask())?;
            check_opened(found.mount.get(), &attr, found.cred, flags)?;
            Ok((found.pin()?, found.cred.clone()))
        })?;
        self.opened(held, flags, cred)
    }

    /// Wraps a place that may be opened; cuts the file if that was asked.
    #[inline]
    pub(super) fn opened(&self, held: Held, flags: OpenFlags, cred: Credentials) -> Result<OpenFile, Errno> {
        let file = OpenFile::new(held, flags, cred)?;
        if flags.has(OpenFlags::TRUNC) {
            file.truncate()?;
        }
        Ok(file)
    }

    /// Opens, for `CREAT`, a mount point: what is mounted there.
    #[cold]
    fn open_mounted(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, dir: &Attr) -> Result<OpenFile, Errno> {
        let plain = OpenFlags(flags.0 & !(OpenFlags::CREAT.0 | OpenFlags::EXCL.0));
        let attr = self.attr(base, path, !flags.has(OpenFlags::NOFOLLOW))?;
        if attr.is_dir() {
            return Err(Errno::EISDIR);
        }
        self.may_create_in_sticky(dir, &attr)?;
        self.open_existing(base, path, plain)
    }

    /// `CREAT` on what is there already, belongs to somebody else and lies in a sticky directory open to all: refused for all but
    /// regular files and FIFOs, which Linux refuses only where `fs.protected_regular` and `fs.protected_fifos` say so.
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
    fn open_unnamed(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        if !flags.can_write() || flags.has(OpenFlags::CREAT) {
            return Err(Errno::EINVAL);
        }
        if base.resolve.has(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        let dir =
            self.resolve(
                base,
                path,
                true,
                |found| {
                    if found.object & DIR == 0 { Err(Errno::ENOTDIR) } else { found.pin() }
                },
            )?;
        dir.mount().check_writable()?;
        let (sb, cred) = (dir.sb(), self.credentials());
        let what = Making { mode: S_IFREG | mode & 0o7777, rdev: 0, body: None };
        let dir_inode = dir.dentry().inode().ok_or(Errno::ENOENT)?;
        let mut attr = Attr::default();
        let acls = self.new_attr(sb, &what, (dir_inode, &dir_inode.attr()), &cred, &mut attr)?;
        let request = self.request();
        (attr.atime, attr.mtime, attr.ctime) = (request.now, request.now, request.now);
        attr.nlink = 0;
        let slot = sb.slot(crate::cache::Kind::Entry, None)?;
        let node = sb.fs.create_unnamed(&request, dir_inode, &mut attr)?;
        let new = Fresh { node, attr: &attr, link_body: None, valid: sb.default_valid, told: None };
        let made = dir.beside(sb.add_unnamed(slot, dir.dentry(), &new));
        if let Some(inode) = made.dentry().inode().filter(|_| !flags.has(OpenFlags::EXCL)) {
            inode.set_linkable();
        }
        if let Some(acls) = acls {
            sb.inherit_acls(&request, made.dentry(), acls);
        }
        OpenFile::new(made, flags, cred)
    }

    fn open_or_create(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        if flags.has(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let mut links = 0;
        let mut from: Option<(Held, Vec<u8>)> = None;
        // A scoped walk stays in the scope that it began in, wherever a link lies.
        let cwd = base.resolve.is_scoped().then(|| self.root_and_cwd().1);
        let scope = base.scope.or(base.dir).or(cwd.as_ref());
        loop {
            let (base, path) = match &from {
                None => (base, path),
                Some((dir, body)) => (base.going_on_from(dir, scope), body.as_slice()),
            };
            let found = self.in_parent_after(links, base, path, |entry| entry.open_or_create(flags, mode));
            if found.is_err() && !base.resolve.is_plain() && path.last() != Some(&b'/') {
                self.check_end(links, base, path)?;
            }
            match found? {
                Last::Opened(file) => return Ok(file),
                Last::Mounted(dir) => return self.open_mounted(base, path, flags, &dir),
                Last::Link(dir, _, followed) if followed == MAX_LINKS || may_not_follow(&dir, base) => {
                    return Err(Errno::ELOOP);
                }
                Last::Link(_, body, _) if body.first() == Some(&b'/') && base.resolve.has(Resolve::BENEATH) => {
                    return Err(Errno::EXDEV);
                }
                Last::Link(dir, body, followed) => {
                    from = Some((dir, body));
                    links = followed + 1;
                }
            }
        }
    }
}

impl Context {
    /// That the end of a path which cannot be made leads out of its bounds is said before what else is wrong with it.
    ///
    /// # Errors
    /// `EXDEV`.
    #[cold]
    fn check_end(&self, links: u32, base: Base<'_>, path: &[u8]) -> Result<(), Errno> {
        match self.resolve_after(links, base, path, false, |_| Ok(())) {
            Err(Errno::EXDEV) => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }
}

impl Entry<'_, '_> {
    fn open_or_create(&self, flags: OpenFlags, mode: u32) -> Result<Last, Errno> {
        let exclusive = flags.has(OpenFlags::EXCL);
        if self.last.kind != Kind::Normal {
            return Err(if exclusive { Errno::EEXIST } else { Errno::EISDIR });
        }
        if self.last.slash {
            return Err(Errno::EISDIR);
        }
        let Some(entry) = self.find()? else {
            self.mount.check_writable()?;
            let what = Making { mode: S_IFREG | mode & 0o7777, rdev: 0, body: None };
            let made = self.make(&what)?;
            // Made under the directory's lock, which is still held: nobody can have taken the name away.
            let held = self.hold(self.sb.pin_again(made));
            return Ok(Last::Opened(OpenFile::new(held, flags, self.context.credentials())?));
        };
        if exclusive {
            return Err(Errno::EEXIST);
        }
        if entry.has(MOUNTED) {
            // What is mounted on it is opened, not it.
            return Ok(Last::Mounted(self.dir_inode()?.attr()));
        }
        if entry.has(LINK) && !flags.has(OpenFlags::NOFOLLOW) {
            return self.link_body(entry);
        }
        if entry.has(DIR) {
            return Err(Errno::EISDIR);
        }
        let inode = entry.inode().ok_or(Errno::ENOENT)?;
        let attr = self.sb.attr_now(inode)?;
        let cred = self.context.credentials();
        self.context.may_create_in_sticky(&self.dir_inode()?.attr(), &attr)?;
        check_kind(attr.mode, flags)?;
        check_cut(self.mount, &attr, flags)?;
        may_block(self.sb, (inode, &attr), &cred, flags.mask())?;
        check_opened(self.mount, &attr, &cred, flags)?;
        let pinned = self.sb.pin(entry).ok_or(Errno::ENOENT)?;
        self.context.opened(self.hold(pinned), flags, cred).map(Last::Opened)
    }

    fn link_body(&self, entry: &Dentry) -> Result<Last, Errno> {
        let dir = self.hold(self.sb.pin_again(self.dir));
        if self.context.policy().protected_symlinks {
            protected_link(entry, &self.context.credentials())?;
        }
        let body = self.sb.link_body(entry, &self.context.request())?;
        Ok(Last::Link(dir, body, self.links))
    }
}

/// Whether symbolic links in `dir` are not to be followed.
fn may_not_follow(dir: &Held, base: Base<'_>) -> bool {
    base.resolve.has(Resolve::NO_SYMLINKS) || dir.mount().has(MountFlags::NOSYMFOLLOW)
}

fn check_directory(mode: u32, flags: OpenFlags) -> Result<(), Errno> {
    if flags.has(OpenFlags::DIRECTORY) && mode & S_IFMT != S_IFDIR { Err(Errno::ENOTDIR) } else { Ok(()) }
}

/// What is said only to who may open the file: what its mount forbids, that nobody is behind it, and whose privilege a flag is.
pub(super) fn check_opened(mount: &Mount, attr: &Attr, cred: &Credentials, flags: OpenFlags) -> Result<(), Errno> {
    mount_allows(mount, attr, flags.mask() & MAY_WRITE)?;
    if matches!(attr.kind(), S_IFCHR | S_IFBLK) && mount.has(MountFlags::NODEV) {
        return Err(Errno::EACCES);
    }
    if flags.has(OpenFlags::NOATIME) && !cred.owns(attr) {
        return Err(Errno::EPERM);
    }
    check_special(attr.mode)
}

/// Whether what has `mode` can be opened with `flags`.
pub(super) fn check_kind(mode: u32, flags: OpenFlags) -> Result<(), Errno> {
    check_directory(mode, flags)?;
    match mode & S_IFMT {
        S_IFLNK => Err(Errno::ELOOP),
        S_IFDIR if flags.mask() & MAY_WRITE != 0 => Err(Errno::EISDIR),
        _ => Ok(()),
    }
}

/// That a read-only mount lets nothing be cut is said before anyone asks whose file it is; as Linux does.
pub(super) fn check_cut(mount: &Mount, attr: &Attr, flags: OpenFlags) -> Result<(), Errno> {
    if flags.has(OpenFlags::TRUNC) && attr.kind() == S_IFREG { mount_allows(mount, attr, MAY_WRITE) } else { Ok(()) }
}

/// Devices, FIFOs and sockets are nodes here, with nobody behind them. Said only to who may open them.
fn check_special(mode: u32) -> Result<(), Errno> {
    match mode & S_IFMT {
        S_IFIFO | S_IFSOCK | S_IFCHR | S_IFBLK => Err(Errno::ENXIO),
        _ => Ok(()),
    }
}
