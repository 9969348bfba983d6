//! Handles: bytes that lead to a file without its name, as `name_to_handle_at(2)` and
//! `open_by_handle_at(2)` have them.
//!
//! # What it is
//! A handle is the id that the file system has for a file
//! ([`FileSystem::id`](crate::FileSystem::id)), and where the names are the cache's, the number of
//! the slot that the file lies in. It stays the same when the file moves.
//!
//! A directory is used only with its name: its parents are requested up to the root, and then
//! looked up downwards, as a walk does. If a directory moves meanwhile, this is repeated. A file
//! needs no name: if the cache has no name of the file, it gets a dentry without a name, and its
//! path is unknown. But below a mount of a part of the file system, or below another root of the
//! context, the file needs a name, which shows that the file lies there.
//!
//! # How it is locked
//! No lock. A file that is not cached is requested twice: the second answer, from when the cache
//! has the inode, is not older than a removal or a change that ended before.
//!
//! # Where it comes from
//! Linux's `exportfs_decode_fh`, `reconnect_path`.

use crate::base::access::credentials::Capabilities;
use crate::base::errno::Errno;
use crate::cache::budget::SlotKind;
use crate::cache::superblock::SuperBlock;
use crate::fs::{FileId, NewInode, Request};
use crate::mount::context::Context;
use crate::mount::place::{PathRef, Place};
use crate::slots::inode::InodeRef;
use crate::walk::lookup;
use crate::walk::resolve::is_within;
use crate::walk::walk_position::Here;

/// The first byte of a handle.
const VERSION: u8 = 1;

/// The deepest nesting of directories, as the file system reports it.
const MAX_DEPTH: usize = 1 << 16;

/// How often a directory that moves is connected.
const TRIES: usize = 16;

/// A handle of a file, for [`Context::hold_handle`]: as `name_to_handle_at(2)` returns it. Another process may use its bytes, on a tree
/// over the same file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHandle {
    /// The number of the slot, where the names are the cache's; else 0.
    slot: u32,
    id: FileId,
}

impl FileHandle {
    /// The most bytes of a handle.
    pub const MAX: usize = 5 + FileId::MAX;

    /// Returns the handle as bytes, at most [`FileHandle::MAX`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[VERSION], &self.slot.to_le_bytes()[..], self.id.as_bytes()].concat()
    }

    /// Returns the handle with these bytes.
    ///
    /// # Errors
    /// `EINVAL`: these are not a handle's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Errno> {
        let rest = bytes.strip_prefix(&[VERSION]).ok_or(Errno::EINVAL)?;
        let (slot, id) = rest.split_first_chunk().ok_or(Errno::EINVAL)?;
        Ok(Self { slot: u32::from_le_bytes(*slot), id: FileId::new(id).map_err(|_| Errno::EINVAL)? })
    }
}

impl Context {
    /// Returns the handle of `held`, which [`Context::hold_handle`] takes: `name_to_handle_at(2)`.
    /// Needs no permission.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: its file system has no ids of files.
    pub fn handle_of(&self, held: &PathRef) -> Result<FileHandle, Errno> {
        let (sb, inode) = (held.sb(), held.inode()?);
        let id = sb.fs().id(inode).ok_or(Errno::EOPNOTSUPP)?;
        Ok(FileHandle { slot: if sb.inodes.is_kept() { 0 } else { sb.slot_number(inode) }, id })
    }

    /// Returns the file with this handle, seen through the mount of `at`, which may be any place of
    /// this mount: `open_by_handle_at(2)` with `O_PATH`. [`Context::open_held`] opens it. No
    /// permission is checked, so the caller needs
    /// [`DAC_READ_SEARCH`](Capabilities::DAC_READ_SEARCH). A file outside of the mount, or on that
    /// mount outside of the context's root, is not found.
    ///
    /// A removed file is found as long as it is held, if its file system finds it.
    ///
    /// # Errors
    /// `EPERM` without the capability; `ESTALE`: the file was removed, or lies outside, or is a
    /// directory that moves all the time; `EOPNOTSUPP` if its file system has no ids; `ENOMEM`;
    /// errors of the file system.
    pub fn hold_handle(&self, at: &PathRef, handle: &FileHandle) -> Result<PathRef, Errno> {
        self.hold_shown(at, |is_part| {
            Decoding { at, is_part, id: &handle.id, request: &self.request() }.hold(handle.slot)
        })
    }

    /// Returns whether [`Context::hold_number`] finds the files of the file system of `at`: it has
    /// ids, and its names live in the cache.
    #[must_use]
    pub fn finds_numbers(&self, at: &PathRef) -> bool {
        let sb = at.sb();
        !sb.inodes.is_kept() && sb.root().inode().is_some_and(|root| sb.fs().id(root).is_some())
    }

    /// [`Context::hold_handle`] of the file with the inode number `ino`, for front ends whose
    /// protocol has no room for more. Looks at all inodes of the file system.
    ///
    /// # Errors
    /// `EOPNOTSUPP` unless [`Context::finds_numbers`]; the errors of [`Context::hold_handle`].
    pub fn hold_number(&self, at: &PathRef, ino: u64) -> Result<PathRef, Errno> {
        if !self.finds_numbers(at) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.hold_shown(at, |_| connected(at.beside(at.sb().pin_with_ino(ino).ok_or(Errno::ESTALE)?)))
    }

    /// Returns the place that `find` returns, if the place lies below the root of the mount of
    /// `at`, and below this context's root if that root is on this mount. `find` receives whether
    /// one of these roots is not the root of the file system.
    fn hold_shown(&self, at: &PathRef, find: impl FnOnce(bool) -> Result<PathRef, Errno>) -> Result<PathRef, Errno> {
        if !self.credentials().capabilities.contains(Capabilities::DAC_READ_SEARCH) {
            return Err(Errno::EPERM);
        }
        let mount = at.mount();
        let top = Place { mount: mount.borrow(), dentry: mount.root() };
        let (root, _) = self.root_and_cwd();
        let root = if root.mount().borrow().ptr_eq(mount.borrow()) { root.place() } else { top };
        let is_part = !core::ptr::eq(root.dentry, at.sb().root());
        let found = find(is_part)?;
        let is_below = |top| is_within(self.tree(), found.place(), top);
        let is_shown = !is_part || at.sb().is_named(found.dentry()) && is_below(&top) && is_below(&root);
        if is_shown { Ok(found) } else { Err(Errno::ESTALE) }
    }
}

/// `found`, unless it is a directory that was removed: `ESTALE`.
fn connected(found: PathRef) -> Result<PathRef, Errno> {
    if found.is_dir() && !found.sb().is_named(found.dentry()) { Err(Errno::ESTALE) } else { Ok(found) }
}

/// A file that is sought by its id.
struct Decoding<'a> {
    at: &'a PathRef,
    /// Whether it must lie below another directory than the root of its file system.
    is_part: bool,
    id: &'a FileId,
    request: &'a Request<'a>,
}

impl Decoding<'_> {
    fn sb(&self) -> &SuperBlock {
        self.at.sb()
    }

    fn ask(&self) -> Result<NewInode, Errno> {
        self.sb().fs().by_id(self.request, self.id)
    }

    /// Returns the file, with a name if it is a directory.
    fn hold(&self, slot: u32) -> Result<PathRef, Errno> {
        let sb = self.sb();
        let invalidations = sb.invalidations();
        let new = self.ask()?;
        if !sb.inodes.is_kept() {
            return connected(self.at.beside(sb.pin_numbered(slot, new.node).ok_or(Errno::ESTALE)?));
        }
        let needs_name = new.attr.is_dir() || self.is_part;
        let cached = sb.inodes.get(sb, new.node);
        if let Some(pinned) = cached.as_ref().and_then(|inode| sb.pin_beside(inode)) {
            let found = self.at.beside(pinned);
            if is_kind(&found, &new) && (!needs_name || sb.is_named(found.dentry())) {
                cached.into_iter().for_each(|inode| sb.put_inode(inode));
                return Ok(found);
            }
        }
        if needs_name {
            cached.into_iter().for_each(|inode| sb.put_inode(inode));
            return self.connect(&new);
        }
        self.hold_unnamed(cached, &new, invalidations)
    }

    /// Returns the file by a dentry without a name. `cached` is its inode.
    fn hold_unnamed(&self, cached: Option<InodeRef<'_>>, new: &NewInode, invalidations: u64) -> Result<PathRef, Errno> {
        let sb = self.sb();
        let slot = match sb.slot(SlotKind::Entry) {
            Ok(slot) => slot,
            Err(errno) => {
                cached.into_iter().for_each(|inode| sb.put_inode(inode));
                return Err(errno);
            }
        };
        let added = match cached {
            Some(inode) => Err((slot, inode)),
            None => sb.add_unnamed_unless_there(slot, &new.into()),
        };
        let (pinned, is_new) = match added {
            Ok(pinned) => (pinned, true),
            Err((slot, inode)) => (sb.add_unnamed_alias(slot, inode), false),
        };
        let found = self.at.beside(pinned);
        if !is_kind(&found, new) {
            return Err(Errno::ESTALE);
        }
        if is_new {
            self.renew(&found, new.node)?;
            if lookup::is_invalidated(sb, invalidations) {
                found.inode()?.age();
            }
        }
        Ok(found)
    }

    /// Requests a file once more that the cache did not have, and has now.
    ///
    /// # Errors
    /// `ESTALE`: it was removed meanwhile.
    fn renew(&self, found: &PathRef, node: u64) -> Result<(), Errno> {
        let (sb, inode) = (self.sb(), found.inode()?);
        let before = inode.before_request();
        let again = self.ask()?;
        if again.node != node || !is_kind(found, &again) {
            return Err(Errno::ESTALE);
        }
        sb.renew_inode(found.dentry(), inode, &again, Some(&before));
        Ok(())
    }

    /// Returns the file by a name, which its file system reports.
    fn connect(&self, new: &NewInode) -> Result<PathRef, Errno> {
        for _ in 0..TRIES {
            let names = self.names()?;
            if let Some(found) = self.walk(&names)?
                && found.inode()?.node() == new.node
            {
                return Ok(found);
            }
        }
        Err(Errno::ESTALE)
    }

    /// Returns the names on the way up to the root.
    fn names(&self) -> Result<Vec<Box<[u8]>>, Errno> {
        let sb = self.sb();
        let root = sb.root().inode().and_then(|root| sb.fs().id(root)).ok_or(Errno::ESTALE)?;
        let (mut names, mut at) = (Vec::new(), *self.id);
        while at != root {
            let (dir, name) = sb.fs().parent(self.request, &at).map_err(|errno| match errno {
                Errno::EOPNOTSUPP => Errno::ESTALE,
                errno => errno,
            })?;
            names.push(name);
            if names.len() > MAX_DEPTH {
                return Err(Errno::ESTALE);
            }
            at = dir;
        }
        Ok(names)
    }

    /// Returns the place that these names, the last one first, lead to from the root of the file
    /// system; `None`: one of them was removed.
    fn walk(&self, names: &[Box<[u8]>]) -> Result<Option<PathRef>, Errno> {
        let sb = self.sb();
        let mut place = self.at.beside(sb.pin_again(sb.root()));
        for name in names.iter().rev() {
            if !place.is_dir() {
                return Ok(None);
            }
            place = match lookup::find_held(&Here::Counted(place.clone()), name, b"", self.request) {
                Ok(Some(entry)) => self.at.beside(entry),
                Ok(None) | Err(Errno::ENOENT | Errno::ESTALE) => return Ok(None),
                Err(errno) => return Err(errno),
            };
        }
        Ok(Some(place))
    }
}

/// Returns whether the cached file has the type that its file system reports.
fn is_kind(found: &PathRef, new: &NewInode) -> bool {
    found.inode().is_ok_and(|inode| inode.attr().kind() == new.attr.kind())
}
