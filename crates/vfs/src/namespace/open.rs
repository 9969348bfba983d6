//! open: from a path to a file that can be read and written.

use super::create::Making;
use super::{Base, Entry, Kind};
use crate::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISVTX};
use crate::context::{Context, Held};
use crate::cred::{Credentials, MAY_READ, MAY_WRITE};
use crate::dentry::{DIR, Dentry, LINK};
use crate::errno::Errno;
use crate::file::OpenFile;
use crate::slot::Pinned;
use crate::walk::rcu_walk::MAX_LINKS;

/// Flags of `open(2)`, by Linux's numbers on x86-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags(u32);

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

    /// Flags out of Linux's numbers. Those that mean nothing here (`O_CLOEXEC`, `O_NONBLOCK`, ...) are kept and ignored.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The numbers again.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Those of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are here.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the file can be read.
    #[must_use]
    pub const fn can_read(self) -> bool {
        matches!(self.0 & 3, 0 | 2)
    }

    /// Whether the file can be written.
    #[must_use]
    pub const fn can_write(self) -> bool {
        matches!(self.0 & 3, 1 | 2)
    }

    /// What must be allowed on a file that was there before.
    fn mask(self) -> u32 {
        let read = if self.can_read() { MAY_READ } else { 0 };
        let write = if self.can_write() || self.has(Self::TRUNC) { MAY_WRITE } else { 0 };
        read | write
    }
}

/// What stands at the last component of a path that is opened with `CREAT`.
enum Last {
    Opened(OpenFile),
    /// A symbolic link to be followed: from this directory on by this text, after so many others.
    Link(Held, Vec<u8>, u32),
}

impl Context {
    /// Opens what `path` leads to, or makes it: `open(2)`. `mode` is that of a new file, masked by the umask.
    ///
    /// # Errors
    /// `EEXIST`, `EISDIR`, `ENOTDIR`, `ELOOP` (a symbolic link with `NOFOLLOW`), `EACCES`, `ENXIO` for a device, FIFO or socket,
    /// `EINVAL` for `CREAT` with `DIRECTORY`, those of a walk, and the file system's.
    #[inline]
    pub fn open(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        if flags.has(OpenFlags::CREAT) {
            return self.open_or_create(base, path, flags, mode);
        }
        self.open_existing(base, path, flags)
    }

    #[inline]
    fn open_existing(&self, base: Base<'_>, path: &[u8], flags: OpenFlags) -> Result<OpenFile, Errno> {
        let follow = !flags.has(OpenFlags::NOFOLLOW);
        let (pinned, cred) = self.resolve(base, path, follow, |found| {
            let attr = found.inode()?.attr();
            check_kind(attr.mode, flags)?;
            found.cred.may(&attr, flags.mask())?;
            check_special(attr.mode)?;
            Ok((found.pin()?, found.cred.clone()))
        })?;
        self.opened(pinned, flags, cred)
    }

    /// Wraps a dentry that may be opened; cuts the file if that was asked.
    #[inline]
    fn opened(&self, pinned: Pinned, flags: OpenFlags, cred: Credentials) -> Result<OpenFile, Errno> {
        let file = OpenFile::new(Held::new(self.shared_tree().clone(), pinned), flags, cred);
        if flags.has(OpenFlags::TRUNC) {
            file.truncate()?;
        }
        Ok(file)
    }

    fn open_or_create(&self, base: Base<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> Result<OpenFile, Errno> {
        if flags.has(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let mut links = 0;
        let mut from: Option<(Held, Vec<u8>)> = None;
        loop {
            let (base, path) = from.as_ref().map_or((base, path), |(dir, body)| (Some(dir), body.as_slice()));
            match self.in_parent_after(links, base, path, |entry| entry.open_or_create(flags, mode))? {
                Last::Opened(file) => return Ok(file),
                Last::Link(_, _, followed) if followed == MAX_LINKS => return Err(Errno::ELOOP),
                Last::Link(dir, body, followed) => {
                    from = Some((dir, body));
                    links = followed + 1;
                }
            }
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
            let what = Making { mode: S_IFREG | mode & 0o7777, rdev: 0, body: None };
            let made = self.make(&what)?;
            // Made under the directory's lock, which is still held: nobody can have taken the name away.
            let held = Held::new(self.context.shared_tree().clone(), self.tree.pin_again(made));
            return Ok(Last::Opened(OpenFile::new(held, flags, self.context.credentials())));
        };
        if exclusive {
            return Err(Errno::EEXIST);
        }
        if entry.has(LINK) && !flags.has(OpenFlags::NOFOLLOW) {
            return self.link_body(entry);
        }
        if entry.has(DIR) {
            return Err(Errno::EISDIR);
        }
        let attr = entry.inode().ok_or(Errno::ENOENT)?.attr();
        let cred = self.context.credentials();
        self.may_create_in_sticky(&cred, &attr)?;
        check_kind(attr.mode, flags)?;
        cred.may(&attr, flags.mask())?;
        check_special(attr.mode)?;
        let pinned = self.tree.pin(entry).ok_or(Errno::ENOENT)?;
        self.context.opened(pinned, flags, cred).map(Last::Opened)
    }

    /// `CREAT` on what is there already, belongs to somebody else and lies in a sticky directory open to all: refused for all but
    /// regular files and FIFOs, which Linux refuses only where `fs.protected_regular` and `fs.protected_fifos` say so.
    fn may_create_in_sticky(&self, cred: &Credentials, attr: &Attr) -> Result<(), Errno> {
        let dir = self.dir_inode()?.attr();
        let open_to_all = dir.mode & (S_ISVTX | 0o002) == S_ISVTX | 0o002;
        let foreign = attr.uid != cred.uid && attr.uid != dir.uid;
        let refused = open_to_all && foreign && !matches!(attr.kind(), S_IFREG | S_IFIFO);
        if refused { Err(Errno::EACCES) } else { Ok(()) }
    }

    fn link_body(&self, entry: &Dentry) -> Result<Last, Errno> {
        let dir = Held::new(self.context.shared_tree().clone(), self.tree.pin_again(self.dir));
        let guard = self.tree.domain.read();
        let inode = entry.inode().ok_or(Errno::ENOENT)?;
        let body = inode.link_body.load(&guard).ok_or(Errno::EIO)?.to_vec();
        Ok(Last::Link(dir, body, self.links))
    }
}

/// Whether what has `mode` can be opened with `flags`.
fn check_kind(mode: u32, flags: OpenFlags) -> Result<(), Errno> {
    if flags.has(OpenFlags::DIRECTORY) && mode & S_IFMT != S_IFDIR {
        return Err(Errno::ENOTDIR);
    }
    match mode & S_IFMT {
        S_IFLNK => Err(Errno::ELOOP),
        S_IFDIR if flags.mask() & MAY_WRITE != 0 => Err(Errno::EISDIR),
        _ => Ok(()),
    }
}

/// Devices, FIFOs and sockets are nodes here, with nobody behind them. Said only to who may open them.
fn check_special(mode: u32) -> Result<(), Errno> {
    match mode & S_IFMT {
        S_IFIFO | S_IFSOCK | S_IFCHR | S_IFBLK => Err(Errno::ENXIO),
        _ => Ok(()),
    }
}
