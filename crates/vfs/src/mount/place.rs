//! Places: uncounted ones of walks, held ones, and the starts of paths.

use crate::base::access::credentials::Credentials;
use crate::base::attr::{Attr, S_IFLNK, S_IFMT};
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::base::name::{NAME_MAX, PATH_MAX};
use crate::base::packed_attr::PackedAttr;
use crate::cache::budget::{Budget, SLOT};
use crate::cache::reclaim::name_bytes;
use crate::cache::shared_budget::SharedBudget;
use crate::cache::superblock::SuperBlock;
use crate::fs::Request;
use crate::fs::Valid;
use crate::mount::{Mount, MountRef};
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::slot::DentryRef;
use sync::PerCpuArc;
use sync::rcu::ReadGuard;

/// A place in the tree of mounts, uncounted: a dentry, and the mount that it is seen through.
#[derive(Clone, Copy)]
pub(crate) struct Place<'g> {
    pub(crate) mount: MountRef<'g>,
    pub(crate) dentry: &'g Dentry,
}

impl Place<'_> {
    pub(crate) fn is(&self, other: &Place<'_>) -> bool {
        core::ptr::eq(self.dentry, other.dentry) && self.mount.ptr_eq(other.mount)
    }
}

/// A held file or directory, and the mount that it is seen through: a handle as from `O_PATH`. It stays valid
/// when its name is removed or moved. Relative paths can start from it.
pub struct PathRef {
    mount: PerCpuArc<Mount>,
    /// Emptied by drop alone.
    pinned: Option<DentryRef>,
}

impl PathRef {
    pub(crate) fn new(mount: PerCpuArc<Mount>, pinned: DentryRef) -> Self {
        Self { mount, pinned: Some(pinned) }
    }

    /// Returns the root of a mount.
    pub(crate) fn root_of(mount: PerCpuArc<Mount>) -> Self {
        let pinned = mount.sb.pin_again(mount.root());
        Self::new(mount, pinned)
    }

    /// Returns the number of the place's file system: `st_dev`.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.mount.dev
    }

    pub(crate) fn mount(&self) -> &PerCpuArc<Mount> {
        &self.mount
    }

    pub(crate) fn sb(&self) -> &SuperBlock {
        &self.mount.sb
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { mount: self.mount.borrow(), dentry: self.dentry() }
    }

    /// Another dentry of the same mount.
    pub(crate) fn beside(&self, pinned: DentryRef) -> Self {
        Self::new(self.mount.clone(), pinned)
    }

    pub(crate) fn dentry(&self) -> &Dentry {
        self.pinned.as_ref().expect("emptied by drop alone").get(self.sb().slots())
    }

    /// Returns the attributes: `fstat(2)` of an `O_PATH` handle.
    ///
    /// # Errors
    /// The errors of [`crate::FileSystem::attributes`], if the attributes are stale.
    pub fn attr(&self) -> Result<Attr, Errno> {
        self.sb().attr_now(self.inode()?)
    }

    /// Returns the attributes, always requested from the file system.
    ///
    /// # Errors
    /// The errors of [`crate::FileSystem::attributes`].
    pub fn attr_anew(&self) -> Result<Attr, Errno> {
        self.sb().fetch_attr(self.inode()?)
    }

    /// Returns the attributes, as [`attr`](Self::attr), and the birth, if the cache keeps it:
    /// [`Inode::birth`].
    ///
    /// # Errors
    /// As for [`attr`](Self::attr).
    pub fn packed_attr(&self) -> Result<PackedAttr, Errno> {
        let inode = self.inode()?;
        Ok(PackedAttr::from(&self.sb().attr_now(inode)?).with_birth(inode.birth()))
    }

    /// Returns when the file was made, if its file system keeps that.
    ///
    /// # Errors
    /// The errors of [`crate::FileSystem::birth`].
    pub fn birth(&self) -> Result<Option<i64>, Errno> {
        self.sb().fs().birth(&Request::of(&Credentials::root()), self.inode()?)
    }

    /// Marks its attributes stale, as [`Inode::mark_stale`] does.
    pub fn mark_stale(&self) {
        if let Ok(inode) = self.inode() {
            inode.mark_stale();
        }
    }

    /// Makes the next walk to a name of the directory request the name from the file system.
    pub fn expire(&self, name: &[u8]) {
        self.sb().expire_entry(self.dentry(), name);
    }

    /// Returns whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.dentry().object().is_dir()
    }

    /// Returns for how long, from the answer on, the file system's answers about the file may be
    /// used.
    #[must_use]
    pub fn valid(&self) -> Valid {
        self.dentry().inode().map_or(Valid::For(0), |inode| self.sb().valid_of(inode))
    }

    /// Returns for how long the file system's answer that this directory lacks a name may be used.
    #[must_use]
    pub fn absence_valid(&self) -> Valid {
        self.sb().valid_in(self.dentry())
    }

    /// Returns a number that no other inode of this tree has while this place is held. All names of
    /// a file have the same number.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.dentry().inode().map_or(0, |inode| core::ptr::from_ref(inode) as u64)
    }

    /// Returns the number of the mount through which the place is seen, unique in this tree.
    #[must_use]
    pub fn mount_id(&self) -> u64 {
        self.mount().id
    }

    /// Returns the room that the place takes in the cache; a held place cannot be evicted. `None`:
    /// the cache has no limit.
    #[must_use]
    pub fn cache_use(&self) -> Option<CacheUse> {
        let sb = self.sb();
        let is_link = sb.is_evictable && self.inode().is_ok_and(|inode| inode.mode() & S_IFMT == S_IFLNK);
        let body = if is_link { PATH_MAX as u64 } else { 0 };
        let bytes = SLOT + name_bytes(NAME_MAX).unsigned_abs() + body;
        let of = sb.limits.shared.as_ref().map_or(self.dev(), SharedBudget::id);
        sb.is_evictable.then_some(CacheUse { bytes, budget: sb.limits.budget, of })
    }

    /// Returns the place's directory and its name in that directory, read at one moment; `None` if
    /// the place has no name, or is the root of its mount.
    #[must_use]
    pub fn parent_and_name(&self) -> Option<(Self, Box<[u8]>)> {
        let (sb, dentry) = (self.sb(), self.dentry());
        if core::ptr::eq(dentry, self.mount().root()) {
            return None;
        }
        loop {
            let guard = sb.domain.read();
            let seq = dentry.seq.begin();
            let is_named = dentry.object().is_hashed();
            let parent = dentry.parent().filter(|_| is_named);
            let name: Box<[u8]> = dentry.with_name_rcu(&guard, |name| name.into());
            // If it is still the parent in the check below, it was the parent all the time, and a
            // directory that contains a name is not removed.
            let held = parent.and_then(|parent| sb.pin(parent));
            drop(guard);
            if !dentry.seq.retry(seq) {
                return parent.and(held).map(|held| (self.beside(held), name));
            }
            held.into_iter().for_each(|held| sb.unpin(held));
        }
    }

    /// Returns the length of the file in bytes by the cache, without a call of the file system.
    #[must_use]
    pub fn cached_size(&self) -> u64 {
        self.dentry().inode().map_or(0, Inode::size)
    }

    pub(crate) fn inode(&self) -> Result<&Inode, Errno> {
        self.dentry().inode().ok_or(Errno::EIO)
    }
}

impl Clone for PathRef {
    fn clone(&self) -> Self {
        Self::new(self.mount.clone(), self.sb().pin_again(self.dentry()))
    }
}

impl Drop for PathRef {
    #[inline]
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.mount.sb.unpin(pinned);
        }
    }
}

/// Returns the path of `dentry` from the root of its file system `sb`. If names on the way change
/// meanwhile, some are old.
pub(crate) fn path_in_file_system(sb: &SuperBlock, dentry: &Dentry) -> Vec<u8> {
    let guard = sb.domain.read();
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut at = dentry;
    while let Some(parent) = above(at) {
        names.push(at.with_name_rcu(&guard, <[u8]>::to_vec));
        at = parent;
    }
    let path = names.iter().rev().fold(Vec::new(), |path, name| [&path[..], b"/", name].concat());
    if path.is_empty() { b"/".to_vec() } else { path }
}

impl core::fmt::Debug for PathRef {
    /// Shows the type of the file system, and the path in it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let path = path_in_file_system(self.sb(), self.dentry());
        write!(f, "{}:{:?}", self.sb().type_name, path.escape_ascii().to_string())
    }
}

/// The room that a held entry takes in the cache of its file system: [`PathRef::cache_use`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The most bytes that the entry takes, whatever name it gets, without the directories above it.
    pub bytes: u64,
    /// The cache's budget.
    pub budget: Budget,
    /// The number of that budget: the file system's, or the number of a [`SharedBudget`].
    pub of: u64,
}

/// The start of relative paths, and the limits of their walks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Base<'a> {
    /// `None`: the working directory.
    pub(crate) dir: Option<&'a PathRef>,
    /// The root of a scoped walk that continues from `dir`; `None`: `dir` itself.
    pub(crate) scope: Option<&'a PathRef>,
    pub(crate) resolve: Resolve,
}

impl<'a> Base<'a> {
    /// The working directory, without limits.
    pub const CWD: Base<'static> = Base { dir: None, scope: None, resolve: Resolve::empty() };

    /// Returns a held directory.
    #[must_use]
    pub const fn at(dir: &'a PathRef) -> Self {
        Base { dir: Some(dir), scope: None, resolve: Resolve::empty() }
    }

    /// Returns this base, for walks within the limits of `resolve`.
    #[must_use]
    pub const fn within(self, resolve: Resolve) -> Self {
        Base { resolve: self.resolve.union(resolve), ..self }
    }
}

/// A path, and where it starts: one of two that an operation takes.
#[derive(Clone, Copy, Debug)]
pub struct PathAt<'a> {
    /// Where a relative path starts, and the limits of the walk.
    pub base: Base<'a>,
    /// The path.
    pub path: &'a [u8],
}

impl<'a> PathAt<'a> {
    /// `path`, which starts at `base` if it is relative.
    #[must_use]
    pub const fn new(base: Base<'a>, path: &'a [u8]) -> Self {
        Self { base, path }
    }

    /// Returns a path from the working directory, without limits.
    #[must_use]
    pub const fn cwd(path: &'a [u8]) -> Self {
        Self { base: Base::CWD, path }
    }
}

impl<'a> From<Option<&'a PathRef>> for Base<'a> {
    fn from(dir: Option<&'a PathRef>) -> Self {
        Base { dir, ..Base::CWD }
    }
}

impl<'a> From<&'a PathRef> for Base<'a> {
    fn from(dir: &'a PathRef) -> Self {
        Base::at(dir)
    }
}

/// Returns whether `place` is `root` or below it, through mounts. Exact if no directory moves and
/// no mount changes meanwhile.
pub(crate) fn climbs_to(guard: &ReadGuard<'_>, place: Place<'_>, root: &Place<'_>) -> bool {
    climb(guard, place, root, above)
}

/// Climbs from `place` to `root`, through mounts, by `step` from each name to its directory. Returns whether it arrives there.
pub(super) fn climb<'g>(
    guard: &'g ReadGuard<'_>,
    place: Place<'g>,
    root: &Place<'_>,
    mut step: impl FnMut(&'g Dentry) -> Option<&'g Dentry>,
) -> bool {
    let mut at = place;
    while !at.is(root) {
        if core::ptr::eq(at.dentry, at.mount.get().root()) {
            let Some(up) = at.mount.get().attachment(guard) else { return false };
            at = Place { mount: up.parent.borrow(), dentry: up.mountpoint() };
        } else {
            let Some(parent) = step(at.dentry) else { return false };
            at.dentry = parent;
        }
    }
    true
}

/// Returns the directory of `dentry`; none if it is the root of its file system.
pub(crate) fn above(dentry: &Dentry) -> Option<&Dentry> {
    dentry.parent().filter(|parent| !core::ptr::eq(*parent, dentry))
}
