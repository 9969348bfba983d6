//! How far a walk may go: the flags of `openat2(2)`, and what is within a scope.
//!
//! # What it is
//! A scoped walk (`BENEATH`, `IN_ROOT`) has the directory that it starts from for its root. Names lead down, so only `..` can lead out:
//! when a directory is moved out of the scope while a walk stands in it. So after each `..` a scoped walk climbs from the new
//! place to the root of its scope, and takes the step only if it arrives there, at a moment when no directory moved and
//! no mount changed. The climb in rcu-walk is thrown away if one did; the one in ref-walk keeps both from changing, so a
//! storm of renames cannot keep a scoped walk from its end.
//!
//! # Where it comes from
//! `openat2(2)`. Linux answers `EAGAIN` to a scoped walk that met a rename; here it goes on.

use crate::context::{Held, Place};
use crate::errno::Errno;
use crate::flag_set::flag_set;
use crate::rank::Rank;
use crate::tree::Tree;
use sync::rcu::ReadGuard;

/// Flags of `openat2(2)`'s `resolve`, by Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resolve(u32);

flag_set!(Resolve);

impl Resolve {
    /// Cross no mount point, down or up: `EXDEV`.
    pub const NO_XDEV: Self = Self(1);
    /// Follow no magic link. No file system here has any, so this changes nothing.
    pub const NO_MAGICLINKS: Self = Self(2);
    /// Follow no symbolic link: `ELOOP`.
    pub const NO_SYMLINKS: Self = Self(4);
    /// Stay below the start: an absolute path or link, or a `..` that leads out, is `EXDEV`.
    pub const BENEATH: Self = Self(8);
    /// The start is the root: absolute paths and links begin there, and `..` stays there.
    pub const IN_ROOT: Self = Self(16);
    /// Answer from the cache or not at all: `EAGAIN`.
    pub const CACHED: Self = Self(32);
    /// Of ours: symbolic links are protected ([`crate::Policy`]).
    pub(crate) const PROTECTED_LINKS: Self = Self(1 << 31);

    /// Flags out of Linux's numbers.
    ///
    /// # Errors
    /// `EINVAL` for others than these, and for both `BENEATH` and `IN_ROOT`.
    pub const fn from_bits(bits: u32) -> Result<Self, Errno> {
        if bits & !63 != 0 || bits & 24 == 24 { Err(Errno::EINVAL) } else { Ok(Self(bits)) }
    }

    /// Whether none is here.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & !Self::PROTECTED_LINKS.0 == 0
    }

    /// Whether the start of the walk is its root.
    #[inline(always)]
    pub(crate) const fn is_scoped(self) -> bool {
        self.0 & (Self::BENEATH.0 | Self::IN_ROOT.0) != 0
    }
}

/// Where a relative path starts, and how far its walk may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Base<'a> {
    /// `None`: the working directory.
    pub(crate) dir: Option<&'a Held>,
    /// The root of a scoped walk that goes on from `dir`; `None`: `dir` itself.
    pub(crate) scope: Option<&'a Held>,
    pub(crate) resolve: Resolve,
}

impl<'a> Base<'a> {
    /// The working directory, without limits.
    pub const CWD: Base<'static> = Base { dir: None, scope: None, resolve: Resolve(0) };

    /// A directory that is held.
    #[must_use]
    pub const fn at(dir: &'a Held) -> Self {
        Base { dir: Some(dir), scope: None, resolve: Resolve(0) }
    }

    /// The same, for walks that go no further than `resolve` says.
    #[must_use]
    pub const fn within(self, resolve: Resolve) -> Self {
        Base { resolve: Resolve(self.resolve.0 | resolve.0), ..self }
    }

    /// Where the text of a link in `dir` goes on, in the same scope.
    pub(crate) fn going_on_from<'b>(&self, dir: &'b Held, scope: Option<&'b Held>) -> Base<'b> {
        Base { dir: Some(dir), scope, resolve: self.resolve }
    }
}

impl<'a> From<Option<&'a Held>> for Base<'a> {
    fn from(dir: Option<&'a Held>) -> Self {
        Base { dir, ..Base::CWD }
    }
}

impl<'a> From<&'a Held> for Base<'a> {
    fn from(dir: &'a Held) -> Self {
        Base::at(dir)
    }
}

/// Whether `place` is `root` or below it, through mounts. Right if no directory moves and no mount changes meanwhile.
pub(crate) fn climbs_to(guard: &ReadGuard<'_>, place: Place<'_>, root: &Place<'_>) -> bool {
    let (mut mount, mut dentry) = (place.mount, place.dentry);
    loop {
        if core::ptr::eq(dentry, root.dentry) && mount.ptr_eq(root.mount) {
            return true;
        }
        if core::ptr::eq(dentry, mount.get().root()) {
            let Some(up) = mount.get().attachment(guard) else { return false };
            (mount, dentry) = (up.parent.borrow(), up.mountpoint());
            continue;
        }
        match dentry.parent() {
            Some(parent) if !core::ptr::eq(parent, dentry) => dentry = parent,
            _ => return false,
        }
    }
}

/// Whether `place` is within `root` now; `None`: something moved meanwhile.
pub(crate) fn is_within_rcu(tree: &Tree, guard: &ReadGuard<'_>, place: Place<'_>, root: &Place<'_>) -> Option<bool> {
    let (moves, mounts) = (tree.dir_moves.0.raw_begin(), tree.mount_seq.0.raw_begin());
    let within = climbs_to(guard, place, root);
    let undisturbed = !tree.dir_moves.0.read_retry(moves) && !tree.mount_seq.0.read_retry(mounts);
    undisturbed.then_some(within)
}

/// Whether `place` is within `root`, for who may block: at worst, moves wait.
pub(crate) fn is_within(tree: &Tree, place: Place<'_>, root: &Place<'_>) -> bool {
    if let Some(within) = is_within_rcu(tree, &tree.domain.read(), place, root) {
        return within;
    }
    let _mounts = tree.ranks.lock(Rank::Mounts, &tree.mounts);
    let _renames = tree.ranks.lock(Rank::Rename, &tree.rename_lock);
    climbs_to(&tree.domain.read(), place, root)
}
