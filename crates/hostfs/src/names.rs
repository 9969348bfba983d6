//! Names: lookup, link, unlink, rename.
//!
//! # What it is
//! A lookup is one `statx(2)` by the directory's descriptor and the name; it opens nothing. Before
//! a file loses its name while the VFS may have the file, this file system opens the file, so that
//! it stays usable.
//!
//! # How it is locked
//! No lock is held during a call to the host. A lookup that ran at the same time as a rename or a
//! removal does not overwrite the place that the rename or removal recorded
//! ([`crate::table::Table::note_move`]). The VFS holds the locks of the directories while it
//! changes their names.

use crate::descriptors::Place;
use crate::errno::errno;
use crate::host::{self, check_name};
use crate::node::{Attached, Fds, NameAt, Node};
use crate::shared::Shared;
use crate::table::{Ended, Sighting};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use vfs::{After, Errno, Inode, NewInode, Rename, RenameFlags, Request, S_IFDIR, S_IFLNK, S_IFMT};

/// The result of [`Shared::pin`].
#[derive(Clone, Copy)]
enum Pin {
    /// The file is pinned.
    Made,
    /// The file has another recorded name, or was pinned already.
    Needless,
    /// The file could not be opened.
    Failed,
}

/// How often a file is opened before it loses its name, if other threads need so many descriptors that it is closed each time.
const PIN_TRIES: usize = 8;

impl Shared {
    /// See [`vfs::FileSystem::lookup`]; also for revalidation.
    pub(crate) fn lookup(&self, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        check_name(name).map_err(|_| Errno::ENOENT)?;
        self.mark_root_stale(dir);
        let dir = self.node(dir)?;
        let fd = self.path_fd(dir)?;
        self.watch(dir, &fd);
        let at = NameAt { dir: dir.id, name };
        let (moves, watches) = (self.table.moves(), self.watches_begun());
        let stat = match self.stat_at(fd.as_fd(), name) {
            Ok(stat) => stat,
            Err(error) => {
                self.note_found(at, None);
                return Err(error);
            }
        };
        let found = self.note_sighting(&Sighting { stat: &stat, at, moves });
        let node = found.id;
        self.note_found(at, Some(node));
        let attr = self.identities.attr(&stat);
        self.note_names(&found, &stat);
        self.note_contents(&found, &stat);
        let mut new = NewInode { node, attr, valid: self.valid(dir, &found, &stat, watches), ..NewInode::default() };
        if self.applies_acls() && attr.kind() != S_IFLNK {
            host::read_acls(&fd, name, &mut new);
        }
        Ok(new)
    }

    /// Returns the descriptor of a directory in which `name` is about to change.
    ///
    /// # Errors
    /// `EROFS`, `EINVAL` for an invalid name; as for [`Shared::path_fd`].
    pub(crate) fn dir_fd(&self, dir: &Inode, name: &[u8]) -> Result<Arc<OwnedFd>, Errno> {
        self.check_writable()?;
        check_name(name)?;
        let node = self.node(dir)?;
        let fd = self.path_fd(node)?;
        self.watch(node, &fd);
        Ok(fd)
    }

    /// See [`vfs::FileSystem::link`].
    pub(crate) fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let to = self.dir_fd(dir, name)?;
        let node = self.node(inode)?;
        let at = NameAt { dir: dir.node(), name };
        let change = self.begin_change([Some(at), None], [Some(dir), None], [Some(inode), None]);
        // By a descriptor: the recorded name may now lead to another file, or through a directory
        // that the caller cannot search.
        let fd = self.proc_fd(node)?;
        self.daemon.act(request)?.link(fd.as_fd(), to.as_fd(), name).map_err(errno)?;
        let (is_reachable, former) = {
            let mut state = node.state();
            let former = (state.parent, state.name.clone());
            state.set_place(at);
            (core::mem::take(&mut state.is_pinned), former)
        };
        // A watch of the former name's directory no longer reports all changes of the file.
        if let (Some(_), Some(invalidator)) = (&self.watches, self.invalidator.get()) {
            invalidator.entry(former.0, &former.1);
        }
        if is_reachable {
            self.budget.queue(node);
        }
        change.note_result(at, Some(node.id));
        Ok(After::NONE)
    }

    /// See [`vfs::FileSystem::unlink`].
    pub(crate) fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let fd = self.dir_fd(dir, name)?;
        let node = self.node(inode)?;
        let is_dir = inode.mode() & S_IFMT == S_IFDIR;
        let at = NameAt { dir: dir.node(), name };
        let change = self.begin_change([Some(at), None], [Some(dir), None], [Some(inode), None]);
        let pin = self.pin(node, &fd, at);
        let done = self.daemon.act(request).and_then(|acting| acting.unlink(fd.as_fd(), name, is_dir).map_err(errno));
        self.table.note_move();
        self.end_pin(node, pin, at, done.is_ok());
        done.inspect_err(|error| self.doubt(*error, [at]))?;
        change.note_result(at, None);
        Ok(After::NONE)
    }

    /// Pins a file that is about to lose its recorded name, and opens it if it has no descriptor.
    /// If the open fails, the name is removed nevertheless, and the file can be reached only by
    /// another name.
    fn pin(&self, node: &Arc<Node>, dir: &Arc<OwnedFd>, at: NameAt<'_>) -> Pin {
        // Does not pin the file before it is open: a pinned file is reached by its descriptor.
        let pin_if_open = || {
            let mut state = node.state();
            if state.is_pinned || !state.is_at(at) {
                return Some(Pin::Needless);
            }
            state.is_pinned = state.fds() != 0;
            state.is_pinned.then_some(Pin::Made)
        };
        // The budget may close it again before it is pinned.
        for _ in 0..PIN_TRIES {
            if let Some(pin) = pin_if_open() {
                return pin;
            }
            match self.open_at(dir.as_fd(), at.name, OFlags::PATH) {
                Ok(opened) => drop(self.keep_path(node, opened)),
                Err(_) => return Pin::Failed,
            }
        }
        pin_if_open().unwrap_or(Pin::Failed)
    }

    /// Lets names be looked up again, if the host may have changed them before it reported this error.
    fn doubt<const N: usize>(&self, error: Errno, names: [NameAt<'_>; N]) {
        if matches!(error, Errno::EIO | Errno::EINTR)
            && let Some(invalidator) = self.invalidator.get()
        {
            names.into_iter().for_each(|at| invalidator.entry(at.dir, at.name));
        }
    }

    /// Ends the work that [`Shared::pin`] began: `is_gone` if the name is removed.
    fn end_pin(&self, node: &Arc<Node>, pin: Pin, at: NameAt<'_>, is_gone: bool) {
        match (pin, is_gone) {
            (Pin::Made, true) => pin_again(node, at),
            (Pin::Made, false) => {
                node.state().is_pinned = false;
                self.budget.queue(node);
            }
            // A lookup of another name of the file finds it again.
            (Pin::Failed, true) => drop(self.estale(node.id)),
            (Pin::Failed, false) | (Pin::Needless, _) => {}
        }
    }

    /// See [`vfs::FileSystem::rename`].
    pub(crate) fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        let Rename { old_dir, old_name: old, new_dir, new_name: new, inode, target, flags } = *rename;
        let (from, to) = (self.dir_fd(old_dir, old)?, self.dir_fd(new_dir, new)?);
        let node = self.node(inode)?;
        let target_node = target.map(|target| self.node(target)).transpose()?;
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        let old_at = NameAt { dir: old_dir.node(), name: old };
        let new_at = NameAt { dir: new_dir.node(), name: new };
        let change =
            self.begin_change([Some(old_at), Some(new_at)], [Some(old_dir), Some(new_dir)], [Some(inode), target]);
        let replaced = target_node.filter(|_| !is_exchange);
        let pin = replaced.map(|target| (target, self.pin(target, &to, new_at)));
        let done = self
            .daemon
            .act(request)
            .and_then(|acting| acting.rename((from.as_fd(), old), (to.as_fd(), new), flags.bits()).map_err(errno));
        self.table.note_move();
        if let Some((target, pin)) = pin {
            self.end_pin(target, pin, new_at, done.is_ok());
        }
        done.inspect_err(|error| self.doubt(*error, [old_at, new_at]))?;
        node.state().set_place(new_at);
        if let Some(target) = target_node.filter(|_| is_exchange) {
            target.state().set_place(old_at);
        }
        let left = target_node.filter(|_| is_exchange).map(|target| target.id);
        change.note_result(old_at, left);
        change.note_result(new_at, Some(node.id));
        Ok(After::NONE)
    }

    /// See [`vfs::FileSystem::read_link`].
    pub(crate) fn read_link(&self, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        let node = self.node(inode)?;
        if let Some(fd) = self.open_fd(node) {
            return host::read_link(fd.as_fd(), b"", inode.size());
        }
        match self.place(node)? {
            Some(Place { dir, name }) => host::read_link(dir.as_fd(), &name, inode.size()),
            None => Err(self.estale(node.id)),
        }
    }

    /// Closes the descriptors of a record without inodes. Not under a lock.
    fn close_evicted(&self, fds: Fds) {
        self.budget.forget(&fds);
        self.closer.close(fds);
    }

    /// See [`vfs::FileSystem::evict`].
    pub(crate) fn evict(&self, inode: &Inode) {
        let attached = inode.data::<Attached>();
        let node = attached.map(|attached| attached.node().clone());
        let Some(node) = node.or_else(|| self.table.get(inode.node())) else { return };
        if Arc::ptr_eq(&node, &self.root) {
            return;
        }
        let Some(Ended { fds, watch, place, is_cold }) = self.table.end(&node, attached) else { return };
        self.close_evicted(fds);
        if watch != 0
            && let Some(watches) = &self.watches
        {
            watches.remove(watch);
        }
        if is_cold {
            self.close_evicted(self.table.age(node.id));
        }
        // A new inode may have started with the node just now, from an answer that is valid as long as the directory is
        // watched.
        if let (Some((dir, name)), Some(invalidator)) = (place, self.invalidator.get()) {
            invalidator.entry(dir, &name);
        }
    }
}

/// Pins a file that lost its name again, if a lookup that found the name just before the removal
/// has unpinned it.
fn pin_again(node: &Node, at: NameAt<'_>) {
    let mut state = node.state();
    if state.is_at(at) {
        state.is_pinned = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::HostFs;
    use crate::node::{NameAt, Node};
    use crate::options::HostOptions;
    use crate::shared::Shared;
    use crate::table::{MAX_COLD, Sighting};
    use std::fs;
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::sync::Arc;
    use vfs::{Base, Vfs};

    fn shared(source: &Path) -> Arc<Shared> {
        Arc::new(Shared::new(source, &HostOptions::default()).unwrap())
    }

    /// Returns the record of a file in the source, made if there is none.
    fn record(shared: &Shared, name: &str) -> Arc<Node> {
        let at = NameAt { dir: shared.root.id, name: name.as_bytes() };
        let stat = shared.stat_at(shared.root_fd.as_fd(), at.name).unwrap();
        shared.note_sighting(&Sighting { stat: &stat, at, moves: shared.table.moves() })
    }

    fn counts(shared: &Shared) -> (usize, usize) {
        (shared.table.len(), shared.budget.counts().open)
    }

    #[test]
    fn a_record_ends_with_its_inode_although_another_thread_refers_to_it() {
        let source = tempfile::tempdir().unwrap();
        let shared = shared(source.path());
        let vfs = Vfs::new(HostFs { shared: shared.clone() });
        let (at, before) = (vfs.context(), counts(&shared));
        at.mkdir(Base::CWD, b"/d", 0o755).unwrap();
        at.mkdir(Base::CWD, b"/d/e", 0o755).unwrap();
        at.rmdir(Base::CWD, b"/d/e").unwrap();
        assert_eq!(counts(&shared), (before.0 + 1, before.1 + 1), "the directory is open");
        // As the thread that reads events does for a moment.
        let dir = record(&shared, "d");
        at.rmdir(Base::CWD, b"/d").unwrap();
        vfs.barrier();
        assert_eq!(counts(&shared), before);
        // A descriptor that the thread opens by its reference is closed after its use.
        drop(shared.keep_path(&dir, fs::File::open(source.path()).unwrap().into()));
        assert_eq!((counts(&shared), dir.state().fds()), (before, 0));
    }

    #[test]
    fn what_was_opened_by_the_record_of_an_evicted_inode_is_closed_with_the_record() {
        let source = tempfile::tempdir().unwrap();
        let shared = shared(source.path());
        for number in 0..=MAX_COLD {
            let name = format!("f{number}");
            fs::write(source.path().join(&name), b"").unwrap();
            let node = record(&shared, &name);
            assert!(shared.table.end(&node, None).unwrap().is_cold);
            if number == 0 {
                shared.path_fd(&node).unwrap();
            }
            assert_eq!(shared.budget.counts().open, 1, "{number}");
            shared.close_evicted(shared.table.age(node.id));
        }
        assert_eq!(shared.budget.counts().open, 0);
    }
}
