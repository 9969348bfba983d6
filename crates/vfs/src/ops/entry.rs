//! From a path to a locked directory and a name in it.
//!
//! # How they work
//! Each operation walks to the directory, locks it, checks that it still is what the walk found (its sequence
//! is unchanged and it was not removed), calls the file system, and changes the tree. It takes the lock before it
//! leaves the walk's read section, or, where another thread has it, a count: the lock of a directory without a
//! count could be that of another directory later, or of none. Once the directory is locked, the lock keeps its
//! name and so its memory, since a removal needs the same lock. (It may be moved meanwhile; that changes nothing
//! in it.) A count is taken on the mount, so that the file system stays.

use crate::base::access::credentials::{MAY_EXEC, MAY_WRITE};
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::base::name::{NAME_MAX, Named, PATH_MAX};
use crate::base::rank::Rank;
use crate::dcache::dentry::Dentry;
use crate::dcache::fs::Request;
use crate::dcache::inode::Inode;
use crate::dcache::reclaim::{LockedDirs, MayEvict};
use crate::dcache::slot::CountedDentry;
use crate::dcache::superblock::SuperBlock;
use crate::mount::Mount;
use crate::mount::context::Context;
use crate::mount::place::{Base, OwnedPlace};
use crate::ops::last::{Last, LastKind};
use crate::walk::permission::{may, may_block};
use crate::walk::{LockedOrCounted, WalkEnd, lookup, nul_or};
use sync::PerCpuArc;

/// A directory that a walk found, held, with its sequence at that moment.
pub(crate) struct DirAt {
    place: OwnedPlace,
    seq: u32,
}

impl DirAt {
    pub(crate) fn dir(&self) -> &Dentry {
        self.place.dentry()
    }

    pub(crate) fn mount(&self) -> &PerCpuArc<Mount> {
        self.place.mount()
    }

    pub(crate) fn sb(&self) -> &SuperBlock {
        self.place.sb()
    }

    /// Whether the directory still is what the walk found. While its lock is held it then stays in the tree;
    /// only its own name and place may change.
    pub(super) fn is_current(&self) -> bool {
        !self.dir().seq.retry(self.seq)
    }
}

/// A directory that a walk found, kept by what the walk took of it.
struct DirFound<K> {
    mount: PerCpuArc<Mount>,
    kept: K,
    seq: u32,
    /// Symbolic links that the walk followed.
    links: u32,
}

/// An entry that was found under its directory's lock, held so that the owner of that lock may search for another one
/// ([`MayEvict`]).
pub(super) struct Pinned<'s>(&'s SuperBlock, Option<CountedDentry>);

impl<'s> Pinned<'s> {
    pub(super) fn new(sb: &'s SuperBlock, found: &Dentry) -> Self {
        Self(sb, Some(sb.pin_again(found)))
    }
}

impl core::ops::Deref for Pinned<'_> {
    type Target = Dentry;

    fn deref(&self) -> &Dentry {
        self.1.as_ref().expect("emptied by drop alone").get(self.0)
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.1.take().into_iter().for_each(|pinned| self.0.unpin(pinned));
    }
}

/// A locked directory, and the name in it that an operation works on. [`Context::in_parent`] lends it while it has the lock.
pub(crate) struct Entry<'t, 'p> {
    pub(crate) context: &'t Context,
    pub(crate) mount: &'t PerCpuArc<Mount>,
    pub(crate) sb: &'t SuperBlock,
    pub(crate) dir: &'t Dentry,
    pub(crate) last: Last<'p>,
    pub(crate) hash: u64,
    /// Symbolic links that the walk followed.
    pub(crate) links: u32,
}

impl<'t> Entry<'t, '_> {
    /// The directory's inode.
    pub(crate) fn dir_inode(&self) -> Result<&'t Inode, Errno> {
        self.dir.inode().ok_or(Errno::ENOENT)
    }

    /// The entry, if it exists; `ENOENT` in a directory that was removed. It stays for as long as it borrows
    /// `may_evict`.
    pub(crate) fn find<'r>(&'r self, may_evict: &'r mut MayEvict) -> Result<Option<&'r Dentry>, Errno> {
        self.context.find_in(self.sb, may_evict, self.dir, self.named())
    }

    /// The name and its hash.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { name: self.last.name, hash: self.hash }
    }

    /// Holds `dentry`.
    pub(crate) fn hold(&self, pinned: CountedDentry) -> OwnedPlace {
        OwnedPlace::new(self.mount.clone(), pinned)
    }
}

impl Context {
    /// The entry of a name in the locked directory `dir`, if it exists; `ENOENT` in a directory that was
    /// removed.
    pub(super) fn find_in<'r>(
        &self,
        sb: &'r SuperBlock,
        may_evict: &'r mut MayEvict,
        dir: &'r Dentry,
        named: Named<'_>,
    ) -> Result<Option<&'r Dentry>, Errno> {
        if !dir.object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        if named.name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        lookup::find_locked(sb, may_evict, || self.request(), dir, named)
    }

    /// Walks to the directory of a path's `last` component; it must be a directory that the context may
    /// search.
    pub(crate) fn parent(&self, base: Base<'_>, path: &[u8], last: &Last<'_>) -> Result<DirAt, Errno> {
        let found = self.parent_kept(0, base, path, last, |found| Ok((found.count_mount()?, found.count_dentry()?)))?;
        Ok(DirAt { place: OwnedPlace::new(found.mount, found.kept), seq: found.seq })
    }

    /// As [`Context::parent`], with the directory's lock where the walk could take it.
    fn parent_locked(
        &self,
        links: u32,
        base: Base<'_>,
        path: &[u8],
        last: &Last<'_>,
    ) -> Result<DirFound<LockedOrCounted>, Errno> {
        self.parent_kept(links, base, path, last, |found| found.lock_or_pin())
    }

    #[inline(always)]
    fn parent_kept<K>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &[u8],
        last: &Last<'_>,
        keep: impl Fn(&WalkEnd<'_>) -> Result<(PerCpuArc<Mount>, K), Errno>,
    ) -> Result<DirFound<K>, Errno> {
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
                    may(found, &found.inode()?.attr(), MAY_EXEC)?;
                }
                let (mount, kept) = keep(found)?;
                Ok(DirFound { mount, kept, seq: found.seq, links: found.links })
            },
        );
        match found {
            Ok(at) => Ok(at),
            Err(errno) => Err(nul_or(path, errno)),
        }
    }

    /// Walks to the directory of `path`'s last component, locks it and calls `f`.
    #[inline]
    pub(crate) fn in_parent<'p, R>(
        &self,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.in_parent_after(0, base, path, f)
    }

    /// [`Context::in_parent`] as the continuation of a walk that has followed `links` symbolic links.
    #[inline]
    pub(crate) fn in_parent_after<'p, R>(
        &self,
        links: u32,
        base: Base<'_>,
        path: &'p [u8],
        f: impl FnOnce(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let last = Last::of(path).ok_or(Errno::ENOENT)?;
        loop {
            let DirFound { mount, kept, seq, links } = self.parent_locked(links, base, path, &last)?;
            let (mount, sb) = (&mount, &*mount.sb);
            let counted;
            let (dir, lock) = match kept {
                LockedOrCounted::Locked(locked) => {
                    let (dir, lock) = locked.bind(sb);
                    (dir, sb.ranks.taken(Rank::Directory, lock))
                }
                LockedOrCounted::Counted(dir) => {
                    counted = Pinned(sb, Some(dir));
                    let lock = sb.ranks.lock(Rank::Directory, &counted.lock);
                    // If the directory moved between the walk and the lock, the operation walks again: each time,
                    // another thread made progress.
                    if counted.seq.retry(seq) {
                        continue;
                    }
                    (&*counted, lock)
                }
            };
            let mut held = LockedDirs::new(lock);
            let hash = sb.hash(last.name);
            let entry = Entry { context: self, mount, sb, dir, last, hash, links };
            return f(&entry, held.may_evict()).map_err(|errno| nul_or(path, errno));
        }
    }

    pub(crate) fn request(&self) -> Request {
        let guard = self.tree().domain.read();
        let state = self.state(&guard);
        let request = Request::of(&state.cred);
        match state.timeout {
            None => request,
            Some(ns) => request.within(ns),
        }
    }

    /// Whether this context may create and remove entries in the directory.
    ///
    /// # Errors
    /// `EACCES`; `ENOENT` if it was removed.
    pub(crate) fn may_change(&self, sb: &SuperBlock, dir: &Dentry) -> Result<(), Errno> {
        if !dir.object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        let inode = dir.inode().ok_or(Errno::ENOENT)?;
        may_block(sb, inode, &inode.attr(), &self.credentials(), MAY_WRITE | MAY_EXEC)
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
