//! From a path to a locked directory and a name in it.
//!
//! # How they work
//! 1. Each operation walks to the directory and locks it. It checks that the directory's sequence
//!    is unchanged and that the directory was not removed. Then it calls the file system, and
//!    changes the tree.
//! 2. The operation takes the lock before it leaves the walk's read section; if another thread has
//!    the lock, it takes a count on the directory. Without lock and count, the slot could later
//!    serve another directory, or none.
//! 3. The lock of a directory keeps its name and so its memory: a removal needs the same lock. (A
//!    move does not. It changes nothing in the directory.)
//! 4. The operation takes a count on the mount, so that the file system stays.
//! 5. Where the file system never waits
//!    ([`CachedNames::never_waits`](crate::CachedNames::never_waits)), creation and removal of a
//!    name take place in the walk's read section ([`Context::in_parent_quick`]). The section keeps
//!    the mount, its file system, and the state of the context, so the operation takes no counts
//!    and no copies of these. An operation that might wait leaves the section and begins again
//!    ([`Entry::leave`]).
//!
//! [`in_section`] has the operations in the section, [`kept`] the locks and counts of the others.
//!
//! # Why a directory's lock is held across a call
//! The VFS calls a remote file system with the name locked, and no directory. It could call every
//! file system with its own names in this way. Measured with `hostfs` on tmpfs, its traits changed
//! to `remote` (at 07b20d4, 2 CPUs, one interleaved run): CPU time 1.04 to 1.06 for create and
//! unlink, 1.08 to 1.10 for rename, up to 1.18 with 4 threads in one directory; 17,500 instead of
//! 12,188 user instructions for mknod and unlink, 22,783 instead of 16,179 for two renames. The
//! limit was 5 %, so the lock of the directory stays for file systems that are not remote.

mod in_section;
mod kept;

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_WRITE};
use crate::base::deadline::Timeout;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::base::name::{NAME_MAX, Named, PATH_MAX};
use crate::base::rank::Rank;
use crate::cache::reclaim::{LockedDirs, MayEvict};
use crate::cache::returned::{Files, PreAttrs};
use crate::cache::sharded::NameGuard;
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef};
use crate::mount::{Mount, MountRef};
pub(crate) use crate::ops::entry::in_section::Operation;
use crate::ops::entry::in_section::keep;
pub(crate) use crate::ops::entry::kept::{DirAt, Pinned};
use crate::ops::last_component::{Last, LastKind};
use crate::ops::unlocked::Unlocked;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::shard::Names;
use crate::slots::slot::DentryRef;
use crate::walk::nul_or;
use crate::walk::permission::{may, may_block};
use crate::walk::walk_end::{DirRef, LockedOrRef, WalkEnd};
use core::cell::Cell;
use sync::PerCpuArc;
use sync::rcu::ReadGuard;

/// The caller of an operation: credentials, and the time that its requests have.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'t> {
    pub(crate) cred: &'t Credentials,
    pub(super) timeout: Timeout,
}

impl<'t> Caller<'t> {
    /// Returns a request that begins now.
    #[inline(always)]
    pub(crate) fn request(self) -> Request<'t> {
        self.making(0)
    }

    /// Returns a request that begins now, to create an entry, with a umask that the file system
    /// must apply.
    #[inline(always)]
    fn making(self, umask: u32) -> Request<'t> {
        Request::lent(self.cred, self.timeout, umask)
    }
}

/// A locked directory, and the name in it that an operation works on. [`Context::in_parent`] lends
/// this value while it has the directory's lock or, in a remote file system, the name's lock
/// ([`unlocked`](crate::ops::unlocked)).
pub(crate) struct Entry<'t, 'p> {
    pub(crate) context: &'t Context,
    pub(crate) mount: MountRef<'t>,
    pub(crate) sb: &'t SuperBlock,
    pub(crate) dir: &'t Dentry,
    pub(crate) last: &'t Last<'p>,
    pub(crate) hash: u64,
    /// Where the directory keeps the name, if it is sharded: then the name is locked, and not the directory.
    pub(crate) names: Option<&'t Names<'t>>,
    /// Symbolic links that the walk followed.
    pub(crate) links: u32,
    /// With the context's state at the moment of the lock.
    pub(crate) caller: Caller<'t>,
    pub(super) keeper: Mode<'t>,
}

/// How the mount of the directory is kept, in which a name is locked, or which is locked itself.
#[derive(Clone, Copy)]
pub(super) enum Mode<'t> {
    /// Set: the operation must be done with the whole directory locked.
    Count(&'t PerCpuArc<Mount>, &'t Cell<bool>),
    /// The walk's section. Set: the operation must be done outside of it.
    Section(&'t ReadGuard<'t>, &'t Cell<bool>),
    /// A count, too. The name is locked, and no directory is.
    Name(&'t PerCpuArc<Mount>, &'t Unlocked<'t>),
}

impl<'t> Entry<'t, '_> {
    /// Returns the walk's section, if the operation is in it.
    #[inline(always)]
    pub(crate) fn section(&self) -> Option<&'t ReadGuard<'t>> {
        if let Mode::Section(guard, _) = self.keeper { Some(guard) } else { None }
    }

    /// Returns the state of an operation on a locked name, which has no lock.
    #[inline(always)]
    pub(super) fn unlocked(&self) -> Option<&'t Unlocked<'t>> {
        if let Mode::Name(_, unlocked) = self.keeper { Some(unlocked) } else { None }
    }

    /// Notes that the operation, which has changed nothing yet, might wait, that the lock of a name is not enough
    /// for it, or that its entry has left the cache. It fails with the returned error and begins again: outside of the walk's section,
    /// with the whole directory locked, or from the walk.
    #[cold]
    pub(crate) fn leave(&self) -> Errno {
        match self.keeper {
            Mode::Section(_, leaves) | Mode::Count(_, leaves) => leaves.set(true),
            Mode::Name(_, unlocked) => unlocked.begins_again.set(true),
        }
        Errno::EAGAIN
    }

    /// Updates the length, links and times of the directory, whose inode is `dir`, or the share of the name's shard,
    /// after an entry was added (`by` = 1) or removed (-1).
    #[inline(always)]
    pub(super) fn touch_dir(&self, dir: &Inode, by: i64, subdirs: i32, now: i64) {
        match self.names {
            None => dir.entry_changed(by * self.sb.entry_size, subdirs, now),
            Some(names) => names.touch(subdirs, now),
        }
    }

    /// Samples the files of a change, unless the file system is one that leaves all attributes to the VFS.
    #[inline(always)]
    pub(super) fn pre_attrs(&self, files: Files<'t>) -> PreAttrs<'t> {
        if self.section().is_some() { PreAttrs::NONE } else { self.sb.pre_attrs(files) }
    }

    pub(crate) fn dir_inode(&self) -> Result<&'t Inode, Errno> {
        self.dir.inode().ok_or(Errno::ENOENT)
    }

    /// Returns the entry, if it exists; `ENOENT` in a directory that was removed. The entry stays
    /// cached as long as the result borrows `may_evict`.
    #[inline(always)]
    pub(crate) fn find<'r>(&'r self, may_evict: &'r mut MayEvict) -> Result<Option<&'r Dentry>, Errno> {
        if let Some(guard) = self.section()
            && let Some(short) = self.last.short
            && self.sb.rules.is_none()
        {
            return self.checked(self.sb.find_short(guard, self.dir, short, self.hash));
        }
        self.find_any(may_evict)
    }

    #[cold]
    #[inline(never)]
    fn find_any<'r>(&'r self, may_evict: &'r mut MayEvict) -> Result<Option<&'r Dentry>, Errno> {
        match self.keeper {
            Mode::Count(..) => self.context.find_in(self.sb, may_evict, self.dir, self.named()),
            Mode::Name(_, unlocked) => unlocked.find(self),
            Mode::Section(..) if self.last.name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
            Mode::Section(guard, _) => self.checked(self.sb.lookup_rcu(guard, self.dir, self.named())),
        }
    }

    /// Returns the result of a search in a walk's section. The walk found the directory hashed, and
    /// it is complete, so none is the answer.
    #[inline(always)]
    fn checked<'r>(&self, found: Option<&'r Dentry>) -> Result<Option<&'r Dentry>, Errno> {
        match found {
            Some(entry) if entry.object().has_expiry() => Err(self.leave()),
            found => Ok(found),
        }
    }

    /// Returns the request to create the entry.
    #[inline(always)]
    pub(super) fn making(&self) -> Request<'t> {
        self.caller.making(self.context.umask_for(self.sb))
    }

    /// Returns the name and its hash.
    #[inline(always)]
    pub(crate) fn named(&self) -> Named<'_> {
        Named { name: self.last.name, hash: self.hash, short: self.last.short }
    }

    /// Holds `dentry`. Not in a walk's section.
    pub(crate) fn hold(&self, pinned: DentryRef) -> PathRef {
        let (Mode::Count(mount, _) | Mode::Name(mount, _)) = self.keeper else {
            unreachable!("a place is held outside of the walk's section")
        };
        PathRef::new(mount.clone(), pinned)
    }
}

impl Context {
    /// Walks to the directory of a path's `last` component; it must be a directory that the context may
    /// search.
    pub(crate) fn parent(&self, base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<DirAt, Errno> {
        self.parent_with(0, base, path, last, DirAt::keep)
    }

    /// As [`Context::parent`], but returns the result of `keep` for the directory.
    #[inline(always)]
    pub(super) fn parent_with<K>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &[u8],
        last: &Last<'_>,
        keep: impl Fn(&WalkEnd<'_>) -> Result<K, Errno>,
    ) -> Result<K, Errno> {
        if path.len() > PATH_MAX {
            return Err(nul_or(path, Errno::ENAMETOOLONG));
        }
        if !base.resolve.is_plain() {
            check_scope(base, path, last)?;
        }
        let found = self.resolve_after(
            links,
            base,
            last.parent,
            true,
            |_| None,
            |found| {
                if !found.object.is_dir() {
                    return Err(Errno::ENOTDIR);
                }
                // The root itself needs no lookup.
                if !found.object.is_open_dir() && last.kind != LastKind::Root {
                    may(found, found.inode()?.rights(), MAY_EXEC)?;
                }
                keep(found)
            },
        );
        match found {
            Ok(kept) => Ok(kept),
            Err(errno) => Err(nul_or(path, errno)),
        }
    }

    /// Walks to the directory of `path`'s last component, locks it and calls `f`.
    #[inline]
    pub(crate) fn in_parent<'p, R>(
        &self,
        base: Base<'_>,
        path: &'p [u8],
        f: impl Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.unless_stale(&[PathAt { base, path }], false, &|| self.in_parent_after(0, base, path, &f))
    }

    /// [`Context::in_parent`] as the continuation of a walk that has followed `links` symbolic links.
    #[inline]
    pub(crate) fn in_parent_after<'p, R>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &'p [u8],
        f: impl Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let last = Last::of(path).ok_or(Errno::ENOENT)?;
        let whole = Cell::new(false);
        loop {
            let kept = self.parent_with(links, base, path, &last, |found| keep(found, &last, whole.get()))?;
            if let Some(done) = self.in_kept(kept, &last, path, &f, &whole) {
                return done;
            }
        }
    }

    /// [`Context::in_parent`] for an operation that may take place in the walk's read section. If
    /// the operation [leaves](Entry::leave) the section, it is called again outside of it.
    #[inline]
    pub(crate) fn in_parent_quick(&self, base: Base<'_>, path: &[u8], operation: &impl Operation) -> Result<(), Errno> {
        let last = Last::of(path).ok_or(Errno::ENOENT)?;
        // The common case is inlined; the rare one calls this.
        let again: &dyn Fn(&Entry<'_, '_>, &mut MayEvict) -> Result<(), Errno> =
            &|entry, may_evict| operation.apply(entry, may_evict);
        let apply = |entry: &Entry<'_, '_>, may_evict: &mut MayEvict| operation.apply(entry, may_evict);
        // Beside the result, so that the result of the common case is small.
        let kept = Cell::new(None);
        let done =
            self.parent_with(0, base, path, &last, |found| match self.try_in_section(found, &last, &apply, again) {
                Some(done) => done.map(Some),
                None => {
                    kept.set(Some(keep(found, &last, false)?));
                    Ok(None)
                }
            })?;
        match done {
            Some(done) => Ok(done),
            None => self.in_kept_or_again(kept.take(), base, &last, path, again),
        }
    }

    /// [`Context::in_kept`], or the walk again.
    #[inline(never)]
    fn in_kept_or_again<'p, R>(
        &self,
        kept: Option<DirRef>,
        base: Base<'_>,
        last: &Last<'p>,
        path: &'p [u8],
        f: &dyn Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match kept.and_then(|kept| self.in_kept(kept, last, path, f, &Cell::new(false))) {
            Some(Err(Errno::ESTALE)) | None => {}
            Some(done) => return done,
        }
        self.in_parent(base, path, f)
    }

    /// Locks a directory that a walk found, or a name of it, if the walk has not, and calls `f`. `None`: the
    /// directory moved between the walk and the lock, so the operation walks again: each time, another thread made
    /// progress. Or the operation [left](Entry::leave) the lock of a name, sets `whole`, and begins again.
    #[inline(never)]
    fn in_kept<'p, R>(
        &self,
        found: DirRef,
        last: &Last<'p>,
        path: &[u8],
        f: &dyn Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
        whole: &Cell<bool>,
    ) -> Option<Result<R, Errno>> {
        if found.mount.sb.name_locks.is_some() {
            return self.in_name_locked(found, last, path, f);
        }
        let DirRef { mount, kept, seq, links } = found;
        let (mount, sb) = (&mount, &*mount.sb);
        let hash = sb.hash_again(last.name, last.short);
        let counted;
        let (dir, lock) = match kept {
            LockedOrRef::Locked(locked) => {
                let (dir, lock, names) = locked.bind(sb);
                (dir, NameGuard::new(sb.ranks.taken(Rank::Directory, lock), names))
            }
            LockedOrRef::Counted(dir) => {
                counted = Pinned::of(sb, dir);
                let lock = match whole.get() || sb.is_evictable {
                    true => NameGuard::new(sb.lock_dir(&counted), None),
                    false => sb.lock_name(&counted, hash, true),
                };
                if counted.seq.retry(seq) {
                    return None;
                }
                (&*counted, lock)
            }
        };
        let names = lock.names;
        let mut held = LockedDirs::new(lock);
        let (cred, timeout) = self.cred_and_timeout();
        let (caller, keeper) = (Caller { cred: &cred, timeout }, Mode::Count(mount, whole));
        let entry = Entry {
            context: self,
            mount: mount.borrow(),
            sb,
            dir,
            last,
            hash,
            names: names.as_ref(),
            links,
            caller,
            keeper,
        };
        let done = f(&entry, held.may_evict());
        if names.is_some() && whole.get() {
            return None;
        }
        Some(done.map_err(|errno| nul_or(path, errno)))
    }

    /// Returns the caller of an operation, by the state of the context now.
    #[inline(always)]
    pub(super) fn caller_rcu<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Caller<'g> {
        let state = self.state(guard);
        Caller { cred: &state.cred, timeout: state.timeout }
    }

    pub(crate) fn request(&self) -> Request<'static> {
        let guard = self.tree().domain.read();
        let Caller { cred, timeout } = self.caller_rcu(&guard);
        Request::with(cred, timeout, 0)
    }

    /// Returns the umask of a request to create an entry: 0 unless the file system applies it.
    #[inline(always)]
    pub(super) fn umask_for(&self, sb: &SuperBlock) -> u32 {
        if sb.fs_keeps_modes { self.umask() } else { 0 }
    }

    /// Returns whether this context may create and remove entries in the directory.
    ///
    /// # Errors
    /// `EACCES`; `ENOENT` if it was removed.
    pub(crate) fn may_change(&self, sb: &SuperBlock, dir: &Dentry) -> Result<(), Errno> {
        if !dir.object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        let inode = dir.inode().ok_or(Errno::ENOENT)?;
        may_block(sb, inode, inode.rights(), &self.credentials(), MAY_WRITE | MAY_EXEC)
    }
}

/// Applies the limits of the walk to an operation on the last component, before the walk to its directory.
///
/// # Errors
/// `EAGAIN`: with `CACHED`, the operation might call the file system. `EXDEV`: the path begins outside of the
/// scope.
#[cold]
fn check_scope(base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<(), Errno> {
    if base.resolve.contains(Resolve::CACHED) {
        return Err(Errno::EAGAIN);
    }
    let beneath = base.resolve.contains(Resolve::BENEATH);
    if beneath && path.first() == Some(&b'/') {
        return Err(Errno::EXDEV);
    }
    if beneath && last.kind == LastKind::Root { Err(Errno::EXDEV) } else { Ok(()) }
}

#[cfg(all(test, not(loom)))]
mod tests;
