//! Open files as a file system sees them: the state that it keeps for each open, and that each
//! later call gets back.
//!
//! Plain values. As the `fh` of FUSE and `file->private_data` of Linux.

use crate::base::flags::OpenFlags;
use crate::slots::inode::Inode;
use core::any::Any;
use core::fmt;
use core::num::NonZeroU64;
use prim::shared::{AnyArc, PlainArc as Arc};
use std::os::fd::OwnedFd;

/// The state that a file system keeps for one open of a file. The VFS stores it and passes it to
/// each call about that open ([`Open`]).
///
/// ```
/// use lightfoot_vfs::OpenState;
/// use std::sync::Arc;
///
/// assert_eq!(OpenState::Word(7).word(), Some(7));
/// let shared = OpenState::Shared(Arc::new(String::from("snapshot 3")));
/// assert_eq!(shared.get::<String>().map(String::as_str), Some("snapshot 3"));
/// assert!(shared.word().is_none() && shared.get::<u32>().is_none());
/// ```
#[derive(Clone, Default)]
pub enum OpenState {
    /// Nothing.
    #[default]
    None,
    /// A number, such as a handle of a server.
    Word(u64),
    /// A value of the file system's own type. The VFS drops it after [`FileSystem::release`](crate::FileSystem::release).
    Shared(AnyArc),
}

impl OpenState {
    /// Returns the number, if the state is a number.
    #[must_use]
    pub fn word(&self) -> Option<u64> {
        if let Self::Word(word) = self { Some(*word) } else { None }
    }

    /// Returns the value, if the state is a value of type `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        if let Self::Shared(shared) = self { shared.downcast_ref() } else { None }
    }
}

impl fmt::Debug for OpenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Word(word) => f.debug_tuple("Word").field(word).finish(),
            Self::Shared(_) => f.write_str("Shared(..)"),
        }
    }
}

/// The result of [`FileSystem::open`](crate::FileSystem::open). Fields may be added: end with `..Opened::default()`.
///
/// ```
/// use lightfoot_vfs::{Opened, OpenState};
///
/// let opened = Opened { state: OpenState::Word(7), ..Opened::default() };
/// assert!(opened.keeps_pages && opened.backing.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Opened {
    /// The file system's state for this open.
    pub state: OpenState,
    /// A host file with the contents, byte for byte, that is open with the flags of this open: a
    /// kernel may read and write it directly.
    pub backing: Option<Arc<OwnedFd>>,
    /// A kernel may keep the pages that it cached of the file earlier. Without this it drops them:
    /// the contents may have changed.
    pub keeps_pages: bool,
    /// A number of the contents, of a directory its names, that changes when they change. A kernel
    /// keeps its pages only if this number is the one that it got at its open before. So it
    /// differs from [`keeps_pages`](Self::keeps_pages) where a tree is mounted several times, or is
    /// also used without a mount. `None`: the file system does not tell.
    pub version: Option<NonZeroU64>,
    /// When a write to this open file returns, its data is in permanent storage, as `SYNC` or
    /// `DSYNC` requires: the VFS does not call [`FileSystem::sync`](crate::FileSystem::sync) after
    /// the write.
    pub writes_through: bool,
}

impl Default for Opened {
    /// No state, no host file; pages may be kept, and have no version; the VFS syncs after a synchronous write.
    fn default() -> Self {
        Self { state: OpenState::None, backing: None, keeps_pages: true, version: None, writes_through: false }
    }
}

/// An open file, as the VFS passes it to a file system.
#[derive(Clone, Copy, Debug)]
pub struct Open<'o> {
    /// The file.
    pub inode: &'o Inode,
    /// The flags that it was opened with.
    pub flags: OpenFlags,
    /// The state that [`FileSystem::open`](crate::FileSystem::open) returned for this open file;
    /// [`OpenState::None`] if `open` is not called. A layer that has its own state passes on
    /// another one: `Open { state, ..*file }`.
    pub state: &'o OpenState,
}

/// Where a write puts its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// To this offset.
    At(u64),
    /// To the end of the file, wherever that is when the data arrive: `O_APPEND`. The VFS found the end at this offset.
    End(u64),
}

impl Position {
    /// Returns the offset, for a file system that cannot append by itself. The VFS changes no
    /// contents during the call, so the end stays where the VFS found it unless other programs
    /// change the file.
    #[must_use]
    pub fn offset(self) -> u64 {
        match self {
            Self::At(offset) | Self::End(offset) => offset,
        }
    }
}
