//! Credentials, and the permission check of `path_resolution(7)`.

use crate::base::attr::{Attr, S_IFDIR, S_IFMT};
use crate::base::errno::Errno;
use bitflags::bitflags;
use prim::shared::PlainArc as Arc;

/// Search (directories) or execute.
pub const MAY_EXEC: u32 = 1;
/// Write.
pub const MAY_WRITE: u32 = 2;
/// Read.
pub const MAY_READ: u32 = 4;
/// Together with [`MAY_WRITE`]: change the contents of a file, not only append to it. No mode
/// forbids it, but a flag of the inode may.
pub(crate) const MAY_OVERWRITE: u32 = 8;

bitflags! {
    /// Capabilities as flags, as in `capabilities(7)`; only those that file systems use.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Capabilities: u32 {
        /// Change owner and group at will.
        const CHOWN = 1 << 0;
        /// Pass read, write and search checks.
        const DAC_OVERRIDE = 1 << 1;
        /// Pass read and search checks.
        const DAC_READ_SEARCH = 1 << 2;
        /// Count as the owner of every file.
        const FOWNER = 1 << 3;
        /// Keep set-id bits on a change of the file.
        const FSETID = 1 << 4;
        /// Make device nodes.
        const MKNOD = 1 << 5;
        /// Mount, unmount, change mounts; `trusted.` attributes.
        const SYS_ADMIN = 1 << 6;
        /// Change the root directory.
        const SYS_CHROOT = 1 << 7;
        /// Use reserved space and pass quotas.
        const SYS_RESOURCE = 1 << 8;
        /// Set file capabilities.
        const SETFCAP = 1 << 9;
        /// Make files immutable or append-only, or no longer so.
        const LINUX_IMMUTABLE = 1 << 10;
    }
}

impl Capabilities {
    /// No capability.
    #[must_use]
    pub const fn none() -> Self {
        Self::empty()
    }

    /// Returns this set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        self.difference(other)
    }
}

/// The attributes that a permission check depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rights {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Attr {
    /// Returns the attributes that a permission check depends on.
    #[inline(always)]
    pub(crate) fn rights(&self) -> Rights {
        Rights { mode: self.mode, uid: self.uid, gid: self.gid }
    }
}

/// Identity of a context in walks and operations: `credentials(7)`, the file-system part.
///
/// A copy is cheap, and without supplementary groups writes to no shared memory: an open file keeps one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Group; new files get it.
    pub gid: u32,
    /// Supplementary groups; `None` if there are none.
    pub(crate) groups: Option<Arc<[u32]>>,
    /// Capabilities.
    pub capabilities: Capabilities,
}

impl Credentials {
    /// uid 0, gid 0, every capability.
    #[must_use]
    pub fn root() -> Self {
        Self { uid: 0, gid: 0, groups: None, capabilities: Capabilities::all() }
    }

    /// Returns an ordinary user without capabilities (uid 0 gets them all).
    #[must_use]
    pub fn user(uid: u32, gid: u32, groups: &[u32]) -> Self {
        let capabilities = if uid == 0 { Capabilities::all() } else { Capabilities::none() };
        let groups = (!groups.is_empty()).then(|| groups.into());
        Self { uid, gid, groups, capabilities }
    }

    /// Returns the supplementary groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        self.groups.as_deref().unwrap_or_default()
    }

    /// Returns whether `gid` is the group or one of the supplementary groups.
    #[must_use]
    pub(crate) fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups().contains(&gid)
    }

    /// Returns whether this is the owner of the file with `attr`, or may act as the owner.
    #[must_use]
    pub(crate) fn owns(&self, attr: &Attr) -> bool {
        self.uid == attr.uid || self.capabilities.contains(Capabilities::FOWNER)
    }

    /// Checks `mask` (of `MAY_*`) against owner, group, other bits and capabilities.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn may(&self, attr: &Attr, mask: u32) -> Result<(), Errno> {
        self.may_by(attr.rights(), mask)
    }

    /// As `may`, by the part of the attributes that it depends on.
    #[inline(always)]
    pub(crate) fn may_by(&self, rights: Rights, mask: u32) -> Result<(), Errno> {
        let mask = mask & !MAY_OVERWRITE;
        let shift = if self.uid == rights.uid {
            6
        } else if self.in_group(rights.gid) {
            3
        } else {
            0
        };
        let granted = (rights.mode >> shift) & mask == mask || self.overrides(rights.mode, mask);
        if granted { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Returns whether capabilities allow `mask` with a file of `mode`.
    #[cold]
    pub(crate) fn overrides(&self, mode: u32, mask: u32) -> bool {
        let has = |capability| self.capabilities.contains(capability);
        if mode & S_IFMT == S_IFDIR {
            return has(Capabilities::DAC_OVERRIDE) || (mask & MAY_WRITE == 0 && has(Capabilities::DAC_READ_SEARCH));
        }
        // Root cannot execute a file without any execute bit.
        let executable = mask & MAY_EXEC == 0 || mode & 0o111 != 0;
        (executable && has(Capabilities::DAC_OVERRIDE)) || (mask == MAY_READ && has(Capabilities::DAC_READ_SEARCH))
    }
}
