//! Ids: files that are found again without their names, also after a restart.
//!
//! # What it is
//! An id has the host's handle of the file and its time of birth. The id of a file that is not a
//! directory also has the handle of the directory in which the file was found last. Where the host
//! has no handles, or the process may not open files by handles (`CAP_DAC_READ_SEARCH`), there are
//! no ids. Files of other devices below the source have none either.
//!
//! A handle leads to any file of the host's file system. So an opened file is used only if it is
//! below the source *now*:
//! 1. A directory: by `..`, step by step, to the source.
//! 2. Another file: by a name that leads to it below the source. The file system searches for the
//!    name at its recorded place, in the directory of the id, at the path that the kernel has for
//!    it, and at last in all directories. The last search takes long in a large tree. It is made for
//!    a file that was moved to another directory after the id was made, has no record, and is not in
//!    the kernel's cache; for a file that lost one of several names; and for a file outside of the
//!    source.
//!
//! A file found by an id is kept open while the VFS has it, since its name may differ from the
//! recorded name.
//!
//! # Limitations
//! The search misses a file in a directory that moves during the search: `ESTALE`.
//!
//! If the VFS has no room for a file that was found, the file stays open until its name is looked up.
//!
//! # How it is locked
//! No lock is held during a call to the host.
//!
//! # Where it comes from
//! `name_to_handle_at(2)`; `subtree_check` of NFS servers, `exports(5)`.

use crate::descriptors::Place;
use crate::errno::errno;
use crate::host::{self, ProcPath};
use crate::identity::{birth, dev_of, is_dir};
use crate::node::{Life, NameAt};
use crate::options::AccessTimes;
use crate::shared::Shared;
use crate::system;
use core::mem::MaybeUninit;
use rustix::fs::{FileType, OFlags, Statx};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use vfs::{Errno, FileId, Inode, NewInode, PATH_MAX};

/// The first byte of each id.
const VERSION: u8 = 1;

/// The deepest nesting of directories; more means that they move all the time.
const MAX_DEPTH: usize = 1 << 16;

/// Attempts to open by a handle after `ENOMEM`.
const NOMEM_TRIES: usize = 100;

/// Bytes of one read of a directory.
const PIECE: usize = 32 << 10;

/// A handle of the host.
#[derive(Clone, Copy)]
struct Handle<'a> {
    kind: u8,
    bytes: &'a [u8],
}

/// An entry of a directory: its name, inode number and type.
type Listed = (Box<[u8]>, u64, FileType);

/// The parts of an id.
struct Parts<'a> {
    own: Handle<'a>,
    born: i64,
    /// The directory where the file was found.
    dir: Option<Handle<'a>>,
}

/// A file that a handle led to.
struct Found {
    fd: OwnedFd,
    stat: Statx,
}

impl Found {
    /// Returns whether `other` has attributes of this file.
    fn is(&self, other: &Statx) -> bool {
        let own = &self.stat;
        own.stx_ino == other.stx_ino && dev_of(own) == dev_of(other) && birth(own) == birth(other)
    }
}

impl<'a> Handle<'a> {
    /// Takes a handle off the beginning of `bytes`.
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (&[kind, len], rest) = bytes.split_first_chunk()?;
        let (own, rest) = rest.split_at_checked(len.into())?;
        *bytes = rest;
        Some(Self { kind, bytes: own })
    }
}

impl<'a> Parts<'a> {
    /// # Errors
    /// `ESTALE`: this is not an id of a host directory.
    fn of(id: &'a FileId) -> Result<Self, Errno> {
        let parse = || {
            let mut rest = id.as_bytes().strip_prefix(&[VERSION])?;
            let born;
            (born, rest) = rest.split_first_chunk()?;
            let own = Handle::take(&mut rest)?;
            let dir = if rest.is_empty() { None } else { Some(Handle::take(&mut rest)?) };
            rest.is_empty().then_some(Self { own, born: i64::from_le_bytes(*born), dir })
        };
        parse().ok_or(Errno::ESTALE)
    }
}

impl Shared {
    /// See [`vfs::FileSystem::id`].
    pub(crate) fn id(&self, inode: &Inode) -> Option<FileId> {
        let node = self.node(inode).ok().filter(|node| self.has_handles && !node.is_elsewhere)?;
        let fd = self.path_fd(node).ok()?;
        let found = host::stat_fd(fd.as_fd()).ok()?;
        let place = if is_dir(&found) { None } else { self.place(node).ok().flatten() };
        self.id_of(fd.as_fd(), &found, place.as_ref().map(|place| place.dir.as_fd()))
    }

    fn id_of(&self, fd: BorrowedFd<'_>, stat: &Statx, dir: Option<BorrowedFd<'_>>) -> Option<FileId> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.born(stat).to_le_bytes());
        bytes.extend(handle_bytes(fd)?);
        // The handle of the directory is left out if both do not fit into an id.
        let dir = dir.and_then(handle_bytes).filter(|dir| bytes.len() + dir.len() <= FileId::MAX);
        bytes.extend(dir.into_iter().flatten());
        FileId::new(&bytes).ok()
    }

    /// Returns when a file was made, or 0 if the host does not keep that time.
    fn born(&self, stat: &Statx) -> i64 {
        birth(stat).filter(|_| self.identities.has_btime).unwrap_or(0)
    }

    /// See [`vfs::FileSystem::by_id`].
    pub(crate) fn by_id(&self, id: &FileId) -> Result<NewInode, Errno> {
        let parts = Parts::of(id)?;
        let found = self.open_id(&parts)?;
        let attr = self.identities.attr(&found.stat);
        let valid = self.options.policy.valid();
        let mut new = NewInode { node: self.identities.node(&found.stat), attr, valid, ..NewInode::default() };
        if is_dir(&found.stat) {
            self.check_inside(&found)?;
            if self.applies_acls() {
                host::read_acls(&found.fd, b".", &mut new);
            }
            return Ok(new);
        }
        let recorded = self.recorded(&found);
        let is_recorded = recorded.is_some();
        let place = recorded.map_or_else(|| self.place_of(&found, parts.dir), Ok)?;
        if self.applies_acls() && attr.kind() != vfs::S_IFLNK {
            host::read_acls(&place.dir, &place.name, &mut new);
        }
        let Found { fd, stat } = found;
        let (node, _) = self.table.record(&self.identities, &stat, NameAt { dir: 0, name: b"" }, |_| false);
        let fd = self.keep_path(&node, fd);
        let mut state = node.state();
        // A file that the VFS has already is reached as before, unless the file lost its name while
        // it could not be kept open.
        if !(state.is_attached() && is_recorded) && state.life != Life::Dropped {
            state.is_pinned = true;
            // The budget may have closed the file again already.
            if state.fds() == 0 {
                state.path = Some(fd);
                self.budget.count(1, 0);
            }
        }
        new.node = node.id;
        Ok(new)
    }

    /// See [`vfs::FileSystem::parent`].
    pub(crate) fn parent(&self, id: &FileId) -> Result<(FileId, Box<[u8]>), Errno> {
        let parts = Parts::of(id)?;
        let found = self.open_id(&parts)?;
        let (dir, name) = if is_dir(&found.stat) {
            let up = self.up(&found)?;
            let name = self.name_in(&up.fd, &found)?.ok_or(Errno::ESTALE)?;
            (Arc::new(up.fd), name)
        } else {
            let Place { dir, name } = self.place_of(&found, parts.dir)?;
            (dir, name)
        };
        let stat = host::stat_fd(dir.as_fd()).map_err(errno)?;
        Ok((self.id_of(dir.as_fd(), &stat, None).ok_or(Errno::ESTALE)?, name))
    }

    /// Opens the file of an id, wherever it is.
    ///
    /// # Errors
    /// `ESTALE`: the file is removed; `EOPNOTSUPP` without ids.
    fn open_id(&self, parts: &Parts<'_>) -> Result<Found, Errno> {
        if !self.has_handles {
            return Err(Errno::EOPNOTSUPP);
        }
        let found = self.open_handle(parts.own)?;
        let is_it = found.stat.stx_nlink != 0 && self.born(&found.stat) == parts.born;
        if is_it { Ok(found) } else { Err(Errno::ESTALE) }
    }

    fn open_handle(&self, Handle { kind, bytes }: Handle<'_>) -> Result<Found, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let open = || system::open_by_handle(&self.root_fd, (kind.into(), bytes), flags);
        let mut fd = self.with_room(open);
        // This is also the error for a number that gets a new file at this moment.
        for _ in 0..NOMEM_TRIES {
            if fd.as_ref().err() != Some(&HostErrno::NOMEM) {
                break;
            }
            std::thread::yield_now();
            fd = self.with_room(open);
        }
        let fd = fd.map_err(|error| match errno(error) {
            // The handle has bytes of another file system.
            Errno::EINVAL | Errno::ENOENT => Errno::ESTALE,
            errno => errno,
        })?;
        let stat = host::stat_fd(fd.as_fd()).map_err(errno)?;
        if dev_of(&stat) == self.identities.dev { Ok(Found { fd, stat }) } else { Err(Errno::ESTALE) }
    }

    /// Checks that a directory is the source, or is below it.
    ///
    /// # Errors
    /// `ESTALE`.
    fn check_inside(&self, dir: &Found) -> Result<(), Errno> {
        let is_root = |stat: &Statx| self.identities.is(stat, self.root.id, self.root.ino);
        if is_root(&dir.stat) {
            return Ok(());
        }
        let mut at = self.up(dir)?;
        for _ in 0..MAX_DEPTH {
            if is_root(&at.stat) {
                return Ok(());
            }
            at = self.up(&at)?;
        }
        Err(Errno::ESTALE)
    }

    /// Returns the directory above another one: `ESTALE` above the root of the host's file system.
    fn up(&self, dir: &Found) -> Result<Found, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = self.with_room(|| system::openat(dir.fd.as_fd(), b"..", flags)).map_err(errno)?;
        let stat = host::stat_fd(fd.as_fd()).map_err(errno)?;
        let is_above = dev_of(&stat) == self.identities.dev && !dir.is(&stat);
        if is_above { Ok(Found { fd, stat }) } else { Err(Errno::ESTALE) }
    }

    /// Returns a name by which a file, which is not a directory, is found below the source.
    ///
    /// # Errors
    /// `ESTALE`.
    fn place_of(&self, found: &Found, dir: Option<Handle<'_>>) -> Result<Place, Errno> {
        if let Some(place) = self.recorded(found) {
            return Ok(place);
        }
        if let Some(dir) = dir
            && let Some(place) = stale_is_none(self.place_below(found, dir))?
        {
            return Ok(place);
        }
        if let Some(place) = stale_is_none(self.place_of_path(found))? {
            return Ok(place);
        }
        self.search(found)?.ok_or(Errno::ESTALE)
    }

    /// Returns the place that the file's record has, if the file is there.
    fn recorded(&self, found: &Found) -> Option<Place> {
        let node = self.table.get(self.identities.node(&found.stat))?;
        let place = self.place(&node).ok()??;
        self.is_at(found, &place).then_some(place)
    }

    /// Returns the place in the directory that an id has.
    fn place_below(&self, found: &Found, dir: Handle<'_>) -> Result<Place, Errno> {
        let dir = self.open_handle(dir)?;
        if !is_dir(&dir.stat) {
            return Err(Errno::ESTALE);
        }
        self.check_inside(&dir)?;
        let name = self.name_in(&dir.fd, found)?.ok_or(Errno::ESTALE)?;
        Ok(Place { dir: Arc::new(dir.fd), name })
    }

    /// Returns the place that the kernel has in its cache. The path is only a hint: each name is
    /// opened below the source.
    fn place_of_path(&self, found: &Found) -> Result<Place, Errno> {
        let path = |fd: BorrowedFd<'_>| host::read_link(rustix::fs::CWD, ProcPath::new(fd).bytes(), PATH_MAX as u64);
        let (source, path) = (path(self.root_fd.as_fd())?, path(found.fd.as_fd())?);
        let below = path.strip_prefix(&*source).ok_or(Errno::ESTALE)?;
        let mut names: Vec<Box<[u8]>> =
            below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(Box::from).collect();
        let name = names.pop().ok_or(Errno::ESTALE)?;
        let place = Place { dir: Arc::new(self.open_below(&names)?), name };
        if self.is_at(found, &place) { Ok(place) } else { Err(Errno::ESTALE) }
    }

    /// Searches all directories below the source for the file.
    #[cold]
    fn search(&self, found: &Found) -> Result<Option<Place>, Errno> {
        let top = Arc::new(self.open_below(&[])?);
        // Searches depth first, so that only the directories above the current one are open.
        let mut left: Vec<(Arc<OwnedFd>, Box<[u8]>)> = vec![(top, b".".as_slice().into())];
        while let Some((above, name)) = left.pop() {
            // A directory that is moved or removed meanwhile is not searched.
            let dir = self.open_at(above.as_fd(), &name, OFlags::PATH | OFlags::DIRECTORY).map_err(errno);
            let Some(dir) = stale_is_none(dir)? else { continue };
            let dir = Arc::new(dir);
            for (name, ino, kind) in stale_is_none(self.entries(&dir))?.unwrap_or_default() {
                let place = Place { dir: dir.clone(), name };
                if ino == found.stat.stx_ino && self.is_at(found, &place) {
                    return Ok(Some(place));
                }
                if matches!(kind, FileType::Directory | FileType::Unknown) {
                    left.push((dir.clone(), place.name));
                }
            }
        }
        Ok(None)
    }

    /// Returns the directory that these names lead to from the source.
    fn open_below(&self, names: &[Box<[u8]>]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut dir = self.open_at(self.root_fd.as_fd(), b".", flags).map_err(errno)?;
        for name in names {
            host::check_name(name).map_err(|_| Errno::ESTALE)?;
            dir = self.open_at(dir.as_fd(), name, flags).map_err(errno)?;
        }
        Ok(dir)
    }

    /// Returns whether the file is at this place.
    fn is_at(&self, found: &Found, place: &Place) -> bool {
        self.stat_at(place.dir.as_fd(), &place.name).is_ok_and(|stat| found.is(&stat))
    }

    /// Returns a name of the file in a directory.
    fn name_in(&self, dir: &OwnedFd, found: &Found) -> Result<Option<Box<[u8]>>, Errno> {
        let names = self.entries(dir)?.into_iter().filter(|(_, ino, _)| *ino == found.stat.stx_ino);
        let is_it = |name: &[u8]| self.stat_at(dir.as_fd(), name).is_ok_and(|stat| found.is(&stat));
        Ok(names.map(|(name, ..)| name).find(|name| is_it(name)))
    }

    /// Returns all entries of a directory.
    fn entries(&self, dir: &OwnedFd) -> Result<Vec<Listed>, Errno> {
        let fd = self.open_at(dir.as_fd(), b".", OFlags::RDONLY | OFlags::DIRECTORY).map_err(errno)?;
        if self.options.access_times != AccessTimes::Host {
            host::keep_access_time(&fd);
        }
        let (mut buf, mut entries) = ([MaybeUninit::<u8>::uninit(); PIECE], Vec::new());
        loop {
            let is_more = system::read_entries(&fd, &mut buf, |entry| {
                let name = entry.file_name().to_bytes();
                if host::check_name(name).is_ok() {
                    entries.push((name.into(), entry.ino(), entry.file_type()));
                }
            });
            if !is_more.map_err(errno)? {
                return Ok(entries);
            }
        }
    }
}

/// Returns the handle of a file as bytes of an id: type, length and bytes.
fn handle_bytes(fd: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let (kind, bytes) = system::name_to_handle(fd).ok()?;
    let head = [u8::try_from(kind).ok()?, u8::try_from(bytes.len()).ok()?];
    Some([&head[..], &bytes].concat())
}

/// Turns the errors for a file that is not at its place into `None`.
fn stale_is_none<T>(found: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ESTALE | Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EXDEV) => Ok(None),
        Err(errno) => Err(errno),
    }
}
