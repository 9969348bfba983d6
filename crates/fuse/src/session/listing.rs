//! Listings of directories, with cookies that stay with their entries.
//!
//! An entry has the cookie of the file system. `.` and `..`, which come first, have two cookies that no file system uses.
//!
//! # Files with several names
//! READDIRPLUS gives the kernel no attributes of a file with several names that the kernel already
//! has. When a name is removed, the kernel takes 1 off its count of links. If it received the new
//! count just before, from a listing of the directory of another name, it would count the removal
//! twice, reach 0, and refuse to link the file (`ENOENT`) until its next request for attributes. A
//! listing holds only the lock of the listed directory, so the kernel does not exclude that.

use super::listing_budget::OpenDirectory;
use super::{Caller, Entry, ROOT_NODE, Session};
use vfs::{Base, DirEntry, Errno, OpenFile, OpenFlags, PathRef, Want};

/// The cookie of `.`.
const DOT: u64 = i64::MAX as u64 - 2;
/// The cookie of `..`.
const DOT_DOT: u64 = i64::MAX as u64 - 1;

/// An entry of a listing.
#[derive(Debug)]
pub struct Listed<'e> {
    /// Its name.
    pub name: &'e [u8],
    /// Inode number.
    pub ino: u64,
    /// File type (`S_IFMT`).
    pub kind: u32,
    /// The position after this entry.
    pub cookie: u64,
}

/// An entry of a listing that the kernel gets without attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// Nothing: the name is removed.
    Gone,
    /// Only its name and type, and this node in a form that the kernel refuses. The kernel then
    /// forgets one lookup of the node, which was counted; lookups of [`ROOT_NODE`] are not counted.
    /// The node is `ROOT_NODE` if the name cannot be looked up: the caller has no right to, or its
    /// share of the cache is used up.
    NameOnly(u64),
}

impl Session {
    /// OPENDIR.
    ///
    /// # Errors
    /// As for [`vfs::Context::open`]; `ESTALE`.
    pub fn opendir(&self, caller: &Caller, node: u64) -> Result<u64, Errno> {
        let held = self.node(node)?;
        let file = self.open_directory(caller, &held)?;
        let is_same = held.note_open(&file);
        Ok(self.directories.insert(self.listing_budgets.directory(caller.who.account(), file, is_same)))
    }

    /// Returns whether the kernel may answer from the listing that it has cached: names are cached,
    /// the file system does not report that the names changed, and no access must be recorded.
    #[must_use]
    pub fn keeps_listing(&self, handle: u64) -> bool {
        let may_keep = |directory: &OpenDirectory| directory.is_same && !directory.is_access_due();
        !self.options.ttls.entry.is_zero() && self.directories.get(handle).is_none_or(|open| may_keep(&open))
    }

    fn open_directory(&self, caller: &Caller, held: &PathRef) -> Result<OpenFile, Errno> {
        let flags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);
        // The open directory is the caller's, whom a host directory charges for it.
        self.callers.making(caller, 0).open_held(held, flags)
    }

    /// READDIR: calls `emit` with the entries after `cookie` (0: from the start) until it returns
    /// `false`: its buffer is full. For READDIRPLUS `want` has attributes: then
    /// [`Session::listed_entry`] finds in the cache the entries that the file system listed with
    /// their inodes.
    ///
    /// # Errors
    /// `EBADF`; the file system's errors if `emit` has taken no entry.
    pub fn readdir(
        &self,
        handle: u64,
        cookie: u64,
        want: Want,
        emit: &mut dyn FnMut(&Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        let Some(directory) = self.directories.get(handle) else { return Err(Errno::EBADF) };
        let held = directory.held();
        let own = self.shown_ino_of(held)?;
        if cookie == 0 && !emit(&Listed { name: b".", ino: own, kind: vfs::S_IFDIR, cookie: DOT }) {
            return Ok(());
        }
        if (cookie == 0 || cookie == DOT)
            && !emit(&Listed { name: b"..", ino: self.parent_ino(held), kind: vfs::S_IFDIR, cookie: DOT_DOT })
        {
            return Ok(());
        }
        let after = if cookie == DOT || cookie == DOT_DOT { 0 } else { cookie };
        let mut any = false;
        let done = directory.entries_after(after, want, &mut |entry: &DirEntry, cookie| {
            let listed =
                Listed { name: &entry.name, ino: self.shown_ino(held.dev(), entry.ino), kind: entry.kind, cookie };
            let taken = emit(&listed);
            any |= taken;
            taken
        });
        directory.settle();
        if any { Ok(()) } else { done }
    }

    fn parent_ino(&self, held: &PathRef) -> u64 {
        let parent = self.callers.everyone().hold(Base::at(held), b"..", false);
        parent.and_then(|parent| self.shown_ino_of(&parent)).unwrap_or(ROOT_NODE)
    }

    /// READDIRPLUS: looks up the entry `listed`, which must not be `.` or `..`.
    ///
    /// # Errors
    /// The form in which the kernel gets the entry without attributes.
    pub fn listed_entry(&self, caller: &Caller, handle: u64, listed: &Listed<'_>) -> Result<Entry, Unlisted> {
        let directory = self.directories.get(handle).ok_or(Unlisted::Gone)?;
        let found = match self.look_up(caller, directory.held(), listed.name) {
            Ok(found) if self.check_found(caller, &found).is_ok() => found,
            Err(Errno::ENOENT | Errno::ESTALE) => return Err(Unlisted::Gone),
            Ok(_) | Err(_) => return Err(Unlisted::NameOnly(ROOT_NODE)),
        };
        match self.entry_of(caller, found) {
            Ok((entry, false)) => Ok(entry),
            Ok((entry, true)) => Err(Unlisted::NameOnly(entry.node)),
            Err(_) => Err(Unlisted::NameOnly(ROOT_NODE)),
        }
    }

    /// RELEASEDIR.
    pub fn releasedir(&self, handle: u64) {
        drop(self.directories.remove(handle));
    }

    /// FSYNCDIR.
    ///
    /// # Errors
    /// `EBADF`; the file system's errors.
    pub fn fsyncdir(&self, handle: u64, data_only: bool) -> Result<(), Errno> {
        self.directories.get(handle).ok_or(Errno::EBADF)?.sync(data_only)
    }
}
