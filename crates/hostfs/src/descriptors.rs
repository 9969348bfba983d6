//! From a record to a descriptor.
//!
//! # What it is
//! A record's `O_PATH` descriptor is opened when it is first needed: by the directory's descriptor
//! and the name in it. If the directory has no descriptor, its descriptor is opened first in the
//! same way, up to a directory that is open; the source is always open. A thread uses an opened
//! file only after a check that it is the record's file.
//!
//! # How it is locked
//! No lock is held during a call to the host. Two threads may open the same file; the descriptor of
//! the first thread is kept.

use crate::errno::errno;
use crate::host;
use crate::node::{LENT, Life, Node, READ, SPECIAL, WRITE};
use crate::options::AccessTimes;
use crate::shared::Shared;
use rustix::fs::{OFlags, Statx};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use vfs::{Errno, OpenFlags};

/// The deepest nesting of directories; more means that the recorded places form a loop.
const MAX_DEPTH: usize = 1 << 16;

/// A directory's descriptor, and a name in it.
pub(crate) struct Place {
    pub(crate) dir: Arc<OwnedFd>,
    pub(crate) name: Box<[u8]>,
}

impl Shared {
    /// Returns the `O_PATH` descriptor of a file.
    ///
    /// # Errors
    /// `ESTALE` if the file is not where it was; the host's.
    #[inline]
    pub(crate) fn path_fd(&self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(fd) = &node.state().path {
            node.note_use();
            return Ok(fd.clone());
        }
        self.open_path(node)
    }

    /// Returns the result of `reach`, which may go by the recorded name of `node`. Another thread
    /// that removes the name opens the file first. So if the file was not at its name, but is open
    /// now, this function tries again.
    fn by_name_or_descriptor<R>(&self, node: &Arc<Node>, reach: impl Fn() -> Result<R, Errno>) -> Result<R, Errno> {
        match reach() {
            Err(Errno::ESTALE) if self.table.current(node).state().fds() != 0 => reach(),
            done => done,
        }
    }

    #[cold]
    fn open_path(&self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        self.by_name_or_descriptor(node, || self.open_path_once(node))
    }

    fn open_path_once(&self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        let node = &self.table.current(node);
        // Up to the first directory that is open; then down again, opening each.
        let mut closed = vec![node.clone()];
        let mut at = node.clone();
        let mut fd = loop {
            let parent = {
                let state = at.state();
                if let Some(fd) = &state.path {
                    break fd.clone();
                }
                state.parent
            };
            at = self.table.get(parent).ok_or_else(|| self.orphan(at.id, parent))?;
            if closed.len() == MAX_DEPTH {
                return Err(self.estale(node.id));
            }
            closed.push(at.clone());
        };
        closed.retain(|node| !Arc::ptr_eq(node, &at));
        if closed.is_empty() {
            return Ok(fd);
        }
        for node in closed.iter().rev() {
            let is_last = Arc::ptr_eq(node, &closed[0]);
            let flags = if is_last { OFlags::PATH } else { OFlags::PATH | OFlags::DIRECTORY };
            let opened = self.open_named(node, fd.as_fd(), flags);
            // If a directory is removed, so is everything below it.
            let opened =
                opened.map_err(|error| if error == Errno::ESTALE { self.estale(closed[0].id) } else { error })?;
            fd = self.keep_path(node, opened);
        }
        Ok(fd)
    }

    /// Keeps an `O_PATH` descriptor, unless another thread kept one first. Returns the one that is kept.
    pub(crate) fn keep_path(&self, node: &Arc<Node>, opened: OwnedFd) -> Arc<OwnedFd> {
        let opened = Arc::new(opened);
        {
            let mut state = node.state();
            if let Some(fd) = &state.path {
                return fd.clone();
            }
            if state.life == Life::Dropped {
                return opened;
            }
            state.path = Some(opened.clone());
            self.budget.note_opened(&mut state);
        }
        self.budget.count(1, 0);
        self.budget.queue(node);
        opened
    }

    /// Opens a file by its name in `dir`, its directory's descriptor, and checks that it is the right file.
    fn open_named(&self, node: &Node, dir: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        let name = node.state().name.clone();
        let fd = self.open_at(dir, &name, flags).map_err(|error| self.open_error(node, error))?;
        self.check_identity(node, fd.as_fd())?;
        Ok(fd)
    }

    /// Checks that a descriptor belongs to the file.
    ///
    /// # Errors
    /// `ESTALE`.
    fn check_identity(&self, node: &Node, fd: BorrowedFd<'_>) -> Result<Statx, Errno> {
        let stat = host::stat_fd(fd).map_err(errno)?;
        if self.identities.is(&stat, node.id, node.ino) { Ok(stat) } else { Err(self.estale(node.id)) }
    }

    /// Returns the error for a file whose directory has no record any more. A walk looks up the
    /// file and the directory again.
    #[cold]
    fn orphan(&self, node: u64, parent: u64) -> Errno {
        let _ = self.estale(parent);
        self.estale(node)
    }

    /// Returns the error for a file that could not be opened by its name. `ESTALE` if the name is
    /// removed, or now leads to a symbolic link or a mount point.
    #[cold]
    fn open_error(&self, node: &Node, error: HostErrno) -> Errno {
        match error {
            HostErrno::NOENT | HostErrno::NOTDIR | HostErrno::LOOP | HostErrno::XDEV => self.estale(node.id),
            error => errno(error),
        }
    }

    /// Opens a name that exists.
    pub(crate) fn open_at(&self, dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, HostErrno> {
        self.with_room(|| self.opening.open(dir, name, flags))
    }

    /// Returns the result of `open`; if the process or the system has too many descriptors, closes
    /// some and tries once more.
    pub(crate) fn with_room(&self, open: impl Fn() -> Result<OwnedFd, HostErrno>) -> Result<OwnedFd, HostErrno> {
        match open() {
            Err(HostErrno::MFILE | HostErrno::NFILE) => {
                self.budget.make_room();
                open()
            }
            done => done,
        }
    }

    /// Returns the directory and the name of a file; `None` if it is pinned.
    ///
    /// # Errors
    /// `ESTALE` if the directory has no record any more; as for [`Shared::path_fd`].
    pub(crate) fn place(&self, node: &Arc<Node>) -> Result<Option<Place>, Errno> {
        let node = &self.table.current(node);
        let (parent, name) = {
            let state = node.state();
            if state.is_pinned {
                return Ok(None);
            }
            (state.parent, state.name.clone())
        };
        let parent = self.table.get(parent).ok_or_else(|| self.orphan(node.id, parent))?;
        let fd =
            self.path_fd(&parent).map_err(|error| if error == Errno::ESTALE { self.estale(node.id) } else { error })?;
        Ok(Some(Place { dir: fd, name }))
    }

    /// Returns a descriptor of a file that is open already: for its contents or its path.
    pub(crate) fn open_fd(&self, node: &Node) -> Option<Arc<OwnedFd>> {
        let state = node.state();
        let fd = state.data.as_ref().or(state.path.as_ref())?;
        node.note_use();
        Some(fd.clone())
    }

    /// Returns a descriptor for the contents with at least this access.
    ///
    /// # Errors
    /// `ESTALE` if the file is not where it was; `EACCES`, `ETXTBSY` for a running program, and the host's.
    #[inline]
    pub(crate) fn data_fd(&self, node: &Arc<Node>, access: u8) -> Result<Arc<OwnedFd>, Errno> {
        {
            let state = node.state();
            if let Some(fd) = &state.data
                && state.access & access == access
            {
                node.note_use();
                return Ok(fd.clone());
            }
        }
        self.open_data(node, access)
    }

    #[cold]
    fn open_data(&self, node: &Arc<Node>, access: u8) -> Result<Arc<OwnedFd>, Errno> {
        let (opened, access) = match access {
            READ => (self.open_data_as(node, OFlags::RDONLY)?, READ),
            _ => match self.open_data_as(node, OFlags::RDWR) {
                Ok(fd) => (fd, READ | WRITE),
                // A file that may be written and not read.
                Err(Errno::EACCES) if access == WRITE => (self.open_data_as(node, OFlags::WRONLY)?, WRITE),
                Err(error) => return Err(error),
            },
        };
        Ok(self.keep_data(node, opened, access))
    }

    /// Returns a descriptor for one open of a file, which counts in `state.opens` already: the one
    /// that the record has if no other open uses it, else a new one. If the record has no
    /// descriptor, the record uses the returned one as well. Also returns whether the descriptor
    /// has the flags for synchronous writes of this open.
    ///
    /// # Errors
    /// As for [`Shared::data_fd`].
    pub(crate) fn own_fd(&self, node: &Arc<Node>, flags: OpenFlags) -> Result<(Arc<OwnedFd>, bool), Errno> {
        let read = if flags.can_read() { READ } else { 0 };
        let access = read | if flags.can_write() { WRITE } else { 0 };
        let special = special_flags(flags);
        let is_quiet = flags.contains(OpenFlags::NOATIME);
        // Appended data go to the end by each write's own flag.
        if (special - OFlags::APPEND).is_empty()
            && let Some(fd) = self.idle_fd(node, access, is_quiet)
        {
            return Ok((fd, false));
        }
        match self.new_fd(node, access, special, is_quiet) {
            // The maker of a file need not have the right to open it once more.
            Err(Errno::EACCES) => self.idle_fd(node, access, is_quiet).map(|fd| (fd, false)).ok_or(Errno::EACCES),
            opened => opened.map(|fd| (fd, special.contains(OFlags::DSYNC))),
        }
    }

    /// Opens a descriptor for one open of a file.
    fn new_fd(&self, node: &Arc<Node>, access: u8, special: OFlags, is_quiet: bool) -> Result<Arc<OwnedFd>, Errno> {
        let mode = match access {
            READ => OFlags::RDONLY,
            WRITE => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        let fd = self.open_data_as(node, mode | special)?;
        if is_quiet || self.options.access_times == AccessTimes::Keep {
            host::keep_access_time(&fd);
        }
        let fd = Arc::new(fd);
        self.lend(node, &fd, access, is_quiet || !special.is_empty());
        Ok(fd)
    }

    /// Takes the descriptor of a record for its only open. `is_quiet`: its reads leave the access time.
    fn idle_fd(&self, node: &Node, access: u8, is_quiet: bool) -> Option<Arc<OwnedFd>> {
        let mut state = node.state();
        let is_free = state.opens == 1 && state.access & (LENT | SPECIAL | access) == access;
        let fd = state.data.as_ref().filter(|_| is_free)?.clone();
        state.access |= if is_quiet { LENT | SPECIAL } else { LENT };
        drop(state);
        if is_quiet {
            host::keep_access_time(&fd);
        }
        self.budget.count(0, 1);
        Some(fd)
    }

    /// Lets the record share the descriptor of an open, unless the record has a descriptor with
    /// this access, or has one while the file is open more than once.
    fn lend(&self, node: &Node, fd: &Arc<OwnedFd>, access: u8, is_special: bool) {
        let mut state = node.state();
        let is_enough = state.data.is_some() && (state.opens > 1 || state.access & access == access);
        if is_enough || state.life == Life::Dropped {
            return;
        }
        let before = state.take_data();
        state.data = Some(fd.clone());
        state.access = access | LENT | if is_special { SPECIAL } else { 0 };
        self.budget.note_opened(&mut state);
        drop(state);
        self.budget.count(0, usize::from(before.is_some()));
    }

    /// Keeps a descriptor for the contents, unless there is one with the same access. Returns the one to use.
    pub(crate) fn keep_data(&self, node: &Arc<Node>, opened: OwnedFd, access: u8) -> Arc<OwnedFd> {
        if self.options.access_times == AccessTimes::Keep {
            host::keep_access_time(&opened);
        }
        let opened = Arc::new(opened);
        let before = {
            let mut state = node.state();
            match &state.data {
                None if state.life == Life::Dropped => return opened,
                Some(fd) if state.access & access == access => return fd.clone(),
                // The kept descriptor has an access that the new descriptor lacks, and is in use.
                Some(_) if state.access & (READ | WRITE) & !access != 0 && state.opens > 1 => return opened,
                _ => {}
            }
            let before = state.take_data();
            (state.data, state.access) = (Some(opened.clone()), access);
            self.budget.note_opened(&mut state);
            before
        };
        self.budget.count(1, usize::from(before.is_some()));
        self.budget.queue(node);
        opened
    }

    /// Opens the contents: through the path descriptor if there is one, otherwise by the name.
    fn open_data_as(&self, node: &Arc<Node>, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.by_name_or_descriptor(node, || self.open_data_once(node, flags))
    }

    fn open_data_once(&self, node: &Arc<Node>, flags: OFlags) -> Result<OwnedFd, Errno> {
        // With these flags the open neither blocks nor gets a controlling terminal: the name may
        // lead to a terminal, or to a FIFO without a writer.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let path = node.state().path.clone();
        if let Some(path) = path {
            return self.with_room(|| host::reopen(path.as_fd(), flags)).map_err(errno);
        }
        if let Some(Place { dir, name }) = self.place(node)? {
            let fd = self.open_at(dir.as_fd(), &name, flags).map_err(|error| self.open_error(node, error))?;
            self.check_identity(node, fd.as_fd())?;
            return Ok(fd);
        }
        let data = node.state().data.clone().ok_or_else(|| self.estale(node.id))?;
        self.with_room(|| host::reopen(data.as_fd(), flags)).map_err(errno)
    }

    /// Returns a descriptor for a [`host::ProcPath`]: one that is open already, or the `O_PATH`
    /// descriptor.
    ///
    /// # Errors
    /// As for [`Shared::path_fd`].
    pub(crate) fn proc_fd(&self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        match self.open_fd(node) {
            Some(fd) => Ok(fd),
            None => self.path_fd(node),
        }
    }

    /// Returns the attributes of a file now. One call, unless its directory must be opened.
    ///
    /// # Errors
    /// `ESTALE` if the file is not where it was; the host's.
    pub(crate) fn stat(&self, node: &Arc<Node>) -> Result<Statx, Errno> {
        self.by_name_or_descriptor(node, || self.stat_once(node))
    }

    fn stat_once(&self, node: &Arc<Node>) -> Result<Statx, Errno> {
        if let Some(fd) = self.open_fd(node) {
            return host::stat_fd(fd.as_fd()).map_err(errno);
        }
        let Some(Place { dir, name }) = self.place(node)? else { return Err(self.estale(node.id)) };
        match self.stat_at(dir.as_fd(), &name) {
            Ok(stat) if self.identities.is(&stat, node.id, node.ino) => Ok(stat),
            Ok(_) | Err(Errno::ENOENT) => Err(self.estale(node.id)),
            Err(error) => Err(error),
        }
    }
}

/// Returns the flags of an open, besides its access, that the host must have, too.
fn special_flags(flags: OpenFlags) -> OFlags {
    let pairs = [
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::DSYNC, OFlags::DSYNC),
        (OpenFlags::SYNC, OFlags::SYNC),
        (OpenFlags::DIRECT, OFlags::DIRECT),
    ];
    pairs.into_iter().filter(|(ours, _)| flags.contains(*ours)).fold(OFlags::empty(), |all, (_, hosts)| all | hosts)
}
