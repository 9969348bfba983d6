//! Forks by name, in one tree.
//!
//! # What it is
//! A tree in memory in which the base is at `/base`, read-only, and each fork at `/w/NAME`. So a mount of this tree shows all forks,
//! and limits, statistics and `EBUSY` come from the mounts of the tree.
//!
//! # How it is locked
//! A mutex around the names, held for one fork or discard. A thread of [`Background`] frees the memory of ended forks.

use crate::background::Background;
use crate::commit::{Commit, CommitOptions, OnConflict};
use crate::contents::PAGE_BYTES;
use crate::diff::Change;
use crate::lower::Lower;
use crate::publish::Recovered;
use crate::record::{is_name, ns};
use crate::store::Fork;
use crate::upper::event::Name;
use crate::upper::{Marks, UpperError, open};
use crate::usage::ForkLimits;
use crate::workspace_error::{WorkspaceError, other_directory};
use core::fmt;
use core::time::Duration;
use parking_lot::Mutex;
use prim::atomic::Ordering::Relaxed;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;
use vfs::{Base, Budget, Errno, MountFlags, PathRef, SharedBudget, UnmountFlags, Vfs};

/// The name of the base among the forks.
pub const BASE: &str = "base";

/// A fork in the list of forks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkInfo {
    /// Its name.
    pub name: String,
    /// The fork or the base that it was made from.
    pub parent: String,
    /// The directory of the base's tree that it shows: empty, if all.
    pub dir: String,
    /// When it was made.
    pub made: SystemTime,
    /// The bytes in use, with the parent's use at that moment.
    pub bytes: u64,
    /// The inodes that it made, with the parent's at that moment.
    pub inodes: u64,
    /// How many times its files and directories are open.
    pub open_files: u64,
}

/// How a fork is made.
///
/// ```
/// use lightfoot_workspaces::ForkOptions;
///
/// let options = ForkOptions { is_read_only: true, ..ForkOptions::default() };
/// assert!(!options.of_origin);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForkOptions {
    /// The most that it may use.
    pub limits: ForkLimits,
    /// Changes of the fork fail with `EROFS`, but for [`Workspaces::roll_back`].
    pub is_read_only: bool,
    /// Fork the tree that the fork began with, or had at its last commit: what [`Workspaces::changes`] compares with. The
    /// parent is the parent of that fork. The [base](BASE) has no beginning: [`WorkspaceError::Missing`].
    pub of_origin: bool,
}

type Forks = BTreeMap<String, Kept>;

#[derive(Clone)]
struct Kept {
    fork: Fork,
    parent: String,
    made: SystemTime,
    is_read_only: bool,
}

/// A fork that was discarded, and its root directory, without which the thread that discards it might free its cache.
struct Ended {
    of: Option<(Kept, PathRef)>,
    tree: Vfs,
}

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.of.take());
        // The cache shares the changes with the fork.
        self.tree.barrier();
    }
}

/// Forks by name in one tree: the base is at `/base`, read-only, and each fork at `/w/NAME`. So a mount of the tree shows all
/// forks.
///
/// ```
/// use lightfoot_workspaces::{ForkLimits, Workspaces};
/// use vfs::{Base, Vfs};
///
/// let base = Vfs::new(ramfs::RamFs::new());
/// let spaces = Workspaces::over(base.context(), true)?;
/// spaces.fork("base", "a", ForkLimits::default())?;
/// let context = spaces.tree().context();
/// context.mkdir(Base::CWD, b"/w/a/src", 0o755)?;
/// let changes: Vec<String> = spaces.changes("a")?.iter().map(ToString::to_string).collect();
/// assert_eq!(changes, ["A src"]);
/// spaces.discard("a", false)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Workspaces {
    tree: Vfs,
    trunk: Fork,
    forks: Mutex<Forks>,
    freeing: Background,
    /// Of the caches of all forks.
    budget: SharedBudget,
    /// Of a directory that keeps the forks.
    marks: Option<Marks>,
}

impl fmt::Debug for Workspaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspaces").field("trunk", &self.trunk).finish_non_exhaustive()
    }
}

impl Workspaces {
    /// Returns a tree without forks. The arguments are as for [`Fork::over`]. The forks store at most half of the machine's memory:
    /// see [`set_limit`](Self::set_limit). The caches of all forks together have a budget as large as the cache of the base.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn over(base: vfs::Context, is_fixed: bool) -> Result<Self, Errno> {
        let spaces = Self::of(Fork::over(base, is_fixed)?, None)?;
        spaces.set_limit(ramfs::RamLimits::default().bytes.unwrap_or(u64::MAX));
        Ok(spaces)
    }

    /// Returns a tree with the forks that a directory of the host keeps, which may be missing or empty. Each change of a fork is in the
    /// directory before the call returns; `fsync(2)`, the drop, and every five seconds make it durable. A fork that needs a file
    /// of the base that another program has removed or replaced meanwhile is read-only; [`Workspaces::lost`] returns it.
    ///
    /// ```
    /// use lightfoot_workspaces::{ForkLimits, Workspaces};
    /// use vfs::{Base, Vfs};
    ///
    /// # let (source, dir) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let (source, dir) = (source.path(), dir.path());
    /// let base = Vfs::new(hostfs::HostFs::new(source, &hostfs::HostOptions::default())?);
    /// let spaces = Workspaces::durable(base.context(), false, dir)?;
    /// spaces.fork("base", "a", ForkLimits::default())?;
    /// spaces.tree().context().mkdir(Base::CWD, b"/w/a/src", 0o755)?;
    /// drop(spaces);
    /// let spaces = Workspaces::durable(base.context(), false, dir)?;
    /// assert_eq!(spaces.changes("a")?[0].to_string(), "A src");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`UpperError`].
    pub fn durable(base: vfs::Context, is_fixed: bool, dir: &Path) -> Result<Self, UpperError> {
        let failed = |errno| UpperError::Failed(dir.into(), errno);
        let (trunk, opened) = open(dir, Lower::new(base, is_fixed).map_err(failed)?)?;
        let marks = Marks::start(trunk.shared.clone()).map_err(failed)?;
        let spaces = Self::of(Fork::of(trunk), Some(marks)).map_err(failed)?;
        for state in opened {
            let Some(name) = state.name.lock().clone() else { continue };
            let made = SystemTime::UNIX_EPOCH + Duration::from_nanos(name.made.unsigned_abs());
            let is_read_only = name.is_read_only || name.is_lost;
            let kept = Kept { fork: Fork(state), parent: name.parent, made, is_read_only };
            spaces.show(&mut spaces.forks.lock(), &name.name, kept).map_err(failed)?;
        }
        Ok(spaces)
    }

    fn of(trunk: Fork, marks: Option<Marks>) -> Result<Self, Errno> {
        let tree = Vfs::new(ramfs::RamFs::new());
        let context = tree.context();
        context.mkdir(Base::CWD, b"/base", 0o755)?;
        context.mkdir(Base::CWD, b"/w", 0o711)?;
        let budget = trunk.0.shared.lower.root.cache_use().map_or_else(Budget::default, |room| room.budget);
        let budget = SharedBudget::new(budget);
        context.mount_with(trunk.file_system(), Base::CWD, b"/base", MountFlags::RDONLY, &budget)?;
        Ok(Self { tree, trunk, forks: Mutex::default(), freeing: Background::default(), budget, marks })
    }

    /// Returns the tree.
    #[must_use]
    pub fn tree(&self) -> &Vfs {
        &self.tree
    }

    /// Makes the fork `name` of the fork `from`, or of the [base](BASE). A path behind the name of that fork, as in `base/src`, makes
    /// a fork that shows this directory alone.
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`], [`WorkspaceError::Exists`], [`WorkspaceError::BadName`], [`WorkspaceError::NoDirectory`];
    /// [`WorkspaceError::Failed`] if the base cannot be read.
    pub fn fork(&self, from: &str, name: &str, limits: ForkLimits) -> Result<(), WorkspaceError> {
        self.fork_with(from, name, ForkOptions { limits, ..ForkOptions::default() })
    }

    /// Makes a fork with more options.
    ///
    /// # Errors
    /// As for [`Workspaces::fork`].
    pub fn fork_with(&self, from: &str, name: &str, options: ForkOptions) -> Result<(), WorkspaceError> {
        let ForkOptions { limits, is_read_only, of_origin } = options;
        let (from, dir) = from.split_once('/').filter(|_| !of_origin).unwrap_or((from, ""));
        let (of, parent) = if of_origin {
            let kept = self.get(from)?;
            (kept.fork, kept.parent)
        } else {
            (self.tree_of(from)?, from.into())
        };
        let no_dir = |errno| match errno {
            Errno::ENOENT | Errno::ENOTDIR => WorkspaceError::NoDirectory(dir.into()),
            errno => errno.into(),
        };
        let fork =
            if of_origin { of.fork_origin(limits)? } else { of.fork_dir(dir.as_bytes(), limits).map_err(no_dir)? };
        if !is_name(name.as_bytes()) || name == BASE {
            return Err(WorkspaceError::BadName(name.into()));
        }
        let mut forks = self.forks.lock();
        if forks.contains_key(name) {
            return Err(WorkspaceError::Exists(name.into()));
        }
        let (made, is_lost) = (SystemTime::now(), of.0.is_lost());
        fork.0.keep(Name {
            name: name.into(),
            parent: parent.clone(),
            made: ns(made),
            is_read_only,
            is_lost,
            dir: fork.0.dir.clone(),
        })?;
        let is_read_only = is_read_only || is_lost;
        Ok(self.show(&mut forks, name, Kept { fork, parent, made, is_read_only })?)
    }

    /// Mounts a fork.
    fn show(&self, forks: &mut Forks, name: &str, kept: Kept) -> Result<(), Errno> {
        let (at, context) = (at(name), self.tree.context());
        match context.mkdir(Base::CWD, &at, 0o755) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
        let read_only = if kept.is_read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        let flags = read_only.union(MountFlags::NOSUID).union(MountFlags::NODEV);
        context.mount_with(kept.fork.file_system(), Base::CWD, &at, flags, &self.budget)?;
        forks.insert(name.into(), kept);
        Ok(())
    }

    /// Returns the forks that need files of the base that are missing.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.forks.lock().iter().filter(|(_, kept)| kept.fork.0.is_lost()).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the changes of a fork since it was made.
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`]; [`WorkspaceError::Failed`] if the base cannot be read.
    pub fn changes(&self, name: &str) -> Result<Vec<Change>, WorkspaceError> {
        Ok(self.get(name)?.fork.changes()?)
    }

    /// Returns the changes that lead from the fork `other`, or the [base](BASE), to a fork.
    ///
    /// # Errors
    /// As for [`Workspaces::changes`].
    pub fn changes_since(&self, name: &str, other: &str) -> Result<Vec<Change>, WorkspaceError> {
        self.get(name)?.fork.changes_since(&self.tree_of(other)?).map_err(other_directory(other))
    }

    /// Returns a fork, or the trunk.
    pub(crate) fn tree_of(&self, name: &str) -> Result<Fork, WorkspaceError> {
        if name == BASE { Ok(self.trunk.clone()) } else { Ok(self.get(name)?.fork) }
    }

    /// Makes the changes of a fork changes of the tree that it was made from, all or none: see [`Fork::commit`].
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`]: the fork, or its parent, was discarded; [`WorkspaceError::ReadOnly`]: the parent, or the fork, if
    /// it would lose a change; [`WorkspaceError::ReadsUnknown`]; [`WorkspaceError::CutOff`]; [`WorkspaceError::NotCommitted`].
    pub fn commit(&self, name: &str, options: CommitOptions) -> Result<Commit, WorkspaceError> {
        let Kept { fork, parent, is_read_only, .. } = self.get(name)?;
        if fork.0.is_lost() {
            return Err(WorkspaceError::Lost(name.into()));
        }
        if is_read_only && options.conflicts == OnConflict::Theirs {
            return Err(WorkspaceError::ReadOnly(name.into()));
        }
        if parent != BASE {
            let of = self.get(&parent)?;
            // Another fork may have the name of the parent now, and programs may use the parent after it was discarded.
            if !of.fork.is_parent_of(&fork) {
                return Err(WorkspaceError::Missing(parent));
            }
            if of.is_read_only {
                return Err(WorkspaceError::ReadOnly(parent));
            }
        }
        fork.commit(options).map_err(|errno| match errno {
            Errno::ESTALE => WorkspaceError::Missing(parent),
            Errno::EBUSY => WorkspaceError::CutOff,
            Errno::ENODATA if options.reads => WorkspaceError::ReadsUnknown(name.into()),
            errno => WorkspaceError::NotCommitted(errno),
        })
    }

    /// Returns how many files and steps of a commit to the base that runs now are done, and how many there are. 0: no commit runs.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.trunk.0.shared.lower.progress.now()
    }

    /// Completes or undoes a commit to the base that was cut off: see [`Fork::recover`].
    ///
    /// # Errors
    /// [`WorkspaceError::Failed`]: the base cannot be read or changed.
    pub fn recover(&self) -> Result<Recovered, WorkspaceError> {
        Ok(self.trunk.recover()?)
    }

    /// Returns a fork to the state of its beginning or of its last commit; with `to`, to the present state of the fork `to`.
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`]; [`WorkspaceError::Failed`]: the limits of the fork do not allow that state.
    pub fn roll_back(&self, name: &str, to: Option<&str>) -> Result<(), WorkspaceError> {
        let fork = self.get(name)?.fork;
        let other = to.map(|to| self.tree_of(to)).transpose()?;
        fork.roll_back(other.as_ref()).map_err(other_directory(to.unwrap_or_default()))
    }

    /// Returns a fork.
    fn get(&self, name: &str) -> Result<Kept, WorkspaceError> {
        self.forks.lock().get(name).cloned().ok_or_else(|| WorkspaceError::Missing(name.into()))
    }

    /// Makes all later forks note which names programs read in them, for [`CommitOptions::reads`].
    pub fn note_reads(&self) {
        // Relaxed: as in `State::new`.
        self.trunk.0.shared.notes_reads.store(true, Relaxed);
    }

    /// Sets the most bytes of contents that all forks together may store. Contents that forks share count once. Calls that need more
    /// fail with `ENOSPC`.
    pub fn set_limit(&self, bytes: u64) {
        self.trunk.0.shared.pages.set_limit(bytes / PAGE_BYTES);
    }

    /// Removes a fork with its changes. Its forks stay. With `is_lazy`, also while files are open, which stay until they are
    /// closed. Returns when the fork has no name any more: a thread frees the memory. [`Workspaces::wait_until_freed`] waits for it.
    ///
    /// # Errors
    /// [`WorkspaceError::Missing`]; [`WorkspaceError::Busy`] without `is_lazy`.
    pub fn discard(&self, name: &str, is_lazy: bool) -> Result<(), WorkspaceError> {
        let mut forks = self.forks.lock();
        let kept = forks.get(name).ok_or_else(|| WorkspaceError::Missing(name.into()))?;
        if kept.fork.0.open_files() > 0 && !is_lazy {
            return Err(WorkspaceError::Busy(name.into()));
        }
        let (at, context) = (at(name), self.tree.context());
        let root = context.hold(Base::CWD, &at, true)?;
        // A front end's kernel holds names that no program uses.
        context.unmount(Base::CWD, &at, UnmountFlags::DETACH)?;
        context.rmdir(Base::CWD, &at)?;
        kept.fork.0.forget();
        let of = forks.remove(name).map(|kept| (kept, root));
        self.freeing.free(Ended { of, tree: self.tree.clone() });
        Ok(())
    }

    /// Waits until the memory of the forks that were discarded so far is free, but for files that are still open.
    pub fn wait_until_freed(&self) {
        self.freeing.wait();
    }

    /// Returns all forks, by name.
    #[must_use]
    pub fn list(&self) -> Vec<ForkInfo> {
        let info = |(name, kept): (&String, &Kept)| {
            let (bytes, inodes) = kept.fork.usage();
            let (open_files, parent) = (kept.fork.0.open_files(), kept.parent.clone());
            let dir = String::from_utf8_lossy(&kept.fork.0.dir).into();
            ForkInfo { name: name.clone(), parent, dir, made: kept.made, bytes, inodes, open_files }
        };
        self.forks.lock().iter().map(info).collect()
    }
}

impl Drop for Workspaces {
    /// Ends the mounts of forks that a directory keeps, so that the directory is closed, unless files are open.
    fn drop(&mut self) {
        // The last mark comes first: the pages of the forks that end here are still in use.
        if self.marks.take().is_some() {
            let (context, mut forks) = (self.tree.context(), self.forks.lock());
            for at in forks.keys().map(|name| at(name)).chain([b"/base".to_vec()]) {
                let _ = context.unmount(Base::CWD, &at, UnmountFlags::DETACH);
            }
            forks.clear();
            self.freeing.wait();
            self.tree.barrier();
        }
    }
}

/// Returns the path of a fork in the tree.
fn at(name: &str) -> Vec<u8> {
    [b"/w/", name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Pages;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use vfs::{Context, OpenFlags};

    fn write(context: &Context, path: &[u8]) -> vfs::OpenFile {
        let file = context.open(Base::CWD, path, OpenFlags::WRONLY.union(OpenFlags::CREAT), 0o644).unwrap();
        file.write_at(0, b"text").unwrap();
        file
    }

    /// Its drop waits for the other side to end.
    struct Busy(Receiver<()>);

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn a_discarded_fork_is_freed_but_for_open_files() {
        let spaces = Workspaces::over(Vfs::new(ramfs::RamFs::new()).context(), true).unwrap();
        let pages = || match &spaces.trunk.0.shared.pages {
            Pages::Memory(pool) => pool.stats().live,
            Pages::Disk(_) => 0,
        };
        let context = spaces.tree().context();
        spaces.fork(BASE, "a", ForkLimits::default()).unwrap();
        for number in 0..500 {
            drop(write(&context, format!("/w/a/{number}").as_bytes()));
        }
        spaces.fork("a", "b", ForkLimits::default()).unwrap();
        write(&context, b"/w/a/own");
        let state = |name: &str| Arc::downgrade(&spaces.forks.lock()[name].fork.0);
        let (a, b) = (state("a"), state("b"));
        // The discard returns although the thread is busy.
        let (go, busy) = channel::<()>();
        spaces.freeing.free(Busy(busy));
        spaces.discard("a", false).unwrap();
        assert!(spaces.list().iter().all(|fork| fork.name != "a"));
        assert!(a.upgrade().is_some());
        assert_eq!(pages(), 501);
        drop(go);
        spaces.wait_until_freed();
        assert!(a.upgrade().is_none() && b.upgrade().is_some());
        assert_eq!(pages(), 500);
        let open = write(&context, b"/w/b/open");
        spaces.discard("b", true).unwrap();
        spaces.wait_until_freed();
        assert!(b.upgrade().is_some());
        drop(open);
        spaces.tree().barrier();
        assert!(b.upgrade().is_none());
        assert_eq!(pages(), 0);
    }
}
