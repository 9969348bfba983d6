//! The end of a walk, which the caller's closure reads, counts or locks.
//!
//! # How it is locked
//! The closure runs in the walk's read section. Its reads are right if the dentry's sequence did
//! not change; the walk checks the sequence after the closure. Or the closure takes a count or a
//! lock and checks the sequence under it; then the walk checks nothing more.
//!
//! # Where it comes from
//! As [`walk`](super).

use crate::base::access::credentials::Credentials;
use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::cache::fallback::Fallback;
use crate::cache::sharded::{LockedName, NamePairGuard, ShardedDirs};
use crate::cache::superblock::SuperBlock;
use crate::mount::place::PathRef;
use crate::mount::{Mount, MountRef};
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::object::Object;
use crate::slots::shard::Names;
use crate::slots::slot::{DentryRef, LockedDentry, inode_of};
use crate::walk::question::{Question, WalkEndRef};
use crate::walk::rcu_walk::{RcuWalk, Step};
use core::cell::Cell;
use sync::rcu::ReadGuard;
use sync::{Mutex, MutexGuard, PerCpuArc};

/// The end of a walk, as the caller's closure gets it.
pub(crate) struct WalkEnd<'a> {
    pub(crate) mount: MountRef<'a>,
    pub(crate) guard: &'a ReadGuard<'a>,
    pub(crate) dentry: &'a Dentry,
    pub(crate) seq: u32,
    pub(crate) object: Object,
    /// The end of a ref-walk, which holds the place, if it is one: later changes then do not matter.
    pub(super) held: Option<&'a WalkEndRef<'a>>,
    /// Symbolic links that the walk followed.
    pub(crate) links: u32,
    /// The credentials at the beginning of the walk.
    pub(crate) cred: &'a Credentials,
    /// [`WalkEnd::pin`], [`WalkEnd::lock_or_pin`] or [`WalkEnd::lock_here`] took a count or the lock: the closure's result stays
    /// valid and must not be discarded.
    pinned: Cell<bool>,
    /// The closure's result could not be computed in rcu-walk.
    fallback: Cell<Option<Fallback>>,
}

impl<'a> WalkEnd<'a> {
    /// Creates the end of an rcu-walk.
    #[inline(always)]
    pub(super) fn new(walk: &RcuWalk<'a>, at: &Step<'a>) -> Self {
        Self::of(walk.guard, walk.cred, walk.links, at)
    }

    /// Returns a place found without a reference, after `links` links.
    #[inline(always)]
    pub(super) fn of(guard: &'a ReadGuard<'a>, cred: &'a Credentials, links: u32, at: &Step<'a>) -> Self {
        let Step { mount, dentry, seq, object } = *at;
        let (pinned, fallback) = (Cell::new(false), Cell::new(None));
        Self { mount, guard, dentry, seq, object, held: None, links, cred, pinned, fallback }
    }

    pub(crate) fn sb(&self) -> &'a SuperBlock {
        &self.mount.get().sb
    }

    /// Returns whether the closure's result must be discarded, because the dentry changed
    /// meanwhile.
    #[inline(always)]
    pub(super) fn stale(&self) -> Option<Fallback> {
        if self.pinned.get() {
            return None;
        }
        if self.dentry.seq.retry(self.seq) { Some(Fallback::EntryChanged) } else { self.fallback.get() }
    }

    /// Notes that the closure would block. The closure fails with the returned error; the walk continues.
    #[cold]
    pub(crate) fn fall_back(&self, reason: Fallback) -> Errno {
        self.fallback.set(Some(reason));
        Errno::EAGAIN
    }

    /// Returns the inode. A walk to a negative entry fails, so there is one.
    pub(crate) fn inode(&self) -> Result<&'a Inode, Errno> {
        inode_of(self.dentry, self.object).ok_or(Errno::ENOENT)
    }

    /// Returns the attributes. In rcu-walk, stale attributes make the walk continue in ref-walk
    /// (`cache/fetch.rs`).
    ///
    /// # Errors
    /// Errors of the file system; `EAGAIN`, which the walk never returns.
    #[inline(always)]
    pub(crate) fn attr(&self) -> Result<Attr, Errno> {
        let inode = self.inode()?;
        inode.fresh_attr().map_or_else(|| self.stale_attr(), Ok)
    }

    /// Does the rest of [`WalkEnd::attr`] for stale attributes: requests them from the file system.
    ///
    /// # Errors
    /// As for [`WalkEnd::attr`].
    #[cold]
    #[inline(never)]
    pub(crate) fn stale_attr(&self) -> Result<Attr, Errno> {
        self.answer(Question::Attributes)
    }

    /// Returns an answer that needs a call of the file system. A ref-walk makes the call outside of
    /// its read section and calls the closure again, which gets the answer here. An rcu-walk
    /// becomes a ref-walk. Without the answer the closure fails with `EAGAIN`.
    ///
    /// # Errors
    /// The file system's; `EAGAIN`, which the walk never returns.
    #[cold]
    #[inline(never)]
    pub(crate) fn answer(&self, question: Question) -> Result<Attr, Errno> {
        match self.held {
            Some(end) => end.answer(question),
            None => Err(self.fall_back(question.fallback())),
        }
    }

    /// Takes a count on the mount. If the walk holds the place, it already has one and gets another, even of
    /// a mount that is being unmounted or was detached.
    ///
    /// # Errors
    /// `EAGAIN` if the mount is being unmounted; the walk continues and never returns that error.
    #[inline(always)]
    pub(crate) fn count_mount(&self) -> Result<PerCpuArc<Mount>, Errno> {
        match self.held {
            Some(end) => Ok(end.here.mount().clone()),
            None => self.mount.to_arc().ok_or_else(|| self.fall_back(Fallback::Unmounting)),
        }
    }

    /// Takes a count on the dentry.
    ///
    /// # Errors
    /// `EAGAIN` if it changed meanwhile; the walk continues and never returns that error.
    #[inline(always)]
    pub(crate) fn pin(&self) -> Result<PathRef, Errno> {
        let mount = self.count_mount()?;
        self.count_dentry().map(|pinned| PathRef::new(mount, pinned))
    }

    /// [`WalkEnd::pin`] without the mount, on which the caller takes a count first.
    ///
    /// # Errors
    /// The errors of [`WalkEnd::pin`].
    #[inline(always)]
    pub(crate) fn count_dentry(&self) -> Result<DentryRef, Errno> {
        let sb = self.sb();
        let pinned = match self.held {
            Some(_) => sb.pin(self.dentry),
            None => sb.pin_rcu(self.guard, self.dentry, self.seq),
        };
        self.pinned.set(pinned.is_some());
        pinned.ok_or(Errno::EAGAIN)
    }

    /// Takes a reference on the mount, and tries to take a lock: the directory's lock or, if the
    /// directory is sharded, the lock of the name with the hash that `hash` returns. While this
    /// thread has the lock, the directory keeps the name by which the walk found it. If another
    /// thread has the lock, and at the end of a ref-walk, which may take locks of directories, takes a
    /// reference on the directory in place of the lock, as [`WalkEnd::pin`] does.
    ///
    /// # Errors
    /// The errors of [`WalkEnd::pin`].
    #[inline(always)]
    pub(crate) fn lock_or_pin(&self, hash: impl FnOnce() -> Option<u64>) -> Result<DirRef, Errno> {
        if self.held.is_some() {
            return self.pin_parts();
        }
        let mount = self.mount.to_arc().ok_or_else(|| self.fall_back(Fallback::Unmounting))?;
        if self.object.is_hashed()
            && let Some(kept) = self.lock_or_enter(hash)
        {
            self.pinned.set(true);
            return Ok(DirRef { mount, kept: LockedOrRef::Locked(kept), seq: self.seq, links: self.links });
        }
        drop(mount);
        self.pin_parts()
    }

    #[inline(always)]
    fn lock_or_enter(&self, hash: impl FnOnce() -> Option<u64>) -> Option<LockedHere> {
        if self.dentry.lock.is_free()
            && !self.sb().shards_always()
            && let Some(locked) = LockedDentry::try_lock(self.sb().slots(), self.guard, self.dentry, self.seq)
        {
            return Some(LockedHere::Dir(locked));
        }
        self.sb().enter_name(self.guard, self.dentry, self.seq, hash()?).map(LockedHere::Name)
    }

    /// Takes the lock of the directory or of the name with the hash `hash`, as [`WalkEnd::lock_or_pin`] does, without a count on the
    /// mount.
    pub(crate) fn lock_name_to_keep(&self, hash: u64) -> Option<LockedHere> {
        if self.held.is_some() || !self.object.is_hashed() {
            return None;
        }
        let locked = self.lock_or_enter(|| Some(hash));
        self.pinned.set(locked.is_some());
        locked
    }

    /// Notes that another walk, with its end at this place, has locked the directory. Returns
    /// whether this walk found it unchanged.
    pub(crate) fn is_locked_too(&self) -> bool {
        self.pinned.set(!self.dentry.seq.retry(self.seq));
        self.pinned.get()
    }

    /// Locks the directory for an operation in the walk's section. Fails if another thread has the
    /// lock, if the directory has lost its name, or if it changed since the walk found it. Under
    /// the lock the closure's result stays valid.
    #[inline(always)]
    pub(crate) fn lock_here(&self) -> Option<MutexGuard<'a, ()>> {
        if self.held.is_some() || !self.object.is_hashed() || self.sb().shards_always() {
            return None;
        }
        let lock: &'a Mutex<()> = &self.dentry.lock;
        // Looks first: the line of a sharded directory's lock stays with all readers.
        let lock = lock.is_free().then(|| lock.try_lock()).flatten()?;
        if self.dentry.seq.retry(self.seq) {
            return None;
        }
        self.pinned.set(true);
        Some(lock)
    }

    /// Locks the name with the hash `hash` in the directory for an operation in the walk's section,
    /// if the directory is sharded, has its name and did not change since the walk found it. The
    /// closure's result then stays valid.
    pub(crate) fn enter_here(&self, hash: u64) -> Option<(MutexGuard<'a, ()>, Names<'a>)> {
        if self.held.is_some() || !self.object.is_hashed() {
            return None;
        }
        let sharded_dirs: &'a ShardedDirs = self.sb().sharded_dirs()?;
        let (lock, at) = sharded_dirs.enter(self.guard, self.dentry, self.seq, hash)?;
        self.pinned.set(true);
        Some((lock, sharded_dirs.names(at)))
    }

    /// Locks a name in the directory: by [`WalkEnd::lock_here`], or, if the directory is sharded,
    /// by [`WalkEnd::enter_here`].
    pub(crate) fn lock_name_here(&self, hash: u64) -> Option<(MutexGuard<'a, ()>, Option<Names<'a>>)> {
        match self.lock_here() {
            Some(lock) => Some((lock, None)),
            None => self.enter_here(hash).map(|(lock, names)| (lock, Some(names))),
        }
    }

    /// Locks two names in the directory, at which the walk `other` ended too.
    pub(crate) fn lock_names_here(&self, other: &WalkEnd<'_>, hashes: [u64; 2]) -> Option<NamePairGuard<'a>> {
        let sb = self.sb();
        let locked = match self.lock_here() {
            Some(lock) => Some(sb.name_pair([None, None], lock, None)),
            None if self.held.is_some() || !self.object.is_hashed() => None,
            None => sb.enter_names(self.guard, self.dentry, self.seq, hashes),
        };
        let is_locked = locked.is_some() && other.is_locked_too();
        self.pinned.set(is_locked);
        locked.filter(|_| is_locked)
    }

    /// Returns whether the walk ended in rcu-walk.
    pub(crate) fn is_in_section(&self) -> bool {
        self.held.is_none()
    }

    #[cold]
    #[inline(never)]
    fn pin_parts(&self) -> Result<DirRef, Errno> {
        let (mount, kept) = (self.count_mount()?, LockedOrRef::Counted(self.count_dentry()?));
        Ok(DirRef { mount, kept, seq: self.seq, links: self.links })
    }

    /// Notes that the lock that [`WalkEnd::lock_here`] took was released, and nothing changed under it.
    #[cold]
    pub(crate) fn unlocked(&self) {
        self.pinned.set(false);
    }
}

/// A directory that a walk found, kept by a lock or a count.
pub(crate) struct DirRef {
    pub(crate) mount: PerCpuArc<Mount>,
    pub(crate) kept: LockedOrRef,
    pub(crate) seq: u32,
    /// Symbolic links that the walk followed.
    pub(crate) links: u32,
}

/// The lock or count that keeps a directory after the walk's read section.
pub(crate) enum LockedOrRef {
    Locked(LockedHere),
    Counted(DentryRef),
}

/// A directory, or a name of a sharded one, that was locked in the walk's read section. Bind it, or its lock stays taken.
#[must_use]
pub(crate) enum LockedHere {
    Dir(LockedDentry),
    Name(LockedName),
}

impl LockedHere {
    /// Returns the directory, the guard of the lock, and where the directory keeps the name if it
    /// is sharded.
    #[inline(always)]
    pub(crate) fn bind(self, sb: &SuperBlock) -> (&Dentry, MutexGuard<'_, ()>, Option<Names<'_>>) {
        match self {
            LockedHere::Dir(locked) => {
                let (dir, lock) = locked.bind(sb.slots());
                (dir, lock, None)
            }
            LockedHere::Name(locked) => {
                let (dir, lock, names) = sb.bind_name(locked);
                (dir, lock, Some(names))
            }
        }
    }
}
